"""Runs the emulator on loopback, inside a test or beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from weighlock.emulator.accounts import Accounts, Project
from weighlock.emulator.app import application
from weighlock.emulator.clock import Clock
from weighlock.emulator.faults import Faults
from weighlock.emulator.files import Files
from weighlock.emulator.journal import Journal
from weighlock.emulator.script import Script
from weighlock.emulator.service import Service
from weighlock.emulator.transport import ServerThread, loopback_socket
from weighlock.emulator.weighing import Remote
from weighlock.rules import RuleBook


class Emulator:
    """A Gemini API on 127.0.0.1, as long as its `with` lasts. No key is checked and nothing is sent anywhere.

    Args:
        port: 0 takes any free one.
        rules: What it bills by; the packaged rules when left out.
        keys: API keys (or bearer tokens) and their projects; when left out every key is good and a project of its own.
        keep_bytes: Whether uploaded bytes are kept, on disk, to be weighed; else their hash and size only, and they
            weigh nothing.
        processing_s: How long an uploaded film is PROCESSING.
        seed: Of the faults.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        rules: RuleBook | None = None,
        keys: Mapping[str, Project] | None = None,
        keep_bytes: bool = True,
        processing_s: float = 0.2,
        seed: int = 0,
    ) -> None:
        self._port, self._keep_bytes = port, keep_bytes
        self._closing = ExitStack()
        self._service = Service(rules=rules or RuleBook.packaged(), keys=keys, processing_s=processing_s, seed=seed)
        self.base_url = ""
        """`http://127.0.0.1:…`, for `HttpOptions(base_url=…)`; empty until it runs."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns once it answers.

        Raises:
            OSError: the port is taken.
        """
        listening = loopback_socket(self._port)
        self.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        if self._keep_bytes:
            folder = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="weighlock-emulator-"))
            self._service.uploads.folder = Path(folder)
        server = ServerThread(application(self._service), listening)
        server.start()
        self._closing.callback(self._service.close)
        self._closing.callback(server.stop)

    def stop(self) -> None:
        """Breaks off what is open and forgets everything."""
        self._closing.close()

    @property
    def clock(self) -> Clock:
        """Its time; `advance(seconds)` moves it."""
        return self._service.clock

    @property
    def faults(self) -> Faults:
        """`set(name, rate=, count=, on=, …)`, `seed`, `clear()`."""
        return self._service.faults

    @property
    def requests(self) -> Journal:
        """What was asked of it."""
        return self._service.journal

    @property
    def script(self) -> Script:
        """What the model says: `queue(…)`, `when(…)`."""
        return self._service.script

    @property
    def files(self) -> Files:
        """What is on the Files API's shelf."""
        return self._service.files

    @property
    def accounts(self) -> Accounts:
        """`of_key(key)` is its project, whose quotas may be changed."""
        return self._service.accounts

    @property
    def remotes(self) -> dict[str, Remote]:
        """What stands behind `https://` and `gs://` addresses."""
        return self._service.scale.remotes

    @property
    def rules(self) -> RuleBook:
        """What it bills by. Another book makes the bills drift."""
        return self._service.rules

    @rules.setter
    def rules(self, rules: RuleBook) -> None:
        self._service.rules = rules

    def lay_over(self, overlay: str) -> None:
        """Lays a rule file's text (TOML) over the rules.

        Raises:
            ConfigError: it is none.
        """
        self._service.lay_over(overlay.encode())

    def reset(self) -> None:
        """Files, script, faults, cache and requests are forgotten; clock, projects and rules stay."""
        self._service.reset()
