"""A request ready to be sent, and its receipt: what was found, decided, done, held and, once it is settled, billed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from weighlock.budgets.hold import MICRO_USD, Amounts
from weighlock.fitted import Fitted
from weighlock.gemini.usage import Usage
from weighlock.holding import usd
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import CostRange, Tally
from weighlock.report import SCHEMA
from weighlock.request import Modality, Request
from weighlock.scales import Asked, Scales
from weighlock.sending import Files
from weighlock.settings import Mode
from weighlock.settling import Bill
from weighlock.uploads.references import Reference

if TYPE_CHECKING:
    from weighlock.budgets.reservation import Reservation
    from weighlock.converters.formats import Origin


class Outcome(StrEnum):
    """What became of a request."""

    ADMITTED = "admitted"
    SHAPED = "shaped"
    """Admitted lighter than it came."""
    WARNED = "warned"
    """Over a limit, and admitted: `on_exceed: warn`."""
    WOULD_SHAPE = "would_shape"
    """`mode: observe`, and otherwise shaped."""
    WOULD_REFUSE = "would_refuse"
    REFUSED = "refused"
    FAILED = "failed"
    """It could not be prepared, whatever the budget says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What the call cost."""

    usage: Usage
    spent: Amounts
    """As it was committed."""
    estimated: bool = False
    """Nobody said what it cost: what was held is taken for it."""
    underestimated: Amounts = field(default_factory=lambda: MappingProxyType({}))
    """By how much the bill is above what was held; its window carries it."""
    shares: Mapping[str, Decimal] = field(default_factory=lambda: MappingProxyType({}))
    """USD of each modality of the prompt."""

    @property
    def usd(self) -> str | None:
        return f"{usd(self.spent[MICRO_USD]):f}" if MICRO_USD in self.spent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Everything a person or a dashboard asks of one request."""

    id: str
    at: datetime
    outcome: Outcome
    fitted: Fitted
    """The request as it is sent."""
    wished: Fitted
    """As the endpoint's policy has it; the same as `fitted` but in `mode: observe`."""
    codes: tuple[str, ...] = ()
    """Why, in stable words: `tokens.video`, `window.day.cost_usd`, `unknown_model` …"""
    held: Amounts = field(default_factory=lambda: MappingProxyType({}))
    unverified: bool = False
    """Admitted though the budgets could not be asked: `state: {on_failure: admit}`."""
    warnings: tuple[str, ...] = ()
    uploads: Mapping[int, Reference] = field(default_factory=lambda: MappingProxyType({}))
    """What went by the Files API, by part."""
    digests: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """What media in memory are told by in the decision log, by part; nothing where there is none."""
    reuploads: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Files that had to be uploaded again for it, by cause: `expired`, `refused`."""
    stages_ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """How long each step took."""
    billed: Billed | None = None
    """Once it is settled."""
    earlier: Receipt | None = None
    """Of the pass before, where this one is an escalation."""

    def with_bill(self, bill: Bill, underestimated: Amounts) -> Receipt:
        """Once it is settled."""
        billed = Billed(
            usage=bill.usage,
            spent=bill.spent,
            estimated=bill.estimated,
            underestimated=underestimated,
            shares=bill.shares,
        )
        return replace(self, billed=billed)

    def with_codes(self, *codes: str) -> Receipt:
        """And why it ended so."""
        return replace(self, codes=(*self.codes, *codes))

    def without_media(self) -> Receipt:
        """The same, without the request it was of: small enough to be kept for long."""
        lean = self.fitted.without_media()
        wished = lean if self.wished is self.fitted else self.wished.without_media()
        return replace(self, fitted=lean, wished=wished)

    @property
    def saved_tokens(self) -> int:
        """By the high estimates, of the request as it is sent."""
        return self.fitted.before.total.high - self.fitted.after.total.high

    @property
    def resent(self) -> tuple[int, Tally]:
        """How many media earlier turns sent already, and what they cost again."""
        sent = self.fitted.sent
        parts = self.fitted.after.parts[: sent.media] if sent is not None else ()
        return len(parts), Tally.of(part.total for part in parts)

    @property
    def resent_parts(self) -> tuple[tuple[str, Tally, CostRange | None], ...]:
        """Each of them: what it is called, its tokens, and what they cost again, cached or not."""
        count, after = self.resent[0], self.fitted.after
        costs = after.costs[:count] if count else ()
        return tuple((one.examined.label, one.total, cost) for one, cost in zip(after.parts, costs, strict=False))

    @property
    def drift(self) -> dict[Modality, int]:
        """Billed less likely, by modality as sent; empty before it is settled, or where nobody said what it cost."""
        if self.billed is None or self.billed.estimated:
            return {}
        told, billed = self.fitted.after.tokens, self.billed.usage.by_modality
        return {
            kind: billed.get(kind, 0) - told.get(kind, Tally()).likely
            for kind in Modality
            if kind in told or kind in billed
        }

    def as_dict(self) -> dict[str, Any]:
        """The receipt as JSON values, `schema` 1. USD are strings of decimals. No content, no address."""
        media, tokens = self.resent
        return {
            "schema": SCHEMA,
            "id": self.id,
            "at": self.at.isoformat(),
            "outcome": self.outcome.value,
            "codes": list(self.codes),
            "warnings": list(self.warnings),
            "request": self.fitted.as_dict(),
            "wished": None if self.wished is self.fitted else self.wished.as_dict(),
            "resent": {
                "media": media,
                "tokens": asdict(tokens),
                "parts": [
                    {"part": at, "tokens": asdict(each), "usd": None if cost is None else f"{cost.likely:f}"}
                    for at, (_, each, cost) in enumerate(self.resent_parts)
                ],
            },
            "held": _amounts(self.held),
            "unverified": self.unverified,
            "uploads": [
                {"part": at, "reused": one.reused, "expires_at": one.expires_at.isoformat()}
                for at, one in self.uploads.items()
            ],
            "stages_ms": {name: round(ms, 3) for name, ms in self.stages_ms.items()},
            "billed": self.billed and _billed(self.billed),
            "drift": {kind.value: tokens for kind, tokens in self.drift.items()},
            "earlier": self.earlier and self.earlier.as_dict(),
        }


def outcome_of(fitted: Fitted, wished: Fitted, scales: Scales) -> Outcome:
    """What becomes of a request that is sent."""
    over = wished.verdict.decision is Decision.REJECT
    if scales.endpoint.mode is Mode.OBSERVE:
        if over:
            return Outcome.WOULD_REFUSE
        return Outcome.WOULD_SHAPE if len(wished.plan.steps) > len(fitted.plan.steps) else Outcome.ADMITTED
    if over:
        return Outcome.WARNED
    return Outcome.SHAPED if fitted.plan.steps else Outcome.ADMITTED


class Ending:
    """How a request ended: as it was told first, whoever tells it again."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: dict[str, Receipt] = {}

    @property
    def receipt(self) -> Receipt | None:
        """`None` of one that goes on."""
        return self._told.get("receipt")

    def first(self, receipt: Receipt) -> Receipt:
        """This one, or what was told before it. Of several threads one is first."""
        return self._told.setdefault("receipt", receipt)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A request that may be sent: what was set aside for it waits to be settled."""

    model: str
    request: Request
    """As it is to be sent."""
    receipt: Receipt
    reservation: Reservation
    asked: Asked
    scales: Scales = field(repr=False)
    contents: Any = field(default=None, repr=False)
    """For `generate_content`, where it was prepared from what that takes."""
    config: Any = field(default=None, repr=False)
    origin: Origin = field(default=None, repr=False)
    """What it was read from."""
    files: Files = field(default_factory=Files, repr=False)
    """What it refers to at the service."""
    mended: bool = False
    """Whether a file of it was replaced after the service refused it."""
    ending: Ending = field(default_factory=Ending, repr=False, compare=False)
    """One with what is sent in its place."""

    @property
    def body(self) -> bytes:
        """As a body of REST JSON; the very bytes that came, where nothing of them changed.

        Raises:
            InputError: a medium cannot be read any more.
        """
        from weighlock.converters import rest_json

        came = self.origin if isinstance(self.origin, rest_json.Parsed) else None
        return rest_json.emit(self.request, came)


def _amounts(amounts: Amounts) -> dict[str, Any]:
    told: dict[str, Any] = {name: value for name, value in amounts.items() if name != MICRO_USD}
    return told | ({"usd": f"{usd(amounts[MICRO_USD]):f}"} if MICRO_USD in amounts else {})


def _billed(billed: Billed) -> dict[str, Any]:
    usage = billed.usage
    return {
        "prompt": usage.prompt,
        "by_modality": {kind.value: tokens for kind, tokens in usage.by_modality.items()},
        "buckets": dict(usage.buckets),
        "unattributed": usage.unattributed,
        "cached": usage.cached,
        "tool_use": usage.tool_use,
        "answer": usage.answer,
        "thoughts": usage.thoughts,
        "hops": usage.hops,
        "usd": billed.usd,
        "estimated": billed.estimated,
        "underestimated": _amounts(billed.underestimated),
        "findings": [{"code": one.code, "detail": one.detail} for one in usage.findings],
    }
