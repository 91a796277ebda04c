"""`weighlock fit` as a user meets it: what it says, what it writes, how it ends."""

from __future__ import annotations

import base64
import json
import wave
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import films
import media
from unit.test_fit import screenshots
from weighlock.cli import cli

Run = Callable[..., Result]
SETTINGS = """
version: 1
accounts: {developer: {backend: developer, api_key_env: GEMINI_API_KEY}}
default: {account: developer, model: gemini-3.8-flash}
endpoints:
  triage:
    owner: team-support
    limits: {prompt_tokens: 700}
    media: {image: {floor: medium}}
  agent: {limits: {prompt_tokens: 8000}, history: {keep_media: 3, batch: 4}}
  old: {model: gemini-2.5-flash, limits: {prompt_tokens: 100}, local_work: allowed}
  never: {local_work: never}
  silent: {model: gemini-2.5-flash, local_work: allowed, limits: {prompt_tokens: 350}}
  heavy: {limits: {bytes: 100}}
  bare: {limits: {prompt_tokens: 100}, media: {levers: [fps]}}
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)
    Path("weighlock.yaml").write_text(SETTINGS)
    Path("shot.png").write_bytes(media.picture((1920, 1080)))
    Path("agent.json").write_text(json.dumps(screenshots(8)))

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(cli, ["fit", *words])

    return invoke


def test_a_picture_is_made_lighter_and_the_body_written(run: Run) -> None:
    result = run("shot.png", "-e", "triage", "--text", "what is wrong?", "--out", "made")

    assert result.exit_code == 0, result.output
    assert "resolution medium" in result.stdout
    assert "over: prompt" in result.stdout
    assert "fits" in result.stdout
    body = json.loads(Path("made/request.json").read_bytes())
    picture, words = body["contents"][0]["parts"]
    assert picture["mediaResolution"] == {"level": "MEDIA_RESOLUTION_MEDIUM"}
    assert picture["inlineData"]["mimeType"] == "image/png"
    assert words == {"text": "what is wrong?"}
    assert [path.name for path in Path("made").iterdir()] == ["request.json"]


def test_a_dry_run_writes_nothing(run: Run) -> None:
    result = run("shot.png", "-e", "triage", "--out", "made", "--dry-run")

    assert result.exit_code == 0
    assert not Path("made").exists()


def test_what_does_not_fit_says_how_far_it_goes_and_what_stands_in_the_way(run: Run) -> None:
    result = run("shot.png", "-e", "triage", "--max-tokens", "300", "--out", "made")

    assert result.exit_code == 3
    assert "does not fit" in result.stdout
    assert "Lowest reachable total 5" in " ".join(result.stdout.split())
    assert "media.image.floor" in result.stdout
    assert "Owner: team-support" in result.stdout
    assert not Path("made").exists()


def test_a_pinned_part_is_left_alone(run: Run) -> None:
    result = run("shot.png", "-e", "triage", "--pin", "shot.png")

    assert result.exit_code == 3
    assert "pinned" in result.stdout


def test_a_pin_that_names_nothing_is_a_usage_error(run: Run) -> None:
    result = run("shot.png", "--pin", "other.png")

    assert result.exit_code == 2
    assert "there is shot.png" in result.stderr


def test_the_media_of_a_conversation_are_told_together_with_what_it_does_to_the_cache(run: Run) -> None:
    told = []
    for turns in range(4, 12):
        Path("agent.json").write_text(json.dumps(screenshots(turns)))
        result = run("agent.json", "-e", "agent", "--out", "made", "--explain")
        assert result.exit_code == 0
        body = json.loads(Path("made/request.json").read_bytes())
        assert len(body["contents"]) == len(screenshots(turns)["contents"])
        told.append(result.stdout)

    broken = [one for one in told if "Prompt cache: broken from contents[" in one]
    kept = [one for one in told if "Prompt cache: kept" in one]
    assert broken
    assert all("breaks the cached prefix" in one and "× 1,100" in one for one in broken)
    assert len(kept) > len(broken)
    assert "kept from an earlier turn" in kept[-1]
    assert "history.keep_media" in told[-1]


def test_a_request_that_fits_leaves_as_the_very_bytes_that_came(run: Run) -> None:
    for pins in ((), ("--pin", "contents[2].parts[0].functionResponse.parts[0]")):
        result = run("agent.json", "--max-tokens", "90000", "--out", "made", *pins)

        assert result.exit_code == 0, result.output
        assert Path("made/request.json").read_bytes() == Path("agent.json").read_bytes()


def test_a_part_of_a_request_is_pinned_by_its_place(run: Run) -> None:
    place = "contents[2].parts[0].functionResponse.parts[0]"

    told = json.loads(run("agent.json", "-e", "agent", "--pin", place, "--format", "json").stdout)

    assert told["fits"]
    assert all(0 not in step["parts"] for step in told["steps"])
    assert {"part": 0, "lever": None, "words": "pinned", "knob": None} in told["not_available"]


def test_local_work_is_shown_by_a_dry_run_and_done_without_one(run: Run) -> None:
    Path("song.wav").write_bytes(media.wav(30))

    planned = run("song.wav", "-e", "old", "--max-tokens", "800", "--dry-run")
    done = run("song.wav", "-e", "old", "--max-tokens", "800", "--out", "made")

    assert planned.exit_code == 0, planned.output
    assert "Local work on song.wav: audio: start_s 10, end_s 30" in planned.stdout
    assert done.exit_code == 0, done.output
    with wave.open("made/song.wav") as made:
        assert made.getnframes() / made.getframerate() == 20
    (turn,) = json.loads(Path("made/request.json").read_bytes())["contents"]
    assert base64.b64decode(turn["parts"][0]["inlineData"]["data"]) == Path("made/song.wav").read_bytes()
    assert "audioMetadata" not in turn["parts"][0]


def test_a_format_gemini_does_not_take_becomes_one_it_takes(run: Run) -> None:
    Path("a.gif").write_bytes(media.picture((64, 48), "GIF"))

    done = run("a.gif", "--out", "made")
    told = " ".join(done.stdout.split())
    assert "becomes image/png, " in told
    assert "as it is" not in told

    assert done.exit_code == 0, done.output
    (turn,) = json.loads(Path("made/request.json").read_bytes())["contents"]
    assert turn["parts"][0]["inlineData"]["mimeType"] == "image/png"
    assert Path("made/a.png").read_bytes().startswith(b"\x89PNG")


def test_a_lever_the_endpoint_does_not_have_is_named(run: Run) -> None:
    result = run("shot.png", "-e", "bare", "--explain")

    assert result.exit_code == 3
    assert "shot.png: resolution: not among the endpoint's levers (media.levers)" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("agent.json", "shot.png"), "fit one at a time"),
        (("agent.json", "--text", "x"), "--text goes with files"),
        (("shot.png", "--max-usd", "cheap"), "no amount of USD"),
        (("shot.png", "agent.json", "--as", "rest"), "names one request"),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(run: Run, words: tuple[str, ...], said: str) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_missing_file_cannot_be_sent(run: Run) -> None:
    result = run("shot.png", "none.png")

    assert result.exit_code == 4
    assert "cannot be sent: none.png: no such file" in result.stdout


def test_broken_json_cannot_be_sent(run: Run) -> None:
    Path("bad.json").write_text('{"contents": [{"role": "user", "parts": [')

    result = run("bad.json")

    assert result.exit_code == 4
    assert "bad.json" in result.stderr


def test_neutral_messages_that_have_no_word_for_a_setting_are_not_written(run: Run) -> None:
    CliRunner().invoke(cli, ["convert", "agent.json", "--to", "messages", "--out", "messages.json"])

    lighter = run("messages.json", "-e", "agent", "--out", "made")
    untouched = run("messages.json", "--max-tokens", "90000", "--out", "as_it_is")

    assert lighter.exit_code == 4
    assert "messages cannot express mediaResolution" in lighter.stderr
    assert not Path("made").exists()
    assert untouched.exit_code == 0
    assert Path("as_it_is/request.json").read_bytes() == Path("messages.json").read_bytes()


def test_a_file_too_large_to_go_inline_is_named_for_an_upload(run: Run) -> None:
    Path("big.png").write_bytes(media.picture((64, 64)) + bytes(200_000_000))

    result = run("shot.png", "big.png", "--out", "made")

    assert result.exit_code == 0, result.output
    assert "big.png is too large to go inline" in result.stderr
    small, big = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"]
    assert "inlineData" in small
    assert big["fileData"]["fileUri"] == "file:big.png"


def test_usd_is_a_limit_too(run: Run) -> None:
    result = run("shot.png", "--max-usd", "0.0005")

    assert result.exit_code == 0, result.output
    assert "over: cost" in result.stdout


def test_nothing_is_made_where_local_work_is_never(run: Run) -> None:
    Path("a.gif").write_bytes(media.picture((64, 48), "GIF"))

    done = run("a.gif", "-e", "never", "--out", "made")

    assert done.exit_code == 4
    assert "cannot be sent as it is" in done.stdout
    assert not Path("made").exists()


def test_what_was_made_is_judged_as_it_came_out(run: Run) -> None:
    Path("a.mp4").write_bytes(films.film(60))

    planned = run("a.mp4", "-e", "silent", "--dry-run")
    done = run("a.mp4", "-e", "silent", "--out", "made")

    # A film without sound may be billed for silence on 2.x, which is only known once it is one.
    assert planned.exit_code == 0
    assert done.exit_code == 3
    assert "does not fit" in done.stdout
    assert "refuses: as it was made prompt" in " ".join(done.stdout.split())
    assert not Path("made").exists()


def test_where_only_bytes_are_over_no_total_of_tokens_is_called_the_lowest(run: Run) -> None:
    Path("a.mp4").write_bytes(films.film(4))

    done = run("a.mp4", "-e", "heavy")

    assert done.exit_code == 3
    told = " ".join(done.stdout.split())
    assert "limit 100" in told
    assert "In all " in told
    assert "Lowest reachable total" not in told
