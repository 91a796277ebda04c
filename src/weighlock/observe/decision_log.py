"""One JSON line a request, appended; the lines read again. What goes wrong with it is told once, and fails nobody."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from weighlock.errors import ConfigError
from weighlock.events import VERSION, Ended
from weighlock.locks import Lock

_log = logging.getLogger("weighlock")
_LONGEST_LINE = 4 << 20
STDOUT = "stdout"


class DecisionLog:
    """Thread-safe and safe to fork: every line is one write to a file opened for it, so that it may be rotated.

    Args:
        where: A file, made for its owner only; or `stdout`.
    """

    def __init__(self, where: Path | str) -> None:
        self._where = where
        self._lock = Lock()
        self.lost = 0
        """Lines that could not be written."""

    def write(self, event: Ended) -> None:
        line = json.dumps(as_json(event), separators=(",", ":"), default=_plain) + "\n"
        try:
            if self._where == STDOUT:
                with self._lock:
                    sys.stdout.write(line)
                    sys.stdout.flush()
            else:
                _append(Path(self._where), line.encode())
        except (OSError, ValueError) as error:  # ValueError: stdout is closed
            with self._lock:
                self.lost += 1
                first = self.lost == 1
            if first:
                _log.warning("the decision log cannot be written (%s); requests go on", type(error).__name__)


def as_json(event: Ended) -> dict[str, Any]:
    """An event as JSON values."""
    return {"v": VERSION, **asdict(event), "at": event.at.isoformat()}


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else str(value)


def _append(path: Path, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, flags, 0o600)
    try:
        if os.write(fd, line) < len(line):  # a full disk: end the torn line, so that the next one stands by itself
            os.write(fd, b"\n")
            raise OSError("torn")
    finally:
        os.close(fd)


@dataclass(slots=True)
class Reading:
    """What of a log could not be used."""

    lines: int = 0
    broken: int = 0
    """Torn, or no line of ours."""
    newer: int = 0


def read(path: Path, since: datetime | None, reading: Reading) -> Iterator[dict[str, Any]]:
    """The requests of a log from `since` on, in order. What cannot be read is counted and passed over.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                if not line.strip():
                    continue
                reading.lines += 1
                known = _known(line, reading)
                if known is not None and (since is None or datetime.fromisoformat(known["at"]) >= since):
                    yield known
    except OSError as error:
        raise ConfigError(f"decision log {path}: {error.strerror or error}") from error


def _known(line: bytes, reading: Reading) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
        if not isinstance(document, dict) or not isinstance(document.get("v"), int):
            raise ValueError
        if datetime.fromisoformat(document["at"]).tzinfo is None:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        reading.broken += 1
        return None
    if document["v"] > VERSION:
        reading.newer += 1
    return document
