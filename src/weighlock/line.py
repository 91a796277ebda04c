"""The order of steps in front of a model request, and after it. `_prepared` is the line; it reads from top to bottom.

Nothing here decides or measures: each step asks the room that does. It is written once, over an `Io`, for blocking code
and for coroutines; `preflight.py` is its face for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

from weighlock.answers import Answers
from weighlock.converters.formats import written
from weighlock.errors import ConfigError, ServiceRefused, WindowExhausted
from weighlock.events import Ended
from weighlock.examiner import Recall
from weighlock.fitted import Fitted
from weighlock.holding import need_of, within
from weighlock.io import Io
from weighlock.opened import Opened
from weighlock.passage import Passage, Stages, new_id, with_count
from weighlock.planning.counting import OnCountFailure, When
from weighlock.planning.sharper import sharper
from weighlock.prepared import PreparedRequest, Receipt
from weighlock.records import Witnesses
from weighlock.remembered import recall
from weighlock.report import Report
from weighlock.request import Backend, Request
from weighlock.rules import RuleBook
from weighlock.scales import Asked, Scales
from weighlock.sending import brought, known_bytes, let_go
from weighlock.settings import OnExceed, Settings
from weighlock.settling import bill_of, costs_nothing, refusal_in
from weighlock.uploads.repair import REFUSED, mended
from weighlock.weigher import Looked, Weigher, fitted

if TYPE_CHECKING:
    from weighlock.budgets.windows import Budget
    from weighlock.converters.formats import Origin

HOLD_S = 900.0
"""How long what is held waits to be settled; then it is charged as it stands, and a late bill puts it right."""


class Line(Weigher):
    """The line, over any `Io`. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        *,
        rules: RuleBook | None,
        preload: bool,
        clock: Callable[[], float] = time.monotonic,
        on_event: Iterable[Callable[[Ended], object]] = (),
    ) -> None:
        super().__init__(settings, rules=rules, preload=preload, clock=clock)
        self._opened = Opened(settings)
        self._answers = Answers()
        self._witnesses = Witnesses(settings.observe.decision_log, on_event)

    def close(self) -> None:
        super().close()
        self._opened.close()

    def take_over(self, before: Line) -> None:
        """Goes on in the place of another, whose settings were changed: with what this process alone remembers of
        budgets and of answers. To be called before either is closed."""
        self._opened.take_over(before._opened)
        self._answers = before._answers

    async def _prepared(
        self, io: Io, request: Request, origin: Origin, asked: Asked, *, holds: bool = True, refuses: bool = True
    ) -> PreparedRequest:
        scales, stages = self._scales_to_hold(request, asked), Stages(io)
        passage = Passage(
            id=new_id(now := io.now()), at=now, asked=asked, scales=scales, stages=stages, holds=holds, refuses=refuses
        )
        try:
            with stages("look"):
                looked = await self._looked(io, request, passage)
            with stages("plan"):
                wished = await self._planned(io, looked, passage)
                applies = passage.enforces or wished.is_untouched
                passage.plan = plan = wished if applies else await _fitted(io, looked, passage.sent_on)
            with stages("reserve"):
                wished, plan = await self._reserved(io, looked, wished, plan, passage)
            with stages("transform"):
                plan = await self._carried_out(io, plan, passage)
            with stages("upload"):
                plan, request = await brought(io, plan, scales, self._opened.accounts(io), asked.tenant, passage.files)
            with stages("convert"):
                contents = await self._written(io, request, origin, plan)
            receipt = passage.receipt(plan, plan if passage.enforces else wished)
        except BaseException as error:
            await self._undone(io, passage)
            self._witnesses.tell(passage.refused(error), asked)
            raise
        if not holds:
            self._witnesses.tell(receipt, asked)
        return passage.ready(request, receipt, origin, contents)

    def _scales_to_hold(self, request: Request, asked: Asked) -> Scales:
        """With the answer that is to be expected, where nobody says how long it will be."""
        endpoint = self.settings.endpoint(asked.endpoint)
        if asked.output_tokens is None and endpoint.output_tokens.expected is None:
            expected = self._answers.expected(endpoint.name, asked.model or request.model or endpoint.model)
            asked = asked if expected is None else replace(asked, output_tokens=expected)
        return self._scales_for(request, asked)

    async def _looked(self, io: Io, request: Request, passage: Passage) -> Looked:
        def look() -> Looked:
            looked = self.look(request, passage.scales, passage.asked.tenant)
            passage.digests = self._witnesses.digests(looked.screened.screening.findings)
            return looked

        if any(request.media()):
            return await io.call(look)
        return look()  # text alone takes less time than another thread

    def _recall(self, scales: Scales, tenant: str) -> Recall:
        return recall(scales.endpoint.account, tenant, self._opened.registry_there)

    async def _planned(self, io: Io, looked: Looked, passage: Passage) -> Fitted:
        """The endpoint's policy on a request, the service asked where its answer can change the verdict."""
        scales = passage.planned_on
        plan = await _fitted(io, looked, scales)
        told = await self._told(io, plan, looked, passage)
        if told is None:
            return plan
        if told.counted is not None and told.counted.count is None:
            return with_count(plan, told)
        return await _fitted(io, looked, scales, told)

    async def _told(self, io: Io, plan: Fitted, looked: Looked, passage: Passage) -> Report | None:
        """The receipt with a count in it; `None` where none was worth asking for."""
        from weighlock.counting import counted

        policy = passage.scales.endpoint.count
        if policy.when is When.OFF or not (passage.enforces or policy.when is When.ALWAYS):
            return None  # what is only observed is worth no round trip in front of the user's request
        accounts, sent = self._opened.accounts(io), looked.screened.request
        try:
            for report in (plan.before,) if plan.after is plan.before else (plan.before, plan.after):
                told = await counted(
                    report, sent, passage.scales, accounts, passage.asked.tenant, keep=passage.files.renew
                )
                if told is not report:
                    passage.demand_counted(told)
                    return told
        except ConfigError as error:
            if policy.on_failure is OnCountFailure.REJECT:
                raise
            passage.warnings.append(f"not counted: {error.message}")
        return None

    async def _reserved(
        self, io: Io, looked: Looked, wished: Fitted, plan: Fitted, passage: Passage
    ) -> tuple[Fitted, Fitted]:
        """What is sent, with as much set aside for it. What a window has no room for is made lighter, twice at most."""
        ledger, budgets = self._opened.ledger(io), _budgets(passage, self.settings)
        passage.demand_priced(plan, budgets)
        for lighter in (True, True, False):
            if passage.enforces:
                passage.demand_admitted(plan)
            try:
                passage.reservation = await ledger.reserve(
                    passage.id, need_of(plan.after), budgets, lasts_s=HOLD_S, note=passage.note, binding=passage.binds
                )
            except WindowExhausted:
                if not (lighter and passage.scales.endpoint.on_exceed is OnExceed.SHAPE):
                    raise
                left = within(passage.scales.limits, await ledger.standings(budgets))
                told = plan.before if plan.before.counted is not None else None
                wished = plan = await _fitted(io, looked, passage.scales.under(left), told)
                if not plan.fits:
                    raise
            else:
                break
        return wished, plan

    async def _carried_out(self, io: Io, plan: Fitted, passage: Passage) -> Fitted:
        """The plan done. What came out may weigh other than planned: the hold follows."""
        if not plan.works:
            return plan
        stop = Event()
        try:
            done = await io.call(self.carry_out, plan, passage.asked, cancelled=stop.is_set, scales=passage.sent_on)
        except BaseException:
            stop.set()
            raise
        if passage.enforces:
            passage.demand_admitted(done)
        if (need := need_of(done.after)) != need_of(plan.after) and passage.reservation is not None:
            passage.reservation = await self._opened.ledger(io).adjust(passage.reservation, need)
        return done

    async def _written(self, io: Io, request: Request, origin: Origin, plan: Fitted) -> tuple[Any, Any]:
        if request is plan.original:
            return written(request, origin)
        return await io.call(written, request, origin)

    async def _undone(self, io: Io, passage: Passage) -> None:
        """Nothing held, no file kept for it: it is not sent."""
        try:
            if passage.reservation is not None:
                await self._opened.ledger(io).release(passage.reservation)
        finally:
            await let_go(passage.files.all, passage.scales.endpoint.account, self._opened.accounts(io))

    async def _settled(
        self, io: Io, ready: PreparedRequest, answer: Any, error: BaseException | None, partial: bool
    ) -> Receipt:
        ledger, held = self._opened.ledger(io), ready.reservation
        if error is not None and costs_nothing(error):
            return await self._ended(io, ready, ready.receipt.with_codes("refused_by_service"), ledger.release(held))
        bill = bill_of(answer, ready.receipt.fitted.after, ready.scales, held.need, partial=partial)
        if not bill.estimated and ready.ending.receipt is None:
            self._answers.tell(ready.scales.endpoint.name, ready.scales.model, bill.usage.output)
        receipt = ready.receipt.with_bill(bill, held.over(bill.spent))
        note = {"estimated": "yes"} if bill.estimated else {}
        return await self._ended(io, ready, receipt, ledger.commit(held, bill.spent, note=note))

    async def _ended(
        self, io: Io, ready: PreparedRequest, receipt: Receipt, booked: Coroutine[Any, Any, object]
    ) -> Receipt:
        """The receipt it ended with first. Broken off here, it is ended and told of all the same."""
        with closing(booked):
            if (first := ready.ending.first(receipt)) is not receipt:
                return first
            try:
                await booked
            finally:
                try:
                    await let_go(ready.files.all, ready.scales.endpoint.account, self._opened.accounts(io))
                finally:
                    self._witnesses.tell(receipt, ready.asked)
        return receipt

    async def _mended(self, io: Io, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        refused, account = refusal_in(error, io.now()), ready.scales.endpoint.account
        if refused is None or account.backend is Backend.VERTEX:
            return None
        try:
            references = self._opened.accounts(io).references(account)
            known = known_bytes(ready.receipt.fitted, ready.files.by_part)
            request, renewed = await mended(
                references, ready.asked.tenant, ready.request, refused, known, ready.files.looked_at
            )
        except (ServiceRefused, ConfigError):  # it is about something else, or nobody here has the key
            return None
        ready.files.renew(renewed, REFUSED)
        contents, config = await io.call(written, request, ready.origin)
        receipt = replace(ready.receipt, reuploads=+ready.files.reuploads)
        return replace(ready, request=request, receipt=receipt, contents=contents, config=config, mended=True)

    async def _released(self, io: Io, ready: PreparedRequest) -> None:
        released = self._opened.ledger(io).release(ready.reservation)
        await self._ended(io, ready, ready.receipt.with_codes("not_sent"), released)

    async def _escalated(self, io: Io, ready: PreparedRequest, parts: Iterable[int | str]) -> PreparedRequest:
        """The first way that fits, and is sharper."""
        before = ready.receipt.fitted
        chosen, full = before.chosen(parts), None
        weight = before.weight(chosen)
        for request in sharper(before.original, before.sent_media(chosen), ready.scales.rules):
            plan = await io.call(self.fit, request, ready.asked)
            if not plan.fits or plan.weight(chosen) <= weight:
                continue
            try:
                again = await self._prepared(io, request, ready.origin, ready.asked)
            except WindowExhausted as error:
                full = error
                continue
            return replace(again, receipt=replace(again.receipt, earlier=ready.receipt))
        raise full or before.no_sharper(chosen)

    async def _counted(self, io: Io, request: Request, asked: Asked | None) -> Report:
        from weighlock.counting import counted

        scales = self._scales_for(request, asked)
        tenant = (asked or Asked()).tenant
        report, sent = await io.call(self._weighed_request, request, scales, tenant)
        return await counted(report, sent, scales, self._opened.accounts(io), tenant)


async def _fitted(io: Io, looked: Looked, scales: Scales, told: Report | None = None) -> Fitted:
    """Planning for many media takes its time; for text alone it takes less than another thread."""
    return await io.call(fitted, looked, scales, told) if looked.examined else fitted(looked, scales, told)


def _budgets(passage: Passage, settings: Settings) -> Sequence[Budget]:
    if not passage.holds:
        return ()
    from weighlock.budgeting import budgets_for

    return budgets_for(settings, passage.scales.endpoint.name, passage.asked.tenant, passage.session)
