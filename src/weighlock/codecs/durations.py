"""How long a file of sound or pictures lasts: who is asked, and whose word wins.

Takes PyAV's containers and streams without importing the library; its door (`pyav.py`) hands them in.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any, Protocol

from weighlock.codecs import ebml, walkers
from weighlock.codecs.movie import Movie, Track
from weighlock.codecs.streams import Evidence, mismatch, refuse_too_dense, steady
from weighlock.codecs.tally import Tally, claim_pace, codec_name, frame_s, trust_content, trust_frames
from weighlock.codecs.wave import check_packed, wave
from weighlock.errors import MalformedMedia
from weighlock.media.facts import Anomaly, FactSource

_FASTEST_FPS = 1000.0
"""Above this a frame rate is a false clock, not a camera."""
_PLAIN_FPS = 24.0
_GUESSED_DURATION = {"mp3", "aac", "ac3", "eac3", "amr", "mpeg", "mpegvideo", "mpegts", "wav", "w64"}


class Walk(Protocol):
    """Reads the packets of some streams to the end, passing over those of the streams in `skip`.

    Returns a tally for each stream, and in words what ended the walk early (`None`: nothing did).
    """

    def __call__(self, streams: list[Any], *, skip: Sequence[Any]) -> tuple[dict[Any, Tally], str | None]: ...


class Durations:
    """What one open file supports about its length: ask for its streams first, then for the whole.

    `anomalies` gathers what does not add up, in the order it was found. `movie` is the header of an MP4 or QuickTime
    file, and `None` for all others.
    """

    def __init__(
        self,
        container: Any,
        *,
        pictures: list[Any],
        sounds: list[Any],
        view: mmap.mmap,
        movie: Movie | None,
        walk: Walk,
    ) -> None:
        self.container = container
        self.pictures = pictures
        self.sounds = sounds
        self.view = view
        self.movie = movie
        self.walk = walk
        self.anomalies: list[Anomaly] = []

    def of_streams(self) -> tuple[dict[int, Evidence], FactSource]:
        """Times of every played stream by its index, and where they come from.

        Raises:
            MalformedMedia: it holds no packets, a track its header does not list, or more sound than its time allows.
            MediaTooLarge: its packets had to be walked, and that took too long.
            MemoryError: FFmpeg had no room for its sample table.
        """
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

    def of_file(self, evidence: dict[int, Evidence]) -> tuple[float, float]:
        """(shown, longest) seconds of the whole file; notes what contradicts itself."""
        filled = [e for e in evidence.values() if e.packets != 0]
        shown = max((e.end_s for e in filled), default=0.0) - min((e.start_s for e in filled), default=0.0)
        claim = self._container_claim()
        for each in evidence.values():
            if problem := mismatch(each.span_s, each.claims):
                self._note("duration_mismatch", problem)
                break
        else:
            if problem := mismatch(max([shown, *(e.high_s for e in evidence.values())]), {"its header": claim}):
                self._note("duration_mismatch", problem)
        return shown, max([shown, claim, *(e.high_s for e in evidence.values())])

    def _container_claim(self) -> float:
        """What the file as a whole says of its length; 0 where FFmpeg only guesses from the bitrate."""
        if self.movie is not None:
            return self.movie.header_s
        if self.container.format.name in _GUESSED_DURATION:
            return 0.0
        return max(0.0, (self.container.duration or 0) / 1_000_000)

    def _from_movie(self, movie: Movie) -> tuple[dict[int, Evidence], FactSource]:
        if movie.samples_bytes > len(self.view) or (not movie.complete and not movie.fragmented):
            return self._from_cut_off(movie), FactSource.SCANNED
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

    def _from_cut_off(self, movie: Movie) -> dict[int, Evidence]:
        """What is left of a movie that ends before its samples do; its sample table is a claim."""
        self._note("truncated", f"its samples take {movie.samples_bytes:,} bytes, the file has {len(self.view):,}")
        tracks = [(stream, movie.track(stream.id)) for stream in [*self.pictures, *self.sounds]]
        if not movie.fragmented and any(
            track is not None and track.sized_samples and not stream.index_entries for stream, track in tracks
        ):
            raise MemoryError  # FFmpeg was refused the table and carries on without it, silently
        found = self._scan()
        for stream, track in tracks:
            if track is not None:
                found[stream.index].claims["its sample table"] = track.media_s
        return found

    def _of_track(self, stream: Any, track: Track, movie_timescale: int) -> Evidence:
        start, end = track.presented_s(movie_timescale)
        claims = {"its samples": track.media_s} if track.media_s > end - start else {}
        claims["its track header"] = track.header_s
        evidence = Evidence(start_s=start, end_s=end, claims=claims, packets=track.samples, steady=steady(track.deltas))
        trust_frames(evidence, track.samples * frame_s(stream), clock_s=track.media_s)
        return evidence

    def _count_sound(self, movie: Movie, found: dict[int, Evidence]) -> None:
        """Hold the clock against packets that say themselves how long they are; no sample table does."""
        varying = [stream for stream in self.sounds if codec_name(stream) in ("opus", "flac")]
        if not varying:
            return
        for stream, tally in self._tallies(varying, skip=self.pictures).items():
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
                found[stream.index] = self._of_blocks(stream, track, skeleton)
        return found

    def _of_blocks(self, stream: Any, track: ebml.Track, skeleton: ebml.Skeleton) -> Evidence:
        scale_s, pace = skeleton.scale_s, track.pace(skeleton.scale_s)
        one_s = track.frame_s or frame_s(stream)
        tail_s = track.tail * scale_s or one_s * track.tail_frames or 1 / (pace or 1e9)
        evidence = Evidence(
            start_s=max(0, track.first or 0) * scale_s, end_s=track.last * scale_s + tail_s,
            packets=track.frames if skeleton.whole else None, steady=track.steady(), pace=pace,
        )  # fmt: skip
        if skeleton.whole:
            trust_frames(evidence, track.frames * frame_s(stream), clock_s=evidence.span_s)
            if track.kind == "video":
                claim_pace(evidence, track.frames * track.frame_s)
        return evidence

    def _scan(self) -> dict[int, Evidence]:
        """Walk every packet; none at all is an error."""
        tallies = self._tallies([*self.pictures, *self.sounds])
        if not any(tally.packets for tally in tallies.values()):
            raise MalformedMedia("it holds no packet of sound or pictures")
        found = {stream.index: tally.evidence() for stream, tally in tallies.items()}
        for stream in self.sounds:
            seen, context = found[stream.index], stream.codec_context
            rate, channels = getattr(context, "sample_rate", 0) or 0, getattr(context, "channels", 0) or 0
            refuse_too_dense(seen.payload_bytes, seen.high_s, rate_hz=rate, channels=channels)
        return found

    def _tallies(self, streams: list[Any], *, skip: Sequence[Any] = ()) -> dict[Any, Tally]:
        tallies, damage = self.walk(streams, skip=skip)
        if damage is not None:
            self._note("damaged", damage)
        return tallies

    def _note(self, code: str, detail: str) -> None:
        self.anomalies.append(Anomaly(code=code, detail=detail))


def frame_rate(stream: Any, seen: Evidence) -> float | None:
    """Frames a second: of the frames that were counted, else at the pace that was timed or is stated."""
    media_s = max(seen.span_s, seen.claims.get("its samples", 0.0))
    if seen.packets and media_s > 0:
        return round(seen.packets / media_s, 3)
    rate = seen.pace or stream.average_rate
    return round(float(rate), 3) if rate else None


def doubt_clock(seen: Evidence, fps: float | None) -> None:
    """Where frames come faster than any camera takes them, claim that they last as long as plain ones do."""
    if fps is not None and fps > _FASTEST_FPS and seen.packets:
        seen.claims[f"its frames at {_PLAIN_FPS:g} a second"] = seen.packets / _PLAIN_FPS
