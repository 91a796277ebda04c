"""Sizes, durations and spans as people write them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from weighlock.settings.model import Clip

_BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_AMOUNT = re.compile(r"^(\d+(?:\.\d+)?)\s*([a-z]*)$")
_SPAN = re.compile(r"^([^\s-]+)\s*-\s*([^\s-]*)$")


def parse_size(value: object) -> int:
    """Bytes from `100MB`, `1.5GiB` or a plain number. MB counts in thousands, MiB in 1,024s.

    Raises:
        ValueError: anything else, or a fraction of a byte.
    """
    size = _amount(value, _BYTES, "a size such as 15MB or 2GiB")
    if size != int(size):
        raise ValueError(f"{value!r} is no whole number of bytes")
    return int(size)


def parse_seconds(value: object) -> float:
    """Seconds from `90`, `60s`, `1.5m`, `2h` or `7d`.

    Raises:
        ValueError: anything else.
    """
    return float(_amount(value, _SECONDS, "a duration such as 60s or 2h"))


def parse_clip(text: str) -> Clip:
    """A span from `last 60s`, `first 2m`, `10s-70s` or `10s-` (to the end).

    Raises:
        ValueError: anything else, or a span that holds nothing.
    """
    words = text.strip().lower().split()
    if len(words) == 2 and words[0] in {"first", "last"}:
        length_s = parse_seconds(words[1])
        if length_s <= 0:
            raise ValueError(f"{text!r} holds nothing")
        return Clip(first_s=length_s) if words[0] == "first" else Clip(last_s=length_s)
    if not (span := _SPAN.match(text.strip().lower())):
        raise ValueError(f"{text!r} is no clip; write `last 60s`, `first 2m`, `10s-70s` or `10s-`")
    start_s = parse_seconds(span[1])
    end_s = parse_seconds(span[2]) if span[2] else None
    if end_s is not None and end_s <= start_s:
        raise ValueError(f"{text!r} ends before it starts")
    return Clip(start_s=start_s, end_s=end_s)


def _amount(value: object, units: dict[str, int], wanted: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError(f"must be {wanted}")
    found = _AMOUNT.match(str(value).strip().lower())
    if not found or found[2] not in units:
        raise ValueError(f"{value!r} is not {wanted}")
    try:
        return Decimal(found[1]) * units[found[2]]
    except InvalidOperation:
        raise ValueError(f"{value!r} is not {wanted}") from None
