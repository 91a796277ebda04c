"""What clients asked, for whoever tests them. Kept in memory only, and never printed with credentials or bodies."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from weighlock.request import Json

_KEPT = 10_000
LONGEST_BODY = 1 << 20
"""Longer bodies are counted and not kept."""


@dataclass(slots=True, kw_only=True)
class Recorded:
    """One request and what came of it."""

    operation: str
    """`generate`, `stream`, `count`, `upload.chunk`, `files.get` …"""
    method: str
    path: str
    query: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """In lower case, with the credentials as they came: a test may want to see them. Never printed."""
    status: int | None = None
    """`None` where no answer left."""
    fault: str | None = None
    body_bytes: int = 0
    body: bytes = field(default=b"", repr=False)
    """Of JSON requests up to 1 MiB."""
    usage: Json = None
    """`usageMetadata` as the whole answer has it: what the request is billed. `None` of what costs nothing."""

    @property
    def json(self) -> Json:
        """The body as JSON."""
        return json.loads(self.body)


class Journal:
    """The latest requests, oldest first."""

    def __init__(self) -> None:
        self._kept: deque[Recorded] = deque(maxlen=_KEPT)

    def add(self, recorded: Recorded) -> None:
        self._kept.append(recorded)

    def __iter__(self) -> Iterator[Recorded]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, at: int) -> Recorded:
        return tuple(self._kept)[at]

    def of(self, operation: str) -> list[Recorded]:
        """Those of an operation, or of all it begins (`upload`)."""
        return [one for one in self if one.operation == operation or one.operation.startswith(f"{operation}.")]

    def clear(self) -> None:
        self._kept.clear()
