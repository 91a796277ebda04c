"""A server on loopback that answers as a scripted Gemini would and keeps every request body as it came."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]

_ROUTE = re.compile(r"(?:/v1|/v1beta|/v1alpha)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")
_LABEL = re.compile(rb"\[([a-z0-9._-]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool, as the scripted model makes it."""

    name: str
    args: Mapping[str, Any]


Script = tuple[tuple[Call, ...], ...]
"""The model's turns that call tools, each with its calls; after the last one it answers with a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A request as it came: `label` is the one of the conversation it belongs to, `""` if it has none."""

    label: str
    model: str
    method: str
    path: str
    body: bytes


class Capture:
    """The server; `scripts` say what the model does in the conversation whose prompt holds `[label]`."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self.scripts = scripts
        self.captured: list[Captured] = []
        self.refused: list[str] = []
        self._ids = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, label: str) -> list[Captured]:
        """The generating requests of one conversation, in order."""
        return [one for one in self.captured if one.label == label and one.method != "countTokens"]

    def answers(self, path: str, body: bytes) -> Iterable[Json] | None:
        """The chunks of the answer, `None` where there is no such route."""
        route = _ROUTE.fullmatch(path.partition("?")[0])
        if route is None:
            self.refused.append(path)
            return None
        model, method = route.groups()
        label = next((x for x in map(bytes.decode, _LABEL.findall(body)) if x in self.scripts), "")
        self.captured.append(Captured(label=label, model=model, method=method, path=path, body=body))
        if method == "countTokens":
            return [{"totalTokens": 1}]
        script, turn = self.scripts.get(label, ()), calling_turns(json.loads(body))
        parts = self._calls(model, script[turn]) if turn < len(script) else [{"text": "Seen, "}, {"text": "and done."}]
        return [_chunk(model, parts)] if method == "generateContent" else [_chunk(model, [part]) for part in parts]

    def _calls(self, model: str, calls: Iterable[Call]) -> list[Json]:
        """As the service answers: Gemini 3 numbers its calls and signs the first of a turn, 2.5 does neither."""
        modern = model.startswith("gemini-3")
        parts: list[Json] = []
        for call in calls:
            body: Json = {"name": call.name, "args": dict(call.args)}
            if modern:
                body["id"] = f"call-{next(self._ids):04d}"
            parts.append({"functionCall": body})
        if modern:
            parts[0]["thoughtSignature"] = "c2lnbmVkIGJ5IGEgc2NyaXB0"
        return parts


def calling_turns(body: Json) -> int:
    """How many turns of the history have called tools already."""
    turns = [content.get("parts", []) for content in body.get("contents", [])]
    return sum(any("functionCall" in part or "function_call" in part for part in parts) for parts in turns)


def _chunk(model: str, parts: list[Json]) -> Json:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "scripted"}


def _handler(capture: Capture) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answers = capture.answers(self.path, self._body())
            if answers is None:
                self._answer(404, "application/json", b'{"error": {"code": 404, "status": "NOT_FOUND"}}')
            elif "alt=sse" in self.path:
                events = (b"data: " + json.dumps(answer).encode() + b"\r\n\r\n" for answer in answers)
                self._answer(200, "text/event-stream", b"".join(events))
            else:
                chunks = list(answers)
                whole = chunks if ":stream" in self.path else chunks[0]
                self._answer(200, "application/json", json.dumps(whole).encode())

        def do_GET(self) -> None:
            capture.refused.append(self.path)
            self._answer(404, "application/json", b'{"error": {"code": 404, "status": "NOT_FOUND"}}')

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _answer(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Keeps quiet."""

    return Handler
