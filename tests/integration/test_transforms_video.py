"""Films made lighter: what comes out is looked at picture by picture and beep by beep, not only measured."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import films
import media
from making import make_here
from weighlock.codecs import Transformer, make_bytes
from weighlock.codecs.timeline import Timeline
from weighlock.errors import MalformedMedia, TransformFailed
from weighlock.media.facts import VideoFacts
from weighlock.media.work import Made, VideoWork

MP4 = "video/mp4"
SYNC_S = 0.040
WAYS = {"thin": VideoWork(fps=1), "exact": VideoWork(start_s=0.5), "copy": VideoWork(start_s=0.5, exact=False)}
CONTAINERS: dict[str, tuple[str, dict[str, Any]]] = {
    "mp4": (MP4, {}),
    "mov": ("video/quicktime", {}),
    "matroska": ("video/x-matroska", {}),
    "mpegts": ("video/mp2t", {}),
    "webm": ("video/webm", {"codec": "libvpx", "sound_codec": "libopus"}),
    "avi": ("video/avi", {"codec": "mpeg4", "sound_codec": "libmp3lame"}),
    "flv": ("video/x-flv", {"b_frames": 0}),
    "mpeg": ("video/mpeg", {"codec": "mpeg2video", "sound_codec": "mp2", "fps": 25}),
    "fragmented": (MP4, {"container_options": {"movflags": "frag_keyframe+empty_moov"}}),
}


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


def made(transformer: Transformer, data: bytes, work: VideoWork, mime: str = MP4) -> tuple[bytes, Made]:
    """The film that came out, which decodes to its end and is upright and even."""
    out, told = make_bytes(transformer, data, mime=mime, work=work)
    assert told.mime == MP4
    assert told.size_bytes == len(out)
    container: Any
    with av.open(io.BytesIO(out)) as container:
        for packet in container.demux():
            packet.decode()
    return out, told


def length_s(told: Made) -> float:
    assert isinstance(told.probed.facts, VideoFacts)
    return told.probed.facts.duration_s


def shows_its_moment(out: bytes, source: bytes, start_s: float = 0.0, fps: float = 20.0) -> bool:
    """Whether each picture is the one the source shows at its time, within one picture of the source."""
    shown = {number: at for at, number in films.pictures(source)}
    first = min(shown.values())
    return all(abs(shown[number] - max(first, start_s + at)) <= 1 / fps + 0.002 for at, number in films.pictures(out))


@pytest.mark.parametrize("form", CONTAINERS)
def test_an_exact_clip_shows_and_sounds_what_was_asked_for(transformer: Transformer, form: str) -> None:
    mime, options = CONTAINERS[form]
    fps = options.get("fps", 20)
    data = films.film(8, "mp4" if form == "fragmented" else form, **options)

    out, told = made(transformer, data, VideoWork(start_s=2.5, end_s=5.5), mime)

    assert length_s(told) == pytest.approx(3.0, abs=0.06)
    assert shows_its_moment(out, data, 2.5, fps)
    shown = films.pictures(out)
    assert shown[0][0] == pytest.approx(0, abs=0.001)
    assert len(shown) == pytest.approx(3 * fps, abs=1)
    assert films.sound(out)[0] == pytest.approx([at - 2.5 for at in films.sound(data)[0][3:6]], abs=SYNC_S)
    assert max(map(abs, films.offsets_s(out, fps))) <= SYNC_S
    assert told.actual_start_s is None


@pytest.mark.parametrize("form", ["mp4", "mov", "matroska", "mpegts", "fragmented"])
def test_a_copied_clip_begins_with_a_picture_that_stands_alone_and_says_where(
    transformer: Transformer, form: str
) -> None:
    mime, options = CONTAINERS[form]
    data = films.film(8, "mp4" if form == "fragmented" else form, gop=30, **options)

    out, told = made(transformer, data, VideoWork(start_s=4.0, end_s=5.9, exact=False), mime)

    assert told.actual_start_s == pytest.approx(3.0, abs=0.11)
    shown = films.pictures(out)
    assert shown[0][1] == 60
    assert [number for _, number in shown][:50] == list(range(60, 110))
    assert 115 <= shown[-1][1] <= 120
    assert shows_its_moment(out, data, told.actual_start_s or 0)
    assert max(map(abs, films.offsets_s(out, 20))) <= SYNC_S
    assert len(films.sound(out)[0]) == 3


@pytest.mark.parametrize("form", CONTAINERS)
def test_a_thinned_film_shows_at_each_instant_what_the_source_shows_then(transformer: Transformer, form: str) -> None:
    mime, options = CONTAINERS[form]
    fps = options.get("fps", 20)
    data = films.film(9, "mp4" if form == "fragmented" else form, **options)

    out, told = made(transformer, data, VideoWork(fps=0.5), mime)

    assert [at for at, _ in films.pictures(out)] == pytest.approx([0, 2, 4, 6, 8], abs=0.001)
    assert shows_its_moment(out, data, 0, fps)
    assert length_s(told) == pytest.approx(films.pictures(data)[-1][0] + 1 / fps, abs=0.06)
    assert films.sound(out)[0] == pytest.approx(films.sound(data)[0], abs=SYNC_S)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fps=st.sampled_from([0.3, 0.5, 1.0, 2.0, 3.7]), gop=st.sampled_from([1, 7, 20, 250]),
    b_frames=st.integers(0, 3), form=st.sampled_from(["mp4", "matroska", "mpegts"]),
    start=st.integers(0, 50), length=st.integers(5, 60), open_gop=st.booleans(),
)  # fmt: skip
def test_whatever_the_film_is_like_each_picture_shows_its_moment_and_decoding_less_changes_nothing(
    fps: float, gop: int, b_frames: int, form: str, start: int, length: int, open_gop: bool
) -> None:
    options = {"x264-params": "open-gop=1"} if open_gop else {}
    data = films.film(6, form, gop=gop, b_frames=b_frames, sound_codec=None, options=options)
    work = VideoWork(start_s=start / 10, end_s=min(6.0, (start + length) / 10), fps=fps)
    mime = CONTAINERS[form][0]

    out, _ = make_here(data, mime, work)
    whole, _ = make_here(data, mime, work, thrifty=False)

    assert shows_its_moment(out, data, start / 10)
    # x264 does not write the same bytes twice on a busy machine; which picture stands when is what must not differ.
    assert films.pictures(out) == films.pictures(whole)


def test_pictures_of_uneven_pace_are_shown_when_they_were(transformer: Transformer) -> None:
    times = [0, 40, 80, 700, 740, 1500, 3000, 3033, 3066, 5000]
    data = films.film(6, times_ms=times)

    clip, _ = made(transformer, data, VideoWork(start_s=1.0, end_s=4.0))
    thin, _ = made(transformer, data, VideoWork(fps=1))

    assert [(round(at, 3), n) for at, n in films.pictures(clip)] == [(0, 4), (0.5, 5), (2, 6), (2.033, 7), (2.066, 8)]
    assert [n for _, n in films.pictures(thin)] == [0, 4, 5, 6, 8, 9]
    assert max(map(abs, films.offsets_s(clip, 20, times_ms=times)[1:])) <= SYNC_S


@pytest.mark.parametrize("form", ["mp4", "matroska", "mpegts"])
@pytest.mark.parametrize(("pictures_s", "sound_s"), [(0.5, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("work", [VideoWork(start_s=1.5, end_s=4), VideoWork(fps=2), VideoWork(fps=2, end_s=4)])
def test_what_begins_late_stays_late(
    transformer: Transformer, form: str, pictures_s: float, sound_s: float, work: VideoWork
) -> None:
    data = films.film(6, form, picture_delay_s=pictures_s, sound_delay_s=sound_s)
    before = films.offsets_s(data, 20)

    out, _ = made(transformer, data, work, CONTAINERS[form][0])

    after = films.offsets_s(out, 20)
    late = before[-1]
    assert abs(abs(late) - 0.5) < 0.06 or abs(late) < 0.06
    # Thinned out, a picture may stand for half a second; what it shows at its own time is judged elsewhere.
    for offset in after[1:]:
        assert abs((offset - late + 0.5) % 1 - 0.5) <= SYNC_S


@pytest.mark.parametrize("form", ["mp4", "matroska"])
@pytest.mark.parametrize(
    "work", [VideoWork(start_s=1, end_s=6, max_bytes=10**6), VideoWork(start_s=1, end_s=6, fps=1, max_bytes=10**6)]
)
def test_the_last_picture_stands_while_sound_goes_on_so_that_a_clip_lasts_what_was_asked(
    transformer: Transformer, form: str, work: VideoWork
) -> None:
    data = films.film(6.4, form, times_ms=range(0, 5600, 50))  # pictures end 0.4 s before the clip

    out, told = made(transformer, data, work, CONTAINERS[form][0])

    assert length_s(told) == pytest.approx(5, abs=0.001)
    assert shows_its_moment(out, data, 1.0)


def test_a_last_picture_stands_no_longer_than_the_film_lasts(transformer: Transformer) -> None:
    data = films.film(6, times_ms=range(0, 5600, 50))

    _, told = made(transformer, data, VideoWork(start_s=1, end_s=60, fps=1, max_bytes=10**6))

    assert length_s(told) == pytest.approx(5, abs=0.06)


def test_a_transport_stream_that_begins_at_ten_seconds_is_counted_from_its_start(transformer: Transformer) -> None:
    data = films.film(6, "mpegts", container_options={"output_ts_offset": "10"})

    out, told = made(transformer, data, VideoWork(start_s=2, end_s=4), "video/mp2t")

    assert shows_its_moment(out, data, 2.0)
    assert length_s(told) == pytest.approx(2, abs=0.06)


def test_an_edit_list_is_honoured(transformer: Transformer) -> None:
    whole = films.film(6, gop=20, sound_codec=None)
    with av.open(io.BytesIO(whole)) as container:
        scale = Fraction(container.streams.video[0].time_base or 1).denominator
    # The first second is edited out, although it is there: times in the file count from the second one.
    data = media.patched(whole, b"elst", lambda e: _later(e, scale))
    assert films.pictures(data)[0][1] == 20

    clip, told = made(transformer, data, VideoWork(start_s=1, end_s=3))
    thin, _ = made(transformer, data, VideoWork(fps=1))

    assert [n for _, n in films.pictures(clip)] == list(range(40, 80))
    assert [n for _, n in films.pictures(thin)] == [20, 40, 60, 80, 100]
    assert length_s(told) == pytest.approx(2, abs=0.06)


def test_a_copy_ends_where_the_edit_list_does(transformer: Transformer) -> None:
    whole = films.film(6, gop=20)
    data = media.patched(whole, b"elst", lambda e: e[:8] + struct.pack(">I", 3000) + e[12:])

    out, told = made(transformer, data, VideoWork(keep_sound=False))

    assert length_s(told) == pytest.approx(3, abs=0.16)
    assert [n for _, n in films.pictures(out)][:60] == list(range(60))


def _later(elst: bytes, ticks: int) -> bytes:
    """The edit list, lasting five seconds from `ticks` later."""
    return elst[:8] + struct.pack(">II", 5000, struct.unpack_from(">I", elst, 12)[0] + ticks) + elst[16:]


def test_of_several_tracks_of_sound_the_default_one_is_kept_and_named(transformer: Transformer) -> None:
    data = films.film(3, tracks=2, default_track=1)

    for work in (VideoWork(fps=1), VideoWork(start_s=0.5, end_s=2.5), VideoWork(start_s=0.5, exact=False)):
        out, told = made(transformer, data, work)

        assert films.sound(out)[2] == pytest.approx(2000, rel=0.1)
        assert any("of 2 tracks of sound the default one was kept, track 2" in note for note in told.notes)


def test_a_film_without_sound_stays_without_and_one_with_loses_it_on_demand(transformer: Transformer) -> None:
    silent, _ = made(transformer, films.film(3, sound_codec=None), VideoWork(fps=1))
    hushed, told = made(transformer, films.film(3), VideoWork(keep_sound=False))

    for out in (silent, hushed):
        with av.open(io.BytesIO(out)) as container:
            assert not container.streams.audio
    assert len(films.pictures(hushed)) == 60
    assert told.actual_start_s is None


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize(
    "work", [VideoWork(fps=1), VideoWork(start_s=0.5, end_s=1.5), VideoWork(fps=1, max_width_px=40)]
)
def test_a_turned_film_comes_out_upright(transformer: Transformer, rotation: int, work: VideoWork) -> None:
    data = films.film(2, rotation=rotation, corner=True)

    out, told = made(transformer, data, work)

    corners = {0: "upper left", 90: "upper right", 180: "lower right", 270: "lower left"}
    assert films.white_corner(out) == corners[rotation]
    facts = told.probed.facts
    assert isinstance(facts, VideoFacts)
    assert facts.rotation_deg == 0
    wide, high = facts.width_px, facts.height_px
    assert (wide < high) == (rotation in (90, 270))
    assert not work.max_width_px or wide <= 40


def test_sound_that_says_what_it_is_in_its_packets_alone_is_copied_too(transformer: Transformer) -> None:
    data = films.film(2, "mpegts")

    out, _ = made(transformer, data, VideoWork(), "video/mp2t")

    assert [n for _, n in films.pictures(out)] == list(range(40))
    assert max(map(abs, films.offsets_s(out, 20))) <= SYNC_S


def test_a_turned_film_that_is_copied_stays_turned(transformer: Transformer) -> None:
    _, told = made(transformer, films.film(2, rotation=90), VideoWork(start_s=0.5, exact=False))

    assert isinstance(told.probed.facts, VideoFacts)
    assert told.probed.facts.rotation_deg == 90


@pytest.mark.parametrize(
    ("size", "work", "expected"),
    [
        ((175, 99), VideoWork(fps=1), (174, 98)),
        ((175, 99), VideoWork(fps=1, max_width_px=64), (64, 36)),
        ((160, 96), VideoWork(fps=1, max_height_px=48), (80, 48)),
        ((160, 96), VideoWork(fps=1, max_width_px=1000), (160, 96)),
        ((160, 96), VideoWork(max_width_px=80), (80, 48)),
    ],
)
def test_sides_come_out_even_and_within_bounds(
    transformer: Transformer, size: tuple[int, int], work: VideoWork, expected: tuple[int, int]
) -> None:
    data = films.film(2, size=size, pixel_format="yuv444p")

    out, _ = made(transformer, data, work)

    assert films.size_of(out) == expected
    assert shows_its_moment(out, data)


def test_pixels_come_out_square(transformer: Transformer) -> None:
    out, _ = made(transformer, films.film(2, pixel_shape=Fraction(4, 3)), VideoWork(fps=1))

    assert films.size_of(out) == (212, 96)


def test_pictures_without_times_are_shown_at_an_even_pace_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timeline, "reliable", False)
    data = films.film(4, sound_codec=None)

    thin, told = make_here(data, MP4, VideoWork(fps=1, start_s=0.5))
    clip, _ = make_here(data, MP4, VideoWork(start_s=1, end_s=2))

    assert [n for _, n in films.pictures(thin)] == [10, 30, 50, 70]
    assert [n for _, n in films.pictures(clip)] == list(range(20, 40))
    assert "an even pace was assumed" in told.notes[0]


@pytest.mark.parametrize("form", ["matroska", "mpegts", "fragmented"])
@pytest.mark.parametrize(
    "work",
    [VideoWork(fps=1), VideoWork(start_s=0.5), VideoWork(start_s=0.5, exact=False)],
    ids=["thin", "exact", "copy"],
)
def test_of_a_film_cut_off_what_is_there_is_saved(transformer: Transformer, form: str, work: VideoWork) -> None:
    mime, options = CONTAINERS[form]
    whole = films.film(6, "mp4" if form == "fragmented" else form, **options)

    out, told = made(transformer, whole[: len(whole) * 2 // 3], work, mime)

    assert shows_its_moment(out, whole, told.actual_start_s or (0.5 if work.exact and not work.fps else 0.0))
    assert 2 < films.pictures(out)[-1][0] < 5


@pytest.mark.parametrize(
    "work",
    [VideoWork(fps=1), VideoWork(start_s=0.5), VideoWork(start_s=0.5, exact=False)],
    ids=["thin", "exact", "copy"],
)
def test_what_is_lost_of_a_film_whose_end_is_missing_is_said(transformer: Transformer, work: VideoWork) -> None:
    whole = media.header_first(films.film(6))

    out, told = made(transformer, whole[: len(whole) * 2 // 3], work)

    assert 2 < films.pictures(out)[-1][0] < 5
    assert any("the last" in note and "could not be" in note for note in told.notes)


def test_a_broken_stretch_is_passed_over(transformer: Transformer) -> None:
    data = films.film(6, gop=20, sound_codec=None)
    whole = bytearray(data)
    start = whole.index(b"mdat") + (len(whole) - whole.index(b"mdat")) // 2
    whole[start : start + 400] = bytes(400)

    out, told = made(transformer, bytes(whole), VideoWork(fps=2))

    assert shows_its_moment(out, data) or told.notes
    assert len(films.pictures(out)) >= 10


def test_a_clip_past_the_end_is_refused_and_one_across_it_is_shortened(transformer: Transformer) -> None:
    data = films.film(3)

    with pytest.raises(TransformFailed, match="nothing lies between"):
        make_bytes(transformer, data, mime=MP4, work=VideoWork(start_s=4))
    _, told = made(transformer, data, VideoWork(start_s=1, end_s=90))

    assert length_s(told) == pytest.approx(2, abs=0.06)


def test_the_same_work_on_the_same_film_gives_the_same_bytes(transformer: Transformer) -> None:
    data = films.film(3)

    for work in (VideoWork(fps=1), VideoWork(start_s=0.5, end_s=2), VideoWork(start_s=1, exact=False)):
        assert made(transformer, data, work)[0] == made(transformer, data, work)[0]


def test_the_bytes_do_not_depend_on_what_memory_held_before(tmp_path: Path) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(films.film(6))
    script = (
        "import hashlib, sys; from pathlib import Path; from making import make_here\n"
        "from weighlock.media.work import VideoWork\n"
        "data = Path(sys.argv[1]).read_bytes()\n"
        "print([hashlib.sha256(make_here(data, 'video/mp4', work)[0]).hexdigest()"
        " for work in (VideoWork(fps=3), VideoWork(start_s=0.2))])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    said = {
        subprocess.run(
            [sys.executable, "-c", script, str(source)], check=True, capture_output=True,
            env={**environment, "MALLOC_PERTURB_": fill},
        ).stdout
        for fill in ("50", "100", "200")
    }  # fmt: skip

    assert len(said) == 1


def test_tags_are_kept_or_stripped(transformer: Transformer) -> None:
    written = io.BytesIO()
    source: Any
    with av.open(io.BytesIO(films.film(1))) as source, av.open(written, "w", format="mp4") as target:
        target.metadata["comment"] = "taken at home"
        stream = target.add_stream_from_template(source.streams.video[0], opaque=True)
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)

    for work in (VideoWork(fps=1), VideoWork(keep_sound=False)):
        stripped = VideoWork(fps=work.fps, keep_sound=work.keep_sound, strip_metadata=True)

        assert b"taken at home" in made(transformer, written.getvalue(), work)[0]
        assert b"taken at home" not in made(transformer, written.getvalue(), stripped)[0]


def test_a_film_of_no_picture_that_decodes_is_malformed(transformer: Transformer) -> None:
    whole = films.film(2, sound_codec=None)
    at = whole.index(b"mdat") + 4
    end = at - 8 + int.from_bytes(whole[at - 8 : at - 4], "big")

    with pytest.raises((MalformedMedia, TransformFailed)):
        make_bytes(transformer, whole[:at] + bytes(end - at) + whole[end:], mime=MP4, work=VideoWork(fps=1))
