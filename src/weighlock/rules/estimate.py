"""Facts × controls × rules → tokens: the one question the rest of weighlock asks of rules and arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from weighlock.media import audio, document, image, text, video
from weighlock.media.controls import Controls
from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, TextFacts, TextSizes, VideoFacts
from weighlock.media.tokens import TokenRange
from weighlock.request import MediaResolution
from weighlock.rules.model import ModelRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one medium costs, as sent."""

    tokens: tuple[TokenRange, ...]
    """One range a modality: a film gives VIDEO and, where it has sound, AUDIO."""
    notes: tuple[str, ...] = ()
    """What the service will ignore about the settings, each as one line."""
    refused: tuple[str, ...] = ()
    """Why the service will answer 400 to these settings, each as one line."""


def estimate(facts: Facts, controls: Controls, rules: ModelRules) -> Estimate:
    """Prompt tokens of one medium on one model and backend. Never raises on facts a probe can return."""
    notes = _resolution_notes(controls, rules)
    match facts:
        case ImageFacts():
            picture = rules.image(controls)
            return Estimate(tokens=(image.tokens(facts, picture),), notes=notes + picture.warnings)
        case VideoFacts():
            rule = rules.video(controls)
            remarks = video.remarks(facts, controls, rule)
            return Estimate(tokens=video.tokens(facts, controls, rule), notes=notes, refused=remarks)
        case AudioFacts():
            tokens = (audio.tokens(facts, controls, rules.audio(controls)),)
            return Estimate(tokens=tokens, notes=audio.remarks(facts, controls))
        case DocumentFacts():
            sent = document.pages_of(facts, controls.first_page, controls.last_page)
            tokens = (document.tokens(sent, rules.document(controls)),)
            return Estimate(tokens=tokens, notes=(*notes, *rules.warnings("document", controls)))
        case TextFacts():
            return Estimate(tokens=(text.tokens(facts, rules.text),))
        case TextSizes():
            return Estimate(tokens=(text.request_tokens(facts, rules.text),))
    assert_never(facts)


def _resolution_notes(controls: Controls, rules: ModelRules) -> tuple[str, ...]:
    asked = controls.part_resolution
    if asked is None or asked is MediaResolution.UNSPECIFIED or rules.honours_part_resolution:
        return ()
    return (f"{rules.model} knows no resolution of a part; the request's ({controls.media_resolution}) counts",)
