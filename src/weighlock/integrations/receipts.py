"""Which receipt belongs to a response: the SDK's objects have no place for it."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import Any

from weighlock.errors import InputError
from weighlock.prepared import Receipt

_MOST_NAMED = 1000


class Slip:
    """Where the receipt of a call is put, and put again once it is settled."""

    __slots__ = ("receipt",)

    def __init__(self, receipt: Receipt) -> None:
        self.receipt = receipt


class Receipts:
    """By the response itself, as long as somebody holds it; and by its id, which is left where the SDK merges several
    responses into a new one. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a response may be collected while another is put here
        self._of: dict[int, tuple[weakref.ref[Any], Slip]] = {}
        self._named: OrderedDict[str, Slip] = OrderedDict()

    def put(self, response: Any, slip: Slip) -> None:
        key = id(response)
        with self._lock:
            self._of[key] = (weakref.ref(response, lambda _: self._of.pop(key, None)), slip)
            name = getattr(response, "response_id", None)
            if isinstance(name, str) and name:
                self._named[name] = slip
                self._named.move_to_end(name)
                while len(self._named) > _MOST_NAMED:
                    self._named.popitem(last=False)

    def of(self, response: Any) -> Receipt:
        with self._lock:
            known = self._of.get(id(response))
            if known is not None and known[0]() is response:
                return known[1].receipt
            slip = self._named.get(getattr(response, "response_id", None) or "")
        if slip is None:
            raise InputError(f"this {type(response).__name__} did not come through weighlock.Client")
        return slip.receipt


receipts = Receipts()


def receipt(response: Any) -> Receipt:
    """What a response of `weighlock.Client` cost, and what was done to its request.

    Of a stream, any chunk's: complete once the stream has ended. Of a chat with automatic function calling, the last
    request's.

    Raises:
        InputError: the response came another way.
    """
    return receipts.of(response)
