"""`weighlock check REQUEST.json` and `weighlock convert` as a user meets them: real bodies, real output, exit codes."""

from __future__ import annotations

import base64
import csv
import io
import json
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import media
from weighlock.cli import cli

Run = Callable[..., Result]
Json = Any
SECRET = "sig-0123456789-private"  # noqa: S105  # no secret, but looks like one


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)

    def invoke(*words: str | Path, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [*map(str, words)], input=stdin)

    return invoke


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def png() -> bytes:
    return media.picture((1920, 1080))


@pytest.fixture(scope="module")
def wav() -> bytes:
    return media.wav(3)


def said(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def call(name: str, call_id: str) -> Json:
    return {"functionCall": {"id": call_id, "name": name, "args": {}}}


def result(name: str, call_id: str, response: Json, *parts: Json) -> Json:
    told = {"id": call_id, "name": name, "response": response}
    return {"functionResponse": {**told, "parts": list(parts)} if parts else told}


def inline(data: bytes, label: str) -> Json:
    return {"inlineData": {"mimeType": label, "data": b64(data)}}


@pytest.fixture
def rest(png: bytes, wav: bytes) -> Json:
    """A photo under a wrong name; tools that answered with a picture and sound as text; a long history."""
    return {
        "systemInstruction": {"parts": [{"text": "You test web shops."}]},
        "contents": [
            said("user", "What is wrong here?", inline(media.picture((64, 48), "JPEG"), "image/png")),
            said("model", call("shoot", "c1"), call("record", "c2")),
            said(
                "user",
                result("shoot", "c1", {"content": [{"type": "image", "mimeType": "image/png", "data": b64(png)}]}),
                result("record", "c2", {"output": f"data:audio/wav;base64,{b64(wav)}"}),
            ),
            *[said("user" if at % 2 else "model", "word " * 20) for at in range(39)],
            said("user", "Thanks."),
        ],
    }


@pytest.fixture
def messages(png: bytes) -> Json:
    picture = {"type": "image", "media_type": "image/png", "source": {"type": "base64", "data": b64(png)}}
    answer = {"type": "tool_result", "call_id": "c1", "blocks": [{"type": "text", "text": "taken"}, picture]}
    return [
        {"role": "user", "blocks": [{"type": "text", "text": "Look at the page."}]},
        {"role": "assistant", "blocks": [{"type": "tool_call", "call_id": "c1", "name": "shoot", "arguments": {}}]},
        {"role": "tool", "blocks": [answer]},
    ]


@pytest.fixture
def body(tmp_path: Path, rest: Json) -> Path:
    return written(tmp_path / "request.json", rest)


def written(path: Path, document: Json) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def document(found: Result) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(found.stdout)
    return read


# ---- check: the table


def test_the_table_says_turn_by_turn_what_was_screened_and_why(run: Run, body: Path) -> None:
    found = run("check", body)

    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert "REST body · gemini-3.8-flash on developer" in lines[0]
    rows = [words(line) for line in lines]
    assert any(row.startswith("system text 19 characters") for row in rows)
    assert any("[1] image image/jpeg" in row and "relabel → image/jpeg: labelled image/png; the" in row for row in rows)
    assert "[1] model [0] call shoot" in words(found.stdout)
    (picture,) = (row for row in rows if "image in its text" in row)
    assert "1920×1080 1,100 lifted from text; as text ≈" in picture
    assert picture.endswith("as image 1,100")
    (sound,) = (row for row in rows if "audio in its text" in row)
    assert "3 s - removed from text: gemini-3.8-flash takes no audio in a tool result; as text ≈" in sound
    assert "One request of 43 turns, 2 media:" in words(found.stdout)
    assert "base64 takes more" in words(found.stdout)


def test_turns_of_plain_text_are_told_together(run: Run, body: Path) -> None:
    (row,) = (words(line) for line in run("check", body).stdout.splitlines() if "[3–42]" in line)

    assert row.startswith("[3–42] text 3,907 characters ~")


def test_a_long_history_of_calls_is_one_row_and_the_medium_in_it_is_seen(run: Run, tmp_path: Path, png: bytes) -> None:
    turns = [
        turn
        for at in range(60)
        for turn in (
            said("user", "go on"),
            said("model", call("look", f"c{at}")),
            said("user", result("look", f"c{at}", {"output": "nothing"})),
        )
    ]
    turns[91:91] = [said("user", inline(png, "image/png"), "see this")]

    table = run("check", written(tmp_path / "r.json", {"contents": turns})).stdout

    assert len(table.splitlines()) < 16
    assert "[0–90]" in table
    assert "text, 30 calls, 30 results" in table
    assert "[91] user" in table


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_table_fits_the_terminal(run: Run, body: Path, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    found = run("check", body)

    assert max(map(len, found.stdout.splitlines())) <= int(columns)
    assert "…" not in found.stdout
    assert "removed from text" in words(found.stdout)


def test_what_moves_and_what_is_sent_as_text_is_told_at_its_turn(run: Run, tmp_path: Path, wav: bytes) -> None:
    answers = [
        result("look", "c1", {"a": {"$ref": "#/x"}}),
        result("play", "c2", "loud"),
        "and this",
        inline(wav, "audio/wav"),
    ]
    turns = [said("model", call("look", "c1"), call("play", "c2")), said("user", *answers)]

    table = words(run("check", written(tmp_path / "r.json", {"contents": turns})).stdout)

    assert "sent as JSON text: `$ref` would be read as a pointer" in table
    assert 'wrapped as {"result": …}: a function response is an object' in table
    assert "[2] text 8 characters ~2 moved behind the tool results: a turn of tool results holds nothing else" in table
    assert "audio/wav 48 kB · 3 s 75 moved behind the tool results" in table


def test_a_conversion_is_announced_and_told_once(run: Run, tmp_path: Path) -> None:
    gif = media.picture((64, 64), "GIF")

    found = run("check", written(tmp_path / "r.json", {"contents": [said("user", "hm", inline(gif, "image/gif"))]}))

    assert found.exit_code == 0
    assert "convert → image/png: gemini-3.8-flash takes no image/gif; it becomes image/png" in words(found.stdout)
    assert found.stdout.count("takes no image/gif") == 1
    assert "1 not taken by the service as it is" in words(found.stdout)


def test_a_hundred_thousand_parts_are_a_short_table_in_bounded_time(run: Run, tmp_path: Path) -> None:
    picture = inline(media.picture((8, 8)), "image/png")
    parts = [*({"text": "x"} for _ in range(100_000)), *(picture for _ in range(400))]
    path = written(tmp_path / "r.json", {"contents": [{"role": "user", "parts": parts}]})

    started = time.monotonic()
    table = run("check", path).stdout

    assert time.monotonic() - started < 30
    assert len(table.splitlines()) < 230
    assert "[0–99999] text" in table
    assert "… and 201 more rows" in table


# ---- check: documents for programs


def test_the_json_tells_every_finding_and_where_it_is_in_the_parts(run: Run, body: Path) -> None:
    report = document(run("check", body, "--format", "json"))

    assert (report["schema"], report["source"], report["format"]) == (1, str(body), "rest")
    photo, picture, sound = report["screening"]["findings"]
    assert (photo["place"], photo["action"], photo["send_as"]) == ("contents[0].parts[1]", "relabel", "image/jpeg")
    assert (photo["declared_mime"], photo["mime"], photo["part"]) == ("image/png", "image/jpeg", 0)
    assert set(picture) == {
        "place", "carrier", "tool", "call_id", "file_id", "mime", "declared_mime", "size_bytes", "seconds", "action",
        "code", "reason", "send_as", "convert", "hidden", "as_text_tokens", "error", "part",
    }  # fmt: skip
    assert (picture["tool"], picture["call_id"], picture["carrier"]) == ("shoot", "c1", "tool_result")
    assert (picture["hidden"], picture["part"], picture["error"]) == (True, 1, None)
    assert picture["as_text_tokens"]["low"] < picture["as_text_tokens"]["likely"] < picture["as_text_tokens"]["high"]
    assert (sound["action"], sound["code"], sound["part"]) == ("remove", "not_in_tool_result", None)
    assert sound["seconds"] == pytest.approx(3)
    assert photo["as_text_tokens"] is None
    assert [part["mime"] for part in report["parts"]] == ["image/jpeg", "image/png", "text/plain"]
    assert report["parts"][1]["tokens"]["likely"] == 1_100


def test_files_have_no_screening(run: Run, tmp_path: Path, png: bytes) -> None:
    (tmp_path / "a.png").write_bytes(png)

    assert document(run("check", "a.png", "--format", "json"))["screening"] is None


def test_several_models_are_each_screened_for(run: Run, body: Path) -> None:
    found = run("check", body, "--model", "gemini-2.5-flash,gemini-3.8-flash", "--format", "json")

    old, new = document(found)["models"]
    assert [one["action"] for one in old["screening"]["findings"]] == ["relabel", "relocate", "remove"]
    assert [one["action"] for one in new["screening"]["findings"]] == ["relabel", "keep", "remove"]
    assert (old["parts"][1]["tokens"]["likely"], new["parts"][1]["tokens"]["likely"]) == (258, 1_100)
    table = run("check", body, "--model", "gemini-2.5-flash,gemini-3.8-flash").stdout
    assert "lifted from text, moved behind the tool results: gemini-2.5-flash takes no media" in words(table)


def test_the_model_a_request_names_is_the_one_it_is_weighed_on(run: Run, tmp_path: Path, rest: Json) -> None:
    path = written(tmp_path / "r.json", {"model": "models/gemini-2.5-flash", **rest})

    named = document(run("check", path, "--format", "json"))
    overruled = document(run("check", path, "--format", "json", "--model", "gemini-3.8-flash"))

    assert named["resolved_model"] == "gemini-2.5-flash"
    assert overruled["resolved_model"] == "gemini-3.8-flash"


def test_json_lines_and_csv_tell_what_is_sent_and_what_is_not(run: Run, body: Path) -> None:
    (line,) = run("check", body, "--format", "jsonl").stdout.splitlines()
    rows = list(csv.DictReader(io.StringIO(run("check", body, "--format", "csv").stdout)))

    assert len(json.loads(line)["screening"]["findings"]) == 3
    assert [(row["place"], row["action"], row["tokens_likely"]) for row in rows] == [
        ("contents[0].parts[1]", "relabel", "1064"),
        ("contents[2].parts[0]", "keep", "1100"),
        ("", "", rows[2]["tokens_likely"]),
        ("contents[2].parts[1]", "remove", ""),
    ]
    assert rows[2]["source"] == "text of the request"
    assert {row["request"] for row in rows} == {str(body)}


def test_settings_hold_where_a_part_asks_for_nothing(run: Run, tmp_path: Path) -> None:
    film = inline(media.video(4, size=(320, 180), options={"preset": "ultrafast"}), "video/mp4")
    slow = {**film, "videoMetadata": {"fps": 0.5}}
    path = written(tmp_path / "r.json", {"contents": [said("user", "look", film, slow)]})

    parts = document(run("check", path, "--fps", "2", "--text", "and tell", "--format", "json"))["parts"]
    table = words(run("check", path, "--fps", "2", "--text", "and tell").stdout)

    assert [part["tokens"]["likely"] for part in parts[:2]] == [8 * 66, 2 * 66]
    assert [part["source"] for part in parts[2:]] == ["text of the request", "prompt text"]
    assert "--text prompt text 8 characters ~2" in table


# ---- check: what is a request


def test_neutral_messages_are_a_request(run: Run, tmp_path: Path, messages: Json) -> None:
    path = written(tmp_path / "m.json", messages)

    report = document(run("check", path, "--format", "json"))

    assert report["format"] == "messages"
    assert [one["place"] for one in report["screening"]["findings"]] == [
        "contents[2].parts[0].functionResponse.parts[0]"
    ]
    assert "neutral messages" in run("check", path).stdout
    assert "· image image/png" in words(run("check", path).stdout)


def test_standard_input_may_be_a_request(run: Run, body: Path) -> None:
    report = document(run("check", "-", "--format", "json", stdin=body.read_bytes()))

    assert report["source"] == "standard input"
    assert len(report["screening"]["findings"]) == 3


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "FeatureCollection", "contents": ["a", "b"]}',
        '{"messages": [{"user": "U1", "text": "slack"}]}',
        '{"contents": "some words", "role": "x"}',
        '[{"role": "admin", "rights": []}]',
        '{"messages": [{"role": "user"}]}\n{"messages": [{"role": "user"}]}\n',
        '{"role": "broken',
        "[1, 2, 3]",
        '{"a": NaN}',
    ],
)
def test_other_json_is_the_text_it_was(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "data.json").write_text(text)

    report = document(run("check", "data.json", "--format", "json"))

    assert report["parts"][0]["modality"] == "TEXT"
    assert report["screening"] is None


def test_as_overrules_what_a_file_is_taken_for(run: Run, body: Path, tmp_path: Path) -> None:
    as_file = document(run("check", body, "--as", "file", "--format", "json"))
    as_messages = run("check", body, "--as", "messages")
    (tmp_path / "data.json").write_text("{}")
    as_rest = document(run("check", "data.json", "--as", "rest", "--format", "json"))

    assert as_file["parts"][0]["modality"] == "TEXT"
    assert as_messages.exit_code == 2
    assert "malformed_request: messages: is missing" in as_messages.stderr
    assert as_rest["screening"] == {"findings": [], "changes": [], "problems": []}


def test_in_a_folder_requests_are_files_unless_it_is_said(run: Run, tmp_path: Path, rest: Json, messages: Json) -> None:
    folder = tmp_path / "bodies"
    folder.mkdir()
    written(folder / "a.json", rest)
    written(folder / "b.json", {**rest, "contents": rest["contents"][:1]})

    walked = document(run("check", folder, "--format", "json"))
    told = document(run("check", folder, "--as", "rest", "--format", "json"))

    assert walked["weighed"] == "each"
    assert [Path(one["source"]).name for one in told["requests"]] == ["a.json", "b.json"]
    assert [len(one["screening"]["findings"]) for one in told["requests"]] == [3, 1]


def test_requests_are_weighed_by_themselves_and_files_beside_them_together(
    run: Run, tmp_path: Path, body: Path, messages: Json, png: bytes
) -> None:
    (tmp_path / "a.png").write_bytes(png)
    (tmp_path / "b.png").write_bytes(png)
    other = written(tmp_path / "m.json", messages)

    documents = document(run("check", body, "a.png", other, "b.png", "--format", "json"))["requests"]
    table = run("check", body, "a.png", other, "b.png").stdout
    lines = run("check", body, "a.png", other, "b.png", "--format", "jsonl").stdout.splitlines()
    rows = list(csv.DictReader(io.StringIO(run("check", body, "a.png", "b.png", "--format", "csv").stdout)))

    assert [one.get("format") for one in documents] == ["rest", "messages", None]
    assert documents[2]["total"]["likely"] == 2_200
    assert table.index("REST body") < table.index("neutral messages") < table.index("One request of 2 parts")
    assert len(lines) == 3
    assert [row["request"] for row in rows] == [str(body)] * 4 + [""] * 2


def test_a_request_is_not_compared(run: Run, body: Path) -> None:
    found = run("check", body, "--compare", "gemini-3.8-flash")

    assert found.exit_code == 2
    assert "request.json is a request, and --compare weighs files; name models with --model" in words(found.stderr)


def test_checking_a_picture_loads_no_converter(tmp_path: Path, png: bytes) -> None:
    (tmp_path / "a.png").write_bytes(png)
    (tmp_path / "b.json").write_text('{"type": "FeatureCollection", "features": []}')
    code = (
        f"import sys; sys.argv = ['weighlock', 'check', {str(tmp_path / 'a.png')!r}, {str(tmp_path / 'b.json')!r}]\n"
        "from weighlock.cli import cli\n"
        "cli(standalone_mode=False)\n"
        "print([m for m in sys.modules if m.startswith(('weighlock.converters', 'orjson', 'msgspec', 'google.genai'))])"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip().splitlines()[-1] == "[]"


# ---- check: exit codes


def test_what_cannot_be_sent_is_exit_code_4_with_its_place(run: Run, tmp_path: Path) -> None:
    tiff = inline(media.picture((8, 8), "TIFF"), "image/tiff")
    turns = [
        said("user", "see", tiff),
        said("model", call("a", "c1"), call("b", "c2")),
        said("user", result("a", "c1", {})),
    ]
    path = written(tmp_path / "r.json", {"contents": turns})

    found = run("check", path)

    table = words(found.stdout)
    assert found.exit_code == 4
    assert "refused: gemini-3.8-flash takes no image/tiff; send it as PNG" in table
    assert "cannot be sent: contents[2]: 1 function response to the 2 function calls of contents[1]" in table
    assert "→ cannot be sent as it is" in table
    report = document(run("check", path, "--format", "json"))
    assert report["screening"]["findings"][0]["error"]["code"] == "unsupported_media"
    assert report["screening"]["findings"][0]["part"] == 0
    assert report["screening"]["problems"][0]["place"] == "contents[2]"
    rows = list(csv.DictReader(io.StringIO(run("check", path, "--format", "csv").stdout)))
    assert (rows[-1]["error"], rows[-1]["place"]) == ("malformed_request", "contents[2]")


def test_over_a_limit_goes_before_unfit_to_be_sent(run: Run, body: Path, tmp_path: Path) -> None:
    (tmp_path / "weighlock.yaml").write_text(
        "version: 1\naccounts: {a: {backend: developer}}\n"
        "default: {account: a, model: gemini-3.8-flash, tool_media: reject, limits: {prompt_tokens: 500}}\n"
    )

    found = run("check", body)

    assert found.exit_code == 3
    assert "default would refuse (mode: observe): prompt" in words(found.stdout)
    assert "reject · cannot be sent as it is" in words(found.stdout)


HOSTILE = {
    "truncated": ('{"contents": [{"role": "user", "parts": [{"text": "a', "the body: is no JSON"),
    "NaN": ('{"contents": [{"parts": [{"text": "a"}]}], "x": NaN}', "NaN is no JSON number"),
    "twice": (
        '{"contents": [{"role": "user", "parts": [{"text": "a"}], "role": "model"}]}',
        "contents[0].role: is there twice",
    ),
    "both casings": (
        '{"contents": [{"parts": [{"inlineData": {"data": ""}, "inline_data": {"data": ""}}]}]}',
        "contents[0].parts[0]",
    ),
    "deep": ('{"contents": [{"parts": [{"text": ' + "[" * 100_000, "is nested too deeply"),
    "no object": ('{"contents": [{"parts": [{"text": 5}]}]}', "contents[0].parts[0].text: is no text but a number"),
    "resolution": (
        '{"contents": [{"parts": [{"text": "a"}]}], "generationConfig": {"mediaResolution": "HUGE"}}',
        "generationConfig.mediaResolution: 'HUGE' is not one of",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_broken_request_is_told_with_its_place(run: Run, tmp_path: Path, name: str) -> None:
    text, wanted = HOSTILE[name]
    (tmp_path / "r.json").write_text(text)

    found = run("check", "r.json")
    told = document(run("check", "r.json", "--format", "json"))
    rows = list(csv.DictReader(io.StringIO(run("check", "r.json", "--format", "csv").stdout)))

    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("weighlock: r.json: malformed_request: ")
    assert wanted in found.stderr
    assert told["error"]["code"] == rows[0]["error"] == "malformed_request"
    assert wanted in told["error"]["message"]


def test_one_broken_request_does_not_stop_the_others(run: Run, tmp_path: Path, body: Path) -> None:
    (tmp_path / "broken.json").write_text(HOSTILE["truncated"][0])

    found = run("check", "broken.json", body, "--format", "json")

    assert found.exit_code == 4
    assert [bool(one.get("error")) for one in document(found)["requests"]] == [True, False]


def test_megabytes_of_garbage_cost_little(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(b'{"contents": [' + b'{"a"[' * 1_000_000)

    started = time.monotonic()
    found = run("check", "r.json")

    assert found.exit_code == 2
    assert time.monotonic() - started < 5


def test_neither_media_nor_references_nor_signatures_are_printed(run: Run, tmp_path: Path, png: bytes) -> None:
    uri = f"https://storage.example.com/private/{SECRET}/film.mp4?token={SECRET}"
    reference = {"fileData": {"mimeType": "video/mp4", "fileUri": uri}}
    turns = [
        said("user", "look", reference, inline(png, "image/png")),
        said("model", {"text": "hm", "thoughtSignature": SECRET}, {**call("shoot", "c1"), "thoughtSignature": SECRET}),
        said("user", result("shoot", "c1", {"picture": b64(png)}, reference)),
    ]
    path = written(tmp_path / "r.json", {"contents": turns})

    printed = [run("check", path, "--format", form) for form in ("table", "json", "jsonl", "csv")]
    printed.append(run("convert", path, "--to", "rest", "--out", "out.json"))

    for found in printed:
        assert SECRET not in found.output
        assert "storage.example.com" not in found.output
        assert b64(png)[:40] not in found.output


def test_names_in_a_request_cannot_speak_to_the_terminal(run: Run, tmp_path: Path) -> None:
    name = "\x1b[31m[bold]tool" + "x" * 5_000
    turns = [said("\x1b[2Jrole", "a"), said("model", call(name, "c1")), said("user", result(name, "c1", {}))]
    path = written(tmp_path / "r.json", {"contents": turns})

    for form in ("table", "csv"):
        assert "\x1b" not in run("check", path, "--format", form).output
    assert max(map(len, run("check", path).stdout.splitlines())) <= 200


# ---- convert


def test_a_rest_request_nobody_changed_leaves_as_the_bytes_that_came(run: Run, tmp_path: Path) -> None:
    text = b'{ "contents":[ {"role":"user","parts":[{"text":"\\u00fcber"}]} ],\n "unknown_field": {"a":1.50} }\n'
    (tmp_path / "r.json").write_bytes(text)

    found = run("convert", "r.json", "--to", "rest")

    assert (found.exit_code, found.stdout_bytes, found.stderr) == (0, text, "")


def test_what_was_changed_is_told_and_the_result_needs_no_change(run: Run, body: Path, png: bytes) -> None:
    found = run("convert", body, "--to", "rest", "--out", "fixed.json")

    assert (found.exit_code, found.stdout) == (0, "")
    assert found.stderr.splitlines() == [
        "weighlock: contents[0].parts[1]: relabel → image/jpeg: labelled image/png; the bytes are image/jpeg",
        "weighlock: contents[2].parts[0]: lifted from text",
        "weighlock: contents[2].parts[1]: removed from text: gemini-3.8-flash takes no audio in a tool result",
    ]
    fixed = json.loads(Path("fixed.json").read_text())
    lifted = fixed["contents"][2]["parts"][0]["functionResponse"]["parts"]
    assert lifted == [{"inlineData": {"mimeType": "image/png", "data": b64(png)}}]
    assert "removed, because" in fixed["contents"][2]["parts"][1]["functionResponse"]["response"]["output"]
    again = run("convert", "fixed.json", "--to", "rest")
    assert (again.stderr, again.stdout_bytes) == ("", Path("fixed.json").read_bytes())


def test_without_screening_nothing_is_changed(run: Run, body: Path) -> None:
    found = run("convert", body, "--to", "rest", "--no-screen")

    assert (found.stderr, found.stdout_bytes) == ("", body.read_bytes())


def test_both_directions_come_back_to_the_same_request(run: Run, tmp_path: Path, messages: Json) -> None:
    path = written(tmp_path / "m.json", messages)

    first = run("convert", path, "--to", "rest", "--out", "a.json")
    back = run("convert", "a.json", "--to", "messages", "--out", "b.json")
    second = run("convert", "b.json", "--to", "rest", "--out", "c.json")

    assert [one.exit_code for one in (first, back, second)] == [0, 0, 0]
    assert Path("a.json").read_bytes() == Path("c.json").read_bytes()
    assert [one["role"] for one in json.loads(Path("b.json").read_text())] == ["user", "assistant", "tool"]
    assert run("convert", path, "--to", "messages").stdout_bytes == path.read_bytes()


def test_standard_input_is_converted(run: Run, messages: Json) -> None:
    found = run("convert", "-", "--to", "rest", stdin=json.dumps(messages).encode())

    assert [turn["role"] for turn in json.loads(found.stdout)["contents"]] == ["user", "model", "user"]


def test_settings_are_never_dropped_in_silence(run: Run, tmp_path: Path) -> None:
    document = {"contents": [said("user", "a")], "tools": [{}], "model": "models/gemini-3.8-flash"}
    path = written(tmp_path / "r.json", document)

    refused = run("convert", path, "--to", "messages")
    dropped = run("convert", path, "--to", "messages", "--drop-settings")

    assert (refused.exit_code, refused.stdout) == (4, "")
    assert "messages have no place for tools; --drop-settings leaves that out" in refused.stderr
    assert "left out: tools" in dropped.stderr
    assert json.loads(dropped.stdout)["model"] == "models/gemini-3.8-flash"


def test_what_messages_cannot_express_is_refused_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    path = written(tmp_path / "r.json", {"contents": [said("model", code)]})

    found = run("convert", path, "--to", "messages", "--out", "m.json")

    assert found.exit_code == 4
    assert "contents[0].parts[0]: messages cannot express executableCode" in found.stderr
    assert not Path("m.json").exists()


def test_what_cannot_be_sent_is_not_written(run: Run, tmp_path: Path) -> None:
    tiff = inline(media.picture((8, 8), "TIFF"), "image/tiff")
    path = written(tmp_path / "r.json", {"contents": [said("user", "see", tiff)]})

    found = run("convert", path, "--to", "rest", "--out", "out.json")

    assert found.exit_code == 4
    assert found.stderr.startswith("weighlock: contents[0].parts[1]: gemini-3.8-flash takes no image/tiff")
    assert not Path("out.json").exists()


def test_what_has_to_become_another_format_first_is_not_written(run: Run, tmp_path: Path) -> None:
    gif = inline(media.picture((64, 64), "GIF"), "image/gif")
    path = written(tmp_path / "r.json", {"contents": [said("user", "hm", gif)]})

    found = run("convert", path, "--to", "rest")

    assert (found.exit_code, found.stdout) == (4, "")
    assert "contents[0].parts[1]: gemini-3.8-flash takes no image/gif; it becomes image/png first" in found.stderr


@pytest.mark.parametrize("text", ["{}", "[1]", "hello", '{"contents": [{"parts": [{"text": 1}]}]}', "", '{"a": '])
def test_no_request_is_exit_code_2(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)

    found = run("convert", "r.json", "--to", "rest")

    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("weighlock: r.json: ")
    assert run("convert", "missing.json", "--to", "rest").exit_code == 2
    assert run("convert", "r.json").exit_code == 2


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(run: Run, body: Path, tmp_path: Path) -> None:
    body.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(body)

    found = run("convert", body, "--to", "rest", "--out", link)

    assert found.exit_code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(body.stat().st_mode) == 0o640
    assert run("convert", body, "--to", "rest").stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "request.json"]
