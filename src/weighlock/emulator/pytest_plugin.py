"""A pytest fixture: `pytest_plugins = ["weighlock.emulator.pytest_plugin"]` in a `conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from weighlock.emulator.run import Emulator


@pytest.fixture
def gemini_emulator() -> Iterator[Emulator]:
    """A fresh Gemini API on loopback for one test. See `Emulator`."""
    with Emulator() as emulator:
        yield emulator
