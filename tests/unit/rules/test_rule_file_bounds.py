"""Rule files written by accident or in malice: each is one short line of complaint, at once."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from weighlock.cli.rules import rules
from weighlock.errors import ConfigError
from weighlock.media.text import TextRatios
from weighlock.rules import RuleBook
from weighlock.rules.audit import file_mistakes
from weighlock.rules.book import load

HEAD = 'generation = "gemini-3"\nchecked_on = 2026-11-30\n'
SAID = 'since = 2026-01-01\nsource = "https://example.com"\nconfidence = "measured"\n'
TEXT_RATIOS = [item.name for item in fields(TextRatios)]


def complaint(folder: Path, text: str) -> str:
    path = folder / "overlay.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        RuleBook.packaged().with_overlay(path)
    found = [str(refused.value), *file_mistakes(path)]
    assert all(line.isprintable() and len(line) < 500 for line in found)
    return found[0]


@pytest.mark.parametrize("dearest", ["5", '"x"', "true", "[]", "{}", "[5]", "[[]]", "[{dearest = [{flat = 1}]}]"])
def test_the_dearest_of_what_is_no_list_of_shapes_is_told(tmp_path: Path, dearest: str) -> None:
    text = f"{HEAD}[[image]]\nlikely = {{dearest = {dearest}}}\n{SAID}"

    assert "image[1].likely: expected {flat = n}" in complaint(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'9' * 5_000}",
        f"a = {'[' * 900}{']' * 900}",
        f"a = {'{b=' * 600}1{'}' * 600}",
        f"{'a.' * 100_000}a = 1",
        "\n".join(f"{'a.' * 900}a{at} = 1" for at in range(20)),
        f"{'[' * 900}",
        f"generation{'.a' * 900} = 1",
        f"title{'.a' * 900} = 1",
        f"models{'.a' * 900} = 1",
        f"checked_on{'.a' * 900} = 1",
    ],
    ids=lambda text: text[:16],
)
def test_what_is_too_long_or_too_deep_is_told(tmp_path: Path, text: str) -> None:
    assert complaint(tmp_path, f"{text}\n{HEAD}")


HUGE = ("9" * 19, "9" * 400, "1" + "0" * 13)


@pytest.mark.parametrize("number", HUGE, ids=["19 digits", "400 digits", "14 digits"])
@pytest.mark.parametrize(
    "figure",
    [
        "[[image]]\nlikely = {{flat = {0}}}\n",
        "[[image]]\nlikely = {{grid = {0}}}\n",
        "[[image]]\nlikely = {{tiles = {0}, whole_px = 1, min_side_px = 1, max_side_px = 1}}\n",
        '[[audio]]\nrounding = "ceil"\ntokens_per_s = {0}\n',
        '[[audio]]\nrounding = "ceil"\ntokens_per_s = 1\nlow_tokens_per_s = {0}\n',
        '[[limits]]\nlimit = "images"\nvalue = {0}\n',
    ],
)
def test_a_count_past_all_reason_is_told(tmp_path: Path, figure: str, number: str) -> None:
    assert "at most 1,000,000,000,000" in complaint(tmp_path, HEAD + figure.format(number) + SAID)


@pytest.mark.parametrize("number", ["1e300", "1e7", "inf", "nan", "9" * 400], ids=lambda number: number[:8])
@pytest.mark.parametrize("key", ["default_fps", "max_fps", *TEXT_RATIOS])
def test_a_ratio_past_all_reason_is_told(tmp_path: Path, key: str, number: str) -> None:
    keys = ("default_fps", "max_fps") if key.endswith("_fps") else TEXT_RATIOS
    section = '[[sampling]]\nrounding = "floor"\n' if key.endswith("_fps") else "[[text]]\n"
    figures = "".join(f"{one} = {number if one == key else 1}\n" for one in keys)

    assert f".{key}: expected a number" in complaint(tmp_path, HEAD + section + figures + SAID)


IMAGE = f"[[image]]\nlikely = {{flat = 7}}\n{SAID}"


@pytest.mark.parametrize(
    "text",
    [
        '"\\u001b[31m" = 1\n' + HEAD,
        HEAD.replace("gemini-3", "\\u001b[31m"),
        HEAD + 'title = "\\u0007"\n',
        HEAD + 'inherits = "\\u001b"\n',
        HEAD + 'models = ["\\u001b[31m"]\n',
        HEAD + IMAGE + 'note = "\\u001b[31m"\n',
        HEAD + IMAGE + 'warning = "line\\nline"\n',
        HEAD + IMAGE + 'models = ["\\u009b"]\n',
        HEAD + IMAGE + 'backend = "\\u001b"\n',
        HEAD + IMAGE.replace("https:", "\\u001b:"),
        HEAD + IMAGE.replace("measured", "\\u001b"),
        HEAD + f'[[accepts]]\nmodality = "IMAGE"\nmimes = ["\\u001b[31m"]\n{SAID}',
        HEAD + '[sources.x]\ntitle = "\\u001b[31m"\n',
        HEAD + '[sources."\\u001b"]\ntitle = "x"\n',
        HEAD + '[sources.x]\ntitle = "x"\nurl = ["\\u001b"]\n',
    ],
)
def test_a_control_character_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    assert complaint(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        '"KEY" = 1\n' + HEAD,
        HEAD.replace("gemini-3", "KEY"),
        HEAD + 'inherits = "KEY"\n',
        HEAD + IMAGE.replace("measured", "KEY"),
        HEAD + IMAGE + 'backend = "KEY"\n',
        HEAD + "KEY",
    ],
)
def test_a_key_is_not_repeated(tmp_path: Path, text: str) -> None:
    assert "SECRET" not in complaint(tmp_path, text.replace("KEY", "AIzaSyD-SECRETSECRETSECRETSECRET0123456"))


def test_long_keys_and_values_are_cut(tmp_path: Path) -> None:
    long = "k" * 1_900

    for text in (f'{HEAD}"{long}" = 1\n', f'{HEAD}models = "{long}"\n', HEAD.replace("gemini-3", long)):
        assert complaint(tmp_path, text)


def test_more_mistakes_than_anybody_reads_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"
    path.write_text(HEAD + "".join(f"key{at} = 1\n" for at in range(5_000)))

    assert len(file_mistakes(path)) == 101


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.toml")

    with pytest.raises(ConfigError, match=r"rule file rules.toml: no regular file"):
        load(tmp_path / "rules.toml")


def test_a_file_too_long_is_refused(tmp_path: Path) -> None:
    assert "more than 1,000,000 characters" in complaint(tmp_path, HEAD + "#\n" * 500_000)


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "gemini\x1b[31m"),
        ("show", "gemini-3.8-flash\x1b[31m-001"),
        ("diff", "gemini-3.8-flash", "gemini\x1b[31m"),
        ("diff", "models/\x1b[31m/gemini-3.8-flash", "gemini-3.8-flash"),
        ("diff", "\x1b[31m.toml", "gemini-3.8-flash"),
        ("check", "\x1b[31m.toml"),
        ("list", "--config", "\x1b[31m.yaml"),
    ],
)
def test_names_given_to_the_command_are_printed_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)
    result = CliRunner().invoke(rules, arguments)

    assert "\x1b" not in f"{result.output}{result.exception}"


def test_a_file_of_an_odd_name_is_compared_without_printing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)
    (tmp_path / "\x1b[31m.toml").write_text(HEAD + IMAGE)
    result = CliRunner().invoke(rules, ["diff", "gemini-3.8-flash", "\x1b[31m.toml"])

    assert result.exit_code == 0
    assert "image" in result.output
    assert "\x1b" not in result.output
