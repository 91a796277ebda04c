"""Media that were made, kept by what they were made of and how: asked for again, they are there."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait

from weighlock.codecs.program import GLANCE_S
from weighlock.errors import Cancelled, InputError
from weighlock.media.work import Made

_KEPT_BYTES = 64 * 2**20

Medium = tuple[bytes, Made]


class MadeMedia:
    """A bounded store, whose keys name the tenant. Thread-safe; what has not been asked for longest goes first."""

    def __init__(self, max_bytes: int = _KEPT_BYTES) -> None:
        self.max_bytes = max_bytes
        """Of the media together; one that is larger by itself is not kept."""
        self._reset()
        _alive.add(self)

    def get(
        self, key: Hashable, make: Callable[[], Medium], cancelled: Callable[[], bool] | None = None
    ) -> tuple[bytes, Made]:
        """What `make` gives, which is called only where nobody has it and nobody is at it.

        No failure is kept. Those who wait for the one at it share an `InputError` with it, since the same bytes would
        end so again; after anything else, as when that one was broken off, the next does it.

        Raises:
            Cancelled: `cancelled` said so while another was at it.
        """
        while True:
            with self._lock:
                if (found := self._kept.get(key)) is not None:
                    self._kept.move_to_end(key)
                    return found
                if (others := self._running.get(key)) is None:
                    ours = self._running[key] = Future()
                    break
            _await(others, cancelled)
            if (error := others.exception()) is None:
                return others.result()
            if isinstance(error, InputError):
                raise error
        return self._made(key, make, ours)

    def clear(self) -> None:
        """Forgets what was made; what is being made goes on."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _made(self, key: Hashable, make: Callable[[], Medium], told: Future[Medium]) -> Medium:
        try:
            medium = make()
        except BaseException as error:
            with self._lock:
                self._running.pop(key, None)
            told.set_exception(error)
            raise
        with self._lock:
            self._running.pop(key, None)
            self._keep(key, medium)
        told.set_result(medium)
        return medium

    def _keep(self, key: Hashable, medium: Medium) -> None:
        if len(medium[0]) > self.max_bytes:
            return
        self._kept[key] = medium
        self._bytes += len(medium[0])
        while self._bytes > self.max_bytes:
            _, (data, _) = self._kept.popitem(last=False)
            self._bytes -= len(data)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Medium] = OrderedDict()
        self._running: dict[Hashable, Future[Medium]] = {}
        self._bytes = 0


def _await(others: Future[Medium], cancelled: Callable[[], bool] | None) -> None:
    while not wait([others], timeout=None if cancelled is None else GLANCE_S).done:
        if cancelled is not None and cancelled():
            raise Cancelled("broken off by the caller")


_alive: weakref.WeakSet[MadeMedia] = weakref.WeakSet()


def _after_fork() -> None:
    """In a process forked from the host: the locks and the threads at work are the parent's."""
    for media in list(_alive):
        media._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
