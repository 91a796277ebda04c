"""A Gemini API on loopback, one for each file of tests. A file that wants another has its own of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from emulated import Wire
from weighlock.emulator import Emulator


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator(processing_s=0) as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    """As it was when it began."""
    running.reset()
    return running


@pytest.fixture
def dialled(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """It is where the environment says the service is."""
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    return emulator


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    with closing(Wire(emulator)) as known:
        yield known
