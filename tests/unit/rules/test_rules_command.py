"""`weighlock rules`: what a person sees."""

from __future__ import annotations

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

    frame = next(line for line in shown.splitlines() if line.startswith("video") and "64" in line)
    assert "2026-03-01" in frame
    assert "measured" in frame
    assert "PYD" in frame
    assert "PYD: pydantic-ai, recorded live answers in its tests · 2026-08-22 · https://" in shown
    assert "gemini-3-flash-preview on vertex · gemini-3 · checked on 2026-11-30" in shown


def test_show_takes_a_day() -> None:
    before, after = (run("show", "gemini-3.8-flash", "--on", day).stdout for day in ("2026-01-07", "2026-01-08"))

    assert "20,000,000" in before
    assert "20,000,000" not in after


def test_show_says_so_when_nothing_is_known_of_a_model_and_names_the_nearest() -> None:
    shown = run("show", "gemini-3.8-flahs")

    assert "no measured rules for 'gemini-3.8-flahs'" in shown.stderr
    assert "did you mean 'gemini-3.8-flash'" in shown.stderr
    assert "fallback" in shown.stdout


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
    shown = run("diff", "gemini-2.5-flash", "gemini-3.8-flash").stdout

    audio = next(line for line in shown.splitlines() if line.startswith("audio"))
    assert " ".join(audio.split()) == "audio 32 a second, rounded up 25 a second, rounded up"


def test_diff_takes_days_and_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(OVERLAY)
    days = run("diff", "gemini-3.8-flash@2026-01-07", "gemini-3.8-flash@2026-01-08").stdout
    file = run("diff", "gemini-3.8-flash", str(mine)).stdout
    same = run("diff", str(mine), str(mine)).stdout

    assert "20,000,000" in days
    assert "100,000,000" in days
    assert [line.split()[0] for line in file.splitlines()[1:]] == ["audio"]
    assert "24 a second" in file
    assert same == "every figure is the same\n"


def test_diff_with_a_day_that_is_none_is_a_usage_error() -> None:
    assert run("diff", "gemini-3.8-flash@2026-02-30", "gemini-3.8-flash").exit_code == 2
