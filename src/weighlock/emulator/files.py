"""The Files API's shelf: what was uploaded, by project, in which state, until when."""

from __future__ import annotations

import base64
import re
import secrets
import string
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from weighlock.emulator import errors
from weighlock.emulator.accounts import Project
from weighlock.emulator.behaviours import figure, reproduces
from weighlock.emulator.clock import Clock, written
from weighlock.request import Json

HOST = "https://generativelanguage.googleapis.com"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_URI = re.compile(r"(?:^|/)files/([a-z0-9-]+)$")
_LETTERS = string.ascii_lowercase + string.digits


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """One uploaded file. `path` is `None` where the bytes were not kept."""

    name: str
    """Without `files/`."""
    project: Project
    version: str
    mime: str
    size_bytes: int
    sha256: str
    """In hex."""
    created_at: datetime
    active_at: datetime
    expires_at: datetime
    path: Path | None
    display_name: str | None = None
    failure: str | None = None
    """Why the service could not process it."""

    @reproduces("file-states")
    def state(self, now: datetime) -> str:
        if now < self.active_at:
            return "PROCESSING"
        return "ACTIVE" if self.failure is None else "FAILED"

    @reproduces("file-resource", "sha256-base64-of-hex", "file-uri-host", "failed-with-reason")
    def document(self, now: datetime) -> dict[str, Json]:
        """The `File` of an answer."""
        state = self.state(now)
        document: dict[str, Json] = {
            "name": f"files/{self.name}",
            "mimeType": self.mime,
            "sizeBytes": str(self.size_bytes),
            "createTime": written(self.created_at),
            "updateTime": written(min(now, self.active_at)),
            "expirationTime": written(self.expires_at),
            "sha256Hash": base64.b64encode(self.sha256.encode()).decode(),
            "uri": f"{HOST}/{self.version}/files/{self.name}",
            "state": state,
            "source": "UPLOADED",
        }
        if self.display_name is not None:
            document["displayName"] = self.display_name
        if state == "FAILED":
            document["error"] = {"code": 3, "message": self.failure}
        return document


class Files:
    """All files. Thread-safe: tests look at it while it serves.

    Args:
        processing_s: How long a film stays PROCESSING; anything else is ACTIVE at once.
    """

    def __init__(self, clock: Clock, *, processing_s: float) -> None:
        self.clock, self.processing_s = clock, processing_s
        self.fail_next: str | None = None
        """The next upload ends FAILED, for this reason."""
        self._kept: dict[str, StoredFile] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[StoredFile]:
        """Files that have not expired, oldest first."""
        with self._lock:
            self._forget_expired()
            return iter(tuple(self._kept.values()))

    def __len__(self) -> int:
        with self._lock:
            self._forget_expired()
            return len(self._kept)

    def add(
        self, project: Project, name: str, *, version: str, mime: str, size_bytes: int, sha256: str,
        path: Path | None, display_name: str | None,
    ) -> StoredFile:  # fmt: skip
        """Keeps what an upload brought.

        Raises:
            ApiError: 409, somebody else finished a file of that name first.
        """
        now, failure = self.clock.now(), self.fail_next
        self.fail_next = None
        waits = self.processing_s if mime.startswith("video/") or failure else 0
        with self._lock:
            self._demand_free(name)
            file = self._kept[name] = StoredFile(
                name=name,
                project=project,
                version=version,
                mime=mime,
                size_bytes=size_bytes,
                sha256=sha256,
                created_at=now,
                active_at=now + timedelta(seconds=waits),
                expires_at=now + timedelta(hours=figure("file-expiry", "hours")),
                path=path,
                display_name=display_name,
                failure=failure,
            )
        return file

    @reproduces("file-forbidden", "file-expiry", "projects-own-files", "unpaid-project")
    def get(self, project: Project, name: str) -> StoredFile:
        """A file of the project.

        Raises:
            ApiError: 403, whatever the reason it is not to be had.
        """
        with self._lock:
            self._forget_expired()
            file = self._kept.get(name)
        if file is None or file.project is not project or not project.paid:
            raise errors.file_forbidden(name)
        return file

    @reproduces("file-not-active")
    def usable(self, project: Project, name: str) -> StoredFile:
        """A file that may stand in a prompt.

        Raises:
            ApiError: 403 as for `get`; 400 while it is processed and after that has failed.
        """
        file = self.get(project, name)
        if file.state(self.clock.now()) != "ACTIVE":
            raise errors.file_not_active(name)
        return file

    @reproduces("list-files")
    def page(self, project: Project, size: int, token: str) -> tuple[list[StoredFile], str | None]:
        """Files of a project, newest first, and the token of the next page."""
        own = [file for file in self if file.project is project][::-1]
        start = next((at for at, file in enumerate(own) if file.name == token), 0)
        following = own[start + size : start + size + 1]
        return own[start : start + size], following[0].name if following else None

    def delete(self, project: Project, name: str) -> None:
        """Takes a file of the project off the shelf.

        Raises:
            ApiError: 403 as for `get`.
        """
        file = self.get(project, name)
        with self._lock:
            self._drop(file)

    def clear(self) -> None:
        """Takes everything off the shelf."""
        with self._lock:
            for file in tuple(self._kept.values()):
                self._drop(file)

    @reproduces("name-taken", "file-names")
    def free_name(self, wanted: str | None) -> str:
        """The name a new file gets.

        Raises:
            ApiError: 400, it is none; 409, there is a finished file of that name.
        """
        if not wanted:
            return "".join(secrets.choice(_LETTERS) for _ in range(12))
        name = wanted.removeprefix("files/")
        if not _NAME.fullmatch(name):
            raise errors.invalid(f"{wanted[:60]!r} is no name of a file: 1 to 40 of a-z, 0-9 and -, no dash at an end.")
        with self._lock:
            self._forget_expired()
            self._demand_free(name)
        return name

    @reproduces("storage-quota")
    def demand_room(self, project: Project, size_bytes: int) -> None:
        """
        Raises:
            ApiError: 429, the project's files would take more than it has.
        """
        used = self.used_bytes(project)
        if used + size_bytes > project.storage_bytes:
            raise errors.storage_full(used, project.storage_bytes)

    def used_bytes(self, project: Project) -> int:
        return sum(file.size_bytes for file in self if file.project is project)

    def _demand_free(self, name: str) -> None:
        if name in self._kept:
            raise errors.name_taken(name)

    def _forget_expired(self) -> None:
        now = self.clock.now()
        for file in [file for file in self._kept.values() if file.expires_at <= now]:
            self._drop(file)

    def _drop(self, file: StoredFile) -> None:
        del self._kept[file.name]
        if file.path is not None:
            file.path.unlink(missing_ok=True)


def name_in(uri: str) -> str | None:
    """The name in a Files API URI, whatever its host; `None` where it is another address."""
    found = _URI.search(uri.partition("?")[0])
    return found[1] if found else None
