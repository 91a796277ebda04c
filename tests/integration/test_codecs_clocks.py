"""Files whose clock, or whose header, makes twenty seconds or more look like less: through the confined worker."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest

import media
from weighlock.codecs import Prober, probe_bytes
from weighlock.errors import MalformedMedia
from weighlock.media.facts import AudioFacts, FactSource, Probed, VideoFacts
from weighlock.request import Modality

TWENTY, MINUTE = 20.0, 60.0


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    with Prober() as one:
        yield one


@pytest.fixture(scope="module")
def wave() -> bytes:
    return media.sound(TWENTY, "pcm_s16le", "wav")


def heard(prober: Prober, data: bytes, mime: str = "audio/wav") -> Probed:
    found = probe_bytes(prober, data, mime=mime, modality=Modality.AUDIO)
    assert isinstance(found.facts, AudioFacts)
    return found


def seen(prober: Prober, data: bytes) -> tuple[VideoFacts, list[str]]:
    found = probe_bytes(prober, data, mime="video/x-matroska", modality=Modality.VIDEO)
    assert isinstance(found.facts, VideoFacts)
    return found.facts, [anomaly.code for anomaly in found.anomalies]


@pytest.mark.parametrize(
    ("fields", "truth_s"),
    [
        ({"block": 200}, 20), ({"block": 65535}, 20), ({"bits": 8}, 40), ({"bits": 32}, 10), ({"tag": 6}, 40),
        ({"tag": 7}, 40), ({"channels": 100}, 0.2), ({"byte_rate": 9_000_000}, 20),
        ({"block": 65535, "byte_rate": 0xFFFFFFFF}, 20),
    ],
    ids=str,
)  # fmt: skip
def test_a_wave_header_that_lies_is_flagged_and_never_shortens_what_a_decoder_plays(
    prober: Prober, wave: bytes, fields: dict[str, int], truth_s: float
) -> None:
    found = heard(prober, media.with_wave_format(wave, **fields))
    assert isinstance(found.facts, AudioFacts)

    assert found.facts.duration_high_s >= 0.95 * truth_s
    assert found.facts.duration_high_s >= found.facts.duration_s == pytest.approx(truth_s)
    assert [anomaly.code for anomaly in found.anomalies] == ["duration_mismatch"]


@pytest.mark.parametrize("tag", [2, 0x11, 0x55, 0x31, 0x2000])
@pytest.mark.parametrize("byte_rate", [88_200, 0xFFFFFFFF])
def test_a_large_wave_never_lasts_no_time_under_any_tag(prober: Prober, wave: bytes, tag: int, byte_rate: int) -> None:
    try:
        found = heard(prober, media.with_wave_format(wave, tag=tag, byte_rate=byte_rate))
    except MalformedMedia:
        return
    assert isinstance(found.facts, AudioFacts)
    assert found.facts.duration_high_s >= 1.0  # 1.7 MB of it
    assert found.anomalies or found.facts.duration_s >= 0.95 * TWENTY


@pytest.mark.parametrize("tag", [2, 0x11, 0x55])
def test_a_small_wave_of_another_tag_is_as_long_as_its_byte_rate_says(prober: Prober, tag: int) -> None:
    found = heard(prober, media.with_wave_format(media.wav(3), tag=tag))
    assert isinstance(found.facts, AudioFacts)

    assert found.facts.duration_high_s >= 3.0
    assert found.anomalies


@pytest.mark.parametrize("tag", [2, 0x11, 0x55])
def test_a_large_w64_never_lasts_no_time(prober: Prober, tag: int) -> None:
    data = media.sound(TWENTY, "pcm_s16le", "w64")
    at = data.index(b"fmt ") + 24

    with pytest.raises(MalformedMedia, match="densely"):
        heard(prober, data[:at] + struct.pack("<H", tag) + data[at + 2 :])


@pytest.mark.parametrize("codec", ["pcm_u8", "pcm_s24le", "pcm_alaw", "adpcm_ms", "adpcm_ima_wav", "libmp3lame", "ac3"])
def test_an_honest_wave_of_any_tag_is_not_called_odd(prober: Prober, codec: str) -> None:
    found = heard(prober, media.sound(TWENTY, codec, "wav"))
    assert isinstance(found.facts, AudioFacts)

    assert found.facts.duration_s == pytest.approx(TWENTY, abs=0.06)
    assert found.anomalies == ()


@pytest.mark.parametrize("size", [1000, 88_200, 1_000_000])
def test_a_wave_with_more_behind_its_data_than_it_says_is_opened(prober: Prober, wave: bytes, size: int) -> None:
    """FFmpeg takes what follows for a chunk and skips it, which leads far behind the end of the file."""
    at = wave.index(b"data") + 4
    found = heard(prober, wave[:at] + struct.pack("<I", size) + b"\x37" * 8 + wave[at + 12 :])
    assert isinstance(found.facts, AudioFacts)

    assert found.facts.duration_s == pytest.approx(size / 88_200, abs=1e-3)
    assert found.facts.duration_high_s == pytest.approx(TWENTY)
    assert found.anomalies


@pytest.mark.parametrize("form", ["wav", "aiff", "flac", "caf", "ogg", "adts", "mp3"])
def test_sound_cut_off_anywhere_is_read_to_where_it_goes_or_refused(prober: Prober, form: str) -> None:
    codec = {"aiff": "pcm_s16be", "caf": "pcm_s16be", "wav": "pcm_s16le", "ogg": "flac", "flac": "flac"}.get(form)
    data = media.sound(5.0, codec or {"adts": "aac", "mp3": "libmp3lame"}[form], form)
    mime = {"caf": "audio/x-caf", "adts": "audio/aac", "mp3": "audio/mpeg"}.get(form, f"audio/{form}")

    for share in (0.9, 0.5):
        found = heard(prober, data[: int(len(data) * share)], mime)
        assert isinstance(found.facts, AudioFacts)
        assert found.facts.duration_high_s >= 5.0 * share * 0.8


CLOCKS: dict[str, Callable[[int, int], int]] = {
    "all at the start": lambda number, said: said * (number == 0),
    "a tick apart": min,
    "ten times too fast": lambda _, said: said // 10,
    "squeezed in the middle": lambda number, said: said if number < 2 else 2000 + number,
    "back to the start at the end": lambda number, said: said if number < 4 else 0,
}


@pytest.fixture(scope="module")
def films() -> dict[tuple[str, bool], bytes]:
    """By codec of the sound, and by whether the film is of few clusters or of many."""
    return {
        (codec, many): media.video(
            MINUTE, "matroska", sound_s=MINUTE, sound_codec=codec, options={"g": "10"},
            container_options={"cluster_time_limit": "1000" if many else "5000"},
        )
        for codec in ("libopus", "flac", "aac", "libmp3lame")
        for many in (False, True)
    }  # fmt: skip


@pytest.mark.parametrize("many", [False, True], ids=["few clusters", "many clusters"])
@pytest.mark.parametrize("codec", ["libopus", "flac", "aac", "libmp3lame"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_sound_and_frames_win_over_the_clock_of_matroska_s_clusters(
    prober: Prober, films: dict[tuple[str, bool], bytes], clock: str, codec: str, many: bool
) -> None:
    lying = media.with_cluster_times(films[codec, many], CLOCKS[clock])
    facts, anomalies = seen(prober, media.with_matroska_duration(lying, 1000.0))

    assert facts.duration_high_s >= 0.95 * MINUTE
    assert facts.audio_duration_high_s is not None
    assert facts.audio_duration_high_s >= 0.95 * MINUTE
    assert facts.duration_source is FactSource.SCANNED
    assert anomalies == ["duration_mismatch"]


@pytest.mark.parametrize("codec", ["libopus", "flac", "aac", "libmp3lame"])
@pytest.mark.parametrize("nanoseconds", [1000, 100_000, 250_000])
def test_no_time_scale_shortens_a_long_film(
    prober: Prober, films: dict[tuple[str, bool], bytes], codec: str, nanoseconds: int
) -> None:
    facts, anomalies = seen(prober, media.with_matroska_scale(films[codec, True], nanoseconds))

    assert facts.duration_high_s >= 0.95 * MINUTE
    assert anomalies == ["duration_mismatch"]


@pytest.mark.parametrize("codec", ["libopus", "flac", "aac", "libmp3lame"])
def test_an_honest_long_film_is_read_by_its_ends(
    prober: Prober, films: dict[tuple[str, bool], bytes], codec: str
) -> None:
    facts, anomalies = seen(prober, films[codec, True])

    assert facts.duration_s == pytest.approx(MINUTE, abs=0.1)
    assert facts.duration_source is FactSource.HEADER
    assert anomalies == []


def test_silent_film_frames_are_held_against_their_stated_pace(prober: Prober) -> None:
    film = media.video(TWENTY, "matroska")
    facts, anomalies = seen(prober, media.with_cluster_times(film, CLOCKS["all at the start"]))

    assert facts.duration_high_s >= 0.95 * TWENTY
    assert anomalies == ["duration_mismatch"]


@pytest.mark.parametrize("codec", ["libopus", "flac"])
@pytest.mark.parametrize("factor", [2, 4, 1000])
def test_an_mp4_clock_too_fast_for_its_packets_is_corrected(prober: Prober, codec: str, factor: int) -> None:
    honest = media.sound(TWENTY, codec, "mp4", rate=48000)
    found = heard(prober, media.with_fast_clock(honest, factor), "audio/mp4")
    assert isinstance(found.facts, AudioFacts)

    assert heard(prober, honest, "audio/mp4").anomalies == ()
    assert found.facts.duration_high_s >= 0.95 * TWENTY
    assert [anomaly.code for anomaly in found.anomalies] == ["duration_mismatch"]


@pytest.mark.parametrize("codec", ["libopus", "flac"])
def test_a_film_s_sound_is_counted_though_its_pictures_are_skipped(prober: Prober, codec: str) -> None:
    film = media.video(TWENTY, "mp4", sound_s=TWENTY, sound_codec=codec)
    facts = probe_bytes(prober, media.with_fast_clock(film, 3), mime="video/mp4", modality=Modality.VIDEO).facts
    assert isinstance(facts, VideoFacts)

    assert facts.audio_duration_high_s == pytest.approx(TWENTY, abs=0.1)
    assert facts.duration_high_s >= 0.95 * TWENTY
    assert facts.frames == 200
