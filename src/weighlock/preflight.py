"""The order of steps in front of a model request. So far: identify → screen → probe → check → count → admit
(`check`, `count`), → plan (`fit`) → transform (`carry_out`). Without `count` nothing leaves the machine.

Nothing here decides or measures: each step asks the room that does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from weighlock.io import AsyncIo, Io, SyncIo, run
from weighlock.report import Report
from weighlock.request import Backend, Request
from weighlock.rules import Controls, RuleBook
from weighlock.scales import Asked
from weighlock.settings import Clip, Settings, load
from weighlock.weigher import Parts, Weigher

if TYPE_CHECKING:
    from weighlock.accounts import Accounts
    from weighlock.uploads.registry import Registry


class Preflight(Weigher):
    """Weighs media. Thread-safe; starts the confined worker on first need; close it, or use it in a `with`.

    `preload=False` puts off loading the prober's code and the price lists until they are needed. It suits a command
    that may need neither; in a threaded program a fork in the middle of such an import would hang the child. `clock`
    tells seconds, for deadlines; the two `Io`s wait for the service, in the blocking methods and in the async ones.
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
    ) -> None:
        super().__init__(settings, rules=rules, preload=preload, clock=clock)
        self._io, self._async_io = io or SyncIo(), async_io or AsyncIo()
        self._accounts: dict[int, Accounts] = {}
        self._registry: Registry | None = None
        self._opening = threading.Lock()

    @classmethod
    def from_config(cls, path: Path | None = None) -> Self:
        """From a settings file, found as the command line finds it.

        Raises:
            ConfigError: the file is missing or wrong.
        """
        return cls(load(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._async_io.close()
        self.close()

    def close(self) -> None:
        """Ends the worker and the connections of the blocking methods. A later call starts new ones."""
        super().close()
        if self._registry is not None:
            self._registry.close()
        run(self._io.close())

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

    async def count_async(self, request: Request, asked: Asked | None = None) -> Report:
        """As `count`, beside the event loop. Within `async with`, or the connections stay open."""
        return await self._counted(request, asked, self._async_io)

    async def _counted(self, request: Request, asked: Asked | None, io: Io) -> Report:
        from weighlock.counting import counted

        scales = self._scales_for(request, asked)
        report, sent = await io.call(self._weighed_request, request, scales)
        return await counted(report, sent, scales, self._accounts_over(io), (asked or Asked()).tenant)

    def _accounts_over(self, io: Io) -> Accounts:
        from weighlock.accounts import Accounts

        return self._accounts.setdefault(id(io), Accounts(self.settings, io, self._uploads))

    def _uploads(self) -> Registry:
        """What is remembered of uploads, opened when it is first needed."""
        from weighlock.accounts import registry_of

        with self._opening:
            if self._registry is None:
                self._registry = registry_of(self.settings)
            return self._registry


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
