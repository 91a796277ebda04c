"""Tells request files from media, and reads them. Loads a converter only for what may be a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from weighlock.cli.printable import printable
from weighlock.codecs.source import open_source
from weighlock.errors import InputError, MalformedRequest, WeighlockError
from weighlock.request import MediaPart, Request

if TYPE_CHECKING:
    from weighlock.converters import messages, rest_json

FORMS = ("rest", "messages")
_NAMES = {"rest": "REST body", "messages": "neutral messages"}
_BLANK = b" \t\r\n"
_KEYS = re.compile(rb'"(?:contents|messages|role)"')
_BEGINS = re.compile(
    rb'\A\s*\[\s*\{\s*"role"\s*:|"contents"\s*:\s*[\[{]|"messages"\s*:\s*\[|"generate(?:C|_c)ontent(?:R|_r)equest"\s*:'
)
_WRAPPINGS = ("generateContentRequest", "generate_content_request")
_LOOKED_AT = 64 << 10
"""Of JSON that cannot be read, to tell a broken request from some other file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A request, and the bytes it was read from."""

    label: str
    form: str
    """`rest` or `messages`."""
    body: bytes = field(repr=False)
    parsed: rest_json.Parsed | messages.Parsed = field(repr=False)

    @property
    def request(self) -> Request:
        return self.parsed.request

    @property
    def form_in_words(self) -> str:
        return _NAMES[self.form]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A file that is meant to be a request and is none."""

    label: str
    error: InputError


def sorted_out(
    named: Iterable[MediaPart | str], taken_as: str, max_bytes: int
) -> Iterator[Loaded | Broken | MediaPart | str]:
    """What was named, in order, with requests read. A folder, which is a `str`, comes out as it is."""
    for one in named:
        if isinstance(one, str) or taken_as == "file":
            yield one
            continue
        try:
            yield read(one, taken_as, max_bytes) or one
        except InputError as error:
            yield Broken(label=one.label, error=error)


def read(part: MediaPart, taken_as: str, max_bytes: int) -> Loaded | None:
    """The request in a file, or with `auto` `None` where it holds something else.

    Raises:
        InputError: it cannot be read, or is meant to be a request and is none.
    """
    auto = taken_as == "auto"
    body = _body(part, max_bytes, auto=auto)
    if body is None or (auto and not _KEYS.search(body)):
        return None
    form = taken_as
    if auto:
        found = _form_of(body)
        if found is None:
            return None
        form = found
    return _loaded(part.label, form, body)


def read_any(part: MediaPart, taken_as: str, max_bytes: int) -> Loaded:
    """As `read`, of a file that has to be a request.

    Raises:
        InputError: it is none.
    """
    loaded = read(part, taken_as, max_bytes)
    if loaded is None:
        body = _body(part, max_bytes, auto=False)
        from weighlock.converters import json_text

        json_text.loads(body or b"")
        raise MalformedRequest("neither a REST body nor neutral messages; --from says which it is meant to be")
    return loaded


def _body(part: MediaPart, max_bytes: int, *, auto: bool) -> bytes | None:
    try:
        with open_source(part, max_bytes=max_bytes) as source:
            if auto and source.head.lstrip(_BLANK)[:1] not in (b"{", b"["):
                return None
            return source.read_at(0, source.size_bytes)
    except WeighlockError:
        if auto:  # whoever weighs it as a file tells why it cannot be opened
            return None
        raise


def _form_of(body: bytes) -> str | None:
    from weighlock.converters import json_text, messages, rest_json

    try:
        document = json_text.loads(body)
    except MalformedRequest as error:
        lines_of_json = "Extra data" in error.message
        if lines_of_json or not _BEGINS.search(body, 0, _LOOKED_AT):
            return None
        raise
    if rest_json.is_request(document) and _speak(_listed(document, "contents"), "role", "parts"):
        return "rest"
    if messages.is_messages(document) and _speak(_listed(document, "messages"), "role"):
        return "messages"
    return None


def _listed(document: Any, name: str) -> Any:
    """The turns or messages of a document; those of a `countTokens` body are one level down."""
    if isinstance(document, list):
        return document
    inner = next((document[key] for key in _WRAPPINGS if isinstance(document.get(key), dict)), document)
    found = inner.get(name)
    return [found] if isinstance(found, dict) else found


def _speak(turns: Any, *keys: str) -> bool:
    """Whether the first of them looks like one: other JSON may have `contents` and `messages` too."""
    return not turns or (isinstance(turns[0], dict) and not turns[0].keys().isdisjoint(keys))


def _loaded(label: str, form: str, body: bytes) -> Loaded:
    from weighlock.converters import json_text, messages, rest_json

    parsed = rest_json.parse(body) if form == "rest" else messages.parse(json_text.loads(body))
    return Loaded(label=label, form=form, body=body, parsed=parsed)


def say_broken(broken: Broken) -> None:
    """One line on standard error."""
    error, place = broken.error, broken.error.figures.get("place")
    where = f"{place}: " if place and not error.message.startswith(str(place)) else ""
    click.echo(printable(f"weighlock: {broken.label}: {error.code}: {where}{error.message}"), err=True)
