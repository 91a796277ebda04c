"""Reading, screening and writing request bodies, against the standard library reading and writing the same JSON."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from pathlib import Path

import media
from benchmarks.harness import Comparison, Operations, medians, timed
from weighlock.converters import rest_json
from weighlock.encoded import encode
from weighlock.planning.rewrite import rewritten
from weighlock.planning.screen import Policy, screen
from weighlock.request import Backend
from weighlock.rules import ModelRules, RuleBook

INLINE_BYTES = 15_000_000
"""20 MB as base64."""
TURNS = 400
TURN_CHARS = (500, 1_500, 4_000)
"""Characters a turn: short chat, an agent's ordinary turn, long answers and tool output."""
WORDS = "The build failed again after the last change; the log says nothing useful about why. "


def requests(folder: Path, rounds: int) -> Iterator[Comparison]:
    """A large inline medium, kept, relabelled and lifted from a tool's text; then long histories of text."""
    rules = RuleBook.packaged().for_model("gemini-3.8-flash", Backend.DEVELOPER, date(2026, 11, 30))
    through = partial(_through, rules=rules)
    for what, body in inline_bodies().items():
        operations: Operations = {
            "json.loads + json.dumps": partial(_standard, body),
            "parse + screen + emit": partial(through, body),
        }
        yield Comparison(
            task=f"20 MB inline, {what}",
            unit="ms",
            baseline="json.loads + json.dumps",
            medians=medians(timed(operations, rounds=rounds * 3), scale=1000),
            goals={"parse + screen + emit": 1.0},
        )
        yield Comparison(
            task=f"20 MB inline, {what}: peak memory",
            unit="MiB",
            baseline="json.loads + json.dumps",
            medians={name: _peak_mib(operation) for name, operation in operations.items()},
            goals={"parse + screen + emit": 2.5},
        )
    for chars in TURN_CHARS:
        history = text_history(TURNS, chars)
        yield Comparison(
            task=f"{TURNS} turns of text, {chars:,} characters each",
            unit="ms",
            baseline="json.loads",
            medians=medians(
                timed(
                    {"json.loads": partial(json.loads, history), "parse + screen + emit": partial(through, history)},
                    rounds=rounds * 20,
                ),
                scale=1000,
            ),
            goals={"parse + screen + emit": 3.0},
        )


def inline_bodies() -> dict[str, bytes]:
    """Bodies of 20 MB: nothing to do; a wrong label; a picture as base64 text in a tool's answer."""
    data = encode(_large_picture())
    ask = {"role": "user", "parts": [{"text": "what is this?"}, _blob("image/png", data)]}
    wrong = {"role": "user", "parts": [{"text": "what is this?"}, _blob("image/jpg", data)]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "shot", "args": {}}}]}
    told = {"functionResponse": {"name": "shot", "response": {"result": f"data:image/png;base64,{data}"}}}
    return {
        "kept": _body(ask),
        "relabelled": _body(wrong),
        "lifted from a tool's text": _body(call, {"role": "user", "parts": [told]}),
    }


def text_history(turns: int, chars: int) -> bytes:
    text = (WORDS * (chars // len(WORDS) + 1))[:chars]
    roles = ("user", "model")
    return _body(*({"role": roles[at % 2], "parts": [{"text": text}]} for at in range(turns)))


def _through(body: bytes, *, rules: ModelRules) -> bytes:
    parsed = rest_json.parse(body)
    screening = screen(parsed.request, rules, Policy())
    return rest_json.emit(rewritten(parsed.request, screening), parsed)


def _standard(body: bytes) -> str:
    return json.dumps(json.loads(body))


def _large_picture() -> bytes:
    """A PNG header before 15 MB that no base64 shortcut could guess."""
    end = media.png_chunk(b"IEND", b"")
    head = media.png_header((1280, 720)).removesuffix(end)
    return head + media.png_chunk(b"IDAT", os.urandom(INLINE_BYTES)) + end


def _blob(mime: str, data: str) -> dict[str, object]:
    return {"inlineData": {"mimeType": mime, "data": data}}


def _body(*contents: Mapping[str, object]) -> bytes:
    return json.dumps({"contents": contents}).encode()


def _peak_mib(operation: Callable[[], object]) -> float:
    """What Python allocates at most at once while it runs, beyond the body itself."""
    tracemalloc.start()
    try:
        operation()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
