"""Which setting would make a refused request fit? A search over wire settings only; nothing is carried out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, VideoFacts
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.weigh import Weighed, explain, reweigh
from weighlock.request import MediaResolution
from weighlock.rules import ModelRules

_SECONDS = (120, 60, 30, 20)
_FPS = (0.5, 0.2)
_PAGES = (500, 200, 100, 50, 20, 10, 5, 2, 1)
_RESOLUTIONS = (MediaResolution.MEDIUM, MediaResolution.LOW)
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
    """The mildest settings under which `judge` admits, taking the heaviest part of a broken limit down first.

    Rungs are ordered by what is lost: resolution before seconds, longer clips before shorter, more frames before fewer.
    """
    now = list(parts)
    ladders = {index: _rungs(part, rules) for index, part in enumerate(parts)}
    taken: dict[int, Setting] = {}
    for _ in range(_MOST_STEPS):
        broken = judge(now).over
        if not broken:
            return Advice(settings=taken, parts=tuple(now), fits=True)
        step = _next_step(now, broken[0], ladders)
        if step is None:
            break
        index, setting, part = step
        taken[index], now[index] = setting, part
    return Advice(settings=taken, parts=tuple(now), fits=not judge(now).over)


def heaviest(parts: Sequence[Weighed], check: LimitCheck, rules: ModelRules) -> str | None:
    """What weighs most against a limit of tokens or USD, with its arithmetic; `None` for a limit of parts or bytes."""
    if check.name in ("media_parts", "bytes"):
        return None
    part = max(parts, key=lambda part: _share(part, check))
    tokens = part.of(check.modality) if check.modality else part.total
    arithmetic = explain(part, check.modality, rules)
    return f"{part.examined.label}: {arithmetic}{' = ' if check.modality else ', in all '}{tokens.likely:,}."


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
    for setting in _settings(facts):
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


def _settings(facts: Facts | None) -> Iterator[Setting]:
    match facts:
        case ImageFacts():
            yield from _levels()
        case VideoFacts(duration_s=duration_s):
            yield from _levels()
            yield from (_frame_rate(fps) for fps in _FPS)
            for clip in _clips(duration_s):
                yield clip
                yield from (_both(clip, _frame_rate(fps)) for fps in _FPS)
        case AudioFacts(duration_s=duration_s):
            yield from _clips(duration_s)
        case DocumentFacts(pages=pages):
            yield from _levels()
            for first in (n for n in _PAGES if n < pages):
                yield Setting(words=f"pages 1-{first}", changes={}, first_pages=first)
        case _:
            return


def _levels() -> Iterator[Setting]:
    return (Setting(words=f"resolution {level.value}", changes={"part_resolution": level}) for level in _RESOLUTIONS)


def _frame_rate(fps: float) -> Setting:
    return Setting(words=f"fps {fps:g}", changes={"fps": fps})


def _clips(duration_s: float) -> Iterator[Setting]:
    for seconds in _SECONDS:
        if seconds < duration_s:
            start = duration_s - seconds
            yield Setting(words=f"clip last {seconds}s", changes={"start_offset_s": start, "end_offset_s": duration_s})


def _both(one: Setting, other: Setting) -> Setting:
    return Setting(words=f"{one.words} + {other.words}", changes={**one.changes, **other.changes})
