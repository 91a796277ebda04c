"""What the room may see of a medium: its first bytes, and a bounded second look further on."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Protocol

HEAD_BYTES = 4096
"""How much of a file to read before `sniff`: enough for 9 in 10 files to need no second look."""

MAX_LOOKS = 4096
MAX_READS = 64
MAX_READ_BYTES = 1 << 19
READ_AHEAD = 4096

ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, n)`: up to n bytes from an absolute offset, fewer (or none) only at the end. It does the I/O."""


class _Buffer(Sized, Protocol):
    def __getitem__(self, index: slice, /) -> bytes | bytearray | memoryview: ...


class Window:
    """The first bytes of a medium, and a second look further on where a format needs one.

    However hostile the bytes, one window makes at most `MAX_READS` reads of `MAX_READ_BYTES` bytes together and answers
    at most `MAX_LOOKS` looks; then it behaves as if the medium ended. Errors of `read_at` pass through.
    """

    __slots__ = ("_bytes_left", "_chunk", "_chunk_at", "_looks_left", "_read_at", "_reads_left", "head", "size")

    def __init__(self, head: bytes, size: int | None = None, read_at: ReadAt | None = None) -> None:
        self.head = head
        """The first bytes: `HEAD_BYTES` or more, or all there are."""
        self.size = size
        """Total bytes; `None` is unknown."""
        self._read_at = read_at
        self._chunk = b""
        self._chunk_at = 0
        self._looks_left = MAX_LOOKS
        self._reads_left = MAX_READS
        self._bytes_left = MAX_READ_BYTES

    @classmethod
    def of(cls, data: _Buffer) -> Window:
        """A window over bytes in memory: `bytes`, `bytearray`, `memoryview` of bytes, `mmap`. Not copied."""

        def read_at(offset: int, n: int) -> bytes:
            return bytes(data[offset : offset + n])

        return cls(bytes(data[:HEAD_BYTES]), len(data), read_at)

    @property
    def is_whole(self) -> bool:
        """Whether `head` is known to be the whole medium."""
        return self.size is not None and len(self.head) >= self.size

    @property
    def end(self) -> int:
        """Total bytes, or further than any file reaches where that is unknown."""
        return (1 << 63) if self.size is None else self.size

    def at(self, offset: int, n: int) -> bytes:
        """Up to `n` bytes from `offset`: fewer where the medium ends, or where this window's budget does."""
        self._looks_left -= 1
        if self._looks_left < 0:
            return b""
        stop = offset + n
        head = self.head
        if 0 <= offset < stop <= len(head):
            return head[offset:stop]
        if offset < 0 or n <= 0:
            return b""
        if self.size is not None and stop > self.size:
            stop = self.size
        if stop <= len(head) or self._read_at is None:
            return head[offset:stop]
        if offset >= stop:
            return b""
        start = self._chunk_at
        if not start <= offset <= stop <= start + len(self._chunk):
            start = offset
            self._look(self._read_at, offset, stop - offset)
        return self._chunk[offset - start : stop - start]

    def up_to(self, n: int) -> bytes:
        """The first `n` bytes; `head` itself where it is long enough or nothing more can be had."""
        if len(self.head) >= n or self.is_whole:
            return self.head[:n]
        return self.at(0, n) or self.head

    def shifted(self, offset: int) -> Window:
        """The same medium without its first `offset` bytes. Reads are taken from this window's budget."""
        size = None if self.size is None else max(self.size - offset, 0)
        return Window(self.at(offset, HEAD_BYTES), size, lambda at, n: self.at(offset + at, n))

    def _look(self, read_at: ReadAt, offset: int, n: int) -> None:
        wanted = max(n, READ_AHEAD)
        if self.size is not None:
            wanted = min(wanted, self.size - offset)
        wanted = min(wanted, self._bytes_left) if self._reads_left > 0 else 0
        self._chunk_at = offset
        if wanted <= 0:
            self._chunk = self.head[offset:]
            return
        self._reads_left -= 1
        self._bytes_left -= wanted
        self._chunk = read_at(offset, wanted)[:wanted]
