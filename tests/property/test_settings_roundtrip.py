"""Whatever an operator may say survives being written down and read again."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weighlock.errors import ConfigError
from weighlock.settings import dump, load, read
from weighlock.settings.text import Document, dump_yaml, read_yaml

# Printable text, without what YAML itself forbids in a stream.
WORDS = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=20)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}(_[a-z0-9]{1,4}){0,2}", fullmatch=True).filter(lambda name: name != "default")
COUNTS = st.none() | st.integers(0, 10**12)
MIMES = st.none() | st.dictionaries(st.sampled_from(["video/*", "audio/wav", "image/x-png", "application/pdf"]), COUNTS)
USD = st.none() | st.decimals(0, 10**6, places=6)
TOKENS = st.none() | st.dictionaries(st.sampled_from(["text", "image", "video", "audio", "document"]), COUNTS)


def sections(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


FRACTION = st.none() | st.decimals("0.01", 1, places=2)
ROLLING = sections(cost_usd=USD, prompt_tokens=COUNTS, tokens=TOKENS, requests=COUNTS, warn_at=FRACTION)
WINDOW = st.none() | st.builds(
    lambda limits, zone: {**limits, **zone}, ROLLING, sections(timezone=st.sampled_from(["UTC", "Europe/Berlin"]))
)
WINDOWS = st.none() | st.builds(
    lambda calendar, rolling: {**calendar, **rolling},
    sections(minute=WINDOW, hour=WINDOW, day=WINDOW, month=WINDOW),
    st.dictionaries(st.sampled_from(["rolling 60s", "rolling 3600s"]), st.none() | ROLLING, max_size=2),
)
LEVELS = st.sampled_from(["low", "medium", "high", "ultra_high"])
STILL = st.none() | st.builds(lambda level: {"apply": "always", "resolution": level}, LEVELS)
CLIPS = st.builds(lambda way, length: f"{way} {length}s", st.sampled_from(["first", "last"]), st.integers(1, 9999)) | (
    st.builds(lambda start, length: f"{start}s-{start + length}s", st.integers(0, 99), st.integers(1, 99))
    | st.builds(lambda length, instant: f"{length}s around {instant}s", st.integers(1, 99), st.integers(0, 9999))
)
MOVING = st.none() | st.builds(
    lambda rest: {"apply": "always", **rest},
    sections(
        resolution=LEVELS,
        clip=CLIPS,
        fps=st.none() | st.decimals("0.01", 24, places=3),
        content=st.sampled_from(["screen", "talk", "motion"]),
        cut=st.sampled_from(["exact", "copy"]),
    ),
)
ENDPOINT = sections(
    account=st.sampled_from(["developer", "elsewhere"]),
    owner=st.none() | WORDS,
    mode=st.sampled_from(["observe", "enforce"]),
    on_exceed=st.sampled_from(["shape", "reject", "warn"]),
    on_unknown_model=st.sampled_from(["high", "reject"]),
    on_unknown_price=st.sampled_from(["reject", "ignore"]),
    mime_mismatch=st.sampled_from(["correct", "reject"]),
    tool_media=st.sampled_from(["filter", "relocate", "reject"]),
    base64_in_tool_text=st.sampled_from(["lift", "note", "keep"]),
    output_tokens=st.none() | sections(expected=COUNTS),
    count=st.none()
    | sections(
        when=st.none() | st.sampled_from(["auto", "always", "off"]),
        timeout_s=st.none() | st.decimals("0.1", 60, places=1),
        on_failure=st.none() | st.sampled_from(["estimate", "reject"]),
    ),
    limits=st.none() | sections(prompt_tokens=COUNTS, cost_usd=USD, media_parts=COUNTS, bytes=COUNTS, tokens=TOKENS),
    windows=WINDOWS,
    session=st.none() | sections(cost_usd=USD, prompt_tokens=COUNTS, warn_at=FRACTION),
    media=st.none() | sections(image=STILL, document=STILL, video=MOVING),
    history=st.none()
    | sections(
        keep_media=COUNTS,
        per_tool=st.none() | st.booleans(),
        older=st.none() | st.sampled_from(["note", "low"]),
        batch=st.none() | st.integers(1, 1000),
    ),
    labels=st.none() | st.dictionaries(WORDS, st.none() | WORDS, max_size=3),
)
FILES = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "accounts": st.just(
            {
                "developer": {"backend": "developer", "api_key_env": "KEY"},
                "elsewhere": {"backend": "vertex", "project": "1234", "location": "eu"},
            }
        ),
        "default": ENDPOINT.map(lambda values: {"account": "developer", "model": "gemini-x", **values}),
        "endpoints": st.dictionaries(NAMES, st.none() | ENDPOINT, max_size=4),
    },
    optional={
        "safety": sections(
            confinement=st.sampled_from(["best_effort", "required"]),
            workers=st.integers(1, 256),
            max=sections(file=st.integers(0, 10**12), duration_s=st.integers(1, 10**6), pages=st.integers(1, 10**6)),
        ),
        "uploads": sections(
            inline_below=sections(developer=COUNTS, vertex=COUNTS, pdf=COUNTS, mime=MIMES),
            keep_copies=st.none() | st.sampled_from(["off", "7d", "0s", "until_deleted"]) | st.integers(0, 10**9),
            copies_cap=COUNTS,
            delete_remote=st.none() | st.sampled_from(["at_expiry", "after_request"]),
            quota=COUNTS,
            give_up_after=st.none() | st.integers(1, 10**6),
        ),
        "tenants": st.dictionaries(
            st.sampled_from(["each", "acme", "Some.Body@else-where"]), st.none() | sections(windows=WINDOWS), max_size=3
        ),
        "overall": st.none() | sections(windows=WINDOWS),
        "state": sections(
            store=st.sampled_from(["sqlite", "memory"]),
            on_failure=st.none() | st.sampled_from(["reject", "admit"]),
            dir=st.none() | st.just("here"),
        )
        | st.just({"store": "redis", "url_env": "BUDGETS_URL"}),
        "observe": sections(decision_log=st.none() | st.sampled_from(["off", "stdout", "log.jsonl"])),
        "encoding": sections(
            video=st.none()
            | sections(
                preset=st.sampled_from(["ultrafast", "medium"]),
                crf=st.none() | st.integers(0, 51),
            ),
            audio=st.none() | sections(bits_per_channel=st.none() | st.integers(32_000, 160_000)),
        ),
        "pricing": sections(discount=st.decimals(0, "0.99", places=2)),
    },
)


@given(FILES)
def test_settings_written_down_and_read_again_are_the_same(document: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weighlock.yaml"
        path.write_text(dump_yaml(document), encoding="utf-8")
        settings = load(path, environ={})
        path.write_text(dump(settings), encoding="utf-8")

        assert load(path, environ={}) == settings


KEYS = st.sampled_from(
    [
        "version",
        "include",
        "accounts",
        "default",
        "endpoints",
        "rules",
        "safety",
        "pricing",
        "uploads",
        "inline_below",
        "keep_copies",
        "state",
        "developer",
        "backend",
        "x",
        "limits",
        "tokens",
        "video",
        "windows",
        "day",
        "rolling 60s",
        "session",
        "tenants",
        "overall",
        "media",
        "models",
        "overrides",
        "labels",
        "max",
        "overlay",
        "model",
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | WORDS,
    lambda below: st.lists(below, max_size=2) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=25,
)
VARIABLES = st.dictionaries(
    st.lists(KEYS, min_size=1, max_size=4).map(lambda keys: "WEIGHLOCK_" + "__".join(keys).upper()), WORDS, max_size=2
)


@given(st.dictionaries(KEYS, JUNK, max_size=6), VARIABLES)
def test_whatever_the_file_and_the_variables_hold_a_mistake_is_a_config_error(
    values: dict[str, Any], environ: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weighlock.yaml"
        path.write_text(dump_yaml({"version": 1, **values}), encoding="utf-8")
        try:
            settings = load(path, environ=environ, cwd=Path(folder))
        except ConfigError as error:
            mistakes = error.figures["problems"]
        else:
            mistakes = None
            assert settings.default.model

        assert mistakes is None or all(mistakes)


ANYTHING = st.text(max_size=8) | st.sampled_from(["1e999999999", "\x1b[31m", "[", "*", "&a", "9" * 400, "a" * 1_000])


@given(st.dictionaries(KEYS | ANYTHING, JUNK | ANYTHING | st.dictionaries(KEYS | ANYTHING, ANYTHING), max_size=5))
def test_whatever_the_file_holds_its_mistakes_are_short_lines_a_terminal_can_show(values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weighlock.yaml"
        path.write_text(dump_yaml({"version": 1, **values}), encoding="utf-8")
        problems = read(path, environ={}, cwd=Path(folder)).problems

    assert all(problem.isprintable() and len(problem) < 700 for problem in problems)


SCALARS = (
    st.none() | st.booleans() | st.integers(1 - 10**18, 10**18 - 1) | st.decimals(-(10**6), 10**6, places=4) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3)
)


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5))
def test_any_document_written_as_yaml_reads_back_to_itself(values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.yaml"
        path.write_text(dump_yaml(values), encoding="utf-8")
        document = Document()
        read_yaml(path, document)

    assert not document.problems
    assert document.values == values


@given(st.text())
def test_reading_any_text_never_raises(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.yaml"
        path.write_text(text, encoding="utf-8")
        document = Document()
        read_yaml(path, document)

    assert isinstance(document.values, dict)


def test_decimals_of_every_form_are_plain_numbers_in_yaml() -> None:
    assert dump_yaml({"a": Decimal("1E+3"), "b": Decimal("0.10"), "c": Decimal("1E-7")}) == (
        "a: 1000\nb: 0.10\nc: 0.0000001\n"
    )
