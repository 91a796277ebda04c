"""Asks `countTokens`, in the form each backend takes. Whether to ask, and what an answer means, is planning's."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from weighlock.converters.rest_json import document
from weighlock.errors import CountFailed, ServiceError, ServiceRefused, ServiceUnreachable
from weighlock.gemini.http import Retry, Service, Target
from weighlock.locks import Lock
from weighlock.planning.counting import Count, Form
from weighlock.request import Backend, MediaPart, OpaquePart, Part, Request, TextPart, ToolResultPart, Turn

STAND_IN = "."
"""In the place of a medium that is not counted. One token."""
_REMEMBERED = 512
_TWICE = Retry(attempts=2, first_s=0.1)
_COUNTED = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "cachedContent")
"""Of a request, on the Developer API, which takes it whole in `generateContentRequest`."""
_COUNTED_ON_VERTEX = ("contents", "systemInstruction", "tools", "generationConfig")
"""Beside each other."""


class TokenCounter:
    """Counts by one service; remembers what it was told each tenant of the same content. Thread-safe."""

    def __init__(self, service: Service, *, remembered: int = _REMEMBERED) -> None:
        self._service = service
        self._most = remembered
        self._known: OrderedDict[bytes, Count] = OrderedDict()
        self._lock = Lock()

    async def count(
        self, request: Request, model: str, form: Form, *, tenant: str = "", timeout_s: float = 2.0
    ) -> Count:
        """What the service counts of the request, or of all but its media.

        Raises:
            CountFailed: it does not answer in time, refuses, or says nothing. `figures` are the refusal's.
            InputError: a medium of the request cannot be read.
        """
        asked, stand_ins = without_media(request) if form is Form.TEXT else (request, 0)
        if not any(turn.parts for _, turn in asked.placed_turns()):
            return Count(total=0, covers=form, model=model)
        target = self._service.target
        url = target.model_url(model, "countTokens")
        body = await self._service.io.call(lambda: json.dumps(count_body(asked, target, model)).encode())
        key = hashlib.sha256(f"{tenant}\0{form} {url}\n".encode("utf-8", "surrogatepass") + body).digest()
        if (known := self._remembered(key)) is not None:
            return known
        answer = await self._answer(url, body, timeout_s)
        count = replace(_read(answer), covers=form, model=model, stand_ins=stand_ins)
        self._remember(key, count)
        return count

    async def _answer(self, url: str, body: bytes, timeout_s: float) -> Mapping[str, Any]:
        try:
            answer = await self._service.call(
                "POST",
                url,
                body,
                headers={"content-type": "application/json"},
                timeout_s=timeout_s,
                within_s=timeout_s,
                retry=_TWICE,
            )
        except (ServiceRefused, ServiceUnreachable) as error:
            raise _failed(error) from error
        return answer.json

    def _remembered(self, key: bytes) -> Count | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def _remember(self, key: bytes, count: Count) -> None:
        with self._lock:
            self._known[key] = count
            while len(self._known) > self._most:
                self._known.popitem(last=False)


def count_body(request: Request, target: Target, model: str) -> Mapping[str, Any]:
    """The body of a `countTokens` request.

    The Developer API counts system instruction, tools and configuration only within `generateContentRequest`, which
    must name the model; `contents` beside it would be ignored. Vertex takes them at the top, and no other field.
    """
    whole = document(request)
    if target.backend is Backend.VERTEX:
        return {key: whole[key] for key in _COUNTED_ON_VERTEX if key in whole}
    inner = {key: whole[key] for key in _COUNTED if key in whole}
    return {"generateContentRequest": {"model": target.model_path(model), **inner}}


def without_media(request: Request) -> tuple[Request, int]:
    """The request with a short text for each medium, and how many those are. A tool result's media are left out."""
    stand_ins = 0

    def part_of(part: Part) -> Part:
        nonlocal stand_ins
        if isinstance(part, MediaPart):
            stand_ins += 1
            return TextPart(text=STAND_IN)
        if isinstance(part, ToolResultPart) and part.media:
            return replace(part, media=tuple(one for one in part.media if isinstance(one, OpaquePart)))
        return part

    def turn_of(turn: Turn) -> Turn:
        return replace(turn, parts=tuple(map(part_of, turn.parts)))

    system = request.system_instruction
    asked = replace(
        request,
        turns=tuple(map(turn_of, request.turns)),
        system_instruction=None if system is None else turn_of(system),
    )
    return asked, stand_ins


def _read(answer: Mapping[str, Any]) -> Count:
    total = _whole(answer.get("totalTokens"))
    if not total:  # an empty answer and a 0 both were seen for requests that were not empty
        raise CountFailed("not counted: the service says nothing of a request that holds something", service_status=200)
    details = answer.get("promptTokensDetails")
    by_modality: dict[str, int] = {}
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(name := detail.get("modality"), str):
            by_modality[name] = by_modality.get(name, 0) + (_whole(detail.get("tokenCount")) or 0)
    return Count(
        total=total,
        covers=Form.WHOLE,
        model="",
        by_modality=MappingProxyType(by_modality),
        cached=_whole(answer.get("cachedContentTokenCount")) or 0,
    )


def _whole(value: object) -> int | None:
    """A count as JSON has it; proto-JSON may write it as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _failed(error: ServiceError) -> CountFailed:
    return CountFailed(f"not counted: {error.message}", **error.figures)
