"""One request through the line: prepared, sent, mended where the service refuses a file, settled.

Written once for blocking code and for coroutines: a flow over the blocking face never waits, and `io.run` drives it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from weighlock import context
from weighlock.converters import genai_config, genai_types
from weighlock.gemini.usage import last_usage
from weighlock.integrations.receipts import Slip, receipts
from weighlock.preflight import Preflight
from weighlock.prepared import PreparedRequest, Receipt
from weighlock.request import Backend
from weighlock.scales import Asked
from weighlock.settling import usage_in

T = TypeVar("T")
Send = Callable[[PreparedRequest], Awaitable[T]]
Uncovered = Literal["refuse", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """What a client says of every request of its own, where the block of code around a call says nothing."""

    endpoint: str | None = None
    tenant: str | None = None
    session: str | None = None
    backend: Backend = Backend.DEVELOPER
    uncovered: Uncovered | None = None
    """Entry points that are not weighed; as the endpoint's mode has it, where nobody says."""

    def said(self) -> dict[str, Any]:
        """As `prepare` takes it."""
        around = context.whose()
        return {
            "endpoint": around.endpoint or self.endpoint,
            "tenant": around.tenant or self.tenant,
            "session": around.session or self.session,
            "asked": Asked(backend=self.backend),
        }


class Face(Protocol):
    """The line, as blocking code or a coroutine meets it."""

    preflight: Preflight
    whose: Whose

    async def prepare(
        self, contents: Any, config: Any = None, *, model: str, holds: bool = True, refuses: bool = True
    ) -> PreparedRequest: ...

    async def settle(
        self, ready: PreparedRequest, answer: Any = None, *, error: BaseException | None = None, partial: bool = False
    ) -> Receipt: ...

    async def mend(self, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None: ...

    async def escalate(self, ready: PreparedRequest, parts: Iterable[int | str]) -> PreparedRequest: ...


class BlockingFace:
    def __init__(self, preflight: Preflight, whose: Whose) -> None:
        self.preflight, self.whose = preflight, whose

    async def prepare(
        self, contents: Any, config: Any = None, *, model: str, holds: bool = True, refuses: bool = True
    ) -> PreparedRequest:
        said, parsed = self.whose.said(), genai_types.parse(contents, config, model=model)  # never a REST body
        return self.preflight.prepare(parsed, model=model, holds=holds, refuses=refuses, **said)

    async def settle(
        self, ready: PreparedRequest, answer: Any = None, *, error: BaseException | None = None, partial: bool = False
    ) -> Receipt:
        return self.preflight.settle(ready, answer, error=error, partial=partial)

    async def mend(self, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        return self.preflight.mend(ready, error)

    async def escalate(self, ready: PreparedRequest, parts: Iterable[int | str]) -> PreparedRequest:
        return self.preflight.escalate(ready, parts)


class AwaitingFace:
    def __init__(self, preflight: Preflight, whose: Whose) -> None:
        self.preflight, self.whose = preflight, whose

    async def prepare(
        self, contents: Any, config: Any = None, *, model: str, holds: bool = True, refuses: bool = True
    ) -> PreparedRequest:
        said, parsed = self.whose.said(), genai_types.parse(contents, config, model=model)  # never a REST body
        return await self.preflight.aprepare(parsed, model=model, holds=holds, refuses=refuses, **said)

    async def settle(
        self, ready: PreparedRequest, answer: Any = None, *, error: BaseException | None = None, partial: bool = False
    ) -> Receipt:
        return await self.preflight.asettle(ready, answer, error=error, partial=partial)

    async def mend(self, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        return await self.preflight.amend(ready, error)

    async def escalate(self, ready: PreparedRequest, parts: Iterable[int | str]) -> PreparedRequest:
        return await self.preflight.aescalate(ready, parts)


def to_count(face: Face, ready: PreparedRequest, config: Any) -> tuple[Any, Slip]:
    """The config a prepared request is counted with, and the receipt of that count."""
    level = (ready.request.carried.get("generationConfig") or {}).get("mediaResolution")
    slip = Slip(ready)
    if level is None:
        return config, slip
    if face.whose.backend is Backend.VERTEX:
        return genai_config.counted_at(level, config), slip
    words = f"counted without {level}, which it is sent with: a count of the Developer API cannot say it"
    slip.receipt = replace(ready.receipt, warnings=(*ready.receipt.warnings, words))
    return config, slip


async def answered(face: Face, send: Send[T], contents: Any, config: Any, model: str) -> T:
    """A whole answer, settled."""
    return await finished(await Call.of(face, contents, config, model), send)


async def finished(call: Call, send: Send[T]) -> T:
    """The whole answer of a call, settled."""
    response = await call.sent(send)
    await call.settle(response)
    call.mark(response)
    return response


@dataclass(slots=True, kw_only=True)
class Call:
    """One request between its preparation and its bill. Whoever makes one settles it, whatever happens."""

    face: Face
    ready: PreparedRequest
    slip: Slip
    usage: dict[str, Any] = field(default_factory=dict)
    """Of a stream, as far as it has come."""
    settled: bool = False

    @classmethod
    async def again(cls, face: Face, response: Any, parts: Iterable[int | str]) -> Call:
        """The call of a response once more, with some parts sharper."""
        ready = await face.escalate(receipts.ready(response), parts)
        return cls(face=face, ready=ready, slip=Slip(ready))

    @classmethod
    async def of(cls, face: Face, contents: Any, config: Any, model: str) -> Call:
        ready = await face.prepare(contents, config, model=model)
        return cls(face=face, ready=ready, slip=Slip(ready))

    async def sent(self, send: Send[T]) -> T:
        """What `send` gives; where it gives nothing, the call is settled."""
        try:
            while True:
                try:
                    return await send(self.ready)
                except Exception as error:
                    mended = await self.face.mend(self.ready, error)
                    if mended is None:
                        raise
                    self.ready = mended
        except BaseException as error:
            await self.settle(error=error)
            raise

    def seen(self, chunk: Any) -> None:
        """A chunk of the stream. Its counts are cumulative: of each field the last word counts."""
        said = usage_in(chunk)
        if said:
            self.usage = last_usage([self.usage, said])
        self.mark(chunk)

    def mark(self, response: Any) -> None:
        """`weighlock.receipt(response)` is this call's."""
        receipts.put(response, self.slip)

    async def settle(self, answer: Any = None, *, error: BaseException | None = None, partial: bool = False) -> None:
        """Once. Of a stream, by what was seen of it."""
        if self.settled:
            return
        self.settled = True
        self.slip.receipt = await self.face.settle(
            self.ready, answer if answer is not None else self.usage or None, error=error, partial=partial
        )
