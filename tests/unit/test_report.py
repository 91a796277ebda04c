from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.errors import MalformedMedia
from weighlock.media.facts import Facts
from weighlock.planning.weigh import Examined
from weighlock.preflight import Preflight
from weighlock.report import Report, facts_in_words
from weighlock.request import Backend
from weighlock.scales import Asked, Scales
from weighlock.settings import load
from weighlock.weigher import prompt_text

DAY = date(2026, 11, 30)
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def triage(tmp_path: Path) -> Scales:
    settings = load(None, environ={}, cwd=tmp_path)
    return Preflight(settings).scales(Asked(endpoint="bug_triage", on=DAY))


def report_of(scales: Scales, *media: Facts) -> Report:
    return scales.weigh([examined(facts, label=f"file {n}") for n, facts in enumerate(media)])


def test_the_refusal_of_the_design(triage: Scales) -> None:
    refusal = report_of(triage, recording(240)).refusal

    assert refusal is not None
    assert refusal.startswith("bug_triage refuses: video 15,840 tokens, limit 2,500 (rule gemini-3/video, 20")
    assert "file 0: 240 s × 1 fps × 66 = 15,840." in refusal
    assert "Fits with clip last 60s + fps 0.5 → video 1,980, audio 1,500." in refusal
    assert refusal.endswith("Owner: team-support.")


def test_what_is_admitted_has_no_refusal(triage: Scales) -> None:
    report = report_of(triage, screenshot())

    assert report.refusal is None
    assert report.as_dict()["verdict"] == "admit"


def test_the_refusal_of_text_says_that_no_setting_lowers_it(triage: Scales) -> None:
    report = triage.weigh([prompt_text("word " * 20_000)])

    assert report.refusal is not None
    assert "No setting of the media lowers it; raise limits.prompt_tokens and limits.cost_usd of bug_triage" in (
        report.refusal
    )


def test_many_changed_files_are_told_in_short(triage: Scales) -> None:
    report = report_of(triage, *[song(600)] * 6)

    assert report.refusal is not None
    assert "6 files clip last 20s → audio 3,000;" in report.refusal


def test_the_figures_behind_the_arrow_are_the_whole_request(triage: Scales) -> None:
    refusal = report_of(triage, screenshot(), screenshot(), screenshot()).refusal

    assert refusal is not None
    assert "image 3,300 tokens, limit 2,300" in refusal
    assert "→ image 2,1" in refusal or "→ image 1,6" in refusal


def test_limits_that_no_setting_lowers_ask_for_fewer_files(tmp_path: Path) -> None:
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\naccounts: {a: {backend: developer}}\n"
        "default: {account: a, model: gemini-3.8-flash, limits: {media_parts: 1, bytes: 1500}}\n"
    )
    scales = Preflight(load(None, environ={}, cwd=tmp_path)).scales()

    refusal = report_of(scales, screenshot(), song(3)).refusal

    assert refusal is not None
    assert "2 media parts, limit 1; 2,000 bytes of media, limit 1,500" in refusal
    assert "Send fewer or smaller files, or raise limits.media_parts and limits.bytes of default." in refusal
    assert "resolution" not in refusal


def test_the_json_has_every_documented_field_and_is_plain(triage: Scales) -> None:
    broken = Examined(label="broken", mime="video/mp4", error=MalformedMedia("truncated"))
    report = triage.weigh([examined(facts) for facts in (screenshot(), recording(4), song(3), paper(2))] + [broken])

    document = json.loads(json.dumps(report.as_dict()))

    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    documented = next(line for line in readme.splitlines() if line.startswith("| `parts[]` |"))
    assert set(documented.split("`")[3].split(", ")) == set(document["parts"][0])
    assert document["schema"] == 1
    assert document["parts"][1]["tokens"]["billed_as"] == {"VIDEO": 4 * 66 + 100}
    assert document["parts"][4]["error"] == {"code": "malformed_media", "message": "truncated"}
    assert document["parts"][4]["tokens"] is None
    assert document["verdict"] == "unknown"


def test_sound_is_billed_apart_on_vertex_and_counted_apart_on_both(tmp_path: Path) -> None:
    preflight = Preflight(load(None, environ={}, cwd=tmp_path))
    both = {b: preflight.scales(Asked(backend=b, on=DAY)).weigh([examined(recording(4))]).as_dict() for b in Backend}

    assert both[Backend.VERTEX]["parts"][0]["tokens"]["billed_as"] == {"VIDEO": 264, "AUDIO": 100}
    assert both[Backend.DEVELOPER]["parts"][0]["tokens"]["billed_as"] == {"VIDEO": 364}
    assert both[Backend.VERTEX]["tokens"].keys() == both[Backend.DEVELOPER]["tokens"].keys() == {"VIDEO", "AUDIO"}


def test_facts_fit_a_table_cell(triage: Scales) -> None:
    parts = report_of(
        triage, screenshot(), recording(240), recording(1.5, sound=False), song(3), paper(1), paper(12)
    ).parts

    assert [facts_in_words(part) for part in parts] == [
        "1920×1080",
        "240 s · 1280×720 · sound",
        "1.5 s · 1280×720 · silent",
        "3 s",
        "1 page · A4",
        "12 pages · A4",
    ]


def test_settings_of_the_endpoint_apply_where_the_caller_is_silent(tmp_path: Path) -> None:
    from weighlock.rules import Controls

    preflight = Preflight(load(None, environ={}, cwd=tmp_path))
    standing = preflight.scales(Asked(endpoint="meeting_notes", on=DAY)).weigh([examined(recording(100))])
    asked = preflight.scales(Asked(endpoint="meeting_notes", controls=Controls(fps=1.0), on=DAY)).weigh(
        [examined(recording(100))]
    )

    assert standing.as_dict()["tokens"]["VIDEO"]["likely"] == 20 * 66
    assert asked.as_dict()["tokens"]["VIDEO"]["likely"] == 100 * 66


def configured(tmp_path: Path, default: str, rest: str = "") -> Preflight:
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\naccounts: {a: {backend: developer}}\n"
        f"default: {{account: a, model: gemini-3.8-flash, mode: enforce, {default}}}\n{rest}"
    )
    return Preflight(load(None, environ={}, cwd=tmp_path))


def test_an_answer_nobody_prices_leaves_the_request_unpriced_and_the_limit_on(tmp_path: Path) -> None:
    overrides = "pricing: {overrides: {gemini-3.8-flash: {input: 5}}}\n"
    preflight = configured(tmp_path, "limits: {cost_usd: 0.0001}", overrides)

    report = preflight.scales(Asked(output_tokens=1_000_000, on=DAY)).weigh([examined(screenshot())])

    assert report.cost is None
    assert report.refusal is not None
    assert "no output rate is known for gemini-3.8-flash" in report.refusal
    assert report.as_dict()["unpriced_reason"] == "no output rate is known for gemini-3.8-flash"


@pytest.mark.parametrize(
    "model",
    [
        "gemini-2.5-flash-001",
        "GEMINI-2.5-FLASH",
        "models/gemini-2.5-flash",
        "gemini-2.5-flash@001",
        " gemini-2.5-flash ",
    ],
)
def test_rules_prices_and_lists_agree_on_a_model_s_name(tmp_path: Path, model: str) -> None:
    preflight = configured(tmp_path, "models: [gemini-2.5-flash, gemini-3.8-flash], limits: {cost_usd: 1}")

    report = preflight.scales(Asked(model=model, on=DAY)).weigh([examined(screenshot())])

    assert report.scale.known_model
    assert report.cost is not None
    assert report.refusal is None


def test_an_amount_past_its_limit_never_reads_like_it(tmp_path: Path) -> None:
    preflight = configured(tmp_path, "limits: {cost_usd: 0.0008}")

    refusal = report_of(preflight.scales(Asked(on=DAY)), screenshot()).refusal

    assert refusal is not None
    assert "$0.00082 a request, limit $0.0008." in refusal


def test_text_is_no_medium_to_the_limits_of_parts_and_bytes(tmp_path: Path) -> None:
    preflight = configured(tmp_path, "limits: {media_parts: 1, bytes: 1000}")

    report = preflight.scales(Asked(on=DAY)).weigh([examined(screenshot()), prompt_text("word " * 500)])

    assert report.refusal is None


def test_the_json_says_whether_the_verdict_binds(triage: Scales) -> None:
    document = report_of(triage, recording(240)).as_dict()

    assert (document["mode"], document["on_exceed"], document["owner"]) == ("enforce", "shape", "team-support")
    assert document["parts"][0]["tokens"]["by_modality"]["AUDIO"]["rule_id"] == "gemini-3/sound"


def test_an_unknown_model_is_refused_where_the_policy_says_so(tmp_path: Path) -> None:
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\naccounts: {a: {backend: developer}}\n"
        "default: {account: a, model: gemini-3.8-flash, models: [gemini-3.8-flash], on_unknown_model: reject}\n"
    )
    preflight = Preflight(load(None, environ={}, cwd=tmp_path))

    report = preflight.scales(Asked(model="gemini-9-xenon", on=DAY)).weigh([examined(screenshot())])

    assert report.refusal is not None
    assert "not in its list" in report.refusal
    assert "no rules for model gemini-9-xenon" in report.refusal
