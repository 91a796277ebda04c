"""The order of steps in front of a model request. So far its offline half: identify → probe → check → admit.

Nothing here decides or measures: each step asks the room that does.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from weighlock import mime
from weighlock.codecs import ProbeLimits, text_facts
from weighlock.codecs.source import OpenSource, open_source
from weighlock.errors import (
    ConfigError,
    InputError,
    MalformedMedia,
    ProberUnavailable,
    ServiceError,
    UnknownMediaType,
    UnsupportedMedia,
    WeighlockError,
)
from weighlock.media.facts import Anomaly, AudioFacts, FactSource, ImageFacts, Probed, TextFacts, VideoFacts
from weighlock.mime import Flag
from weighlock.planning.weigh import Examined
from weighlock.pricing import load_price_list
from weighlock.report import Report
from weighlock.request import Backend, MediaPart, Modality
from weighlock.rules import Controls, RuleBook
from weighlock.scales import Asked, Scales
from weighlock.settings import Clip, Confinement, Settings, load
from weighlock.settings.amounts import parse_clip

if TYPE_CHECKING:
    from weighlock.codecs import Prober

Parts = Iterable[MediaPart | Path | str] | MediaPart | Path | str
_AHEAD = 4
"""Files looked at ahead of the one whose probe is awaited, per worker."""
_ODD = {
    Flag.TRUNCATED: "it ends before its end: cut off, as by an interrupted upload",
    Flag.TRAILING_BYTES: "bytes follow the end of the image",
    Flag.POLYGLOT: "another format's reader would accept these bytes too",
    Flag.CONTRADICTION: "the outside says one format, the inside another",
    Flag.HEADER_ONLY_GUESS: "only a magic number speaks for this type; what should confirm it is missing",
}
"""What the sniffer noticed that a person should know."""
_TRUNCATED = Anomaly(code=Flag.TRUNCATED, detail=_ODD[Flag.TRUNCATED])


class Preflight:
    """Weighs media offline. Thread-safe; starts the confined worker on first need; close it, or use it in a `with`.

    `preload=False` puts off loading the prober's code and the price lists until they are needed. It suits a command
    that may need neither; in a threaded program a fork in the middle of such an import would hang the child.
    """

    def __init__(self, settings: Settings, *, rules: RuleBook | None = None, preload: bool = True) -> None:
        self.settings = settings
        self.rules = rules or rule_book(settings)
        self._probers: list[Prober] = []
        """One, from the first need on."""
        self._probed = False
        self._held: dict[str, Any] | None = None
        if preload:
            load_price_list()
            self._prober()

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
        for prober in self._probers[:1]:
            prober.close()

    def confinement(self) -> dict[str, Any] | None:
        """The limits that held while probing; `None` as long as nothing needed a codec."""
        if self._probed:
            with contextlib.suppress(ProberUnavailable):  # closed meanwhile: what held then is told
                self._held = self._prober().confinement().as_dict()
        return self._held

    def check(
        self,
        parts: Parts,
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
            parts: Paths, or `MediaPart`s for bytes and labels of your own.
            text: The prompt that goes with them.
            endpoint: Whose limits apply; the `default` section when left out.
            model: The endpoint's when left out.
            backend: `developer` or `vertex`; the endpoint's account's when left out.
            controls: Resolution, frame rate, offsets, placement, carrier; the endpoint's settings when left out.
            clip: Of video and audio: `last 60s`, `first 2m`, `30-90`; the endpoint's when left out.
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
        scales = self.scales(asked)
        examined = list(self.examine(_each_part(parts)))
        for one in examined:
            if isinstance(one.error, ServiceError):  # ours to answer for, not the medium's
                raise one.error
        confinement = self.confinement() if any(one.probed for one in examined) else None
        if text is not None:
            examined.append(prompt_text(text))
        return replace(scales.weigh(examined), confinement=confinement)

    def scales(self, asked: Asked | None = None) -> Scales:
        """Rules, prices and limits for one endpoint, model and backend, to weigh many requests on.

        Raises:
            ConfigError: no such endpoint.
        """
        return Scales(self.settings, self.rules, asked or Asked())

    def examine(self, parts: Iterable[MediaPart]) -> Iterator[Examined]:
        """What each medium is, in order. Those that need the confined worker are probed side by side.

        Raises nothing of its own: whatever is wrong, with a medium or with the worker, comes back as its `error`.
        """
        workers = self.settings.safety.workers
        waiting: deque[Examined | Future[Examined]] = deque()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="weighlock-probe")
        try:
            for part in parts:
                known, unseen = self._look(part)
                waiting.append(known if unseen is None else pool.submit(self._probe, part, known, unseen))
                while waiting and (len(waiting) > workers * _AHEAD or not _pending(waiting[0])):
                    yield _answer(waiting.popleft())
            while waiting:
                yield _answer(waiting.popleft())
        except KeyboardInterrupt:
            self.close()  # else the shutdown below would wait for what is being probed
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _look(self, part: MediaPart) -> tuple[Examined, Modality | None]:
        """What the head of a file tells, and as what it still has to be probed; `None` where that is all."""
        known = Examined(label=part.label, declared_mime=part.declared_mime)
        try:
            with self._open(part) as source:
                window = mime.Window(head=source.head, size=source.size_bytes, read_at=source.read_at)
                sniffed = mime.sniff(window)
                known = replace(
                    known,
                    size_bytes=source.size_bytes,
                    mime=mime.refine_text(sniffed.mime, part.label),
                    modality=sniffed.modality,
                    anomalies=tuple(Anomaly(code=flag, detail=_ODD[flag]) for flag in sniffed.flags if flag in _ODD),
                )
                told = _told_by_header(source, window, known)
        except WeighlockError as error:
            return replace(known, error=error), None
        return (_with_facts(known, told), None) if told else (known, known.modality)

    def _probe(self, part: MediaPart, known: Examined, modality: Modality) -> Examined:
        """What only the confined worker can tell."""
        self._probed = True
        known = replace(known, probed=True)
        try:
            with self._open(part) as source:
                if source.size_bytes != known.size_bytes:
                    raise MalformedMedia("it changed while it was being weighed")
                fd, found = source.descriptor(), known.mime or ""
                probed = self._prober().probe(fd, size_bytes=source.size_bytes, mime=found, modality=modality)
        except WeighlockError as error:
            return replace(known, error=error)
        return _with_facts(known, probed)

    def _open(self, part: MediaPart) -> OpenSource:
        return open_source(part, max_bytes=self.settings.safety.max_file_bytes)

    def _prober(self) -> Prober:
        # No lock: one held by another thread during a fork would hang the child. Whoever appends first wins, and a
        # prober that was never asked anything has nothing to close.
        if not self._probers:
            from weighlock.codecs import Prober

            self._probers.append(Prober(probe_limits(self.settings)))
        return self._probers[0]


def check(
    parts: Parts,
    *,
    text: str | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    backend: Backend | str | None = None,
    controls: Controls | None = None,
    clip: Clip | str | None = None,
    output_tokens: int | None = None,
    on: date | None = None,
    config: Path | None = None,
) -> Report:
    """Weighs media as one request, with the settings the command line would use. See `Preflight.check`."""
    with Preflight.from_config(config) as preflight:
        return preflight.check(
            parts,
            text=text,
            endpoint=endpoint,
            model=model,
            backend=backend,
            controls=controls,
            clip=clip,
            output_tokens=output_tokens,
            on=on,
        )


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


def _told_by_header(source: OpenSource, window: mime.Window, known: Examined) -> Probed | None:
    """Facts that need no codec; `None` where the worker has to look.

    Raises:
        InputError: it is no medium at all.
    """
    found, modality = known.mime or "", known.modality
    if modality is None:
        raise _no_medium(found)
    if modality is Modality.TEXT:
        return Probed(facts=text_facts(source.descriptor(), size_bytes=source.size_bytes))
    if modality is Modality.IMAGE and (size := mime.image_size(window, found)):
        cut = (_TRUNCATED,) if mime.ends_early(window, found) and _TRUNCATED not in known.anomalies else ()
        return Probed(facts=_image_facts(size), anomalies=cut)
    return None


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
