"""Looks at media: what they are by their head, and what only a codec can tell, in the confined worker."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weighlock import mime
from weighlock.codecs import ProbeLimits, text_facts
from weighlock.codecs.source import OpenSource, open_source
from weighlock.encoded import Base64
from weighlock.errors import (
    MalformedMedia,
    ProberUnavailable,
    UnknownMediaType,
    UnsupportedMedia,
    WeighlockError,
)
from weighlock.maker import Maker
from weighlock.media.facts import Anomaly, AudioFacts, FactSource, ImageFacts, Probed, VideoFacts
from weighlock.media.work import Made, Work
from weighlock.mime import Flag
from weighlock.planning.identify import Identified, identify, identify_bytes
from weighlock.planning.weigh import Examined
from weighlock.request import MediaPart, Modality, Uri
from weighlock.settings import Confinement, Settings
from weighlock.uploads.policy import DEFAULT_TENANT

if TYPE_CHECKING:
    from weighlock.codecs import Prober

_REMEMBERED = 1024
"""Recordings whose length is kept."""
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


Recall = Callable[[MediaPart], Examined | None]


def _nothing(_: MediaPart) -> None:
    return None


class Examiner:
    """Thread-safe; starts the confined worker on first need. `preload` loads the prober's code at once."""

    def __init__(self, settings: Settings, *, preload: bool) -> None:
        self.settings = settings
        self._probers: list[Prober] = []
        """One, from the first need on."""
        self._probed = False
        self._held: dict[str, Any] | None = None
        self._seconds: dict[bytes, float | None] = {}
        self._maker = Maker(self._prober, settings.encoding)
        if preload:
            self._prober()

    def close(self) -> None:
        """Ends the worker, and forgets what it made. A later probe starts a new one."""
        for prober in self._probers[:1]:
            prober.close()
        self._maker.forget()

    def confinement(self) -> dict[str, Any] | None:
        """The limits that held while probing; `None` as long as nothing needed a codec."""
        if self._probed:
            with contextlib.suppress(ProberUnavailable):  # closed meanwhile: what held then is told
                self._held = self._prober().confinement().as_dict()
        return self._held

    def identify(self, part: MediaPart) -> Identified:
        """What a medium is, from its head alone. Never raises: what is wrong comes back as its `error`."""
        if isinstance(part.source, bytes | Base64 | Uri):
            return identify(part)
        try:
            with self._open(part) as source:
                return _identified(source, part)
        except WeighlockError as error:
            return Identified(declared_mime=part.declared_mime, error=error)

    def seconds(self, parts: Sequence[MediaPart]) -> list[float | None]:
        """How long recordings in memory play; `None` where nothing can tell.

        Remembered by content: a history comes again every turn.
        """
        keys = [_key(part) for part in parts]
        unknown = {key: part for key, part in zip(keys, parts, strict=True) if key and key not in self._seconds}
        for key, examined in zip(unknown, self.examine(unknown.values()), strict=True):
            facts = examined.facts
            self._seconds[key] = facts.duration_s if isinstance(facts, AudioFacts | VideoFacts) else None
        found = [self._seconds.get(key) for key in keys]
        for key in list(self._seconds)[: max(0, len(self._seconds) - _REMEMBERED)]:
            self._seconds.pop(key, None)
        return found

    def made(
        self,
        part: MediaPart,
        work: Work,
        progress: Callable[[float], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        *,
        size_bytes: int | None = None,
        owner: str = DEFAULT_TENANT,
    ) -> tuple[bytes, Made]:
        """What a work makes of a medium, and its facts. Remembered by tenant and content, as long as the worker lives.

        `size_bytes` is how large it was when the work was planned, `owner` the tenant it is of.

        Raises:
            InputError: it cannot be read, or not be made into that, or is no longer what it was.
            Cancelled: `cancelled` said so.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        from weighlock.codecs.program import Watch

        self._probed = True
        with self._open(part) as source:
            if size_bytes not in (None, source.size_bytes):
                raise MalformedMedia(
                    f"it changed since it was weighed: {size_bytes:,} bytes, now {source.size_bytes:,}"
                )
            found = _identified(source, part).mime or ""
            return self._maker.make(source, found, work, Watch(progress=progress, cancelled=cancelled), owner=owner)

    def examine(self, parts: Iterable[MediaPart], recall: Recall = _nothing) -> Iterator[Examined]:
        """What each medium is, in order. Those that need the confined worker are probed side by side.

        `recall` knows what is not here to be looked at.

        Raises nothing of its own: whatever is wrong, with a medium or with the worker, comes back as its `error`.
        """
        workers = self.settings.safety.workers
        waiting: deque[Examined | Future[Examined]] = deque()
        pool: ThreadPoolExecutor | None = None
        try:
            for part in parts:
                recalled = recall(part)
                known, unseen = (recalled, None) if recalled is not None else self._look(part)
                if unseen is None:
                    waiting.append(known)
                else:
                    pool = pool or ThreadPoolExecutor(workers, thread_name_prefix="weighlock-probe")
                    waiting.append(pool.submit(self._probe, part, known, unseen))
                while waiting and (len(waiting) > workers * _AHEAD or not _pending(waiting[0])):
                    yield _answer(waiting.popleft())
            while waiting:
                yield _answer(waiting.popleft())
        except (KeyboardInterrupt, SystemExit):
            self.close()  # else the shutdown below would wait for what is being probed
            raise
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)

    def _look(self, part: MediaPart) -> tuple[Examined, Modality | None]:
        """What the head of a file tells, and as what it still has to be probed; `None` where that is all."""
        known = Examined(label=part.label, declared_mime=part.declared_mime, clip=part.clip)
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


def _identified(source: OpenSource, part: MediaPart) -> Identified:
    window = mime.Window(head=source.head, size=source.size_bytes, read_at=source.read_at)
    return identify_bytes(window, part, lambda: source.read_at(0, source.size_bytes))


def _key(part: MediaPart) -> bytes:
    """What a recording in memory is known by; nothing for any other."""
    match part.source:
        case bytes() as data:
            return hashlib.sha256(data).digest()
        case Base64(text=text):
            return hashlib.sha256(text.encode()).digest()
        case _:
            return b""


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
