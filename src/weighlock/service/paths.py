"""What a path asks for. Pure: nothing is sent on by the text of a path, only by what is understood of it.

The paths of the Developer API under `v1`, `v1beta`, `v1alpha` or no version, and Vertex's; in front of any of them
`/endpoints/NAME` names the endpoint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from weighlock.request import Backend

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._@~-]{0,127}"
_PATH = re.compile(rf"(?:/{_SEGMENT}(?::[A-Za-z]{{1,40}})?)+", re.ASCII)
_PREFIX = re.compile(r"/endpoints/([a-z0-9_]{1,100})(?=/)", re.ASCII)
_VERSION = r"(?:/(?P<version>v1|v1beta|v1alpha|v1beta1))?"
_MODEL = rf"/(?P<model>(?:models|tunedModels)/{_SEGMENT})(?::(?P<method>\w+))?"
_PROJECT = rf"(?:/projects/{_SEGMENT}/locations/{_SEGMENT})?"
_PUBLISHED = rf"{_PROJECT}/publishers/google/models/(?P<model>{_SEGMENT}):(?P<method>\w+)"
_COLLECTION = r"(?P<collection>files|cachedContents|batches)"

_DEVELOPER_MODEL = re.compile(f"{_VERSION}{_MODEL}", re.ASCII)
_VERTEX_MODEL = re.compile(f"{_VERSION}{_PUBLISHED}", re.ASCII)
_MODELS = re.compile(f"{_VERSION}/models", re.ASCII)
_UPLOAD = re.compile("/upload(?:/(?P<version>v1|v1beta|v1alpha))?/files", re.ASCII)
_NAMED = re.compile(rf"{_VERSION}/{_COLLECTION}(?:/(?P<id>{_SEGMENT}))?(?::(?P<method>\w+))?", re.ASCII)
_VERTEX_NAMED = re.compile(rf"{_VERSION}{_PROJECT}/(?P<collection>cachedContents)(?:/(?P<id>{_SEGMENT}))?", re.ASCII)


class Kind(StrEnum):
    """What is done about a call."""

    GENERATE = "generateContent"
    STREAM = "streamGenerateContent"
    COUNT = "countTokens"
    EMBED = "embedContent"
    BATCH_EMBED = "batchEmbedContents"
    BATCH = "batchGenerateContent"
    MODELS = "models"
    """The list of models, or a look at one."""
    UPLOAD = "upload"
    FILES = "files"
    CACHES = "cachedContents"
    BATCHES = "batches"
    UNKNOWN = "unknown"


_METHODS = {
    one.value: one for one in (Kind.GENERATE, Kind.STREAM, Kind.COUNT, Kind.EMBED, Kind.BATCH_EMBED, Kind.BATCH)
}
_OF_VERTEX = frozenset({Kind.GENERATE, Kind.STREAM, Kind.COUNT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One call, as its path has it."""

    kind: Kind
    path: str
    """Below the endpoint's prefix."""
    endpoint: str | None = None
    """Named by the path."""
    backend: Backend = Backend.DEVELOPER
    """Whose way of asking it is; not whom the account asks."""
    model: str | None = None
    name: str | None = None
    """Of the resource: `files/abc`."""
    method: str | None = None
    """Of a resource: `download`, `cancel`."""


def route(path: str) -> Route | None:
    """What a path asks for; `None` where it is none a client of the service sends (`..`, `%2f`, `//`, blanks)."""
    if len(path) > 2_000 or not _PATH.fullmatch(path):
        return None
    endpoint = None
    if prefix := _PREFIX.match(path):
        endpoint, path = prefix[1], path[prefix.end() :]
    for found in (_of_model(path), _of_resource(path)):
        if found is not None:
            kind, backend, model, name, method = found
            return Route(
                kind=kind, path=path, endpoint=endpoint, backend=backend, model=model, name=name, method=method
            )
    return Route(kind=Kind.UNKNOWN, path=path, endpoint=endpoint)


_Found = tuple[Kind, Backend, str | None, str | None, str | None]


def _of_model(path: str) -> _Found | None:
    if found := _VERTEX_MODEL.fullmatch(path):
        kind = _METHODS.get(found["method"])
        return (kind, Backend.VERTEX, found["model"], None, None) if kind in _OF_VERTEX else None
    if found := _DEVELOPER_MODEL.fullmatch(path):
        model = found["model"].removeprefix("models/")
        if found["method"] is None:
            return Kind.MODELS, Backend.DEVELOPER, model, None, None
        kind = _METHODS.get(found["method"])
        return None if kind is None else (kind, Backend.DEVELOPER, model, None, None)
    return (Kind.MODELS, Backend.DEVELOPER, None, None, None) if _MODELS.fullmatch(path) else None


def _of_resource(path: str) -> _Found | None:
    if _UPLOAD.fullmatch(path):
        return Kind.UPLOAD, Backend.DEVELOPER, None, None, None
    for pattern, backend in ((_NAMED, Backend.DEVELOPER), (_VERTEX_NAMED, Backend.VERTEX)):
        if found := pattern.fullmatch(path):
            collection, given = found["collection"], found["id"]
            method = found.groupdict().get("method")
            name = None if given is None else f"{collection}/{given}"
            if name is None and method is not None:
                return None  # files:register and what may come
            return Kind(collection), backend, None, name, method
    return None
