"""How each medium's bytes reach the service: inline, or by the Files API where they are too many. Pure.

What is past the threshold of its own type goes, then the largest until the rest is below that of the request. What an
earlier turn sent inline stays inline as long as the service takes it, and what went by reference stays by reference:
either change is another prefix, and what the prompt cache holds of it costs a tenth. A pin is about what the model
sees, which is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from weighlock.media.facts import ImageFacts, TextSizes
from weighlock.planning.weigh import Weighed, base64_size, weigh
from weighlock.request import Backend, Carrier, Modality, Placement
from weighlock.rules import ModelRules, RequestLimits

_MOST_NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineBelow:
    """Up to how many bytes media go inline, base64 counted. The service's own bound holds where it is lower."""

    developer: int = 15_000_000
    """Of a whole request to the Developer API, its text too."""
    vertex: int = 6_000_000
    """The same on Vertex, which has no Files API: past it the receipt says so."""
    pdf: int = 15_000_000
    """Of one PDF."""
    mime: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of one medium of a type (`audio/wav`), or of a kind (`video/*`), to the Developer API."""

    def of(self, backend: Backend) -> int:
        return self.developer if backend is Backend.DEVELOPER else self.vertex

    def alone(self, mime: str) -> tuple[str, int] | None:
        """The threshold of one medium, under its name; of several the one of the type itself."""
        if mime in self.mime:
            return f"mime.{mime}", self.mime[mime]
        if mime == "application/pdf":
            return "pdf", self.pdf
        kind = f"{mime.partition('/')[0]}/*"
        return (f"mime.{kind}", self.mime[kind]) if kind in self.mime else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Why one medium goes by the Files API."""

    reason: str
    breaks_prefix: bool = False
    """Whether an earlier turn sent it inline, so that the prompt cache no longer matches from there on."""


Placements = Mapping[int, Placed]
"""What goes by the Files API, by part; all else goes as it came."""
INLINE_ALL: Placements = MappingProxyType({})


def place(
    parts: Sequence[Weighed],
    rules: ModelRules,
    below: InlineBelow,
    *,
    kept: Placements = INLINE_ALL,
    sent: int = 0,
) -> Placements:
    """What of a request goes by the Files API, and why. Nothing on Vertex, which has none.

    `kept` is what went there in an earlier turn. The first `sent` parts were in one: of those only what the service
    would refuse inline goes now. A tool's result and a model's turn hold no reference, so their media stay inline.
    """
    placed = {
        at: replace(one, breaks_prefix=False) if one.breaks_prefix else one
        for at, one in kept.items()
        if _is_medium(parts[at])
    }
    if rules.backend is not Backend.DEVELOPER:
        return placed
    limits = rules.limits
    for at, part in enumerate(parts):
        reason = _alone(part, limits, below, was_sent=at < sent)
        if reason and at not in placed and _may_go(part, rules):
            placed[at] = Placed(reason=reason, breaks_prefix=at < sent)
    left = inline_bytes(parts) - sum(_inline(parts[at]) for at in placed)
    for bound, first in (_lower(below.developer, limits), sent), (limits.inline_request_bytes, 0):
        if bound is None or left <= bound:
            continue
        for at in sorted(range(first, len(parts)), key=lambda at: (-_inline(parts[at]), at)):
            if left > bound and at not in placed and _may_go(parts[at], rules):
                words = f"{_told(_inline(parts[at]))} in base64, {_over(bound, below, limits)}"
                placed[at] = Placed(reason=words, breaks_prefix=at < sent)
                left -= _inline(parts[at])
    return dict(sorted(placed.items()))


def put(parts: Sequence[Weighed], placed: Placements, rules: ModelRules) -> list[Weighed]:
    """The parts as they weigh once placed: it can change what a film costs."""
    return [by_files(part, rules) if at in placed else part for at, part in enumerate(parts)]


def by_files(part: Weighed, rules: ModelRules) -> Weighed:
    """A part as it weighs once uploaded."""
    return weigh(part.examined, replace(part.controls, placement=Placement.FILES), rules)


def stays_inline(parts: Sequence[Weighed], rules: ModelRules, below: InlineBelow) -> str | None:
    """Why more goes inline than the threshold says, in one sentence; `None` where it does not."""
    total, bound = inline_bytes(parts), below.of(rules.backend)
    if total <= bound or not any(map(_inline, filter(_is_medium, parts))):
        return None
    if rules.backend is Backend.VERTEX:
        why = "Vertex has no Files API; name media by gs:// to send less"
    elif any(_may_go(part, rules) for part in parts):
        why = "earlier turns sent it so, and the prompt cache holds it so"
    else:
        why = "text, tool results and a model's turns hold no reference to a file"
    return f"{_told(total)} go inline, over uploads.inline_below.{rules.backend} {_size(bound)}: {why}"


def inline_bytes(parts: Iterable[Weighed]) -> int:
    """What the request takes, base64 and text counted, without media that go by reference."""
    return sum(map(_inline, parts))


def refused_inline(parts: Sequence[Weighed], rules: ModelRules) -> tuple[str, ...]:
    """Why the service will refuse the request for what goes inline together, and what to upload instead."""
    limit = rules.limits.inline_request_bytes
    if limit is None or (total := inline_bytes(parts)) <= limit:
        return ()
    words = f"a request with {total:,} bytes inline, base64 counted; the service takes {limit:,}"
    if rules.backend is not Backend.DEVELOPER:
        return (f"{words}: name media by gs://",)
    cure = place(parts, rules, InlineBelow(developer=limit, pdf=limit))
    if inline_bytes(put(parts, cure, rules)) > limit:
        return (f"{words}: send less, or upload by the Files API what stands in a user turn",)
    return (f"{words}: upload by the Files API: {_names(parts[at] for at in cure)}",)


def out_of_reach(below: InlineBelow, rules: ModelRules) -> Iterator[tuple[str, int, int]]:
    """Thresholds above what the service takes inline: name, bytes, and the bound that holds in their place."""
    bound = rules.limits.inline_request_bytes
    if rules.backend is not Backend.DEVELOPER:
        return
    types = {f"mime.{name}": size for name, size in below.mime.items()}
    for name, size in {"developer": below.developer, "pdf": below.pdf, **types}.items():
        if bound is not None and size > bound:
            yield name, size, bound


# ---- which may go, and which have to


def _is_medium(part: Weighed) -> bool:
    return part.error is None and part.examined.modality not in (None, Modality.TEXT)


def _may_go(part: Weighed, rules: ModelRules) -> bool:
    """Whether the service reads it by reference where it stands, and refuses it for nothing it takes inline."""
    here = part.controls.placement is Placement.INLINE and part.controls.carrier is Carrier.USER
    if not here or not _is_medium(part) or rules.backend is not Backend.DEVELOPER:
        return False
    return {*by_files(part, rules).refused} <= {*part.refused}


def _alone(part: Weighed, limits: RequestLimits, below: InlineBelow, *, was_sent: bool) -> str | None:
    """Why a medium does not go inline, whatever else does."""
    size, limit, facts = part.examined.size_bytes or 0, limits.inline_image_bytes, part.examined.facts
    if isinstance(facts, ImageFacts) and limit is not None and size > limit:
        return f"{_told(size)}; the service takes {_told(limit)} of a picture inline"
    own = None if was_sent else below.alone(part.examined.mime or "")
    if own is not None and _inline(part) > own[1]:
        return f"{_told(_inline(part))} in base64, over inline_below.{own[0]} {_size(own[1])}"
    return None


def _inline(part: Weighed) -> int:
    """Bytes a part takes in the request itself."""
    examined = part.examined
    if examined.modality is Modality.TEXT:
        return examined.size_bytes or _chars(examined.facts)
    return base64_size(examined.size_bytes or 0) if part.controls.placement is Placement.INLINE else 0


def _chars(facts: object) -> int:
    # Characters for bytes: what other scripts need beyond that matters near a bound only.
    if not isinstance(facts, TextSizes):
        return 0
    return facts.content_chars + facts.system_chars + facts.tools_json_chars + facts.thought_signature_chars


# ---- in words


def _lower(threshold: int, limits: RequestLimits) -> int:
    limit = limits.inline_request_bytes
    return threshold if limit is None else min(threshold, limit)


def _over(bound: int, below: InlineBelow, limits: RequestLimits) -> str:
    if bound == limits.inline_request_bytes:
        return f"over the {_size(bound)} of a request the service takes inline"
    return f"over inline_below {_size(below.developer)}"


def _told(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size:,} bytes"


def _size(size: int) -> str:
    """As in the settings."""
    return f"{size / 1e6:g}MB" if size >= 100_000 else f"{size:,} bytes"


def _names(parts: Iterable[Weighed]) -> str:
    labels = [part.examined.label for part in parts]
    more = f" and {len(labels) - _MOST_NAMES} more" if len(labels) > _MOST_NAMES else ""
    return f"{', '.join(labels[:_MOST_NAMES])}{more}"
