"""A window shows the same bytes whether they lie in memory or in a file, and never asks for much."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import pytest

from weighlock.mime import Window, sniff
from weighlock.mime.window import MAX_READ_BYTES, MAX_READS

if TYPE_CHECKING:
    from pathlib import Path

DATA = bytes(range(256)) * 100


@pytest.mark.parametrize("head_bytes", [0, 1, 100, 4096, len(DATA)])
@pytest.mark.parametrize("size", [len(DATA), None])
@pytest.mark.parametrize(("offset", "n"), [(0, 10), (90, 20), (4090, 20), (20_000, 700), (25_590, 50), (30_000, 5)])
def test_every_place_can_be_seen(head_bytes: int, size: int | None, offset: int, n: int) -> None:
    window = Window(DATA[:head_bytes], size, lambda at, length: DATA[at : at + length])

    assert window.at(offset, n) == DATA[offset : offset + n]


@pytest.mark.parametrize(("offset", "n"), [(-1, 4), (0, 0), (0, -3), (1 << 70, 8)])
def test_places_outside_are_empty(offset: int, n: int) -> None:
    assert Window.of(DATA).at(offset, n) == b""


def test_without_a_reader_only_the_head_is_seen() -> None:
    window = Window(DATA[:100], len(DATA))

    assert window.at(90, 20) == DATA[90:100]
    assert window.at(200, 20) == b""


def test_reads_are_few_and_then_the_medium_seems_to_end() -> None:
    reads: list[int] = []

    def read_at(offset: int, n: int) -> bytes:
        reads.append(n)
        return bytes(n)

    window = Window(b"", None, read_at)
    seen = [window.at(number << 20, 20_000) for number in range(1000)]

    assert len(reads) <= MAX_READS
    assert sum(reads) <= MAX_READ_BYTES
    assert seen[-1] == b""


def test_a_reader_that_gives_too_much_is_cut() -> None:
    assert Window(b"", 10_000, lambda _offset, _n: bytes(50_000)).at(0, 5) == bytes(5)
    assert len(Window(b"", 10_000, lambda _offset, _n: bytes(50_000)).at(9_990, 500)) == 10


def test_what_the_reader_raises_passes_through() -> None:
    def read_at(_offset: int, _n: int) -> bytes:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        sniff(Window(b"\0\0\x10\0ftypisom" + bytes(20), 1 << 20, read_at))


def test_memory_of_any_kind_will_do(tmp_path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + bytes(5000)
    path = tmp_path / "x.bin"
    path.write_bytes(png)

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        answers = {sniff(png), sniff(bytearray(png)), sniff(memoryview(png)), sniff(Window.of(mapped))}

    assert [answer.mime for answer in answers] == ["image/png"]


def test_an_empty_head_is_read_for() -> None:
    assert sniff(Window(b"", None, lambda at, n: b"%PDF-1.4\n1 0 obj\n"[at : at + n])).mime == "application/pdf"
