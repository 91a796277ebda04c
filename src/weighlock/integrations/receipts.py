"""Which receipt belongs to a response: the SDK's objects have no place for it."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from weighlock.errors import InputError
from weighlock.locks import Lock
from weighlock.prepared import PreparedRequest, Receipt

_MOST_NAMED = 1000


class Slip:
    """What is known of a call: its receipt, put again once it is settled, and what was sent."""

    __slots__ = ("_lean", "ready", "receipt")

    def __init__(self, ready: PreparedRequest) -> None:
        self.ready, self.receipt = ready, ready.receipt
        self._lean: tuple[Receipt, Receipt] | None = None

    @property
    def lean(self) -> Receipt:
        """The receipt without its media: the chunks of a stream share one."""
        if self._lean is None or self._lean[0] is not self.receipt:
            self._lean = (self.receipt, self.receipt.without_media())
        return self._lean[1]


class Receipts:
    """By the response itself, as long as somebody holds it; and by its id, which is left where the SDK merges several
    responses into a new one: that receipt holds no media. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()  # a response may be collected while another is put here
        self._of: dict[int, tuple[weakref.ref[Any], Slip]] = {}
        self._named: OrderedDict[str, Receipt] = OrderedDict()

    def put(self, response: Any, slip: Slip) -> None:
        """Before a call is settled, and after."""
        key, name = id(response), getattr(response, "response_id", None)
        with self._lock:
            self._of[key] = (weakref.ref(response, lambda _: self._of.pop(key, None)), slip)
            if isinstance(name, str) and name:
                self._named[name] = slip.lean
                self._named.move_to_end(name)
                while len(self._named) > _MOST_NAMED:
                    self._named.popitem(last=False)

    def of(self, response: Any) -> Receipt:
        """Raises `InputError` where it came another way."""
        slip = self._slip(response)
        if slip is not None:
            return slip.receipt
        with self._lock:
            known = self._named.get(getattr(response, "response_id", None) or "")
        if known is None:
            raise _unknown(response)
        return known

    def ready(self, response: Any) -> PreparedRequest:
        """What was sent for it. Raises `InputError` where it came another way, or is merged from several."""
        slip = self._slip(response)
        if slip is None:
            raise _unknown(response)
        return slip.ready

    def _slip(self, response: Any) -> Slip | None:
        with self._lock:
            known = self._of.get(id(response))
            return known[1] if known is not None and known[0]() is response else None


def _unknown(response: Any) -> InputError:
    return InputError(f"this {type(response).__name__} did not come through weighlock.Client")


receipts = Receipts()


def receipt(response: Any) -> Receipt:
    """What a response of `weighlock.Client` cost, and what was done to its request.

    Of a stream, any chunk's: complete once the stream has ended. Of a chat with automatic function calling, the last
    request's.

    Raises:
        InputError: the response came another way.
    """
    return receipts.of(response)
