"""The order of steps in front of a model request. So far its offline half: identify → probe → check → admit.

Nothing here decides or measures: each step asks the room that does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from weighlock import mime
from weighlock.codecs import ProbeLimits, text_facts
from weighlock.codecs.source import OpenSource, open_source
from weighlock.errors import UnknownMediaType, UnsupportedMedia, WeighlockError
from weighlock.media.facts import Anomaly, AudioFacts, FactSource, ImageFacts, Probed, TextFacts, VideoFacts
from weighlock.mime import Flag
from weighlock.planning.admit import Verdict, admit
from weighlock.planning.cost import Prices, Unpriced
from weighlock.planning.knobs import advise, heaviest
from weighlock.planning.weigh import Examined, Weighed, by_modality, cost_of, weigh
from weighlock.pricing import prices_for, upcoming_change
from weighlock.report import Report, Scale
from weighlock.request import Backend, MediaPart, MediaResolution, Modality
from weighlock.rules import Controls, RuleBook
from weighlock.settings import (
    Confinement,
    OnMimeMismatch,
    OnUnknownModel,
    OnUnknownPrice,
    Settings,
    load,
)

_AHEAD = 4
"""Files looked at ahead of the one whose probe is awaited, per worker."""


if TYPE_CHECKING:
    from weighlock.codecs import Prober

_ODD = {
    Flag.TRUNCATED: "the header promises more bytes than there are",
    Flag.TRAILING_BYTES: "bytes follow the end of the image",
    Flag.POLYGLOT: "another format's reader would accept these bytes too",
    Flag.CONTRADICTION: "the outside says one format, the inside another",
    Flag.HEADER_ONLY_GUESS: "only a magic number speaks for this type; what should confirm it is missing",
}
"""What the sniffer noticed that a person should know."""


class Asked(TypedDict, total=False):
    """What a caller may say about a request; what is left out comes from the endpoint."""

    endpoint: str | None
    model: str | None
    backend: Backend | None
    controls: Controls | None
    output_tokens: int | None
    """The expected answer, added to the cost."""
    on: date | None
    """The day whose rules and prices apply; today (UTC) when left out."""


class Preflight:
    """Weighs media offline. Thread-safe; starts the confined worker on first need; close it, or use it in a `with`."""

    def __init__(self, settings: Settings, *, rules: RuleBook | None = None) -> None:
        self.settings = settings
        self.rules = rules or rule_book(settings)
        self._prober: Prober | None = None
        self._prober_lock = Lock()

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
        """Ends the worker. A later probe starts a new one."""
        with self._prober_lock:
            prober, self._prober = self._prober, None
        if prober is not None:
            prober.close()

    def confinement(self) -> dict[str, Any] | None:
        """The limits that held while probing; `None` as long as nothing needed a codec."""
        return self._prober.confinement().as_dict() if self._prober else None

    def check(self, parts: Iterable[MediaPart | Path | str], **asked: Unpack[Asked]) -> Report:
        """What the media are and would cost as one request, and whether the endpoint admits it. No key, no network.

        A medium that cannot be weighed is in the report with its error; it raises nothing.

        Raises:
            ConfigError: no such endpoint.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        return self.scales(**asked).weigh(self.examine(map(as_part, parts)))

    def scales(self, **asked: Unpack[Asked]) -> Scales:
        """Rules, prices and limits for one endpoint, model and backend, to weigh many requests on.

        Raises:
            ConfigError: no such endpoint.
        """
        return Scales(self.settings, self.rules, asked)

    def examine(self, parts: Iterable[MediaPart]) -> Iterator[Examined]:
        """What each medium is, in order. Those that need the confined worker are probed side by side."""
        workers = self.settings.safety.workers
        waiting: deque[Examined | Future[Examined]] = deque()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="weighlock-probe")
        try:
            for part in parts:
                waiting.append(self._look(part) or pool.submit(self._probe, part))
                while waiting and (len(waiting) > workers * _AHEAD or not _pending(waiting[0])):
                    yield _answer(waiting.popleft())
            while waiting:
                yield _answer(waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)

    def _look(self, part: MediaPart) -> Examined | None:
        """The answer where the head of the file tells all; `None` where only the confined worker can."""
        return self._examined(part, probing=False)

    def _probe(self, part: MediaPart) -> Examined:
        examined = self._examined(part, probing=True)
        return examined or Examined(label=part.label, error=UnsupportedMedia("could not be measured"))

    def _examined(self, part: MediaPart, *, probing: bool) -> Examined | None:
        known = Examined(label=part.label, declared_mime=part.declared_mime)
        try:
            with open_source(part, max_bytes=self.settings.safety.max_file_bytes) as source:
                window = mime.Window(head=source.head, size=source.size_bytes, read_at=source.read_at)
                sniffed = mime.sniff(window)
                known = replace(
                    known,
                    size_bytes=source.size_bytes,
                    mime=mime.refine_text(sniffed.mime, part.label),
                    modality=sniffed.modality,
                    anomalies=tuple(Anomaly(code=flag, detail=_ODD[flag]) for flag in sniffed.flags if flag in _ODD),
                )
                probed = self._measure(source, window, known, probing=probing)
                return _with_facts(known, probed) if probed else None
        except WeighlockError as error:
            return replace(known, error=error)

    def _measure(self, source: OpenSource, window: mime.Window, known: Examined, *, probing: bool) -> Probed | None:
        found, modality = known.mime or "", known.modality
        if modality is None:
            raise _no_medium(found)
        if modality is Modality.TEXT:
            return Probed(facts=text_facts(source.descriptor(), size_bytes=source.size_bytes))
        if modality is Modality.IMAGE and (size := mime.image_size(window, found)):
            return Probed(facts=_image_facts(size))
        if not probing:
            return None
        return self._started().probe(source.descriptor(), size_bytes=source.size_bytes, mime=found, modality=modality)

    def _started(self) -> Prober:
        """The prober, whose code is loaded only when a header does not tell all."""
        with self._prober_lock:
            if self._prober is None:
                from weighlock.codecs import Prober

                self._prober = Prober(probe_limits(self.settings))
            return self._prober


class Scales:
    """What stays the same while many requests are weighed: endpoint, model, backend, rules, prices, limits."""

    def __init__(self, settings: Settings, rules: RuleBook, asked: Asked) -> None:
        day = asked.get("on") or datetime.now(UTC).date()
        self.endpoint = settings.endpoint(asked.get("endpoint"))
        account = self.endpoint.account
        self.model = asked.get("model") or self.endpoint.model
        self.backend = asked.get("backend") or account.backend
        self.controls = asked.get("controls") or Controls()
        output_tokens = asked.get("output_tokens")
        self.output_tokens = self.endpoint.output_tokens.expected if output_tokens is None else output_tokens
        self.rules = rules.for_model(self.model, self.backend, day)
        self.prices = prices_for(
            self.model,
            self.backend,
            on=day,
            location=account.location if self.backend is account.backend else None,
            pricing=settings.pricing,
        )
        self.change = upcoming_change(self.model, self.backend, on=day, pricing=settings.pricing)

    def weigh(self, examined: Iterable[Examined]) -> Report:
        """The receipt of one request made of these media."""
        refuse = self.endpoint.mime_mismatch is OnMimeMismatch.REJECT
        parts = [weigh(one, self._controls(one), self.rules, refuse_mislabelled=refuse) for one in examined]
        verdict = self.judge(parts)
        tokens = by_modality(parts)
        return Report(
            scale=self.scale,
            parts=tuple(parts),
            costs=tuple(cost_of(by_modality([part]), self.prices) if part.tokens else None for part in parts),
            tokens=tokens,
            cost=cost_of(tokens, self.prices, output_tokens=self.output_tokens),
            verdict=verdict,
            advice=advise(parts, self.rules, self.judge) if verdict.over else None,
            explanation=heaviest(parts, verdict.over[0], self.rules) if verdict.over else None,
        )

    def judge(self, parts: Sequence[Weighed]) -> Verdict:
        """What the endpoint's per-request limits say to these parts."""
        cost = cost_of(by_modality(parts), self.prices, output_tokens=self.output_tokens)
        return admit(parts, self.endpoint.limits, cost, reasons=tuple(self._policy_reasons()))

    @property
    def scale(self) -> Scale:
        """What the figures rest on, for the reader of a report."""
        priced = isinstance(self.prices, Prices)
        return Scale(
            model=self.model,
            resolved_model=self.rules.model,
            known_model=self.rules.known,
            backend=self.backend,
            endpoint=self.endpoint.name,
            owner=self.endpoint.owner,
            rule_date=self.rules.rule_date,
            price_source=self.prices.source if isinstance(self.prices, Prices) else None,
            price_notes=self.prices.notes if isinstance(self.prices, Prices) else (),
            unpriced_reason=None if priced else getattr(self.prices, "reason", None),
            price_change=self.change.message if self.change else None,
            output_tokens=self.output_tokens,
        )

    def _controls(self, examined: Examined) -> Controls:
        """The caller's controls, and where they are silent the endpoint's settings for the modality."""
        asked = self.controls
        standing = self.endpoint.media.get(examined.modality) if examined.modality else None
        if standing is None:
            return asked
        start_s, end_s = asked.start_offset_s, asked.end_offset_s
        if standing.clip and start_s is None and end_s is None and isinstance(examined.facts, VideoFacts):
            start_s, end_s = standing.clip.span(examined.facts.duration_s)
        silent = asked.media_resolution is MediaResolution.UNSPECIFIED
        return replace(
            asked,
            part_resolution=asked.part_resolution or (standing.resolution if silent else None),
            fps=asked.fps or standing.fps,
            start_offset_s=start_s,
            end_offset_s=end_s,
        )

    def _policy_reasons(self) -> Iterator[str]:
        endpoint = self.endpoint
        if not endpoint.allows(self.model):
            yield f"model {self.model} is not in its list (models: {', '.join(endpoint.models or ())})"
        if not self.rules.known and endpoint.on_unknown_model is OnUnknownModel.REJECT:
            yield f"no rules for model {self.model} (on_unknown_model: reject)"
        if (
            isinstance(self.prices, Unpriced)
            and endpoint.limits.cost_usd is not None
            and endpoint.on_unknown_price is OnUnknownPrice.REJECT
        ):
            yield f"{self.prices.reason}, and a USD limit applies (set pricing.overrides, or on_unknown_price: ignore)"


def check(parts: Iterable[MediaPart | Path | str], *, config: Path | None = None, **asked: Unpack[Asked]) -> Report:
    """Weighs media as one request, with the settings the command line would use. See `Preflight.check`."""
    with Preflight.from_config(config) as preflight:
        return preflight.check(parts, **asked)


def as_part(source: MediaPart | Path | str) -> MediaPart:
    """A path as a part: called by its file name, declared as its extension claims."""
    if isinstance(source, MediaPart):
        return source
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


def probe_limits(settings: Settings) -> ProbeLimits:
    """`safety:` of the settings, as the prober takes it."""
    safety = settings.safety
    return ProbeLimits(
        workers=safety.workers,
        max_pixels=safety.max_pixels,
        max_duration_s=safety.max_duration_s,
        max_pages=safety.max_pages,
        max_frames=safety.max_frames,
        required=safety.confinement is Confinement.REQUIRED,
    )


def _image_facts(size: mime.ImageSize) -> ImageFacts:
    # Pixels are not bounded here: nothing is decoded, and a panorama costs what any image of its shape costs.
    width_px, height_px = size.displayed_px
    return ImageFacts(
        width_px=width_px,
        height_px=height_px,
        orientation=size.orientation,
        frames=size.frames if size.animated else 1 if size.animated is False else None,
        size_source=FactSource.HEADER,
    )


def _with_facts(known: Examined, probed: Probed) -> Examined:
    """Facts overrule the container's label: sound alone is audio, whatever the brand says."""
    found, modality = known.mime, known.modality
    if isinstance(probed.facts, AudioFacts) and modality is Modality.VIDEO:
        modality, found = Modality.AUDIO, found and found.replace("video/", "audio/", 1)
    elif isinstance(probed.facts, VideoFacts) and modality is Modality.AUDIO:
        modality, found = Modality.VIDEO, found and found.replace("audio/", "video/", 1)
    return replace(
        known, mime=found, modality=modality, facts=probed.facts, anomalies=(*known.anomalies, *probed.anomalies)
    )


def _no_medium(found: str) -> WeighlockError:
    if found in ("", "application/octet-stream"):
        return UnknownMediaType("no known media type in its bytes; Gemini takes images, video, audio, PDF and text")
    return UnsupportedMedia(f"{found} is no medium Gemini takes; send text, or a PDF of it", mime=found)


def _pending(one: Examined | Future[Examined]) -> bool:
    return isinstance(one, Future) and not one.done()


def _answer(one: Examined | Future[Examined]) -> Examined:
    return one.result() if isinstance(one, Future) else one
