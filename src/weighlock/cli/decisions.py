"""Where the decision log is, and from when on it is read. Shared by `what-if` and `usage`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from weighlock.cli.printable import printable
from weighlock.errors import ConfigError
from weighlock.observe.decision_log import Reading, read
from weighlock.settings import Settings
from weighlock.settings.amounts import parse_seconds


def lines_of(log: Path | None, settings: Settings, since: str | None, reading: Reading) -> Iterator[dict[str, Any]]:
    """The lines of a log, or of the one the settings name.

    Raises:
        ConfigError: there is none.
    """
    where = log or settings.observe.decision_log
    if not isinstance(where, Path):
        raise ConfigError("no decision log to read: set observe.decision_log to a file, or name one with --log")
    for line in read(where, _since(since), reading):
        if "not_held" not in (line.get("codes") or ()):  # what was only counted, cached or batched
            yield line


def say_unread(reading: Reading) -> None:
    """What was passed over."""
    told = [
        f"{count:,} line{'s' if count > 1 else ''} {what}"
        for count, what in (
            (reading.broken, "torn or none of ours"),
            (reading.newer, "of a newer version, read as far as they are known"),
        )
        if count
    ]
    if told:
        click.echo(printable(f"weighlock: {'; '.join(told)}"), err=True)


def _since(words: str | None) -> datetime | None:
    if words is None:
        return None
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_seconds(words))
    except (ValueError, OverflowError):
        pass
    try:
        day = datetime.fromisoformat(words)
    except ValueError:
        raise click.BadParameter(f"{words!r} is no time; write 12h, 7d or 2026-11-30", param_hint="--since") from None
    return day if day.tzinfo else day.replace(tzinfo=UTC)
