"""May this carrier hold this medium, and if not, what becomes of it? One medium at a time. Pure.

The tables are in `rules/data` (`[[accepts]]`); here is what follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from weighlock.mime import agrees, canonical, spelling
from weighlock.planning.identify import Identified
from weighlock.request import Backend, Carrier, Modality, Placement
from weighlock.rules import ModelRules


class ToolMedia(StrEnum):
    """What becomes of a medium a tool result cannot carry."""

    FILTER = "filter"
    """Sound and film leave, with a note; what a user turn can carry and a model can look at moves there."""
    RELOCATE = "relocate"
    """Everything a user turn can carry moves there."""
    REJECT = "reject"


class Base64InToolText(StrEnum):
    """What becomes of a medium that a tool returned as base64 text."""

    LIFT = "lift"
    """It becomes a medium of the tool result, and the rules of the carrier apply."""
    NOTE = "note"
    """It leaves; a note says what it was."""
    KEEP = "keep"


class Action(StrEnum):
    """What is done with a part."""

    KEEP = "keep"
    RELABEL = "relabel"
    """Sent under the name the backend has for what the bytes are."""
    RECODE = "recode"
    """Text of another encoding, sent as UTF-8."""
    CONVERT = "convert"
    """Sent as another format; carried out where media are transformed."""
    RELOCATE = "relocate"
    """Moved to a user turn of its own behind the tool results."""
    REMOVE = "remove"
    """Taken out; a note stays."""
    REJECT = "reject"


class Code(StrEnum):
    """Why. Stable across releases."""

    ACCEPTED = "accepted"
    MISLABELLED = "mislabelled"
    TEXT_ENCODING = "text_encoding"
    CONVERTIBLE = "convertible"
    NOT_IN_TOOL_RESULT = "not_in_tool_result"
    """A type no tool result carries, on a model whose tool results carry others."""
    NO_NESTED_MEDIA = "no_nested_media"
    """The model's tool results carry no media at all."""
    UNREAD_REFERENCE = "unread_reference"
    """A reference the backend does not read inside a tool result."""
    UNSUPPORTED_MEDIA = "unsupported_media"
    UNKNOWN_MEDIA_TYPE = "unknown_media_type"
    MIME_MISMATCH = "mime_mismatch"
    MALFORMED_MEDIA = "malformed_media"
    CUT_OFF = "cut_off"
    """Base64 text in a tool result that ends before the medium does."""
    BASE64_TEXT = "base64_text"
    """A medium as text, left or taken out as the endpoint wants it."""
    BESIDE_TOOL_RESULT = "beside_tool_result"
    """A turn of tool results holds nothing else: some models answer such a turn with nothing, others with 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of one medium."""

    action: Action
    code: Code
    reason: str
    """In words, without the medium's place: `gemini-3.8-flash takes no audio in a tool result`."""
    send_as: str | None = None
    """The MIME type to declare; of `CONVERT`, the format to convert to. `None` where nothing is known of it."""
    convert: bool = False
    """Whether it has to become `send_as` first; also set where it is converted and moved."""


_CONVERSIONS: dict[str, tuple[str, ...]] = {
    "image/bmp": ("image/png",),
    "image/gif": ("image/png",),
    "image/avif": ("image/webp", "image/png"),
    "image/jp2": ("image/png",),
    "image/x-icon": ("image/png",),
    "audio/x-ms-wma": ("audio/mpeg",),
    "audio/x-caf": ("audio/flac",),
    "audio/aiff": ("audio/flac",),
    "audio/basic": ("audio/flac",),
    "audio/amr": ("audio/mpeg",),
    "audio/x-matroska": ("audio/mpeg",),
    "audio/3gpp": ("audio/mpeg",),
    "video/x-matroska": ("video/mp4",),
    "video/mp2t": ("video/mp4",),
    "video/ogg": ("video/mp4",),
    "video/3gpp2": ("video/mp4",),
    "video/x-ms-asf": ("video/mp4",),
    "video/x-msvideo": ("video/mp4",),
}
"""Formats that become another one with nothing a model would miss; of several targets, the first that is taken."""
_SUGGESTIONS = (
    ("image/svg+xml", "render it to PNG, or send its source as text"),
    ("image/tiff", "send it as PNG, or its pages as PDF"),
    ("image/", "send it as JPEG or PNG"),
    ("audio/", "send it as MP3, FLAC or WAV"),
    ("video/", "send it as MP4"),
    ("application/", "send a PDF of it, or its text"),
)


def decide(medium: Identified, carrier: Carrier, rules: ModelRules, policy: ToolMedia, *, strict: bool) -> Decision:
    """What becomes of a medium. `strict` refuses a label the bytes contradict (`mime_mismatch: reject`)."""
    if medium.error is not None:
        heals = carrier is Carrier.TOOL_RESULT and policy is not ToolMedia.REJECT  # else the session ends here for good
        action = Action.REMOVE if heals else Action.REJECT
        return Decision(action=action, code=Code.MALFORMED_MEDIA, reason=medium.error.message)
    if medium.placement is Placement.FILES and rules.backend is Backend.VERTEX and carrier is not Carrier.MODEL:
        action = Action.REMOVE if carrier is Carrier.TOOL_RESULT and policy is not ToolMedia.REJECT else Action.REJECT
        words = "a file of the Developer API, which Vertex does not read; name it by gs://, or send its bytes"
        return Decision(action=action, code=Code.UNSUPPORTED_MEDIA, reason=words)
    match carrier:
        case Carrier.MODEL:
            return Decision(action=Action.KEEP, code=Code.ACCEPTED, reason="the model's own", send_as=medium.mime)
        case Carrier.USER:
            return _in_user_turn(medium, rules, strict)
        case Carrier.TOOL_RESULT:
            return _in_tool_result(medium, rules, policy, strict)


def _in_user_turn(medium: Identified, rules: ModelRules, strict: bool) -> Decision:
    accepted = rules.accepted(Carrier.USER, medium.placement)
    return _carried(medium, accepted, rules.model, strict) or _not_taken(medium, accepted or frozenset(), rules.model)


def _in_tool_result(medium: Identified, rules: ModelRules, policy: ToolMedia, strict: bool) -> Decision:
    accepted = rules.accepted(Carrier.TOOL_RESULT, medium.placement)
    if medium.mime is not None and (nested := _carried(medium, accepted, rules.model, strict)):
        return nested
    outside = _in_user_turn(medium, rules, strict)
    code, reason = _why_not_nested(medium, rules)
    if outside.action is Action.REJECT:
        return outside if policy is ToolMedia.REJECT else replace(outside, action=Action.REMOVE)
    if policy is ToolMedia.REJECT:
        return Decision(action=Action.REJECT, code=code, reason=reason)
    if policy is ToolMedia.FILTER and medium.modality in (Modality.AUDIO, Modality.VIDEO):
        return Decision(action=Action.REMOVE, code=code, reason=reason)
    if outside.action is Action.CONVERT and outside.send_as in (accepted or ()):
        return outside
    return replace(outside, action=Action.RELOCATE, code=code, reason=reason)


def _carried(medium: Identified, accepted: frozenset[str] | None, model: str, strict: bool) -> Decision | None:
    """The medium where it is, under its right name; `None` where that will not do."""
    declared, found = medium.declared_mime, medium.mime
    taken = Decision(action=Action.KEEP, code=Code.ACCEPTED, reason=f"taken by {model}", send_as=declared or found)
    if not medium.seen and found is None:
        return taken
    if found is None or (accepted is None and medium.modality is None):
        return None
    send_as = _name(medium, found, accepted)
    if send_as is None:
        return None
    claim = canonical(declared)
    if strict and not agrees(claim, found):
        reason = f"labelled {claim}, the bytes are {found}; relabel it, or set mime_mismatch: correct"
        return Decision(action=Action.REJECT, code=Code.MIME_MISMATCH, reason=reason)
    if medium.utf8 is not None:
        words = f"{medium.encoding} text; the service reads UTF-8"
        return Decision(action=Action.RECODE, code=Code.TEXT_ENCODING, reason=words, send_as=send_as)
    if declared == send_as or (claim and agrees(claim, found) and declared in (accepted or (claim,))):
        return taken
    said = f"labelled {claim}" if claim else "not labelled"
    if claim and agrees(claim, found):
        said = "labelled by a name the service does not have for it"
    return Decision(
        action=Action.RELABEL,
        code=Code.MISLABELLED,
        reason=f"{said}; {'the bytes are' if medium.seen else 'its name says'} {found}",
        send_as=send_as,
    )


def converted(mime: str, accepted: frozenset[str]) -> str | None:
    """What a format becomes that is not among the accepted ones; `None` where nothing is known that would do."""
    return next((name for wanted in _CONVERSIONS.get(mime, ()) if (name := spelling(wanted, accepted))), None)


def _name(medium: Identified, found: str, accepted: frozenset[str] | None) -> str | None:
    """What the service calls the type. Raw samples keep their parameters: nothing else says how fast they play."""
    name = found if accepted is None else spelling(found, accepted)
    _, parted, parameters = (medium.declared_mime or "").partition(";")
    raw = name is not None and not medium.certain and medium.seen and medium.modality is Modality.AUDIO
    return f"{name};{parameters}" if raw and parted else name


def _not_taken(medium: Identified, accepted: frozenset[str], model: str) -> Decision:
    found = medium.mime
    if found is None:
        return Decision(
            action=Action.REJECT,
            code=Code.UNKNOWN_MEDIA_TYPE,
            reason="no known media type in its bytes; Gemini takes images, video, audio, PDF and text",
        )
    if medium.seen and (target := converted(found, accepted)):
        words = f"{model} takes no {found}; it becomes {target}"
        return Decision(action=Action.CONVERT, code=Code.CONVERTIBLE, reason=words, send_as=target, convert=True)
    remedy = next(words for kind, words in (*_SUGGESTIONS, ("", "send its text")) if found.startswith(kind))
    if not medium.seen:
        remedy = "send its bytes in another format"
    return Decision(action=Action.REJECT, code=Code.UNSUPPORTED_MEDIA, reason=f"{model} takes no {found}; {remedy}")


def _why_not_nested(medium: Identified, rules: ModelRules) -> tuple[Code, str]:
    inline = rules.accepted(Carrier.TOOL_RESULT, Placement.INLINE)
    if not inline:
        return Code.NO_NESTED_MEDIA, f"{rules.model} takes no media in a tool result"
    what = (medium.mime or "medium of unknown type").replace("audio/", "audio ").replace("video/", "video ")
    kind = medium.modality.lower() if medium.modality in (Modality.AUDIO, Modality.VIDEO) else what
    if not medium.seen and spelling(medium.mime or "", inline):
        backend = "the Developer API" if rules.backend is Backend.DEVELOPER else "Vertex"
        return Code.UNREAD_REFERENCE, f"{backend} does not read a reference in a tool result"
    return Code.NOT_IN_TOOL_RESULT, f"{rules.model} takes no {kind} in a tool result"
