"""Faults by name, at a rate, reproducible from a seed. The names are those of Google's storage test bench.

`return-503` and any other status · `return-reset-connection` · `return-broken-stream` · `return-corrupted-data` ·
`stall-always` – each also `-after-256K` (any number) where it waits for that much of a request's body, or of an
answer's for `return-broken-stream`; `stall-at-256KiB` · `return-503-after-commit` · `lose-response` ·
`lose-final-response` · `partial-commit` · `session-gone` · `absurd-retry-delay` · `empty-count` · `error-mid-stream` ·
`fail-processing`.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from weighlock.errors import InputError
from weighlock.written import quoted

_NAME = re.compile(
    r"(?P<kind>return-(?P<status>[45]\d\d)|return-reset-connection|return-broken-stream|return-corrupted-data"
    r"|partial-commit|stall)(?:-(?:after|at)-(?P<kib>\d{1,7})(?:K|KiB))?"
)


class Kind(StrEnum):
    """What a fault does."""

    STATUS = "return-status"
    RESET = "return-reset-connection"
    BROKEN_STREAM = "return-broken-stream"
    CORRUPTED = "return-corrupted-data"
    STALL = "stall"
    PARTIAL_COMMIT = "partial-commit"
    STATUS_AFTER_COMMIT = "return-503-after-commit"
    LOSE_RESPONSE = "lose-response"
    LOSE_FINAL = "lose-final-response"
    SESSION_GONE = "session-gone"
    RETRY_DELAY = "absurd-retry-delay"
    EMPTY_COUNT = "empty-count"
    ERROR_MID_STREAM = "error-mid-stream"
    FAIL_PROCESSING = "fail-processing"


_WHOLE = {kind.value: kind for kind in Kind if kind not in (Kind.STATUS, Kind.STALL)}
_WHERE = {
    Kind.PARTIAL_COMMIT: "upload.chunk",
    Kind.LOSE_FINAL: "upload.finalize",
    Kind.SESSION_GONE: "upload.chunk upload.query upload.finalize",
    Kind.EMPTY_COUNT: "count",
    Kind.ERROR_MID_STREAM: "stream",
    Kind.FAIL_PROCESSING: "upload.finalize",
}
"""Operations a fault befalls where nobody says which; any without an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A fault that befalls one request."""

    name: str
    kind: Kind
    status: int
    after_bytes: int | None
    """Of the request's body, or of the answer's; `None` where the fault waits for nothing, -1 for a random place."""
    chance: random.Random = field(repr=False)
    """Draws of this happening: the place where it says none, the byte that is spoilt."""

    def place(self, most: int) -> int:
        """Where in a body of `most` bytes it happens."""
        if self.after_bytes is None or self.after_bytes < 0:
            return self.chance.randrange(max(1, most))
        return self.after_bytes


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault and how often it happens."""

    name: str
    kind: Kind
    on: tuple[str, ...]
    """Operations, or what they begin with; empty is all."""
    rate: float = 1.0
    left: int | None = None
    """How often it may still happen."""
    skip: int = 0
    """Matching requests that are let through first."""
    status: int = 503
    after_bytes: int | None = None
    seen: int = 0
    happened: int = 0

    def fits(self, operation: str, length: int | None) -> bool:
        """Whether it can befall a request with a body of that length; `None` is unknown."""
        if self.on and not any(operation == one or operation.startswith(f"{one}.") for one in self.on):
            return False
        if self.after_bytes is None or self.kind is Kind.BROKEN_STREAM or length is None:
            return True
        return length > max(0, self.after_bytes)


class Faults:
    """The faults in force. Thread-safe.

    The nth request a fault may befall is befallen or not by the seed alone, whatever happens to others.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.stall_s = 60.0
        """How long a stalled request is held before its connection is reset."""
        self._set: dict[tuple[str, tuple[str, ...]], Fault] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Any:
        return iter(tuple(self._set.values()))

    def set(
        self,
        name: str,
        *,
        rate: float = 1.0,
        count: int | None = None,
        on: str | Sequence[str] = (),
        after_bytes: int | Literal["random"] | None = None,
        skip: int = 0,
    ) -> None:
        """Puts a fault in force; one of the same name and operations is replaced.

        Args:
            name: See the module.
            rate: Share of the requests it befalls, 0 to 1.
            count: It happens so often, and no more.
            on: Operations: `generate`, `stream`, `count`, `upload` (`upload.start`, `.chunk`, `.query`, `.finalize`),
                `files` (`files.get`, `.list`, `.delete`), `models`; all it can befall when left out.
            after_bytes: Waits for so many bytes of the body; `random` draws a place in it.
            skip: Lets so many requests through first.

        Raises:
            InputError: no such fault, or a rate that is none.
        """
        kind, status, kib = _understood(name)
        if not 0 <= rate <= 1:
            raise InputError(f"a rate is between 0 and 1, not {rate:g}")
        where = on.split() if isinstance(on, str) else list(on)
        fault = Fault(
            name=name,
            kind=kind,
            on=tuple(where or _WHERE.get(kind, "").split()),
            rate=rate,
            left=count,
            skip=skip,
            status=status,
            after_bytes=-1 if after_bytes == "random" else after_bytes if after_bytes is not None else kib,
        )
        with self._lock:
            self._set[name, fault.on] = fault

    def clear(self) -> None:
        """No more faults."""
        with self._lock:
            self._set.clear()

    def happening(self, operation: str, length: int | None) -> Happening | None:
        """What befalls the next request of an operation, with a body of that length, if it is known.

        The first fault that strikes, and nothing beside it.
        """
        with self._lock:
            for fault in self._set.values():
                if fault.left == 0 or not fault.fits(operation, length):
                    continue
                fault.seen += 1
                chance = random.Random(f"{self.seed} {fault.name} {fault.on} {fault.seen}")  # noqa: S311
                if fault.seen <= fault.skip or chance.random() >= fault.rate:
                    continue
                fault.happened += 1
                fault.left = None if fault.left is None else fault.left - 1
                return Happening(
                    name=fault.name,
                    kind=fault.kind,
                    status=fault.status,
                    after_bytes=fault.after_bytes,
                    chance=chance,
                )
        return None


def _understood(name: str) -> tuple[Kind, int, int | None]:
    """Kind, status and bytes of a fault's name."""
    if name in _WHOLE:
        return _WHOLE[name], 503, None
    if name == "stall-always":
        return Kind.STALL, 503, None
    found = _NAME.fullmatch(name)
    if found is None or (found["kind"] == "stall" and found["kib"] is None):
        raise InputError(f"there is no fault {quoted(name)}; there is return-503 and its kin, {', '.join(_WHOLE)}")
    kind = Kind.STATUS if found["status"] else Kind(found["kind"])
    return kind, int(found["status"] or 503), None if found["kib"] is None else int(found["kib"]) * 1024
