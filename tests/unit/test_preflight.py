"""The library's face: what it takes, what it raises, and what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import media
import weighlock
from weighlock import Controls, MediaPart, Preflight
from weighlock.errors import ConfigError, InputError, ProberUnavailable, ServiceError
from weighlock.examiner import Examiner
from weighlock.request import MediaResolution
from weighlock.settings import load


@pytest.fixture
def preflight(tmp_path: Path) -> Preflight:
    return Preflight(load(None, environ={}, cwd=tmp_path))


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    path = tmp_path / "shot.png"
    path.write_bytes(media.picture((1920, 1080)))
    return path


def test_one_path_several_and_bytes_with_a_name_are_taken(preflight: Preflight, shot: Path) -> None:
    data = shot.read_bytes()

    for parts in (shot, str(shot), [shot], MediaPart(source=data, label="shot"), iter([shot])):
        assert preflight.check(parts).total.likely == 1_100
    for buffer in (bytearray(data), memoryview(data)):
        part = MediaPart(source=buffer, label="shot")  # type: ignore[arg-type]  # taken all the same
        assert preflight.check(part).total.likely == 1_100


@pytest.mark.parametrize("parts", [b"bytes", bytearray(b"x"), [3], [None]])
def test_what_is_no_part_is_a_type_error(preflight: Preflight, parts: Any) -> None:
    with pytest.raises(TypeError, match="MediaPart"):
        preflight.check(parts)


def test_unknown_words_are_refused_and_never_ignored(preflight: Preflight, shot: Path) -> None:
    with pytest.raises(TypeError):
        preflight.check(shot, modle="gemini-2.5-flash")  # type: ignore[call-arg]  # the typo is the point
    with pytest.raises(ConfigError, match="developer or vertex"):
        preflight.check(shot, backend="vertx")
    with pytest.raises(InputError, match="media_resolution is one of"):
        Controls(media_resolution="lowww")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="negative"):
        preflight.check(shot, output_tokens=-5)
    with pytest.raises(InputError, match="is no clip"):
        preflight.check(shot, clip="sideways")


def test_values_of_enumerations_are_taken_as_their_members() -> None:
    assert Controls(media_resolution="low").media_resolution is MediaResolution.LOW  # type: ignore[arg-type]
    with pytest.raises(InputError, match="on a part only"):
        Controls(media_resolution="ultra_high")  # type: ignore[arg-type]


def test_a_clip_is_said_as_in_the_settings(preflight: Preflight, tmp_path: Path) -> None:
    song = tmp_path / "song.mp3"
    song.write_bytes(media.sound(10, "libmp3lame", "mp3"))

    with preflight:
        assert preflight.check(song, clip="last 4s").total.likely == 100


def test_nothing_to_weigh_is_admitted_or_refused_without_a_crash(preflight: Preflight) -> None:
    assert preflight.check([]).verdict.decision == "admit"
    assert preflight.check([], output_tokens=10**6).refusal is not None


def test_a_worker_that_cannot_run_is_raised_and_not_blamed_on_the_medium(
    preflight: Preflight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weighlock.codecs import Prober

    def unavailable(*_: object, **__: object) -> None:
        raise ProberUnavailable("the queue is full")

    monkeypatch.setattr(Prober, "probe", unavailable)
    film = tmp_path / "film.mp4"
    film.write_bytes(media.video(1))

    with pytest.raises(ServiceError, match="queue"):
        preflight.check(film)


def test_confinement_is_told_of_reports_that_needed_it(preflight: Preflight, tmp_path: Path, shot: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(media.video(1))

    with preflight:
        assert preflight.check(shot).confinement is None
        assert preflight.check(film).confinement is not None
        assert preflight.check(shot).confinement is None


def test_the_module_s_own_check_says_the_same(shot: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    assert weighlock.check(shot).as_dict()["total"]["likely"] == 1_100


def test_a_file_that_changes_between_look_and_probe_is_not_weighed(
    preflight: Preflight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(media.video(1))
    look = Examiner._look

    def looked(self: Examiner, part: MediaPart) -> Any:
        seen = look(self, part)
        film.write_bytes(film.read_bytes() + b"more")
        return seen

    monkeypatch.setattr(Examiner, "_look", looked)

    with preflight:
        (part,) = preflight.check(film).parts
    assert part.error is not None
    assert part.error.message == "it changed while it was being weighed"
