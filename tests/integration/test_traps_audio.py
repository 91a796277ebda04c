"""What goes wrong with sound in other programs (tests/golden/known_traps_media.md), each with all of its kind."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import av
import pytest

import films
import media
from traps import inline, likely, preflight, seconds, sent, weighed, weighed_request
from weighlock import Preflight
from weighlock.codecs import Transformer, make_bytes
from weighlock.media.facts import AudioFacts
from weighlock.media.work import AudioWork
from weighlock.request import Modality

RATES = {"gemini-2.0-flash": 25, "gemini-2.5-flash": 32, "gemini-3.8-flash": 25}
AUDIO = Modality.AUDIO


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preflight]:
    with preflight(tmp_path_factory.mktemp("developer")) as one:
        yield one


@pytest.fixture(scope="module")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preflight]:
    with preflight(tmp_path_factory.mktemp("vertex"), backend="vertex") as one:
        yield one


def made_s(transformer: Transformer, data: bytes, mime: str, work: AudioWork) -> float:
    _, told = make_bytes(transformer, data, mime=mime, work=work)
    assert isinstance(told.probed.facts, AudioFacts)
    return told.probed.facts.duration_s


# -- AUD-001: how long it really is -----------------------------------------------------------------------------------


def test_the_report_holds_the_true_length_to_hold_answers_against(line: Preflight) -> None:
    (told,) = line.check([_part(media.wav(628))]).as_dict()["parts"]

    assert told["facts"]["duration_s"] == 628.0
    assert told["facts"]["duration_high_s"] == 628.0


def _part(data: bytes) -> Any:
    from weighlock import MediaPart

    return MediaPart(source=data, label="talk")


# -- AUD-002, AUD-003, MIM-015, MIM-016: what a recording is called ---------------------------------------------------


KINDS: dict[str, tuple[Callable[[], bytes], set[str]]] = {
    "m4a": (lambda: media.sound(2, "aac", "ipod"), {"audio/m4a", "audio/mp4", "audio/x-m4a"}),
    "wav": (lambda: media.wav(2), {"audio/wav"}),
    "flac": (lambda: media.sound(2, "flac", "flac"), {"audio/flac"}),
    "ogg": (lambda: media.sound(2, "libopus", "ogg", rate=48000), {"audio/ogg", "audio/opus"}),
    "aac": (lambda: media.sound(2, "aac", "adts"), {"audio/aac", "audio/x-aac"}),
    "webm": (lambda: media.as_live_recording(media.sound(2, "libopus", "webm", rate=48000)), {"audio/webm"}),
}
"""How each is drawn, and the names the two backends have for it."""


@pytest.mark.parametrize("declared", ["audio/mp3", "application/octet-stream", "video/mp4", None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_recording_under_any_label_is_sent_as_what_it_is(
    line: Preflight, vertex: Preflight, kind: str, declared: str | None
) -> None:
    draw, names = KINDS[kind]
    data = draw()

    for one in (line, vertex):
        (part,), fitted = sent(one, inline(data, declared))

        assert part["inlineData"]["mimeType"] in names
        assert seconds(fitted.after.parts[0]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        ("webm", "audio/webm;codecs=opus"),
        ("webm", "audio/webm; codecs=opus"),
        ("webm", "video/webm;codecs=vp9,opus"),
        ("m4a", "audio/mp4;codecs=mp4a.40.2"),
        ("m4a", "audio/x-m4a"),
        ("m4a", "audio/m4a"),
        ("ogg", "audio/ogg; codecs=opus"),
        ("ogg", "application/ogg"),
        ("ogg", "audio/opus"),
    ],
)
def test_what_browsers_and_telephones_call_their_recordings_is_understood(
    line: Preflight, vertex: Preflight, kind: str, declared: str
) -> None:
    draw, names = KINDS[kind]

    for one in (line, vertex):
        (part,), fitted = sent(one, inline(draw(), declared))

        assert part["inlineData"]["mimeType"] in names
        assert likely(fitted.after.parts[0])[AUDIO] in (64, 65)


def test_a_browser_s_recording_becomes_ogg_without_being_encoded_again(transformer: Transformer) -> None:
    data = media.as_live_recording(films.beeps(4, "libopus", "webm"))

    out, told = make_bytes(transformer, data, mime="audio/webm", work=AudioWork())

    assert told.mime == "audio/ogg"
    assert films.sound(out)[0] == pytest.approx([0, 1, 2, 3], abs=0.005)
    assert _packets(out) == _packets(data)


def _packets(data: bytes) -> list[bytes]:
    container: Any
    with av.open(io.BytesIO(data)) as container:
        return [bytes(packet) for packet in container.demux(audio=0) if packet.size]


@pytest.mark.parametrize("length_s", [0.5, 1.0, 2.5, 3.0])
def test_a_voice_note_without_a_name_lasts_from_its_preskip_to_its_granule(line: Preflight, length_s: float) -> None:
    data = media.sound(length_s, "libopus", "ogg", rate=48000)

    for declared in (None, "", "application/ogg"):
        (part,) = weighed_request(line, inline(data, declared))

        assert part.examined.mime == "audio/ogg"
        assert seconds(part) == pytest.approx(length_s, abs=0.001)
        assert likely(part) == {AUDIO: length_s * 32}


# -- AUD-011, AUD-015, AUD-017: how long an MP3 is --------------------------------------------------------------------


@cache
def twelve_seconds_of_mp3(rate: int) -> bytes:
    return media.sound(12, "libmp3lame", "mp3", rate=rate)


@pytest.mark.parametrize("factor", [0, 0.1, 2, 10])
@pytest.mark.parametrize("rate", [44100, 22050])
def test_frames_are_counted_whatever_the_header_frame_says(
    line: Preflight, transformer: Transformer, factor: float, rate: int
) -> None:
    honest = twelve_seconds_of_mp3(rate)
    frames = round(12 * rate / (1152 if rate > 24000 else 576))
    lying = media.with_xing_frames(honest, round(frames * factor))

    part = weighed(line, lying)

    assert seconds(part) == pytest.approx(12, abs=0.12)
    assert likely(part)[AUDIO] == pytest.approx(12 * 32, abs=4)
    assert made_s(transformer, lying, "audio/mpeg", AudioWork(mime="audio/flac")) == pytest.approx(12, abs=0.12)


def _halves(first: int, second: int) -> bytes:
    """Five seconds at one bit rate and five at another, and nothing that says so."""
    plain = {"write_xing": "0", "id3v2_version": "0"}
    return b"".join(
        media.sound(5, "libmp3lame", "mp3", bit_rate=rate, container_options=plain) for rate in (first, second)
    )


@pytest.mark.parametrize(("first", "second"), [(32_000, 256_000), (256_000, 32_000), (64_000, 128_000)])
def test_a_bit_rate_that_changes_does_not_change_the_length(
    line: Preflight, transformer: Transformer, first: int, second: int
) -> None:
    data = _halves(first, second)
    container: Any
    with av.open(io.BytesIO(data)) as container:
        guessed_s = (container.duration or 0) / 1e6
    assert abs(guessed_s - 10) > 2, "the trap is not in the file"

    assert seconds(weighed(line, data)) == pytest.approx(10, abs=0.15)
    assert made_s(transformer, data, "audio/mpeg", AudioWork(mime="audio/wav")) == pytest.approx(10, abs=0.15)
    assert made_s(transformer, data, "audio/mpeg", AudioWork(start_s=6, mime="audio/wav")) == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize("rate", [48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000])
def test_an_mp3_lasts_as_long_at_every_rate(line: Preflight, rate: int) -> None:
    part = weighed(line, twelve_seconds_of_mp3(rate))

    assert seconds(part) == 12
    assert likely(part) == {AUDIO: 384}


# -- AUD-013: a WAV that was never finished ---------------------------------------------------------------------------


def _extensible(data: bytes) -> bytes:
    at = data.index(b"fmt ") + 8
    guid = struct.pack("<IHH", 1, 0, 0x10) + b"\x80\0\0\xaa\0\x38\x9b\x71"
    fmt = struct.pack("<H", 0xFFFE) + data[at + 2 : at + 16] + struct.pack("<HHI", 22, 16, 4) + guid
    whole = data[: at - 4] + struct.pack("<I", len(fmt)) + fmt + data[at + 16 :]
    return whole[:4] + struct.pack("<I", len(whole) - 8) + whole[8:]


UNFINISHED: dict[str, Callable[[], bytes]] = {
    "no length": lambda: media.wav(10, data_size=0),
    "the longest length": lambda: media.wav(10, data_size=0xFFFFFFFF),
    "a length a byte too long": lambda: media.wav(10, data_size=160_001),
    "RF64": lambda: media.wav(10, rf64=True),
    "extensible": lambda: _extensible(media.wav(10)),
    "extensible without a length": lambda: _extensible(media.wav(10, data_size=0)),
    "no length of the file either": lambda: media.wav(10, data_size=0)[:4] + bytes(4) + media.wav(10, data_size=0)[8:],
}


@pytest.mark.parametrize("kind", UNFINISHED)
def test_a_wave_without_an_end_goes_on_to_the_end_of_the_file(
    line: Preflight, transformer: Transformer, kind: str
) -> None:
    data = UNFINISHED[kind]()

    part = weighed(line, data)

    assert seconds(part) == 10.0
    assert likely(part) == {AUDIO: 320}
    assert made_s(transformer, data, "audio/wav", AudioWork(mime="audio/flac")) == pytest.approx(10, abs=0.001)
    assert made_s(transformer, data, "audio/wav", AudioWork(start_s=4)) == pytest.approx(6, abs=0.001)


# -- AUD-014: what an encoder puts before and behind ------------------------------------------------------------------


@pytest.mark.parametrize(("codec", "form"), [("aac", "mp4"), ("libmp3lame", "mp3"), ("libopus", "ogg")])
@pytest.mark.parametrize("length_s", [1, 7, 60])
def test_priming_and_padding_are_no_further_second(line: Preflight, codec: str, form: str, length_s: int) -> None:
    data = media.sound(length_s, codec, form, rate=16000)

    for model, tokens_per_s in RATES.items():
        assert likely(weighed(line, data, model=model)) == {AUDIO: length_s * tokens_per_s}


@cache
def ten_seconds_of_aac() -> bytes:
    return media.sound(10, "aac", "mp4", rate=48000)


@pytest.mark.parametrize("mime", ["audio/mp4", "audio/wav", "audio/flac", "audio/mpeg"])
@pytest.mark.parametrize("start_s", [None, 4.0])
def test_what_is_made_of_aac_lasts_no_longer_than_it_did(
    line: Preflight, transformer: Transformer, mime: str, start_s: float | None
) -> None:
    data = ten_seconds_of_aac()
    work = AudioWork(start_s=start_s, mime=None if mime == "audio/mp4" else mime)

    out, told = make_bytes(transformer, data, mime="audio/mp4", work=work)

    assert told.mime == mime
    expected = 10 - (start_s or 0)
    part = weighed(line, out, model="gemini-2.0-flash")
    assert seconds(part) == pytest.approx(expected, abs=0.0005)
    assert likely(part) == {AUDIO: 25 * expected}


# -- TOK-024: only seconds count --------------------------------------------------------------------------------------

EVERY_WAY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "wav": ("pcm_s16le", "wav", {}),
    "24 bits": ("pcm_s24le", "wav", {"rate": 96000}),
    "telephone": ("pcm_alaw", "wav", {"rate": 8000}),
    "aiff": ("pcm_s16be", "aiff", {}),
    "flac": ("flac", "flac", {"layout": "stereo"}),
    "mp3": ("libmp3lame", "mp3", {}),
    "mp3 32k": ("libmp3lame", "mp3", {"bit_rate": 32_000, "rate": 22050}),
    "mp3 320k": ("libmp3lame", "mp3", {"bit_rate": 320_000, "layout": "stereo"}),
    "mp3 variable": ("libmp3lame", "mp3", {"options": {"q": "9"}}),
    "m4a": ("aac", "ipod", {}),
    "alac": ("alac", "ipod", {}),
    "adts": ("aac", "adts", {}),
    "ogg": ("libopus", "ogg", {"rate": 48000}),
    "opus 24k": ("libopus", "ogg", {"rate": 48000, "bit_rate": 24_000}),
    "webm": ("libopus", "webm", {"rate": 48000}),
    "mka": ("aac", "matroska", {}),
}


@pytest.mark.parametrize("way", EVERY_WAY)
def test_ten_seconds_cost_the_same_however_they_are_encoded(line: Preflight, way: str) -> None:
    codec, form, options = EVERY_WAY[way]

    part = weighed(line, media.sound(10, codec, form, **options))

    assert likely(part)[AUDIO] == pytest.approx(320, abs=2)
    assert likely(part)[AUDIO] >= 320
