"""What a preflight made it does not make again: by content, for itself alone, and never of a file that changed."""

from __future__ import annotations

import base64
import io
import os
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import media
from traps import preflight
from weighlock.codecs.transformer import Transformer
from weighlock.encoded import Base64
from weighlock.errors import MalformedMedia
from weighlock.media.work import AudioWork, ImageWork, Made
from weighlock.preflight import Preflight
from weighlock.request import MediaPart, Request, Turn

ENCODED = Base64(base64.b64encode(media.picture((64, 48), "GIF")).decode())
PNG = ImageWork(mime="image/png", max_width_px=32)
GIF = media.picture((64, 48), "GIF")


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Preflight]:
    with preflight(tmp_path) as one:
        yield one


@pytest.fixture
def deeds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the worker was asked to make."""
    asked: list[str] = []
    make = Transformer.make

    def noted(self: Transformer, fd: int, **words: Any) -> Made:
        asked.append(type(words["work"]).__name__)
        return make(self, fd, **words)

    monkeypatch.setattr(Transformer, "make", noted)
    return asked


def test_the_same_bytes_and_work_are_made_once_wherever_they_lie(
    line: Preflight, deeds: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.gif").write_bytes(GIF)
    sources: list[Any] = [
        GIF,
        tmp_path / "a.gif",
        ENCODED,
        io.BytesIO(GIF),
    ]

    made = [line.made(MediaPart(source=source, label=f"{n}.gif"), PNG) for n, source in enumerate(sources)]

    assert deeds == ["ImageWork"]
    assert all(one is made[0] for one in made)


def test_other_bytes_another_work_or_another_preflight_are_another_deed(
    line: Preflight, deeds: list[str], tmp_path: Path
) -> None:
    line.made(MediaPart(source=GIF, label="a.gif"), PNG)
    line.made(MediaPart(source=media.picture((65, 48), "GIF"), label="a.gif"), PNG)
    line.made(MediaPart(source=GIF, label="a.gif"), replace(PNG, max_width_px=16))
    (tmp_path / "other").mkdir()
    with preflight(tmp_path / "other") as other:
        other.made(MediaPart(source=GIF, label="a.gif"), PNG)

    assert len(deeds) == 4


def test_two_threads_that_ask_at_once_have_it_done_once(line: Preflight, deeds: list[str]) -> None:
    part, work = MediaPart(source=media.wav(30), label="a.wav"), AudioWork(mime="audio/flac")

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: line.made(part, work), range(4)))

    assert deeds == ["AudioWork"]
    assert {id(one) for one in made} == {id(made[0])}


def test_progress_ends_at_one_though_nothing_is_done(line: Preflight) -> None:
    told: list[float] = []
    part = MediaPart(source=GIF, label="a.gif")
    line.made(part, PNG)

    line.made(part, PNG, told.append)

    assert told == [1.0]


def test_a_worker_that_is_closed_takes_what_it_made_along(line: Preflight, deeds: list[str]) -> None:
    part = MediaPart(source=GIF, label="a.gif")
    line.made(part, PNG)

    line.close()
    line.made(part, PNG)

    assert len(deeds) == 2


def planned(line: Preflight, path: Path) -> Any:
    part = MediaPart(source=path, label=path.name)
    fitted = line.fit(Request(turns=(Turn(role="user", parts=(part,)),)))
    assert fitted.works
    return fitted


def shorter(path: Path) -> None:
    path.write_bytes(media.picture((32, 24), "GIF"))


def missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(("change", "said"), [(shorter, "changed since it was weighed"), (missing, "no such file")])
def test_a_file_that_is_no_longer_what_was_planned_for_is_refused(
    line: Preflight, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(GIF)
    fitted = planned(line, path)

    change(path)

    with pytest.raises(ValueError, match=said):
        line.carry_out(fitted)


def test_a_file_written_to_while_it_is_worked_on_is_refused_and_not_kept(
    line: Preflight, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(GIF)
    make = Transformer.make

    def meddled(self: Transformer, fd: int, **words: Any) -> Made:
        with path.open("r+b") as file:
            file.write(GIF[:1])
        os.utime(path, ns=(0, 0))
        return make(self, fd, **words)

    monkeypatch.setattr(Transformer, "make", meddled)
    with pytest.raises(MalformedMedia, match="changed while it was being worked on"):
        line.made(MediaPart(source=path, label="a.gif"), PNG)
    monkeypatch.undo()

    assert line.made(MediaPart(source=path, label="a.gif"), PNG)[1].mime == "image/png"


def test_a_large_file_is_never_in_memory(line: Preflight, tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(GIF)
    with path.open("r+b") as file:
        file.truncate(200_000_000)
    line.made(MediaPart(source=GIF, label="warm"), PNG)

    tracemalloc.start()
    try:
        line.made(MediaPart(source=path, label="a.gif"), PNG)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
