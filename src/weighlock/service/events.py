"""Server-sent events as the service streams them: what they say of usage, and the same as a JSON array. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from weighlock.gemini.usage import last_usage

_MOST_HELD = 64 << 20
_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\r")
_USAGE = (b"usageMetadata", b"usage_metadata")


class Usage:
    """Read beside a stream that goes by: of each count the last word counts. Thread-unsafe, one a stream."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        """As far as it has come; empty where nothing was said."""
        self._events = Events()

    def feed(self, piece: bytes) -> None:
        for data in self._events.feed(piece):
            self.read(data)

    def read(self, data: bytes) -> None:
        """The data of one event."""
        if not any(word in data for word in _USAGE):
            return
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            self.said = last_usage([self.said, document.get("usageMetadata") or document.get("usage_metadata")])


class Events:
    """Cuts a stream of bytes into the data of its events, whatever ends their lines."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._looked = 0
        """So far no end was found in what is held."""
        self._skips = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of every event that is now whole. Of one that is too long to hold nothing is told."""
        self._held += piece
        while (found := self._end()) is not None:
            end, length = found
            event = bytes(self._held[:end])
            del self._held[: end + length]
            self._looked = 0
            if not self._skips and (data := _data(event)):
                yield data
            self._skips = False
        if len(self._held) > _MOST_HELD:
            del self._held[:-3]
            self._skips = True
        self._looked = max(0, len(self._held) - 3)

    def _end(self) -> tuple[int, int] | None:
        found = [(at, len(end)) for end in _ENDS if (at := self._held.find(end, self._looked)) >= 0]
        return min(found, default=None)


def _data(event: bytes) -> bytes:
    lines = event.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


class Plain:
    """The events as they come."""

    media_type = "text/event-stream"

    def feed(self, piece: bytes) -> bytes:
        return piece

    def item(self, data: bytes) -> bytes:
        """One of our own."""
        return b"data: " + data + b"\r\n\r\n"

    def end(self) -> bytes:
        return b""


class Listed:
    """The same events as a JSON array, for whoever does not ask for `alt=sse`."""

    media_type = "application/json; charset=UTF-8"

    def __init__(self) -> None:
        self._events, self._any = Events(), False

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self.item(data) for data in self._events.feed(piece))

    def item(self, data: bytes) -> bytes:
        before = b",\r\n" if self._any else b"["
        self._any = True
        return before + data

    def end(self) -> bytes:
        return b"]" if self._any else b"[]"
