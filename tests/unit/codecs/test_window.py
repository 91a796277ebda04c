"""The medium as a demuxer sees it: a file that gives no more than was asked for."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import pytest

from weighlock.codecs import descriptor_of
from weighlock.codecs.window import Window


@pytest.fixture
def window() -> Iterator[Window]:
    with descriptor_of(b"0123456789") as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        yield Window(view)


@pytest.mark.parametrize("asked", [-1, 0, 1, 7, 10, 11, 1 << 40])
def test_a_read_gives_at_most_what_was_asked_for(window: Window, asked: int) -> None:
    assert window.read(asked) == b"0123456789"[: max(0, asked)]
    assert window.tell() == min(10, max(0, asked))


def test_a_place_behind_the_end_is_reached_and_empty(window: Window) -> None:
    assert window.seek(1 << 50) == window.tell() == 1 << 50
    assert window.read(5) == b""
    assert window.seek(-3, os.SEEK_END) == 7
    assert window.read(5) == b"789"
    assert window.seek(-9, os.SEEK_CUR) == 1


def test_a_place_before_the_start_is_an_error_as_with_a_file(window: Window) -> None:
    with pytest.raises(OSError, match="nvalid"):
        window.seek(-11, os.SEEK_END)


def test_it_is_for_reading_only(window: Window) -> None:
    assert (window.readable(), window.seekable(), window.writable()) == (True, True, False)
