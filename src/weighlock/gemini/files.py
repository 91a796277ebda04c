"""The Files API, one call at a time. What to do when one fails is for `uploads/`. Developer API only."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlsplit

from weighlock.errors import (
    ConfigError,
    FileNotReady,
    FileProcessingFailed,
    InputError,
    ServiceRefused,
    ServiceUnreachable,
    StorageFull,
)
from weighlock.gemini.errors import Cause, no_answer
from weighlock.gemini.http import ONCE, Answer, Service, may_pass
from weighlock.request import Backend
from weighlock.written import plain, quoted

GRANULARITY_BYTES = 256 * 1024
"""Chunks end at multiples of this, but for the last one, where the service names no other."""
_LONGEST_DISPLAY_NAME = 512
_SLOWEST_BYTES_PER_S = 64 * 1024
_NAME = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,80}", re.ASCII)
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,6})?\d*(Z|[+-]\d\d:\d\d)")
_MOST_ODD_POLLS = 3
_PAGE = 100


class FileState(StrEnum):
    PROCESSING = "PROCESSING"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    UNSPECIFIED = "STATE_UNSPECIFIED"
    """Also where the service leaves it out, as it may right after an upload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file the service keeps, as it describes it."""

    name: str
    """`files/abc`; how it is asked for."""
    uri: str | None
    """How a request refers to it."""
    state: FileState
    mime: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    """In hex."""
    display_name: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    error: str | None = None
    """Why it is FAILED."""
    served_at: datetime | None = None
    """When the service said so, by its own clock."""


class UploadStatus(StrEnum):
    ACTIVE = "active"
    FINAL = "final"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSession:
    """An upload that was begun. Its address is the key to it: never shown, never stored."""

    url: str = field(repr=False)
    granularity_bytes: int = GRANULARITY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadProgress:
    """Where an upload stands, by the service."""

    status: UploadStatus
    received_bytes: int | None = None
    """`None` where it does not say."""
    file: RemoteFile | None = None


class Files:
    """The files of one key's project."""

    def __init__(self, service: Service) -> None:
        """Raises `ConfigError` on Vertex, which has none."""
        if service.target.backend is Backend.VERTEX:
            raise ConfigError("Vertex has no Files API; put the file into a bucket and name it by gs://")
        self._service = service

    # ---- one by one

    async def get(self, name: str, *, within_s: float = 30.0) -> RemoteFile:
        """Raises `ServiceRefused`, with the cause `FILE_MISSING` also for one that expired or is another project's."""
        answer = await self._service.call("GET", self._url(name), within_s=within_s)
        return _file(answer)

    async def delete(self, name: str) -> bool:
        """Whether there was one to delete. Raises `ServiceRefused` where the service says something else."""
        try:
            await self._service.call("DELETE", self._url(name), within_s=60.0)
        except ServiceRefused as error:
            if error.figures["cause"] is not Cause.FILE_MISSING and error.figures["service_code"] != "NOT_FOUND":
                raise
            return False
        return True

    async def listed(self) -> AsyncIterator[RemoteFile]:
        """Every file, as the service orders them."""
        token = ""
        while True:
            following = f"&pageToken={quote(token, safe='')}" if token else ""
            url = f"{self._service.target.files_url()}?pageSize={_PAGE}{following}"
            answer = await self._service.call("GET", url, within_s=60.0)
            files = answer.json.get("files")
            for one in files if isinstance(files, list) else ():
                yield _described(one, answer.status)
            following_token = answer.json.get("nextPageToken")
            if not isinstance(following_token, str) or following_token in ("", token):
                return
            token = following_token

    async def wait_until_active(self, file: RemoteFile, *, within_s: float) -> RemoteFile:
        """The file once a request may refer to it.

        What goes wrong while asking is borne: the service is busy, not the file.

        Raises:
            FileProcessingFailed: the service cannot read it; its reason is quoted.
            FileNotReady: not within the time.
            ServiceRefused: it is no longer there.
        """
        io = self._service.io
        begun, wait_s, odd = io.monotonic(), 0.5, 0
        while file.state is not FileState.ACTIVE:
            if file.state is FileState.FAILED:
                raise FileProcessingFailed(
                    f"the service cannot read {file.name}: {file.error or 'no reason given'}", file=file.name
                )
            waited_s = io.monotonic() - begun
            if waited_s + wait_s > within_s:
                raise FileNotReady(
                    f"{file.name} is still {file.state} after {waited_s:,.0f} s", file=file.name, waited_s=waited_s
                )
            await io.sleep(wait_s)
            wait_s = min(wait_s * 1.5, 10.0)
            try:
                file = await self.get(file.name, within_s=max(1.0, within_s - (io.monotonic() - begun)))
                odd = 0
            except (ServiceRefused, ServiceUnreachable) as error:
                odd += not may_pass(error)
                if odd >= _MOST_ODD_POLLS:
                    raise
        return file

    # ---- an upload, step by step

    async def start(
        self, *, mime: str, size_bytes: int, name: str | None = None, display_name: str | None = None
    ) -> UploadSession:
        """Begins an upload, by one try. Under a `name` of ours it can be found again when its last answer is lost.

        The name a person gave goes into the body: headers take ASCII only.

        Raises:
            InputError: that is no media type.
            StorageFull: the project has no room.
            ServiceRefused: with 409, a file of that name exists.
        """
        demand_mime(mime)
        file: dict[str, Any] = {"mimeType": mime, "sizeBytes": str(size_bytes)}
        if name is not None:
            file["name"] = _checked(name)
        if display_name:
            file["displayName"] = display_name[:_LONGEST_DISPLAY_NAME]
        headers = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(size_bytes),
            "x-goog-upload-header-content-type": mime,
        }
        answer = await self._room(
            "POST", self._service.target.upload_url(), {"file": file}, headers=headers, retry=ONCE
        )
        url = answer.headers.get("x-goog-upload-url", "")
        if not _may_be_followed(url, self._service.target.root):
            raise no_answer(answer.status, "but names no address of its own to upload to")
        granularity = answer.headers.get("x-goog-upload-chunk-granularity", "")
        return UploadSession(
            url=url,
            granularity_bytes=int(granularity) if granularity.isdigit() and int(granularity) else GRANULARITY_BYTES,
        )

    async def query(self, session: UploadSession) -> UploadProgress:
        """Where the upload stands. The service's word is the only one that counts.

        Raises:
            ServiceRefused: with 404 or 410, the upload is gone.
        """
        return _progress(await self._step(session, "query", timeout_s=30.0))

    async def send(self, session: UploadSession, offset: int, chunk: bytes, *, last: bool) -> UploadProgress:
        """Sends one chunk, once. `last` ends the upload."""
        command = "upload, finalize" if last else "upload"
        headers = {"x-goog-upload-offset": str(offset), "content-type": "application/octet-stream"}
        timeout_s = max(30.0, len(chunk) / _SLOWEST_BYTES_PER_S)
        return _progress(await self._step(session, command, chunk, headers, timeout_s=timeout_s))

    async def _step(
        self,
        session: UploadSession,
        command: str,
        chunk: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float,
    ) -> Answer:
        given = {"x-goog-upload-command": command, **(headers or {})}
        return await self._room(
            "POST", session.url, chunk, headers=given, timeout_s=timeout_s, retry=ONCE, keyless=True
        )

    async def _room(self, method: str, url: str, body: Any, **how: Any) -> Answer:
        try:
            return await self._service.call(method, url, body, **how)
        except ServiceRefused as error:
            if error.figures["cause"] is Cause.STORAGE_FULL:
                raise StorageFull(error.message, **error.figures) from error
            raise

    def _url(self, name: str) -> str:
        return self._service.target.files_url(_checked(name))


def demand_mime(mime: str) -> None:
    """Raises `InputError` where no header can hold it."""
    if not _MIME.fullmatch(mime):
        raise InputError(f"mime: {quoted(mime)} is no media type", mime=quoted(mime))


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{quoted(name)} is no name of a file; one is files/ and up to 40 letters, digits, dashes")
    return name


def _may_be_followed(url: str, root: str) -> bool:
    """Whether an upload's address is the service's: bytes of a user go nowhere else."""
    try:
        parts, home = urlsplit(url), urlsplit(root)
        same = (parts.scheme, parts.hostname, parts.port) == (home.scheme, home.hostname, home.port)
    except ValueError:
        return False
    return same or (parts.scheme == "https" and (parts.hostname or "").endswith(".googleapis.com"))


# ---- reading


def _progress(answer: Answer) -> UploadProgress:
    said = answer.headers.get("x-goog-upload-status", "")
    status = next((one for one in UploadStatus if one == said), None)
    if status is None:
        raise no_answer(answer.status, "but does not say how the upload stands")
    received = answer.headers.get("x-goog-upload-size-received", "")
    final = status is UploadStatus.FINAL and bool(answer.json)
    return UploadProgress(
        status=status,
        received_bytes=int(received) if received.isdigit() else None,
        file=_file(answer) if final else None,
    )


def _file(answer: Answer) -> RemoteFile:
    """The file an answer describes, bare or under `file`."""
    file = _described(answer.json.get("file", answer.json), answer.status)
    return replace(file, served_at=answer.served_at)


def _described(said: Any, status: int) -> RemoteFile:
    if not isinstance(said, dict) or not isinstance(name := said.get("name"), str) or not _NAME.fullmatch(name):
        raise no_answer(status, "but describes no file")
    state = said.get("state")
    error = said.get("error")
    reason = error.get("message") if isinstance(error, dict) else None
    return RemoteFile(
        name=name,
        uri=_text(said.get("uri")),
        state=next((one for one in FileState if one == state), FileState.UNSPECIFIED),
        mime=_text(said.get("mimeType")),
        size_bytes=int(size) if (size := str(said.get("sizeBytes", ""))).isdigit() else None,
        sha256=sha256_hex(said.get("sha256Hash")),
        display_name=_text(said.get("displayName")),
        created_at=_time(said.get("createTime")),
        expires_at=_time(said.get("expirationTime")),
        error=plain(reason, 300) if isinstance(reason, str) else None,
    )


def sha256_hex(said: object) -> str | None:
    """A hash as the service writes it, in hex: base64 of the hex digits (seen), or of the bytes (documented)."""
    if not isinstance(said, str):
        return None
    if re.fullmatch(r"[0-9a-fA-F]{64}", said):
        return said.lower()
    try:
        raw = base64.b64decode(said, validate=True)
    except (ValueError, binascii.Error):
        return None
    if len(raw) == 32:
        return raw.hex()
    text = raw.decode("ascii", "replace").lower()
    return text if re.fullmatch(r"[0-9a-f]{64}", text) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> datetime | None:
    """A time of proto-JSON, which may have nanoseconds."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found[1]}{found[2] or ''}{found[3].replace('Z', '+00:00')}")
    except ValueError:
        return None
    return moment.astimezone(UTC)
