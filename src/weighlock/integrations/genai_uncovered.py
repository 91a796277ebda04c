"""Entry points behind which a model is asked and nobody weighs: refused, or let through and told once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from weighlock.errors import UncoveredCall
from weighlock.integrations.genai_gate import Face
from weighlock.settings import Mode

_log = logging.getLogger("weighlock")
_told: set[str] = set()


def guard(ours: type, plain: type, names: Iterable[str], prefix: str) -> None:
    """Puts a guard before these attributes of the SDK's class in our subclass of it."""
    for name in names:
        found = getattr(plain, name)
        guarded = _property if isinstance(found, property) else _method
        setattr(ours, name, guarded(found, f"{prefix}{name}"))


def demand_allowed(holder: Any, name: str) -> None:
    """Does nothing where the client, or else the endpoint of this moment, lets uncovered entry points pass.

    Raises:
        UncoveredCall: it does not.
    """
    if not _passes(holder._face):
        raise UncoveredCall(
            f"{name} is not weighed and would pass every budget by; use a plain genai.Client for it, "
            "or allow it (weighlock.Client(uncovered='pass'))",
            entry_point=name,
        )
    if name not in _told:
        _told.add(name)
        _log.warning("%s is not weighed: its requests pass every limit and budget by", name)


def _passes(face: Face) -> bool:
    if face.whose.uncovered is not None:
        return face.whose.uncovered == "pass"
    return face.preflight.settings.endpoint(face.whose.said()["endpoint"]).mode is Mode.OBSERVE


def _property(plain: property, name: str) -> property:
    def get(holder: Any) -> Any:
        demand_allowed(holder, name)
        return plain.__get__(holder, type(holder))

    return property(get, doc=plain.__doc__)


def _method(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(plain)
    def call(holder: Any, *given: Any, **said: Any) -> Any:
        demand_allowed(holder, name)
        return plain(holder, *given, **said)

    return call
