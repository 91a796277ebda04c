"""Clips and converts sound, or takes it out of a film. Runs in the confined child; its door is `make`."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import IO, Any

from weighlock.codecs import pyav
from weighlock.codecs.allotted import fewer, too_many
from weighlock.codecs.encoding import TRIES, Encoding
from weighlock.codecs.job import Context
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pyav_film import Film, exact
from weighlock.codecs.pyav_output import counted, output
from weighlock.codecs.pyav_sound import AAC, SoundCopier, SoundEncoder, Voice
from weighlock.codecs.tally import codec_name
from weighlock.codecs.window import Window
from weighlock.errors import MalformedMedia, UnsupportedMedia
from weighlock.media.work import AudioWork

_MP3 = Voice("libmp3lame", "s16", 2, 64_000)
_FLAC, _FLAC_DEEP = Voice("flac", "s16", 8), Voice("flac", "s32", 8)
_WAV, _WAV_DEEP = Voice("pcm_s16le", "s16", 8), Voice("pcm_s24le", "s32", 8)
_OPUS = Voice("libopus", "flt", 2, 48_000)
_FORMS: dict[str, tuple[str, str, Voice]] = {
    "audio/flac": ("flac", "flac", _FLAC),
    "audio/mpeg": ("mp3", "mp3", _MP3),
    "audio/wav": ("wav", "pcm_s16le", _WAV),
    "audio/mp4": ("mp4", "aac", AAC),
    "audio/aac": ("adts", "aac", AAC),
    "audio/ogg": ("ogg", "opus", _OPUS),
    "audio/aiff": ("aiff", "pcm_s16be", Voice("pcm_s16be", "s16", 8)),
}
"""By media type: FFmpeg's muxer, the codec that is copied into it, and the encoder where it must be encoded."""
_SAME = {"audio/mp3": "audio/mpeg", "audio/m4a": "audio/mp4", "audio/x-m4a": "audio/mp4", "audio/opus": "audio/ogg"}
_DEEP = {"flac": _FLAC_DEEP, "wav": _WAV_DEEP}
_DEEP_FORMATS = ("s32", "s32p", "s64", "s64p", "flt", "fltp", "dbl", "dblp")
_LOST_S = 0.5
_HEADER_BYTES = 2_048
_OVERHEAD = 1.08
"""Of what carries the packets, and of encoders that take more than they were told."""


def warm_up() -> None:
    """Import what PyAV imports on first use."""
    pyav.warm_up()


def make(window: Window, out: IO[bytes], work: AudioWork, context: Context) -> Outcome:
    """Write the sound `work` asks for.

    Raises:
        InputError: it cannot be read, or the type asked for is not written here.
    """
    most = aim = work.max_bytes
    tried: list[int] = []
    for _ in range(TRIES):
        told = _made(window, out, work, context, aim)
        came = out.seek(0, os.SEEK_END)
        if most is None or aim is None or came <= most:
            return told
        tried.append(came)
        aim = fewer(most, aim, came)
        out.seek(0)
        out.truncate()
    raise too_many(most or 0, min(tried))


def _made(window: Window, out: IO[bytes], work: AudioWork, context: Context, aim: int | None) -> Outcome:
    """In about `aim` bytes, where they are counted."""
    with Film(window, context) as film:
        stream, notes = film.sound()
        if stream is None:
            raise MalformedMedia("it holds no sound that can be decoded")
        mime = work.mime or _kept_type(film, stream, context.mime)
        if mime not in _FORMS:
            raise UnsupportedMedia(f"{mime} is not written here; audio/flac, audio/mpeg and audio/wav are", mime=mime)
        start_s = exact(work.start_s or 0.0)
        end_s = None if work.end_s is None else exact(work.end_s)
        index = stream.index
        film.keep(stream)
        film.rewind(max(Fraction(0), start_s - 1), stream=stream)
        stream = film.container.streams[index]
        with output(out, _FORMS[mime][0], film, strip=work.strip_metadata, copied=[stream]) as written:
            sound = _sound(written, film, stream, mime, (start_s, end_s), aim, context.encoding)
            _write(written, film, sound, context, start_s, end_s)
            if not sound.seconds:
                raise MalformedMedia("none of its sound can be decoded")
        return Outcome(mime=mime, notes=(*notes, *_losses(film, stream, sound, start_s, end_s)))


def _kept_type(film: Film, stream: Any, mime: str) -> str:
    """The source's own type where it can be written, else one that suits its codec."""
    mime = _SAME.get(mime, mime)
    if mime in _FORMS and not film.pictures:
        return mime
    by_codec = {"aac": "audio/mp4", "mp3": "audio/mpeg", "flac": "audio/flac", "opus": "audio/ogg"}
    codec = codec_name(stream) or ""
    return by_codec.get(codec, "audio/flac" if codec.startswith("pcm") or codec == "alac" else "audio/mpeg")


def _sound(
    written: Any, film: Film, stream: Any, mime: str, span_s: tuple[Fraction, Fraction | None], aim: int | None,
    encoding: Encoding,
) -> SoundEncoder | SoundCopier:  # fmt: skip
    start_s, end_s = span_s
    _, copied, usual = _FORMS[mime]
    voice = usual.at(encoding.sound_bits_per_channel)
    if aim is not None:
        ends_s = Fraction(film.container.duration or 0, 1_000_000) if end_s is None else end_s
        bits_per_s = max(0, aim - _HEADER_BYTES) * 8 / max(0.1, float(ends_s - start_s))
        voice = voice.within(bits_per_s / _OVERHEAD, stream.codec_context.layout.nb_channels)
    name = codec_name(stream)
    # Bare AAC has nowhere to say what of it is to be dropped, so it is copied only from where that is so too.
    fits = name == copied and (mime != "audio/aac" or film.format == "aac")
    if start_s == 0 and end_s is None and fits and aim is None and _starts_at_zero(film, stream):
        return SoundCopier(written, film, stream, start_s, end_s)
    lossless = name in ("flac", "alac") or str(name).startswith("pcm_")
    deep = lossless and stream.codec_context.format is not None and stream.codec_context.format.name in _DEEP_FORMATS
    if deep:
        voice = _DEEP.get(_FORMS[mime][0], voice)
    return SoundEncoder(written, film, stream, voice, start_s, end_s, held=aim is not None)


def _starts_at_zero(film: Film, stream: Any) -> bool:
    """Whether nothing has to be put before it: sound of a film may begin later than its pictures."""
    return not film.pictures or (stream.start_time or 0) * stream.time_base - film.start <= Fraction(1, 1000)


def _write(
    written: Any, film: Film, sound: SoundEncoder | SoundCopier, context: Context, start_s: Fraction,
    end_s: Fraction | None,
) -> None:  # fmt: skip
    until_s = float(end_s) if end_s is not None else float((film.container.duration or 0) / 1_000_000)
    length_s = until_s - float(start_s)
    for packet in film.packets():
        written.mux(list(sound.feed(packet)))
        context.progress(float(sound.seconds) / length_s if length_s > 0 else 0.0)
        if sound.done:
            break
    written.mux(list(sound.finish()))


def _losses(
    film: Film, stream: Any, sound: SoundEncoder | SoundCopier, start_s: Fraction, end_s: Fraction | None
) -> tuple[str, ...]:
    promised_s = film.promised_s(stream)
    wanted_s = promised_s if end_s is None else min(promised_s, float(end_s))
    missing_s = wanted_s - float(start_s + sound.seconds)
    if missing_s > _LOST_S:
        return (f"the last {missing_s:,.1f} s could not be decoded",)
    if sound.failures:
        return (f"{counted(sound.failures, 'packet')} could not be decoded",)
    return ("its end is damaged",) if film.damage else ()
