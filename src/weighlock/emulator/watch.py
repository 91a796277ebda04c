"""Around the routes: every request is recorded, and the faults in force befall some."""

from __future__ import annotations

import contextlib

from weighlock.emulator.exchange import App, Exchange, Lost, Receive, Scope, Send
from weighlock.emulator.service import Service
from weighlock.emulator.struck import Struck

ADMIN = "/emulator"


class Watch:
    """An ASGI app around another."""

    def __init__(self, app: App, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(ADMIN):
            await self.app(scope, receive, send)
        else:
            await self._watched(Exchange(self.service, scope, receive, send))

    async def _watched(self, exchange: Exchange) -> None:
        recorded = exchange.recorded
        self.service.journal.add(recorded)
        happening = self.service.faults.happening(recorded.operation, exchange.length)
        if happening is None:
            await self.app(exchange.scope, exchange.receive, exchange.send)
            return
        recorded.fault = happening.name
        with contextlib.suppress(Lost):
            await Struck(exchange, happening, self.app).run()
