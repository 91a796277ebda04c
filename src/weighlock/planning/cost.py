"""Tokens × rates = USD. Pure arithmetic over a price list that `pricing.py` looked up and handed in.

Amounts are exact Decimals; rounding is for whoever prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from weighlock.media.tokens import Confidence
from weighlock.request import Backend, Modality

Counts = Mapping[Modality, int] | Mapping[str, int]
"""Tokens by modality."""
LONG_PROMPT_TOKENS = 200_000
"""Above this many prompt tokens (strictly), models with a long-context tier bill the *whole* request at it."""


class ServiceTier(StrEnum):
    """How fast an answer is wanted; the words of `service_tier`, and `batch`."""

    STANDARD = "standard"
    BATCH = "batch"
    FLEX = "flex"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """USD per 1,000,000 tokens. `None` is unknown, never free."""

    text: Decimal
    image: Decimal
    video: Decimal
    audio: Decimal
    document: Decimal
    cached: Decimal | None = None
    """Prompt tokens read from a cache; `None` where the model has no cached rate."""
    cached_audio: Decimal | None = None
    """Those of sound, where they have a rate of their own."""
    output: Decimal | None = None
    """Answer and thinking alike."""

    @classmethod
    def uniform(
        cls,
        rate: Decimal,
        *,
        audio: Decimal | None = None,
        cached: Decimal | None = None,
        output: Decimal | None = None,
    ) -> Rates:
        """One rate for everything sent, with an own one for sound where the model has it."""
        sound = rate if audio is None else audio
        return cls(text=rate, image=rate, video=rate, audio=sound, document=rate, cached=cached, output=output)

    def of(self, modality: Modality | str) -> Decimal:
        """The rate of one modality; the text rate for one we do not know, so that nothing is ever dropped."""
        match modality:
            case Modality.IMAGE:
                return self.image
            case Modality.VIDEO:
                return self.video
            case Modality.AUDIO:
                return self.audio
            case Modality.DOCUMENT:
                return self.document
            case _:
                return self.text

    def of_cached(self, modality: Modality | str) -> Decimal:
        """The rate of one modality read from a cache; the full one where no cached rate is known.

        What has no cached rate of its own saves as much as text does, so that the amount errs upwards.
        """
        full = self.of(modality)
        if self.cached is None:
            return full
        if modality == Modality.AUDIO and self.cached_audio is not None:
            return self.cached_audio
        return full - (self.text - self.cached)

    @property
    def cached_share(self) -> Decimal | None:
        """Of its full price, what a token read from a cache costs; `None` where that is not known."""
        return None if self.cached is None or not self.text else self.cached / self.text

    def scaled(self, factor: Decimal, *, cached: Decimal | None = None) -> Rates:
        """Every rate times `factor`; the cached ones times `cached` where that differs."""
        of_cached = factor if cached is None else cached
        return Rates(
            text=self.text * factor,
            image=self.image * factor,
            video=self.video * factor,
            audio=self.audio * factor,
            document=self.document * factor,
            cached=None if self.cached is None else self.cached * of_cached,
            cached_audio=None if self.cached_audio is None else self.cached_audio * of_cached,
            output=None if self.output is None else self.output * factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What an operator's own contract says a model costs. Final: neither discount nor regional uplift touches it."""

    base: Rates
    long: Rates | None = None
    """Above `LONG_PROMPT_TOKENS`; `None` where the contract knows no such tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What the operator agreed with the vendor."""

    discount: Decimal = Decimal(0)
    """Fraction off every list price, 0 ≤ discount < 1."""
    overrides: Mapping[str, Override] = field(default_factory=lambda: MappingProxyType({}))
    """By model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What one model costs on one backend on one day, and who says so.

    Tokens are given by modality *as sent*. Where the service folds a film's sound into its VIDEO bucket (Gemini 3 on
    the Developer API) the sound still pays the audio rate here: that is never the lower of the two.
    """

    model: str
    backend: Backend
    tier: ServiceTier
    base: Rates
    long: Rates | None = None
    """Rates of the whole request once the prompt exceeds `long_above`; `None` where the model has no such tier."""
    long_above: int = LONG_PROMPT_TOKENS
    uplift: Decimal = Decimal(1)
    """Factor of a regional endpoint; 1 on a global one and on the Developer API."""
    uplift_source: str | None = None
    discount: Decimal = Decimal(0)
    """Fraction taken off, 0 ≤ discount < 1."""
    source: str
    since: date | None = None
    """First day these rates hold; `None` where the source gives none."""
    checked_on: date | None = None
    confidence: Confidence
    notes: tuple[str, ...] = ()
    """What a reader of the amount should know: an assumed factor, a tier derived rather than listed."""

    def rates(self, prompt_tokens: int) -> Rates:
        """The rates a prompt of this many tokens, cached ones included, pays; uplift and discount not yet applied."""
        return self.long if self.long is not None and prompt_tokens > self.long_above else self.base

    def input_cost(
        self, tokens: Counts, *, prompt_tokens: int = 0, cached_tokens: int | Counts = 0, longest: int | None = None
    ) -> Decimal:
        """USD for a prompt, as the sum of `shares`.

        Raises:
            ValueError: a negative count, or more cached tokens than the prompt has.
        """
        shares = self.shares(tokens, prompt_tokens=prompt_tokens, cached_tokens=cached_tokens, longest=longest)
        return sum(shares.values(), Decimal(0))

    def shares(
        self, tokens: Counts, *, prompt_tokens: int = 0, cached_tokens: int | Counts = 0, longest: int | None = None
    ) -> dict[Modality | str, Decimal]:
        """USD for a prompt, by modality.

        `prompt_tokens` is the whole prompt; what `tokens` does not account for pays the text rate. `cached_tokens` are
        those of the prompt read from a cache; where no modality is told, they save against the text rate. `longest` is
        the longest prompt of several requests whose tokens these are together.

        Raises:
            ValueError: a negative count, or more cached tokens than the prompt has.
        """
        cached: Counts = {Modality.TEXT: cached_tokens} if isinstance(cached_tokens, int) else cached_tokens
        _refuse_negative(*tokens.values(), *cached.values(), prompt_tokens)
        listed = sum(tokens.values())
        whole = max(listed, prompt_tokens)
        if (read := sum(cached.values())) > whole:
            raise ValueError(f"{read} cached tokens in a prompt of {whole}")
        rates = self.rates(whole if longest is None else longest)
        amounts: dict[Modality | str, Decimal] = {one: rates.of(one) * count for one, count in tokens.items()}
        if whole > listed:
            amounts[Modality.TEXT] = amounts.get(Modality.TEXT, Decimal(0)) + rates.text * (whole - listed)
        for one, count in cached.items():
            saved = (rates.of(one) - rates.of_cached(one)) * count
            amounts[one] = amounts.get(one, Decimal(0)) - saved
        return {one: self._billed(amount) for one, amount in amounts.items()}

    def cost(
        self,
        tokens: Counts,
        *,
        output_tokens: int,
        prompt_tokens: int = 0,
        cached_tokens: int | Counts = 0,
        longest: int | None = None,
    ) -> Decimal | None:
        """USD for a prompt and its answer; `None` where the model's output rate is unknown and output is expected."""
        _refuse_negative(output_tokens)
        prompt = self.input_cost(tokens, prompt_tokens=prompt_tokens, cached_tokens=cached_tokens, longest=longest)
        if not output_tokens:
            return prompt
        whole = max(sum(tokens.values()), prompt_tokens) if longest is None else longest
        rate = self.rates(whole).output
        return None if rate is None else prompt + self._billed(rate * output_tokens)

    def _billed(self, per_million: Decimal) -> Decimal:
        return (per_million * self.uplift * (1 - self.discount)).scaleb(-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """No price is known, and why. Not the same as free."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceChange:
    """A dated change ahead, at list price of the standard tier."""

    model: str
    on: date
    before: Rates
    after: Rates
    source: str

    @property
    def message(self) -> str:
        """One line for a person, such as `gemini-x from 2027-01-01: input 0.75 → 1.50 USD per 1M tokens`."""
        before, after = self.before, self.after
        moves = [_move("input", before.text, after.text)]
        if before.audio != before.text or after.audio != after.text:
            moves.append(_move("audio", before.audio, after.audio))
        moves.append(_move("output", before.output, after.output))
        told = [move for move in moves if move] or [
            _move("cached", before.cached, after.cached) or "other rates change"
        ]
        return f"{self.model} from {self.on.isoformat()}: {', '.join(told)} USD per 1M tokens"


def _move(label: str, before: Decimal | None, after: Decimal | None) -> str:
    return "" if before == after else f"{label} {_usd(before)} → {_usd(after)}"


def _usd(rate: Decimal | None) -> str:
    """With as many decimals as it needs, and at least two."""
    if rate is None:
        return "unknown"
    exponent = rate.normalize().as_tuple().exponent
    return f"{rate:.{max(2, -exponent if isinstance(exponent, int) else 2)}f}"


def _refuse_negative(*counts: int) -> None:
    if min(counts) < 0:
        raise ValueError("token counts cannot be negative")
