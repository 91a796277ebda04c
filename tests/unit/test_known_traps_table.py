"""The tables of known traps: every trap once, every test they name there, four in five tested."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
IDS: dict[str, set[str]] = {
    "known_traps.md": {
        *("FIL-003", "FIL-020"),
        *(f"MIM-{n:03}" for n in (*range(1, 13), *range(17, 25))),
        *(f"TUL-{n:03}" for n in (1, 2, 4, *range(6, 15))),
    },
    "known_traps_media.md": {
        *(f"AUD-{n:03}" for n in (1, 2, 3, 11, 13, 14, 15, 17)),
        *(f"FIL-{n:03}" for n in (16, 17, 18)),
        *(f"IMG-{n:03}" for n in (*range(2, 9), *range(10, 13))),
        *("MIM-015", "MIM-016", "PDF-001", "PDF-003", "TOK-007", "TOK-024"),
        *(f"VID-{n:03}" for n in (2, 3, 10, 14, 15, 16, *range(18, 26))),
    },
    "known_traps_service.md": {
        *(f"FIL-{n:03}" for n in (2, *range(5, 16), 19, *range(22, 30), *range(31, 37))),
        *(f"TOK-{n:03}" for n in (2, 3, *range(13, 18), 21, 28, *range(46, 49))),
    },
    "known_traps_budgets.md": {
        *(f"BUD-{n:03}" for n in range(2, 9)),
        *(f"TOK-{n:03}" for n in (1, *range(4, 7), *range(8, 13), 19, 20, 22, *range(25, 28), *range(30, 33))),
        *(f"TOK-{n:03}" for n in (*range(35, 38), *range(39, 46))),
    },
}
HOW_MANY = {
    "known_traps.md": 34,
    "known_traps_media.md": 41,
    "known_traps_service.md": 39,
    "known_traps_budgets.md": 35,
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


def rows(table: str) -> list[Row]:
    text = (ROOT / "tests/golden" / table).read_text()
    lines = [line for line in text.splitlines() if re.match(r"\| [A-Z]{3}-\d{3} \|", line)]
    return [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions a file defines, unread and unrun."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("table", IDS)
def test_every_trap_has_exactly_one_row(table: str) -> None:
    listed = [row.trap for row in rows(table)]

    assert len(IDS[table]) == HOW_MANY[table]
    assert sorted(listed) == sorted(IDS[table])


@pytest.mark.parametrize("row", [row for table in IDS for row in rows(table)], ids=lambda row: row.trap)
def test_a_row_names_tests_that_exist_or_a_reason(row: Row) -> None:
    assert row.goes_wrong
    assert row.status
    if row.tests:
        assert re.sub(TEST, "", row.answer).replace("<br>", "") == ""
        assert [(path, name) for path, name in row.tests if name not in functions_of(path)] == []
    else:
        assert row.answer.startswith("not ours")
        assert "\n" not in row.answer


@pytest.mark.parametrize("table", IDS)
def test_at_least_four_traps_in_five_are_tested(table: str) -> None:
    assert sum(bool(row.tests) for row in rows(table)) >= 0.8 * len(IDS[table])
