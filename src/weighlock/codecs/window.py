"""The mapped medium as the file object a demuxer reads."""

from __future__ import annotations

import errno
import mmap
import os

_KEPT_BYTES = 2**20


class Window:
    """Reads like a file opened for reading, and never gives more bytes than were asked for.

    A map refuses a place behind its end; a file takes it and has nothing to read there, which is what demuxers that
    skip a chunk longer than the file count on.
    """

    __slots__ = ("_at", "_since", "_view")

    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._at = 0
        self._since = 0

    @property
    def view(self) -> mmap.mmap:
        """The whole medium, for those who read anywhere."""
        return self._view

    def read(self, size: int) -> bytes:
        start = self._at
        data = self._view[start : start + max(0, size)]
        self._at += len(data)
        self._since += len(data)
        if self._since > _KEPT_BYTES:
            self._since = 0
            self.forget()
        return data

    def forget(self) -> None:
        """Let go of the pages read so far: a long film would count as memory of this process otherwise."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._view.madvise(mmap.MADV_DONTNEED)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """The new place. Raises `OSError` for one before the start, and nothing for one behind the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._view)}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True
