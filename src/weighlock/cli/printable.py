"""Foreign words on their way to a terminal."""

from __future__ import annotations


def printable(words: str) -> str:
    """The words as a terminal may show them: no control characters, and bytes that are no UTF-8 replaced."""
    clean = words.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in clean)
