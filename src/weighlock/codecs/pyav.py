"""Sound and moving pictures.

The only file that imports `av`; runs in the confined child (`warm_up` in the worker before it forks).
"""

from __future__ import annotations

import mmap
import pkgutil
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import av
import av.container
import av.error
import av.logging

from weighlock.codecs import ebml, kinds, mp4, walkers
from weighlock.codecs.movie import Movie, Track
from weighlock.codecs.streams import Evidence, mismatch, refuse_too_dense, steady
from weighlock.codecs.tally import Tally, claim_pace, frame_s, trust_content, trust_frames
from weighlock.codecs.wave import check_packed, wave
from weighlock.codecs.window import Window
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.facts import Anomaly, AudioFacts, FactSource, Probed, VideoFacts
from weighlock.request import Modality

if TYPE_CHECKING:
    from weighlock.codecs.job import Bounds

_MAX_STREAMS = 16
_MAX_OPEN_PIXELS = 40_000_000
"""FFmpeg decodes a first picture when it opens a file. 8K is 33 million pixels."""
_FASTEST_FPS = 1000.0
"""Above this a frame rate is a false clock, not a camera."""
_PLAIN_FPS = 24.0
_GUESSED_DURATION = {"mp3", "aac", "ac3", "eac3", "amr", "mpeg", "mpegvideo", "mpegts", "wav", "w64"}
_READ_ERRORS = (  # what PyAV lets out besides its own
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
    """Import what PyAV imports on first use, and silence FFmpeg: its log callback takes locks."""
    for module in pkgutil.walk_packages(av.__path__, "av."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
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
    with _open(view, demuxers) as container:
        return _Reading(container, view, movie, modality, bounds).facts()


def _open(view: mmap.mmap, demuxers: str) -> av.container.InputContainer:
    try:
        return av.open(
            Window(view), mode="r", metadata_errors="replace", buffer_size=32768, io_open=_deny,
            options={
                "protocol_whitelist": "none", "format_whitelist": demuxers, "max_streams": str(_MAX_STREAMS),
                "max_pixels": str(_MAX_OPEN_PIXELS), "advanced_editlist": "0",
                "probesize": "5000000", "analyzeduration": "5000000",
            },
        )  # fmt: skip
    except av.error.ArgumentError as error:
        raise UnsupportedMedia(
            "its bytes are another format than its signature says, or past a bound of the decoder"
        ) from error
    except MemoryError:
        raise
    except _READ_ERRORS as error:
        raise MalformedMedia(f"FFmpeg cannot open it: {_words(error)}", cause=type(error).__name__) from error


def _deny(*_: object, **__: object) -> NoReturn:
    raise PermissionError("a medium may not open other files")


def _words(error: BaseException) -> str:
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
        self.view = view
        self.movie = movie
        self.modality = modality
        self.bounds = bounds
        self.anomalies: list[Anomaly] = []
        streams = [stream for stream in container.streams if _is_played(stream)]
        self.pictures = [stream for stream in streams if stream.type == "video"]
        self.sounds = [stream for stream in streams if stream.type == "audio"]

    def facts(self) -> Probed:
        if not self.pictures and not self.sounds:
            raise MalformedMedia("it holds neither sound nor moving pictures that can be read")
        evidence, source = self._evidence()
        facts = self._video(evidence, source) if self.pictures else self._audio(evidence, source)
        if self.modality is Modality.AUDIO and self.pictures:
            self.anomalies.append(
                Anomaly(code="has_pictures", detail="taken for sound, but it also holds moving pictures")
            )
        if facts.duration_s > self.bounds.max_duration_s:
            raise MediaTooLarge(
                f"{facts.duration_s:,.1f} s; at most {self.bounds.max_duration_s:,.0f} s (safety.max.duration_s)",
                duration_s=facts.duration_s, max_duration_s=self.bounds.max_duration_s,
            )  # fmt: skip
        return Probed(facts=facts, anomalies=tuple(self.anomalies))

    # -- time ---------------------------------------------------------------------------------------------------------

    def _evidence(self) -> tuple[dict[int, Evidence], FactSource]:
        """Times of every played stream by its index, and where they come from."""
        name = self.container.format.name
        if self.movie is not None:
            return self._from_movie(self.movie)
        if "matroska" in name:
            skeleton = ebml.read_skeleton(self.view)
            found = self._from_matroska(skeleton) if skeleton is not None and self._may_skip(skeleton) else None
            if skeleton is not None and found is not None:
                return found, FactSource.SCANNED if skeleton.whole else FactSource.HEADER
        alone = self.sounds[0] if len(self.sounds) == 1 and not self.pictures else None
        walker = {"mp3": walkers.mpeg_audio, "aac": walkers.adts, "wav": wave}.get(name)
        if alone is not None and walker is not None:
            walked = walker(self.view)
            if walked is not None:
                return {alone.index: walked}, FactSource.HEADER if name == "wav" else FactSource.SCANNED
        found = self._scan()
        if alone is not None and name == "wav":
            check_packed(self.view, found[alone.index])
        return found, FactSource.SCANNED

    def _from_movie(self, movie: Movie) -> tuple[dict[int, Evidence], FactSource]:
        size = len(self.view)
        if movie.samples_bytes > size or (not movie.complete and not movie.fragmented):
            self._note("truncated", f"its samples take {movie.samples_bytes:,} bytes, the file has {size:,}")
            tracks = [(stream, movie.track(stream.id)) for stream in [*self.pictures, *self.sounds]]
            if not movie.fragmented and any(
                track is not None and track.sized_samples and not stream.index_entries for stream, track in tracks
            ):
                raise MemoryError  # FFmpeg was refused the table and carries on without it, silently
            found = self._scan()
            for stream, track in tracks:
                if track is not None:
                    found[stream.index].claims["its sample table"] = track.media_s
            return found, FactSource.SCANNED
        found = {}
        for stream in [*self.pictures, *self.sounds]:
            track = movie.track(stream.id)
            if track is None:
                raise MalformedMedia(f"FFmpeg sees a track {stream.id} that its movie header does not list")
            found[stream.index] = self._of_track(stream, track, movie.timescale)
        self._count_sound(movie, found)
        if not any(evidence.packets for evidence in found.values()):
            self._note("no_samples", "it holds a header but no samples, as the first segment of a stream does")
        return found, FactSource.HEADER

    def _of_track(self, stream: Any, track: Track, movie_timescale: int) -> Evidence:
        start, end = track.presented_s(movie_timescale)
        claims = {"its samples": track.media_s} if track.media_s > end - start else {}
        claims["its track header"] = track.header_s
        evidence = Evidence(start_s=start, end_s=end, claims=claims, packets=track.samples, steady=steady(track.deltas))
        trust_frames(evidence, track.samples * frame_s(stream), clock_s=track.media_s)
        return evidence

    def _count_sound(self, movie: Movie, found: dict[int, Evidence]) -> None:
        """Hold the clock against packets that say themselves how long they are; no sample table does."""
        varying = [stream for stream in self.sounds if _codec(stream) in ("opus", "flac")]
        if not varying:
            return
        for stream in self.pictures:
            if hasattr(stream, "discard"):  # FFmpeg then skips over their samples instead of reading them
                stream.discard = av.stream.Discard.all
        for stream, tally in self._walk(varying).items():
            track = movie.track(stream.id)
            trust_content(found[stream.index], tally.content_s, clock_s=track.media_s if track else 0.0)

    def _may_skip(self, skeleton: ebml.Skeleton) -> bool:
        """Whether block times suffice: where every block was counted and holds a known length of sound.

        Of a long film only the ends are read, and its clusters have shown no haste. Sound alone has no pictures to
        contradict its clock, so its packets are walked.
        """
        if skeleton.whole:
            return all(frame_s(stream) for stream in self.sounds)
        return bool(self.pictures)

    def _from_matroska(self, skeleton: ebml.Skeleton) -> dict[int, Evidence] | None:
        """Both see tracks in file order, so the n-th of a kind is the same one; `None` if their numbers differ."""
        found = {}
        for streams, kind in ((self.pictures, "video"), (self.sounds, "audio")):
            tracks = skeleton.of_kind(kind)
            if len(tracks) != len(streams):
                return None
            for stream, track in zip(streams, tracks, strict=True):
                one_s = track.frame_s or frame_s(stream)
                tail_s = (
                    track.tail * skeleton.scale_s
                    or one_s * track.tail_frames
                    or 1 / (track.pace(skeleton.scale_s) or 1e9)
                )
                evidence = Evidence(
                    start_s=max(0, track.first or 0) * skeleton.scale_s, end_s=track.last * skeleton.scale_s + tail_s,
                    packets=track.frames if skeleton.whole else None, steady=track.steady(),
                    pace=track.pace(skeleton.scale_s),
                )  # fmt: skip
                if skeleton.whole:
                    trust_frames(evidence, track.frames * frame_s(stream), clock_s=evidence.span_s)
                if skeleton.whole and kind == "video":
                    claim_pace(evidence, track.frames * track.frame_s)
                found[stream.index] = evidence
        return found

    def _scan(self) -> dict[int, Evidence]:
        """Walk every packet; none at all is an error."""
        tallies = self._walk([*self.pictures, *self.sounds])
        if not any(tally.packets for tally in tallies.values()):
            raise MalformedMedia("it holds no packet of sound or pictures")
        found = {stream.index: tally.evidence() for stream, tally in tallies.items()}
        for stream in self.sounds:
            seen, context = found[stream.index], stream.codec_context
            rate, channels = getattr(context, "sample_rate", 0) or 0, getattr(context, "channels", 0) or 0
            refuse_too_dense(seen.payload_bytes, seen.high_s, rate_hz=rate, channels=channels)
        return found

    def _walk(self, streams: list[Any]) -> dict[Any, Tally]:
        """Walk the packets of some streams. Bounded by CPU time; a damaged end is an anomaly."""
        tallies = {stream.index: Tally(stream) for stream in streams}
        give_up, walked = time.process_time() + self.bounds.scan_cpu_s, 0
        try:
            for packet in self.container.demux(streams):
                if packet.size:
                    tallies[packet.stream_index].add(packet)
                walked += 1
                if walked % 4096 == 0 and time.process_time() > give_up:
                    raise MediaTooLarge(
                        f"its header says too little, and its packets take over {self.bounds.scan_cpu_s:g} s of CPU",
                        limit="cpu", packets=walked,
                    )  # fmt: skip
        except (InputError, MemoryError):
            raise
        except _READ_ERRORS as error:
            self._note("damaged", f"its packets end with an error after {walked:,}: {_words(error)}")
        return {stream: tallies[stream.index] for stream in streams}

    def _note(self, code: str, detail: str) -> None:
        self.anomalies.append(Anomaly(code=code, detail=detail))

    def _container_claim(self) -> float:
        """What the file as a whole says of its length; 0 where FFmpeg only guesses from the bitrate."""
        if self.movie is not None:
            return self.movie.header_s
        if self.container.format.name in _GUESSED_DURATION:
            return 0.0
        return max(0.0, (self.container.duration or 0) / 1_000_000)

    def _whole(self, evidence: dict[int, Evidence]) -> tuple[float, float]:
        """(shown, longest) seconds of the whole file; notes what contradicts itself."""
        with_sound = [e for e in evidence.values() if e.packets != 0]
        shown = max((e.end_s for e in with_sound), default=0.0) - min((e.start_s for e in with_sound), default=0.0)
        claim = self._container_claim()
        for each in evidence.values():
            if problem := mismatch(each.span_s, each.claims):
                self._note("duration_mismatch", problem)
                break
        else:
            if problem := mismatch(max([shown, *(e.high_s for e in evidence.values())]), {"its header": claim}):
                self._note("duration_mismatch", problem)
        return shown, max([shown, claim, *(e.high_s for e in evidence.values())])

    # -- facts --------------------------------------------------------------------------------------------------------

    def _audio(self, evidence: dict[int, Evidence], source: FactSource) -> AudioFacts:
        main = max(self.sounds, key=lambda stream: evidence[stream.index].span_s)
        shown, high = self._whole(evidence)
        context = main.codec_context
        return AudioFacts(
            duration_s=round(shown, 6), duration_high_s=round(max(high, shown), 6), duration_source=source,
            container=self.container.format.name.split(",")[0], codec=_codec(main),
            sample_rate_hz=_positive(getattr(context, "sample_rate", None)), channels=_positive(getattr(context,
            "channels", None)),
            tracks=len(self.sounds),
        )  # fmt: skip

    def _video(self, evidence: dict[int, Evidence], source: FactSource) -> VideoFacts:
        main = max(self.pictures, key=_area)
        seen = evidence[main.index]
        rotation = self._rotation(main)
        width, height = _displayed(main, rotation)
        if width * height > self.bounds.max_pixels:
            raise MediaTooLarge(f"{width}×{height} pixels; at most {self.bounds.max_pixels:,} (safety.max.pixels)")
        if seen.packets is not None and seen.packets > self.bounds.max_frames:
            raise MediaTooLarge(
                f"{seen.packets:,} frames; at most {self.bounds.max_frames:,} (safety.max.frames)", frames=seen.packets
            )
        fps = self._pace(main, seen)
        if fps is not None and fps > _FASTEST_FPS and seen.packets:
            seen.claims[f"its frames at {_PLAIN_FPS:g} a second"] = seen.packets / _PLAIN_FPS
        shown, high = self._whole(evidence)
        sound = max((evidence[s.index] for s in self.sounds), key=lambda e: e.span_s, default=None)
        return VideoFacts(
            width_px=width, height_px=height, rotation_deg=rotation,
            duration_s=round(shown, 6), duration_high_s=round(max(high, shown), 6), duration_source=source,
            frames=seen.packets, average_fps=fps, variable_frame_rate=None if seen.steady is None else not seen.steady,
            container=self.container.format.name.split(",")[0], codec=_codec(main),
            audio_tracks=len(self.sounds),
            audio_duration_s=round(sound.span_s, 6) if sound else None,
            audio_duration_high_s=round(sound.high_s, 6) if sound else None,
            audio_codec=_codec(self.sounds[0]) if self.sounds else None,
        )  # fmt: skip

    def _rotation(self, stream: Any) -> int:
        track = self.movie.track(stream.id) if self.movie else None
        return track.rotation_deg if track else 0

    def _pace(self, stream: Any, seen: Evidence) -> float | None:
        media_s = max(seen.span_s, seen.claims.get("its samples", 0.0))
        if seen.packets and media_s > 0:
            return round(seen.packets / media_s, 3)
        rate = seen.pace or stream.average_rate
        return round(float(rate), 3) if rate else None


def _is_played(stream: Any) -> bool:
    return stream.type in ("video", "audio") and not stream.disposition & av.stream.Disposition.attached_pic


def _codec(stream: Any) -> str | None:
    return stream.codec_context.codec.canonical_name if stream.codec_context is not None else None


def _positive(value: int | None) -> int | None:
    return value if value and value > 0 else None


def _area(stream: Any) -> int:
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
