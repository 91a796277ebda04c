"""The mapped medium as a whole binary file, for readers that want more of one than `window.Window` gives."""

from __future__ import annotations

import io
import mmap
from typing import Any, BinaryIO, cast


def mapped(view: mmap.mmap) -> BinaryIO:
    """What every `make` takes as its source."""
    return cast("BinaryIO", io.BufferedReader(MappedFile(view)))


class MappedFile(io.RawIOBase):
    """A read-only file over bytes that never returns more than was asked for, which C readers take on trust."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._data[self._at : self._at + len(buffer)]
        buffer[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        self._at = min(max(0, base + offset), len(self._data))
        return self._at

    def tell(self) -> int:
        return self._at
