"""A bounded queue before a bounded number of workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from weighlock.codecs.program import GLANCE_S, NOBODY, Watch
from weighlock.errors import ProberUnavailable


class Places:
    """`workers` may be at work, `queue` more may wait; whoever comes then is turned away at once."""

    def __init__(self, workers: int, queue: int, what: str) -> None:
        self._figures = {"workers": workers, "queue": queue}
        self._what = what
        self._places = threading.BoundedSemaphore(workers + queue)
        self._workers = threading.BoundedSemaphore(workers)

    @contextmanager
    def turn(self, watch: Watch = NOBODY) -> Iterator[None]:
        """Wait for a worker.

        Raises:
            ProberUnavailable: the queue is full.
            Cancelled: `watch` said so.
        """
        if not self._places.acquire(blocking=False):
            workers, queue = self._figures["workers"], self._figures["queue"]
            raise ProberUnavailable(
                f"{workers} {self._what} run, {queue} wait; raise safety.workers or try later", **self._figures
            )
        try:
            while not self._workers.acquire(timeout=GLANCE_S if watch.cancelled else None):
                watch.refuse_if_cancelled()
            try:
                yield
            finally:
                self._workers.release()
        finally:
            self._places.release()
