"""What goes back to a client: an answer's headers, our own among them, and refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from weighlock.converters.json_text import dumps
from weighlock.prepared import Receipt
from weighlock.service.refusals import refusal

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Pairs = Iterable[tuple[str, str]]

JSON = "application/json; charset=UTF-8"
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
_KEPT_FROM_CLIENTS = frozenset(
    {"accept-language", "content-type", "x-goog-api-client", "x-goog-request-params", "x-server-timeout"}
)
"""What of a request goes on. Its keys, its address and what proxies said of it do not."""
_DROPPED_FROM_SERVICE = _HOP_BY_HOP | {"content-length", "set-cookie", "alt-svc", "server-timing", "server"}
_ON_NAMES = "connection"


def forwarded(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Of a client's headers those the service is to see."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    named = _named_by_connection(pairs)
    return {name: value for name, value in pairs if name in _KEPT_FROM_CLIENTS and name not in named}


def returned(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of the service's headers those a client is to see; names in lower case."""
    pairs = list(headers)
    dropped = _DROPPED_FROM_SERVICE | _named_by_connection(pairs)
    return [
        (name, value)
        for name, value in pairs
        if name not in dropped and not name.startswith(("x-weighlock-", "x-goog-upload-url"))
    ]


def of_receipt(receipt: Receipt, stages_ms: Mapping[str, float] | None = None) -> Iterator[tuple[str, str]]:
    """What was found and decided, and once it is settled, billed. Figures and our own words only."""
    before, after = receipt.fitted.before.total, receipt.fitted.after.total
    yield "x-weighlock-decision", receipt.id
    yield "x-weighlock-outcome", receipt.outcome.value
    yield "x-weighlock-checked", _tokens(receipt.fitted.before.tokens, before.high)
    yield "x-weighlock-sent", _tokens(receipt.fitted.after.tokens, after.high)
    yield "x-weighlock-saved", str(receipt.saved_tokens)
    billed = receipt.billed
    if billed is not None:
        parts = [f"{kind.value.lower()}={tokens}" for kind, tokens in billed.usage.by_modality.items()]
        told = [f"prompt={billed.usage.prompt}"] if billed.usage.prompt is not None else []
        usd = [f"usd={billed.usd}"] if billed.usd is not None else []
        yield "x-weighlock-billed", ", ".join([*told, *parts, f"output={billed.usage.output}", *usd])
    yield "x-weighlock-summary", _summary(receipt)
    timed = {**receipt.stages_ms, **(stages_ms or {})}
    yield "server-timing", ", ".join(f"{name};dur={ms:.1f}" for name, ms in timed.items())


def _tokens(by_modality: Mapping[Any, Any], high: int) -> str:
    parts = [f"{kind.value.lower()}={tally.high}" for kind, tally in by_modality.items() if tally.high]
    return ", ".join([f"high={high}", *parts])


def _summary(receipt: Receipt) -> str:
    """One line for a log or a terminal, in ASCII."""
    high, sent = receipt.fitted.before.total.high, receipt.fitted.after.total.high
    words = f"{receipt.outcome.value}: {high:,} tokens"
    if sent != high:
        words += f" -> {sent:,}"
    billed = receipt.billed
    if billed is not None and billed.usage.prompt is not None:
        usd = f", ${billed.usd}" if billed.usd is not None else ""
        words += f", billed {billed.usage.prompt:,} + {billed.usage.output:,}{usd}"
    return words


def _named_by_connection(pairs: Pairs) -> set[str]:
    return {one.strip().lower() for name, value in pairs if name == _ON_NAMES for one in value.split(",")}


# ---- ASGI


async def begin(send: Send, status: int, headers: Pairs) -> None:
    """The head of an answer."""
    raw = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def go_on(send: Send, piece: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": more})


async def answer(send: Send, status: int, body: bytes, headers: Pairs) -> None:
    """A whole answer."""
    await begin(send, status, [*headers, ("content-length", str(len(body)))])
    await go_on(send, body, more=False)


async def answer_json(send: Send, status: int, document: Any, headers: Pairs = (), *, kind: str = JSON) -> None:
    """A whole answer in JSON."""
    await answer(send, status, dumps(document), [("content-type", kind), *headers])


async def refuse(
    send: Send, status: int, message: str, reason: str, *, retry_after_s: float | None = None, listed: bool = False
) -> None:
    """A refusal of our own; `listed` where the client reads a JSON array."""
    document = refusal(status, message, reason=reason, retry_after_s=retry_after_s)
    await answer_json(send, status, [document] if listed else document, retry_after(retry_after_s))


def retry_after(seconds: float | None) -> list[tuple[str, str]]:
    return [] if seconds is None else [("retry-after", str(max(0, round(seconds))))]
