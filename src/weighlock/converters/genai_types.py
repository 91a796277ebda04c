"""What `client.models.generate_content(contents=, config=)` takes ⇄ `Request`.

The one door to `google.genai` is this module and those named `genai_…` around it; importing it loads the SDK.
Tested with google-genai 2.30, 2.34 and 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.genai import types

from weighlock.converters import genai_config, genai_parts
from weighlock.converters.genai_config import Config
from weighlock.converters.genai_contents import Notes, contents_of, instruction_of, turn_of
from weighlock.converters.genai_media import carried_by
from weighlock.request import Request, TextPart, Turn

Contents = Any
"""Whatever the SDK's `ContentListUnionDict` allows, which mypy cannot follow through PIL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A request and the SDK's objects it was read from."""

    request: Request
    contents: Contents = field(repr=False)
    """As they came, or what the SDK takes in their place."""
    config: Config = field(repr=False)
    """As it came."""
    turns: tuple[types.Content, ...] = field(repr=False)
    """What the SDK would make of the contents: one for each turn of the request; none of a text alone."""
    parts: Mapping[int, types.Part] = field(repr=False)
    """The original of every part, the system instruction's too, by the `id` of its value."""
    as_it_came: bool = True
    """False where a part only stands for a medium, and holds no bytes yet."""


def parse(contents: Contents, config: Config = None, *, model: str | None = None) -> Parsed:
    """The request in what `generate_content` is called with; nothing of it is changed, no bytes are copied.

    Takes every form the SDK takes: text, Parts, Files, dicts in either case, PIL images, Contents, one nested list,
    and raw results of automatic function calling inside function responses. A PIL image stands for the file it was
    opened from, where it still shows what that holds.

    Raises:
        MalformedRequest: a form the SDK refuses, bytes (it would send them as text), a part that holds two things.
            Names the place.
    """
    notes = Notes()
    is_text = isinstance(contents, str)  # most requests: nothing of the SDK's is needed to read it
    turns = () if is_text else contents_of(contents, notes)
    read = genai_config.read(config)
    instruction = None
    if read is not None and read.system_instruction is not None:
        instruction = instruction_of(read.system_instruction, notes)
    request = Request(
        turns=(_said(contents),) if is_text else tuple(turn_of(turn, at, notes) for at, turn in enumerate(turns)),
        system_instruction=None if instruction is None else turn_of(instruction, None, notes),
        model=model,
        carried=genai_config.carried(read),
    )
    return Parsed(
        request=request,
        contents=contents if notes.sdk_takes_it else list(turns),
        config=config,
        turns=turns,
        parts=dict(_pairs(request, turns, instruction)),
        as_it_came=notes.as_it_came,
    )


def emit(request: Request, parsed: Parsed | None = None) -> tuple[Contents, Config]:
    """Contents and config for `generate_content`.

    With `parsed`, what the request was read from, the very objects of everything nobody changed: all of it, or each
    turn, each part, the config. None of them is ever altered. Without, all of it is built from the values.

    Raises:
        MalformedRequest: a field this version of the SDK does not have, in a part.
        MalformedMedia: base64 that is none.
        UnreadableSource: a file that cannot be read.
    """
    if parsed is None:
        return _contents(request, {}, {}), _config(request, None)
    if request is parsed.request and parsed.as_it_came:
        return parsed.contents, parsed.config
    turns = {
        id(turn): content
        for turn, content in zip(parsed.request.turns, parsed.turns, strict=False)
        if parsed.as_it_came or not any(carried_by(part) for part in content.parts or ())
    }
    return _contents(request, turns, parsed.parts), _config(request, parsed)


def _said(text: str) -> Turn:
    return Turn(role="user", parts=(TextPart(text=text),))


def _pairs(
    request: Request, turns: tuple[types.Content, ...], instruction: types.Content | None
) -> Iterator[tuple[int, types.Part]]:
    contents = turns if instruction is None else (instruction, *turns)
    for (_, turn), content in zip(request.placed_turns(), contents, strict=False):
        pairs = zip(turn.parts, content.parts or (), strict=True)
        yield from ((id(part), original) for part, original in pairs if carried_by(original) is None)


def _contents(
    request: Request, turns: Mapping[int, types.Content], parts: Mapping[int, types.Part]
) -> list[types.Content]:
    return [
        turns.get(id(turn)) or genai_parts.content(turn, number, parts) for number, turn in enumerate(request.turns)
    ]


def _config(request: Request, parsed: Parsed | None) -> Config:
    before = Request(turns=()) if parsed is None else parsed.request
    config = genai_config.changed(None if parsed is None else parsed.config, before.carried, request.carried)
    instruction = request.system_instruction
    if instruction is before.system_instruction:
        return config
    originals = {} if parsed is None else parsed.parts
    new = None if instruction is None else genai_parts.content(instruction, None, originals)
    return genai_config.updated(config, {"system_instruction": new})
