"""Reading one neutral message, in the newest shape (`blocks`) or the old one (`content`, `tool_calls`, `extra_args`).

Shapes of Apache Flink Agents, told apart by what a message has, from plain JSON or from objects with these attributes;
nothing of theirs is imported. Keys we have not heard of are left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from weighlock.converters.message_fields import (
    CONTENT_KEY,
    arguments_of,
    blocks_of,
    check_thing,
    field_of,
    id_of,
    items_of,
    mapping_of,
    metadata_of,
    said_in,
    shown,
    signature_in,
    text_of,
    word_of,
)
from weighlock.converters.wire import malformed
from weighlock.encoded import Base64
from weighlock.errors import MalformedMedia, UnsupportedMedia
from weighlock.request import NOTHING, Content, Json, MediaPart, Part, TextPart, ToolCallPart, ToolResultPart, Uri
from weighlock.written import listed

MEDIA_ROLES = "only user messages and tool results can carry media, not assistant messages"
UNSENT_ID: Mapping[str, Json] = {"functionResponse": {"id": None}}
"""What a tool result carries: its id matches it to its call, and is not sent."""

_MEDIA = ("image", "audio", "video", "document")
_HELD = {
    "system": ("text",),
    "user": ("text", *_MEDIA),
    "assistant": ("text", "reasoning", "tool_call"),
    "tool": ("tool_result",),
}
_IN_RESULT = ("text", *_MEDIA)
_KINDS = {kind for kinds in _HELD.values() for kind in kinds}
_LONGEST_MIME = 255
_Block = tuple[str, object, str]
"""Its kind, itself, its place."""


class Calls:
    """The tool calls so far: what a result's tool is called, and which call one without an id answers."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}
        self._aliases: dict[str, tuple[str, str]] = {}
        self._waiting: dict[str, deque[str]] = {}
        self._answered: set[str] = set()

    def made(self, call_id: str, name: str, alias: str | None = None) -> None:
        """The model asked for a tool. The latest call of an id counts; `alias` is what a framework called it."""
        self._known[call_id] = (call_id, name)
        if alias is not None:
            self._aliases[alias] = (call_id, name)
        self._waiting.setdefault(name, deque()).append(call_id)
        self._answered.discard(call_id)

    def find(self, call_id: str) -> tuple[str, str] | None:
        """Id and tool name of a call."""
        return self._known.get(call_id) or self._aliases.get(call_id)

    def answered(self, call_id: str) -> None:
        """A result with this id was there."""
        self._answered.add(call_id)

    def first_waiting(self, name: str) -> str | None:
        """The earliest call of a tool that has no result yet."""
        waiting = self._waiting.get(name)
        while waiting and waiting[0] in self._answered:
            waiting.popleft()
        return waiting[0] if waiting else None


class Reader:
    """Reads the messages of one conversation, in order."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._encoded: list[tuple[str, Base64]] = []

    def read(self, message: object, place: str) -> tuple[str, tuple[Part, ...]]:
        """Role and parts of a message; never no parts. Nothing is decoded.

        Raises:
            MalformedRequest: something is of the wrong kind, or where it cannot be.
            UnsupportedMedia: an assistant message holds media.
        """
        check_thing(message, place)
        role = text_of(field_of(message, "role"), f"{place}.role")
        if role not in _HELD:
            raise malformed(f"{place}.role", f"is {shown(role)}; roles are {listed(_HELD)}")
        blocks = field_of(message, "blocks")
        parts = self._old(message, role, place) if blocks is None else self._new(message, role, place)
        return role, parts or (TextPart(text=""),)

    def check_media(self) -> None:
        """Raises `MalformedMedia` for the first medium that is not base64; its message is the same wherever that is."""
        for place, data in self._encoded:
            try:
                data.check()
            except MalformedMedia as error:
                raise MalformedMedia(error.message, place=place) from None

    # ---- the newest shape

    def _new(self, message: object, role: str, place: str) -> tuple[Part, ...]:
        blocks = _kinds(message, _HELD[role], f"{role} messages", place)
        match role:
            case "system":
                return (TextPart(text="".join(said_in(block, where) for _, block, where in blocks)),)
            case "tool":
                return (self._result(message, blocks, place),)
            case "assistant":
                return tuple(self._spoken(blocks))
            case _:
                return tuple(self._part(*block) for block in blocks)

    def _part(self, kind: str, block: object, place: str) -> TextPart | MediaPart:
        if kind != "text":
            return self._medium(block, place)
        return TextPart(text=said_in(block, place), carried=signature_in(metadata_of(block, place), place))

    def _spoken(self, blocks: list[_Block]) -> Iterator[Part]:
        ids: set[str] = set()
        for kind, block, place in blocks:
            match kind:
                case "tool_call":
                    yield self._call(block, place, ids)
                case "reasoning":
                    # Unsigned thoughts are notes for people: the service takes back only what it signed.
                    if signed := signature_in(metadata_of(block, place), place):
                        yield TextPart(text=said_in(block, place), carried={"thought": True, **signed})
                case _:
                    yield self._part(kind, block, place)

    def _call(self, block: object, place: str, ids: set[str]) -> ToolCallPart:
        call_id = word_of(field_of(block, "call_id"), f"{place}.call_id")
        name = word_of(field_of(block, "name"), f"{place}.name")
        args = arguments_of(field_of(block, "input"), f"{place}.input")
        metadata = metadata_of(block, place)
        sent_id = None if metadata.get("synthetic_id") is True else call_id
        self._check_new(call_id, f"{place}.call_id", ids)
        self.calls.made(call_id, name)
        return _tool_call(name, args, call_id, sent_id, signature_in(metadata, place))

    def _result(self, message: object, blocks: list[_Block], place: str) -> ToolResultPart:
        if len(blocks) != 1:
            raise malformed(place, f"is a tool message of {len(blocks):,} blocks; it holds exactly one, a tool_result")
        _, block, where = blocks[0]
        call_id: str | None = word_of(field_of(block, "call_id"), f"{where}.call_id")
        inner = _kinds(block, _IN_RESULT, "tool results", where)
        said = "".join(said_in(item, at) for kind, item, at in inner if kind == "text")
        media = tuple(self._medium(item, at) for kind, item, at in inner if kind != "text")
        own = metadata_of(block, where)
        if own.get("synthetic_id") is True and self.calls.find(str(call_id)) is None:
            call_id = None  # made up by `emit` for a result that had none
        name = metadata_of(message, place).get("name")
        return self._tool_result(call_id, own.get("name") if name is None else name, said, media, place)

    def _medium(self, block: object, place: str) -> MediaPart:
        media_type = word_of(field_of(block, "media_type"), f"{place}.media_type")
        if len(media_type) > _LONGEST_MIME:
            raise malformed(f"{place}.media_type", f"has {len(media_type):,} characters; no media type has")
        name = field_of(block, "name")
        label = "" if name is None else text_of(name, f"{place}.name")
        return MediaPart(
            source=self._source(block, place),
            label=label or place,
            declared_mime=media_type,
            content=_content(metadata_of(block, place).get(CONTENT_KEY), f"{place}.metadata.{CONTENT_KEY}"),
        )

    def _source(self, block: object, place: str) -> Base64 | Uri:
        source = field_of(block, "source")
        check_thing(source, f"{place}.source")
        match text_of(field_of(source, "type"), f"{place}.source.type"):
            case "base64":
                data = Base64(word_of(field_of(source, "data"), f"{place}.source.data"))
                self._encoded.append((place, data))
                return data
            case "url":
                url = word_of(field_of(source, "url"), f"{place}.source.url")
                if url[:5].lower() == "data:":
                    raise malformed(f"{place}.source.url", "is a data URI, which nobody can fetch; say it as base64")
                return Uri(url)
            case kind:
                raise malformed(f"{place}.source.type", f"is {shown(kind)}; sources are base64 and url")

    # ---- the old shape

    def _old(self, message: object, role: str, place: str) -> tuple[Part, ...]:
        content, calls = field_of(message, "content"), field_of(message, "tool_calls")
        if content is None and not (role == "assistant" and calls):
            raise malformed(place, "has neither blocks nor content")
        said = "" if content is None else text_of(content, f"{place}.content")
        extra = mapping_of(field_of(message, "extra_args"), f"{place}.extra_args")
        if role == "assistant":
            return tuple(self._old_spoken(said, calls, extra, place))
        if calls:
            raise malformed(f"{place}.tool_calls", f"stands in a {role} message; only assistant messages call tools")
        return (self._old_result(said, extra, place),) if role == "tool" else (TextPart(text=said),)

    def _old_spoken(self, said: str, calls: Any, extra: Mapping[str, Any], place: str) -> Iterator[Part]:
        signed = signature_in(extra, f"{place}.extra_args")
        if said:
            yield TextPart(text=said, carried=NOTHING if calls else signed)
        ids: set[str] = set()
        for at, call in enumerate(items_of(calls, f"{place}.tool_calls")):
            yield self._old_call(call, f"{place}.tool_calls[{at}]", ids, signed if at == 0 else NOTHING)

    def _old_call(self, call: object, place: str, ids: set[str], signed: Mapping[str, Json]) -> ToolCallPart:
        check_thing(call, place)
        function = field_of(call, "function")
        check_thing(function, f"{place}.function")
        name = word_of(field_of(function, "name"), f"{place}.function.name")
        args = arguments_of(field_of(function, "arguments"), f"{place}.function.arguments")
        # `original_id` is what the model said; `id` alone is the framework's own and means nothing to the service.
        original, own = field_of(call, "original_id"), field_of(call, "id")
        call_id = id_of(own if original is None else original, f"{place}.id")
        sent_id = None if original is None or field_of(call, "synthetic_id") is True else call_id
        self._check_new(call_id, f"{place}.id", ids)
        self.calls.made(call_id, name, None if own is None else id_of(own, f"{place}.id"))
        own_signature = signature_in({"thought_signature": field_of(call, "thought_signature")}, place)
        return _tool_call(name, args, call_id, sent_id, own_signature or signed)

    def _old_result(self, said: str, extra: Mapping[str, Any], place: str) -> ToolResultPart:
        given = extra.get("external_id", extra.get("externalId"))
        call_id = None if given is None else id_of(given, f"{place}.extra_args.external_id")
        return self._tool_result(call_id, extra.get("name"), said, (), place)

    # ---- both

    def _tool_result(
        self, call_id: str | None, named: Any, said: str, media: tuple[MediaPart, ...], place: str
    ) -> ToolResultPart:
        found = None if call_id is None else self.calls.find(call_id)
        name = found[1] if named is None and found else named
        if name is None:
            raise malformed(place, "is a tool result without a name, and no earlier call has its id")
        name = word_of(name, f"{place}.metadata.name")
        call_id = found[0] if found else call_id or self.calls.first_waiting(name)
        if call_id is not None:
            self.calls.answered(call_id)
        return ToolResultPart(name=name, response={"result": said}, call_id=call_id, media=media, carried=UNSENT_ID)

    def _check_new(self, call_id: str, place: str, ids: set[str]) -> None:
        if call_id in ids:
            raise malformed(place, "is the id of an earlier call of the same message")
        ids.add(call_id)


def _content(said: Any, place: str) -> Content | None:
    if said is None:
        return None
    word = text_of(said, place)
    if word not in set(Content):
        raise malformed(place, f"is {shown(word)}; it is one of {listed(Content)}")
    return Content(word)


def _tool_call(name: str, args: Json, call_id: str, sent_id: str | None, signed: Mapping[str, Json]) -> ToolCallPart:
    call = {"name": name, "args": args, **({} if sent_id is None else {"id": sent_id})}
    return ToolCallPart(name=name, call_id=call_id, wire={"functionCall": call, **signed})


def _kinds(holder: object, allowed: tuple[str, ...], called: str, place: str) -> list[_Block]:
    """The blocks of a message or tool result, with kind and place."""
    return [(_kind(block, allowed, called, where), block, where) for block, where in blocks_of(holder, place)]


def _kind(block: object, allowed: tuple[str, ...], called: str, place: str) -> str:
    check_thing(block, place)
    kind = text_of(field_of(block, "type"), f"{place}.type")
    if kind in allowed:
        return kind
    if kind in _MEDIA and "reasoning" in allowed:
        raise UnsupportedMedia(f"{place}: Gemini takes no {kind} block here: {MEDIA_ROLES}", place=place)
    if kind in _KINDS:
        raise malformed(place, f"is a {kind} block; {called} hold {listed(allowed)}")
    raise malformed(f"{place}.type", f"is {shown(kind)}; blocks are {listed(sorted(_KINDS))}")
