"""Tokens of sound, alone or as a film's track. Codec, bit rate and channels do not matter; seconds do."""

from __future__ import annotations

from dataclasses import dataclass

from weighlock.media.controls import Controls
from weighlock.media.facts import AudioFacts
from weighlock.media.rule import Provenance, Rounding
from weighlock.media.tokens import TokenRange
from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioRule:
    """A rate, and where it is rounded: to a token, or (Gemini 2.0) to a whole second first."""

    tokens_per_s: int
    rounding: Rounding
    whole_seconds: bool
    provenance: Provenance
    low_tokens_per_s: int | None = None
    """The lowest rate it may turn out to be, where the rate itself is a guess."""

    def count(self, span_s: float, rounding: Rounding, tokens_per_s: int | None = None) -> int:
        """Tokens for `span_s` seconds, rounded as told."""
        rate = tokens_per_s or self.tokens_per_s
        return rounding.whole(span_s) * rate if self.whole_seconds else rounding.whole(span_s * rate)

    def weigh(self, span_s: float, span_high_s: float) -> TokenRange:
        """Tokens between the shorter span rounded down and the longer one rounded up."""
        return self.provenance.range(
            Modality.AUDIO,
            self.count(span_s, Rounding.FLOOR, self.low_tokens_per_s),
            self.count(span_s, self.rounding),
            self.count(span_high_s, Rounding.CEIL),
        )


def tokens(facts: AudioFacts, controls: Controls, rule: AudioRule) -> TokenRange:
    """Prompt tokens of a sound file. Several tracks count once.

    `likely` rests on the presented duration, so that codec priming (1.000 s of AAC decodes to 1.07 s) adds nothing.
    """
    return rule.weigh(controls.span_s(facts.duration_s), controls.span_s(facts.duration_high_s))


def remarks(facts: AudioFacts, controls: Controls) -> tuple[str, ...]:
    """What is odd about these settings for this sound, each as one line."""
    if controls.span_s(facts.duration_s) > 0 or not facts.duration_s:
        return ()
    return (f"the clip begins at {controls.start_offset_s:g} s, after the sound's end at {facts.duration_s:.2f} s",)
