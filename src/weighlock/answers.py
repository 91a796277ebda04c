"""How long answers are: what is held for the next one, where the settings do not say. Kept in memory, by endpoint."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque

_KEPT, _ENOUGH, _MOST_ENDPOINTS = 200, 20, 1000


class Answers:
    """The latest answers of each endpoint and model. Thread-safe."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], deque[int]] = OrderedDict()
        self._lock = threading.Lock()

    def tell(self, endpoint: str, model: str, tokens: int) -> None:
        """One more, with its thinking."""
        with self._lock:
            kept = self._told.setdefault((endpoint, model), deque(maxlen=_KEPT))
            kept.append(tokens)
            self._told.move_to_end((endpoint, model))
            while len(self._told) > _MOST_ENDPOINTS:
                self._told.popitem(last=False)

    def expected(self, endpoint: str, model: str) -> int | None:
        """What 19 of 20 answers do not exceed, in two digits, rounded up; `None` until 20 are known."""
        with self._lock:
            known = sorted(self._told.get((endpoint, model), ()))
        if len(known) < _ENOUGH:
            return None
        tokens = known[-(-len(known) * 95 // 100) - 1]
        step = 10 ** max(0, len(str(tokens)) - 2)
        return int(-(-tokens // step) * step)
