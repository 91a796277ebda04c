"""Settings read again while requests go on: whole, or not at all.

A file is taken to have changed when its content may have, or when its name leads to another file: a mounted
configuration is swapped by a link. Where it listens stays as it was begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from weighlock.errors import WeighlockError
from weighlock.service.served import Served
from weighlock.service.state import State
from weighlock.settings import Settings
from weighlock.written import plain

_log = logging.getLogger("weighlock")
_LOOKS_EVERY_S = 1.0
_SETTLES_S = 0.2
"""A file that is being written is left alone for so long."""
_LONGEST = 2_000


class Reloader:
    """Watches the files of the settings in force, and puts others in their place.

    Args:
        state: Holds the configuration in force.
        read: Reads the settings. Raises `ConfigError`.
        make: What serves by them, going on with what is remembered. Raises what `Preflight` does.
    """

    def __init__(self, state: State, read: Callable[[], Settings], make: Callable[[Settings], Served]) -> None:
        self._state, self._read, self._make = state, read, make
        self._asked = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Reads them now, changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        known = await self._stamps()
        while True:
            asked = await self._waited()
            found = await self._stamps()
            if not asked and found == known:
                continue
            await asyncio.sleep(_SETTLES_S)
            if not asked and await self._stamps() != found:
                continue  # it is still being written
            await self.reload()
            known = await self._stamps()

    async def reload(self) -> None:
        """Other settings in force, or the same ones and why."""
        state, io = self._state, self._state.served.io
        try:
            settings = await io.call(self._read)
            before = state.served
            kept = replace(settings.service, listen=before.serving.listen, admin=before.serving.admin)
            if kept != settings.service:
                _log.warning("service.listen and service.admin take effect at the next start")
            served = self._make(replace(settings, service=kept))
        except (WeighlockError, OSError) as error:
            state.reload_problem = plain(str(error), _LONGEST)
            _log.error("changed settings are not in force: %s", state.reload_problem)
            return
        state.served, state.reload_problem, state.reloaded_at = served, None, datetime.now(UTC)
        _log.info("changed settings are in force")
        closing = asyncio.create_task(before.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Once what served before has no call any more."""
        if self._closing:
            await asyncio.wait(self._closing)

    async def _waited(self) -> bool:
        """Whether somebody asked, rather than that it is time to look."""
        try:
            async with asyncio.timeout(_LOOKS_EVERY_S):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True

    async def _stamps(self) -> list[tuple[int, ...] | None]:
        settings = self._state.served.settings
        files = [*settings.files, *([settings.rules_overlay] if settings.rules_overlay else [])]
        return await self._state.served.io.call(lambda: [_stamp(file) for file in files])


def _stamp(file: Path) -> tuple[int, ...] | None:
    try:
        known = file.stat()
    except OSError:
        return None
    return known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns
