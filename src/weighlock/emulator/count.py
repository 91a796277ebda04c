"""`countTokens`, with the known biases of each form of the request: it is not the bill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from weighlock.converters.rest_json import Parsed
from weighlock.emulator import errors
from weighlock.emulator.behaviours import figure, reproduces
from weighlock.emulator.billing import billed, details
from weighlock.emulator.weighing import Intake, Sent
from weighlock.media.area import Grid
from weighlock.media.counted import counted
from weighlock.media.document import pages_of
from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, VideoFacts
from weighlock.planning.said import text_sizes
from weighlock.request import Backend, Json, MediaResolution, Modality
from weighlock.rules import Controls, ModelRules


@reproduces("count-wrapped-needs-model", "count-developer-fields", "count-wrapped-wins")
def demand_form(parsed: Parsed, document: Mapping[str, Json], backend: Backend) -> None:
    """
    Raises:
        ApiError: 400, a wrapped request without model or contents, or fields the Developer API takes only wrapped.
    """
    if parsed.around is not None:
        for name in ("model", "contents"):
            if not parsed.inner.get(name):
                raise errors.invalid(f"* CountTokensRequest.generate_content_request.{name}: {name} is not specified")
    elif backend is Backend.DEVELOPER:
        for name in ("systemInstruction", "system_instruction", "tools", "generationConfig", "generation_config"):
            if document.get(name) is not None:
                raise errors.unknown_field(name)


@reproduces("count-one-more")
def answer(intake: Intake, *, wrapped: bool) -> Json:
    """The body of the answer. `wrapped` is the form with `generateContentRequest`."""
    buckets = {Modality.TEXT: billed([intake.text]).get(Modality.TEXT, 0)}
    whole = wrapped or intake.rules.backend is Backend.VERTEX
    for sent in intake.media:
        if sent.known:
            for modality, tokens in _counted(intake, sent, whole=whole).items():
                buckets[modality] = buckets.get(modality, 0) + tokens
    if intake.media and Modality.TEXT in intake.rules.counts:
        buckets[Modality.TEXT] += intake.rules.counts[Modality.TEXT].plus
    ordered = {modality: buckets[modality] for modality in Modality if modality in buckets}
    answer: dict[str, Json] = {"totalTokens": sum(ordered.values()), "promptTokensDetails": details(ordered)}
    if intake.rules.backend is Backend.VERTEX:
        answer["totalBillableCharacters"] = text_sizes(intake.request).content_chars
    return answer


@reproduces(
    "count-audio", "count-video", "count-pdf", "count-image", "count-ignores-fps", "count-ignores-resolution",
    "count-wrapped-resolution",
)  # fmt: skip
def _counted(intake: Intake, sent: Sent, *, whole: bool) -> dict[Modality, int]:
    """One medium, at the request's resolution in the `whole` form, else at none."""
    rules, facts, kind = intake.rules, _clipped(sent), sent.examined.modality
    if facts is None or kind is None or kind is Modality.TEXT:
        return billed([intake.weighed(sent)])
    asked = sent.controls.media_resolution if whole else MediaResolution.UNSPECIFIED
    controls = replace(sent.controls, media_resolution=asked, part_resolution=None, fps=None)
    tokens = None if asked is MediaResolution.UNSPECIFIED else _at_resolution(facts, controls, rules)
    if tokens is None:
        tokens = counted([facts], {kind: rules.counts[kind]} if kind in rules.counts else {})
    if tokens is None:
        tokens = _unmeasured(facts)
    if kind is Modality.DOCUMENT:
        kind = rules.document(controls).provenance.billed_as
    return {kind: tokens}


def _clipped(sent: Sent) -> Facts | None:
    """What is left of a medium inside its clip or pages."""
    facts, controls = sent.examined.facts, sent.controls
    match facts:
        case VideoFacts(audio_duration_s=heard_s):
            heard_s = None if heard_s is None else controls.span_s(heard_s)
            return replace(facts, duration_s=controls.span_s(facts.duration_s), audio_duration_s=heard_s)
        case AudioFacts():
            return replace(facts, duration_s=controls.span_s(facts.duration_s))
        case DocumentFacts():
            return pages_of(facts, controls.first_page, controls.last_page)
        case _:
            return facts


def _at_resolution(facts: Facts, controls: Controls, rules: ModelRules) -> int | None:
    """What a resolution of the request makes of a medium; `None` where it changes nothing."""
    match facts:
        case ImageFacts(width_px=width, height_px=height):
            shape = rules.image(controls).area.likely
            return shape.count(width, height) if isinstance(shape, Grid) else None
        case VideoFacts(duration_s=seconds) if controls.media_resolution is MediaResolution.HIGH:
            return math.ceil(seconds * figure("count-wrapped-resolution", "tokens_per_s"))
        case DocumentFacts(pages=pages):
            page = rules.document(controls).page.likely
            return pages * page.budget if isinstance(page, Grid) else None
        case _:
            return None


def _unmeasured(facts: Facts) -> int:
    """Before Gemini 3, for which no rule tells what is counted of films and pages."""
    match facts:
        case VideoFacts(duration_s=seconds):
            return math.ceil(seconds * figure("count-video", "tokens_per_s_before_gemini_3"))
        case DocumentFacts(pages=pages):
            return pages * figure("count-pdf", "tokens_before_gemini_3")
        case _:
            return 0
