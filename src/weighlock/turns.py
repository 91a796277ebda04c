"""Short work on an event loop, a few pieces at a time: a thousand that begin together do not take it for themselves."""

from __future__ import annotations

import asyncio
import time
from collections import deque

_SLICE_S = 0.005
"""Of each round of the loop."""
_AT_ONCE = 4


class Turns:
    """Of one event loop. Who comes when there is time goes on at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._begun = 0.0
        self._is_round = False

    async def mine(self) -> None:
        """Waits for a round of the loop with time left."""
        now = time.perf_counter()
        if not self._is_round:
            self._begun, self._is_round = now, True
            self._loop.call_soon(self._next)
        if not self._waiting and now - self._begun < _SLICE_S:
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        self._begun = time.perf_counter()
        woken = 0
        while self._waiting and woken < _AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():  # whoever waited may have been cancelled
                turn.set_result(None)
                woken += 1
        self._is_round = bool(woken or self._waiting)
        if self._is_round:
            self._loop.call_soon(self._next)
