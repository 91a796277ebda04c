"""Sound and moving pictures: opens them, reads their streams, and builds the facts.

The only file that opens media with `av`; runs in the confined child (`warm_up` in the worker before it forks).
How long a file lasts is weighed in `durations.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import pkgutil
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import av
import av.container
import av.error
import av.logging

from weighlock.codecs import kinds, mp4
from weighlock.codecs.durations import Durations, doubt_clock, frame_rate
from weighlock.codecs.movie import Movie
from weighlock.codecs.streams import Evidence
from weighlock.codecs.tally import Tally, codec_name
from weighlock.codecs.window import Window
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.facts import Anomaly, AudioFacts, FactSource, Probed, VideoFacts
from weighlock.modality import Modality

if TYPE_CHECKING:
    from weighlock.codecs.job import Bounds

_MAX_STREAMS = 16
_MAX_OPEN_PIXELS = 40_000_000
"""FFmpeg decodes a first picture when it opens a file. 8K is 33 million pixels."""
_NEVER_NEEDED = {"av.__main__", "av.datasets"}
"""The second fetches samples from the network, and loads what that takes."""
READ_ERRORS = (  # what PyAV lets out besides its own
    av.error.FFmpegError,
    ValueError,
    OSError,
    EOFError,
    IndexError,
    RuntimeError,
    SystemError,
    UnicodeError,
)


def warm_up() -> None:
    """Import what PyAV imports on first use, keep FFmpeg to one thread, silence it: its log callback takes locks."""
    for module in pkgutil.walk_packages(av.__path__, "av."):
        if module.name not in _NEVER_NEEDED:
            import_module(module.name)
    # PyAV lets nobody say how many threads its own graphs for sound start: one for each core that FFmpeg counts.
    with contextlib.suppress(AttributeError):  # a system whose loader does not look into what a library was linked with
        ctypes.CDLL(av._core.__file__).av_cpu_force_count(1)
    av.logging.set_level(None)


def versions() -> dict[str, str]:
    libraries = {name: ".".join(map(str, numbers)) for name, numbers in av.library_versions.items()}
    return {"av": av.__version__, "ffmpeg": str(getattr(av, "ffmpeg_version_info", "unknown")), **libraries}


def probe(view: mmap.mmap, *, mime: str, modality: Modality, bounds: Bounds) -> Probed:
    """Facts about an audio or video file; what its streams are decides which, not what it was taken for.

    Cover art is not video. Raises what `Prober.probe` says.
    """
    demuxers = kinds.demuxers(mime)
    movie = mp4.read_movie(view) if demuxers == kinds.MOV else None
    if movie is not None and len(movie.tracks) > _MAX_STREAMS:
        raise UnsupportedMedia(
            f"{len(movie.tracks):,} tracks; at most {_MAX_STREAMS} are probed", tracks=len(movie.tracks)
        )
    with open_medium(Window(view), demuxers, edit_lists=False) as container:
        return _Reading(container, view, movie, modality, bounds).facts()


def open_medium(
    window: Window, demuxers: str, *, edit_lists: bool, buffer_bytes: int = 32768
) -> av.container.InputContainer:
    """An open container that reads nothing but `window`. With `edit_lists` its tables must have been looked at before.

    Raises:
        UnsupportedMedia: another format than `demuxers`, or past a bound of the decoder.
        MalformedMedia: FFmpeg cannot open it.
    """
    try:
        return av.open(
            window, mode="r", metadata_errors="replace", buffer_size=buffer_bytes, io_open=_deny,
            options={
                "protocol_whitelist": "none", "format_whitelist": demuxers, "max_streams": str(_MAX_STREAMS),
                "max_pixels": str(_MAX_OPEN_PIXELS), "advanced_editlist": str(int(edit_lists)),
                "probesize": "5000000", "analyzeduration": "5000000",
            },
        )  # fmt: skip
    except av.error.ArgumentError as error:
        raise UnsupportedMedia(
            "its bytes are another format than its signature says, or past a bound of the decoder"
        ) from error
    except MemoryError:
        raise
    except READ_ERRORS as error:
        raise MalformedMedia(f"FFmpeg cannot open it: {words(error)}", cause=type(error).__name__) from error


def _deny(*_: object, **__: object) -> NoReturn:
    raise PermissionError("a medium may not open other files")


def refuse_no_memory(error: BaseException) -> None:
    """Raises `MemoryError` where that is what FFmpeg met: it is no damage of the medium, and nothing to pass over."""
    if getattr(error, "errno", None) == errno.ENOMEM:
        raise MemoryError from error


def words(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)[:120]


class _Reading:
    """One open container and what is known about it from elsewhere."""

    def __init__(
        self,
        container: av.container.InputContainer,
        view: mmap.mmap,
        movie: Movie | None,
        modality: Modality,
        bounds: Bounds,
    ) -> None:
        self.container = container
        self.movie = movie
        self.modality = modality
        self.bounds = bounds
        streams = [stream for stream in container.streams if is_played(stream)]
        self.pictures = [stream for stream in streams if stream.type == "video"]
        self.sounds = [stream for stream in streams if stream.type == "audio"]
        self.durations = Durations(
            container, pictures=self.pictures, sounds=self.sounds, view=view, movie=movie,
            walk=partial(_walk, container, cpu_s=bounds.scan_cpu_s),
        )  # fmt: skip

    def facts(self) -> Probed:
        if not self.pictures and not self.sounds:
            raise MalformedMedia("it holds neither sound nor moving pictures that can be read")
        evidence, source = self.durations.of_streams()
        facts = self._video(evidence, source) if self.pictures else self._audio(evidence, source)
        anomalies = [*self.durations.anomalies]
        if self.modality is Modality.AUDIO and self.pictures:
            anomalies.append(Anomaly(code="has_pictures", detail="taken for sound, but it also holds moving pictures"))
        if facts.duration_s > self.bounds.max_duration_s:
            raise MediaTooLarge(
                f"{facts.duration_s:,.1f} s; at most {self.bounds.max_duration_s:,.0f} s (safety.max.duration_s)",
                duration_s=facts.duration_s, max_duration_s=self.bounds.max_duration_s,
            )  # fmt: skip
        return Probed(facts=facts, anomalies=tuple(anomalies))

    def _audio(self, evidence: dict[int, Evidence], source: FactSource) -> AudioFacts:
        main = max(self.sounds, key=lambda stream: evidence[stream.index].span_s)
        shown, high = self.durations.of_file(evidence)
        context = main.codec_context
        return AudioFacts(
            duration_s=round(shown, 6), duration_high_s=round(max(high, shown), 6), duration_source=source,
            container=self.container.format.name.split(",")[0], codec=codec_name(main),
            sample_rate_hz=_positive(getattr(context, "sample_rate", None)),
            channels=_positive(getattr(context, "channels", None)), tracks=len(self.sounds),
        )  # fmt: skip

    def _video(self, evidence: dict[int, Evidence], source: FactSource) -> VideoFacts:
        main = max(self.pictures, key=area)
        seen = evidence[main.index]
        rotation = self._rotation(main)
        width, height = _displayed(main, rotation)
        if width * height > self.bounds.max_pixels:
            raise MediaTooLarge(f"{width}×{height} pixels; at most {self.bounds.max_pixels:,} (safety.max.pixels)")
        if seen.packets is not None and seen.packets > self.bounds.max_frames:
            raise MediaTooLarge(
                f"{seen.packets:,} frames; at most {self.bounds.max_frames:,} (safety.max.frames)", frames=seen.packets
            )
        fps = frame_rate(main, seen)
        doubt_clock(seen, fps)
        shown, high = self.durations.of_file(evidence)
        sound = max((evidence[s.index] for s in self.sounds), key=lambda e: e.span_s, default=None)
        return VideoFacts(
            width_px=width, height_px=height, rotation_deg=rotation,
            duration_s=round(shown, 6), duration_high_s=round(max(high, shown), 6), duration_source=source,
            frames=seen.packets, average_fps=fps, variable_frame_rate=None if seen.steady is None else not seen.steady,
            container=self.container.format.name.split(",")[0], codec=codec_name(main),
            audio_tracks=len(self.sounds),
            audio_duration_s=round(sound.span_s, 6) if sound else None,
            audio_duration_high_s=round(sound.high_s, 6) if sound else None,
            audio_codec=codec_name(self.sounds[0]) if self.sounds else None,
        )  # fmt: skip

    def _rotation(self, stream: Any) -> int:
        track = self.movie.track(stream.id) if self.movie else None
        return track.rotation_deg if track else 0


def _walk(
    container: av.container.InputContainer, streams: list[Any], *, skip: Sequence[Any], cpu_s: float
) -> tuple[dict[Any, Tally], str | None]:
    """As `durations.Walk` says, within `cpu_s` seconds of CPU time."""
    for stream in skip:
        if hasattr(stream, "discard"):  # FFmpeg then skips over their samples instead of reading them
            stream.discard = av.stream.Discard.all
    tallies = {stream.index: Tally(stream) for stream in streams}
    give_up, walked, damage = time.process_time() + cpu_s, 0, None
    try:
        for packet in container.demux(streams):
            if packet.size:
                tallies[packet.stream_index].add(packet)
            walked += 1
            if walked % 4096 == 0 and time.process_time() > give_up:
                raise MediaTooLarge(
                    f"its header says too little, and its packets take over {cpu_s:g} s of CPU",
                    limit="cpu", packets=walked,
                )  # fmt: skip
    except (InputError, MemoryError):
        raise
    except READ_ERRORS as error:
        damage = f"its packets end with an error after {walked:,}: {words(error)}"
    return {stream: tallies[stream.index] for stream in streams}, damage


def is_played(stream: Any) -> bool:
    return stream.type in ("video", "audio") and not stream.disposition & av.stream.Disposition.attached_pic


def _positive(value: int | None) -> int | None:
    return value if value and value > 0 else None


def area(stream: Any) -> int:
    context = stream.codec_context
    return context.width * context.height if context is not None else 0


def _displayed(stream: Any, rotation: int) -> tuple[int, int]:
    """(width, height) as shown: pixels made square, then turned."""
    context = stream.codec_context
    if context is None or context.width < 1 or context.height < 1:
        raise MalformedMedia("its pictures have no readable size")
    ratio = stream.sample_aspect_ratio
    width = round(context.width * ratio) if ratio and 1 / 16 <= ratio <= 16 else context.width
    return (context.height, width) if rotation in (90, 270) else (width, context.height)
