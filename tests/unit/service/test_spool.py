"""Uploads on disk: for whom, for how long, how many."""

from __future__ import annotations

import os
import shutil
import time
from collections import namedtuple
from pathlib import Path

import pytest

from weighlock.service.bodies import BodyRefused
from weighlock.service.spool import KEPT_S, Spool, Upload

Disk = namedtuple("Disk", "total used free")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def spool(folder: Path) -> Spool:
    return Spool(folder, most_bytes=1000)


def upload(tenant: str = "acme", declared_bytes: int | None = None) -> Upload:
    return Upload(
        tenant=tenant, client="app", endpoint=None, mime=None, display_name=None, declared_bytes=declared_bytes
    )


def begun(spool: Spool, tenant: str = "acme", data: bytes = b"") -> str:
    word = spool.begin(upload(tenant))
    with spool.opened(word) as coming, coming.taking_in(0) as write:
        write(data)
    return word


def status(spool: Spool, word: str) -> int:
    """Of an attempt to go on with it; 0 where that is possible."""
    try:
        spool.look(word)
        with spool.opened(word):
            return 0
    except BodyRefused as refused:
        return refused.status


def aged(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    for one in folder.iterdir():
        os.utime(one, (then, then))


def test_another_process_goes_on_with_it_and_one_at_a_time(spool: Spool, folder: Path) -> None:
    word = begun(spool, data=b"abc")
    other = Spool(folder, most_bytes=1000)

    with other.opened(word) as coming:
        assert (coming.size_bytes, coming.upload.tenant) == (3, "acme")
        with pytest.raises(BodyRefused) as busy, spool.opened(word):
            pass

    assert (busy.value.status, busy.value.retry_after_s) == (409, 1.0)
    assert status(spool, word) == 0


def test_a_day_later_it_is_over_and_nothing_of_it_is_left(spool: Spool, folder: Path) -> None:
    word = begun(spool, data=b"abc")
    aged(folder, KEPT_S - 60)
    spool.tidy()
    assert status(spool, word) == 0

    aged(folder, KEPT_S + 60)

    assert status(spool, word) == 404
    spool.tidy()
    assert [*folder.iterdir()] == []


def test_what_a_process_left_in_the_middle_is_erased_too_and_a_folder_that_is_not_there_is_nothing(
    spool: Spool, folder: Path
) -> None:
    spool.tidy()
    word = begun(spool)
    for name in ("0-x.part", "0-x.new"):
        (folder / name).write_bytes(b"abc")
    spool.tidy()
    assert len([*folder.iterdir()]) == 4

    aged(folder, KEPT_S + 60)
    with spool.opened(word):
        spool.tidy()
        left = {one.suffix for one in folder.iterdir()}

    assert left == {".json"}


def test_of_too_many_those_go_first_that_ended_and_then_the_oldest_and_no_other_tenants(
    spool: Spool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weighlock.service.spool._MOST_OPEN", 3)
    others = begun(spool, "initech")
    first = begun(spool)
    aged(folder, 100)
    second, ended = begun(spool), begun(spool)
    with spool.opened(ended) as coming:
        coming.end("files/abc")

    third = begun(spool)
    assert [status(spool, word) for word in (others, first, second, ended, third)] == [0, 0, 0, 404, 0]
    fourth = begun(spool)
    assert [status(spool, word) for word in (others, first, second, third, fourth)] == [0, 404, 0, 0, 0]
    with spool.opened(second):  # somebody is at it
        fifth = begun(spool)
    assert [status(spool, word) for word in (second, third, fourth, fifth)] == [0] * 4


def test_a_disk_is_not_filled_to_its_end(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    word = begun(spool, data=b"abc")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10_000, 9_400, 600))

    with pytest.raises(BodyRefused) as before:
        spool.begin(upload(declared_bytes=101))
    with spool.opened(word) as coming, coming.taking_in(3) as write:
        write(b"d" * 100)
        with pytest.raises(BodyRefused) as meanwhile:
            write(b"d" * 101)

    assert [(one.value.status, one.value.reason) for one in (before, meanwhile)] == [(503, "no_room")] * 2
    with spool.opened(word) as coming:
        assert coming.size_bytes == 103


def test_more_than_files_may_have_is_told_by_the_setting_and_more_than_was_said_by_that(spool: Spool) -> None:
    with pytest.raises(BodyRefused, match=r"safety\.max\.file") as refused:
        spool.begin(upload(declared_bytes=1001))
    assert refused.value.status == 413

    for declared, word in ((None, "safety.max.file"), (10, "declared")):
        with spool.opened(spool.begin(upload(declared_bytes=declared))) as coming:
            assert coming.most_bytes == (declared or 1000)
            assert word in coming.too_large(0).message


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"tenant": "acme"}', b"\xff"])
def test_what_nobody_wrote_to_its_end_is_no_upload(spool: Spool, folder: Path, said: bytes) -> None:
    word = begun(spool)
    (told,) = folder.glob("*.json")
    told.write_bytes(said)

    assert status(spool, word) == 404


def test_what_was_cancelled_while_somebody_opened_it_is_gone_for_both(spool: Spool, folder: Path) -> None:
    word = begun(spool)
    with spool.opened(word) as coming:
        coming.cancel()

    assert status(spool, word) == 404
    assert [*folder.iterdir()] == []


def test_what_stood_behind_an_offset_goes_when_something_is_taken_in_there(spool: Spool) -> None:
    word = begun(spool, data=b"abcdef")
    with spool.opened(word) as coming:
        with coming.taking_in(2) as write:
            write(b"X")

        assert coming.path.read_bytes() == b"abX"
