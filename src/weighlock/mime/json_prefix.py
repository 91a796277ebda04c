"""Whether a text begins like JSON, though only its first part is at hand. Linear, without recursion."""

from __future__ import annotations

import re
from enum import Enum

_MAX_TOKENS = 256
_TOKEN = re.compile(
    r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\\x00-\x1f]|\\.)*")'
    r"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.]))"
)
_CUT_TOKEN = re.compile(r'[ \t\r\n]*(?:"(?:[^"\\\x00-\x1f]|\\.)*\\?|-?[\d.eE+-]*|[a-z]{0,5})$')


class Scan(Enum):
    WHOLE = "one value, complete"
    LINES = "several values, one a line"
    CUT = "one value, which ends too early"
    LONG = "one value, longer than looked at"


class _Expect(Enum):
    VALUE = 0
    VALUE_OR_END = 1
    KEY = 2
    KEY_OR_END = 3
    COLON = 4
    COMMA_OR_END = 5


def scan(content: str) -> Scan | None:
    """How an object or array at the beginning of `content` goes on; `None` when it is not JSON."""
    nesting: list[str] = []
    expect = _Expect.VALUE
    at = 0
    for number in range(_MAX_TOKENS):
        token = _TOKEN.match(content, at)
        if token is None:
            return Scan.CUT if number > 1 and _CUT_TOKEN.match(content, at) else None
        mark, string = token[1], token[2]
        at = token.end()
        if mark in {"{", "["} and expect in {_Expect.VALUE, _Expect.VALUE_OR_END}:
            nesting.append(mark)
            expect = _Expect.KEY_OR_END if mark == "{" else _Expect.VALUE_OR_END
        elif mark in {"}", "]"} and _closes(mark, nesting, expect):
            nesting.pop()
            expect = _Expect.COMMA_OR_END
            if not nesting:
                return _after(content, at)
        elif mark == "," and expect is _Expect.COMMA_OR_END:
            expect = _Expect.KEY if nesting[-1] == "{" else _Expect.VALUE
        elif mark == ":" and expect is _Expect.COLON:
            expect = _Expect.VALUE
        elif string and expect in {_Expect.KEY, _Expect.KEY_OR_END}:
            expect = _Expect.COLON
        elif mark is None and expect in {_Expect.VALUE, _Expect.VALUE_OR_END}:
            expect = _Expect.COMMA_OR_END
        else:
            return None
    return Scan.LONG


def _closes(mark: str, nesting: list[str], expect: _Expect) -> bool:
    if not nesting:
        return False
    if mark == "}":
        return nesting[-1] == "{" and expect in {_Expect.KEY_OR_END, _Expect.COMMA_OR_END}
    return nesting[-1] == "[" and expect in {_Expect.VALUE_OR_END, _Expect.COMMA_OR_END}


def _after(content: str, at: int) -> Scan | None:
    rest = content[at:].lstrip(" \t")
    if not rest.strip():
        return Scan.WHOLE
    return Scan.LINES if rest[0] in "\r\n" and rest.lstrip()[0] in "{[" else None
