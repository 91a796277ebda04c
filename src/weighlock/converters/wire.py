"""The messages of the REST API we know, and both spellings of their fields.

The service reads `mimeType` and `mime_type` alike, at every depth. Only what is listed here is ever spelt anew; what a
caller owns (arguments, responses, JSON Schemas, labels, metadata) and every field we have not heard of stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weighlock.errors import MalformedRequest
from weighlock.request import Json
from weighlock.written import plain

_LONGEST_KEY = 60


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its fields by every spelling they may have."""

    camel: Mapping[str, str]
    """Any spelling → camelCase."""
    inner: Mapping[str, Message]
    """Fields (camelCase) that hold a message or a list of them."""


def _message(plain_fields: str = "", **inner: Message) -> Message:
    names = (*plain_fields.split(), *inner)
    return Message(camel={spelt: name for name in names for spelt in (name, _snake(name))}, inner=inner)


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name)


_CONTROLS = {
    "videoMetadata": _message("startOffset endOffset fps contentLayers"),
    "audioMetadata": _message("startOffset endOffset"),
    "documentMetadata": _message("startPage endPage contentLayers"),
    "spreadsheetMetadata": _message("visibleCells sheetIndex contentLayers"),
    "mediaResolution": _message("level numTokens"),
}
_MEDIA = {
    "inlineData": _message("mimeType data displayName"),
    "fileData": _message("mimeType fileUri displayName"),
}
FUNCTION_RESPONSE_PART = _message("mediaProcessing", **_MEDIA, **_CONTROLS)
FUNCTION_RESPONSE = _message("id name response willContinue scheduling", parts=FUNCTION_RESPONSE_PART)
PART = _message(
    "text thought thoughtSignature partMetadata mediaProcessing toolCall toolResponse speechMetadata"
    " audioTranscription",
    functionCall=_message("id name args willContinue partialArgs"),
    functionResponse=FUNCTION_RESPONSE,
    executableCode=_message("id language code"),
    codeExecutionResult=_message("id outcome output"),
    **_MEDIA,
    **_CONTROLS,
)
CONTENT = _message("role", parts=PART)
_DECLARATION = _message(
    "name description behavior parameters parametersJsonSchema response responseJsonSchema",
)
_GENERATION_CONFIG = _message(
    "temperature topP topK candidateCount maxOutputTokens stopSequences responseLogprobs logprobs presencePenalty"
    " frequencyPenalty seed responseMimeType responseSchema responseJsonSchema routingConfig modelSelectionConfig"
    " responseModalities mediaResolution speechConfig audioTimestamp enableAffectiveDialog"
    " enableEnhancedCivicAnswers enableAutomaticFunctionCalling",
    thinkingConfig=_message("includeThoughts thinkingBudget thinkingLevel"),
    imageConfig=_message("aspectRatio imageSize personGeneration outputMimeType outputCompressionQuality"),
)
_OF_REQUEST = "model cachedContent labels serviceTier store"
REQUEST = _message(
    _OF_REQUEST,
    contents=CONTENT,
    systemInstruction=CONTENT,
    tools=_message(
        "googleSearch googleSearchRetrieval codeExecution urlContext retrieval computerUse googleMaps fileSearch"
        " enterpriseWebSearch mcpServers",
        functionDeclarations=_DECLARATION,
    ),
    toolConfig=_message(
        "retrievalConfig includeServerSideToolInvocations",
        functionCallingConfig=_message("mode allowedFunctionNames streamFunctionCallArguments"),
    ),
    safetySettings=_message("category threshold method"),
    generationConfig=_GENERATION_CONFIG,
)
COUNT_TOKENS = _message(_OF_REQUEST, **REQUEST.inner, generateContentRequest=REQUEST)
"""A body of either: a count may wrap the request in one."""


def recased(value: Json, message: Message) -> Json:
    """The same value with the fields of known messages in camelCase. What needs no change is the same object."""
    if isinstance(value, list):
        items = [recased(item, message) if isinstance(item, dict) else item for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    camel, inner = message.camel, message.inner
    fields: dict[str, Json] = {}
    changed = False
    for key, old in value.items():
        name = camel.get(key, key)
        new = recased(old, inner[name]) if name in inner else old
        changed = changed or name != key or new is not old
        fields[name] = new
    return fields if changed else value


def check_spellings(value: Json, message: Message, place: str) -> None:
    """Refuses a field that is there in both spellings: readers disagree which one counts.

    Raises:
        MalformedRequest: names the place and the field.
    """
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):  # a list of lists is no message
                check_spellings(item, message, f"{place}[{index}]")
    elif isinstance(value, dict):
        seen: set[str] = set()
        for key, item in value.items():
            name = message.camel.get(key)
            if name is None:
                continue
            if name in seen:
                raise malformed(f"{place}.{name}" if place else name, "is there twice, in two spellings")
            seen.add(name)
            if name in message.inner:
                check_spellings(item, message.inner[name], f"{place}.{name}" if place else name)


def field(value: Mapping[str, Json], camel: str, snake: str) -> Json:
    """A field in either spelling; `None` where it is unset."""
    found = value.get(camel)
    return value.get(snake) if found is None else found


def malformed(place: str, what: str, **figures: Any) -> MalformedRequest:
    """The error for something wrong at a place."""
    return MalformedRequest(f"{place or 'the body'}: {what}", place=place, **figures)


def path_of(steps: Iterable[str | int]) -> str:
    """`contents[3].parts[0].text`; a long or strange key is shortened, so that nothing is smuggled into a message."""
    path = ""
    for step in steps:
        name = step if isinstance(step, int) else plain(step[: 2 * _LONGEST_KEY], _LONGEST_KEY)
        path += f"[{name}]" if isinstance(step, int) else f".{name}" if path else str(name)
    return path


def kind_of(value: object) -> str:
    """What a value is, in words; nothing of what it holds."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return plain(f"a Python {type(value).__name__}")
