"""Files of clients: taken in by the resumable protocol, brought to the service once for each content, repaired later.

A file is taken in whole before the service sees any of it. Only then it is known what it is, whether the tenant has
uploaded it already, and how to send it once more should the service break off: the registry of references does that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from weighlock.converters.json_text import loads
from weighlock.errors import MimeMismatch, UnknownMediaType
from weighlock.mime import agrees
from weighlock.request import MediaPart
from weighlock.service import bodies
from weighlock.service.answering import answer, answer_json, refuse
from weighlock.service.call import Call
from weighlock.service.filing import described
from weighlock.service.refusals import refusal
from weighlock.service.spool import Coming, Upload
from weighlock.settings import OnMimeMismatch

_GRANULARITY = 256 * 1024
_MOST_START_BYTES, _LONGEST_NAME = 64 * 1024, 512
_MOST_BYTES = 1 << 50


async def begin(call: Call) -> None:
    """`start`: answered with an address of ours, whose query is all it takes to go on."""
    if _header(call, "x-goog-upload-protocol").lower() != "resumable" or "start" not in _commands(call):
        await refuse(call.send, 400, "an upload begins with X-Goog-Upload-Command: start, resumable", "upload_protocol")
        return
    body = await bodies.whole(call.receive, call.served.serving.deadlines, _MOST_START_BYTES, call.declared_bytes)
    said = loads(body) if body.strip() else {}
    file = said.get("file") if isinstance(said, dict) else None
    named: Mapping[str, Any] = file if isinstance(file, dict) else {}
    declared = _header(call, "x-goog-upload-header-content-length")
    upload = Upload(
        tenant=call.caller.tenant,
        client=call.caller.client,
        endpoint=call.caller.endpoint,
        mime=_text(_header(call, "x-goog-upload-header-content-type") or named.get("mimeType", named.get("mime_type"))),
        display_name=_text(named.get("displayName", named.get("display_name"))),
        declared_bytes=min(int(declared), _MOST_BYTES) if declared.isdigit() else None,
    )
    word = await call.served.io.call(call.served.spool.begin, upload)
    query = f"upload_id={word}&upload_protocol=resumable"
    headers = [
        ("x-goog-upload-url", f"{call.own_address}?{query}"),
        ("x-goog-upload-status", "active"),
        ("x-goog-upload-chunk-granularity", str(_GRANULARITY)),
    ]
    await answer(call.send, 200, b"", headers)


async def go_on(call: Call, word: str) -> None:
    """`upload`, `query`, `finalize`, `cancel`: by whoever knows the word."""
    commands = _commands(call)
    with call.served.spool.opened(word) as coming:
        if coming.upload.file is not None:
            await _told(call, coming)
            return
        if "upload" in commands and not await _appended(call, coming):
            return
        if "cancel" in commands:
            coming.cancel()
            await answer(call.send, 200, b"", [("x-goog-upload-status", "cancelled")])
        elif "finalize" in commands:
            await _finished(call, coming)
        elif commands & {"upload", "query"}:
            await answer(call.send, 200, b"", _progress(coming))
        else:
            await refuse(call.send, 400, "no known X-Goog-Upload-Command", "upload_command")


async def _appended(call: Call, coming: Coming) -> bool:
    """Whether a chunk was taken in. What comes of one that breaks off stays: a `query` says how far it got."""
    offset = _header(call, "x-goog-upload-offset")
    at = coming.size_bytes
    if not offset.isdigit() or int(offset) != at:
        document = refusal(
            400, f"the chunk is for offset {offset[:20]}, and {at} bytes are here", reason="upload_offset"
        )
        await answer_json(call.send, 400, document, _progress(coming))
        return False
    io, descriptor = call.served.io, os.open(coming.path, os.O_WRONLY)
    try:
        async for piece in bodies.pieces(call.receive, call.served.serving.deadlines, coming.most_bytes - at):
            await io.call(_write, descriptor, piece)
    finally:
        os.close(descriptor)
    return True


async def _finished(call: Call, coming: Coming) -> None:
    """Brought to the service, or known to be there already; the answer describes it as the service does."""
    upload, served = coming.upload, call.served
    if upload.declared_bytes not in (None, coming.size_bytes):
        message = f"{coming.size_bytes} bytes are here, and {upload.declared_bytes} were declared"
        await answer_json(call.send, 400, refusal(400, message, reason="upload_incomplete"), _progress(coming))
        return
    with coming.path.open("rb") as file:
        label = (upload.display_name or "")[:_LONGEST_NAME]
        part = MediaPart(source=file, label=label, declared_mime=upload.mime)
        mime = await served.io.call(_mime, call, part)
        references = served.preflight.references(call.endpoint.account)
        reference = await references.ensure(part, mime, tenant=upload.tenant)
    coming.end(reference.name)
    await _told(call, coming)


async def _told(call: Call, coming: Coming) -> None:
    document = await described(call, coming.upload.file or "")
    if document is None:
        await refuse(call.send, 404, "the file is gone", "file_gone")
        return
    if coming.upload.display_name is not None:
        document = {**document, "displayName": coming.upload.display_name}
    await answer_json(call.send, 200, {"file": document}, [("x-goog-upload-status", "final")])


def _mime(call: Call, part: MediaPart) -> str:
    """What the bytes are; of what nothing recognises, what the client calls it."""
    known = call.served.preflight.identify(part)
    if known.error is not None:
        raise known.error
    declared = part.declared_mime
    if known.mime is None:
        if declared is None:
            raise UnknownMediaType("nothing recognises these bytes; name their type")
        return declared
    if (
        declared is not None
        and not agrees(declared, known.mime)
        and call.endpoint.mime_mismatch is OnMimeMismatch.REJECT
    ):
        raise MimeMismatch(f"labelled {declared[:100]}; the bytes are {known.mime}", found=known.mime)
    return known.mime


def _write(descriptor: int, piece: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_END)
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


def _progress(coming: Coming) -> list[tuple[str, str]]:
    return [("x-goog-upload-status", "active"), ("x-goog-upload-size-received", str(coming.size_bytes))]


def _commands(call: Call) -> set[str]:
    return {word.strip() for word in _header(call, "x-goog-upload-command").lower().split(",")}


def _header(call: Call, name: str) -> str:
    wanted = name.encode()
    return next((value.decode("latin-1").strip() for key, value in call.headers if key == wanted), "")


def _text(value: object) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) and value else None
