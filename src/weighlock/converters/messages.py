"""Neutral messages ⇄ `Request`: roles, content blocks, tool results as messages of their own.

Tools, generation settings and safety settings (`Request.carried`) have no place in messages; whoever emits passes them
on by another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weighlock.converters.message_blocks import cannot, cannot_say, refuse_others, response_text, text_block, user_block
from weighlock.converters.message_fields import blocks_of, field_of
from weighlock.converters.message_shapes import MEDIA_ROLES, Calls, Reader
from weighlock.converters.wire import field as either
from weighlock.converters.wire import kind_of, malformed
from weighlock.errors import UnsupportedMedia
from weighlock.request import (
    Json,
    MediaPart,
    Part,
    Place,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
)

Message = Any
"""A dict or an object, as the caller has it; what `emit` builds is a dict of JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A request and what it was read from."""

    request: Request
    messages: tuple[Message, ...] = field(repr=False)
    """The very objects that came, in order."""
    numbers: tuple[int, ...] = field(repr=False)
    """For each turn, which message it was. The others are system messages."""


def parse(messages: Sequence[Message] | Mapping[str, Any], *, model: str | None = None) -> Parsed:
    """The request in a list of messages, or in an object that holds one beside a `model`; the argument goes first.

    Media stay in base64, checked. A medium's label is its name, else its place (`messages[2].blocks[1]`).

    Raises:
        MalformedRequest: something is of the wrong kind or where it cannot be, or a tool result has no name.
        UnsupportedMedia: an assistant message holds media. Raised before anything is decoded.
        MalformedMedia: a medium is not base64. All three say where in `figures["place"]`.
    """
    given, model = _unwrapped(messages, model)
    reader = Reader()
    system: list[Part] = []
    turns: list[Turn] = []
    numbers: list[int] = []
    for at, message in enumerate(given):
        role, parts = reader.read(message, f"messages[{at}]")
        if role == "system":
            system += parts
        else:
            turns.append(Turn(role="model" if role == "assistant" else "user", parts=parts))
            numbers.append(at)
    reader.check_media()
    instruction = Turn(role="user", parts=tuple(system)) if system else None
    request = Request(turns=tuple(turns), system_instruction=instruction, model=model)
    return Parsed(request=request, messages=given, numbers=tuple(numbers))


def emit(request: Request, parsed: Parsed | None = None) -> list[Message]:
    """The messages of a request. With `parsed`, what it was read from, a turn nobody changed is the message it was.

    Everything else becomes dicts in the newest shape. A turn with several tool results becomes several messages, what
    else it holds one after them. A `response` other than `{"result": text}` becomes its JSON text. A call without an
    id gets one that is marked as made up. A text's thought signature goes into its block's `metadata`.

    Raises:
        InputError: messages cannot express something: a part of another kind, a control on a medium, a field we do
            not know. `UnsupportedMedia` where that is media of the model's.
        UnreadableSource: a file cannot be read.
        MalformedMedia: a medium is empty.
    """
    if parsed is not None and request is parsed.request:
        return list(parsed.messages)
    writer = _Writer(request, parsed)
    if request.system_instruction is not None and not writer.keeps_system:
        writer.out += _system(request.system_instruction)
    for number, turn in enumerate(request.turns):
        writer.turn(turn, number)
    writer.keep_system_before(0 if parsed is None else len(parsed.messages))
    return writer.out


def is_messages(document: object) -> bool:
    """Whether decoded JSON looks like neutral messages: a look at the first one, no more."""
    if isinstance(document, Mapping):
        return "contents" not in document and isinstance(document.get("messages"), list)
    if not isinstance(document, list) or not document or not isinstance(first := document[0], Mapping):
        return False
    return "role" in first and "parts" not in first and not first.keys().isdisjoint(("blocks", "content", "tool_calls"))


def _unwrapped(messages: object, model: str | None) -> tuple[tuple[Message, ...], str | None]:
    if isinstance(messages, Mapping):
        named = messages.get("model")
        if named is not None and not isinstance(named, str):
            raise malformed("model", f"is no text but {kind_of(named)}")
        inner = messages.get("messages")
        if inner is None or isinstance(inner, Mapping):
            raise malformed("messages", "is missing" if inner is None else "is no list but an object")
        return _unwrapped(inner, model or named)
    if isinstance(messages, str | bytes | bytearray) or not isinstance(messages, Sequence):
        raise malformed("messages", f"is no list but {kind_of(messages)}")
    return tuple(messages), model


# ---- writing


class _Writer:
    """Builds messages one after the other; a result without an id answers the first open call of its tool."""

    def __init__(self, request: Request, parsed: Parsed | None) -> None:
        self.out: list[Message] = []
        self._calls = Calls()
        self._taken = {
            part.call_id
            for turn in request.turns
            for part in turn.parts
            if isinstance(part, ToolCallPart | ToolResultPart)
        }
        self._made_up = 0
        self._given: tuple[Message, ...] = ()
        self._numbers: tuple[int, ...] = ()
        self._ordinals: dict[int, int] = {}
        self._failed: set[str | None] = set()
        self._system: list[int] = []
        self._next = 0
        self.keeps_system = parsed is not None and request.system_instruction is parsed.request.system_instruction
        if parsed is not None:
            self._given, self._numbers, self._failed = parsed.messages, parsed.numbers, _failed(parsed)
            self._ordinals = {id(turn): ordinal for ordinal, turn in enumerate(parsed.request.turns)}
            if self.keeps_system:
                spoken = set(parsed.numbers)
                self._system = [at for at in reversed(range(len(self._given))) if at not in spoken]

    def keep_system_before(self, number: int) -> None:
        """Writes the system messages that stood before a message and are not written yet."""
        while self._system and self._system[-1] < number:
            self.out.append(self._given[self._system.pop()])

    def turn(self, turn: Turn, number: int) -> None:
        """Writes the messages of a turn.

        Raises:
            InputError: messages cannot express it.
        """
        # A changed turn is taken for the one that came after the last unchanged one: only system messages stand by it.
        kept = self._ordinals.get(id(turn))
        ordinal = self._next if kept is None else kept
        self._next = ordinal + 1
        self.keep_system_before(self._numbers[ordinal] if ordinal < len(self._numbers) else len(self._given))
        if kept is not None:
            self._follow(turn)
            self.out.append(self._given[self._numbers[kept]])
            return
        refuse_others(turn.carried, Place(number))
        placed = [(part, Place(number, at)) for at, part in enumerate(turn.parts)]
        match turn.role:
            case "model":
                self._assistant(placed, Place(number))
            case "user" | "function" | None:
                self._user(placed)
            case _:
                raise cannot("this role", Place(number))

    def _follow(self, turn: Turn) -> None:
        for part in turn.parts:
            if isinstance(part, ToolCallPart) and part.call_id is not None:
                self._calls.made(part.call_id, part.name)
            elif isinstance(part, ToolResultPart) and part.call_id is not None:
                self._calls.answered(part.call_id)

    def _assistant(self, placed: list[tuple[Part, Place]], place: Place) -> None:
        blocks = [self._spoken(part, at) for part, at in placed]
        ids = [block["call_id"] for block in blocks if "call_id" in block]
        if len(set(ids)) < len(ids):
            raise malformed(str(place), "holds two calls of the same id")
        self.out.append({"role": "assistant", "blocks": blocks})

    def _spoken(self, part: Part, place: Place) -> dict[str, Json]:
        match part:
            case TextPart():
                return text_block(part, place)
            case ToolCallPart():
                return self._call(part, place)
            case MediaPart():
                raise UnsupportedMedia(f"{place}: messages cannot express this: {MEDIA_ROLES}", place=str(place))
            case _:
                raise cannot_say(part, place)

    def _call(self, part: ToolCallPart, place: Place) -> dict[str, Json]:
        wire = dict(part.wire)
        call = wire.pop("functionCall", None) or wire.pop("function_call", None) or {}
        metadata = {} if call.get("id") else {"synthetic_id": True}
        if signature := either(wire, "thoughtSignature", "thought_signature"):
            metadata["thought_signature"] = signature
        refuse_others(wire, place, "thoughtSignature", "thought_signature")
        refuse_others(call, place, "id", "name", "args")
        call_id = part.call_id or self._new_id()
        self._calls.made(call_id, part.name)
        block = {"type": "tool_call", "call_id": call_id, "name": part.name, "input": call.get("args") or {}}
        return {**block, "metadata": metadata} if metadata else block

    def _user(self, placed: list[tuple[Part, Place]]) -> None:
        others = [(part, place) for part, place in placed if not isinstance(part, ToolResultPart)]
        for part, place in placed:
            if isinstance(part, ToolResultPart):
                self.out.append(self._result(part, place))
        if others or not placed:
            where = f"messages[{len(self.out)}]"
            blocks = [user_block(part, place, f"{where}.blocks[{at}]") for at, (part, place) in enumerate(others)]
            self.out.append({"role": "user", "blocks": blocks})

    def _result(self, part: ToolResultPart, place: Place) -> dict[str, Json]:
        refuse_others(part.carried, place, "functionResponse")
        refuse_others(part.carried.get("functionResponse", {}), place, "id")
        found = part.call_id or self._calls.first_waiting(part.name)
        call_id = found or self._new_id()
        self._calls.answered(call_id)
        said = response_text(part.response, place)
        blocks: list[Json] = [{"type": "text", "text": said}] if said else []
        for at, medium in enumerate(part.media):
            where = f"messages[{len(self.out)}].blocks[0].blocks[{len(blocks)}]"
            blocks.append(user_block(medium, place._replace(medium=at), where))
        result: dict[str, Json] = {"type": "tool_result", "call_id": call_id, "blocks": blocks}
        if part.call_id in self._failed:
            result["is_error"] = True
        if found is None:
            result["metadata"] = {"synthetic_id": True}
        return {"role": "tool", "blocks": [result], "metadata": {"name": part.name}}

    def _new_id(self) -> str:
        while True:
            self._made_up += 1
            if (call_id := f"call_{self._made_up}") not in self._taken:
                return call_id


def _failed(parsed: Parsed) -> set[str | None]:
    """Ids of the results with an error flag: no `Request` holds it, and a changed result keeps it."""
    return {
        part.call_id
        for turn, at in zip(parsed.request.turns, parsed.numbers, strict=True)
        for part in turn.parts
        if isinstance(part, ToolResultPart)
        for block, _ in blocks_of(parsed.messages[at], "")
        if field_of(block, "is_error") is True
    }


def _system(turn: Turn) -> list[Message]:
    refuse_others(turn.carried, Place(None))
    placed = [(part, Place(None, at)) for at, part in enumerate(turn.parts)]
    return [{"role": "system", "blocks": [text_block(part, place)]} for part, place in placed]
