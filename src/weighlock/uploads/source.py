"""What is uploaded: random access to its bytes, its hash, and whether it changed meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Protocol, Self

from weighlock.codecs.source import OpenSource, open_source
from weighlock.errors import UnreadableSource
from weighlock.request import MediaPart

_PIECE_BYTES = 1 << 20


class UploadSource(Protocol):
    """Bytes that can be read again at any offset."""

    @property
    def size_bytes(self) -> int: ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; fewer at the end."""
        ...

    def demand_unchanged(self) -> None:
        """Raises `UnreadableSource` where it is no longer what it was when it was opened."""
        ...


class PartSource:
    """A medium's source, open. For use in a `with`."""

    def __init__(self, part: MediaPart, *, max_bytes: int) -> None:
        """Raises what `open_source` does: `UnreadableSource`, `MediaTooLarge`, `MalformedMedia`."""
        self._open: OpenSource = open_source(part, max_bytes=max_bytes)
        self._stamp = self._open.stamp()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def size_bytes(self) -> int:
        return self._open.size_bytes

    def read_at(self, offset: int, length: int) -> bytes:
        return self._open.read_at(offset, length)

    def demand_unchanged(self) -> None:
        if self._open.stamp() != self._stamp:
            raise UnreadableSource("the file changed while it was read")


def sha256_of(source: UploadSource, progress: Callable[[int], None] | None = None) -> str:
    """The hash of all of it, in hex, in little memory.

    Raises:
        UnreadableSource: it changed meanwhile.
    """
    digest, offset = hashlib.sha256(), 0
    while piece := source.read_at(offset, _PIECE_BYTES):
        digest.update(piece)
        offset += len(piece)
        if progress is not None:
            progress(offset)
    source.demand_unchanged()
    return digest.hexdigest()
