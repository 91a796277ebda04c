"""Sound cut, converted, and taken out of films: the beeps stand where they stood."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import films
import media
from weighlock.codecs import Transformer, make_bytes
from weighlock.codecs.pcm import Clock, Line
from weighlock.errors import TransformFailed, UnsupportedMedia
from weighlock.media.facts import AudioFacts
from weighlock.media.work import AudioWork, Made

SYNC_S = 0.005
FORMS = {
    "audio/flac": ("flac", "flac"), "audio/mpeg": ("libmp3lame", "mp3"), "audio/wav": ("pcm_s16le", "wav"),
    "audio/mp4": ("aac", "mp4"), "audio/ogg": ("libopus", "ogg"), "audio/aiff": ("pcm_s16be", "aiff"),
    "audio/webm": ("libopus", "webm"), "audio/x-matroska": ("aac", "matroska"), "audio/aac": ("aac", "adts"),
}  # fmt: skip


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


def made(transformer: Transformer, data: bytes, work: AudioWork, mime: str) -> tuple[bytes, Made]:
    return make_bytes(transformer, data, mime=mime, work=work)


def length_s(told: Made) -> float:
    assert isinstance(told.probed.facts, AudioFacts)
    return told.probed.facts.duration_s


@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("target", ["audio/flac", "audio/mpeg", "audio/wav"])
def test_a_clip_of_sound_is_cut_where_it_was_asked_for(transformer: Transformer, source: str, target: str) -> None:
    data = films.beeps(6, *FORMS[source])
    before = films.sound(data)[0]

    out, told = made(transformer, data, AudioWork(start_s=1.5, end_s=4.5, mime=target), source)

    assert told.mime == target
    assert length_s(told) == pytest.approx(3.0, abs=0.03)
    assert films.sound(out)[0] == pytest.approx([at - 1.5 for at in before[2:5]], abs=SYNC_S)


@pytest.mark.parametrize("source", FORMS)
def test_sound_that_is_kept_as_it_is_is_copied(transformer: Transformer, source: str) -> None:
    data = films.beeps(4, *FORMS[source])

    out, told = made(transformer, data, AudioWork(), source)

    assert films.sound(out)[0] == pytest.approx(films.sound(data)[0], abs=SYNC_S)
    kept = {"audio/webm": "audio/ogg", "audio/x-matroska": "audio/mp4"}
    assert told.mime == kept.get(source, source)
    assert length_s(told) == pytest.approx(4, abs=0.05)


@pytest.mark.parametrize("target", [None, "audio/flac", "audio/mpeg", "audio/wav"])
@pytest.mark.parametrize(("pictures_s", "sound_s"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)])
def test_the_sound_of_a_film_keeps_the_film_s_time(
    transformer: Transformer, target: str | None, pictures_s: float, sound_s: float
) -> None:
    data = films.film(5, picture_delay_s=pictures_s, sound_delay_s=sound_s)

    out, told = made(transformer, data, AudioWork(mime=target), "video/mp4")

    assert films.sound(out)[0] == pytest.approx(films.sound(data)[0], abs=SYNC_S)
    assert length_s(told) == pytest.approx(5, abs=0.05)


def test_sound_of_a_transport_stream_is_taken_out(transformer: Transformer) -> None:
    data = films.film(5, "mpegts")

    out, told = made(transformer, data, AudioWork(start_s=1.5), "video/mp2t")

    assert told.mime == "audio/mp4"
    assert films.sound(out)[0] == pytest.approx([at - 1.5 for at in films.sound(data)[0][2:]], abs=SYNC_S)


def test_of_several_tracks_the_default_one_is_taken_out(transformer: Transformer) -> None:
    out, told = made(transformer, films.film(3, tracks=2, default_track=1), AudioWork(mime="audio/wav"), "video/mp4")

    assert films.sound(out)[2] == pytest.approx(2000, rel=0.1)
    assert "track 2" in told.notes[0]


@pytest.mark.parametrize(("codec", "form", "mime"), [("flac", "flac", "audio/flac"), ("pcm_s24le", "wav", "audio/wav")])
def test_stereo_and_fine_samples_survive_where_nothing_is_lost(
    transformer: Transformer, codec: str, form: str, mime: str
) -> None:
    data = media.sound(3, codec, form, rate=96000, layout="stereo")

    _, told = made(transformer, data, AudioWork(start_s=1, end_s=2), mime)

    facts = told.probed.facts
    assert isinstance(facts, AudioFacts)
    assert (facts.channels, facts.sample_rate_hz) == (2, 96000)
    assert facts.duration_s == pytest.approx(1.0, abs=0.001)


def test_a_rate_mp3_does_not_know_is_changed(transformer: Transformer) -> None:
    data = media.sound(3, "pcm_s16le", "wav", rate=96000, layout="stereo")

    _, told = made(transformer, data, AudioWork(mime="audio/mpeg"), "audio/wav")

    facts = told.probed.facts
    assert isinstance(facts, AudioFacts)
    assert (facts.channels, facts.sample_rate_hz) == (2, 48000)
    assert facts.duration_s == pytest.approx(3.0, abs=0.05)


def test_of_sound_cut_off_what_is_there_is_saved(transformer: Transformer) -> None:
    for mime, (codec, form) in FORMS.items():
        data = films.beeps(6, codec, form)
        if mime == "audio/mp4":
            data = media.header_first(data)

        out, told = made(transformer, data[: len(data) * 2 // 3], AudioWork(mime="audio/wav"), mime)

        assert 1.5 < films.sound(out)[1] < 5.5, mime
        assert told.size_bytes == len(out)


def test_what_cannot_be_is_refused(transformer: Transformer) -> None:
    song, silent = films.beeps(2, "flac", "flac"), films.film(2, sound_codec=None)

    with pytest.raises(UnsupportedMedia, match="is not written here"):
        made(transformer, song, AudioWork(mime="audio/x-musepack"), "audio/flac")
    with pytest.raises(TransformFailed, match="no sound"):
        made(transformer, silent, AudioWork(), "video/mp4")
    with pytest.raises(TransformFailed, match="nothing lies between"):
        made(transformer, song, AudioWork(start_s=3), "audio/flac")


def test_tags_are_kept_or_stripped(transformer: Transformer) -> None:
    data = media.sound_with_cover(2)
    assert b"APIC" in data

    for work in (AudioWork(strip_metadata=True), AudioWork()):
        out, told = made(transformer, data, work, "audio/mpeg")

        assert b"APIC" not in out
        assert length_s(told) == pytest.approx(2, abs=0.06)


@given(
    pieces=st.lists(st.tuples(st.integers(-2000, 9000), st.integers(1, 3000)), min_size=1, max_size=40),
    end=st.none() | st.integers(0, 20_000),
)
def test_a_line_of_sound_has_no_gap_and_never_passes_its_end(pieces: list[tuple[int, int]], end: int | None) -> None:
    line = Line(slack=100, end=end)
    laid = 0

    for at, count in pieces:
        piece = line.lay(at, count)
        laid += piece.silence + piece.take
        assert 0 <= piece.skip <= count
        assert piece.take <= count - piece.skip

        assert laid == line.next
    assert end is None or line.next <= end


def test_a_clock_that_stands_still_or_leaps_is_not_believed() -> None:
    still, leaps, pauses = (Clock(leap=1000, farthest=100_000) for _ in range(3))

    assert [still.mend(at, 500) for at in (0, 1, 2, 3)] == [0, 500, 1000, 1500]
    assert [leaps.mend(at, 500) for at in (0, 500, 10**12, 10**12 + 500)] == [0, 500, 1000, 1500]
    assert [pauses.mend(at, 500) for at in (0, 500, 50_000, None)] == [0, 500, 50_000, 50_500]
