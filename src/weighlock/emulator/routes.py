"""The routes of both backends. The one door to `starlette`, with the admin's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from weighlock.converters.json_text import dumps, loads
from weighlock.emulator import errors
from weighlock.emulator.accounts import Project
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.exchange import RECORDED
from weighlock.emulator.generate import event, listed
from weighlock.emulator.resumable import GRANULARITY, Session, State, UploadError
from weighlock.emulator.service import Service
from weighlock.request import Backend, Json

_VERSIONS = "v1|v1beta|v1alpha|v1beta1|v1main"
_MODELS = "/publishers/google/models/{model}"
_PAGE, _MOST_ON_PAGE = 10, 100
_LIGHT_BYTES, _MEDIA_WORDS = 256 * 1024, (b"inline", b"file")
"""A body up to this size without media is answered on the event loop; a thread would cost more than the work."""


def routes(service: Service) -> list[Route]:
    """All routes of the service itself."""
    served = _Routes(service)
    model = Route("/{version}/models/{model}", served.model, methods=["GET", "POST"])
    return [
        model,
        Route("/{version}/models", served.models, methods=["GET"]),
        Route("/{version}/projects/{project}/locations/{location}" + _MODELS, served.vertex, methods=["POST"]),
        Route("/{version}" + _MODELS, served.vertex, methods=["POST"]),
        Route("/upload/{version}/files", served.upload, methods=["POST", "PUT"]),
        Route("/{version}/files", served.list_files, methods=["GET"]),
        Route("/{version}/files/{name}", served.file, methods=["GET", "DELETE"]),
    ]


def answer(document: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON, as the service writes it."""
    return Response(dumps(document), status, headers, media_type="application/json; charset=UTF-8")


class _Routes:
    def __init__(self, service: Service) -> None:
        self.service = service

    @reproduces("api-versions", "list-models")
    async def model(self, request: Request) -> Response:
        """`models/M:method`, and a look at a model."""
        if request.method == "GET":
            name = _demand_version(request) and request.path_params["model"]
            self.project(request)
            return answer(_model(self.service, name))
        return await self._asked(request, Backend.DEVELOPER, self.project(request))

    @reproduces("vertex-paths")
    async def vertex(self, request: Request) -> Response:
        project = self.project(request, request.path_params.get("project"))
        return await self._asked(request, Backend.VERTEX, project)

    async def models(self, request: Request) -> Response:
        _demand_version(request)
        self.project(request)
        return answer({"models": [_model(self.service, name) for name in self.service.rules.models()]})

    async def _asked(self, request: Request, backend: Backend, project: Project) -> Response:
        version = _demand_version(request)
        name, _, method = request.path_params["model"].rpartition(":")
        if method not in ("generateContent", "streamGenerateContent", "countTokens"):
            raise HTTPException(404)
        rules = self.service.model(name, backend, version, method)
        body = await request.body()
        deed = self.service.count if method == "countTokens" else self.service.generate
        light = len(body) <= _LIGHT_BYTES and not any(word in body for word in _MEDIA_WORDS)
        done = deed(body, name, rules, project) if light else await run_in_threadpool(deed, body, name, rules, project)
        if method == "countTokens":
            return answer(done)
        request.scope[RECORDED].usage = done.usage
        await asyncio.sleep(done.answer.after_s)
        if method == "generateContent":
            return answer(done.whole())
        is_events, pause_s = request.query_params.get("alt") == "sse", done.answer.pause_s
        pieces = map(event, done.pieces()) if is_events else listed(done.pieces())
        kind = "text/event-stream" if is_events else "application/json; charset=UTF-8"
        return StreamingResponse(_flowing(pieces, pause_s), media_type=kind)

    def project(self, request: Request, vertex: str | None = None) -> Project:
        """Whose request it is: by `x-goog-api-key`, `?key=` or a bearer token."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        key = request.headers.get("x-goog-api-key") or request.query_params.get("key") or token
        return self.service.accounts.of_key(key)

    # ---- files

    @reproduces("list-files")
    async def list_files(self, request: Request) -> Response:
        _demand_version(request)
        project = self.project(request)
        size = _number(request.query_params.get("pageSize")) or _PAGE
        token = request.query_params.get("pageToken", "")
        page, following = self.service.files.page(project, min(size, _MOST_ON_PAGE), token)
        now = self.service.clock.now()
        document: dict[str, Json] = {"files": [file.document(now) for file in page]} if page else {}
        return answer(document | ({"nextPageToken": following} if following else {}))

    async def file(self, request: Request) -> Response:
        _demand_version(request)
        project, name = self.project(request), request.path_params["name"]
        if request.method == "DELETE":
            self.service.files.delete(project, name)
            return answer({})
        return answer(self.service.files.get(project, name).document(self.service.clock.now()))

    # ---- uploads

    @reproduces("upload-commands", "upload-keyless")
    async def upload(self, request: Request) -> Response:
        version = _demand_version(request)
        commands = {word.strip() for word in request.headers.get("x-goog-upload-command", "").lower().split(",")}
        if "start" in commands:
            return await self._start(request, version)
        session = self.service.uploads.session(request.query_params.get("upload_id"))
        try:
            if "upload" in commands:
                offset = _number(request.headers.get("x-goog-upload-offset"))
                last = "finalize" in commands
                await self.service.uploads.append(
                    session, -1 if offset is None else offset, request.stream(), last=last
                )
            elif "cancel" in commands:
                self.service.uploads.cancel(session)
            elif not commands & {"query", "finalize"}:
                raise errors.invalid("Unknown X-Goog-Upload-Command.")
            if "finalize" in commands:
                self.service.uploads.finalize(session)
        except UploadError as error:
            return answer(error.document(), error.code, _progress(session))
        return self._uploaded(session, "finalize" in commands)

    @reproduces("upload-start")
    async def _start(self, request: Request, version: str) -> Response:
        project = self.project(request)
        if request.headers.get("x-goog-upload-protocol", "").lower() != "resumable":
            raise errors.invalid("X-Goog-Upload-Protocol is 'resumable' here.")
        body = await request.body()
        document = loads(body) if body.strip() else {}
        described = document.get("file") if isinstance(document, dict) else None
        file = described if isinstance(described, dict) else {}
        mime = request.headers.get("x-goog-upload-header-content-type")
        upload_id = self.service.uploads.start(
            project,
            name=_text(file, "name"),
            version=version,
            mime=mime or _text(file, "mimeType", "mime_type"),
            declared_bytes=_number(request.headers.get("x-goog-upload-header-content-length")),
            display_name=_text(file, "displayName", "display_name"),
        )
        url = request.url.replace(query=f"upload_id={upload_id}&upload_protocol=resumable")
        headers = {
            "x-goog-upload-url": str(url),
            "x-goog-upload-status": State.ACTIVE,
            "x-goog-upload-chunk-granularity": str(GRANULARITY),
        }
        return Response(headers=headers)

    @reproduces("upload-query", "upload-final")
    def _uploaded(self, session: Session, told: bool) -> Response:
        """How far it is; the file itself only to whoever finished it."""
        if session.state is State.FINAL and session.file is not None and told:
            return answer({"file": session.file.document(self.service.clock.now())}, headers=_progress(session))
        return Response(headers=_progress(session))


async def _flowing(pieces: Iterator[bytes], pause_s: float) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        if pause_s:
            await asyncio.sleep(pause_s)


def _progress(session: Session) -> dict[str, str]:
    return {"x-goog-upload-status": session.state, "x-goog-upload-size-received": str(session.size_bytes)}


def _demand_version(request: Request) -> str:
    version: str = request.path_params["version"]
    if version not in _VERSIONS.split("|"):
        raise HTTPException(404)
    return version


def _text(file: Mapping[str, Json], *names: str) -> str | None:
    """A field in any of its spellings.

    Raises:
        ApiError: 400, it is no text.
    """
    found = next((file[name] for name in names if file.get(name) is not None), None)
    if found is not None and not isinstance(found, str):
        raise errors.invalid(f"Invalid value at 'file.{names[0]}' (TYPE_STRING).")
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _model(service: Service, name: str) -> Json:
    rules = service.model(name, Backend.DEVELOPER, "v1beta", "getModel")
    return {
        "name": f"models/{rules.model}",
        "displayName": rules.model,
        "inputTokenLimit": rules.limits.context_tokens,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
