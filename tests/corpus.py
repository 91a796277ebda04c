"""The corpus of real files: where it is, what its manifest says, and what its absence means."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

CORPUS = Path(os.environ.get("WEIGHLOCK_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))


@cache
def manifest() -> list[dict[str, Any]]:
    """One row a file. None where there is no corpus."""
    file = CORPUS / "manifest.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


def needed() -> list[dict[str, Any]]:
    """The manifest; without it the test is skipped, and in CI, where nothing may go unproved, fails."""
    return manifest() or lacking(f"no corpus at {CORPUS}; set WEIGHLOCK_CORPUS")


def lacking(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
