"""Files of clients: taken in by the resumable protocol, brought to the service once for each content, repaired later.

A file is taken in whole before the service sees any of it. Only then it is known what it is, whether the tenant has
uploaded it already, and how to send it once more should the service break off: the registry of references does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weighlock.errors import FileProcessingFailed, InputError, MimeMismatch, UnknownMediaType
from weighlock.mime import HEAD_BYTES, Window, agrees
from weighlock.planning.identify import identify_bytes
from weighlock.request import Backend, MediaPart
from weighlock.service import bodies
from weighlock.service.announced import Command, announced, command, demand_resumable, header, number
from weighlock.service.answering import answer, answer_json, refuse
from weighlock.service.bodies import BodyRefused
from weighlock.service.call import Call
from weighlock.service.filing import described, is_taken
from weighlock.service.refusals import of_error, refusal
from weighlock.service.spool import Coming, Upload
from weighlock.settings import OnMimeMismatch
from weighlock.uploads.source import PartSource

_GRANULARITY = 256 * 1024
_MOST_START_BYTES = 64 * 1024
_STATUS = "x-goog-upload-status"
_CANCELLED = ((_STATUS, "cancelled"),)


async def begin(call: Call) -> None:
    """`start`: answered with an address of ours, whose query is all it takes to go on."""
    if call.endpoint.account.backend is Backend.VERTEX:
        await refuse(call.send, 404, "the account is Vertex's, which has no Files API", "unknown_path")
        return
    demand_resumable(call.headers)
    if command(call.headers) is not Command.START:
        await refuse(call.send, 400, "an upload begins with the command start; this names none", "upload_command")
        return
    deadlines = call.served.serving.deadlines
    body = await bodies.whole(call.receive, deadlines, _MOST_START_BYTES, call.declared_bytes, _too_much_said)
    said = announced(call.headers, body)
    if said.name is not None and await call.served.io.call(is_taken, call, said.name):
        await answer_json(call.send, 409, _taken(said.name))
        return
    upload = Upload(
        tenant=call.caller.tenant,
        client=call.caller.client,
        endpoint=call.caller.endpoint,
        mime=said.mime,
        display_name=said.display_name,
        name=said.name,
        declared_bytes=said.size_bytes,
    )
    word = await call.served.io.call(call.served.spool.begin, upload)
    headers = [
        ("x-goog-upload-url", f"{call.own_address}?upload_id={word}&upload_protocol=resumable"),
        (_STATUS, "active"),
        ("x-goog-upload-chunk-granularity", str(_GRANULARITY)),
    ]
    await answer(call.send, 200, b"", headers)


@dataclass(frozen=True, slots=True)
class _Said:
    """An answer. Sent once nobody is at the upload: its client may go on with it in another process at once."""

    status: int
    document: Any = None
    headers: tuple[tuple[str, str], ...] = ()


async def go_on(call: Call, word: str) -> None:
    """`upload`, `query`, `finalize`, `cancel`: by whoever knows the word."""
    asked = command(call.headers)
    with call.served.spool.opened(word) as coming:
        said = await _gone_on(call, coming, asked)
    if said.document is None:
        await answer(call.send, said.status, b"", said.headers)
    else:
        await answer_json(call.send, said.status, said.document, said.headers)


async def _gone_on(call: Call, coming: Coming, asked: Command) -> _Said:
    if coming.upload.file is not None:
        return await _told(call, coming)
    if asked is Command.START:
        return _Said(400, refusal(400, "this upload has begun already", reason="upload_command"))
    if asked is Command.CANCEL:
        coming.cancel()
        return _Said(200, None, _CANCELLED)
    if asked.uploads and (refused := await _taken_in(call, coming)) is not None:
        return refused
    return await _finished(call, coming) if asked.finalizes else _Said(200, None, _progress(coming))


async def _taken_in(call: Call, coming: Coming) -> _Said | None:
    """Why a chunk is not in. What comes of one that breaks off stays: a `query` says how far it got.

    The chunk that came last is taken once more: its sender may not have heard that it came.
    """
    here, length = coming.size_bytes, call.declared_bytes or 0
    offset = number(header(call.headers, "x-goog-upload-offset"))
    if offset is None or not offset <= here <= offset + length:
        message = f"the chunk is for offset {'none' if offset is None else offset}, and {here} bytes are here"
        return _Said(400, refusal(400, message, reason="upload_offset"), _progress(coming))
    io, deadlines, most = call.served.io, call.served.serving.deadlines, coming.most_bytes - offset
    with coming.taking_in(offset) as write:
        async for piece in bodies.pieces(call.receive, deadlines, most, coming.too_large):
            await io.call(write, piece)
    return None


async def _finished(call: Call, coming: Coming) -> _Said:
    """Brought to the service, or known to be there already; the answer describes it as the service does."""
    upload, here = coming.upload, coming.size_bytes
    if upload.declared_bytes not in (None, here):
        message = f"{here} bytes are here, and {upload.declared_bytes} were declared"
        return _Said(400, refusal(400, message, reason="upload_incomplete"), _progress(coming))
    references = call.served.preflight.references(call.endpoint.account)
    try:
        with coming.path.open("rb") as file:
            part = MediaPart(source=file, label=upload.display_name or "", declared_mime=upload.mime)
            mime = await call.served.io.call(_mime, call, part)
            reference = await references.ensure(part, mime, tenant=upload.tenant)
    except (InputError, FileProcessingFailed) as error:  # for good: told so, no client sends it again
        coming.cancel()
        status, document, _ = of_error(error)
        return _Said(status, document, _CANCELLED)
    io, name = call.served.io, upload.name or reference.name
    is_free = await io.call(references.chosen.choose, reference.key, name, io.now())
    await references.release([reference])
    if not is_free:
        coming.cancel()
        return _Said(409, _taken(name), _CANCELLED)
    coming.end(reference.name)
    return await _told(call, coming)


async def _told(call: Call, coming: Coming) -> _Said:
    upload = coming.upload
    document = await described(call, upload.file or "")
    if document is None:
        return _Said(404, refusal(404, "the file is gone", reason="file_gone"))
    said = {"name": upload.name, "displayName": upload.display_name}
    told = {**document, **{field: value for field, value in said.items() if value is not None}}
    return _Said(200, {"file": told}, ((_STATUS, "final"),))


def _mime(call: Call, part: MediaPart) -> str:
    """What the bytes are; of what nothing recognises, what the client calls it."""
    declared = part.declared_mime
    with PartSource(part, max_bytes=call.served.settings.safety.max_file_bytes) as source:
        window = Window(head=source.read_at(0, HEAD_BYTES), size=source.size_bytes, read_at=source.read_at)
        known = identify_bytes(window, part, bytes).mime  # what text would be in UTF-8 is of no use here
    if known is None:
        if declared is None:
            raise UnknownMediaType("nothing recognises these bytes; name their type")
        return declared
    if declared is None or agrees(declared, known) or call.endpoint.mime_mismatch is not OnMimeMismatch.REJECT:
        return known
    raise MimeMismatch(f"labelled {declared}; the bytes are {known}", found=known)


def _taken(name: str) -> Any:
    """As the service says it."""
    document = refusal(409, f"Requested entity already exists: {name}", reason="name_taken")
    document["error"]["status"] = "ALREADY_EXISTS"
    return document


def _too_much_said(most: int) -> BodyRefused:
    return BodyRefused(413, f"an upload begins with no more than {most:,} bytes of JSON", "body_too_large")


def _progress(coming: Coming) -> tuple[tuple[str, str], ...]:
    return (_STATUS, "active"), ("x-goog-upload-size-received", str(coming.size_bytes))
