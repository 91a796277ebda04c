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
from weighlock.media.document import pages_of
from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, VideoFacts
from weighlock.planning.said import text_sizes
from weighlock.request import Backend, Json, MediaResolution, Modality


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


def answer(intake: Intake, *, wrapped: bool) -> Json:
    """The body of the answer. `wrapped` is the form with `generateContentRequest`."""
    buckets = {Modality.TEXT: billed([intake.text]).get(Modality.TEXT, 0)}
    whole = wrapped or intake.rules.backend is Backend.VERTEX
    for sent in intake.media:
        if sent.known:
            for modality, tokens in _counted(intake, sent, whole=whole).items():
                buckets[modality] = buckets.get(modality, 0) + tokens
    if intake.media:
        buckets[Modality.TEXT] += figure("count-one-more", "tokens")
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
    rules = intake.rules
    asked = sent.controls.media_resolution if whole else MediaResolution.UNSPECIFIED
    controls = replace(sent.controls, media_resolution=asked, part_resolution=None, fps=None)
    match sent.examined.facts:
        case ImageFacts(width_px=width, height_px=height):
            shape, flat = rules.image(controls).area.likely, figure("count-image", "tokens")
            return {Modality.IMAGE: shape.count(width, height) if isinstance(shape, Grid) else flat}
        case AudioFacts(duration_s=seconds):
            return {Modality.AUDIO: math.ceil(controls.span_s(seconds) * figure("count-audio", "tokens_per_s"))}
        case VideoFacts(duration_s=seconds):
            high = asked is MediaResolution.HIGH
            rate = figure("count-wrapped-resolution" if high else "count-video", "tokens_per_s")
            return {Modality.VIDEO: math.ceil(controls.span_s(seconds) * rate)}
        case DocumentFacts() as facts:
            page = rules.document(controls).page.likely
            each = page.budget if isinstance(page, Grid) else figure("count-pdf", "tokens_before_gemini_3")
            sent_pages = pages_of(facts, controls.first_page, controls.last_page).pages
            return {rules.document(controls).provenance.billed_as: sent_pages * each}
        case _:
            return billed([intake.weighed(sent)])
