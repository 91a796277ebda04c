"""The table of behaviours is held against the code that reproduces them and the tests that prove it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import weighlock.emulator
from weighlock.emulator.behaviours import behaviours
from weighlock.emulator.faults import Kind

CODE = Path(weighlock.emulator.__file__).parent
TESTS = Path(__file__).parents[2]


def marked(folder: Path, mark: str) -> Iterator[str]:
    """Names in every `@mark("…", …)` of a folder."""
    for path in folder.rglob("*.py"):
        if mark not in (text := path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == mark:
                yield from (
                    one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )


def test_every_behaviour_is_in_the_code_and_every_mark_in_the_table() -> None:
    in_code = {*marked(CODE, "reproduces"), *Kind}
    figures = {name for name, one in behaviours().items() if one.figures}

    assert in_code - set(behaviours()) == set()
    assert set(behaviours()) - in_code - figures == set()


def test_every_behaviour_is_proved() -> None:
    proved = set(marked(TESTS, "proves"))

    assert proved == set(behaviours())


def test_every_behaviour_says_what_it_does_and_who_says_so_or_is_assumed() -> None:
    for one in behaviours().values():
        assert one.does
        assert all("http" in source for source in one.sources)
    assumed = {name for name, one in behaviours().items() if one.assumed}
    assert assumed == {
        "absurd-retry-delay",
        "implicit-cache",
        "no-key",
        "size-declared",
        "two-writers",
        "unknown-field",
        "wrong-key",
    }
