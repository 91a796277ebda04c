"""Opens what is to be weighed: a regular file or bytes, as one descriptor with a known size. Nothing else gets past here."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighlock.errors import MalformedMedia, MediaTooLarge, UnreadableSource
from weighlock.request import MediaPart

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_HEAD_BYTES = 4096


@dataclass(slots=True)
class OpenSource:
    """A readable descriptor, its size when opened, and its first 4 KiB. Valid inside `open_source` only."""

    fd: int
    size_bytes: int
    head: bytes

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end. Reads the descriptor without moving it."""
        return os.pread(self.fd, length, offset)


@contextmanager
def open_source(part: MediaPart, *, max_bytes: int) -> Iterator[OpenSource]:
    """Opens the part's source for weighing.

    Raises:
        UnreadableSource: missing, no permission, or not a regular file.
        MediaTooLarge: more than `max_bytes` (`safety.max.file`).
        MalformedMedia: empty.
    """
    fd = _descriptor(part.source)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
            raise UnreadableSource(f"is {kind}; name a regular file, or pipe its bytes to `-`")
        size = status.st_size
        if size > max_bytes:
            raise MediaTooLarge(
                f"{size:,} bytes, bound {max_bytes:,} (safety.max.file); clip it or raise the bound",
                size_bytes=size,
                max_bytes=max_bytes,
            )
        head = os.pread(fd, _HEAD_BYTES, 0)
        if not head:
            raise MalformedMedia("empty: 0 bytes, nothing to send")
        yield OpenSource(fd, size, head)
    finally:
        os.close(fd)


def _descriptor(source: Path | bytes) -> int:
    if isinstance(source, bytes):
        return _spooled(source)
    try:
        # A FIFO without a writer would block the open for ever.
        return os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise UnreadableSource(_reason(error)) from error
    except ValueError as error:  # a NUL in the name
        raise UnreadableSource(f"no such file: {error}") from error


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return "no such file"
        case errno.EACCES | errno.EPERM:
            return "no permission to read it; check its owner and mode"
        case errno.ELOOP:
            return "a link that leads back to itself"
        case errno.ENXIO:
            return "is a socket or a device without a driver; name a regular file, or pipe its bytes to `-`"
        case _:
            return f"cannot be opened: {error.strerror or error}"


def _spooled(data: bytes) -> int:
    """The bytes as a descriptor that no name leads to."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("weighlock", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BaseException:
        os.close(fd)
        raise
    return fd
