from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from weighlock.codecs.source import HEAD_BYTES, open_source
from weighlock.errors import MalformedMedia, MediaTooLarge, UnreadableSource
from weighlock.request import MediaPart

ROOM = 1 << 20


def part(source: Path | bytes) -> MediaPart:
    return MediaPart(source=source, label="medium")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208


@pytest.mark.parametrize("as_path", [True, False])
def test_a_path_and_its_bytes_read_alike(tmp_path: Path, as_path: bool) -> None:
    data = bytes(range(256)) * 40
    path = tmp_path / "medium"
    path.write_bytes(data)

    with open_source(part(path if as_path else data), max_bytes=ROOM) as source:
        assert source.size_bytes == len(data)
        assert source.head == data[:HEAD_BYTES]
        assert source.read_at(5_000, 10) == data[5_000:5_010]
        assert source.read_at(len(data) - 2, 10) == data[-2:]
        assert os.pread(source.descriptor(), 10, 5_000) == data[5_000:5_010]


def test_nothing_stays_open_whatever_happens(tmp_path: Path) -> None:
    path = tmp_path / "medium"
    path.write_bytes(b"x" * 100)
    before = open_descriptors()

    for source in (path, b"x" * 100, tmp_path, tmp_path / "missing", b"", b"x" * 2000):
        try:
            with open_source(part(source), max_bytes=1000) as opened:
                opened.descriptor()
        except (UnreadableSource, MalformedMedia, MediaTooLarge):
            pass

    assert open_descriptors() == before


def test_a_file_as_big_as_the_bound_passes_and_one_byte_more_does_not(tmp_path: Path) -> None:
    path = tmp_path / "medium"
    path.write_bytes(b"x" * 101)

    with open_source(part(path), max_bytes=101):
        pass
    with (
        pytest.raises(MediaTooLarge, match=r"101 bytes, bound 100 \(safety.max.file\)"),
        open_source(part(path), max_bytes=100),
    ):
        pass


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    (tmp_path / "self").symlink_to("self")
    expected = {
        tmp_path / "pipe": "FIFO",
        tmp_path: "folder",
        tmp_path / "socket": "socket",
        Path("/dev/null"): "device",
        tmp_path / "missing": "no such file",
        tmp_path / "pipe" / "below": "no such file",
        tmp_path / "self": "link",
        tmp_path / "nul\0name": "no such file",
        Path("https://example.org/a.mp4"): "is a URL",
        Path("gs://bucket/a.mp4"): "is a URL",
    }

    for path, word in expected.items():
        with pytest.raises(UnreadableSource, match=word), open_source(part(path), max_bytes=ROOM):
            pass
    listener.close()


def test_a_file_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:  # root, as which CI runs, may read everything
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(UnreadableSource, match="no permission"), open_source(part(tmp_path / "x"), max_bytes=ROOM):
        pass


@pytest.mark.parametrize("empty", [b"", Path("/proc/self/mem")])
def test_an_empty_or_unreadable_body_is_a_typed_error(empty: bytes | Path) -> None:
    if isinstance(empty, Path) and not empty.exists():
        pytest.skip("no /proc here")

    with pytest.raises((MalformedMedia, UnreadableSource)), open_source(part(empty), max_bytes=ROOM):
        pass
