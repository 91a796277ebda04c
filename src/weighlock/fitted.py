"""A request made to fit, and its receipt: as JSON values for programs, in words for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from weighlock.errors import BudgetExceeded, InputError, MediaTooLarge, UnsupportedMedia, WeighlockError
from weighlock.media.work import Made, Work
from weighlock.planning.admit import Decision, Verdict
from weighlock.planning.cached import Cached, Sent, cached
from weighlock.planning.counting import is_unseen
from weighlock.planning.levers import Lever
from weighlock.planning.obstacles import Obstacle
from weighlock.planning.placement import INLINE_ALL, Placements
from weighlock.planning.screen import Screening
from weighlock.planning.shape import Shaped
from weighlock.planning.sharper import AsSent
from weighlock.planning.steps import Plan, Step
from weighlock.planning.weigh import Tally
from weighlock.report import SCHEMA, Report, cost_dict, knobs, over_in_words, part_dict, scale_dict, verb
from weighlock.request import Place, Request
from weighlock.screening_report import screening_dict
from weighlock.written import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """That the deadline was past before the works were done, and the plan changed."""

    deadline_s: float
    left_out: Mapping[int, Work]
    """The works that are not done now, by part."""

    @property
    def words(self) -> str:
        return f"local work took longer than {self.deadline_s:g} s (prepare_deadline_s)"


_NOT_TOKENS = ("bytes", "media_parts")
_MOST_PARTS, _MOST_OBSTACLES, _MOST_NAMES = 5, 6, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A request made to fit its endpoint's limits, and the receipt."""

    request: Request
    """As it would be sent. What is over stays over where no lever reaches: `fits` says so."""
    before: Report
    """As the caller sent it, once screened."""
    after: Report
    plan: Plan
    works: Mapping[int, Work]
    """What is to be done to the bytes of which part of `after` before it is sent; empty once it is done."""
    look_further: Callable[[], tuple[Obstacle, ...]] = field(default=tuple, repr=False, compare=False)
    """Looks for what is `untaken`: who is admitted seldom asks."""
    made: Mapping[int, Made] = field(default_factory=lambda: MappingProxyType({}))
    """What came of the works, by the same part."""
    files: Mapping[int, bytes] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """The media that were made, by the same part."""
    shaped: tuple[Shaped, ...] = field(default=(), repr=False)
    """The media as planned, in the order of the parts."""
    traced: tuple[int, ...] = ()
    """Parts that keep their metadata though the endpoint wants it out: of a format it is not known how, or with no work
    allowed on their bytes."""
    to_upload: Placements = field(default_factory=lambda: INLINE_ALL)
    """What is too many bytes to go inline, by the same part, and why. `request` still holds the bytes: upload them by
    the Files API, and let `fitting.referred` name them in it. `after` weighs them so already."""
    original: Request = field(default_factory=lambda: Request(turns=()), repr=False)
    """As the caller sent it."""
    sent: Sent | None = field(default=None, repr=False)
    """What of it the turn before sent; `None` where there was none."""
    screening: Screening = field(default_factory=Screening, repr=False)
    """What was found in it, before anything was planned."""
    late: Late | None = None
    """Where the deadline changed the plan."""

    def without_media(self) -> Fitted:
        """The receipt alone, without the requests."""
        nothing = Request(turns=())
        return replace(self, request=nothing, original=nothing, files={}, shaped=(), screening=Screening())

    @property
    def is_untouched(self) -> bool:
        """Whether the policy changes nothing, so that any other would do no less."""
        return not (self.plan.steps or self.works or self.plan.verdict.over)

    @property
    def is_sendable(self) -> bool:
        """Whether the service takes it, once `works` are done and `to_upload` is uploaded, whatever the budget says."""
        screening = self.before.screening
        refused = self.after.refused or any(
            part.error or (part.refused and at not in self.works) for at, part in enumerate(self.after.parts)
        )
        return not refused and not (screening is not None and screening.errors)

    @property
    def verdict(self) -> Verdict:
        """On the request as its media were made, or as planned where nothing had to be made."""
        return self.after.verdict if self.made else self.plan.verdict

    @property
    def fits(self) -> bool:
        """Whether the endpoint admits it: every limit holds by the high estimate, and nothing in it is unknown."""
        return self.verdict.decision is Decision.ADMIT

    @property
    def untaken(self) -> tuple[Obstacle, ...]:
        """Why no lever goes further on a part, or did not move at all."""
        return self.look_further()

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Why no part gets lighter still."""
        return tuple(one for one in self.untaken if not one.idle)

    @property
    def refusal(self) -> str | None:
        """Why the endpoint does not admit it; `None` where it does, or where it cannot tell."""
        return " ".join(self._sentences()) if self.verdict.decision is Decision.REJECT else None

    @property
    def cached(self) -> Cached | None:
        """What the prompt cache is worth to it, if it holds what was sent before; `None` of a first request."""
        if self.sent is None:
            return None
        return cached(self.after.parts, self.sent, output_tokens=self.after.scale.output_tokens)

    def demand_sendable(self) -> None:
        """Does nothing where the service takes it, once `works` are done and `to_upload` is uploaded.

        Raises:
            InputError: the first reason why not; `figures["others"]` holds the messages of the rest.
        """
        problems = self.problems
        if problems:
            problems[0].figures["others"] = [problem.message for problem in problems[1:]]
            raise problems[0]

    @property
    def problems(self) -> list[WeighlockError]:
        """Why the service does not take it, whatever the budget says. Media only the service can see are none."""
        screening = self.before.screening
        problems: list[WeighlockError] = [*screening.errors] if screening is not None else []
        for at, part in enumerate(self.after.parts):
            if part.error is not None and not is_unseen(part):
                problems.append(part.error)
            elif part.refused and at not in self.works:
                problems.append(UnsupportedMedia(f"{part.examined.label}: {part.refused[0]}"))
        return problems + [MediaTooLarge(words) for words in self.after.refused]

    def demand_fit(self) -> None:
        """Does nothing where the endpoint admits it.

        Raises:
            BudgetExceeded: what costs what, the lowest total that can be reached, and what stands in the way.
            InputError: a part could not be weighed.
        """
        if self.verdict.decision is Decision.REJECT:
            raise self.exceeded()
        for part in self.after.parts:
            if part.error is not None:
                raise part.error

    def exceeded(self) -> BudgetExceeded:
        """What costs what, the lowest total that was found, and what stands in the way."""
        scale, over = self.after.scale, self.verdict.over
        return BudgetExceeded(
            " ".join(self._sentences()),
            endpoint=scale.endpoint,
            owner=scale.owner,
            limits={check.name: {"limit": str(check.limit), "lowest_reachable": str(check.high)} for check in over},
            lowest_reachable_tokens=self.after.total.high,
            in_the_way=[
                *(one.knob for one in self._in_the_way() if one.knob),
                *(["prepare_deadline_s"] if self.late else []),
            ],
        )

    def _sentences(self) -> Iterator[str]:
        scale, over = self.after.scale, self.verdict.over
        broken = [over_in_words(check, self.after, by_bound=True) for check in over]
        how = "" if not over else " as it was made" if self.made else " even at its lightest"
        yield f"{scale.endpoint} {verb(scale)}{how}: {'; '.join([*broken, *self.verdict.reasons])}."
        if over:
            yield self._total()
            if self.late is not None:
                yield f"{self.late.words[:1].upper()}{self.late.words[1:]}, so there is none in it."
            if told := self._in_the_way():
                yield f"In the way: {'; '.join(self.obstacles_in_words(told)[:_MOST_OBSTACLES])}."
            yield f"Raise {knobs(over, scale)}, or send less."
        if scale.owner:
            yield f"Owner: {scale.owner}."

    def _total(self) -> str:
        """What costs what, by the estimate that decides; the figures add up to the total."""
        total = self.after.total
        # Where only bytes or parts are over, nobody looked for fewer tokens.
        lightest = not self.made and any(check.name not in _NOT_TOKENS for check in self.verdict.over)
        words = f"{'Lowest reachable total' if lightest else 'In all'} {total.high:,} tokens"
        words += ", by the high estimate" if total.likely < total.high else ""
        heavy = sorted((part for part in self.after.parts if part.total.high), key=lambda part: -part.total.high)
        costs = [f"{part.examined.label} {part.total.high:,}" for part in heavy[:_MOST_PARTS]]
        if rest := heavy[_MOST_PARTS:]:
            costs.append(f"{len(rest)} more {sum(part.total.high for part in rest):,}")
        return f"{words}: {', '.join(costs)}." if costs else f"{words}."

    def _in_the_way(self) -> list[Obstacle]:
        """What the endpoint or the caller could change, of the heaviest parts first."""
        weight = {at: part.total.high for at, part in enumerate(self.after.parts)}
        told = [one for one in self.obstacles if one.knob is not None or one.lever is None]
        return sorted(told, key=lambda one: (-weight[one.part], one.part))

    def obstacles_in_words(self, told: Sequence[Obstacle]) -> list[str]:
        """`recording.mp4: fps: floor 0.2 fps (media.video.floor.fps)`; parts that stop at the same together."""
        alike: dict[tuple[Lever | None, str, str | None], list[str]] = {}
        for one in told:
            label = self.after.parts[one.part].examined.label
            alike.setdefault((one.lever, one.words, one.knob), []).append(label)
        return [_obstacle(*stop, labels) for stop, labels in alike.items()]

    # ---- some of its parts

    def chosen(self, parts: Iterable[int | str]) -> tuple[int, ...]:
        """Which media are meant, by number or by name.

        Raises:
            InputError: none, or one that is not there.
        """
        labels = [part.examined.label for part in self.after.parts[:-1]]
        found = [at for one in parts for at, label in enumerate(labels) if one in (at, label)]
        missing = [one for one in parts if one not in labels and one not in range(len(labels))]
        if missing or not found:
            told = ", ".join(labels[:_MOST_PARTS]) or "none"
            raise InputError(f"no such medium: {plain(missing[0] if missing else '')!r}; the request holds {told}")
        return tuple(dict.fromkeys(found))

    def weight(self, parts: Iterable[int]) -> int:
        """What these cost, by the likely estimate."""
        return sum(self.after.parts[at].total.likely for at in parts)

    def sent_media(self, parts: Iterable[int]) -> dict[Place, AsSent]:
        """These media as the caller has them, and as they are sent; what hides in a tool's text is left out."""
        found = {at: self.shaped[at].finding for at in parts}
        return {
            one.place: AsSent(part=one.part, weighed=self.plan.parts[at])
            for at, one in found.items()
            if one.hidden is None
        }

    def no_sharper(self, parts: Iterable[int]) -> BudgetExceeded:
        """That they cannot be sent any sharper."""
        names = ", ".join(self.after.parts[at].examined.label for at in parts)
        scale = self.after.scale
        return BudgetExceeded(
            f"{scale.endpoint}: {names} cannot be sent any sharper within its limits", endpoint=scale.endpoint
        )

    def as_dict(self) -> dict[str, Any]:
        """The receipt as JSON values, `schema` 1."""
        saved = self.before.total.high - self.after.total.high
        return {
            "schema": SCHEMA,
            **scale_dict(self.after.scale),
            "fits": self.fits,
            "sendable": self.is_sendable,
            "refusal": self.refusal,
            "breaks_prefix": self.plan.breaks_prefix,
            "before": {**self.before.sums_dict(), "parts": _parts(self.before)},
            "after": {**self.after.sums_dict(), "parts": _parts(self.after)},
            "cost_cached": self.cached and cost_dict(self.cached.cost),
            "cache": self.cached and self._cached_dict(self.cached),
            "saved": {"tokens_high": saved, "tokens_likely": self.before.total.likely - self.after.total.likely},
            "steps": [self._step_dict(step) for step in self.plan.steps],
            "passed": [self._step_dict(step) for step in self.plan.passed],
            "not_available": [
                {"part": one.part, "lever": one.lever and one.lever.value, "words": one.words, "knob": one.knob}
                for one in self.obstacles
            ],
            "not_needed": [
                {"part": one.part, "lever": one.lever and one.lever.value, "words": one.words}
                for one in self.untaken
                if one.idle
            ],
            "works": _works(self.works),
            "made": [
                {
                    "part": at,
                    "mime": made.mime,
                    "size_bytes": made.size_bytes,
                    "actual_start_s": made.actual_start_s,
                    "notes": list(made.notes),
                }
                for at, made in self.made.items()
            ],
            "to_upload": [
                {"part": at, "source": self.before.parts[at].examined.label, **asdict(one)}
                for at, one in self.to_upload.items()
            ],
            "stays_inline": self.plan.stays_inline,
            "keep_metadata": list(self.traced),
            "late": self.late and {"deadline_s": self.late.deadline_s, "left_out": _works(self.late.left_out)},
            "screening": self.before.screening and screening_dict(self.before.screening, self.before.parts, None),
            "confinement": self.before.confinement and dict(self.before.confinement),
        }

    def _cached_dict(self, found: Cached) -> dict[str, Any]:
        at = found.broken_at
        return {
            "kept_tokens": asdict(Tally.of(found.kept.values())),
            "kept": {kind.value: asdict(tally) for kind, tally in found.kept.items()},
            "broken_at": None if at is None else {"part": at, "source": self.before.parts[at].examined.label},
            "lost_tokens": asdict(Tally.of(found.lost.values())),
            "lost_usd": cost_dict(found.lost_cost),
        }

    def _step_dict(self, step: Step) -> dict[str, Any]:
        return {
            "lever": step.lever.value,
            "parts": list(step.parts),
            "sources": [self.before.parts[at].examined.label for at in step.parts],
            "request_wide": step.request_wide,
            "words": step.told,
            "before": asdict(step.before),
            "after": asdict(step.after),
            "saved": asdict(step.saved),
            "saved_bytes": step.saved_bytes,
            "local": step.local,
            "why": step.why.value,
            "breaks_prefix": step.breaks_prefix,
        }


def _obstacle(lever: Lever | None, words: str, knob: str | None, labels: Sequence[str]) -> str:
    names = ", ".join(labels) if len(labels) <= _MOST_NAMES else f"{labels[0]} and {len(labels) - 1} more"
    return f"{names}:{f' {lever}:' if lever else ''} {words}{f' ({knob})' if knob else ''}"


def _parts(report: Report) -> list[dict[str, Any]]:
    return [part_dict(part, cost) for part, cost in zip(report.parts, report.costs, strict=True)]


def _works(works: Mapping[int, Work]) -> list[dict[str, Any]]:
    return [{"part": at, "kind": type(work).__name__, **_plain(asdict(work))} for at, work in works.items()]


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
