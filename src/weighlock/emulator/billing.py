"""What a request is billed: `usageMetadata` by Google's own buckets, and what of it came from the cache."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from weighlock.emulator.behaviours import figure, reproduces
from weighlock.emulator.clock import Clock
from weighlock.emulator.weighing import Intake
from weighlock.media.facts import VideoFacts
from weighlock.planning.weigh import Weighed
from weighlock.request import Backend, Json, MediaPart, Modality, Part, Request, ToolResultPart

_REMEMBERED = 20_000
"""Prefixes of all projects."""
Buckets = Mapping[Modality, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Prompt tokens of one request."""

    prompt: Buckets
    cached: Buckets

    @property
    def total(self) -> int:
        return sum(self.prompt.values())

    @reproduces("usage-by-modality", "usage-total", "cached-in-usage")
    def usage(self, *, answer: int, thoughts: int, backend: Backend) -> Json:
        """`usageMetadata` of an answer of so many tokens, as far as it has come."""
        usage: dict[str, Json] = {
            "promptTokenCount": self.total,
            "candidatesTokenCount": answer,
            "totalTokenCount": self.total + answer + thoughts,
            "promptTokensDetails": details(self.prompt),
        }
        if thoughts:
            usage["thoughtsTokenCount"] = thoughts
        if self.cached:
            usage["cachedContentTokenCount"] = sum(self.cached.values())
            usage["cacheTokensDetails"] = details(self.cached)
        if backend is Backend.VERTEX:
            usage["trafficType"] = "ON_DEMAND"
        return usage


def details(buckets: Buckets) -> list[Json]:
    """`promptTokensDetails`: what is zero is left out."""
    return [{"modality": modality.value, "tokenCount": count} for modality, count in buckets.items() if count]


@reproduces("billed-by-the-rules", "sound-folds-per-backend", "pdf-billed-as-image", "silent-film-billed-sound")
def billed(parts: Iterable[Weighed]) -> dict[Modality, int]:
    """Tokens by the bucket Google files them under."""
    buckets: dict[Modality, int] = {}
    for part in parts:
        silent = isinstance(part.examined.facts, VideoFacts) and not part.examined.facts.audio_tracks
        for tokens in part.tokens:
            # Of a film without sound the rules give a bound only where the service was seen to bill some all the same.
            count = tokens.high if silent and tokens.modality is Modality.AUDIO else tokens.likely
            buckets[tokens.billed_as] = buckets.get(tokens.billed_as, 0) + count
    return {modality: buckets[modality] for modality in Modality if buckets.get(modality)}


class PromptCache:
    """Implicit caching: the longest prefix seen lately, part by part. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.enabled = True
        self._seen: OrderedDict[bytes, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def bill(self, intake: Intake, project: str) -> Bill:
        """What the request costs; its prefixes are remembered for the next one."""
        prompt = billed([intake.text, *map(intake.weighed, intake.media)])
        prefixes = list(_prefixes(intake, project)) if self.enabled else []
        known = self._longest_known(prefixes)
        cached = {} if known is None else _billed_up_to(intake, known)
        if sum(cached.values()) < figure("implicit-cache", "least_tokens"):
            cached = {}
        return Bill(prompt=prompt, cached={kind: min(count, prompt.get(kind, 0)) for kind, count in cached.items()})

    def clear(self) -> None:
        """Nothing is cached."""
        with self._lock:
            self._seen.clear()

    @reproduces("implicit-cache")
    def _longest_known(self, prefixes: list[tuple[tuple[int, int], bytes]]) -> tuple[int, int] | None:
        now, longest = self.clock.now(), None
        expires_at = now + timedelta(seconds=figure("implicit-cache", "seconds"))
        with self._lock:
            for end, digest in prefixes:
                seen = self._seen.get(digest)
                if seen is not None and seen > now:
                    longest = end
                self._seen[digest] = expires_at
                self._seen.move_to_end(digest)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return longest


def _prefixes(intake: Intake, project: str) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Turn and part every prefix ends with, and its digest; never the whole request."""
    request = intake.request
    digests = {sent.place: sent.digest for sent in intake.media}
    chain = hashlib.sha256(f"{project} {intake.rules.model} {intake.rules.backend}".encode())
    head = [request.carried.get("tools"), [repr(part) for part in getattr(request.system_instruction, "parts", ())]]
    chain.update(json.dumps(head, sort_keys=True, default=repr).encode())
    last = (len(request.turns) - 1, len(request.turns[-1].parts) - 1)
    for number, turn in enumerate(request.turns):
        for index, part in enumerate(turn.parts):
            if (number, index) == last:
                return
            media = [digest for place, digest in digests.items() if place[:2] == (number, index)]
            chain.update(f"{turn.role}\0{_said(part)}\0{media}\0".encode("utf-8", "surrogatepass"))
            yield (number, index), chain.digest()


def _said(part: Part) -> str:
    """What stands in a part besides bytes."""
    match part:
        case MediaPart():
            return repr(part.carried)
        case ToolResultPart():
            return repr((part.name, part.response, part.carried))
        case _:
            return repr(part)


def _billed_up_to(intake: Intake, end: tuple[int, int]) -> Buckets:
    """What the request's beginning costs, up to a part and with it."""
    number, index = end
    request = intake.request
    turns = [*request.turns[:number], replace(request.turns[number], parts=request.turns[number].parts[: index + 1])]
    beginning = Intake(
        request=Request(turns=tuple(turns), system_instruction=request.system_instruction, carried=request.carried),
        rules=intake.rules,
        media=tuple(sent for sent in intake.media if sent.place.turn is None or sent.place[:2] <= end),
    )
    return billed([beginning.text, *map(beginning.weighed, beginning.media)])
