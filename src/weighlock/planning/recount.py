"""What a count tells: of the text, and of media nobody here can see. It is never taken for the bill. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from weighlock import mime
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
from weighlock.planning.counting import Count, is_unseen
from weighlock.planning.identify import modality_of
from weighlock.planning.weigh import Tally, Weighed
from weighlock.request import Carrier, MediaResolution, Modality, Placement
from weighlock.rules import Controls, ModelRules, estimate


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
        over = rules.counts[Modality.TEXT].bill_over if count.total else 0  # nothing is billed for nothing
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
    count: Count,
    seen: Iterable[Facts],
    text: Tally,
    modality: Modality,
    controls: Controls,
    rules: ModelRules,
    *,
    media: int = 1,
) -> tuple[TokenRange, ...] | None:
    """What `media` of one modality that nobody here can see will be billed in all, from a count of the whole request.

    What the seen media and the text count is taken off; the rest says how long the others are, and the rules what such
    a length is billed. A count may or may not read a clip, pages or a low resolution: neither is relied on, but that a
    clip is no longer than it is. `None` where counts of that kind are not measured for the model.
    """
    rule, known = rules.counts.get(modality), counted(seen, rules.counts)
    if rule is None or known is None:
        return None
    least, most = _left(count, known, text, rules)
    sizes = _sizes(rule, least, most, controls, media)
    if sizes is None:
        return None
    plain = _plain(controls)
    shortest, longest = (estimate(facts, plain, rules).tokens for facts in sizes)
    lows = {tokens.modality: tokens.low for tokens in shortest} if plain == controls else {}
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
) -> tuple[Weighed, ...]:
    """The parts with counts taken for what they are good for: the text, and media nobody here can see.

    Of several unseen media the sum is told: it stands with the first of them. Where nothing is known of the model's
    counts, the whole is made as dear as the count says.
    """
    told = [_text(part, text, rules) for part in parts]
    if whole is None:
        return tuple(told)
    unseen = [at for at, part in enumerate(told) if is_unseen(part)]
    ranges = _unseen(whole, told, [told[at] for at in unseen], rules) if unseen else None
    if ranges is not None:
        first, *others = unseen
        told[first] = replace(told[first], tokens=ranges, error=None, notes=_as_sum(len(others)))
        for at in others:
            told[at] = replace(told[at], error=None, notes=(f"counted together with {told[first].examined.label}",))
    return tuple(told if unseen or rules.counts else _widened(told, whole.total))


def _as_sum(others: int) -> tuple[str, ...]:
    return ("as the service counts it", *((f"{others} more like it counted in",) if others else ()))


def _text(part: Weighed, text: Count | None, rules: ModelRules) -> Weighed:
    sizes = part.examined.facts
    if text is None or not isinstance(sizes, TextSizes) or not part.tokens:
        return part
    signatures = math.ceil(sizes.thought_signature_chars * rules.text.ratios.per_signature_char_high)
    return replace(part, tokens=(text_counted(text, part.tokens[0], rules, unmeasured=signatures),))


def _unseen(
    whole: Count, parts: Sequence[Weighed], unseen: Sequence[Weighed], rules: ModelRules
) -> tuple[TokenRange, ...] | None:
    """What the unseen media will be billed in all; `None` where they are of several kinds, or asked for differently."""
    kinds = {modality_of(mime.canonical(part.examined.declared_mime)) for part in unseen}
    asked = {replace(part.controls, carrier=Carrier.USER, placement=Placement.URI) for part in unseen}
    modality = kinds.pop() if len(kinds) == 1 else None
    if modality is None or len(asked) > 1:
        return None
    controls = asked.pop()
    seen = [facts for part in parts if (facts := part.examined.facts) and not isinstance(facts, TextFacts | TextSizes)]
    words = Tally.of(part.of(Modality.TEXT) for part in parts)
    if modality is Modality.IMAGE:
        return _pictures(whole, seen, words, controls, rules)
    return media_counted(whole, seen, words, modality, controls, rules, media=len(unseen))


def _pictures(
    whole: Count, seen: Iterable[Facts], words: Tally, controls: Controls, rules: ModelRules
) -> tuple[TokenRange, ...] | None:
    """What is left of the count for pictures; `None` where they are not billed by what they are counted by."""
    rule, known, billed = rules.counts.get(Modality.IMAGE), counted(seen, rules.counts), rules.image(controls)
    if rule is None or known is None or rule.each != billed.area.likely:
        return None
    least, most = _left(whole, known, words, rules)
    kind = Modality.IMAGE
    return (
        TokenRange(
            low=least,
            likely=most,
            high=most,
            modality=kind,
            billed_as=kind,
            rule_id=f"{rules.generation}/counts",
            confidence=Confidence.ASSUMED,
        ),
    )


def _left(whole: Count, known: int, words: Tally, rules: ModelRules) -> tuple[int, int]:
    """What a count leaves, at least and at most, once the text is taken off and what is known of the others."""
    said = whole.by_modality.get(Modality.TEXT)
    texts = (words.low, words.high) if said is None else (said, said)
    least, most = (max(0, whole.total - known - taken) for taken in reversed(texts))
    beside = rules.counts[Modality.TEXT].plus if Modality.TEXT in rules.counts else 0  # of media alone, so perhaps not
    return least, most + beside


def _widened(parts: list[Weighed], total: int) -> list[Weighed]:
    """As dear as a count of the whole, where that is more than the rules make of it: it goes to the heaviest part."""
    more = total - Tally.of(part.total for part in parts).high
    if more <= 0 or not any(part.tokens for part in parts):
        return parts
    at = max(range(len(parts)), key=lambda index: parts[index].total.high)
    first, *rest = parts[at].tokens
    dearer = replace(first, likely=first.high + more, high=first.high + more, confidence=Confidence.ASSUMED)
    return [*parts[:at], replace(parts[at], tokens=(dearer, *rest)), *parts[at + 1 :]]


def _plain(controls: Controls) -> Controls:
    """Without what a count may or may not read, where that would lower the bill."""
    low = MediaResolution.LOW
    return replace(
        controls,
        media_resolution=MediaResolution.UNSPECIFIED if controls.media_resolution is low else controls.media_resolution,
        part_resolution=None if controls.part_resolution is low else controls.part_resolution,
        start_offset_s=None,
        end_offset_s=None,
        first_page=None,
        last_page=None,
    )


def _sizes(rule: CountRule, least: int, most: int, controls: Controls, media: int) -> tuple[Facts, Facts] | None:
    """The smallest and the largest medium that counts so much. The smaller film is silent: a count hears it anyway."""
    match rule.modality:
        case Modality.AUDIO | Modality.VIDEO:
            short, long = seconds(least, rule), seconds(most, rule)
            if short is None or long is None:
                return None
            rounded_s = (media - 1) * max(1.0, 1 / (controls.fps or 1.0))  # each is, and not their sum
            short_s = max(0.0, short[0] - rounded_s)
            long_s = min(long[1], media * controls.span_s(math.inf)) + rounded_s
            if rule.modality is Modality.AUDIO:
                return _sound(short_s), _sound(long_s)
            return _film(short_s, heard=False), _film(long_s, heard=True)
        case Modality.DOCUMENT if rule.each is not None and (page := rule.each.most()):
            pages, last = -(-most // page), controls.last_page
            if last is not None:
                pages = min(pages, media * (last - (controls.first_page or 1) + 1))
            return _pages(least // page), _pages(pages)
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
