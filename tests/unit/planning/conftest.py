from __future__ import annotations

from datetime import date

import pytest

from weighlock.request import Backend
from weighlock.rules import ModelRules, RuleBook

DAY = date(2026, 11, 30)


@pytest.fixture(scope="session")
def book() -> RuleBook:
    return RuleBook.packaged()


@pytest.fixture
def rules(book: RuleBook) -> ModelRules:
    return book.for_model("gemini-3.8-flash", Backend.DEVELOPER, DAY)


@pytest.fixture
def old_rules(book: RuleBook) -> ModelRules:
    return book.for_model("gemini-2.5-flash", Backend.DEVELOPER, DAY)
