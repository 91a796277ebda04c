"""One request on its way through the line: what is known of it so far, and whether it may go on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from weighlock.budgets.hold import MICRO_USD, Standing
from weighlock.budgets.windows import Budget
from weighlock.errors import BudgetError, BudgetExceeded, WeighlockError
from weighlock.fitted import Fitted
from weighlock.io import Io
from weighlock.planning.admit import Decision, Verdict
from weighlock.prepared import Outcome, PreparedRequest, Receipt, outcome_of
from weighlock.report import Report
from weighlock.request import Request
from weighlock.scales import Asked, Scales
from weighlock.sending import Files
from weighlock.settings import Mode, OnExceed, OnUnknownPrice
from weighlock.written import plain

if TYPE_CHECKING:
    from weighlock.budgets.reservation import Reservation
    from weighlock.converters.formats import Origin


NOT_HELD = "not_held"
"""Weighed and limited, and settled by nobody: what is cached, batched, embedded or only counted."""


def new_id(now: datetime) -> str:
    """Of a request: nobody else's, and later ones sort behind, so that what is kept of them is kept side by side."""
    return f"{int(now.timestamp() * 1000):012x}{os.urandom(10).hex()}"


class Stages:
    """How long each step takes: `with stages("plan"): …`, one after another."""

    def __init__(self, io: Io) -> None:
        self._io = io
        self._name, self._begun = "", 0.0
        self.ms: dict[str, float] = {}

    def __call__(self, name: str) -> Self:
        self._name = name
        return self

    def __enter__(self) -> None:
        self._begun = self._io.monotonic()

    def __exit__(self, *_: object) -> None:
        self.ms[self._name] = self.ms.get(self._name, 0.0) + (self._io.monotonic() - self._begun) * 1000


@dataclass(slots=True, kw_only=True)
class Passage:
    """Changes as the line goes on; nobody else sees it."""

    id: str
    at: datetime
    asked: Asked
    scales: Scales
    stages: Stages
    holds: bool = True
    """Whether something is set aside for it."""
    refuses: bool = True
    """Whether a limit may refuse it. Of a question about it, none does."""
    files: Files = field(default_factory=Files)
    digests: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    reservation: Reservation | None = None
    plan: Fitted | None = None
    """The latest one of what is sent."""
    warnings: list[str] = field(default_factory=list)

    @property
    def enforces(self) -> bool:
        """Whether what is decided is done."""
        return self.scales.endpoint.mode is Mode.ENFORCE

    @property
    def binds(self) -> bool:
        """Whether what is over a limit is refused."""
        return self.enforces and self.refuses and self.scales.endpoint.on_exceed is not OnExceed.WARN

    @property
    def planned_on(self) -> Scales:
        """Of the endpoint's policy."""
        shapes = self.scales.endpoint.on_exceed is OnExceed.SHAPE
        return self.scales if shapes else self.scales.without_levers()

    @property
    def sent_on(self) -> Scales:
        """Of what is sent: where the endpoint only observes, as little is done as the service needs."""
        return self.planned_on if self.enforces else self.scales.leaving()

    @property
    def session(self) -> str | None:
        """What a session is told by: its name may be a person's."""
        return session_hash(self.asked)

    @property
    def note(self) -> Mapping[str, str]:
        """For the budgets' journal."""
        note = {"endpoint": self.scales.endpoint.name, "tenant": self.asked.tenant, "model": self.scales.model}
        return note | ({"session": self.session} if self.session else {})

    # ---- may it go on?

    def demand_counted(self, told: Report) -> None:
        """Raises why there is no count, where the policy is to refuse then."""
        failure = told.counted.failure if told.counted is not None else None
        if failure is not None and told.verdict.decision is Decision.REJECT and self.enforces:
            raise failure

    def demand_priced(self, plan: Fitted, budgets: Sequence[Budget]) -> None:
        """Does nothing where what it costs is known, or no budget counts dollars.

        Raises:
            BudgetExceeded: nobody prices the model, and the policy is to refuse then (`on_unknown_price`).
        """
        cost, scale = plan.after.cost, plan.after.scale
        unpriced = cost is None and scale.unpriced_reason is not None
        refuses = self.scales.endpoint.on_unknown_price is OnUnknownPrice.REJECT
        counted = next((one for one in budgets if MICRO_USD in one.window.limits), None)
        if unpriced and refuses and counted is not None and self.binds:
            raise BudgetExceeded(
                f"{scale.unpriced_reason}, and {counted.knob(MICRO_USD)} counts dollars "
                "(set pricing.overrides, or on_unknown_price: ignore)",
                endpoint=scale.endpoint,
                owner=scale.owner,
            )

    def demand_admitted(self, plan: Fitted) -> None:
        """Does nothing where the service takes it and the endpoint's limits hold.

        Raises:
            InputError: it cannot be sent as it is.
            BudgetExceeded: a limit is broken, even at its lightest.
        """
        self.plan = plan
        plan.demand_sendable()
        if not self.binds:
            return
        if plan.verdict.decision is Decision.REJECT:
            raise plan.exceeded()
        if plan.verdict.limits:  # what cannot be seen cannot be held against them
            plan.demand_fit()

    # ---- what came of it

    def receipt(self, plan: Fitted, wished: Fitted) -> Receipt:
        """Of a request that is sent."""
        held = self.reservation
        outcome = outcome_of(plan, wished, self.scales)
        full = () if held is None else tuple(one for one in held.standings if one.left < 0)
        unsendable = plan.problems  # let through where the endpoint only observes
        if unsendable or (full and not self.binds):
            outcome = Outcome.WARNED if self.enforces else Outcome.WOULD_REFUSE
        return Receipt(
            id=self.id,
            at=self.at,
            outcome=outcome,
            fitted=plan,
            wished=wished,
            codes=(
                *(one.code for one in unsendable[:1]),
                *codes_of(wished.verdict),
                *(f"{one.cap.window}.{one.cap.metric}" for one in full),
                *(() if self.holds else (NOT_HELD,)),
            ),
            held=MappingProxyType({}) if held is None else held.need,
            unverified=held is not None and held.unverified,
            warnings=(*self.warnings, *(() if held is None else map(_warning, held.warnings))),
            uploads=MappingProxyType(dict(self.files.by_part)),
            digests=self.digests,
            reuploads=+self.files.reuploads,
            stages_ms=MappingProxyType(dict(self.stages.ms)),
        )

    def refused(self, error: BaseException) -> Receipt | None:
        """Of a request that is not sent; `None` where it was broken off before anything was known of it."""
        plan = self.plan
        if plan is None:
            return None
        is_ours = isinstance(error, WeighlockError)
        code = error.code if isinstance(error, WeighlockError) else "cancelled"
        return Receipt(
            id=self.id,
            at=self.at,
            outcome=Outcome.REFUSED if is_ours and isinstance(error, BudgetError) else Outcome.FAILED,
            fitted=plan,
            wished=plan,
            codes=(code, *codes_of(plan.verdict)),
            warnings=tuple(self.warnings),
            digests=self.digests,
            stages_ms=MappingProxyType(dict(self.stages.ms)),
        )

    def ready(self, request: Request, receipt: Receipt, origin: Origin, written: tuple[Any, Any]) -> PreparedRequest:
        if self.reservation is None:
            raise RuntimeError("a request goes on only once it is held")
        contents, config = written
        return PreparedRequest(
            model=self.scales.model,
            request=request,
            receipt=receipt,
            reservation=self.reservation,
            asked=self.asked,
            scales=self.scales,
            contents=contents,
            config=config,
            origin=origin,
            files=self.files,
        )


def _warning(one: Standing) -> str:
    """`endpoint:bug_triage, day: micro_usd at 84 % of 50,000,000`."""
    cap = one.cap
    whole = cap.limit + one.granted
    share = (one.spent + one.held) * 100 // whole if whole else 100
    return f"{plain(cap.scope)}, {cap.window}: {cap.metric} at {share} % of {whole:,}"


def session_hash(asked: Asked) -> str | None:
    """What a tenant's session is told by."""
    if asked.session is None:
        return None
    words = f"{asked.tenant}\0{asked.session}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(words).hexdigest()[:16]


def codes_of(verdict: Verdict) -> tuple[str, ...]:
    """Why a request is not admitted, in stable words."""
    return (*(f"limits.{check.name}" for check in verdict.over), *("policy" for _ in verdict.reasons[:1]))


def with_count(plan: Fitted, told: Report) -> Fitted:
    """The plan with what became of a question to the service in its receipts."""
    return replace(
        plan,
        before=replace(plan.before, counted=told.counted),
        after=replace(plan.after, counted=told.counted),
    )
