"""Server-sent events as the service streams them: what they say of usage, and the same as a JSON array. Pure."""

from __future__ import annotations

import json
from typing import Any

from weighlock.gemini.usage import last_usage

_MOST_HELD, _MOST_WAITED_FOR = 64 << 20, 1 << 20
_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\r")
_USAGE = (b"usageMetadata", b"usage_metadata")


class Stream:
    """A stream that goes by, event by event: what is sent on of it, and its usage. One a stream.

    An event is sent on once it is whole, so that one of our own may follow any other; of a very long one all that is
    there.
    """

    media_type = "text/event-stream"

    def __init__(self) -> None:
        self.usage: dict[str, Any] = {}
        """As far as it has come, of each count the last word; empty where nothing was said."""
        self._held = bytearray()
        self._looked = self._sent = 0
        """So far no end was found in what is held, and so much of it is sent on."""
        self._skips = False

    def feed(self, piece: bytes) -> bytes:
        """What is to be sent on now."""
        self._held += piece
        told = [self._event(*found) for found in iter(self._end, None)]
        return b"".join(told) + self._overlong()

    def item(self, data: bytes) -> bytes:
        """An event of our own."""
        begun = b"\r\n\r\n" if self._sent else b""
        return begun + b"data: " + data + b"\r\n\r\n"

    def end(self) -> bytes:
        """What is left when the service has said all: also an event it did not end."""
        return bytes(self._held[self._sent :])

    def forget(self) -> None:
        """What was not whole when the service broke off."""
        self._held.clear()
        self._sent = 0

    def _event(self, end: int, after: int) -> bytes:
        event, sent = bytes(self._held[:end]), self._sent
        whole = bytes(self._held[sent:after])
        del self._held[:after]
        self._looked = self._sent = 0
        data = b"" if self._skips else _data(event)
        self._skips = False
        if any(word in data for word in _USAGE):
            self.usage = last_usage([self.usage, _usage(data)])
        return self._told(whole, data)

    def _told(self, event: bytes, data: bytes) -> bytes:
        return event

    def _end(self) -> tuple[int, int] | None:
        """Where the first event ends, and where the next begins."""
        found = [(at, at + len(end)) for end in _ENDS if (at := self._held.find(end, self._looked)) >= 0]
        if not found:
            self._looked = max(0, len(self._held) - 3)
        return min(found, default=None)

    def _overlong(self) -> bytes:
        """Of an event that is too long to wait for; where it is too long to hold, nobody reads its usage."""
        if len(self._held) - self._sent <= _MOST_WAITED_FOR:
            return b""
        told, self._sent = bytes(self._held[self._sent :]), len(self._held)
        if len(self._held) > _MOST_HELD:
            del self._held[:-3]
            self._looked, self._sent, self._skips = 0, len(self._held), True
        return told


class Listed(Stream):
    """The same events as a JSON array, for whoever does not ask for `alt=sse`."""

    media_type = "application/json; charset=UTF-8"

    def __init__(self) -> None:
        super().__init__()
        self._any = False

    def item(self, data: bytes) -> bytes:
        before = b",\r\n" if self._any else b"["
        self._any = True
        return before + data

    def end(self) -> bytes:
        return b"]" if self._any else b"[]"

    def _told(self, event: bytes, data: bytes) -> bytes:
        return self.item(data) if data else b""

    def _overlong(self) -> bytes:
        if len(self._held) > _MOST_HELD:
            del self._held[:-3]
            self._looked, self._skips = 0, True
        return b""


def _data(event: bytes) -> bytes:
    lines = event.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def _usage(data: bytes) -> Any:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document.get("usageMetadata") or document.get("usage_metadata") if isinstance(document, dict) else None
