"""Tokens of text, estimated from its size alone: no tokenizer, no download."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weighlock.media.facts import TextFacts, TextSizes
from weighlock.media.rule import Provenance
from weighlock.media.tokens import TokenRange
from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRatios:
    """Tokens a character, by kind, fitted to bills, and the spread that covers them."""

    per_char: float
    per_non_ascii_char: float
    per_non_ascii_char_high: float
    per_tools_json_char: float
    per_signature_char: float
    per_signature_char_high: float
    per_function_call: float
    low_factor: float
    low_margin: float
    high_factor: float
    high_margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRule:
    """What text costs, and who says so."""

    ratios: TextRatios
    provenance: Provenance


def tokens(facts: TextFacts, rule: TextRule) -> TokenRange:
    """Prompt tokens of a text file, which the service reads as plain text."""
    return request_tokens(TextSizes(content_chars=facts.chars, non_ascii_chars=facts.non_ascii_chars), rule)


def request_tokens(sizes: TextSizes, rule: TextRule) -> TokenRange:
    """TEXT tokens of a whole request. Nothing in it costs nothing."""
    ratios = rule.ratios
    ascii_chars = sizes.content_chars - sizes.non_ascii_chars + sizes.system_chars
    plain = (
        ascii_chars * ratios.per_char
        + sizes.tools_json_chars * ratios.per_tools_json_char
        + sizes.function_calls * ratios.per_function_call
    )
    foreign = sizes.non_ascii_chars * ratios.per_non_ascii_char
    signatures = sizes.thought_signature_chars * ratios.per_signature_char
    if plain + foreign + signatures + sizes.thought_signature_chars == 0:
        return rule.provenance.range(Modality.TEXT, 0, 0, 0)
    low = (plain + foreign) * ratios.low_factor - ratios.low_margin
    likely = plain + foreign + (signatures if sizes.turn_continues else 0)
    high = (
        plain * ratios.high_factor
        + max(foreign * ratios.high_factor, sizes.non_ascii_chars * ratios.per_non_ascii_char_high)
        + sizes.thought_signature_chars * ratios.per_signature_char_high
        + ratios.high_margin
    )
    return rule.provenance.range(
        Modality.TEXT, max(0, math.floor(low)), max(1, math.floor(likely + 0.5)), math.ceil(high)
    )
