"""`weighlock rules`: what a person sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weighlock.cli.rules import rules

OVERLAY = (
    'generation = "gemini-3"\nchecked_on = 2026-11-30\n[[audio]]\ntokens_per_s = 24\nrounding = "ceil"\n'
    'since = 2026-11-01\nsource = "https://example.com/bill"\nconfidence = "measured"\n'
)


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(rules, arguments, catch_exceptions=True)


def test_the_list_names_models_with_date_and_confidence_in_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("list").stdout.splitlines()

    assert max(map(len, lines)) <= 100
    assert max(len(line.rstrip()) for line in lines if line.startswith(("model", "gemini"))) <= 80
    assert any(line.split() == ["gemini-3.8-flash", "gemini-3", "2026-11-30", "measured"] for line in lines)
    assert any(line.split()[0::3] == ["gemini-4-neon", "assumed"] for line in lines if line)


def test_show_gives_every_figure_with_source_date_and_confidence() -> None:
    shown = run("show", "gemini-3-flash-preview", "--backend", "vertex").stdout

    lines = [line.strip() for line in shown.splitlines()]
    frame = next(number for number, line in enumerate(lines) if line.startswith("video") and ": 64; at most 70" in line)
    assert lines[frame + 1].startswith("since 2026-03-01 · measured · PYD · 8 × 8 at any aspect")
    assert "PYD: pydantic-ai, recorded live answers in its tests · 2026-08-22 · https://" in shown
    assert "gemini-3-flash-preview on vertex · gemini-3 · checked on 2026-11-30" in shown


def test_show_takes_a_day() -> None:
    before, after = (run("show", "gemini-3.8-flash", "--on", day).stdout for day in ("2026-01-07", "2026-01-08"))

    assert "20,000,000" in before
    assert "20,000,000" not in after


def test_show_says_so_when_nothing_is_known_of_a_model_and_names_the_nearest() -> None:
    shown = run("show", "gemini-3.8-flahs")

    assert "no rules for model 'gemini-3.8-flahs'" in shown.stderr
    assert "did you mean 'gemini-3.8-flash'" in shown.stderr
    assert "fallback" in shown.stdout


def test_show_prints_the_fallback_of_an_unknown_model_under_that_name() -> None:
    shown = run("show", "gemini-9")

    assert shown.exit_code == 0
    assert "no rules for model 'gemini-9': the figures below are the dearest known ones" in shown.stderr
    assert shown.stdout.startswith("gemini-9 (unknown) on developer · fallback")
    assert "`weighlock rules list` names the known ones" in run("show", "gpt-4").stderr


@pytest.mark.parametrize("name", ["", "  ", "gemini-3.8-flash@2026-02-30", "gemini-3.8-flash@2026-2-3"])
def test_a_name_that_is_empty_or_a_day_that_is_none_is_a_usage_error(name: str) -> None:
    assert run("show", name).exit_code == 2
    assert run("diff", name, "gemini-3.8-flash").exit_code == 2


def test_a_version_nobody_knows_is_an_unknown_model_whose_nearest_is_named() -> None:
    shown = run("show", "gemini-3.8-flash@foo")

    assert shown.stdout.startswith("gemini-3.8-flash@foo (unknown)")
    assert "did you mean 'gemini-3.8-flash'?" in shown.stderr


def test_stray_spaces_are_no_part_of_a_name() -> None:
    assert run("show", " gemini-3.8-flash ").output == run("show", "gemini-3.8-flash").output
    assert run("diff", " gemini-3.8-flash", "gemini-3.8-flash ").stdout == "every figure is the same\n"


def test_show_takes_a_day_with_the_name_but_not_two_days() -> None:
    dated = run("show", "gemini-3.8-flash@2026-01-07")

    assert dated.output == run("show", "gemini-3.8-flash", "--on", "2026-01-07").output
    assert run("show", "gemini-3.8-flash@2026-01-07", "--on", "2026-01-07").exit_code == 2


def test_a_day_before_anything_known_is_told_to_get_the_first_known_figures() -> None:
    remark = "these figures are the first known ones, since 2025-03-04 or later; nothing older is known"

    assert f"2025-01-01: {remark}" in run("show", "gemini-3.8-flash", "--on", "2025-01-01").stdout
    assert remark in run("diff", "gemini-3.8-flash@2025-01-01", "gemini-2.5-flash").stderr
    assert "known" not in run("show", "gemini-3.8-flash", "--on", "2026-12-01").stdout.partition("Tokens")[0]


def test_a_day_before_some_of_the_figures_is_told_how_many() -> None:
    shown = run("show", "gemini-3.8-flash", "--on", "2025-04-01").stdout

    assert re.search(r"2025-04-01: \d+ of the \d+ figures are the first known ones, since 2025-12-05 or later", shown)


def test_show_explains_how_a_grid_and_tiles_come_to_a_screenshots_tokens() -> None:
    grid = run("show", "gemini-3.8-flash").stdout
    tiles = run("show", "gemini-2.5-flash", "--backend", "vertex").stdout

    assert "floor(√(B·w/h)) × floor(√(B·h/w))" in grid
    assert "1920 × 1080 within 1,120: 44 × 25 = 1,100" in grid
    assert "a tile" not in grid
    assert "1920 × 1080: 6 tiles and the overview, × 258 = 1,806" in tiles
    assert "grid" not in tiles


def test_what_differs_inside_tool_results_stands_apart() -> None:
    before, after = run("show", "gemini-3-flash-preview").stdout.split("Inside tool results, where it differs\n")

    assert "tool_result" not in before
    assert "tool_result" not in after
    inside = after.partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in inside if line[2:3].strip()] == ["image", "document", *["accepts"] * 6]
    assert "video/mp4" not in after


@pytest.mark.parametrize(("columns", "at_most"), [("80", 80), ("200", 120)])
def test_figures_keep_to_the_terminal_and_within_a_readable_line(
    monkeypatch: pytest.MonkeyPatch, columns: str, at_most: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = run("show", "gemini-3-flash-preview").stdout.partition("\nSources")[0]
    differing = run("diff", "gemini-2.5-flash", "gemini-3.8-flash").stdout

    lines = [line.rstrip() for line in (*shown.splitlines(), *differing.splitlines())]
    assert max(map(len, lines)) <= at_most
    said = [line.split() for line in lines if line.startswith(" " * 20)]
    assert sum(map(len, said)) / len(said) > 4


@pytest.mark.parametrize("name", ["[/x]", "[red]gemini-3.8-flash", ":warning:", "[link=x", "gemini[/]"])
def test_brackets_and_colons_of_a_name_are_printed_as_they_are(name: str) -> None:
    shown, differing = run("show", name), run("diff", name, "gemini-3.8-flash")

    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{name.lower()} (unknown) on developer")
    assert f"'{name}'" in shown.stderr
    assert differing.exit_code == 2
    assert f"'{name}'" in differing.stderr


def test_brackets_of_a_rule_file_are_printed_as_they_are(tmp_path: Path) -> None:
    mine = tmp_path / "[red]mine[" / "b] :bug:.toml"
    mine.parent.mkdir()
    mine.write_text(OVERLAY.replace("https://example.com/bill", "https://[/x]") + 'note = "[/i] [bold]24[/bold] :x:"\n')
    differing = run("diff", "gemini-3.8-flash", str(mine))
    (tmp_path / "weighlock.yaml").write_text(
        f"version: 1\ndefault: {{model: gemini-3.8-flash}}\nrules: {{overlay: '{mine}'}}\n"
    )

    assert f"+ {mine}\n" in differing.stdout
    assert f"{mine.name}: no mistakes" in run("check", str(mine)).stdout
    assert "https://[/x] · [/i] [bold]24[/bold] :x:" in run("show", "gemini-3.8-flash").stdout


def test_the_summaries_of_the_commands_fit_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert "..." not in run("--help").stdout.partition("Commands:")[2]


def test_check_finds_no_mistake_in_what_is_shipped() -> None:
    checked = run("check")

    assert checked.exit_code == 0
    assert "gemini-3.toml: no mistakes" in checked.stdout


def test_check_names_every_mistake_of_a_file_and_exits_with_2(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(OVERLAY.replace("rounding", "ronding").replace("measured", "measurd"))
    checked = run("check", str(wrong))

    assert checked.exit_code == 2
    assert "wrong.toml: 3 mistakes" in checked.stdout
    assert "audio[1].ronding: unknown key; did you mean 'rounding'?" in checked.stderr
    assert "did you mean 'measured'?" in checked.stderr


def test_check_warns_of_old_figures_without_failing(tmp_path: Path) -> None:
    old = tmp_path / "old.toml"
    old.write_text(OVERLAY.replace("2026-11-30", "2020-01-01").replace("2026-11-01", "2020-01-01"))
    checked = run("check", str(old))

    assert checked.exit_code == 0
    assert "warning: gemini-3: checked on 2020-01-01" in checked.stderr


def test_check_reads_the_overlay_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OVERLAY.replace("24", "-24"))
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\ndefault: {model: gemini-3.8-flash}\nrules: {overlay: mine.toml}\n"
    )
    checked = run("check")

    assert checked.exit_code == 2
    assert "audio[1].tokens_per_s: expected a whole number" in checked.stderr


def test_diff_shows_old_and_new_figures_of_two_models() -> None:
    lines = run("diff", "gemini-2.5-flash", "gemini-3.8-flash").stdout.splitlines()

    audio = next(number for number, line in enumerate(lines) if line.split()[:1] == ["audio"])
    assert lines[:2] == ["- gemini-2.5-flash", "+ gemini-3.8-flash"]
    assert lines[audio].split(maxsplit=1)[1].rstrip() == "- 32 a second, rounded up"
    assert lines[audio + 1].strip() == "+ 25 a second, rounded up"


def test_diff_takes_days_and_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(OVERLAY)
    days = run("diff", "gemini-3.8-flash@2026-01-07", "gemini-3.8-flash@2026-01-08").stdout
    file = run("diff", "gemini-3.8-flash", str(mine)).stdout
    same = run("diff", str(mine), str(mine)).stdout

    assert "20,000,000" in days
    assert "100,000,000" in days
    assert [line.split()[0] for line in file.splitlines()[3:]] == ["audio", "+"]
    assert "24 a second" in file
    assert same == "every figure is the same\n"


def test_diff_with_a_model_without_rules_is_a_usage_error_that_names_the_nearest(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(OVERLAY)

    for arguments in (("gemini-3.8-flahs", "gemini-3.8-flash"), (str(mine), "gemini-3.8-flahs")):
        refused = run("diff", *arguments)
        assert refused.exit_code == 2
        assert "no rules for model 'gemini-3.8-flahs'" in refused.stderr
        assert "did you mean 'gemini-3.8-flash'?" in refused.stderr
        assert not refused.stdout


def test_diff_of_files_that_list_no_model_asks_for_one(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(OVERLAY.replace('"gemini-3"', '"fallback"'))
    refused = run("diff", str(mine), str(mine))

    assert refused.exit_code == 2
    assert "lists no model; compare it with a MODEL" in refused.stderr


def test_diff_with_a_day_that_is_none_is_a_usage_error() -> None:
    assert run("diff", "gemini-3.8-flash@2026-02-30", "gemini-3.8-flash").exit_code == 2
