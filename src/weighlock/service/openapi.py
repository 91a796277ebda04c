"""The JSON API, described for machines: OpenAPI 3.1."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from weighlock.report import SCHEMA
from weighlock.request import Backend

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "One sentence: figures, the reason, the knob that would help."},
    },
}
_TALLY = {
    "type": "object",
    "required": ["low", "likely", "high"],
    "properties": {bound: {"type": "integer", "minimum": 0} for bound in ("low", "likely", "high")},
}
_REPORT = {
    "type": "object",
    "required": ["schema"],
    "properties": {"schema": {"const": SCHEMA, "description": "Raised when a field changes its meaning."}},
    "description": "As `weighlock check --format json` and `weighlock fit --format json` print it.",
}
_REQUEST = {
    "type": "object",
    "required": ["contents"],
    "properties": {
        "contents": {"type": "array", "items": {"type": "object"}},
        "systemInstruction": {"type": "object"},
        "tools": {"type": "array", "items": {"type": "object"}},
        "generationConfig": {"type": "object"},
    },
    "description": "A body of generateContent: media as inlineData, or fileData whose address the settings list.",
}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_MEDIA = ("image/png", "image/jpeg", "video/mp4", "audio/wav", "application/pdf", "application/octet-stream")


@cache
def document() -> dict[str, Any]:
    """The whole of it. Not to be changed by whoever asks."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "weighlock", "version": version("weighlock"), "license": {"name": "Apache-2.0"}},
        "paths": {
            "/weighlock/v1/check": {"post": _asked("check", "What a request or a medium is, and would cost.")},
            "/weighlock/v1/fit": {"post": _asked("fit", "How it would be made to fit its endpoint's limits.")},
            "/weighlock/v1/openapi.json": {
                "get": {"operationId": "openapi", "summary": "This.", "responses": {"200": {"description": "This."}}}
            },
        },
        "components": {
            "schemas": {"Problem": _PROBLEM, "Report": _REPORT, "Request": _REQUEST, "Tally": _TALLY},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"}},
        },
        "security": [{}, {"key": []}],
    }


def _asked(name: str, summary: str) -> dict[str, Any]:
    media = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _MEDIA}
    request = {"schema": {"$ref": "#/components/schemas/Request"}}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [
            _query("model", {"type": "string"}, "Where the body names none; the endpoint's where nobody does."),
            _query("backend", {"enum": [one.value for one in Backend]}, "The account's where left out."),
            _query(
                "max_tokens", {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}, "In the place of the limit."
            ),
            _query("max_usd", {"type": "string", "pattern": r"^\d{1,12}(\.\d{1,12})?$"}, "In the place of the limit."),
            _query("output_tokens", _COUNT, "Of the answer."),
            _header("x-weighlock-endpoint", "Whose limits apply; the key's only one where left out."),
            _header("x-weighlock-session", "Of an agent's run."),
        ],
        "requestBody": {"required": True, "content": {"application/json": request, **media}},
        "responses": {
            "200": {
                "description": "The report.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Report"}}},
            },
            **{status: _problem(words) for status, words in _REFUSALS.items()},
        },
    }


_REFUSALS = {
    "400": "It is no request, or one nobody could send.",
    "403": "The key may not do that.",
    "408": "The body comes too slowly.",
    "410": "A file of the service that is gone.",
    "413": "Too large.",
    "415": "No medium the service or weighlock can take.",
    "422": "What is asked of a medium cannot be had.",
    "503": "Too much at once; try again.",
}


def _problem(words: str) -> dict[str, Any]:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {"description": words, "content": {"application/problem+json": problem, "application/json": {}}}


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": description}
