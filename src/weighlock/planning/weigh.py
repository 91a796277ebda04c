"""From what a file is to what it would cost: facts × rules × prices, one medium at a time. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Self

from weighlock.errors import MimeMismatch, WeighlockError
from weighlock.media.facts import (
    Anomaly,
    AudioFacts,
    DocumentFacts,
    Facts,
    ImageFacts,
    TextFacts,
    TextSizes,
    VideoFacts,
)
from weighlock.media.tokens import TokenRange
from weighlock.mime import agrees, spelling
from weighlock.planning.cost import Prices, Unpriced
from weighlock.request import Carrier, Clip, Modality, Placement
from weighlock.rules import Controls, ModelRules, RequestLimits, estimate

_CONVERT_TO = {
    Modality.IMAGE: "image/png",
    Modality.AUDIO: "audio/mpeg",
    Modality.VIDEO: "video/mp4",
    Modality.DOCUMENT: "application/pdf",
    Modality.TEXT: "text/plain",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What is known of one medium before any model is asked about."""

    label: str
    size_bytes: int | None = None
    declared_mime: str | None = None
    mime: str | None = None
    modality: Modality | None = None
    facts: Facts | None = None
    """`None` exactly when `error` is set."""
    anomalies: tuple[Anomaly, ...] = ()
    asked: Controls | None = None
    """What the request itself asks of it; `None` where only the caller's controls count."""
    clip: Clip | None = None
    """What the caller wants sent of this very recording."""
    here: bool = True
    """Whether its bytes are here, to be worked on; False of a file at the service that we know."""
    probed: bool = False
    """Whether a codec was asked, in the confined worker."""
    error: WeighlockError | None = None

    @property
    def mislabelled(self) -> bool:
        """The label and the bytes are of different types."""
        return bool(self.declared_mime and self.mime and not agrees(self.declared_mime, self.mime))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A sum of token ranges."""

    low: int = 0
    likely: int = 0
    high: int = 0

    @classmethod
    def of(cls, ranges: Iterable[TokenRange | Tally]) -> Self:
        """The sum of ranges; zero for none."""
        low = likely = high = 0
        for one in ranges:
            low, likely, high = low + one.low, likely + one.likely, high + one.high
        return cls(low=low, likely=likely, high=high)

    def __add__(self, other: Tally | TokenRange) -> Tally:
        return Tally(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)

    def __sub__(self, other: Tally) -> Tally:
        return Tally(low=self.low - other.low, likely=self.likely - other.likely, high=self.high - other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One medium with its price on one model and backend."""

    examined: Examined
    controls: Controls
    tokens: tuple[TokenRange, ...] = ()
    """One range a modality as sent; empty when there is an error."""
    notes: tuple[str, ...] = ()
    send_as: str | None = None
    """The backend's own name for the type, to declare it as; `None` where it takes none such, or nothing is known."""
    refused: tuple[str, ...] = ()
    """Why the service will refuse it as it stands, whatever the budget says."""
    error: WeighlockError | None = None

    @property
    def total(self) -> Tally:
        return Tally.of(self.tokens)

    def of(self, modality: Modality) -> Tally:
        """The part's tokens of one modality as sent."""
        return Tally.of(tokens for tokens in self.tokens if tokens.modality is modality)


def weigh(examined: Examined, controls: Controls, rules: ModelRules, *, refuse_mislabelled: bool = False) -> Weighed:
    """What the medium costs under these rules. Never raises: what cannot be weighed comes back with its error."""
    if examined.error is not None or examined.facts is None:
        return Weighed(examined=examined, controls=controls, error=examined.error)
    if refuse_mislabelled and examined.mislabelled:
        error = MimeMismatch(
            f"labelled {examined.declared_mime}, the bytes are {examined.mime}; "
            "relabel it, or set mime_mismatch: correct",
            declared=examined.declared_mime,
            detected=examined.mime,
        )
        return Weighed(examined=examined, controls=controls, error=error)
    result = estimate(examined.facts, controls, rules)
    accepted = rules.accepted(controls.carrier, controls.placement)
    send_as = spelling(examined.mime, accepted) if accepted and examined.mime else None
    not_taken = _not_taken(examined, controls, rules) if accepted is not None and send_as is None else ()
    return Weighed(
        examined=examined,
        controls=controls,
        tokens=result.tokens,
        notes=result.notes,
        send_as=send_as,
        refused=(*not_taken, *result.refused, *_too_much(examined, controls, rules)),
    )


def reweigh(part: Weighed, controls: Controls, facts: Facts, rules: ModelRules) -> Weighed:
    """The same medium under other controls or cut shorter, for asking what that would save."""
    return weigh(replace(part.examined, facts=facts), controls, rules)


def explain(part: Weighed, modality: Modality | None, rules: ModelRules) -> str:
    """How the likely tokens come about: `240 s × 1 fps × 66`. `modality` picks the sound of a film."""
    facts, controls = part.examined.facts, part.controls
    match facts:
        case VideoFacts() if modality is Modality.AUDIO:
            heard_s = controls.span_s(facts.audio_duration_s or facts.duration_s)
            return f"{_seconds(heard_s)} of sound × {rules.video(controls).sound.tokens_per_s}"
        case VideoFacts():
            rule = rules.video(controls)
            _, per_frame, _ = rule.frame.count(facts.width_px, facts.height_px)
            fps = controls.fps or rule.default_fps
            return f"{_seconds(controls.span_s(facts.duration_s))} × {fps:g} fps × {per_frame}"
        case AudioFacts():
            return f"{_seconds(controls.span_s(facts.duration_s))} × {rules.audio(controls).tokens_per_s}"
        case DocumentFacts(pages=pages, runs=runs):
            return f"{pages:,} pages × {part.total.likely // pages:,}" if len(runs) == 1 else f"{pages:,} pages"
        case ImageFacts(width_px=width, height_px=height):
            return f"{width}×{height} px"
        case TextFacts(chars=chars) | TextSizes(content_chars=chars):
            return f"{chars:,} characters"
        case None:
            return "as the service counts it"


def _seconds(duration_s: float) -> str:
    return f"{duration_s:,.6g} s"


def by_modality(parts: Iterable[Weighed]) -> dict[Modality, Tally]:
    """Tokens of all parts by modality as sent, in the order of `Modality`; what does not occur is left out."""
    sums: dict[Modality, Tally] = {}
    for part in parts:
        for tokens in part.tokens:
            sums[tokens.modality] = sums.get(tokens.modality, Tally()) + tokens
    return sums if len(sums) < 2 else {modality: sums[modality] for modality in Modality if modality in sums}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRange:
    """USD for a request, before any output unless output tokens were given."""

    low: Decimal
    likely: Decimal
    high: Decimal

    def __add__(self, other: CostRange) -> CostRange:
        return CostRange(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)

    def __sub__(self, other: CostRange) -> CostRange:
        return CostRange(low=self.low - other.low, likely=self.likely - other.likely, high=self.high - other.high)


def cost_of(
    tokens: Mapping[Modality, Tally],
    prices: Prices | Unpriced,
    *,
    output_tokens: int = 0,
    cached: Mapping[Modality, Tally] = MappingProxyType({}),
) -> CostRange | None:
    """What the tokens cost, those of them that are `cached` at their cached rate; `None` where no price is known."""
    if isinstance(prices, Unpriced):
        return None
    # A request of pictures is exact, and its bounds are one.
    exact = all(tally.low == tally.high for tally in (*tokens.values(), *cached.values()))
    bounds = [
        prices.cost(
            {kind: getattr(tally, bound) for kind, tally in tokens.items()},
            output_tokens=output_tokens,
            cached_tokens={kind: getattr(tally, bound) for kind, tally in cached.items()},
        )
        for bound in (("likely",) if exact else ("low", "likely", "high"))
    ]
    low, likely, high = bounds * 3 if exact else bounds
    if low is None or likely is None or high is None:
        return None
    return CostRange(low=low, likely=likely, high=high)


def _not_taken(examined: Examined, controls: Controls, rules: ModelRules) -> tuple[str, ...]:
    if examined.modality is None or examined.modality is Modality.TEXT:  # text of any kind can go as a text part
        return ()
    target, accepted = _CONVERT_TO[examined.modality], rules.accepted(controls.carrier, controls.placement)
    where = " in a tool result" if controls.carrier is Carrier.TOOL_RESULT else ""
    remedy = f"convert it to {target}" if spelling(target, accepted or ()) else "send it in a user turn"
    return (f"{rules.model} takes no {examined.mime}{where}; {remedy}",)


def _too_much(examined: Examined, controls: Controls, rules: ModelRules) -> Iterator[str]:
    """The service's own bounds on one medium."""
    size, limits, facts = examined.size_bytes or 0, rules.limits, examined.facts
    match facts:
        case DocumentFacts(pages=pages):
            yield from _over("a PDF of", size, limits.pdf_bytes, "bytes", "split it")
            yield from _over("a PDF of", pages, limits.pages_per_file, "pages", "split it")
        case ImageFacts() if controls.placement is Placement.INLINE:
            yield from _over("an image of", size, limits.inline_image_bytes, "bytes inline", "name it by gs://")
        case TextFacts():
            yield from _over("a text of", size, limits.text_bytes, "bytes", "split it")
        case _:
            pass
    if controls.placement is Placement.FILES:
        yield from _over("a file of", size, limits.file_bytes, "bytes", "clip or split it")
    elif controls.placement is Placement.URI:
        yield from _over("a file of", size, limits.url_bytes, "bytes by URL", "upload it")


def _over(what: str, size: int, limit: int | None, unit: str, remedy: str) -> Iterator[str]:
    if limit is not None and size > limit:
        yield f"{what} {size:,} {unit}; the service takes {limit:,}: {remedy}"


def refused_together(parts: Sequence[Weighed], limits: RequestLimits) -> tuple[str, ...]:
    """Why the service will refuse the request as a whole, though it would take each part and all their bytes."""
    counted: dict[Modality | None, int] = defaultdict(int)
    heard_s = 0
    for part in parts:
        examined = part.examined
        counted[examined.modality] += 1
        if isinstance(examined.facts, AudioFacts):
            heard_s += int(part.controls.span_s(examined.facts.duration_s))
    total = Tally.of(part.total for part in parts).likely
    return (
        *_over("a prompt of", total, limits.context_tokens, "tokens", "send less"),
        *_over("a request with", counted[Modality.IMAGE], limits.images, "images", "send fewer"),
        *_over("a request with", counted[Modality.VIDEO], limits.videos, "videos", "send fewer"),
        *_over("a request with", counted[Modality.AUDIO], limits.audio_files, "audio files", "send fewer"),
        *_over("a request with", heard_s, limits.audio_s, "seconds of sound", "clip it"),
    )


def base64_size(size_bytes: int) -> int:
    """What so many bytes take in a request."""
    return -(-size_bytes // 3) * 4
