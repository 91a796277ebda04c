"""`Preflight`: the line in front of a request, for blocking code and for coroutines. What it does is in `line.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weighlock.context import whose
from weighlock.converters.formats import read
from weighlock.events import Ended
from weighlock.io import AsyncIo, SyncIo, run
from weighlock.line import Line
from weighlock.prepared import PreparedRequest, Receipt
from weighlock.report import Report
from weighlock.request import Backend, Request
from weighlock.rules import Controls, RuleBook
from weighlock.scales import Asked
from weighlock.settings import Clip, Settings
from weighlock.uploads.policy import DEFAULT_TENANT
from weighlock.weigher import Parts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from weighlock.budgets.hold import Store
    from weighlock.gauges import Gauges
    from weighlock.observe.sample import Sample
    from weighlock.settings import Account
    from weighlock.uploads.references import References


class Preflight(Line):
    """Weighs media. Thread-safe; starts the confined worker on first need; close it, or use it in a `with`.

    `preload=False` puts off loading the prober's code and the price lists until they are needed. It suits a command
    that may need neither; in a threaded program a fork in the middle of such an import would hang the child. `clock`
    tells seconds, for deadlines; the two `Io`s wait for the service, in the blocking methods and in the async ones.
    Each of `on_event` is told of every request once it has ended: settled, let go, or refused. It is called where the
    request is, so it should take no time; what it raises is logged. `registry` is a Prometheus registry of the host's:
    the metrics of the README's table are kept there.
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
        registry: CollectorRegistry | None = None,
    ) -> None:
        super().__init__(settings, rules=rules, preload=preload, clock=clock, on_event=on_event)
        self._io, self._async_io = io or SyncIo(), async_io or AsyncIo()
        self._gauges: Gauges | None = None
        if registry is not None:
            self._measured_in(registry)

    def _measured_in(self, registry: CollectorRegistry) -> None:
        from weighlock.observe import prometheus

        metrics = prometheus.Metrics(registry, endpoints=self.settings.endpoints, models=self.rules.models())
        self._witnesses.listen(metrics)
        registry.register(prometheus.Gauges(self.gauges))

    def gauges(self) -> Iterator[Sample]:
        """How budgets, files, rules and prices stand now. Blocks."""
        from weighlock.gauges import Gauges

        if self._gauges is None:
            self._gauges = Gauges(self.settings, self.rules, self._opened, self._io)
        return self._gauges()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._async_io.close()
        self.close()

    def close(self) -> None:
        """Ends the worker and the connections of the blocking methods. A later call starts new ones."""
        super().close()
        run(self._io.close())

    @property
    def store(self) -> Store:
        """Where its budgets are kept, opened when it is first needed.

        Raises:
            ConfigError: it may not be where the settings have it.
        """
        return self._opened.store()

    def references(self, account: Account) -> References:
        """The files an account has at the service, for coroutines.

        Raises:
            ConfigError: on Vertex, which has none; no key where the account says it is; no place for the registry.
        """
        return self._opened.accounts(self._async_io).references(account)

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
        refuses: bool = True,
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
            refuses: Whether a limit may refuse it. What is over one all the same is as light as the endpoint allows.

        Raises:
            BudgetExceeded: a limit of one request is broken, and nothing the endpoint allows brings it under.
            WindowExhausted: a window or session has no room for it now; `retry_after_s` says when.
            InputError: a medium cannot be sent as it is, or the request cannot be read.
            ConfigError: no such endpoint; no key, where files have to be uploaded.
            ServiceError: an upload failed, the budgets cannot be asked, the worker could not be started.
        """
        request, origin = read(contents, config, model=model)
        said = _said(asked, model, endpoint, tenant, session)
        return run(self._prepared(self._io, request, origin, said, holds=holds, refuses=refuses))

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
        refuses: bool = True,
    ) -> PreparedRequest:
        """As `prepare`, beside the event loop. Broken off anywhere, nothing stays held."""
        await self._async_io.turn()
        request, origin = read(contents, config, model=model)
        said = _said(asked, model, endpoint, tenant, session)
        return await self._prepared(self._async_io, request, origin, said, holds=holds, refuses=refuses)

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
        """As `settle`, beside the event loop. Broken off, it is settled all the same."""
        try:
            await self._async_io.turn()
        finally:
            receipt = await self._settled(self._async_io, ready, answer, error, partial)
        return receipt

    def mend(self, ready: PreparedRequest, error: BaseException) -> PreparedRequest | None:
        """What may be sent once more after the service refused it for a file: that file is uploaded again, and every
        reference to it is rewritten. Once a file; `None` where that is no help, and the error stands.

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
        """As `release`, beside the event loop. Broken off, nothing stays held all the same."""
        try:
            await self._async_io.turn()
        finally:
            await self._released(self._async_io, ready)

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
        return run(self._counted(self._io, request, asked))

    async def acount(self, request: Request, asked: Asked | None = None) -> Report:
        """As `count`, beside the event loop. Within `async with`, or the connections stay open."""
        return await self._counted(self._async_io, request, asked)


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
