"""What an operator wrote: read within bounds, and repeated with care.

Messages quote settings and rule files. What they quote is short, free of control characters, and never a key: those
get pasted into every place there is.
"""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Iterable
from pathlib import Path

MOST_CHARACTERS = 1_000_000
"""Of one settings or rule file. The shipped ones have 15,000 at most."""
MOST_TOLD = 100
"""Mistakes told of one reading; nobody reads more, and a nearest word is looked for on behalf of each."""
_MOST_QUOTED, _MOST_LISTED = 60, 20

_KEY = re.compile(
    r"(?<![a-z0-9])(?:AIza[\w-]{20,}|(?:AQ\.|ya29\.|sk-)(?=[\w.-]*\d)[\w.-]{20,})",
    re.ASCII | re.IGNORECASE,  # variables' names hold keys in upper case, their key paths in lower case
)
_LONG_WORD = re.compile(r"[\w-]{32,}", re.ASCII)


def read_text(path: Path, most: int = MOST_CHARACTERS, longest_line: int | None = None) -> str:
    """The text of a regular file.

    Raises:
        OSError: no such file, no regular one (a FIFO or a device may never end), more characters than `most`, or a line
            longer than `longest_line`.
        ValueError: it is not UTF-8, or its name is none.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder says by itself that it is one
        raise OSError(errno.EINVAL, "no regular file", str(path))
    with path.open(encoding="utf-8") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} characters", str(path))
    if longest_line is not None and any(len(line) > longest_line for line in text.split("\n")):
        raise OSError(errno.EFBIG, f"a line of more than {longest_line:,} characters", str(path))
    return text


def is_file(path: Path) -> bool:
    """Whether there is a regular file of this name; no name is too odd to ask for."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def holds_key(text: str) -> bool:
    """Whether an API key or access token of a known form is in the text."""
    return _KEY.search(text) is not None


def without_keys(text: str) -> str:
    """The text with what may be a key taken out: the known forms, and long words that no person would make up."""
    return _LONG_WORD.sub(_unless_readable, _KEY.sub("[key hidden]", text))


def plain(value: object, most: int = _MOST_QUOTED) -> str:
    """A value on one line of at most `most` characters, without keys, with control characters spelled out."""
    return escaped(_shortened(without_keys(str(value)), most))


def escaped(text: str) -> str:
    """The text with control characters, line ends among them, spelled out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def is_line(value: object, most: int) -> bool:
    """Whether a value is text that can be printed as it is: one line of at most `most` characters, without a key."""
    return isinstance(value, str) and len(value) <= most and value.isprintable() and not holds_key(value)


def is_unicode(text: str) -> bool:
    """Whether it can be written anywhere: the bytes of a broken argument cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def quoted(value: object) -> str:
    """As `plain`; text in quotes."""
    return repr(_shortened(without_keys(value), _MOST_QUOTED)) if isinstance(value, str) else plain(value)


def listed(words: Iterable[str]) -> str:
    """`a, b, c`, the first of them where there are many."""
    every = list(words)
    more = ", …" if len(every) > _MOST_LISTED else ""
    return ", ".join(map(plain, every[:_MOST_LISTED])) + more


def told(mistakes: Iterable[str]) -> list[str]:
    """The first mistakes, and how many more there are."""
    every = list(mistakes)
    more = len(every) - MOST_TOLD
    return every if more <= 0 else [*every[:MOST_TOLD], f"and {more:,} more"]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _unless_readable(word: re.Match[str]) -> str:
    text = word[0]
    kinds = (any(map(kind, text)) for kind in (str.isdigit, str.islower, str.isupper))
    one_word = text.isalnum() and not text.isdigit() and not text.isalpha()
    return "[key hidden]" if all(kinds) or one_word else text
