"""The order of steps in front of a model request, and after it. Read `_prepared` first: it is the line.

Nothing here decides or measures: each step asks the room that does. It is written once, over an `Io`, for blocking code
and for coroutines.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from weighlock.answers import Answers
from weighlock.context import whose
from weighlock.converters.formats import read, written
from weighlock.errors import ConfigError, ServiceRefused, WindowExhausted
from weighlock.events import Ended
from weighlock.fitted import Fitted
from weighlock.holding import need_of, within
from weighlock.io import AsyncIo, Io, SyncIo, run
from weighlock.observe.decision_log import DecisionLog
from weighlock.passage import Passage, Stages, session_hash, with_count
from weighlock.planning.counting import OnCountFailure, When
from weighlock.planning.sharper import sharper
from weighlock.prepared import PreparedRequest, Receipt
from weighlock.records import ended
from weighlock.report import Report
from weighlock.request import Backend, Request
from weighlock.rules import Controls, RuleBook
from weighlock.scales import Asked, Scales
from weighlock.sending import brought, known_bytes, let_go
from weighlock.settings import Clip, OnExceed, Settings
from weighlock.settling import bill_of, costs_nothing, refusal_in
from weighlock.uploads.policy import DEFAULT_TENANT
from weighlock.uploads.repair import mended
from weighlock.weigher import Looked, Parts, Weigher, fitted

if TYPE_CHECKING:
    from weighlock.accounts import Accounts
    from weighlock.budgets.hold import Store
    from weighlock.budgets.ledger import Ledger
    from weighlock.budgets.windows import Budget
    from weighlock.converters.formats import Origin
    from weighlock.uploads.registry import Registry


_log = logging.getLogger("weighlock")
HOLD_S = 900.0
"""How long what is held waits to be settled; then it is charged as it stands, and a late bill puts it right."""


class Preflight(Weigher):
    """Weighs media. Thread-safe; starts the confined worker on first need; close it, or use it in a `with`.

    `preload=False` puts off loading the prober's code and the price lists until they are needed. It suits a command
    that may need neither; in a threaded program a fork in the middle of such an import would hang the child. `clock`
    tells seconds, for deadlines; the two `Io`s wait for the service, in the blocking methods and in the async ones.
    Each of `on_event` is told of every request once it has ended: settled, let go, or refused. It is called where the
    request is, so it should take no time; what it raises is logged.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        rules: RuleBook | None = None,
        preload: bool = True,
        clock: Callable[[], float] = time.monotonic,
        io: SyncIo | None = None,
        async_io: AsyncIo | None = None,
        on_event: Iterable[Callable[[Ended], object]] = (),
    ) -> None:
        super().__init__(settings, rules=rules, preload=preload, clock=clock)
        self._io, self._async_io = io or SyncIo(), async_io or AsyncIo()
        self._accounts: dict[int, Accounts] = {}
        self._registry: Registry | None = None
        self._ledgers: dict[int, Ledger] = {}
        self._store: Store | None = None
        self._answers = Answers()
        where = settings.observe.decision_log
        self._hashes = where is not None
        self._listeners = [*on_event, *([DecisionLog(where).write] if where is not None else [])]
        self._opening = threading.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._async_io.close()
        self.close()

    def close(self) -> None:
        """Ends the worker and the connections of the blocking methods. A later call starts new ones."""
        super().close()
        for opened in (self._registry, self._store):
            if opened is not None:
                opened.close()
        run(self._io.close())

    # ---- the line

    def prepare(
        self,
        contents: Any,
        config: Any = None,
        *,
        model: str | None = None,
        endpoint: str | None = None,
        tenant: str | None = None,
        session: str | None = None,
        asked: Asked | None = None,
        holds: bool = True,
    ) -> PreparedRequest:
        """What may be sent in the place of a request, and what was set aside for it; to be settled after the call.

        Args:
            contents: What `generate_content` takes; or a body of REST JSON, as bytes or a dict; or a `Request`.
            config: As `generate_content` takes it.
            model: The request's own, or the endpoint's, when left out.
            endpoint: Whose limits, windows and levers; else that of the block (`with weighlock.endpoint(…)`), else the
                `default` section.
            tenant: Whose request it is, for the tenants' budgets; what is uploaded for one is nobody else's.
            session: Which run of an agent it is part of.
            asked: What else a caller may say.
            holds: Whether something is set aside for it. What is weighed and limited only needs no settling.

        Raises:
            BudgetExceeded: a limit of one request is broken, and nothing the endpoint allows brings it under.
            WindowExhausted: a window or session has no room for it now; `retry_after_s` says when.
            InputError: a medium cannot be sent as it is, or the request cannot be read.
            ConfigError: no such endpoint; no key, where files have to be uploaded.
            ServiceError: an upload failed, the budgets cannot be asked, the worker could not be started.
        """
        request, origin = read(contents, config, model=model)
        said = _said(asked, model, endpoint, tenant, session)
        return run(self._prepared(self._io, request, origin, said, holds=holds))

    async def aprepare(
        self,
        contents: Any,
        config: Any = None,
        *,
        model: str | None = None,
        endpoint: str | None = None,
        tenant: str | None = None,
        session: str | None = None,
        asked: Asked | None = None,
        holds: bool = True,
    ) -> PreparedRequest:
        """As `prepare`, beside the event loop. Broken off anywhere, nothing stays held."""
        await self._async_io.turn()
        request, origin = read(contents, config, model=model)
        said = _said(asked, model, endpoint, tenant, session)
        return await self._prepared(self._async_io, request, origin, said, holds=holds)

    def settle(
        self,
        ready: PreparedRequest,
        answer: Any = None,
        *,
        error: BaseException | None = None,
        partial: bool = False,
    ) -> Receipt:
        """The receipt with what the call cost, which is charged in the place of what was held. Once; again, it is told.

        Args:
            ready: What was sent.
            answer: What came back: the SDK's response, a body, its `usageMetadata`, or the chunks of a stream in order.
                Where it does not say what it cost, what was held is charged, and flagged as estimated.
            error: What came in its place. What the service refused costs nothing; what nobody knows of, what was held.
            partial: The answer was broken off: it is charged at least as long as was expected.
        """
        return run(self._settled(self._io, ready, answer, error, partial))

    async def asettle(
        self,
        ready: PreparedRequest,
        answer: Any = None,
        *,
        error: BaseException | None = None,
        partial: bool = False,
    ) -> Receipt:
        """As `settle`, beside the event loop."""
        return await self._settled(self._async_io, ready, answer, error, partial)

    def mend(self, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        """What may be sent once more after the service refused it for a file: that file is uploaded again, and every
        reference to it is rewritten. Once a request; `None` where that is no help, and the error stands.

        Args:
            ready: As it was sent. What comes in its place is settled in its place.
            error: The SDK's `APIError`, or our `ServiceRefused`.

        Raises:
            ReferenceUnrecoverable: the file is gone, and nobody here has its bytes.
            ServiceError: it cannot be uploaded again.
        """
        return run(self._mended(self._io, ready, error))

    async def amend(self, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        """As `mend`, beside the event loop."""
        return await self._mended(self._async_io, ready, error)

    def release(self, ready: PreparedRequest) -> None:
        """It will not be sent: nothing stays held for it."""
        return run(self._released(self._io, ready))

    async def arelease(self, ready: PreparedRequest) -> None:
        """As `release`, beside the event loop."""
        return await self._released(self._async_io, ready)

    def escalate(self, ready: PreparedRequest, parts: Iterable[int | str]) -> PreparedRequest:
        """The request again with some parts as sharp as the budget allows: for an answer that could not read them.

        It is a request of its own, to be settled too; its receipt holds that of the pass before.

        Args:
            ready: As it was sent.
            parts: Which of them, by number or by name, as its receipt has them.

        Raises:
            BudgetExceeded: there is no room for them to be sharper than they were.
            InputError: no such part.
            As `prepare`.
        """
        return run(self._escalated(self._io, ready, parts))

    async def aescalate(self, ready: PreparedRequest, parts: Iterable[int | str]) -> PreparedRequest:
        """As `escalate`, beside the event loop."""
        return await self._escalated(self._async_io, ready, parts)

    async def _prepared(
        self, io: Io, request: Request, origin: Origin, asked: Asked, *, holds: bool = True
    ) -> PreparedRequest:
        scales, stages = self._scales_to_hold(request, asked), Stages(io)
        passage = Passage(id=uuid4().hex, at=io.now(), asked=asked, scales=scales, stages=stages, holds=holds)
        try:
            with stages("look"):
                looked = await self._looked(io, request, scales)
            with stages("plan"):
                wished = await self._planned(io, looked, passage)
                applies = passage.enforces or wished.is_untouched
                passage.plan = plan = wished if applies else fitted(looked, passage.sent_on)
            with stages("reserve"):
                wished, plan = await self._reserved(io, looked, wished, plan, passage)
            with stages("transform"):
                plan = await self._carried_out(io, plan, passage)
            with stages("upload"):
                plan, request = await brought(io, plan, scales, self._accounts_over(io), asked.tenant, passage.files)
            with stages("convert"):
                contents = await self._written(io, request, origin, plan)
            receipt = passage.receipt(plan, plan if passage.enforces else wished)
        except BaseException as error:
            await self._undone(io, passage)
            self._tell(passage.refused(error), asked)
            raise
        if not holds:
            self._tell(receipt, asked)
        return passage.ready(request, receipt, origin, contents)

    def _scales_to_hold(self, request: Request, asked: Asked) -> Scales:
        """With the answer that is to be expected, where nobody says how long it will be."""
        scales = self._scales_for(request, asked)
        if asked.output_tokens is None and scales.endpoint.output_tokens.expected is None:
            expected = self._answers.expected(scales.endpoint.name, scales.rules.model)
            return scales if expected is None else self._scales_for(request, replace(asked, output_tokens=expected))
        return scales

    async def _looked(self, io: Io, request: Request, scales: Scales) -> Looked:
        if any(request.media()):
            return await io.call(self.look, request, scales)
        return self.look(request, scales)  # text alone takes less time than another thread

    async def _planned(self, io: Io, looked: Looked, passage: Passage) -> Fitted:
        """The endpoint's policy on a request, the service asked where its answer can change the verdict."""
        scales = passage.planned_on
        plan = fitted(looked, scales)
        told = await self._told(io, plan, looked, passage)
        if told is None:
            return plan
        if told.counted is not None and told.counted.count is None:
            return with_count(plan, told)
        return fitted(looked, scales, told)

    async def _told(self, io: Io, plan: Fitted, looked: Looked, passage: Passage) -> Report | None:
        """The receipt with a count in it; `None` where none was worth asking for."""
        from weighlock.counting import counted

        policy = passage.scales.endpoint.count
        if policy.when is When.OFF or not (passage.enforces or policy.when is When.ALWAYS):
            return None  # what is only observed is worth no round trip in front of the user's request
        accounts, sent = self._accounts_over(io), looked.screened.request
        try:
            for report in (plan.before, plan.after):
                told = await counted(report, sent, passage.scales, accounts, passage.asked.tenant)
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
        ledger, budgets = self._ledger_over(io), self._budgets(passage)
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
                wished = plan = fitted(looked, passage.scales.under(left), told)
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
            passage.reservation = await self._ledger_over(io).adjust(passage.reservation, need)
        return done

    async def _written(self, io: Io, request: Request, origin: Origin, plan: Fitted) -> tuple[Any, Any]:
        if request is plan.original:
            return written(request, origin)
        return await io.call(written, request, origin)

    async def _undone(self, io: Io, passage: Passage) -> None:
        """Nothing held, no file kept for it: it is not sent."""
        if passage.reservation is not None:
            await self._ledger_over(io).release(passage.reservation)
        await let_go(passage.files.all, passage.scales.endpoint.account, self._accounts_over(io))

    async def _settled(
        self, io: Io, ready: PreparedRequest, answer: Any, error: BaseException | None, partial: bool
    ) -> Receipt:
        ledger = self._ledger_over(io)
        try:
            if error is not None and costs_nothing(error):
                await ledger.release(ready.reservation)
                receipt = ready.receipt.with_codes("refused_by_service")
                self._tell(receipt, ready.asked)
                return receipt
            sent, held = ready.receipt.fitted.after, ready.reservation.need
            bill = bill_of(answer, sent, ready.scales, held, partial=partial)
            note = {"estimated": "yes"} if bill.estimated else {}
            settled = await ledger.commit(ready.reservation, bill.spent, note=note)
            receipt = ready.receipt.with_bill(bill, settled.underestimated)
            if not bill.estimated:
                self._answers.tell(ready.scales.endpoint.name, ready.scales.rules.model, bill.usage.output)
        finally:
            await let_go(ready.files.all, ready.scales.endpoint.account, self._accounts_over(io))
        self._tell(receipt, ready.asked)
        return receipt

    async def _mended(self, io: Io, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        refused, account = refusal_in(error, io.now()), ready.scales.endpoint.account
        if refused is None or ready.mended or account.backend is Backend.VERTEX:
            return None
        try:
            references = self._accounts_over(io).references(account)
            known = known_bytes(ready.receipt.fitted, ready.files.by_part)
            request, renewed = await mended(references, ready.asked.tenant, ready.request, refused, known)
        except (ServiceRefused, ConfigError):  # it is about something else, or nobody here has the key
            return None
        ready.files.renewed += renewed
        contents, config = await io.call(written, request, ready.origin)
        return replace(ready, request=request, contents=contents, config=config, mended=True)

    async def _released(self, io: Io, ready: PreparedRequest) -> None:
        await self._ledger_over(io).release(ready.reservation)
        self._tell(ready.receipt.with_codes("not_sent"), ready.asked)
        await let_go(ready.files.all, ready.scales.endpoint.account, self._accounts_over(io))

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

    # ---- what the service counts

    def count(self, request: Request, asked: Asked | None = None) -> Report:
        """As `weigh_request`, with the service's own count where it can change the verdict (`count` of the endpoint).

        A count is a call to the account's service: it takes a key, and where media are counted too it sends them. What
        was asked, and how far the answer is to be trusted, is the report's `counted`; a count that failed is there as
        well, and refuses the request only under `on_failure: reject`. The same content is asked about once.

        Files of the request that are gone are uploaded again first, however long that takes: the request itself will
        need them. A file that nobody here can bring back refuses it.

        Raises:
            ConfigError: no such endpoint, no key where its account says it is, or no place to remember uploads.
            InputError: a medium cannot be read any more, or a media resolution there is none of.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        return run(self._counted(request, asked, self._io))

    async def acount(self, request: Request, asked: Asked | None = None) -> Report:
        """As `count`, beside the event loop. Within `async with`, or the connections stay open."""
        return await self._counted(request, asked, self._async_io)

    async def _counted(self, request: Request, asked: Asked | None, io: Io) -> Report:
        from weighlock.counting import counted

        scales = self._scales_for(request, asked)
        report, sent = await io.call(self._weighed_request, request, scales)
        return await counted(report, sent, scales, self._accounts_over(io), (asked or Asked()).tenant)

    def _accounts_over(self, io: Io) -> Accounts:
        from weighlock.accounts import Accounts

        known = self._accounts.get(id(io))
        return known or self._accounts.setdefault(id(io), Accounts(self.settings, io, self._uploads))

    @property
    def store(self) -> Store:
        """Where its budgets are kept, opened when it is first needed.

        Raises:
            ConfigError: it may not be where the settings have it.
        """
        from weighlock.budgeting import store_of

        with self._opening:
            if self._store is None:
                self._store = store_of(self.settings)
            return self._store

    def _ledger_over(self, io: Io) -> Ledger:
        from weighlock.budgets.ledger import Ledger

        if (known := self._ledgers.get(id(io))) is None:
            known = Ledger(io, self.store, on_failure=self.settings.state.on_failure)
            known = self._ledgers.setdefault(id(io), known)
        return known

    def _budgets(self, passage: Passage) -> Sequence[Budget]:
        if not passage.holds:
            return ()
        from weighlock.budgeting import budgets_for

        return budgets_for(self.settings, passage.scales.endpoint.name, passage.asked.tenant, passage.session)

    def _tell(self, receipt: Receipt | None, asked: Asked) -> None:
        """Whoever wants to know. What goes wrong there is not the request's."""
        if receipt is None or not self._listeners:
            return
        event = ended(receipt, tenant=asked.tenant, session=session_hash(asked), hashed=self._hashes)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener of weighlock's events failed; the request goes on")

    def _uploads(self) -> Registry:
        """What is remembered of uploads, opened when it is first needed."""
        from weighlock.accounts import registry_of

        with self._opening:
            if self._registry is None:
                self._registry = registry_of(self.settings)
            return self._registry


def _said(
    asked: Asked | None, model: str | None, endpoint: str | None, tenant: str | None, session: str | None
) -> Asked:
    """What a call says, and where it is silent the block of code around it."""
    asked, around = asked or Asked(), whose()
    own = None if asked.tenant == DEFAULT_TENANT else asked.tenant
    return replace(
        asked,
        model=model or asked.model,
        endpoint=endpoint or asked.endpoint or around.endpoint,
        tenant=tenant or own or around.tenant or DEFAULT_TENANT,
        session=session or asked.session or around.session,
    )


def check(
    parts: Parts,
    *,
    text: str | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    backend: Backend | str | None = None,
    controls: Controls | None = None,
    clip: Clip | str | None = None,
    output_tokens: int | None = None,
    on: date | None = None,
    config: Path | None = None,
) -> Report:
    """Weighs media as one request, with the settings the command line would use. See `Preflight.check`."""
    with Preflight.from_config(config) as preflight:
        return preflight.check(
            parts,
            text=text,
            endpoint=endpoint,
            model=model,
            backend=backend,
            controls=controls,
            clip=clip,
            output_tokens=output_tokens,
            on=on,
        )
