"""JSON that nobody vouches for, as the plain values it should be.

Pydantic does more of this, and takes longer to load than most media take to be read.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, NoReturn, get_args, get_origin, get_type_hints


def parsed(data: bytes) -> Any:
    """The JSON value in `data`.

    Raises:
        ValueError: it is none, or nested without end, or holds a number that is none.
    """
    try:
        return json.loads(data.decode(), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def shaped(kind: Any, raw: Any) -> Any:
    """`raw` as the `kind` a field is annotated with: a dataclass, an enum, a plain type, and tuples, lists, dicts and
    unions of these. Nothing is converted, except that a whole number may stand for a float.

    Raises:
        ValueError: it is not of that kind.
    """
    if isinstance(kind, UnionType):
        return _one_of(get_args(kind), raw)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (tuple, list):
        return origin(shaped(inner[0], item) for item in _of(list, raw))
    if origin is dict:
        return {shaped(inner[0], name): shaped(inner[1], item) for name, item in _of(dict, raw).items()}
    if is_dataclass(kind):
        return _instance(kind, _of(dict, raw))
    return kind(raw) if issubclass(kind, Enum) else _plain(kind, raw)


def _one_of(kinds: tuple[Any, ...], raw: Any) -> Any:
    for kind in kinds:
        with contextlib.suppress(ValueError):
            return shaped(kind, raw)
    raise ValueError(f"{type(raw).__name__} is none of what it may be")


def _instance(kind: Any, raw: dict[str, Any]) -> Any:
    kinds = get_type_hints(kind)
    needed = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}
    if not needed <= raw.keys() <= {field.name for field in fields(kind)}:
        raise ValueError(f"other fields than those of {kind.__name__}")
    return kind(**{name: shaped(kinds[name], value) for name, value in raw.items()})


def _plain(kind: type, raw: Any) -> Any:
    if kind is float and type(raw) is int and abs(raw) < 1 << 53:
        return float(raw)
    value = _of(kind, raw)
    if isinstance(value, str):
        value.encode()  # half a character that JSON can write cannot be written again
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number")
    return value


def _of(kind: type, raw: Any) -> Any:
    if type(raw) is not kind:  # True is no number here
        raise ValueError(f"{type(raw).__name__} instead of {kind.__name__}")
    return raw


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
