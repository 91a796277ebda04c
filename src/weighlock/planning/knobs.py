"""Which setting would make a refused request fit? A search over wire settings only; nothing is carried out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, VideoFacts
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.weigh import Weighed, explain, reweigh
from weighlock.request import MediaResolution
from weighlock.rules import Controls, ModelRules

_SECONDS = (120, 60, 30, 20)
_FPS = (12, 5, 2, 1, 0.5, 0.2)
_PAGES = (500, 200, 100, 50, 20, 10, 5, 2, 1)
_RESOLUTIONS = (MediaResolution.HIGH, MediaResolution.MEDIUM, MediaResolution.LOW)
_COUNTED = ("media_parts", "bytes")
"""Limits that no setting of a medium lowers."""
_MOST_STEPS = 400
"""Past this many parts × steps the search gives up: a person cannot follow such an advice anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One rung of a part's ladder: control changes, and how to say them."""

    words: str
    changes: dict[str, Any]
    """To the part's `Controls`."""
    first_pages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What would fit: a setting per part, by its index, and the parts as they would then weigh."""

    settings: dict[int, Setting]
    parts: tuple[Weighed, ...]
    fits: bool
    """False: this is the lowest any setting reaches, and it is still over."""


def advise(parts: Sequence[Weighed], rules: ModelRules, judge: Callable[[Sequence[Weighed]], Verdict]) -> Advice:
    """The mildest settings under which every limit of tokens and USD holds, the heaviest part taken down first.

    Rungs are ordered by what is lost: resolution before seconds, longer clips before shorter, more frames before fewer.
    """
    now = list(parts)
    ladders = {index: _rungs(part, rules) for index, part in enumerate(parts)}
    taken: dict[int, Setting] = {}
    for _ in range(_MOST_STEPS):
        broken = _lowerable(judge(now))
        if not broken:
            return Advice(settings=taken, parts=tuple(now), fits=True)
        step = _next_step(now, broken[0], ladders)
        if step is None:
            break
        index, setting, part = step
        taken[index], now[index] = setting, part
    return Advice(settings=taken, parts=tuple(now), fits=not _lowerable(judge(now)))


def heaviest(parts: Sequence[Weighed], over: Sequence[LimitCheck], rules: ModelRules) -> str | None:
    """What weighs most against the first broken limit of tokens or USD, with its arithmetic; `None` without one."""
    check = next((check for check in over if check.name not in _COUNTED), None)
    if check is None:
        return None
    part = max(parts, key=lambda part: _share(part, check))
    tokens = part.of(check.modality) if check.modality else part.total
    words = f"{part.examined.label}: {explain(part, check.modality, rules)}"
    words += f"{' = ' if check.modality else ', in all '}{tokens.likely:,}"
    if check.likely <= check.limit and part.examined.anomalies:
        words += f", perhaps {tokens.high:,} ({part.examined.anomalies[0].detail})"
    return f"{words}."


def _lowerable(verdict: Verdict) -> tuple[LimitCheck, ...]:
    return tuple(check for check in verdict.over if check.name not in _COUNTED)


def _next_step(
    parts: Sequence[Weighed], check: LimitCheck, ladders: dict[int, Iterator[tuple[Setting, Weighed]]]
) -> tuple[int, Setting, Weighed] | None:
    """The next rung of the heaviest part that can still lower what `check` measures."""
    heaviest_first = sorted(ladders, key=lambda index: _share(parts[index], check), reverse=True)
    for index in heaviest_first:
        for setting, part in ladders[index]:
            if _share(part, check) < _share(parts[index], check):
                return index, setting, part
        del ladders[index]
    return None


def _share(part: Weighed, check: LimitCheck) -> int:
    tally = part.of(check.modality) if check.modality else part.total
    return tally.high


def _rungs(part: Weighed, rules: ModelRules) -> Iterator[tuple[Setting, Weighed]]:
    facts = part.examined.facts
    for setting in _settings(facts, part.controls):
        controls = replace(part.controls, **setting.changes)
        if isinstance(facts, DocumentFacts) and setting.first_pages:
            yield setting, reweigh(part, controls, _cut(facts, setting.first_pages), rules)
        elif facts is not None:
            yield setting, reweigh(part, controls, facts, rules)


def _cut(facts: DocumentFacts, pages: int) -> DocumentFacts:
    """The document's first pages only."""
    runs, left = [], pages
    for run in facts.runs:
        if left <= 0:
            break
        runs.append(replace(run, pages=min(run.pages, left)))
        left -= run.pages
    return replace(facts, pages=pages, pages_high=pages, runs=tuple(runs))


def _settings(facts: Facts | None, now: Controls) -> Iterator[Setting]:
    match facts:
        case ImageFacts():
            yield from _levels()
        case VideoFacts(duration_s=duration_s):
            rates = [_frame_rate(fps) for fps in _FPS if fps < (now.fps or 1)]
            yield from _levels()
            yield from rates
            for clip in _clips(duration_s, now):
                yield clip
                yield from (_both(clip, rate) for rate in rates)
        case AudioFacts(duration_s=duration_s):
            yield from _clips(duration_s, now)
        case DocumentFacts(pages=pages):
            yield from _levels()
            for first in (n for n in _PAGES if n < pages):
                yield Setting(
                    words=f"its first {first} pages" if first > 1 else "its first page", changes={}, first_pages=first
                )
        case _:
            return


def _levels() -> Iterator[Setting]:
    return (Setting(words=f"resolution {level.value}", changes={"part_resolution": level}) for level in _RESOLUTIONS)


def _frame_rate(fps: float) -> Setting:
    return Setting(words=f"fps {fps:g}", changes={"fps": fps})


def _clips(duration_s: float, now: Controls) -> Iterator[Setting]:
    """The last seconds of what is sent now, so that a clip already asked for is never widened."""
    begin_s = now.start_offset_s or 0.0
    end_s = duration_s if now.end_offset_s is None else min(now.end_offset_s, duration_s)
    for seconds in _SECONDS:
        if seconds < end_s - begin_s:
            start_s = end_s - seconds
            words = f"last {seconds}s" if end_s == duration_s else f"{start_s:g}s-{end_s:g}s"
            yield Setting(words=f"clip {words}", changes={"start_offset_s": start_s, "end_offset_s": end_s})


def _both(one: Setting, other: Setting) -> Setting:
    return Setting(words=f"{one.words} + {other.words}", changes={**one.changes, **other.changes})
