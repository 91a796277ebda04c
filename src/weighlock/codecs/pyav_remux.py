"""Clips without encoding again: packets are copied, from the picture that stands alone at or before the start."""

from __future__ import annotations

from fractions import Fraction
from typing import IO, Any

from weighlock.codecs.encoding import Encoding
from weighlock.codecs.job import Context
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pyav_film import Film, exact
from weighlock.codecs.pyav_output import output
from weighlock.codecs.pyav_sound import AAC, SoundCopier, SoundEncoder
from weighlock.codecs.tally import codec_name
from weighlock.codecs.timeline import NO_TIME, Timeline
from weighlock.errors import MalformedMedia, TransformFailed
from weighlock.media.work import COPIED, VideoWork

_SOUND = {"aac", "mp3"}
_LOST_S = 0.5


def may_copy(film: Film, work: VideoWork) -> bool:
    """Whether `work` can be had without encoding pictures again."""
    stream = film.picture()
    context = stream.codec_context
    if work.fps is not None or codec_name(stream) not in COPIED:
        return False
    if work.exact and (work.start_s or work.end_s is not None):
        return False
    most = (work.max_width_px, work.max_height_px)
    sides = (context.width, context.height)
    # A film turned on its side has its sides swapped; whoever is below both bounds either way fits.
    return all(bound is None or max(sides) <= bound for bound in most)


def copy_film(film: Film, out: IO[bytes], work: VideoWork, context: Context) -> Outcome:
    """Write the packets of the clip, with their times moved so that it begins at zero."""
    index = film.picture().index
    sound_stream, notes = film.sound() if work.keep_sound else (None, ())
    sound_index = None if sound_stream is None else sound_stream.index
    asked_s = exact(work.start_s or 0.0)
    end_s = None if work.end_s is None else exact(work.end_s)
    timeline, begin_s = film.timeline(index, asked_s, end_s)
    stream = film.container.streams[index]
    first, last = _range(timeline, film, stream, asked_s, end_s)
    start_s = max(Fraction(0), film.seconds(timeline.pts[first], stream)) if asked_s else Fraction(0)
    _refuse_early(asked_s - start_s, work)
    if sound_index is not None:  # which may begin before the first picture: none of it is to be lost
        start_s = min(start_s, asked_s)
    decode_times = timeline.decode_times()
    indexes = [i for i in (index, sound_index) if i is not None]
    film.keep(*(film.container.streams[i] for i in indexes))
    film.rewind(begin_s, stream=film.container.streams[index])
    stream = film.container.streams[index]
    kept = [film.container.streams[i] for i in indexes]
    origin = film.ticks(start_s, stream)
    until = timeline.pts[last] - origin
    with output(out, "mp4", film, strip=work.strip_metadata, copied=kept) as written:
        target = written.add_stream_from_template(stream, opaque=True)
        _keep_turned(film, stream, target)
        sound = _sound(written, film, sound_index, start_s, end_s, context.encoding)
        number = copied = 0
        for packet in film.packets():
            if packet.stream_index == index:
                number = _find(timeline, packet, number)
                if number > last:
                    if sound is None or sound.done or end_s is None:
                        break
                    continue
                # A picture shown before the first but stored behind it leans on what is not there.
                if number >= first and timeline.pts[number] >= timeline.pts[first] and not packet.is_corrupt:
                    packet.pts, packet.dts = timeline.pts[number] - origin, decode_times[number] - origin
                    packet.stream = target
                    written.mux(packet)
                    copied += 1
                    context.progress((timeline.pts[number] - origin) / until if until > 0 else 0.0)
                number += 1
            elif sound is not None and not sound.done:
                written.mux(list(sound.feed(packet)))
        if sound is not None:
            written.mux(list(sound.finish()))
        if not copied:
            raise MalformedMedia("none of its pictures can be copied")
    return Outcome(
        mime="video/mp4",
        actual_start_s=None if work.exact else float(start_s),
        notes=(*notes, *_losses(film, stream, timeline, end_s)),
    )


def _refuse_early(earlier_s: Fraction, work: VideoWork) -> None:
    if work.most_earlier_s is not None and earlier_s > exact(work.most_earlier_s):
        raise TransformFailed(
            f"its key frame is {float(earlier_s):.4g} s before the start, and a copy may begin "
            f"{work.most_earlier_s:g} s before it; ask for an exact clip"
        )


def _range(timeline: Timeline, film: Film, stream: Any, start_s: Fraction, end_s: Fraction | None) -> tuple[int, int]:
    """(first, last) packet of the copy: a picture that stands alone, and the last one needed before `end_s`."""
    if not len(timeline) or NO_TIME in timeline.pts:
        raise MalformedMedia("its pictures carry no times, so they cannot be copied; ask for an exact clip")
    start = film.ticks(start_s + Fraction(1, 1000), stream)
    keys = [n for n in range(len(timeline)) if timeline.is_key(n)]
    if not keys:
        raise MalformedMedia("it holds no picture that stands alone, so none can be copied; ask for an exact clip")
    first = max((n for n in keys if timeline.pts[n] <= start), default=keys[0], key=timeline.pts.__getitem__)
    end = None if end_s is None else film.ticks(end_s, stream)
    shown = (n for n in range(first, len(timeline)) if timeline.is_shown(n))  # what an edit list cuts off stays off
    return first, max((n for n in shown if end is None or timeline.pts[n] < end), default=first)


def _sound(
    written: Any, film: Film, index: int | None, start_s: Fraction, end_s: Fraction | None, encoding: Encoding
) -> SoundCopier | SoundEncoder | None:
    if index is None:
        return None
    stream = film.container.streams[index]
    if codec_name(stream) in _SOUND:
        return SoundCopier(written, film, stream, start_s, end_s)
    return SoundEncoder(written, film, stream, AAC.at(encoding.sound_bits_per_channel), start_s, end_s)


def _keep_turned(film: Film, stream: Any, target: Any) -> None:
    """Carry over how the film is turned: it is not in the packets."""
    track = film.movie.track(stream.id) if film.movie is not None else None
    if track is not None and track.rotation_deg:
        target.set_display_rotation(-track.rotation_deg)


def _find(timeline: Timeline, packet: Any, number: int) -> int:
    """The number of a packet, at or after the one that is expected; one that cannot be found counts as passed."""
    for candidate in range(number, min(number + 256, len(timeline))):
        if timeline.pts[candidate] == packet.pts:
            return candidate
    return number - 1


def _losses(film: Film, stream: Any, timeline: Timeline, end_s: Fraction | None) -> tuple[str, ...]:
    promised_s = film.promised_s(stream)
    wanted_s = promised_s if end_s is None else min(promised_s, float(end_s))
    missing_s = wanted_s - float(film.seconds(timeline.end(), stream))
    if missing_s > _LOST_S:
        return (f"the last {missing_s:,.1f} s could not be read",)
    return ("its end is damaged",) if film.damage else ()
