"""Weighs media on this machine: what they are, what they would cost, how they would fit. No key, no network.

Identify → screen → probe → check → plan → transform. Nothing here decides or measures: each step asks the room that
does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from weighlock import mime
from weighlock.errors import ConfigError, InputError, ServiceError
from weighlock.examiner import Examiner, Recall
from weighlock.media.facts import TextFacts
from weighlock.media.work import Made, Work
from weighlock.planning.carrying import Action
from weighlock.planning.cost import ServiceTier
from weighlock.planning.identify import Identified
from weighlock.planning.rewrite import rewritten
from weighlock.planning.said import controls_of, request_resolution, request_text
from weighlock.planning.screen import Finding, Screening, screen
from weighlock.planning.weigh import Examined
from weighlock.pricing import load_price_list
from weighlock.report import Report
from weighlock.request import Backend, Carrier, MediaPart, MediaResolution, Modality, Request
from weighlock.rules import Controls, ModelRules, RuleBook
from weighlock.scales import Asked, Scales
from weighlock.settings import Clip, Settings, load
from weighlock.settings.amounts import parse_clip
from weighlock.uploads.policy import DEFAULT_TENANT

if TYPE_CHECKING:
    from weighlock.fitted import Fitted

_MOST_TIMED = 64
"""Removed recordings of a request whose length is looked up: each new one costs a child process."""
Parts = Iterable[MediaPart | Path | str] | MediaPart | Path | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A request in which every carrier holds what it may hold."""

    request: Request
    """The very same object where nothing had to change."""
    screening: Screening
    """What was found, and what became of it; `demand_sendable()` raises what cannot be put right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A request with what was found in it, to be planned for."""

    request: Request
    screened: Screened
    examined: tuple[Examined, ...]
    """The media that are sent, in order."""
    confinement: dict[str, Any] | None
    """The limits that held where a codec was asked."""


def fitted(looked: Looked, scales: Scales, told: Report | None = None) -> Fitted:
    """The mildest way to hold the limits on the scales; `told` is the receipt with a count in it. Pure.

    Raises:
        InputError: a wish of the caller that cannot be had.
    """
    from weighlock import fitting

    screened, screening = looked.screened.request, looked.screened.screening
    return fitting.fit(looked.request, screened, screening, looked.examined, scales, looked.confinement, told=told)


class Weigher:
    """Thread-safe; starts the confined worker on first need.

    `preload=False` puts off loading the prober's code and the price lists until they are needed. It suits a command
    that may need neither; in a threaded program a fork in the middle of such an import would hang the child. `clock`
    tells seconds, for deadlines.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        rules: RuleBook | None = None,
        preload: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self.rules = rules or rule_book(settings)
        if preload:
            load_price_list()
        self._examiner = Examiner(settings, preload=preload)
        self._scales = lru_cache(maxsize=256)(partial(Scales, settings, self.rules))

    @classmethod
    def from_config(cls, path: Path | None = None) -> Self:
        """From a settings file, found as the command line finds it.

        Raises:
            ConfigError: the file is missing or wrong.
        """
        return cls(load(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker. A later call starts a new one."""
        self._examiner.close()

    def confinement(self) -> dict[str, Any] | None:
        """The limits that held while probing; `None` as long as nothing needed a codec."""
        return self._examiner.confinement()

    def check(
        self,
        parts: Parts | Request,
        *,
        text: str | None = None,
        endpoint: str | None = None,
        model: str | None = None,
        backend: Backend | str | None = None,
        controls: Controls | None = None,
        clip: Clip | str | None = None,
        output_tokens: int | None = None,
        on: date | None = None,
    ) -> Report:
        """What the media are and would cost as one request, and whether the endpoint admits it. No key, no network.

        A medium that cannot be weighed is in the report with its error; it raises nothing.

        Args:
            parts: Paths, or `MediaPart`s for bytes and labels of your own; or a whole `Request`, which is screened
                first: the report says what every carrier may hold, and weighs what would be sent.
            text: The prompt that goes with them.
            endpoint: Whose limits apply; the `default` section when left out.
            model: The endpoint's when left out.
            backend: `developer` or `vertex`; the endpoint's account's when left out.
            controls: Resolution, frame rate, offsets, placement, carrier; the endpoint's settings when left out.
            clip: Of video and audio: `last 60s`, `first 2m`, `30-90`, `around 95s`; the endpoint's when left out.
            output_tokens: The expected answer, added to the cost.
            on: The day whose rules and prices apply; today (UTC) when left out.

        Raises:
            ConfigError: no such endpoint or backend.
            InputError: a clip that is none, or a negative `output_tokens`.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        asked = Asked(
            endpoint=endpoint,
            model=model,
            backend=_backend(backend),
            controls=controls,
            clip=_clip(clip),
            output_tokens=output_tokens,
            on=on,
        )
        if isinstance(parts, Request):
            return self.weigh_request(parts, asked, text=text)
        scales = self.scales(asked)
        return self._weighed(scales, list(self.examine(_each_part(parts))), text)

    def screen(self, request: Request, asked: Asked | None = None) -> Screened:
        """What every carrier of a request may hold on this model and backend, and the request put right.

        Looks at the whole history, so that a session that was poisoned once heals. Nothing that can only be refused is
        raised here: `screening.demand_sendable()` does.

        Raises:
            ConfigError: no such endpoint.
        """
        return self._screened(request, self._scales_for(request, asked))

    def weigh_request(
        self, request: Request, asked: Asked | None = None, *, text: str | None = None, standing: bool = True
    ) -> Report:
        """What a request would cost once screened, part by part, and whether the endpoint admits it.

        Not `standing`, all that the endpoint sets on media is taken to be in the request already.

        Raises:
            ConfigError: no such endpoint.
            MalformedRequest: a media resolution there is none of.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        scales, tenant = self._scales_for(request, asked), (asked or Asked()).tenant
        return self._weighed_request(request, scales, tenant, text, standing=standing)[0]

    def _weighed_request(
        self, request: Request, scales: Scales, tenant: str, text: str | None = None, *, standing: bool = True
    ) -> tuple[Report, Request]:
        """The receipt, and what would be sent."""
        screened = self._screened(request, scales)
        examined = self._examined(screened.screening, request_resolution(request), scales, tenant)
        examined.append(request_text(screened.request))
        report = replace(self._weighed(scales, examined, text, standing=standing), screening=screened.screening)
        looked_at = any(one.seconds is not None for one in screened.screening.findings)
        return (replace(report, confinement=self.confinement()) if looked_at else report), screened.request

    def fit(self, request: Request, asked: Asked | None = None) -> Fitted:
        """The mildest way to hold the endpoint's limits, by its levers in its order, set on the request.

        Nothing is lost that need not be: a request that fits comes back as the same object. Media whose bytes have to
        be worked on are in `works`, and are not yet in the request.

        Raises:
            ConfigError: no such endpoint.
            InputError: a control of the request that is none, or a wish of the caller that cannot be had.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        scales = self._scales_for(request, asked)
        return fitted(self.look(request, scales, (asked or Asked()).tenant), scales)

    def identify(self, part: MediaPart) -> Identified:
        """What a medium is, from its first bytes. Never raises: what is wrong with it is its `error`."""
        return self._examiner.identify(part)

    def look(self, request: Request, scales: Scales, tenant: str = DEFAULT_TENANT) -> Looked:
        """What a request holds, and what its carriers may hold of it: all that is asked of the media themselves.

        Raises:
            InputError: a control of the request that is none.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        screened = self._screened(request, scales)
        examined = self._examined(screened.screening, request_resolution(request), scales, tenant)
        _demand_answers(examined)
        looked_at = self.confinement() if any(one.probed for one in examined) else None
        return Looked(request=request, screened=screened, examined=tuple(examined), confinement=looked_at)

    def carry_out(
        self,
        fitted: Fitted,
        asked: Asked | None = None,
        *,
        progress: Callable[[int, float], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        scales: Scales | None = None,
    ) -> Fitted:
        """The works of a plan, done in the confined worker, and the request with what came of them.

        The media are probed again: `after` holds what they really weigh. `progress` is told the part and the share
        done. The same object where there is nothing to do. Past the endpoint's `prepare_deadline_s` (or `deadline_s` of
        `asked`) it is the plan without that work, and `late` says so; whether that fits is for `fits` to say. `scales`
        are those of the plan, where they are not the endpoint's.

        Raises:
            InputError: a medium cannot be worked on as planned, or not in time and not be sent without.
            Cancelled: `cancelled` said so.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        if not fitted.works:
            return fitted
        from weighlock.deeds import Doer

        # A window that is in the bytes then is not to be looked for in them once more.
        said = replace(asked or Asked(), clip=None, controls=None)
        return Doer(
            fitted=fitted,
            scales=scales or self._scales_for(fitted.original, asked),
            make=partial(self._examiner.made, owner=said.tenant),
            weigh=lambda request: self.weigh_request(request, said, standing=False),
            clock=self._clock,
            progress=progress,
            cancelled=cancelled,
        ).carry_out()

    def _scales_for(self, request: Request, asked: Asked | None) -> Scales:
        asked = asked or Asked()
        tier = _tier(request) if asked.tier is ServiceTier.STANDARD else asked.tier
        return self._scales(_told(asked, model=asked.model or request.model, tier=tier))

    def _screened(self, request: Request, scales: Scales) -> Screened:
        screening = screen(request, scales.rules, scales.policy, self._examiner.identify)
        if screening.findings:
            screening = replace(screening, findings=self._timed(screening.findings))
        return Screened(request=rewritten(request, screening), screening=screening)

    def _timed(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """With how long the recordings play that leave a note; of the first ones, so that notes stay the same."""
        removed = [
            one
            for one in findings
            if one.decision.action is Action.REMOVE
            and one.medium.error is None
            and one.medium.modality in (Modality.AUDIO, Modality.VIDEO)
        ][:_MOST_TIMED]
        if not removed:
            return tuple(findings)
        seconds = dict(zip(map(id, removed), self._examiner.seconds([one.part for one in removed]), strict=True))
        return tuple(replace(one, seconds=seconds[id(one)]) if id(one) in seconds else one for one in findings)

    def _examined(
        self, screening: Screening, resolution: MediaResolution, scales: Scales, tenant: str
    ) -> list[Examined]:
        """Every medium of a request that is sent, with what the request itself asks of it."""
        known = [_asked_of(one, resolution, scales.rules) for one in screening.findings if one.is_sent]
        to_look_at = (part for part, one in known if one.error is None)
        looked_at = self._examiner.examine(to_look_at, self._recall(scales, tenant))
        return [one if one.error else replace(next(looked_at), asked=one.asked) for _, one in known]

    def _weighed(self, scales: Scales, examined: list[Examined], text: str | None, *, standing: bool = True) -> Report:
        _demand_answers(examined)
        confinement = self.confinement() if any(one.probed for one in examined) else None
        if text is not None:
            examined.append(prompt_text(text))
        return replace(scales.weigh(examined, standing=standing), confinement=confinement)

    def _recall(self, scales: Scales, tenant: str) -> Recall:
        """What is known of media that are not here."""
        return lambda _: None

    def examine(self, parts: Iterable[MediaPart]) -> Iterator[Examined]:
        """What each medium is, in order. Those that need the confined worker are probed side by side.

        Raises nothing of its own: whatever is wrong, with a medium or with the worker, comes back as its `error`.
        """
        return self._examiner.examine(parts)

    def made(self, part: MediaPart, work: Work, progress: Callable[[float], None] | None = None) -> tuple[bytes, Made]:
        """What a work makes of a medium, in the confined worker, and its facts.

        Raises:
            InputError: it cannot be read, or not be made into that.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        return self._examiner.made(part, work, progress)

    def scales(self, asked: Asked | None = None) -> Scales:
        """Rules, prices and limits for one endpoint, model and backend, to weigh many requests on.

        Raises:
            ConfigError: no such endpoint.
        """
        return self._scales(_told(asked or Asked()))


def _told(asked: Asked, **also: Any) -> Asked:
    """What scales depend on: the day, and nobody's name."""
    return replace(asked, on=asked.on or datetime.now(UTC).date(), tenant=DEFAULT_TENANT, session=None, **also)


def _asked_of(finding: Finding, resolution: MediaResolution, rules: ModelRules) -> tuple[MediaPart, Examined]:
    """A medium under the name of its place, a file under its own; and its controls or why it cannot be sent."""
    label = str(finding.place) if finding.hidden is None else f"{finding.place} (in its text)"
    if isinstance(finding.part.source, Path):
        label = finding.part.label
    part = replace(finding.part, label=label)
    known = Examined(label=label, declared_mime=part.declared_mime, error=finding.error)
    carrier = Carrier.USER if finding.decision.action is Action.RELOCATE else finding.carrier
    try:
        asked = controls_of(part, finding.place, carrier, finding.medium.placement, resolution, rules)
    except InputError as error:
        return part, replace(known, error=known.error or error)
    return part, replace(known, asked=asked)


def _demand_answers(examined: Iterable[Examined]) -> None:
    """Raises what is ours to answer for, not the medium's."""
    for one in examined:
        if isinstance(one.error, ServiceError):
            raise one.error


def _tier(request: Request) -> ServiceTier:
    """How fast the request itself wants its answer; one nobody knows is priced as the standard one."""
    words = str(request.carried.get("serviceTier", "")).lower().removeprefix("service_tier_")
    return ServiceTier(words) if words in {*ServiceTier} else ServiceTier.STANDARD


def _clip(words: Clip | str | None) -> Clip | None:
    if not isinstance(words, str):
        return words
    try:
        return parse_clip(words)
    except ValueError as error:
        raise InputError(str(error)) from None


def _backend(name: Backend | str | None) -> Backend | None:
    try:
        return None if name is None else Backend(name)
    except ValueError:
        raise ConfigError(f"unknown backend {name!r}; it is developer or vertex", backend=name) from None


def _each_part(parts: Parts) -> Iterator[MediaPart]:
    if isinstance(parts, bytes | bytearray | memoryview):
        raise TypeError("bytes need a name for the report: MediaPart(source=…, label=…)")
    return map(as_part, [parts] if isinstance(parts, str | Path | MediaPart) else parts)


def as_part(source: MediaPart | Path | str) -> MediaPart:
    """A path as a part: called by its file name, declared as its extension claims."""
    if isinstance(source, MediaPart):
        return source
    if not isinstance(source, str | Path):
        raise TypeError(f"a part is a path or a MediaPart, not {type(source).__name__}")
    path = Path(source)
    return MediaPart(source=path, label=path.name, declared_mime=mime.declared_from_name(path.name))


def prompt_text(text: str) -> Examined:
    """The text of a request, as one more thing to weigh."""
    facts = TextFacts(chars=len(text), non_ascii_chars=sum(not c.isascii() for c in text))
    size = len(text.encode("utf-8", "surrogatepass"))
    return Examined(label="prompt text", size_bytes=size, mime="text/plain", modality=Modality.TEXT, facts=facts)


def rule_book(settings: Settings) -> RuleBook:
    """The packaged rules, under the operator's overlay where there is one."""
    book = RuleBook.packaged()
    return book.with_overlay(settings.rules_overlay) if settings.rules_overlay else book
