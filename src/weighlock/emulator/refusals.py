"""What the service answers with 400 before it looks at a single medium."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from weighlock.converters.wire import COUNT_TOKENS, REQUEST
from weighlock.emulator import errors
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.weighing import Intake
from weighlock.planning.structure import unanswered
from weighlock.planning.weigh import refused_together
from weighlock.request import (
    Backend,
    Carrier,
    Json,
    MediaPart,
    Request,
    TextPart,
    ToolResultPart,
    Turn,
    Uri,
)
from weighlock.rules import ModelRules


def demand_structure(request: Request, rules: ModelRules) -> None:
    """
    Raises:
        ApiError: contents there are none of, tool results that hold what they may not or answer no call.
    """
    if not any(turn.parts for turn in request.turns):
        raise errors.invalid("* GenerateContentRequest.contents: contents is not specified")
    _demand_answered(request)
    _demand_config(request, rules)
    for turn in request.turns:
        results = [part for part in turn.parts if isinstance(part, ToolResultPart)]
        for result in results:
            _demand_response(result, rules)
            _demand_tool_media(result, rules)
        _demand_no_siblings(turn, results)


@reproduces("unknown-field", "null-fields")
def demand_fields(document: Mapping[str, Json], *, counting: bool) -> None:
    """
    Raises:
        ApiError: 400, a field the service has not heard of; `null` stands for none.
    """
    known = (COUNT_TOKENS if counting else REQUEST).camel
    for name, value in document.items():
        if name not in known and value is not None:
            raise errors.unknown_field(name)


@reproduces("calls-answered")
def _demand_answered(request: Request) -> None:
    if next(unanswered(request), None) is not None:
        raise errors.invalid(
            "Please ensure that the number of function response parts is equal to the number of function call parts "
            "of the function call turn."
        )


@reproduces("image-model-resolution")
def _demand_config(request: Request, rules: ModelRules) -> None:
    config = request.carried.get("generationConfig")
    if config is None:
        return
    if not isinstance(config, Mapping):
        raise errors.invalid("Invalid value at 'generation_config'.")
    if config.get("mediaResolution") and rules.model.endswith("-image"):
        raise errors.invalid()


@reproduces("response-is-object", "ref-developer", "ref-vertex")
def _demand_response(result: ToolResultPart, rules: ModelRules) -> None:
    if result.response is not None and not isinstance(result.response, dict):
        raise errors.invalid("Invalid value at 'contents' (type.googleapis.com/google.protobuf.Struct)")
    named = list(_refs(result.response))
    if not named:
        return
    shown = {
        blob.get("displayName")
        for part in result.media
        if isinstance(part, MediaPart)
        for blob in (part.carried.get("inlineData") or {}, part.carried.get("fileData") or {})
    }
    if rules.backend is Backend.DEVELOPER or len(named) > len(set(named)) or not set(named) <= shown:
        raise errors.invalid()


def _refs(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _refs(inner)


@reproduces("tool-media-before-gemini-3", "tool-audio-video-vertex", "tool-audio-video-developer")
def _demand_tool_media(result: ToolResultPart, rules: ModelRules) -> None:
    media = [part for part in result.media if isinstance(part, MediaPart)]
    if media and rules.accepted(Carrier.TOOL_RESULT) == frozenset():
        raise errors.no_tool_media()
    for part in media:
        mime, unread = part.declared_mime or "", isinstance(part.source, Uri) and rules.backend is Backend.DEVELOPER
        if not unread and not rules.accepts(mime, Carrier.TOOL_RESULT):
            raise errors.no_such_tool_media(mime) if rules.backend is Backend.VERTEX else errors.invalid()


@reproduces("siblings-of-parallel-results")
def _demand_no_siblings(turn: Turn, results: list[ToolResultPart]) -> None:
    if len(results) > 1 and any(isinstance(part, MediaPart) for part in turn.parts):
        raise errors.invalid()


@reproduces("no-frames", "limits-of-media", "text-beside-media-vertex")
def demand_media(intake: Intake) -> None:
    """
    Raises:
        ApiError: 400, a clip without frames, or more of something than the service takes.
    """
    weighed = [intake.weighed(sent) for sent in intake.media]
    for one in weighed:
        if one.refused:
            raise errors.no_frames() if any("No frames" in reason for reason in one.refused) else errors.invalid()
    # How long a prompt is has words of its own, and countTokens counts one of any length.
    if refused_together(weighed, replace(intake.rules.limits, context_tokens=None)):
        raise errors.invalid()
    least = intake.rules.limits.least_text_parts
    texts = sum(isinstance(part, TextPart) for turn in intake.request.turns for part in turn.parts)
    if weighed and least is not None and texts < least:
        raise errors.invalid(
            "Unable to submit request because it must have a text parameter. Add a text parameter and try again."
        )


@reproduces("prompt-too-long")
def demand_context(tokens: int, rules: ModelRules) -> None:
    """
    Raises:
        ApiError: 400, more tokens than the model's context holds.
    """
    most = rules.limits.context_tokens
    if most is not None and tokens > most:
        raise errors.prompt_too_long(tokens, most)
