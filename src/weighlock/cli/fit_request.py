"""What `weighlock fit` is asked to fit: a request from its file, or files as one request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from weighlock.cli.check import file_part, spooled_input, walk
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS, Broken, Loaded, read_any, sorted_out
from weighlock.request import MediaPart, OpaquePart, Part, Place, Request, TextPart, ToolResultPart, Turn


def read_request(
    paths: Sequence[str], taken_as: str, text: str | None, stack: ExitStack, max_bytes: int
) -> tuple[Loaded | None, Request]:
    """The request that was named, and the file it stood in; files become a request of one turn.

    Raises:
        InputError: a file that has to be a request is none.
    """
    if paths.count("-") > 1:
        raise click.UsageError("standard input can be read once")
    named = [one for path in paths for one in _parts_of(path, stack, max_bytes)]
    if not named:
        raise click.UsageError(f"no file in {printable(paths[0])}")
    if taken_as in FORMS:
        if len(named) > 1:
            raise click.UsageError(f"--as {taken_as} names one request")
        loaded = read_any(named[0], taken_as, max_bytes)
        found: list[Loaded | MediaPart] = [loaded]
    else:
        found = []
        for one in sorted_out(named, taken_as, max_bytes):
            if isinstance(one, Broken):
                raise one.error
            if not isinstance(one, str):
                found.append(one)
    if len(found) == 1 and isinstance(found[0], Loaded):
        if text is not None:
            raise click.UsageError("--text goes with files; the request has its own")
        return found[0], found[0].request
    requests = [one.label for one in found if isinstance(one, Loaded)]
    if requests:
        raise click.UsageError(f"{printable(requests[0])} is a request; fit one at a time, or take it --as file")
    parts: list[Part] = [one for one in found if isinstance(one, MediaPart)]
    if text is not None:
        parts.append(TextPart(text=text))
    return None, Request(turns=(Turn(role="user", parts=tuple(parts)),))


def _parts_of(path: str, stack: ExitStack, max_bytes: int) -> Iterator[MediaPart]:
    if path == "-":
        yield MediaPart(source=spooled_input(stack, max_bytes), label="standard input")
    elif os.path.isdir(path):  # noqa: PTH112  # as in `check`
        yield from map(file_part, walk(path))
    else:
        yield file_part(path)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Said:
    """What the caller says of one part on the command line."""

    option: str
    part: str
    """A file's name, or `contents[n].parts[n]`."""
    fields: Mapping[str, Any]
    """Of the `MediaPart`."""


def named(option: str, words: str, read: Callable[[str], T]) -> tuple[str | None, T]:
    """`PART=VALUE` in two; no part where the value stands alone."""
    part, equals, value = words.rpartition("=")
    if equals and not part:
        raise click.BadParameter(f"{words!r} names no part", param_hint=option)
    return part or None, read(value)


def wished(request: Request, said: Sequence[Said]) -> Request:
    """The request with what the caller wants of the named parts; the same object where none is named."""
    if not said:
        return request
    left = {one.part: one.option for one in said}

    def wish(place: Place, part: Part | OpaquePart) -> Any:
        if isinstance(part, ToolResultPart):
            media = tuple(wish(place._replace(medium=nth), one) for nth, one in enumerate(part.media))
            return replace(part, media=media) if media else part
        if not isinstance(part, MediaPart):
            return part
        names = {part.label, Path(part.label).name, str(place)}
        fields: dict[str, Any] = {}
        for one in said:
            if one.part in names:
                fields.update(one.fields)
                left.pop(one.part, None)
        return replace(part, **fields) if fields else part

    turns = tuple(
        replace(turn, parts=tuple(wish(Place(number, at), part) for at, part in enumerate(turn.parts)))
        for number, turn in enumerate(request.turns)
    )
    for part, option in left.items():
        known = ", ".join(one.label for _, one, _ in list(request.media())[:10])
        raise click.BadParameter(f"no part {printable(part)}; there is {printable(known)}", param_hint=option)
    return replace(request, turns=turns)
