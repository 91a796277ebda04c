"""What the emulator reproduces, and who says that the service does so.

`behaviours.toml` is the table; `reproduces` ties an entry to the code that does it, and a test holds one to the other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from weighlock.rules.book import packaged_sources

Reproducing = TypeVar("Reproducing", bound=Callable[..., Any] | type)
_TABLE = Path(__file__).with_name("behaviours.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One thing the service does, and how that is known."""

    name: str
    does: str
    sources: tuple[str, ...] = ()
    """Title, address and date of each; empty where nobody has published it."""
    figures: Mapping[str, int] = field(default_factory=dict)
    note: str | None = None

    @property
    def assumed(self) -> bool:
        """Nobody has published it: the emulator does what is likely, or what is hardest on a client."""
        return not self.sources


def reproduces(*_names: str) -> Callable[[Reproducing], Reproducing]:
    """Marks what reproduces entries of the table. It changes nothing."""
    return lambda marked: marked


@cache
def behaviours() -> Mapping[str, Behaviour]:
    """The table, by name.

    Raises:
        KeyError: an entry names a source that is in no list.
    """
    document = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    own: dict[str, Any] = document.pop("sources")
    known = {**packaged_sources(), **own}
    return {
        name: Behaviour(
            name=name,
            does=entry["does"],
            sources=tuple(_cited(known[key]) for key in entry.get("source", ())),
            figures=entry.get("figures", {}),
            note=entry.get("note"),
        )
        for name, entry in document.items()
    }


def figure(name: str, key: str) -> int:
    """A number the service was seen to use, of one behaviour."""
    return behaviours()[name].figures[key]


def _cited(source: Mapping[str, object]) -> str:
    return ", ".join(str(source[key]) for key in ("title", "url", "dated") if key in source)
