"""`generateContent` and its stream: the answer in the service's form, with the bill as far as it has come."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from weighlock.converters.json_text import dumps
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.billing import Bill
from weighlock.emulator.clock import written
from weighlock.emulator.script import Answer
from weighlock.emulator.weighing import Intake
from weighlock.request import Backend, Json

_PIECES = 3
"""A text is streamed in so many, as far as it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One answer, whole or in pieces."""

    model: str
    backend: Backend
    answer: Answer
    bill: Bill
    most_tokens: int | None
    """`maxOutputTokens`."""
    response_id: str
    created_at: datetime

    @classmethod
    def of(cls, intake: Intake, answer: Answer, bill: Bill, *, model: str, now: datetime) -> Generated:
        config = intake.request.carried.get("generationConfig") or {}
        most = config.get("maxOutputTokens")
        return cls(
            model=model,
            backend=intake.rules.backend,
            answer=answer,
            bill=bill,
            most_tokens=most if isinstance(most, int) and most > 0 else None,
            response_id=secrets.token_urlsafe(16),
            created_at=now,
        )

    def whole(self) -> Json:
        """The body of `generateContent`."""
        tokens, cut = self._tokens
        return self._document(self._parts, tokens, self._finish(cut))

    @reproduces("stream-usage-cumulative")
    def pieces(self) -> Iterator[Json]:
        """The events of `streamGenerateContent`; the last has the finish reason, and all have the bill so far."""
        parts, (tokens, cut) = self._parts, self._tokens
        if parts and "text" in parts[0]:
            text = parts[0]["text"]
            step = max(1, -(-len(text) // _PIECES))
            cuts: list[Json] = [{**parts[0], "text": text[at : at + step]} for at in range(0, len(text), step)]
            parts = [*(cuts or parts[:1]), *parts[1:]]
        for number, part in enumerate(parts[:-1], 1):
            yield self._document([part], tokens * number // len(parts), None)
        yield self._document(parts[-1:], tokens, self._finish(cut))

    @property
    def usage(self) -> Json:
        """The bill of the whole answer."""
        return self._usage(self._tokens[0])

    @property
    def _tokens(self) -> tuple[int, bool]:
        """Of the answer, and whether it was cut short."""
        tokens = self.answer.tokens
        cut = self.most_tokens is not None and tokens > self.most_tokens
        return (self.most_tokens or 0 if cut else tokens), cut

    @property
    def _parts(self) -> list[Json]:
        parts, (tokens, cut) = self.answer.all_parts(), self._tokens
        if cut and parts and "text" in parts[0]:
            return [{"text": parts[0]["text"][: 4 * tokens]}]
        return parts

    @reproduces("max-output-tokens")
    def _finish(self, cut: bool) -> str:
        return "MAX_TOKENS" if cut else self.answer.finish_reason

    @reproduces("blocked-prompt")
    def _document(self, parts: list[Json], tokens: int, finish: str | None) -> Json:
        document: dict[str, Json] = {}
        if self.answer.blocked:
            document["promptFeedback"] = {"blockReason": self.answer.blocked}
        else:
            content: Json = {"role": "model", **({"parts": parts} if parts else {})}
            document["candidates"] = [{"content": content, "index": 0, **({"finishReason": finish} if finish else {})}]
        document["usageMetadata"] = self._usage(tokens)
        document |= {"modelVersion": self.model, "responseId": self.response_id}
        if self.backend is Backend.VERTEX:
            document["createTime"] = written(self.created_at)
        return document

    def _usage(self, tokens: int) -> Json:
        """`usageMetadata` once so many tokens of the answer are said."""
        said = 0 if self.answer.blocked else tokens
        usage = self.bill.usage(answer=said, thoughts=self.answer.thoughts, backend=self.backend)
        return {**usage, **(self.answer.usage or {})}


@reproduces("bare-sse")
def event(document: Json) -> bytes:
    """One event of a stream, exactly as the service spells it."""
    return b"data: " + dumps(document) + b"\r\n\r\n"


@reproduces("json-array-stream")
def listed(documents: Iterator[Json]) -> Iterator[bytes]:
    """A stream without `alt=sse`: one JSON array, item by item."""
    for number, document in enumerate(documents):
        yield (b"[" if number == 0 else b",\r\n") + dumps(document)
    yield b"]"
