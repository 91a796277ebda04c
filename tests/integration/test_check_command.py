"""`weighlock check` as a user meets it: real files, real output, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import media
from weighlock.cli import cli

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)

    def invoke(*words: str | Path, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, ["check", *map(str, words)], input=stdin)

    return invoke


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    path = tmp_path / "shot.png"
    path.write_bytes(media.picture((1920, 1080)))
    return path


@pytest.fixture(scope="module")
def film_bytes() -> bytes:
    return media.video(4, size=(320, 180), sound_s=4, options={"preset": "ultrafast"})


@pytest.fixture
def film(tmp_path: Path, film_bytes: bytes) -> Path:
    path = tmp_path / "film.mp4"
    path.write_bytes(film_bytes)
    return path


def test_files_named_together_are_one_request(run: Run, shot: Path, film: Path) -> None:
    result = run(shot, film, "--format", "json")

    report = document(result)
    assert result.exit_code == 0
    assert report["schema"] == 1
    assert report["weighed"] == "together"
    assert [part["mime"] for part in report["parts"]] == ["image/png", "video/mp4"]
    assert report["tokens"]["IMAGE"]["likely"] == 1_100
    assert report["tokens"]["VIDEO"]["likely"] == 4 * 66
    assert report["tokens"]["AUDIO"]["likely"] == 100
    assert report["verdict"] == "admit"
    assert {limit["name"] for limit in report["limits"]} >= {"prompt_tokens", "cost_usd"}
    assert report["confinement"]["mechanism"]


def test_a_folder_is_weighed_file_by_file_and_hidden_files_are_left_out(run: Run, tmp_path: Path, shot: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "note.txt").write_text("hello " * 50)
    (tmp_path / ".hidden.png").write_bytes(shot.read_bytes())

    report = document(run(tmp_path, "--format", "json"))

    assert report["weighed"] == "each"
    assert [Path(part["source"]).name for part in report["parts"]] == ["shot.png", "note.txt"]
    assert all(part["verdict"] == "admit" for part in report["parts"])


def test_the_table_says_which_way_it_was_weighed(run: Run, tmp_path: Path, shot: Path) -> None:
    assert "One request of 1 part" in run(shot).stdout
    assert "a request each" in run(tmp_path).stdout
    assert "One request of 1 part" in run(tmp_path, "--together").stdout


def test_standard_input_is_weighed_by_its_bytes(run: Run, film_bytes: bytes) -> None:
    report = document(run("-", "--format", "json", stdin=film_bytes))

    assert report["parts"][0]["source"] == "standard input"
    assert report["parts"][0]["mime"] == "video/mp4"
    assert report["parts"][0]["facts"]["duration_s"] == pytest.approx(4, abs=0.05)


def test_a_wrong_label_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(media.picture((64, 48), "JPEG"))

    result = run(path)

    assert "image/jpeg" in result.stdout
    assert "labelled image/png" in result.stdout


def test_a_wrong_label_is_refused_where_the_policy_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\naccounts: {a: {backend: developer}}\n"
        "default: {account: a, model: gemini-3.8-flash, mime_mismatch: reject}\n"
    )
    path = tmp_path / "photo.png"
    path.write_bytes(media.picture((64, 48), "JPEG"))

    result = run(path, "--format", "json")

    report = document(result)
    assert report["parts"][0]["error"]["code"] == "mime_mismatch"
    assert (report["verdict"], result.exit_code) == ("reject", 3)
    assert "labelled image/png, the bytes are image/jpeg" in report["refusal"]
    assert "reject" in run(path).stdout.split()


def test_over_a_limit_is_exit_code_3_with_a_refusal_that_names_the_knob(run: Run, film: Path, tmp_path: Path) -> None:
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\naccounts: {a: {backend: developer}}\ndefault: {account: a, model: gemini-3.8-flash}\n"
        "endpoints: {triage: {owner: team-x, mode: enforce, limits: {tokens: {video: 220}}}}\n"
    )

    result = run(film, "--endpoint", "triage")

    assert result.exit_code == 3
    words = " ".join(result.stdout.split())
    assert "triage refuses: video 264 tokens, limit 220 (rule gemini-3/video," in words
    assert "4 s × 1 fps × 66 = 264." in words
    assert "Fits with fps 0.5 → video 132" in words
    assert "Owner: team-x." in words


def test_unreadable_files_stop_nothing_and_are_exit_code_4(run: Run, tmp_path: Path, shot: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.png").write_bytes(shot.read_bytes())
    (folder / "empty.png").touch()
    (folder / "locked.pdf").write_bytes(media.pdf(password="secret"))  # noqa: S106
    os.mkfifo(folder / "pipe.mp4")
    with (folder / "sparse.mp4").open("wb") as sparse:
        sparse.truncate(3_000_000_000)
    (folder / "z.png").write_bytes(shot.read_bytes())

    result = run(folder, "--format", "json")

    parts = {Path(part["source"]).name: part for part in document(result)["parts"]}
    assert result.exit_code == 4
    assert parts["a.png"]["tokens"]["likely"] == parts["z.png"]["tokens"]["likely"] == 1_100
    errors = {name: part["error"]["message"] for name, part in parts.items() if part["error"]}
    assert set(errors) == {"empty.png", "locked.pdf", "pipe.mp4", "sparse.mp4"}
    assert "empty" in errors["empty.png"]
    assert "password" in errors["locked.pdf"]
    assert "FIFO" in errors["pipe.mp4"]
    assert "safety.max.file" in errors["sparse.mp4"]
    assert all("\n" not in message for message in errors.values())


def test_nothing_weighed_is_exit_code_2(run: Run, tmp_path: Path) -> None:
    assert run(tmp_path / "missing.png").exit_code == 2
    (tmp_path / "hollow").mkdir()
    assert run(tmp_path / "hollow").exit_code == 2


def test_several_models_are_weighed_on_one_probe(run: Run, shot: Path) -> None:
    report = document(run(shot, "--model", "gemini-2.5-flash,gemini-3.8-flash", "--format", "json"))

    totals = {one["model"]: one["tokens"]["IMAGE"]["likely"] for one in report["models"]}
    assert totals == {"gemini-2.5-flash": 258, "gemini-3.8-flash": 1_100}


def test_compare_is_a_matrix_of_models_and_settings(run: Run, shot: Path, film: Path) -> None:
    result = run(shot, film, "--compare", "gemini-2.5-flash,gemini-3.8-flash", "--format", "json")

    cells = {(cell["model"], cell["setting"]): cell for cell in document(result)["compare"]}
    assert cells["gemini-3.8-flash", "high"]["tokens"]["VIDEO"]["likely"] == 4 * 264
    assert cells["gemini-3.8-flash", "low"]["tokens"]["IMAGE"]["likely"] < 280
    assert cells["gemini-2.5-flash", "fps 0.5"]["tokens"]["VIDEO"]["likely"] == 2 * 263
    assert "gemini-2.5-flash" in run(shot, "--compare", "gemini-2.5-flash").stdout


def test_compare_weighs_as_check_does(run: Run, film: Path) -> None:
    options = ("--clip", "1-3", "--endpoint", "meeting_notes", "--format", "json")

    plain = document(run(film, *options))["total"]
    cells = document(run(film, *options, "--compare", "gemini-3.8-flash"))["compare"]

    assert cells[0]["total"] == plain
    assert [cell["setting"] for cell in cells][-1] == "fps 0.1"


def test_compare_tells_which_files_are_in_no_figure(run: Run, shot: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()

    report = document(run(shot, tmp_path / "empty.png", "--compare", "gemini-3.8-flash", "--format", "json"))
    nothing = document(run(tmp_path / "empty.png", "--compare", "gemini-3.8-flash", "--format", "json"))

    assert [Path(error["source"]).name for error in report["errors"]] == ["empty.png"]
    assert nothing["compare"][0]["total"] is nothing["compare"][0]["cost_usd"] is None


def test_every_format_tells_what_the_service_refuses_as_a_whole(run: Run, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 1_200_000)

    each = document(run(tmp_path, "--format", "json"))["parts"][0]
    row = next(csv.DictReader(io.StringIO(run(tmp_path, "--format", "csv").stdout)))

    assert "the service takes 1,048,576" in each["refused_by_service"][0]
    assert "the service takes 1,048,576" in row["refused_by_service"]


def test_confinement_is_of_this_report_in_every_document(run: Run, tmp_path: Path, shot: Path, film: Path) -> None:
    models = document(run(film, "--model", "gemini-2.5-flash,gemini-3.8-flash", "--format", "json"))["models"]
    lines = [json.loads(line) for line in run(film, shot, "--each", "--format", "jsonl").stdout.splitlines()]

    assert all(model["confinement"]["mechanism"] for model in models)
    assert lines[0]["confinement"] is not None
    assert lines[1]["confinement"] is None


def test_clip_fps_and_resolution_change_the_figure(run: Run, film: Path) -> None:
    def video(*options: str) -> int:
        tokens = document(run(film, *options, "--format", "json"))["tokens"]["VIDEO"]["likely"]
        assert isinstance(tokens, int)
        return tokens

    assert video() == 4 * 66
    assert video("--clip", "1-3") == 2 * 66
    assert video("--clip", "0:02-") == 2 * 66
    assert video("--clip", "2s around 0:02") == 2 * 66
    assert video("--fps", "2") == 8 * 66
    assert video("--media-resolution", "high") == 4 * 264


@pytest.mark.parametrize("clip", ["3", "5-2", "a-b", "1:xx-2", "-", "-60", "nan-3", "last", "last 0s"])
def test_a_clip_that_is_none_is_a_usage_error(run: Run, film: Path, clip: str) -> None:
    result = run(film, f"--clip={clip}")

    assert result.exit_code == 2
    assert "START-END" in result.stderr


def test_prompt_text_is_weighed_with_the_files(run: Run, shot: Path) -> None:
    report = document(run(shot, "--text", "Describe only what is visible.", "--format", "json"))

    assert report["tokens"]["TEXT"]["low"] <= 6 <= report["tokens"]["TEXT"]["high"]
    assert report["parts"][1]["source"] == "prompt text"


def test_prompt_text_goes_with_every_request_of_a_folder(run: Run, tmp_path: Path, shot: Path) -> None:
    (tmp_path / "other.png").write_bytes(media.picture((64, 64)))
    text = "word " * 1_000

    report = document(run(tmp_path, "--text", text, "--format", "json"))
    rows = list(csv.DictReader(io.StringIO(run(tmp_path, "--text", text, "--format", "csv").stdout)))

    words = report["parts"][0]["request"]["tokens"]["TEXT"]["likely"]
    assert words > 500
    assert [Path(part["source"]).name for part in report["parts"]] == ["other.png", "shot.png"]
    assert report["tokens"]["TEXT"]["likely"] == 2 * words
    assert [int(row["tokens_likely"]) for row in rows] == [1_089 + words, 1_100 + words]
    assert "2 files, a request each" in run(tmp_path, "--text", text).stdout


def test_json_lines_are_one_request_a_line(run: Run, tmp_path: Path, shot: Path) -> None:
    (tmp_path / "other.png").write_bytes(media.picture((64, 64)))

    lines = [json.loads(line) for line in run(tmp_path, "--format", "jsonl").stdout.splitlines()]

    assert [line["tokens"]["IMAGE"]["likely"] for line in lines] == [1_089, 1_100]
    assert all(line["schema"] == 1 for line in lines)


def test_csv_has_a_row_a_file_and_no_formula_in_a_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "=cmd.png").write_bytes(media.picture((64, 64)))

    rows = list(csv.DictReader(io.StringIO(run("=cmd.png", "--format", "csv").stdout)))

    assert rows[0]["source"] == "'=cmd.png"
    assert rows[0]["tokens_likely"] == "1089"


def test_a_file_name_cannot_speak_to_the_terminal(run: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\x1b[31m\xff.png")
    (tmp_path / name).write_bytes(media.picture((64, 64)))

    table, lines = run(tmp_path), run(tmp_path, "--format", "jsonl")

    assert table.exit_code == lines.exit_code == 0
    assert "\x1b" not in table.stdout
    assert json.loads(lines.stdout)["parts"][0]["mime"] == "image/png"


def test_an_unknown_model_is_weighed_high_and_flagged(run: Run, shot: Path) -> None:
    result = run(shot, "--model", "gemini-9-xenon", "--format", "json")

    report = document(result)
    assert report["known_model"] is False
    assert report["parts"][0]["confidence"] == "assumed"
    assert report["verdict"] == "reject"
    assert "no price is known" in report["refusal"]


def test_output_tokens_are_added_to_the_cost(run: Run, shot: Path) -> None:
    without = document(run(shot, "--format", "json"))["cost_usd"]["likely"]
    with_answer = document(run(shot, "--output-tokens", "1000", "--format", "json"))["cost_usd"]["likely"]

    assert float(with_answer) > float(without)


@pytest.mark.parametrize("name", ["shot [final].png", "[bold]x.png", "a[/b].png", ":smile:.png", "é ü.png"])
def test_a_file_name_is_never_markup(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(media.picture((64, 64)))

    assert name in run(name).stdout
    assert "no[/such].png" in run("no[/such].png").stdout


def test_what_the_service_will_refuse_is_marked_whatever_the_budget_says(run: Run, tmp_path: Path, film: Path) -> None:
    (tmp_path / "a.gif").write_bytes(media.picture((64, 64), "GIF"))

    gif, behind = run("a.gif"), run(film, "--clip", "100-")

    assert gif.exit_code == 0
    assert "not taken" in gif.stdout
    assert "takes no image/gif; convert it to image/png" in " ".join(gif.stdout.split())
    assert "No frames to extract" in " ".join(behind.stdout.split())
    assert document(run("a.gif", "--format", "json"))["parts"][0]["refused_by_service"]


def test_a_bound_is_a_bound_in_every_figure_of_its_row(run: Run, shot: Path) -> None:
    table = run(shot, "--model", "gemini-4-neon").stdout

    report = document(run(shot, "--model", "gemini-4-neon", "--format", "json"))
    dollars = float(report["cost_usd"]["high"]) * 1_000
    assert f"≤{report['total']['high']:,}" in table
    assert f"≤{dollars:,.2f}" in table
    assert "1,100" not in table


def test_the_settings_a_file_was_weighed_at_are_told(run: Run, film: Path) -> None:
    result = run(film, "--fps", "0.5", "--clip", "last 2s", "--media-resolution", "low")

    controls = document(run(film, "--fps", "0.5", "--clip", "last 2s", "--format", "json"))["parts"][0]["controls"]
    assert "fps 0.5 · resolution low · 2-4 s" in result.stdout
    assert (controls["fps"], controls["start_offset_s"], controls["end_offset_s"]) == (0.5, 2.0, 4.0)


def test_the_setting_a_refusal_names_can_be_typed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "long.mp4"
    path.write_bytes(media.video(150, fps=1, size=(64, 36), options={"preset": "ultrafast"}))
    refused = " ".join(run(path, "--endpoint", "bug_triage").stdout.split())
    assert "bug_triage refuses" in refused
    assert "Fits with clip last 30s →" in refused or "Fits with fps 0.2 →" in refused

    assert run(path, "--endpoint", "bug_triage", "--clip", "last 30s").exit_code == 0
    assert run(path, "--endpoint", "bug_triage", "--fps", "0.2").exit_code == 0


def test_the_way_the_bytes_travel_can_change_a_frame(run: Run, film: Path) -> None:
    def video(placement: str) -> int:
        words = ("--model", "gemini-3-flash-preview", "--placement", placement, "--format", "json")
        tokens = document(run(film, *words))["tokens"]["VIDEO"]["likely"]
        assert isinstance(tokens, int)
        return tokens

    assert video("inline") == 4 * 66
    assert video("files") == 4 * 64


def test_what_could_not_be_weighed_is_unknown_and_not_zero(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()

    together = document(run(tmp_path / "empty.png", "--format", "json"))
    each = document(run(tmp_path, "--format", "json"))["parts"][0]
    row = next(csv.DictReader(io.StringIO(run(tmp_path, "--format", "csv").stdout)))
    table = run(tmp_path).stdout

    assert together["total"] is together["cost_usd"] is None
    assert {limit["name"] for limit in together["limits"]} == {"media_parts", "bytes"}
    assert each["request"] == {"total": None, "tokens": {}, "cost_usd": None}
    assert (row["tokens_likely"], row["cost_usd"], row["verdict"]) == ("", "", "unknown")
    assert "nothing weighed" in table
    assert "$0" not in table


def test_a_picture_cut_off_is_flagged(run: Run, tmp_path: Path) -> None:
    whole = media.picture((1920, 1080), "JPEG", quality=95)
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])

    result = run("cut.jpg", "--format", "json")

    assert [anomaly["code"] for anomaly in document(result)["parts"][0]["anomalies"]] == ["truncated"]


def test_a_folder_that_cannot_be_listed_is_told(
    run: Run, tmp_path: Path, shot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    scandir, real_open = os.scandir, os.open

    def closed(path: Any = ".") -> Any:  # root, as which CI runs, may list everything
        if str(path) == str(sealed):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    def refused(path: Any, *rest: Any, **more: Any) -> int:
        if str(path) == str(sealed):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *rest, **more)

    monkeypatch.setattr(os, "scandir", closed)
    monkeypatch.setattr(os, "open", refused)

    result = run(tmp_path, "--format", "json")

    parts = {Path(part["source"]).name: part for part in document(result)["parts"]}
    assert result.exit_code == 4
    assert "no permission" in parts["sealed"]["error"]["message"]
    assert parts["shot.png"]["tokens"]


def test_one_impossible_name_does_not_stop_the_others(run: Run, shot: Path) -> None:
    result = run("x" * 5_000, shot, "--format", "json")

    parts = document(result)["parts"]
    assert "cannot be opened" in parts[0]["error"]["message"]
    assert parts[1]["tokens"]["likely"] == 1_100


def test_an_escape_code_in_a_name_reaches_no_csv(run: Run, tmp_path: Path) -> None:
    (tmp_path / "\x1b[31mred.png").write_bytes(media.picture((64, 64)))

    assert "\x1b" not in run(tmp_path, "--format", "csv").stdout


def test_memory_does_not_grow_with_a_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc

    from weighlock.report import Report
    from weighlock.scales import Scales

    alive: list[int] = []
    weigh = Scales.weigh

    def counted(self: Scales, examined: Any) -> Report:
        report = weigh(self, examined)
        gc.collect()
        alive.append(sum(isinstance(one, Report) for one in gc.get_objects()))
        return report

    monkeypatch.setattr(Scales, "weigh", counted)
    for number in range(40):
        (tmp_path / f"{number}.png").write_bytes(media.picture((64, 64)))

    gc.freeze()  # whatever other tests have left is not looked at again and again
    try:
        for form in ("table", "json", "jsonl", "csv"):
            run(tmp_path, "--format", form)
    finally:
        gc.unfreeze()

    assert len(alive) == 160
    assert max(alive) <= 3


def test_an_endpoint_that_only_observes_says_so(run: Run, film: Path) -> None:
    words = " ".join(run(film, "--fps", "24", "--media-resolution", "high", "--model", "gemini-9-xenon").stdout.split())

    assert "default would refuse (mode: observe):" in words
    assert "gemini-9-xenon on" in words


def test_a_misspelt_model_gets_a_hint(run: Run, shot: Path) -> None:
    words = " ".join(run(shot, "--model", "gemini-3.8-flsh").stdout.split())

    assert "Did you mean 'gemini-3.8-flash'?" in words


def test_a_name_that_moves_is_weighed_as_what_it_stood_for(run: Run, shot: Path) -> None:
    words = " ".join(run(shot, "--model", "gemini-flash-latest").stdout.split())

    assert "gemini-flash-latest (gemini-3.8-flash) on developer" in words
    assert "moves with Google's releases" in words
    assert "1,100" in words


def test_a_url_is_told_apart_from_a_missing_file(run: Run) -> None:
    result = run("https://example.org/a.mp4")

    assert result.exit_code == 2
    assert "is a URL, and none is ever fetched here" in " ".join(result.stdout.split())


def test_a_remark_is_made_once_with_the_files_it_is_about(run: Run, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.tif").write_bytes(media.picture((8, 8), "TIFF"))

    table = " ".join(run(tmp_path).stdout.split())

    assert table.count("convert it to image/png") == 1
    assert "and 3 more" in table


def test_compare_and_model_together_are_a_usage_error(run: Run, shot: Path) -> None:
    assert run(shot, "--compare", "a,b", "--model", "c").exit_code == 2
    assert run("missing.png", "--compare", "gemini-3.8-flash").exit_code == 2


def test_an_unknown_endpoint_names_the_nearest(run: Run, shot: Path) -> None:
    result = run(shot, "--endpoint", "bug_trage")

    assert "bug_triage" in str(result.exception)


def test_a_link_to_a_folder_is_not_followed(run: Run, tmp_path: Path, shot: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "a.png").write_bytes(shot.read_bytes())
    (folder / "loop").symlink_to(folder, target_is_directory=True)

    report = document(run(folder, "--format", "json"))

    assert len(report["parts"]) == 1
