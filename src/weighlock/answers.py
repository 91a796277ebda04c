"""How long answers are: what is held for the next one, where the settings do not say. Kept in memory, by endpoint."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from weighlock.locks import Lock

_KEPT, _ENOUGH, _MOST_ENDPOINTS = 200, 20, 1000


@dataclass(slots=True)
class _Told:
    latest: deque[int] = field(default_factory=deque)
    by_length: list[int] = field(default_factory=list)

    def add(self, tokens: int) -> None:
        self.latest.append(tokens)
        insort(self.by_length, tokens)
        if len(self.latest) > _KEPT:
            del self.by_length[bisect_left(self.by_length, self.latest.popleft())]


class Answers:
    """The latest answers of each endpoint and model. Thread-safe."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], _Told] = OrderedDict()
        self._lock = Lock()

    def tell(self, endpoint: str, model: str, tokens: int) -> None:
        """One more, with its thinking."""
        with self._lock:
            self._told.setdefault((endpoint, model), _Told()).add(tokens)
            self._told.move_to_end((endpoint, model))
            while len(self._told) > _MOST_ENDPOINTS:
                self._told.popitem(last=False)

    def expected(self, endpoint: str, model: str) -> int | None:
        """What 19 of 20 answers do not exceed, in two digits, rounded up; `None` until 20 are known."""
        with self._lock:
            told = self._told.get((endpoint, model))
            if told is None or len(told.by_length) < _ENOUGH:
                return None
            tokens = told.by_length[-(-len(told.by_length) * 95 // 100) - 1]
        step = 10 ** max(0, len(str(tokens)) - 2)
        return int(-(-tokens // step) * step)
