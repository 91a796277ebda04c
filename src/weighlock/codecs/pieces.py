"""A file as pieces of another one and bytes of our own: surgery without decoding. Runs in the confined child."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import BinaryIO

from weighlock.errors import MalformedMedia

_CHUNK = 1 << 20

Piece = bytes | range
"""Bytes to write, or a range of offsets of the source to copy."""


class Reader:
    """Random access to an open file that never reads past its end or more than a piece of it."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        source.seek(0, os.SEEK_END)
        self.size = source.tell()

    def at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end."""
        if not 0 <= offset < self.size or length <= 0:
            return b""
        self._source.seek(offset)
        return self._source.read(min(length, self.size - offset))

    def exactly(self, offset: int, length: int, what: str) -> bytes:
        """Raises `MalformedMedia` where the file ends within it."""
        data = self.at(offset, length)
        if len(data) < length:
            raise MalformedMedia(f"it ends within {what}", size_bytes=self.size)
        return data

    def write(self, pieces: Iterable[Piece], out: BinaryIO) -> int:
        """Put the pieces into `out`; returns how many bytes that were."""
        written = 0
        for piece in pieces:
            if isinstance(piece, bytes):
                out.write(piece)
                written += len(piece)
                continue
            for offset in range(piece.start, piece.stop, _CHUNK):
                data = self.exactly(offset, min(_CHUNK, piece.stop - offset), "what is to be copied")
                out.write(data)
                written += len(data)
        return written


def length(pieces: Iterable[Piece]) -> int:
    return sum(len(piece) for piece in pieces)
