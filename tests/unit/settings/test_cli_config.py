"""`weighlock config …` as an operator meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weighlock.cli.config import config
from weighlock.errors import ConfigError
from weighlock.settings import PACKAGED, load
from weighlock.settings.text import Document, read_yaml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("WEIGHLOCK_CONFIG", "WEIGHLOCK_CORPUS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(config, args)


def test_init_writes_the_commented_default_once(folder: Path) -> None:
    assert run("init").exit_code == 0
    assert (folder / "weighlock.yaml").read_bytes() == PACKAGED.read_bytes()

    (folder / "weighlock.yaml").write_text("mine")
    refused = run("init")

    assert refused.exit_code != 0
    assert "--force overwrites it" in refused.output
    assert (folder / "weighlock.yaml").read_text() == "mine"
    assert run("init", "--force").exit_code == 0
    assert (folder / "weighlock.yaml").read_bytes() == PACKAGED.read_bytes()


def test_init_into_a_folder_names_the_file_and_into_nowhere_is_one_line(folder: Path) -> None:
    (folder / "config").mkdir()

    assert run("init", "config").exit_code == 0
    assert (folder / "config" / "weighlock.yaml").is_file()
    assert "cannot write" in run("init", "no/such/folder.yaml").output


def test_check_says_which_file_it_read_and_that_it_is_sound(folder: Path) -> None:
    run("init")

    result = run("check")

    assert result.exit_code == 0
    assert f"read: {folder / 'weighlock.yaml'}" in result.output
    assert "endpoints: bug_triage, meeting_notes" in result.output
    assert (
        "kept for requests that are prepared, not asked by check and fit: endpoints.meeting_notes.windows"
        in result.output
    )
    assert result.output.endswith("no mistakes\n")


def test_check_names_every_mistake_and_ends_in_2(folder: Path) -> None:
    (folder / "a.yaml").write_text("version: 1\ndefualt: {}\nsafety: {workers: none}\ndefault: {model: m}\n")

    result = run("check", "a.yaml")

    assert result.exit_code == 2
    assert "a.yaml:2: defualt: unknown key; did you mean 'default'?" in result.output
    assert "a.yaml:3: safety.workers:" in result.output
    assert "2 mistakes" in result.output


OVERLAY = (
    'generation = "gemini-3"\nchecked_on = 2026-11-30\n[[audio]]\ntokens_per_s = 24\nrounding = "ceil"\n'
    'since = 2026-11-01\nsource = "https://example.com/bill"\nconfidence = "measured"\n'
)


def test_check_looks_into_the_rule_file_that_is_laid_over_the_shipped_ones(folder: Path) -> None:
    (folder / "a.yaml").write_text("version: 1\ndefault: {model: gemini-3.8-flash}\nrules: {overlay: mine.toml}\n")
    (folder / "mine.toml").write_text(OVERLAY)
    sound = run("check", "a.yaml")
    (folder / "mine.toml").write_text(OVERLAY.replace("rounding", "ronding").replace("https://example.com/bill", "XYZ"))
    wrong = run("check", "a.yaml")
    (folder / "mine.toml").write_text("generation = [")
    broken = run("check", "a.yaml")
    (folder / "mine.toml").unlink()
    missing = run("check", "a.yaml")

    assert sound.exit_code == 0
    assert f"rules overlay: {folder / 'mine.toml'}" in sound.stdout
    assert [result.exit_code for result in (wrong, broken, missing)] == [2, 2, 2]
    assert f"{folder / 'mine.toml'}: audio[1].ronding: unknown key; did you mean 'rounding'?" in wrong.stderr
    assert "not TOML" in broken.stderr
    assert f"a.yaml:3: rules.overlay: no such file: {folder / 'mine.toml'}" in missing.stderr
    assert "no mistakes" not in wrong.output + broken.output + missing.output


def test_check_names_the_mistakes_of_the_settings_and_of_their_rule_file_together(folder: Path) -> None:
    (folder / "a.yaml").write_text("version: 1\ndefault: {modl: x, model: m}\nrules: {overlay: mine.toml}\n")
    (folder / "mine.toml").write_text(OVERLAY.replace("24", "-24"))

    result = run("check", "a.yaml")

    assert "a.yaml:2: default.modl: unknown key" in result.stderr
    assert "mine.toml: audio[1].tokens_per_s: expected a whole number" in result.stderr
    assert result.stderr.endswith("2 mistakes\n")


def test_check_says_of_keys_that_are_set_what_they_do_not_do(folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\ndefault: {model: gemini-3.8-flash, on_exceed: warn, labels: {a: b}}\n"
        "endpoints:\n  one: {mode: enforce}\n  two: {windows: {day: {cost_usd: 5}}}\n"
    )
    (folder / "plain.yaml").write_text("version: 1\ndefault: {model: gemini-3.8-flash}\nendpoints: {one: {}}\n")

    said = [
        line for line in run("check", "a.yaml").stdout.splitlines() if ": default." in line or ": endpoints." in line
    ]

    assert said == [
        "changes the words of check, not its verdict: default.on_exceed",
        "changes the words of check, not its verdict: endpoints.one.mode",
        "kept for requests that are prepared, not asked by check and fit: endpoints.two.windows",
        "checked, and not acted on by this version: default.labels",
    ]
    assert "verdict" not in run("check", "plain.yaml").stdout
    assert "not acted on" not in run("check", "plain.yaml").stdout


def test_check_names_models_without_rules_and_the_nearest_with_some(folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\ndefault: {model: gemini-3.8-flahs}\nendpoints:\n"
        "  one: {model: gemini-3.8-flash, models: [gemini-3.8-flash, tuned]}\n"
    )

    result = run("check", "a.yaml")

    assert result.exit_code == 0
    said = [line for line in result.stdout.splitlines() if line.startswith("no rules")]
    assert said == [
        "no rules for model 'gemini-3.8-flahs' (default); see on_unknown_model; did you mean 'gemini-3.8-flash'?",
        "no rules for model 'tuned' (endpoints.one); see on_unknown_model",
    ]


def test_brackets_of_file_names_and_values_are_printed_as_they_are(folder: Path) -> None:
    file = folder / "[b]a[" / "i].yaml"
    file.parent.mkdir()
    text = "version: 1\ndefault: {model: '[/x]', owner: ':bug: [red]us'}\n"
    file.write_text(text + "saftey: {}\n")
    wrong = run("check", str(file))
    file.write_text(text)

    assert f"{file}:3: saftey: unknown key" in wrong.stderr
    assert f"read: {file}\n" in wrong.stdout
    assert "no rules for model '[/x]'" in run("check", str(file)).stdout
    assert "owner: ':bug: [red]us'" in run("show", "--config", str(file)).stdout


def test_the_summaries_of_the_commands_fit_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert "..." not in run("--help").stdout.partition("Commands:")[2]


def test_check_names_the_variables_that_override(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHLOCK_SAFETY__WORKERS", "3")

    assert "overridden by: WEIGHLOCK_SAFETY__WORKERS" in run("check").output


def test_show_prints_settings_that_load_to_the_same(folder: Path) -> None:
    (folder / "shown.yaml").write_text(run("show").output)

    assert load(folder / "shown.yaml", environ={}) == load(PACKAGED, environ={})


def test_show_of_an_endpoint_is_the_merged_one(folder: Path) -> None:
    output = run("show", "bug_triage").output

    assert "owner: team-support\n" in output
    assert "model: gemini-3.8-flash\n" in output
    assert "  media_parts: 40\n" in output


@pytest.mark.parametrize("args", [(), ("bug_triage",), ("meeting_notes",), ("default",)])
def test_origins_are_comments_on_the_same_yaml(folder: Path, args: tuple[str, ...]) -> None:
    def values(text: str) -> dict[str, object]:
        (folder / "x.yaml").write_text(text)
        document = Document()
        read_yaml(folder / "x.yaml", document)
        assert not document.problems
        return document.values

    annotated = run("show", *args, "--origin").output

    assert values(annotated) == values(run("show", *args).output)
    assert "# built in" in annotated


def test_origins_name_line_default_and_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHLOCK_ENDPOINTS__BUG_TRIAGE__LIMITS__COST_USD", "80")

    lines = run("show", "bug_triage", "--origin").output.splitlines()

    def origin(key: str) -> str:
        return next(line for line in lines if line.strip().startswith(f"{key}:")).partition("# ")[2]

    assert origin("cost_usd") == "WEIGHLOCK_ENDPOINTS__BUG_TRIAGE__LIMITS__COST_USD"
    assert origin("prompt_tokens").startswith(f"{PACKAGED}:")
    assert origin("media_parts").endswith("(default)")


def test_show_of_an_unknown_endpoint_names_the_nearest(folder: Path) -> None:
    error = run("show", "bug_traige").exception

    assert isinstance(error, ConfigError)
    assert "did you mean 'bug_triage'?" in str(error)


def test_a_threshold_above_what_the_service_takes_inline_is_told_with_the_bound_that_holds(folder: Path) -> None:
    below = "uploads: {inline_below: {developer: 200MB, vertex: 1TB}}"
    (folder / "weighlock.yaml").write_text(f"version: 1\ndefault: {{model: gemini-3.8-flash}}\n{below}\n")

    result = run("check")

    words = "uploads.inline_below.developer: 200,000,000 bytes, and gemini-3.8-flash takes 100,000,000 inline"
    assert f"{words}: that bound holds" in result.output
    assert "inline_below.vertex" not in result.output
    assert result.exit_code == 0


def test_schema_is_json_schema_that_knows_every_section(folder: Path) -> None:
    schema = json.loads(run("schema").output)

    assert schema["$schema"].startswith("https://json-schema.org/")
    assert set(schema["properties"]) == {
        "version",
        "include",
        "accounts",
        "default",
        "endpoints",
        "tenants",
        "overall",
        "rules",
        "uploads",
        "state",
        "observe",
        "safety",
        "pricing",
        "encoding",
        "service",
    }
    assert schema["additionalProperties"] is False
