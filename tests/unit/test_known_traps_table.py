"""The table of known traps: every trap once, every test it names there, four in five tested."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests/golden/known_traps.md"
IDS = {
    *("FIL-003", "FIL-020"),
    *(f"MIM-{n:03}" for n in (*range(1, 13), *range(17, 25))),
    *(f"TUL-{n:03}" for n in (1, 2, 4, *range(6, 15))),
}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


class Row(NamedTuple):
    trap: str
    goes_wrong: str
    answer: str
    status: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        return TEST.findall(self.answer)


def rows() -> list[Row]:
    lines = [line for line in TABLE.read_text().splitlines() if re.match(r"\| [A-Z]{3}-\d{3} \|", line)]
    return [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions a file defines, unread and unrun."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_trap_has_exactly_one_row() -> None:
    listed = [row.trap for row in rows()]

    assert len(IDS) == 34
    assert sorted(listed) == sorted(IDS)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.trap)
def test_a_row_names_tests_that_exist_or_a_reason(row: Row) -> None:
    assert row.goes_wrong
    assert row.status
    if row.tests:
        assert re.sub(TEST, "", row.answer).replace("<br>", "") == ""
        assert [(path, name) for path, name in row.tests if name not in functions_of(path)] == []
    else:
        assert row.answer.startswith("not ours")
        assert "\n" not in row.answer


def test_at_least_four_traps_in_five_are_tested() -> None:
    assert sum(bool(row.tests) for row in rows()) >= 0.8 * len(IDS)
