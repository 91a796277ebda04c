"""Sizes, durations and spans as people write them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from weighlock.request import AROUND_S, Clip
from weighlock.written import quoted

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
_MOST_DIGITS, _LONGEST = 18, 60
_AMOUNT = re.compile(r"^(\d+(?:\.\d+)?)\s*([a-z]*)$")
_SPAN = re.compile(r"^([^\s-]+)\s*-\s*([^\s-]*)$")


def bounded(value: object) -> object:
    """The value itself where it is no number, or one whose size can be reckoned with: 1e-18 to 1e18 and 0.

    `1e999999999` takes a second to write and all memory to spell out. Text counts as the number it spells.

    Raises:
        ValueError: a number beyond that.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return value
    try:
        number = Decimal(value) if not isinstance(value, str) or len(value) <= _LONGEST else None
    except InvalidOperation:
        return value
    if number is None or (number.is_finite() and not -_MOST_DIGITS <= number.adjusted() < _MOST_DIGITS):
        raise ValueError(f"must be a number of at most {_MOST_DIGITS} digits before or after the point")
    return value


def parse_number(text: str) -> int | Decimal:
    """The number a text spells: whole ones as int, others exactly.

    Raises:
        ValueError: it is none, or out of bounds.
    """
    bounded(text)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{quoted(text)} is no number that can be reckoned with") from None


def parse_size(value: object) -> int:
    """Bytes from `100MB`, `1.5GiB` or a plain number. MB counts in thousands, MiB in 1,024s.

    Raises:
        ValueError: anything else, or a fraction of a byte.
    """
    size = _amount(value, _BYTES, "a size such as 15MB or 2GiB")
    if size != int(size):
        raise ValueError(f"{quoted(value)} is no whole number of bytes")
    return int(size)


def parse_seconds(value: object) -> float:
    """Seconds from `90`, `60s`, `1.5m`, `2h` or `7d`.

    Raises:
        ValueError: anything else.
    """
    return float(_amount(value, _SECONDS, "a duration such as 60s or 2h"))


def parse_clip(text: str) -> Clip:
    """A span from `last 60s`, `first 2m`, `10s-70s`, `10s-` (to the end), `around 95s` or `30s around 95s`.

    Raises:
        ValueError: anything else, or a span that holds nothing.
    """
    words = text.strip().lower().split()
    if "around" in words[-2:-1] and len(words) <= 3:
        length_s = parse_seconds(words[0]) if len(words) == 3 else AROUND_S
        if length_s <= 0:
            raise ValueError(f"{quoted(text)} holds nothing")
        return Clip(around_s=parse_seconds(words[-1]), length_s=length_s)
    if len(words) == 2 and words[0] in {"first", "last"}:
        length_s = parse_seconds(words[1])
        if length_s <= 0:
            raise ValueError(f"{quoted(text)} holds nothing")
        return Clip(first_s=length_s) if words[0] == "first" else Clip(last_s=length_s)
    if not (span := _SPAN.match(text.strip().lower())):
        raise ValueError(f"{quoted(text)} is no clip; write `last 60s`, `first 2m`, `10s-70s` or `around 95s`")
    start_s = parse_seconds(span[1])
    end_s = parse_seconds(span[2]) if span[2] else None
    if end_s is not None and end_s <= start_s:
        raise ValueError(f"{quoted(text)} ends before it starts")
    return Clip(start_s=start_s, end_s=end_s)


def _amount(value: object, units: dict[str, int], wanted: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError(f"must be {wanted}")
    found = _AMOUNT.match(str(value).strip().lower())
    if not found or found[2] not in units:
        raise ValueError(f"{quoted(value)} is not {wanted}")
    bounded(found[1])
    amount = Decimal(found[1]) * units[found[2]]
    bounded(amount)
    return amount
