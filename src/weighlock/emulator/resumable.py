"""Resumable uploads: start, chunks at the server's offset, query, finalize. O(one chunk) of memory, whatever the size.

Bytes count once 256 KiB of them are there. What a broken connection brought beyond that is forgotten, so that the
offset a client is told is one it may go on from.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from weighlock.emulator import errors
from weighlock.emulator.accounts import Project
from weighlock.emulator.behaviours import figure, reproduces
from weighlock.emulator.files import Files, StoredFile

GRANULARITY = 256 * 1024


class State(StrEnum):
    ACTIVE = "active"
    FINAL = "final"
    CANCELLED = "cancelled"


class UploadError(errors.ApiError):
    """A refusal that still says how far the upload is."""


@dataclass(slots=True, kw_only=True)
class Session:
    """One upload under way."""

    project: Project
    name: str
    version: str
    mime: str
    display_name: str | None
    declared_bytes: int | None
    path: Path | None
    state: State = State.ACTIVE
    size_bytes: int = 0
    """Committed."""
    file: StoredFile | None = None
    hasher: hashlib._Hash = field(default_factory=hashlib.sha256, repr=False)
    pending: bytearray = field(default_factory=bytearray, repr=False)
    writer: object = None
    """Who may write: the last request that began to. An older one whose connection hangs is shut out."""

    def opened(self) -> AbstractContextManager[BinaryIO | None]:
        """Where the bytes go, as long as somebody writes; an upload that is left lying holds no file open."""
        return nullcontext() if self.path is None else self.path.open("ab", buffering=0)

    def take(self, piece: bytes, sink: BinaryIO | None) -> None:
        self.pending += piece
        if whole := len(self.pending) // GRANULARITY * GRANULARITY:
            self.commit(whole, sink)

    def commit(self, count: int, sink: BinaryIO | None) -> None:
        with memoryview(self.pending)[:count] as block:
            self.hasher.update(block)
            if sink is not None:
                sink.write(block)
        del self.pending[:count]
        self.size_bytes += count


class Uploads:
    """All uploads under way."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.folder: Path | None = None
        """Where bytes go; `None` keeps their hash and size only."""
        self.most_bytes = figure("file-too-large", "bytes")
        self._sessions: dict[str, Session] = {}

    @reproduces("upload-start", "file-too-large", "storage-quota")
    def start(
        self, project: Project, *, name: str | None, version: str, mime: str | None, declared_bytes: int | None,
        display_name: str | None,
    ) -> str:  # fmt: skip
        """The id of a new upload.

        Raises:
            ApiError: no type, a name that is none or taken, or no room.
        """
        if not mime:
            raise errors.invalid("The MIME type of the file is missing.")
        if declared_bytes is not None and declared_bytes > self.most_bytes:
            raise errors.invalid(f"The file is larger than {self.most_bytes} bytes.")
        self.files.demand_room(project, declared_bytes or 0)
        upload_id = secrets.token_urlsafe(48)
        path = None if self.folder is None else self.folder / secrets.token_hex(16)
        session = Session(
            project=project,
            name=self.files.free_name(name),
            version=version,
            mime=mime,
            display_name=display_name,
            declared_bytes=declared_bytes,
            path=path,
        )
        if path is not None:
            path.touch()
        self._sessions[upload_id] = session
        return upload_id

    @reproduces("session-gone")
    def session(self, upload_id: str | None) -> Session:
        """
        Raises:
            ApiError: 404, no such upload, or one that is forgotten.
        """
        session = self._sessions.get(upload_id or "")
        if session is None:
            raise errors.ApiError(404, "Requested entity was not found.")
        return session

    def forget(self, upload_id: str | None) -> None:
        """The session is gone, and what it had received with it."""
        session = self._sessions.pop(upload_id or "", None)
        if session is not None and session.file is None and session.path is not None:
            session.path.unlink(missing_ok=True)

    def clear(self) -> None:
        for upload_id in tuple(self._sessions):
            self.forget(upload_id)

    @reproduces("upload-offset", "upload-granularity", "two-writers")
    async def append(self, session: Session, offset: int | None, body: AsyncIterator[bytes], *, last: bool) -> None:
        """Takes a chunk. What is whole when the connection breaks counts.

        Raises:
            UploadError: the wrong offset, or a chunk before the last that is no multiple of 256 KiB.
        """
        if session.state is not State.ACTIVE:
            raise UploadError(400, f"The upload is {session.state}.")
        if offset != session.size_bytes:
            words = f"The offset {offset} is not the size received so far, {session.size_bytes}."
            raise UploadError(400, words)
        writer = session.writer = object()
        session.pending.clear()
        whole = False
        try:
            with session.opened() as sink:
                async for piece in body:
                    if session.writer is not writer:
                        raise UploadError(409, "Another request writes to this upload.")
                    session.take(piece, sink)
                    if session.size_bytes > self.most_bytes:
                        raise UploadError(400, f"The file is larger than {self.most_bytes} bytes.")
            if session.pending and not last:
                raise UploadError(400, f"A chunk before the last one is a multiple of {GRANULARITY} bytes.")
            whole = True
        finally:
            if not whole and session.writer is writer:
                session.pending.clear()

    @reproduces("upload-final", "size-declared")
    def finalize(self, session: Session) -> StoredFile:
        """The finished file; the same one when asked again.

        Raises:
            UploadError: fewer or more bytes than were announced.
            ApiError: 409, there is a file of that name by now.
        """
        if session.file is not None:
            return session.file
        total = session.size_bytes + len(session.pending)
        if session.declared_bytes is not None and total != session.declared_bytes:
            session.pending.clear()
            words = f"{session.declared_bytes} bytes were announced, {total} were received."
            raise UploadError(400, words)
        with session.opened() as sink:
            session.commit(len(session.pending), sink)
        session.state = State.CANCELLED  # unless there is room for it
        session.file = self.files.add(
            session.project,
            session.name,
            version=session.version,
            mime=session.mime,
            size_bytes=session.size_bytes,
            sha256=session.hasher.hexdigest(),
            path=session.path,
            display_name=session.display_name,
        )
        session.state = State.FINAL
        return session.file

    def cancel(self, session: Session) -> None:
        if session.state is State.ACTIVE:
            session.pending.clear()
            session.state = State.CANCELLED
