"""Opens what is to be weighed: a regular file or bytes, of known size. Nothing else gets past here."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from weighlock.codecs.spool import spooled
from weighlock.encoded import Base64
from weighlock.errors import MalformedMedia, MediaTooLarge, UnreadableSource

if TYPE_CHECKING:
    from weighlock.request import MediaPart

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
HEAD_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_URL = re.compile(r"(?:https?|gs|ftp|s3):/")
# A FIFO without a writer would block the open for ever.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class OpenSource:
    """Random access to one medium: its size when opened, and its first 4 KiB. Valid inside `open_source` only."""

    __slots__ = ("_data", "_fd", "head", "size_bytes")

    def __init__(self, fd: int | None, data: bytes | None, size_bytes: int, head: bytes) -> None:
        self._fd = fd
        self._data = data
        self.size_bytes = size_bytes
        self.head = head

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end."""
        if self._data is not None:
            return self._data[offset : offset + length]
        return os.pread(self.descriptor(), length, offset)

    def descriptor(self) -> int:
        """A descriptor for the confined worker. Bytes are spooled to an unnamed file the first time."""
        if self._fd is None:
            self._fd = spooled(self._data or b"")
        return self._fd

    def sha256(self, glance: Callable[[], None]) -> bytes:
        """Of its content, in memory that does not grow with it. `glance` is called for every MiB, and may raise."""
        import hashlib  # loads OpenSSL, which who only looks need not wait for

        digest = hashlib.sha256()
        for offset in range(0, self.size_bytes, _CHUNK_BYTES):
            glance()
            digest.update(self.read_at(offset, _CHUNK_BYTES))
        return digest.digest()

    def stamp(self) -> tuple[int, int] | None:
        """What a file shows when it is written to; nothing for bytes, which nobody can change."""
        if self._data is not None:
            return None
        status = os.fstat(self.descriptor())
        return status.st_size, status.st_mtime_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def open_source(part: MediaPart, *, max_bytes: int) -> OpenSource:
    """Opens the part's source for weighing, for use in a `with`.

    Raises:
        UnreadableSource: missing, no permission, not a regular file, or a reference.
        MediaTooLarge: more than `max_bytes` (`safety.max.file`).
        MalformedMedia: empty, or not the base64 it is said to be.
    """
    source = _opened(part)
    if 0 < source.size_bytes <= max_bytes:
        return source
    source.close()
    if not source.size_bytes:
        raise MalformedMedia("empty: 0 bytes, nothing to send")
    raise MediaTooLarge(
        f"{source.size_bytes:,} bytes, bound {max_bytes:,} (safety.max.file); clip it or raise the bound",
        size_bytes=source.size_bytes,
        max_bytes=max_bytes,
    )


def _opened(part: MediaPart) -> OpenSource:
    from weighlock.request import Uri  # for parts alone: a transform of a file goes without

    match part.source:
        case Path() as path:
            return _of_path(path)
        case Base64() as encoded:
            return _of_bytes(encoded.decode())
        case Uri():
            said = "is a reference, and none is ever fetched here; its bytes were not looked at"
            raise UnreadableSource(said, reference=True)
        case bytes() | bytearray() | memoryview() as data:
            return _of_bytes(bytes(data))
        case file:
            return _of_file(file)


def _of_file(file: BinaryIO) -> OpenSource:
    """A file object's bytes. Its position stays where it was."""
    try:
        status = os.fstat(file.fileno())
        head = os.pread(file.fileno(), HEAD_BYTES, 0)
        if stat.S_ISREG(status.st_mode):
            return OpenSource(os.dup(file.fileno()), None, status.st_size, head)
    except (OSError, AttributeError, ValueError):  # it has no descriptor, as BytesIO, or none that can be read at will
        pass
    try:
        stood = file.tell()
        file.seek(0)
        data = file.read()
        file.seek(stood)
    except (OSError, AttributeError, ValueError) as error:
        raise UnreadableSource(f"a file object that cannot be read from its start: {error}") from error
    if not isinstance(data, bytes):
        raise UnreadableSource("a file object that gives text; open it in binary mode")
    return _of_bytes(data)


def _of_bytes(data: bytes) -> OpenSource:
    return OpenSource(None, data, len(data), data[:HEAD_BYTES])


def _of_path(path: Path) -> OpenSource:
    try:
        fd = os.open(path, _OPEN_FLAGS)
    except OSError as error:
        raise UnreadableSource(_reason(error, path)) from error
    except ValueError as error:  # a NUL in the name
        raise UnreadableSource(f"no such file: {error}") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
            raise UnreadableSource(f"is {kind}; name a regular file, or pipe its bytes to `-`")
        return OpenSource(fd, None, status.st_size, os.pread(fd, HEAD_BYTES, 0))
    except OSError as error:
        os.close(fd)
        raise UnreadableSource(_reason(error, path)) from error
    except UnreadableSource:
        os.close(fd)
        raise


def _reason(error: OSError, path: Path) -> str:
    if _URL.match(str(path)):
        return "is a URL, and none is ever fetched here; pipe its bytes: curl -s URL | weighlock check -"
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
