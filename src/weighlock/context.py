"""For whom the requests of a block of code are: endpoint, tenant and session, where a call does not say so itself.

Each thread and each task has its own, as `contextvars` have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """`None` is what nobody said."""

    endpoint: str | None = None
    tenant: str | None = None
    session: str | None = None


_now: ContextVar[Whose] = ContextVar("weighlock_whose", default=Whose())  # noqa: B039  # frozen


def whose() -> Whose:
    """What the blocks around this say."""
    return _now.get()


@contextmanager
def endpoint(name: str) -> Iterator[None]:
    """Requests within are of this endpoint: `with weighlock.endpoint("bug_triage"): …`."""
    with _being(replace(_now.get(), endpoint=name)):
        yield


@contextmanager
def tenant(name: str) -> Iterator[None]:
    """Requests within are this tenant's."""
    with _being(replace(_now.get(), tenant=name)):
        yield


@contextmanager
def session(session_id: str) -> Iterator[None]:
    """Requests within are of one run of an agent, and pay from its budget: `session` of the endpoint."""
    with _being(replace(_now.get(), session=session_id)):
        yield


@contextmanager
def _being(one: Whose) -> Iterator[None]:
    token = _now.set(one)
    try:
        yield
    finally:
        _now.reset(token)
