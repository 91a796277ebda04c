"""Uploads of clients while they come in: on disk, for their owner's eyes, shared by the workers of one host.

An upload is known by a word only its client has, which is stored nowhere: the files are named by its hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from weighlock.service.bodies import BodyRefused

_KEPT_S = 24 * 3600.0
"""So long an upload may be gone on with."""
_LEFT_FREE = 0.05
"""Share of the disk nobody fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What was said of a file when its upload began, and what became of it."""

    tenant: str
    client: str
    endpoint: str | None
    mime: str | None
    display_name: str | None
    declared_bytes: int | None
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
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._tidy()
        wanted = upload.declared_bytes or 0
        if wanted > self._most_bytes:
            raise BodyRefused(
                413, f"a file of more than {self._most_bytes:,} bytes (safety.max.file)", "file_too_large"
            )
        disk = shutil.disk_usage(self._folder)
        if wanted > disk.free - disk.total * _LEFT_FREE:
            raise BodyRefused(503, "weighlock has no room for the file now; try again later", "no_room", 60.0)
        word = secrets.token_urlsafe(32)
        self._write(self._told(word), upload)
        self._part(word).touch(mode=0o600)
        return word

    def look(self, word: str) -> Upload:
        """What was said of an upload. Raises `BodyRefused` (404): there is none."""
        try:
            return Upload(**json.loads(self._told(word).read_bytes()))
        except (OSError, ValueError, TypeError):
            raise _unknown() from None

    @contextmanager
    def opened(self, word: str) -> Iterator[Coming]:
        """An upload, for one at a time.

        Raises:
            BodyRefused: 404, there is none; 409, somebody else is at it.
        """
        try:
            descriptor = os.open(self._told(word), os.O_RDWR)
        except OSError:
            raise _unknown() from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                known = Upload(**json.loads(os.read(descriptor, 1 << 20)))
            except (BlockingIOError, ValueError, TypeError):
                raise BodyRefused(
                    409, "this upload is being gone on with by somebody else", "upload_busy", 1.0
                ) from None
            yield Coming(self, word, known)
        finally:
            os.close(descriptor)

    def _told(self, word: str) -> Path:
        return self._folder / f"{hashlib.sha256(word.encode('utf-8', 'replace')).hexdigest()}.json"

    def _part(self, word: str) -> Path:
        return self._told(word).with_suffix(".part")

    def _write(self, path: Path, upload: Upload) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(asdict(upload)).encode())
            file.truncate()

    def _tidy(self) -> None:
        oldest = time.time() - _KEPT_S
        for left in self._folder.iterdir():
            with suppress(OSError):
                if left.stat().st_mtime < oldest:
                    left.unlink()


def _unknown() -> BodyRefused:
    return BodyRefused(404, "there is no such upload, or it is over", "unknown_upload")


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

    def end(self, file: str) -> None:
        """It is at the service: its bytes go, its name stays to be asked for."""
        self.upload = replace(self.upload, file=file)
        self._spool._write(self._spool._told(self._word), self.upload)
        self.path.unlink(missing_ok=True)

    def cancel(self) -> None:
        """Nothing stays of it."""
        self.path.unlink(missing_ok=True)
        self._spool._told(self._word).unlink(missing_ok=True)
