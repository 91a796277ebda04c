"""Would a count change the verdict, and what does one tell us? Pure; asking is `gemini/count.py`'s."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from weighlock import mime
from weighlock.errors import UnreadableSource
from weighlock.media.counted import CountRule, counted, seconds
from weighlock.media.facts import (
    AudioFacts,
    DocumentFacts,
    Facts,
    FactSource,
    TextFacts,
    TextSizes,
    VideoFacts,
)
from weighlock.media.tokens import Confidence, TokenRange
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.identify import modality_of
from weighlock.planning.weigh import Tally, Weighed
from weighlock.request import Modality
from weighlock.rules import Controls, ModelRules, estimate

_TOKEN_LIMITS = ("prompt_tokens", "tokens.", "cost_usd")


class When(StrEnum):
    """When a request is counted before it is sent."""

    AUTO = "auto"
    """When it can change the verdict: a count is a round trip in front of the user's request."""
    ALWAYS = "always"
    OFF = "off"


class OnCountFailure(StrEnum):
    """What happens when the service does not say."""

    ESTIMATE = "estimate"
    REJECT = "reject"


class Form(StrEnum):
    """What is put before `countTokens`, and so what its answer covers."""

    TEXT = "text"
    """All but the media; a short text stands in the place of each."""
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPolicy:
    """An endpoint's wish."""

    when: When = When.AUTO
    timeout_s: float = 2.0
    on_failure: OnCountFailure = OnCountFailure.ESTIMATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What `countTokens` said. Not the bill: see the rules' `counts`."""

    total: int
    covers: Form
    model: str
    by_modality: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Google's buckets under Google's names; empty where it gave none."""
    cached: int = 0
    """Of `total`, in a named cache."""
    stand_ins: int = 0
    """Short texts in the place of media, a token each."""


def form_wanted(parts: Sequence[Weighed], verdict: Verdict, policy: CountPolicy, *, known_model: bool) -> Form | None:
    """What to count before deciding; `None` where no answer would change the verdict."""
    blind = not known_model or any(map(is_unseen, parts))
    if policy.when is When.OFF:
        return None
    if policy.when is When.ALWAYS:
        return Form.WHOLE if blind else Form.TEXT
    limits = [check for check in verdict.limits if check.name.startswith(_TOKEN_LIMITS)]
    if verdict.reasons or any(check.low > check.limit for check in verdict.limits):
        return None
    if any(part.error is not None and not is_unseen(part) for part in parts):
        return None
    if blind:
        return Form.WHOLE if limits else None
    text = Tally.of(part.of(Modality.TEXT) for part in parts)
    return Form.TEXT if any(_a_text_count_admits(check, text) for check in limits) else None


def is_unseen(part: Weighed) -> bool:
    """Whether only the service can see it: https, gs://, YouTube, a file of the Files API that is not ours."""
    return isinstance(part.error, UnreadableSource) and part.error.figures.get("reference") is True


def _a_text_count_admits(check: LimitCheck, text: Tally) -> bool:
    """Whether the request fits if its text turns out as short as it may be: it is the only part a count settles."""
    if not check.a_count_would_settle or text.high == text.low:
        return False
    if check.modality not in (None, Modality.TEXT):
        return False
    return check.name == "cost_usd" or check.high - (text.high - text.low) <= check.limit


# ---- what a count tells


def text_counted(count: Count, estimated: TokenRange, rules: ModelRules, *, unmeasured: int = 0) -> TokenRange:
    """The text's tokens as counted without the media.

    `unmeasured` is how much may be billed for what no count is known to cover (thought signatures): it widens the
    range upwards. Where nothing is known of the model's counts the estimate's bounds stay in force around the count.
    """
    entry = rules.count_entry(Modality.TEXT)
    least = max(0, count.total - count.stand_ins)
    if entry is None:
        low, likely, high = min(least, estimated.low), count.total, max(count.total, estimated.high)
        confidence = Confidence.ASSUMED
    else:
        over = rules.counts[Modality.TEXT].bill_over
        low, likely, high = least, least + over, count.total + over + unmeasured
        confidence = entry.confidence
    return TokenRange(
        low=low,
        likely=max(low, min(likely, high)),
        high=high,
        modality=Modality.TEXT,
        billed_as=Modality.TEXT,
        rule_id=f"{rules.generation}/counts",
        confidence=confidence,
    )


def media_counted(
    count: Count, seen: Iterable[Facts], text: Tally, modality: Modality, controls: Controls, rules: ModelRules
) -> tuple[TokenRange, ...] | None:
    """What media of one modality that nobody here can see will be billed, from a count of the whole request.

    What the seen media and the text count is taken off; the rest says how long the others are, and the rules what such
    a length is billed. `None` where counts of that kind are not measured for the model.
    """
    rule, known = rules.counts.get(modality), counted(seen, rules.counts)
    if rule is None or known is None:
        return None
    said = count.by_modality.get(Modality.TEXT)
    texts = (text.low, text.high) if said is None else (said, said)
    least, most = (max(0, count.total - known - taken) for taken in reversed(texts))
    sizes = _sizes(rule, least, most)
    if sizes is None:
        return None
    shortest, longest = (estimate(facts, controls, rules).tokens for facts in sizes)
    lows = {tokens.modality: tokens.low for tokens in shortest}
    return tuple(
        TokenRange(
            low=min(lows.get(tokens.modality, 0), tokens.likely),
            likely=tokens.likely,
            high=tokens.high,
            modality=tokens.modality,
            billed_as=tokens.billed_as,
            rule_id=f"{rules.generation}/counts",
            confidence=Confidence.ASSUMED,
        )
        for tokens in longest
    )


def corrected(
    parts: Sequence[Weighed], text: Count | None, whole: Count | None, rules: ModelRules
) -> tuple[TokenRange, ...]:
    """Every part's tokens, counts taken for what they are good for: the text, and media nobody here can see."""
    ranges = [tokens for part in parts for tokens in part.tokens if not isinstance(part.examined.facts, TextSizes)]
    for part in parts:
        if isinstance(part.examined.facts, TextSizes):
            ranges += _text(part, part.examined.facts, text, rules)
    unseen = [part for part in parts if is_unseen(part)]
    kinds = {modality_of(mime.canonical(part.examined.declared_mime)) for part in unseen}
    if whole is not None and len(kinds) == 1 and (kind := kinds.pop()) is not None:
        seen = [part.examined.facts for part in parts if part.examined.facts is not None]
        media = [facts for facts in seen if not isinstance(facts, TextFacts | TextSizes)]
        words = Tally.of(tokens for tokens in ranges if tokens.modality is Modality.TEXT)
        ranges += media_counted(whole, media, words, kind, unseen[0].controls, rules) or ()
    return tuple(ranges)


def _text(part: Weighed, sizes: TextSizes, text: Count | None, rules: ModelRules) -> tuple[TokenRange, ...]:
    if text is None or not part.tokens:
        return part.tokens
    signatures = math.ceil(sizes.thought_signature_chars * rules.text.ratios.per_signature_char_high)
    return (text_counted(text, part.tokens[0], rules, unmeasured=signatures),)


def _sizes(rule: CountRule, least: int, most: int) -> tuple[Facts, Facts] | None:
    """The smallest and the largest medium that counts so much. The smaller film is silent: a count hears it anyway."""
    match rule.modality:
        case Modality.AUDIO | Modality.VIDEO:
            short, long = seconds(least, rule), seconds(most, rule)
            if short is None or long is None:
                return None
            if rule.modality is Modality.AUDIO:
                return _sound(short[0]), _sound(long[1])
            return _film(short[0], heard=False), _film(long[1], heard=True)
        case Modality.DOCUMENT if rule.each is not None and (page := rule.each.most()):
            return _pages(least // page), _pages(-(-most // page))
        case _:
            return None


def _sound(duration_s: float) -> AudioFacts:
    return AudioFacts(duration_s=duration_s, duration_high_s=duration_s, duration_source=FactSource.ASSUMED)


def _film(duration_s: float, *, heard: bool) -> VideoFacts:
    return VideoFacts(
        width_px=16,
        height_px=9,
        duration_s=duration_s,
        duration_high_s=duration_s,
        duration_source=FactSource.ASSUMED,
        audio_tracks=int(heard),
        audio_duration_s=duration_s if heard else None,
    )


def _pages(pages: int) -> DocumentFacts:
    return DocumentFacts(pages=pages, pages_high=pages, runs=(), pages_source=FactSource.ASSUMED)
