"""What a request says besides its media: its text, measured for an estimate, and what it asks of each medium. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from weighlock.errors import MalformedRequest
from weighlock.media.controls import Controls
from weighlock.media.facts import TextSizes
from weighlock.planning.structure import strings_of
from weighlock.planning.weigh import Examined
from weighlock.request import (
    Carrier,
    Json,
    MediaPart,
    MediaResolution,
    Modality,
    OpaquePart,
    Part,
    Place,
    Placement,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
)
from weighlock.rules import ModelRules, WireControl
from weighlock.written import quoted

_SIBLINGS = ("videoMetadata", "audioMetadata", "documentMetadata", "mediaResolution")
_HOMES = {
    **{name.lower(): name for name in _SIBLINGS},
    **{name.lower(): f"videoMetadata.{name}" for name in ("fps", "startOffset", "endOffset", "contentLayers")},
    **{name.lower(): f"documentMetadata.{name}" for name in ("startPage", "endPage")},
}
"""Where the controls of a medium stand on the wire."""
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_LEVEL = "MEDIA_RESOLUTION_"


def request_text(request: Request) -> Examined:
    """All the text of a request: what was said, calls and their results, the system instruction, the tools."""
    return Examined(label="text of the request", mime="text/plain", modality=Modality.TEXT, facts=text_sizes(request))


def text_sizes(request: Request) -> TextSizes:
    """Characters of everything that is billed as TEXT; media in base64 are none of it."""
    texts: list[str] = []
    signatures = calls = 0
    for turn in request.turns:
        for part in turn.parts:
            signature = _fields(part).get("thoughtSignature")
            signatures += len(signature) if isinstance(signature, str) else 0
            calls += isinstance(part, ToolCallPart)
            texts += _texts(part)
    tools = request.carried.get("tools")
    system = request.system_instruction
    return TextSizes(
        content_chars=sum(map(len, texts)),
        non_ascii_chars=sum(_non_ascii(text) for text in texts),
        system_chars=0 if system is None else sum(len(text) for part in system.parts for text in _texts(part)),
        tools_json_chars=_json_chars(tools) if tools else 0,
        thought_signature_chars=signatures,
        function_calls=calls,
        turn_continues=not (request.turns and _speaks(request.turns[-1])),
    )


def _json_chars(value: Json) -> int:
    try:
        return len(json.dumps(value, default=str))
    except (RecursionError, ValueError, TypeError):
        return sum(map(len, strings_of(value)))


def _fields(part: Part) -> Mapping[str, Json]:
    return part.wire if isinstance(part, ToolCallPart | OpaquePart) else part.carried


def _texts(part: Part) -> list[str]:
    match part:
        case TextPart(text=text):
            return [text]
        case ToolResultPart(response=response):
            return list(strings_of(response))
        case ToolCallPart(name=name, wire=wire):
            return [name, *strings_of((wire.get("functionCall") or {}).get("args"))]
        case OpaquePart(wire=wire):
            return list(strings_of({key: value for key, value in wire.items() if key != "thoughtSignature"}))
        case _:
            return []


def _non_ascii(text: str) -> int:
    return 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))


def _speaks(turn: Turn) -> bool:
    """Whether the caller says something new in it, beyond what tools answered."""
    return turn.role != "model" and not any(isinstance(part, ToolResultPart) for part in turn.parts)


# ---- what a request asks of a medium


def request_resolution(request: Request) -> MediaResolution:
    """`generationConfig.mediaResolution`.

    Raises:
        MalformedRequest: a level there is none of.
    """
    config = request.carried.get("generationConfig")
    level = config.get("mediaResolution") if isinstance(config, Mapping) else None
    return _level(level, "generationConfig.mediaResolution") or MediaResolution.UNSPECIFIED


def controls_of(
    part: MediaPart,
    place: Place,
    carrier: Carrier,
    placement: Placement,
    resolution: MediaResolution,
    rules: ModelRules,
) -> Controls:
    """What the part itself asks for, in the fields of the wire. A field the model is not known to act on is left out.

    Raises:
        MalformedRequest: a duration, level, page or rate that is none, or one where the service does not read it.
        InputError: an empty clip or an impossible rate.
    """
    _demand_in_place(part, place)
    video, sound, pages = (_object(part, name) for name in ("videoMetadata", "audioMetadata", "documentMetadata"))
    span, where = (video, "videoMetadata") if video else (sound, "audioMetadata")
    start_s, end_s = (_seconds(span.get(key), f"{place}.{where}.{key}") for key in ("startOffset", "endOffset"))
    if not rules.honours(WireControl.VIDEO_OFFSETS if video else WireControl.AUDIO_OFFSETS):
        start_s = end_s = None
    first, last = (_page(pages.get(key), f"{place}.documentMetadata.{key}") for key in ("startPage", "endPage"))
    if not rules.honours(WireControl.DOCUMENT_PAGES):
        first = last = None
    layers = video.get("contentLayers")
    heard = not isinstance(layers, list) or not layers or "AUDIO" in layers
    return Controls(
        media_resolution=resolution,
        part_resolution=_level(_object(part, "mediaResolution").get("level"), f"{place}.mediaResolution.level"),
        fps=_rate(video.get("fps"), f"{place}.videoMetadata.fps"),
        start_offset_s=start_s,
        end_offset_s=end_s,
        drop_sound=not heard and rules.honours(WireControl.CONTENT_LAYERS),
        first_page=first,
        last_page=last,
        placement=placement,
        carrier=carrier,
    )


def _rate(value: Json, place: str) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _wrong(place, value, "a number")
    return value or None


def _page(value: Json, place: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise _wrong(place, value, "a page, from 1")
    return value


def _demand_in_place(part: MediaPart, place: Place) -> None:
    """Raises where a control stands within or beside the object that should hold it: it would change nothing."""
    blobs = {name: _object(part, name) for name in ("inlineData", "fileData")}
    for where, fields in {
        str(place): part.carried,
        **{f"{place}.{name}": blob for name, blob in blobs.items()},
    }.items():
        for key in fields:
            home = _HOMES.get(key.replace("_", "").lower())
            if home and (key not in _SIBLINGS or fields is not part.carried):
                raise MalformedRequest(f"{where}.{key}: the service reads it as {home} of the part", place=str(place))


def _object(part: MediaPart, name: str) -> Mapping[str, Json]:
    found = part.carried.get(name)
    return found if isinstance(found, Mapping) else {}


def _level(value: Json, place: str) -> MediaResolution | None:
    if value is None:
        return None
    names = {f"{_LEVEL}{level.name}": level for level in MediaResolution}
    if not isinstance(value, str) or value not in names:
        raise _wrong(place, value, f"one of {', '.join(names)}")
    return names[value]


def _seconds(value: Json, place: str) -> float | None:
    if value is None:
        return None
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise _wrong(place, value, "a duration such as '1.5s'")
    return float(found[1])


def _wrong(place: str, value: Json, wanted: str) -> MalformedRequest:
    return MalformedRequest(f"{place}: {quoted(value)} is not {wanted}", place=place)
