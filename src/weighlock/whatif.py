"""Requests of the past, planned once more from what the decision log holds of them: under these settings, enforced.

Facts and figures are all there is: a plan is made again from them, windows and sessions run through in order of time.
What only bytes could tell (whether a copied cut comes out as planned) is taken as planned.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from weighlock.budgeting import budgets_for
from weighlock.budgets.hold import Hold
from weighlock.budgets.memory import MemoryStore
from weighlock.budgets.windows import placed
from weighlock.errors import WeighlockError
from weighlock.facts_values import facts_of
from weighlock.holding import need_of
from weighlock.media.controls import Controls
from weighlock.planning.admit import Decision
from weighlock.planning.plan import plan
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Examined, Weighed
from weighlock.report import Report
from weighlock.request import Backend, Modality
from weighlock.rules import RuleBook
from weighlock.scales import Asked, Scales
from weighlock.settings import OnExceed, Settings

_CONTROLS = TypeAdapter(Controls)
_NEVER = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request of the past, and what would have become of it."""

    id: str
    at: datetime
    endpoint: str
    outcome: str
    """`admitted`, `shaped`, `refused`, `window`, `session` …: the last two name what had no room."""
    why: str
    tokens_before: int
    tokens_after: int
    """By the high estimate; of a refused one 0."""
    usd_before: Decimal | None
    usd_after: Decimal | None

    @property
    def saved_tokens(self) -> int:
        return self.tokens_before - self.tokens_after

    @property
    def saved_usd(self) -> Decimal:
        return (self.usd_before or Decimal(0)) - (self.usd_after or Decimal(0))


@dataclass(slots=True)
class Sums:
    """Of some requests."""

    outcomes: Counter[str] = field(default_factory=Counter)
    saved_tokens: int = 0
    saved_usd: Decimal = Decimal(0)

    @property
    def requests(self) -> int:
        return self.outcomes.total()

    def add(self, one: Case) -> None:
        self.outcomes[one.outcome] += 1
        self.saved_tokens += one.saved_tokens
        self.saved_usd += one.saved_usd


@dataclass(slots=True)
class Outlook:
    """All of them together, in little memory however many there are."""

    most: int = 10
    """Of the worst, so many are kept."""
    endpoints: dict[str, Sums] = field(default_factory=dict)
    overall: Sums = field(default_factory=Sums)
    unreadable: Counter[str] = field(default_factory=Counter)
    """Lines that cannot be planned again, by reason."""
    _worst: list[tuple[bool, int, int, Case]] = field(default_factory=list)

    def add(self, one: Case) -> None:
        self.overall.add(one)
        self.endpoints.setdefault(one.endpoint, Sums()).add(one)
        if one.outcome == "admitted":
            return
        shaped = one.outcome == "shaped"
        rank = (not shaped, one.saved_tokens if shaped else one.tokens_before, -self.overall.requests)
        heapq.heappush(self._worst, (*rank, one))
        if len(self._worst) > self.most:
            heapq.heappop(self._worst)

    def worst(self) -> list[Case]:
        """Those that would have been refused, the dearest first; then those that would have changed most."""
        return [one for *_, one in sorted(self._worst, key=lambda ranked: ranked[:3], reverse=True)]


def what_if(
    lines: Iterable[Mapping[str, Any]],
    settings: Settings,
    rules: RuleBook,
    *,
    told: Callable[[Case], object] = lambda _: None,
) -> Outlook:
    """What these settings, enforced, would have made of logged requests; in the order they come, each `told`."""
    replay = _Replay(settings, rules)
    outlook = Outlook()
    for line in lines:
        try:
            case = replay.case(line)
            outlook.add(case)
            told(case)
        except (WeighlockError, ValidationError, KeyError, TypeError, ValueError) as error:
            reason = error.code if isinstance(error, WeighlockError) else "no such line"
            outlook.unreadable[reason] += 1
    return outlook


class _Replay:
    def __init__(self, settings: Settings, rules: RuleBook) -> None:
        self._settings, self._rules = settings, rules
        self._now: datetime | None = None
        self._store = MemoryStore(self._clock)
        self._scales: dict[tuple[str, str, str, int, date], Scales] = {}

    def _clock(self) -> datetime:
        if self._now is None:
            raise RuntimeError("no line yet")
        return self._now

    def case(self, line: Mapping[str, Any]) -> Case:
        self._now = datetime.fromisoformat(line["at"])
        scales = self._scales_of(line, self._now.date())
        parts, resent = _weighed(line, scales)
        before = scales.report(parts)
        planned = _planned(parts, resent, scales)
        after = scales.report(planned.parts)
        over = planned.verdict.decision is Decision.REJECT and scales.endpoint.on_exceed is not OnExceed.WARN
        if over:
            names = [check.name for check in planned.verdict.over]
            return self._case(line, scales, "refused", ", ".join(names) or "policy", before, None)
        full = self._held(line, scales, after)
        if full is not None:
            return self._case(line, scales, full.partition(" ")[0], full, before, None)
        steps = "; ".join(dict.fromkeys(step.words for step in planned.steps))
        return self._case(line, scales, "shaped" if planned.steps else "admitted", steps, before, after)

    def _scales_of(self, line: Mapping[str, Any], day: date) -> Scales:
        key = (line["endpoint"], line["model"], line["backend"], int(line.get("output_tokens", 0)), day)
        if key not in self._scales:
            endpoint, model, backend, answer, on = key
            asked = Asked(endpoint=endpoint, model=model, backend=Backend(backend), output_tokens=answer, on=on)
            self._scales[key] = Scales(self._settings, self._rules, asked)
        return self._scales[key]

    def _held(self, line: Mapping[str, Any], scales: Scales, after: Report) -> str | None:
        """What has no room for it; else it is spent there, at once."""
        budgets = budgets_for(self._settings, scales.endpoint.name, line["tenant"], line.get("session"))
        if not budgets:
            return None
        now, need = self._clock(), need_of(after)
        place = placed(budgets, now)
        hold = Hold(id=line["id"], need=need, counters=place.counters, expires_at=now + _NEVER)
        outcome = self._store.reserve(hold, place.caps)
        if outcome.refused:
            cap = place.caps[outcome.refused[0]]
            kind = "session" if cap.window == "session" else "window"
            return f"{kind} {cap.window}: {cap.metric} of {cap.scope}"
        self._store.commit(line["id"], need)
        return None

    def _case(
        self, line: Mapping[str, Any], scales: Scales, outcome: str, why: str, before: Report, after: Report | None
    ) -> Case:
        return Case(
            id=str(line["id"]),
            at=self._clock(),
            endpoint=scales.endpoint.name,
            outcome=outcome,
            why=why,
            tokens_before=before.total.high,
            tokens_after=0 if after is None else after.total.high,
            usd_before=before.cost.high if before.cost is not None else None,
            usd_after=None if after is None or after.cost is None else after.cost.high,
        )


def _weighed(line: Mapping[str, Any], scales: Scales) -> tuple[list[Weighed], list[bool]]:
    """The parts as they came; the text is the last."""
    examined, resent = [], []
    for number, part in enumerate(line["parts"]):
        facts = part["facts"]
        if facts is None:
            raise ValueError("a part of which nothing is known")
        modality = part["modality"]
        examined.append(
            Examined(
                label=f"part {number}",
                size_bytes=part["size_bytes"],
                mime=part["mime"],
                modality=None if modality is None else Modality(modality),
                facts=facts_of(facts),
                asked=_CONTROLS.validate_python(part["asked"]),
            )
        )
        resent.append(bool(part["resent"]))
    return scales.parts(examined, standing=False), resent


def _planned(parts: Sequence[Weighed], resent: Sequence[bool], scales: Scales) -> Plan:
    on = scales if scales.endpoint.on_exceed is OnExceed.SHAPE else scales.without_levers()
    wishes = list(_wishes(parts, resent, on))
    return plan(parts, on.rules, on.shaping, on.judge, wishes, batch=on.endpoint.history.batch)


def _wishes(parts: Sequence[Weighed], resent: Sequence[bool], scales: Scales) -> Iterator[Wish]:
    """What holds for each part. Which tool returned a medium is not in the log: the newest of all are kept."""
    media = [at for at, part in enumerate(parts) if part.examined.modality is not Modality.TEXT]
    newest = set(media[-scales.endpoint.history.keep_media :] if scales.endpoint.history.keep_media else ())
    for at, part in enumerate(parts):
        if at not in media:
            yield Wish()
            continue
        earlier = at if resent[at] else None
        removable = resent[at] and at not in newest
        yield Wish(target=scales.target(part.examined), earlier=earlier, removable=removable)
