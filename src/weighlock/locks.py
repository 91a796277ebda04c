"""Locks that live through a fork: in a child the threads that held them are gone, and nobody would ever let go."""

from __future__ import annotations

import os
import threading
from weakref import WeakSet


class Lock:
    """Re-entrant. A forked child finds it free.

    `whole`: a fork waits for it, so that the child finds what it guards as it is between two holders. Within such a
    one nothing else may be waited for.
    """

    __slots__ = ("__weakref__", "_held", "_whole")

    def __init__(self, *, whole: bool = False) -> None:
        self._held, self._whole = threading.RLock(), whole
        _every.add(self)

    def __enter__(self) -> None:
        self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()


_every: WeakSet[Lock] = WeakSet()
_waited_for: list[Lock] = []


def _before_fork() -> None:
    for lock in list(_every):
        if lock._whole:
            lock._held.acquire()
            _waited_for.append(lock)


def _after_in_parent() -> None:
    while _waited_for:
        _waited_for.pop()._held.release()


def _after_in_child() -> None:
    _waited_for.clear()
    for lock in list(_every):
        lock._held = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
