"""`weighlock fit` as a user meets it: what it says, what it writes, how it ends."""

from __future__ import annotations

import base64
import json
import re
import wave
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import films
import media
from integration.test_fit_bytes import paper
from unit.test_fit import screenshots
from weighlock.cli import cli
from weighlock.codecs.samples import draw_request

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
  clean: {media: {strip_metadata: true}}
  silent: {model: gemini-2.5-flash, local_work: allowed, limits: {prompt_tokens: 350}}
  cuts: {model: gemini-2.5-flash, local_work: allowed}
  seen:
    limits: {prompt_tokens: 2500}
    media: {levers: [fps], video: {content: talk}}
  heavy: {limits: {bytes: 100}}
  strict: {mode: enforce, limits: {prompt_tokens: 100}, media: {levers: [fps]}}
  paper: {limits: {bytes: 50kB}}
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


def take_inline(limit: str, size: int) -> None:
    """Rules under which the service takes no more of it inline."""
    Path("rules.toml").write_text(
        f"""
generation = "gemini-3"
checked_on = 2026-11-30
[[limits]]
limit = "{limit}"
backend = "developer"
value = {size}
since = 2026-01-09
source = "https://example.com/less"
confidence = "assumed"
"""
    )
    Path("weighlock.yaml").write_text(f"{SETTINGS}rules: {{overlay: rules.toml}}\n")


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


@pytest.mark.parametrize(
    ("words", "knob"),
    [
        (("-e", "triage", "--max-tokens", "300"), "Raise --max-tokens (max_tokens of the call), or send less."),
        (("--max-usd", "0.0001"), "Raise --max-usd (max_usd of the call), or send less."),
        (("-e", "bare"), "Raise limits.prompt_tokens of bare, or send less."),
    ],
)
def test_a_refusal_names_the_knob_the_limit_came_from(run: Run, words: tuple[str, ...], knob: str) -> None:
    told = json.loads(run("shot.png", *words, "--format", "json").stdout)

    assert knob in told["refusal"]


def test_a_refusal_is_one_sentence_everywhere_and_says_what_the_mode_makes_of_it(run: Run) -> None:
    for endpoint, verb in (("bare", "would refuse (mode: observe)"), ("strict", "refuses")):
        told = json.loads(run("shot.png", "-e", endpoint, "--format", "json").stdout)
        shown = " ".join(run("shot.png", "-e", endpoint).stdout.split())

        assert told["refusal"].startswith(f"{endpoint} {verb} even at its lightest: prompt 1,100 tokens, limit 100.")
        assert told["refusal"] in shown
        assert "refusal" not in told["before"] | told["after"]


def test_the_figures_of_a_refusal_add_up_to_its_total(run: Run) -> None:
    names = [f"{nth}.png" for nth in range(8)]
    for name in names:
        Path(name).write_bytes(media.picture((1920, 1080)))

    told = json.loads(run(*names, "--max-tokens", "300", "--format", "json").stdout)

    total, costs = re.findall(
        r"Lowest reachable total ([\d,]+) tokens, by the high estimate: (.*?)\. ", told["refusal"]
    )[0]
    assert "3 more" in costs
    figures = [int(words.rpartition(" ")[2].replace(",", "")) for words in costs.split(", ")]
    assert sum(figures) == int(total.replace(",", "")) == told["after"]["total"]["high"]


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
    assert "cut to 10–30 s" in planned.stdout
    assert "fits, once that is made" in planned.stdout
    assert f"cut to 10–30 s, {Path('made/song.wav').stat().st_size:,} bytes" in done.stdout
    assert done.exit_code == 0, done.output
    with wave.open("made/song.wav") as made:
        assert made.getnframes() / made.getframerate() == 20
    (turn,) = json.loads(Path("made/request.json").read_bytes())["contents"]
    assert base64.b64decode(turn["parts"][0]["inlineData"]["data"]) == Path("made/song.wav").read_bytes()
    assert "audioMetadata" not in turn["parts"][0]


def test_a_format_gemini_does_not_take_becomes_one_it_takes(run: Run) -> None:
    Path("a.gif").write_bytes(media.picture((64, 48), "GIF"))

    planned = run("a.gif", "--dry-run")
    done = run("a.gif", "--out", "made")

    for told in (planned.stdout, done.stdout):
        assert told.count("a PNG") == told.count("takes no image/gif") == 1
        assert "as it is" not in told
        assert "convert it" not in told
    assert "made a PNG, " in done.stdout
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
        *((("shot.png", "--max-usd", wrong), "no amount of USD") for wrong in ("cheap", "nan", "1e999999999", "1e-99")),
        (("-", "-"), "can be read once"),
        (("shot.png", "agent.json", "--as", "rest"), "names one request"),
        *((("shot.png", "--deadline", wrong), "is no time") for wrong in ("0", "-1", "nan", "inf", "soon", "9" * 400)),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(run: Run, words: tuple[str, ...], said: str) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_missing_file_cannot_be_sent(run: Run) -> None:
    result = run("shot.png", "none.png")
    told = json.loads(run("shot.png", "none.png", "--format", "json").stdout)

    assert result.exit_code == 4
    assert result.stdout.count("no such file") == 1
    assert "cannot be sent as it is" in result.stdout
    assert (told["fits"], told["sendable"], told["refusal"]) == (False, False, None)


@pytest.mark.parametrize("name", ["none.png", "broken.mp4"])
def test_of_nothing_readable_nothing_is_claimed(run: Run, name: str) -> None:
    Path("broken.mp4").write_bytes(films.film(4)[:3000])

    result = run(name)
    told = json.loads(run(name, "--format", "json").stdout)

    assert result.exit_code == 2
    assert "Nothing could be weighed → cannot be sent as it is" in result.stdout
    assert "$" not in result.stdout.partition("Nothing could be weighed")[2].partition("\n")[0]
    assert not told["fits"]


def test_words_alone_are_a_request_that_fits(run: Run) -> None:
    Path("words.json").write_text(json.dumps({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}))

    result = run("words.json")

    assert result.exit_code == 0
    assert "fits as it is" in result.stdout


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
    Path("big.png").write_bytes(media.picture((64, 64)) + bytes(20_000_000))

    result = run("shot.png", "big.png", "--out", "made")

    assert result.exit_code == 0, result.output
    assert "big.png is too large to go inline" in result.stderr
    small, big = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"]
    assert "inlineData" in small
    assert big["fileData"]["fileUri"] == "file:big.png"


def test_a_threshold_of_the_operator_names_the_largest_by_the_files_api_and_why(run: Run) -> None:
    Path("weighlock.yaml").write_text(f"{SETTINGS}uploads: {{inline_below: {{developer: 300kB}}}}\n")
    for name, size in (("a.png", 150_000), ("sub/b.png", 200_000)):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(media.picture((64, 64)) + bytes(size))

    words = ("shot.png", "a.png", "sub/b.png")
    planned = run(*words, "--dry-run")
    told = json.loads(run(*words, "--out", "made", "--format", "json").stdout)

    assert "by the Files API" in planned.stdout
    assert "0.3 MB in base64, over inline_below 0.3MB" in planned.stdout
    assert [one["source"] for one in told["to_upload"]] == ["sub/b.png"]
    assert [part["controls"]["placement"] for part in told["after"]["parts"]] == ["inline", "inline", "files", "inline"]
    parts = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"]
    assert [next(iter(part)) for part in parts] == ["inlineData", "inlineData", "fileData"]
    assert parts[2]["fileData"] == {"mimeType": "image/png", "fileUri": "file:sub/b.png"}
    assert [path.name for path in Path("made").iterdir()] == ["request.json"], "a file is named where it is"


def test_what_is_too_large_in_a_request_is_written_beside_it_and_named(run: Run) -> None:
    Path("weighlock.yaml").write_text(f"{SETTINGS}uploads: {{inline_below: {{developer: 300kB}}}}\n")
    big = media.picture((64, 64)) + bytes(300_000)
    picture = {"mimeType": "image/png", "data": base64.b64encode(big).decode(), "displayName": "x"}
    said = {"text": "what is it?"}
    body = {"contents": [{"role": "user", "parts": [said, {"inlineData": picture}]}], "tools": []}
    Path("body.json").write_text(json.dumps(body))

    done = run("body.json", "--out", "made")
    again = run("body.json", "--out", "again", "--endpoint", "triage")

    assert done.exit_code == 0, done.output
    assert "made/contents-0-parts-1.png is too large to go inline: upload it" in done.stderr
    sent = json.loads(Path("made/request.json").read_bytes())
    named = {"mimeType": "image/png", "fileUri": "file:contents-0-parts-1.png", "displayName": "x"}
    assert sent == {"contents": [{"role": "user", "parts": [said, {"fileData": named}]}], "tools": []}
    assert Path("made/contents-0-parts-1.png").read_bytes() == big
    assert again.exit_code == 0, again.output
    _, part = json.loads(Path("again/request.json").read_bytes())["contents"][0]["parts"]
    assert part["mediaResolution"] == {"level": "MEDIA_RESOLUTION_MEDIUM"}, "levers move what is uploaded too"


def test_a_request_no_upload_can_help_stays_unsendable(run: Run) -> None:
    take_inline("inline_request_bytes", 300_000)
    agent = screenshots(1)
    picture = agent["contents"][-1]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]
    picture["data"] = base64.b64encode(media.picture((64, 64)) + bytes(300_000)).decode()
    Path("body.json").write_text(json.dumps(agent))

    done = run("body.json", "--out", "made")
    checked = CliRunner().invoke(cli, ["check", "body.json"])

    assert done.exit_code == checked.exit_code == 4
    assert "cannot be sent" in done.stdout
    assert "by the Files API what stands in a user turn" in " ".join(done.stdout.split())
    assert "by the Files API what stands in a user turn" in " ".join(checked.stdout.split())
    assert not Path("made").exists()


def test_check_names_what_to_upload_where_that_cures_it_and_ends_as_before(run: Run) -> None:
    take_inline("inline_request_bytes", 300_000)
    big = media.picture((64, 64)) + bytes(300_000)
    Path("big.png").write_bytes(big)
    picture = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(big).decode()}}
    Path("body.json").write_text(json.dumps({"contents": [{"role": "user", "parts": [{"text": "what?"}, picture]}]}))

    request = CliRunner().invoke(cli, ["check", "body.json"])
    files = CliRunner().invoke(cli, ["check", "shot.png", "big.png", "--format", "json"])

    assert request.exit_code == 4, "as it is"
    assert "upload by the Files API: contents[0].parts[1]" in " ".join(request.stdout.split())
    assert files.exit_code == 0
    assert "upload by the Files API: big.png" in json.loads(files.stdout)["refused_by_service"][0]
    assert run("body.json").exit_code == 0, "planned for an upload"


def test_a_picture_too_large_to_go_inline_is_uploaded_rather_than_encoded_again(run: Run) -> None:
    take_inline("inline_image_bytes", 300_000)
    Path("big.png").write_bytes(media.picture((64, 64)) + bytes(300_000))

    told = json.loads(run("big.png", "--out", "made", "--format", "json").stdout)

    assert told["steps"] == []
    assert told["to_upload"][0]["reason"] == "0.3 MB; the service takes 0.3 MB of a picture inline"


def test_what_was_made_and_is_still_too_large_is_named_as_it_was_written(run: Run) -> None:
    Path("weighlock.yaml").write_text(f"{SETTINGS}uploads: {{inline_below: {{developer: 0}}}}\n")
    Path("a.gif").write_bytes(media.picture((64, 48), "GIF"))

    done = run("a.gif", "--out", "made", "--format", "json")

    assert done.exit_code == 0, done.output
    assert [one["part"] for one in json.loads(done.stdout)["to_upload"]] == [0]
    (part,) = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"]
    assert part == {"fileData": {"mimeType": "image/png", "fileUri": "file:a.png"}}
    assert Path("made/a.png").read_bytes().startswith(b"\x89PNG")


def test_notes_and_work_on_bytes_in_one_request_are_told_each_at_its_part(run: Run) -> None:
    shots = screenshots(4)
    gif = {"mimeType": "image/gif", "data": base64.b64encode(media.picture((64, 48), "GIF")).decode()}
    shots["contents"].append({"role": "user", "parts": [{"text": "and this?"}, {"inlineData": gif}]})
    Path("body.json").write_text(json.dumps(shots))
    history = "history: {keep_media: 2, batch: 1}, media: {levers: [history]}"
    Path("weighlock.yaml").write_text(SETTINGS.replace("default: {", f"default: {{{history}, "))

    told = json.loads(run("body.json", "--max-tokens", "4000", "--out", "made", "--format", "json").stdout)
    table = run("body.json", "--max-tokens", "4000", "--out", "made")

    assert table.exit_code == 0, table.output
    sources = [part["source"] for part in told["before"]["parts"]]
    assert [part["source"] for part in told["after"]["parts"]] == sources
    assert [one["part"] for one in told["made"]] == [4]
    assert told["after"]["parts"][4]["mime"] == "image/png"
    after = told["after"]
    assert sum(part["tokens"]["likely"] for part in after["parts"]) == after["total"]["likely"]
    assert Decimal(told["cost_cached"]["likely"]) < Decimal(after["cost_usd"]["likely"])
    assert "made a PNG" in table.stdout
    assert "a note in its place" in table.stdout


@pytest.mark.parametrize("columns", ["80", "200"])
def test_no_line_is_filled_up_with_blanks_or_wider_than_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    for words in (("shot.png", "-e", "triage", "--explain"), ("agent.json", "-e", "agent"), ("shot.png", "none.png")):
        lines = run(*words).stdout.splitlines()
        assert all(line == line.rstrip() for line in lines)
        assert max(map(len, lines)) <= int(columns)


def test_what_the_figures_rest_on_is_told_as_by_check(run: Run) -> None:
    known, unknown = run("shot.png").stdout, run("shot.png", "-m", "gemini-9-ultra").stdout

    assert "~ estimated, ≤ bound" in known
    assert re.search(r"Rules of \d{4}-\d\d-\d\d · genai-prices", known)
    assert "No rules for gemini-9-ultra: the dearest known ones are used." in unknown


@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-2.5-flash", "gemini-9-ultra"])
def test_the_figures_of_the_table_add_up(run: Run, model: str) -> None:
    Path("a.mp4").write_bytes(films.film(12))

    told = run("shot.png", "a.mp4", "-m", model, "--max-tokens", "3000", "--text", "what is wrong? " * 40).stdout

    (sums,) = (line for line in told.splitlines() if re.match(r"text [~≤]", line))
    for side in sums.partition(" tokens")[0].split(" → "):
        parts, _, total = re.sub(r"\(.*?\)", "", side).partition(" = ")
        figures = [int(words.split()[1].strip("~≤").replace(",", "")) for words in parts.split(" · ")]
        assert sum(figures) == int(total.strip("~≤ ").replace(",", ""))
        assert not ("≤" in total and "~" in parts)


def test_what_screening_changed_is_told(run: Run) -> None:
    draw_request(Path("request.json"), Path("shot.png"))

    told = run("request.json").stdout

    assert "lifted from text" in told
    assert "contents[2].parts[1]: removed from text: gemini-3.8-flash takes no audio in a tool result" in told
    assert "as it is" not in told.partition("tokens ·")[2].partition("\n")[0]


def test_history_has_a_line_on_the_cache_and_a_first_request_has_none(run: Run) -> None:
    first, later = run("shot.png", "--text", "hello").stdout, run("agent.json").stdout

    assert "cache" not in first
    (line,) = (line for line in later.splitlines() if "Prompt cache" in line)
    assert re.fullmatch(r"Prompt cache: kept, ~[\d,]+ tokens of [\d,]+; \$0\.\d+ in all if it holds\.", line)


def test_a_recording_is_clipped_as_the_caller_asks_on_the_wire_or_by_work(run: Run) -> None:
    Path("a.mp4").write_bytes(films.film(4))
    Path("song.wav").write_bytes(media.wav(seconds=4))
    window = ("--clip", "last 2s", "--clip", "a.mp4=1s around 2s", "--out", "made", "--format", "json")

    wire = run("a.mp4", "song.wav", *window)
    film, song = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"]
    local = run("a.mp4", "song.wav", "-e", "cuts", *window)

    assert wire.exit_code == local.exit_code == 0, local.output
    assert film["videoMetadata"] == {"startOffset": "1.5s", "endOffset": "2.5s"}
    assert song["audioMetadata"] == {"startOffset": "2s", "endOffset": "4s"}
    told = json.loads(local.stdout)
    assert [(step["words"], step["why"], step["local"]) for step in told["steps"]] == [
        ("clip 1.5s-2.5s", "asked", False),
        ("clip last 2s", "asked", True),
    ]
    assert told["made"][0]["mime"] == "audio/wav"
    assert "audioMetadata" not in json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"][1]
    assert told["after"]["parts"][1]["facts"]["duration_s"] == 2


def test_a_recording_s_own_offsets_stay_unless_the_caller_names_the_part(run: Run) -> None:
    part = {
        "inlineData": {"mimeType": "video/mp4", "data": base64.b64encode(films.film(4)).decode()},
        "videoMetadata": {"startOffset": "1s"},
    }
    Path("film.json").write_text(json.dumps({"contents": [{"role": "user", "parts": [part]}]}))

    def offsets(clip: str) -> Any:
        assert run("film.json", "--clip", clip, "--out", "made").exit_code == 0
        return json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"][0]["videoMetadata"]

    assert offsets("last 2s") == {"startOffset": "1s"}
    assert offsets("contents[0].parts[0]=last 2s") == {"startOffset": "2s", "endOffset": "4s"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("song.wav", "--clip", "around 1m"), "song.wav: the clip begins behind its end at 4.00 s"),
        (("shot.png", "--clip", "shot.png=last 2s"), "shot.png: a clip is of video and audio; this is image/png"),
        (("song.wav", "--clip", "last 2s", "-m", "gemini-2.5-flash"), "song.wav: gemini-2.5-flash is not known to"),
    ],
)
def test_a_clip_that_cannot_be_had_is_refused_with_the_reason(run: Run, words: tuple[str, ...], said: str) -> None:
    Path("song.wav").write_bytes(media.wav(seconds=4))

    assert said in str(run(*words).exception)


def test_what_a_film_shows_is_said_by_the_caller_or_else_by_the_endpoint(run: Run) -> None:
    Path("a.mp4").write_bytes(films.film(20))
    Path("b.mp4").write_bytes(films.film(21))

    def told(*words: str) -> Any:
        return json.loads(run("a.mp4", "b.mp4", "-e", "seen", "--format", "json", *words).stdout)

    def rates(*words: str) -> list[float | None]:
        return [part["controls"]["fps"] for part in told(*words)["after"]["parts"][:2]]

    assert rates() == [0.2, 0.2]
    assert rates("--content", "screen", "--content", "b.mp4=motion", "--max-tokens", "3600") == [0.5, None]
    assert {"part": 1, "lever": "fps", "words": "motion keeps 1 fps", "knob": "content"} in told(
        "--content", "motion", "--max-tokens", "1"
    )["not_available"]
    assert "shot.png: talk is said of films" in str(run("shot.png", "--content", "shot.png=talk").exception)
    assert "is not one of screen, talk, motion" in run("a.mp4", "--content", "a.mp4=dance").stderr


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
    Path("a.pdf").write_bytes(paper(shared=True))

    planned = run("a.pdf", "-e", "paper", "--dry-run")
    done = run("a.pdf", "-e", "paper", "--out", "made")

    # What pages share is only known once they are taken out.
    assert planned.exit_code == 0
    assert "about " in planned.stdout
    assert done.exit_code == 3
    assert "does not fit" in done.stdout
    assert "would refuse (mode: observe) as it was made: 80," in " ".join(done.stdout.split())
    assert not Path("made").exists()


def test_a_film_whose_silence_may_be_billed_is_not_planned_without_its_sound(run: Run) -> None:
    Path("a.mp4").write_bytes(films.film(60))

    planned = run("a.mp4", "-e", "silent", "--dry-run", "--format", "json")

    assert planned.exit_code == 3
    assert "drop_audio" not in {step["lever"] for step in json.loads(planned.stdout)["steps"]}


def test_where_only_bytes_are_over_no_total_of_tokens_is_called_the_lowest(run: Run) -> None:
    Path("a.mp4").write_bytes(films.film(4))

    done = run("a.mp4", "-e", "heavy")

    assert done.exit_code == 3
    told = " ".join(done.stdout.split())
    assert "limit 100" in told
    assert "In all " in told
    assert "Lowest reachable total" not in told


def test_a_deadline_is_held_where_one_is_named(run: Run) -> None:
    Path("song.wav").write_bytes(media.wav(30))
    words = ("song.wav", "-e", "old", "--max-tokens", "800", "--out", "made")

    late = run(*words, "--deadline", "0.000001")
    told = run(*words, "--deadline", "0.000001s", "--format", "json")
    done = run(*words, "--deadline", "5m")

    assert late.exit_code == 3
    said = " ".join(late.stdout.split())
    assert "Left out: local work took longer than 1e-06 s (prepare_deadline_s) on song.wav." in said
    assert "so there is none in it" in said
    assert json.loads(told.stdout)["late"]["left_out"][0]["part"] == 0
    assert done.exit_code == 0, done.output
    assert "Left out" not in done.stdout


def test_a_format_that_does_not_become_another_in_time_is_named(run: Run) -> None:
    Path("a.gif").write_bytes(media.picture((64, 48), "GIF"))

    late = run("a.gif", "--out", "made", "--deadline", "0.000001")

    assert late.exit_code == 4
    assert "a.gif: local work took longer than 1e-06 s" in late.stderr
    assert not Path("made").exists()


def test_a_file_that_was_named_is_never_written_over(run: Run) -> None:
    Path("song.wav").write_bytes(media.wav(30))
    Path("same").symlink_to(".")

    for out in (".", "same"):
        done = run("song.wav", "-e", "old", "--max-tokens", "800", "--out", out)

        assert done.exit_code == 0, done.output
        assert Path("song.wav").read_bytes() == media.wav(30)
        with wave.open("song-2.wav") as made:
            assert made.getnframes() / made.getframerate() == 20


def test_a_request_that_was_named_is_never_written_over(run: Run) -> None:
    Path("agent.json").rename("request.json")
    before = Path("request.json").read_bytes()

    for words in (("request.json", "-e", "agent"), (".", "--as", "file")):
        done = run(*words, "--out", ".")

        assert done.exit_code == 2
        assert "would overwrite request.json itself" in done.stderr
        assert Path("request.json").read_bytes() == before


def test_where_nothing_can_be_written_is_told_before_anything_is_made(run: Run) -> None:
    Path("a.gif").write_bytes(media.picture((64, 48), "GIF"))

    done = run("a.gif", "--out", "a.gif/made")

    assert done.exit_code == 2
    assert "nothing can be written to" in done.stderr
    assert not done.stdout


def test_an_empty_folder_is_no_request_that_fits(run: Run) -> None:
    Path("empty").mkdir()

    done = run("empty")

    assert done.exit_code == 2
    assert "no file in empty" in done.stderr


def test_the_reason_why_a_file_cannot_be_weighed_is_told_whole(run: Run) -> None:
    Path("cut.jpg").write_bytes(media.picture((640, 480), "JPEG")[:40])

    done = run("cut.jpg", "shot.png")

    assert "it does not open as JPEG: OSError" in done.stdout


def test_a_file_whose_metadata_cannot_be_taken_out_stops_it_and_says_why(run: Run) -> None:
    whole = media.picture((64, 48), "JPEG")
    Path("odd.jpg").write_bytes(whole[:2] + b"\xff\xe1\x00\x01" + whole[2:])

    done = run("odd.jpg", "-e", "clean", "--out", "made")

    assert done.exit_code == 4
    assert "odd.jpg: its metadata cannot be taken out: a segment of 1 bytes (media.strip_metadata)" in done.stderr
    assert not Path("made").exists()
