"""Uploads of clients while they come in: on disk, for their owner's eyes, shared by the workers of one host.

An upload is known by a word only its client has, which is stored nowhere: the files are named by its hash.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from weighlock.service.bodies import BodyRefused

KEPT_S = 24 * 3600.0
"""So long an upload may be gone on with, and asked how it ended."""
_LEFT_FREE = 0.05
"""Share of the disk nobody fills."""
_MOST_OPEN = 64
"""Of one tenant. Beyond that, what nobody has gone on with for longest makes way."""
_WORD = re.compile(r"([0-9a-f]{16})-[\w-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What was said of a file when its upload began, and what became of it."""

    tenant: str
    client: str
    endpoint: str | None
    mime: str | None
    display_name: str | None
    declared_bytes: int | None
    name: str | None = None
    """What the client wants to call it."""
    file: str | None = None
    """Its name at the service, once it is there."""


class Spool:
    """A folder of uploads."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self._folder, self._most_bytes = folder, most_bytes

    def begin(self, upload: Upload) -> str:
        """The word it is gone on with.

        Raises:
            BodyRefused: 413, it is larger than files may be; 503, there is no room for it now.
        """
        wanted = upload.declared_bytes or 0
        if wanted > self._most_bytes:
            raise self.too_large()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = hashlib.sha256(upload.tenant.encode()).hexdigest()[:16]
        self._make_way(mark)
        self._demand_room(wanted)
        word = f"{mark}-{secrets.token_urlsafe(32)}"
        self._part(word).touch(mode=0o600)
        self._write(self._told(word), upload)
        return word

    def look(self, word: str) -> Upload:
        """What was said of an upload. Raises `BodyRefused` (404): there is none, or none any more."""
        with suppress(OSError):
            told = self._told(word)
            if told.stat().st_mtime > time.time() - KEPT_S:
                return _read(told.read_bytes())
        raise unknown_upload()

    @contextmanager
    def opened(self, word: str) -> Iterator[Coming]:
        """An upload, for one at a time.

        Raises:
            BodyRefused: 404, there is none; 409, somebody else is at it.
        """
        try:
            descriptor = os.open(self._told(word), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            raise unknown_upload() from None
        try:
            if not _locked(descriptor):
                raise BodyRefused(409, "this upload is being gone on with by somebody else", "upload_busy", 1.0)
            if not os.fstat(descriptor).st_nlink:
                raise unknown_upload()
            yield Coming(self, word, _read(os.read(descriptor, 1 << 20)))
        finally:
            os.close(descriptor)

    def tidy(self) -> None:
        """Erases what nobody may go on with any more."""
        if self._folder.is_dir():
            oldest = time.time() - KEPT_S
            for told in self._folder.glob("*.json"):
                with suppress(OSError):
                    if told.stat().st_mtime <= oldest:
                        _erase(told)
            for left in self._folder.iterdir():  # by a process that ended in the middle of something
                with suppress(OSError):
                    if left.suffix != ".json" and left.stat().st_mtime <= oldest:
                        left.unlink()

    def too_large(self) -> BodyRefused:
        return BodyRefused(413, f"a file of more than {self._most_bytes:,} bytes (safety.max.file)", "file_too_large")

    def _make_way(self, mark: str) -> None:
        """For one more of a tenant: what is at the service already goes first."""
        known = sorted(self._folder.glob(f"{mark}-*.json"), key=_last_used)
        for told in known[: max(0, len(known) + 1 - _MOST_OPEN)]:
            with suppress(OSError):
                _erase(told)

    def _demand_room(self, wanted: int) -> None:
        disk = shutil.disk_usage(self._folder)
        if wanted > disk.free - disk.total * _LEFT_FREE:
            raise _no_room()

    def _told(self, word: str) -> Path:
        """Raises `BodyRefused`: that is no word."""
        found = _WORD.fullmatch(word)
        if found is None:
            raise unknown_upload()
        return self._folder / f"{found[1]}-{hashlib.sha256(word.encode()).hexdigest()}.json"

    def _part(self, word: str) -> Path:
        return self._told(word).with_suffix(".part")

    def _write(self, path: Path, upload: Upload) -> None:
        """Whole or not at all."""
        new = path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(asdict(upload)).encode())
        new.replace(path)


class Coming:
    """One upload, held by whoever goes on with it."""

    def __init__(self, spool: Spool, word: str, upload: Upload) -> None:
        self.upload = upload
        self._spool, self._word = spool, word

    @property
    def path(self) -> Path:
        """Its bytes so far."""
        return self._spool._part(self._word)

    @property
    def size_bytes(self) -> int:
        with suppress(OSError):
            return self.path.stat().st_size
        return 0

    @property
    def most_bytes(self) -> int:
        """How many it may come to."""
        declared = self.upload.declared_bytes
        return self._spool._most_bytes if declared is None else min(declared, self._spool._most_bytes)

    def too_large(self, _: int) -> BodyRefused:
        """More than it may come to."""
        if self.upload.declared_bytes is None:
            return self._spool.too_large()
        return BodyRefused(413, f"more than the {self.most_bytes:,} bytes that were declared", "upload_too_long")

    @contextmanager
    def taking_in(self, offset: int) -> Iterator[Callable[[bytes], None]]:
        """What writes pieces one behind the other, from `offset` on; what stood there goes.

        Raises:
            BodyRefused: 503, the disk is full; also what it gives. 404, its bytes are gone.
        """
        try:
            file = self.path.open("r+b", buffering=0)
        except OSError:
            raise unknown_upload() from None
        with file:
            file.truncate(offset)
            file.seek(offset)

            def write(piece: bytes) -> None:
                view = memoryview(piece)
                try:
                    self._spool._demand_room(len(view))
                    while view:
                        view = view[file.write(view) or 0 :]
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT):
                        raise _no_room() from None
                    raise

            yield write

    def end(self, file: str) -> None:
        """It is at the service: its bytes go, its name stays to be asked for."""
        self.upload = replace(self.upload, file=file)
        self._spool._write(self._spool._told(self._word), self.upload)
        self.path.unlink(missing_ok=True)

    def cancel(self) -> None:
        """Nothing stays of it."""
        self._spool._told(self._word).unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def _read(said: bytes) -> Upload:
    try:
        return Upload(**json.loads(said))
    except (ValueError, TypeError):  # it was never written to its end, or by another version
        raise unknown_upload() from None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _erase(told: Path) -> None:
    """Unless somebody is at it. Raises `OSError` where it is gone."""
    descriptor = os.open(told, os.O_RDWR | os.O_CLOEXEC)
    try:
        if _locked(descriptor):
            told.unlink()
            told.with_suffix(".part").unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _last_used(told: Path) -> tuple[bool, float]:
    """Later is greater; those without bytes, which are at the service, come first."""
    with suppress(OSError):
        return True, told.with_suffix(".part").stat().st_mtime
    with suppress(OSError):
        return False, told.stat().st_mtime
    return False, 0.0


def unknown_upload() -> BodyRefused:
    return BodyRefused(404, "there is no such upload, or it is over", "unknown_upload")


def _no_room() -> BodyRefused:
    return BodyRefused(503, "weighlock has no room for the file now; try again later", "no_room", 60.0)
