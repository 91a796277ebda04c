"""Which setting would make a refused request fit? A search over wire settings only; nothing is carried out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, VideoFacts
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.load import Load
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
"""Past this many steps the search gives up: a person cannot follow such an advice anyway."""
_MOST_WEIGHED = 100_000
"""Parts × steps; of thousands of media nobody wants to hear one by one."""


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
    still_over: tuple[LimitCheck, ...] = ()
    """Limits of tokens and USD that no setting brings down far enough; empty where it fits."""

    @property
    def fits(self) -> bool:
        return not self.still_over


class _Ladder:
    """A part's rungs, weighed as they are asked for; what was taken or passed is not offered again."""

    def __init__(self, part: Weighed, rules: ModelRules) -> None:
        self._rungs = _rungs(part, rules)
        self._weighed: list[tuple[Setting, Weighed]] = []
        self._next = 0

    def below(self, part: Weighed, check: LimitCheck) -> tuple[Setting, Weighed] | None:
        """The first rung from here on that lowers what `check` measures and that the service would take."""
        at = self._next
        while at < len(self._weighed) or self._grow():
            setting, lower = self._weighed[at]
            at += 1
            if _share(lower, check) < _share(part, check) and len(lower.refused) <= len(part.refused):
                self._next = at
                return setting, lower
        return None

    def _grow(self) -> bool:
        rung = next(self._rungs, None)
        if rung is not None:
            self._weighed.append(rung)
        return rung is not None


def advise(parts: Sequence[Weighed], rules: ModelRules, judge: Callable[[Load], Verdict]) -> Advice:
    """The mildest settings under which every limit of tokens and USD holds, the heaviest part taken down first.

    Rungs are ordered by what is lost: resolution before seconds, longer clips before shorter, more frames before fewer.
    A limit that nothing brings down far enough is set aside, so that the others are still helped.
    """
    now, taken = list(parts), dict[int, Setting]()
    ladders = [_Ladder(part, rules) for part in parts]
    hopeless: set[str] = set()
    for _ in range(min(_MOST_STEPS, _MOST_WEIGHED // max(1, len(parts)))):
        broken = next((check for check in _lowerable(judge(Load.of(now))) if check.name not in hopeless), None)
        if broken is None:
            break
        for index in sorted(range(len(now)), key=lambda index: _share(now[index], broken), reverse=True):
            if rung := ladders[index].below(now[index], broken):
                taken[index], now[index] = rung
                break
        else:
            hopeless.add(broken.name)
    return Advice(settings=taken, parts=tuple(now), still_over=_lowerable(judge(Load.of(now))))


def heaviest(parts: Sequence[Weighed], over: Sequence[LimitCheck], rules: ModelRules) -> str | None:
    """What weighs most against the first broken limit of tokens or USD, with its arithmetic; `None` without one."""
    check = next((check for check in over if check.name not in _COUNTED), None)
    if check is None or not parts:
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


def _share(part: Weighed, check: LimitCheck) -> int:
    tally = part.of(check.modality) if check.modality else part.total
    return tally.high


def _rungs(part: Weighed, rules: ModelRules) -> Iterator[tuple[Setting, Weighed]]:
    facts = part.examined.facts
    for setting in _settings(facts, part.controls, rules):
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


def _settings(facts: Facts | None, now: Controls, rules: ModelRules) -> Iterator[Setting]:
    match facts:
        case ImageFacts():
            yield from _levels(rules)
        case VideoFacts(duration_s=duration_s):
            rates = [_frame_rate(fps) for fps in _FPS if fps < (now.fps or rules.video(now).default_fps)]
            yield from _levels(rules)
            yield from rates
            for clip in _clips(duration_s, now):
                yield clip
                yield from (_both(clip, rate) for rate in rates)
        case AudioFacts(duration_s=duration_s):
            yield from _clips(duration_s, now)
        case DocumentFacts(pages=pages):
            yield from _levels(rules)
            for first in (n for n in _PAGES if n < pages):
                yield Setting(
                    words=f"its first {first} pages" if first > 1 else "its first page", changes={}, first_pages=first
                )
        case _:
            return


def _levels(rules: ModelRules) -> Iterator[Setting]:
    """On the part where the model honours that; else of the request, which can only lower its other parts too."""
    if rules.honours_part_resolution:
        for level in _RESOLUTIONS:
            yield Setting(words=f"resolution {level.value}", changes={"part_resolution": level})
    else:
        for level in _RESOLUTIONS:
            yield Setting(words=f"the request's resolution {level.value}", changes={"media_resolution": level})


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
