"""What `countTokens` says of a medium. It is not the bill: it hears sound in silent films, and reads no control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from weighlock.media.area import Shape
from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, TextFacts, TextSizes, VideoFacts
from weighlock.media.rule import Rounding
from weighlock.request import Modality

_ASPECTS = ((1, 1), (4, 3), (16, 9), (9, 16), (21, 9), (9, 21))
"""Of films in use; of these, one of 4 : 3 costs least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRule:
    """What is counted of media of one modality; of TEXT, what a request of media alone counts beside them."""

    modality: Modality
    each: Shape | None = None
    """An image, a page, a frame (one a begun second)."""
    plus: int = 0
    """Beside each: a frame's time stamp."""
    tokens_per_s: int = 0
    """Of sound, which a film is taken to have. Rounded up."""
    one_more_every_s: int | None = None
    """One token more for every full span of sound so long."""
    bill_over: int = 0
    """How many tokens more than counted are billed."""


def counted(media: Iterable[Facts], rules: Mapping[Modality, CountRule]) -> int | None:
    """What a request of these media alone counts; `None` where nothing is known of one of them."""
    total = rules[Modality.TEXT].plus if Modality.TEXT in rules else 0
    for facts in media:
        rule = rules.get(_modality(facts))
        if rule is None or isinstance(facts, TextFacts | TextSizes):
            return None
        total += _counted(facts, rule)
    return total


def seconds(tokens: int, rule: CountRule) -> tuple[float, float] | None:
    """The shortest and longest sound or film that counts so much; `None` where a count does not tell.

    So a film nobody here can see is weighed: its count says how long it is, and its length what is billed.
    """
    if not rule.tokens_per_s:
        return None
    more = tokens // (rule.tokens_per_s * rule.one_more_every_s) if rule.one_more_every_s else 0
    if rule.each is None:
        return max(0, tokens - more - 2) / rule.tokens_per_s, tokens / rule.tokens_per_s
    most = rule.each.most()
    if most is None:
        return None
    dearest_s = most + rule.plus + rule.tokens_per_s
    cheapest_s = min(rule.each.count(*aspect) for aspect in _ASPECTS) + rule.plus + rule.tokens_per_s
    return max(0, tokens - more - 2 * (most + rule.plus)) / dearest_s, tokens / cheapest_s


def _counted(facts: ImageFacts | VideoFacts | AudioFacts | DocumentFacts, rule: CountRule) -> int:
    match facts:
        case ImageFacts():
            return _each(rule, facts.width_px, facts.height_px)
        case VideoFacts():
            longest_s = max(facts.duration_s, facts.audio_duration_s or 0.0)
            frames = max(1, Rounding.CEIL.whole(facts.duration_s))
            return frames * _each(rule, facts.width_px, facts.height_px) + _sound(longest_s, rule)
        case AudioFacts():
            return _sound(facts.duration_s, rule)
        case DocumentFacts():
            return facts.pages * _each(rule, 1, 1)
    assert_never(facts)


def _each(rule: CountRule, width: int, height: int) -> int:
    return rule.plus + (0 if rule.each is None else rule.each.count(width, height))


def _sound(duration_s: float, rule: CountRule) -> int:
    more = int(duration_s // rule.one_more_every_s) if rule.one_more_every_s else 0
    return Rounding.CEIL.whole(duration_s * rule.tokens_per_s) + more


def _modality(facts: Facts) -> Modality:
    match facts:
        case ImageFacts():
            return Modality.IMAGE
        case VideoFacts():
            return Modality.VIDEO
        case AudioFacts():
            return Modality.AUDIO
        case DocumentFacts():
            return Modality.DOCUMENT
        case TextFacts() | TextSizes():
            return Modality.TEXT
    assert_never(facts)
