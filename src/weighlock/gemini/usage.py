"""`usageMetadata` → what was billed, by modality as sent, and what is odd about it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from weighlock.media.tokens import TokenRange
from weighlock.planning.weigh import Tally
from weighlock.request import Modality

_MOST = 10**12
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COUNTS = ("TokenCount", "TokensDetails")
_NAMED = {modality.value: modality for modality in Modality}
_UNSPECIFIED = "MODALITY_UNSPECIFIED"
_NONE: Mapping[Modality, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in a bill that contradicts itself or what was sent. `code` is stable; `detail` is one line."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The bill of one call, all its hops together."""

    prompt: int | None
    """Tokens of the prompt, cached ones included; `None` where the service did not say."""
    by_modality: Mapping[Modality, int] = field(default_factory=lambda: _NONE)
    """As sent: a film's sound is AUDIO and a PDF page DOCUMENT, whichever bucket Google files them in."""
    unattributed: int = 0
    """Of `prompt`, under no modality."""
    cached: int = 0
    """Of `prompt`, read from a cache."""
    cached_by_modality: Mapping[Modality, int] = field(default_factory=lambda: _NONE)
    tool_use: int = 0
    """Prompt tokens beside `prompt` that the service's own tools read, such as agentic video."""
    answer: int = 0
    thoughts: int = 0
    hops: int = 1
    """Requests it took: each continuation sends, and pays, the whole prompt again."""
    longest: int | None = None
    """Of several requests, the most one of their prompts can have held, which decides what each token costs; `None` of
    one."""
    buckets: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """As Google files them."""
    findings: tuple[Finding, ...] = ()

    @property
    def uncached_by_modality(self) -> dict[Modality, int]:
        """What pays the full rate."""
        cached = self.cached_by_modality
        return {modality: max(0, tokens - cached.get(modality, 0)) for modality, tokens in self.by_modality.items()}

    @property
    def output(self) -> int:
        """Answer and thinking, which cost the same."""
        return self.answer + self.thoughts


def last_usage(chunks: Iterable[Any]) -> dict[str, Any]:
    """The usage of one streamed answer: its counts are cumulative, so of each field the last word counts.

    Chunks are `usageMetadata` objects, or whole chunks that hold one. Broken off early, it holds what had been said.
    """
    usage: dict[str, Any] = {}
    for chunk in chunks:
        said = _get(chunk, "usageMetadata") if isinstance(chunk, Mapping) else None
        found = said if isinstance(said, Mapping) else chunk
        if isinstance(found, Mapping):
            named = ((_camel(str(key)), value) for key, value in found.items() if value is not None)
            usage.update((key, value) for key, value in named if key.endswith(_COUNTS))
    return usage


def billed(
    hops: Sequence[Mapping[str, Any]],
    sent: Iterable[TokenRange],
    *,
    unasked: Iterable[TokenRange] = (),
    context_tokens: int | None = None,
) -> Usage:
    """What a call cost.

    Args:
        hops: The `usageMetadata` of each request it took, in either spelling. The SDK sums its continuations into one,
            which is told by `initialPromptTokenCount`.
        sent: What every medium and text of the request was expected to cost.
        unasked: What they would cost had no resolution been asked for, where one was.
        context_tokens: The most a prompt of the model holds.
    """
    sent = tuple(sent)
    findings: list[Finding] = []
    totals = [_count(_get(hop, "promptTokenCount")) for hop in hops]
    taken = len(hops) if len(hops) != 1 else _summed_hops(hops[0], totals[0])
    buckets = _buckets(hops, "promptTokensDetails")
    listed = sum(buckets.values())
    prompt = _prompt(totals, listed, findings)
    if context_tokens is not None and prompt is not None and prompt > context_tokens * max(1, taken):
        detail = f"{prompt:,} prompt tokens in {max(1, taken)} requests; the model holds {context_tokens:,}"
        findings.append(Finding(code="beyond_context", detail=detail))
    by_modality, nameless = _as_sent(buckets, sent)
    unattributed = max(0, (prompt or 0) - listed) + nameless
    if unattributed:
        findings.append(Finding(code="unattributed", detail=f"{unattributed:,} prompt tokens are under no modality"))
    cached, cached_by = _cached(hops, buckets, by_modality, prompt or 0, sent, findings)
    findings += _against_what_was_sent(buckets, sent, tuple(unasked), taken)
    return Usage(
        prompt=prompt,
        by_modality=MappingProxyType(by_modality),
        unattributed=unattributed,
        cached=cached,
        cached_by_modality=MappingProxyType(cached_by),
        tool_use=_sum(hops, "toolUsePromptTokenCount"),
        answer=_sum(hops, "candidatesTokenCount"),
        thoughts=_sum(hops, "thoughtsTokenCount"),
        hops=max(1, taken),
        longest=_longest(hops, totals, taken),
        buckets=MappingProxyType(dict(buckets)),
        findings=tuple(findings),
    )


def _prompt(totals: Sequence[int | None], listed: int, findings: list[Finding]) -> int | None:
    said = [total for total in totals if total is not None]
    if len(said) < len(totals) or not totals:
        findings.append(Finding(code="no_prompt_count", detail="the service did not say what the prompt cost"))
    if not said:
        return listed or None
    total = sum(said)
    if listed > total:
        detail = f"the modalities add up to {listed:,}, the prompt to {total:,}; the higher one is taken"
        findings.append(Finding(code="modalities_exceed_total", detail=detail))
    return max(total, listed)  # high on purpose: an undercount costs money


def _summed_hops(usage: Mapping[str, Any], total: int | None) -> int:
    first = _count(_get(usage, "initialPromptTokenCount"))
    return max(1, round(total / first)) if total and first else 1


def _longest(hops: Sequence[Mapping[str, Any]], totals: Sequence[int | None], taken: int) -> int | None:
    """Of a sum only the first is known: were there two, the second had all the rest, and none has more."""
    said = [total for total in totals if total is not None]
    if taken < 2 or len(said) < len(totals):
        return None
    if len(hops) > 1:
        return max(said)
    first = _count(_get(hops[0], "initialPromptTokenCount")) or 0
    return max(first, said[0] - first)


# ---- Google's buckets and what was sent


def _as_sent(buckets: Mapping[str, int], sent: Sequence[TokenRange]) -> tuple[dict[Modality, int], int]:
    """Every bucket under what was sent into it, and what no known modality names."""
    found: Counter[Modality] = Counter()
    nameless = 0
    for name, tokens in buckets.items():
        bucket = _modality(name)
        if bucket is None:
            nameless += tokens
        else:
            found.update(_shared_out(tokens, _weights(bucket, sent)))
    ordered = found if len(found) < 2 else {modality: found[modality] for modality in Modality if modality in found}
    return dict(ordered), nameless


def _weights(bucket: Modality, sent: Sequence[TokenRange]) -> dict[Modality, int]:
    """What was sent into a bucket, by modality as sent; the bucket itself where nothing was."""
    weights: Counter[Modality] = Counter()
    for tokens in sent:
        if tokens.billed_as is bucket:
            weights[tokens.modality] += tokens.likely
    return {modality: weight for modality, weight in weights.items() if weight} or {bucket: 1}


def _shared_out(tokens: int, weights: Mapping[Modality, int]) -> dict[Modality, int]:
    """Whole tokens in proportion to the weights; they add up exactly."""
    whole, given, passed = sum(weights.values()), 0, 0
    shares = {}
    for modality, weight in weights.items():
        passed += weight
        shares[modality] = tokens * passed // whole - given
        given += shares[modality]
    return shares


def _cached(
    hops: Sequence[Mapping[str, Any]],
    buckets: Mapping[str, int],
    by_modality: Mapping[Modality, int],
    prompt: int,
    sent: Sequence[TokenRange],
    findings: list[Finding],
) -> tuple[int, dict[Modality, int]]:
    """Cached tokens in all and by modality, none of them more than was billed of it."""
    details = _buckets(hops, "cacheTokensDetails")
    said = max(_sum(hops, "cachedContentTokenCount"), sum(details.values()))
    kept, _ = _as_sent({name: min(tokens, buckets.get(name, 0)) for name, tokens in details.items()}, sent)
    if said > prompt or any(tokens > buckets.get(name, 0) for name, tokens in details.items()):
        detail = f"{said:,} cached tokens, more of some modality than the prompt has; taken as far as it goes"
        findings.append(Finding(code="cached_exceeds_prompt", detail=detail))
    taken = {modality: min(tokens, by_modality.get(modality, 0)) for modality, tokens in kept.items()}
    return min(said, prompt), {modality: tokens for modality, tokens in taken.items() if tokens}


def _against_what_was_sent(
    buckets: Mapping[str, int], sent: Sequence[TokenRange], unasked: Sequence[TokenRange], hops: int
) -> Iterator[Finding]:
    if not buckets:
        return
    for bucket in dict.fromkeys(tokens.billed_as for tokens in sent):
        tokens = buckets.get(bucket, 0)
        asked = _expected(sent, bucket, hops)
        silent = _expected((one for one in sent if one.modality is not Modality.AUDIO), bucket, hops)
        if asked.low > silent.low and tokens < asked.low and tokens <= silent.high:
            yield Finding(code="sound_not_billed", detail=f"sound was sent; {bucket} is billed {tokens:,}, as without")
        default = _expected(unasked, bucket, hops)
        if default.low <= tokens <= default.high and default.high and not asked.low <= tokens <= asked.high:
            detail = f"{bucket} is billed {tokens:,}, as if no resolution had been asked for"
            yield Finding(code="resolution_ignored", detail=detail)


def _expected(sent: Iterable[TokenRange], bucket: Modality, hops: int) -> Tally:
    one = Tally.of(tokens for tokens in sent if tokens.billed_as is bucket)
    return Tally(low=one.low * hops, likely=one.likely * hops, high=one.high * hops)


# ---- reading


def _buckets(hops: Sequence[Mapping[str, Any]], key: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for hop in hops:
        details = _get(hop, key)
        for detail in details if isinstance(details, list | tuple) else ():
            name = _get(detail, "modality") if isinstance(detail, Mapping) else None
            tokens = _count(_get(detail, "tokenCount")) if isinstance(detail, Mapping) else None
            if isinstance(name, str) and tokens:
                found[str(getattr(name, "value", name))[:60]] += tokens  # the SDK's names are an enum
    return found


def _modality(name: str) -> Modality | None:
    if name == _UNSPECIFIED:  # which stands for text, by the SDK's own words
        return Modality.TEXT
    return _NAMED.get(name)


def _sum(hops: Sequence[Mapping[str, Any]], key: str) -> int:
    return sum(_count(_get(hop, key)) or 0 for hop in hops)


def _count(value: object) -> int | None:
    """A count as JSON has it; proto-JSON may write it as text. Never negative."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return min(value, _MOST)


def _get(document: Mapping[str, Any], key: str) -> Any:
    """A field in the service's spelling, or in the SDK's."""
    found = document.get(key)
    return document.get(_snake(key)) if found is None else found


@lru_cache(maxsize=64)
def _snake(key: str) -> str:
    return _CAPITAL.sub("_", key).lower()


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
