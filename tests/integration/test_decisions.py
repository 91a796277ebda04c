"""The decision log: what is in a line and what never is; and what is made of it later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from google.genai.errors import APIError

import films
import media
import weighlock
from emulated import Wire, at, called, inline, result, user
from prepared import Face, settings
from weighlock.cli import cli
from weighlock.cli.usage import grouped
from weighlock.emulator import Emulator
from weighlock.errors import BudgetExceeded, ConfigError, ServiceRefused
from weighlock.events import Ended
from weighlock.observe.decision_log import DecisionLog, Reading, read
from weighlock.whatif import Case, Outlook, what_if

MODEL = "gemini-3.5-flash"
CANARY = "sesame-4711"


@pytest.fixture
def wire(running: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    running.reset()
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running.base_url)
    monkeypatch.setenv("GEMINI_API_KEY", f"key-{CANARY}")
    with closing(Wire(running)) as known:
        yield known


def logged(tmp_path: Path, default: str, more: str = "") -> tuple[Any, Path]:
    log = tmp_path / "log.jsonl"
    yaml = f"default: {{model: {MODEL}, {default}}}\nobserve: {{decision_log: {log}}}\n{more}"
    return settings(tmp_path, yaml), log


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def body(*parts: Any) -> bytes:
    return json.dumps({"contents": [user(*parts)]}).encode()


@pytest.mark.parametrize("awaits", [False, True])
def test_a_request_ends_as_it_was_told_first(tmp_path: Path, awaits: bool) -> None:
    known, log = logged(tmp_path, "windows: {day: {prompt_tokens: 100000}}")
    with Face(known, awaits=awaits) as face:
        ready = face.prepare(body("hi"))
        first = face.settle(ready, {"usageMetadata": {"promptTokenCount": 7}})
        again = face.settle(ready, {"usageMetadata": {"promptTokenCount": 900}})
        face.settle(ready, error=ServiceRefused("no", status=400))
        face.release(ready)
        let_go = face.prepare(body("never sent"))
        face.release(let_go)
        late = face.settle(let_go, {"usageMetadata": {"promptTokenCount": 900}})
        ((spent, held),) = face.counters().values()

    assert again is first
    assert late.codes == ("not_sent",)
    assert [(line["codes"], line["billed"] and line["billed"]["prompt"]) for line in lines(log)] == [
        ([], 7),
        (["not_sent"], None),
    ]
    assert (spent["prompt_tokens"], held) == (7, {})


def test_of_many_threads_that_settle_a_request_one_is_told_of(tmp_path: Path) -> None:
    known, log = logged(tmp_path, "windows: {day: {prompt_tokens: 100000}}")
    with Face(known, awaits=False) as face, ThreadPoolExecutor(8) as pool:
        ready = face.prepare(body("hi"))
        usages = [{"usageMetadata": {"promptTokenCount": tokens}} for tokens in range(1, 25)]
        receipts = list(pool.map(lambda usage: face.settle(ready, usage), usages))

    assert len({id(one) for one in receipts}) == 1
    assert len(lines(log)) == 1


def answered(wire: Wire, sent: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = wire.http.post(f"/v1beta/models/{MODEL}:generateContent", content=sent).json()
    return answer


@pytest.mark.parametrize("awaits", [False, True])
def test_a_line_a_request_and_no_content_in_it(wire: Wire, tmp_path: Path, awaits: bool) -> None:
    known, log = logged(tmp_path, "limits: {prompt_tokens: 700}", "uploads: {inline_below: {developer: 1MB}}\n")
    shot = inline(media.picture((1920, 1080)), "image/png")
    with Face(known, awaits=awaits) as face:
        ready = face.prepare(body(f"what is {CANARY}?", shot), tenant="acme", session=f"session {CANARY}")
        face.settle(ready, answered(wire, ready.body))
        face.release(face.prepare(body("never sent")))
        with pytest.raises(BudgetExceeded):
            face.prepare(body(CANARY * 4000))
    settled, let_go, refused = lines(log)
    assert CANARY not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert settled["v"] == 1
    assert (settled["outcome"], settled["tenant"]) == ("shaped", "acme")
    assert settled["billed"]["prompt"] <= 700
    assert settled["steps"][0]["lever"] == "resolution"
    picture, words = settled["parts"]
    assert (picture["mime"], len(picture["sha256"]), words["sha256"]) == ("image/png", 12, None)
    assert picture["after"]["IMAGE"][2] < picture["before"]["IMAGE"][2]
    assert picture["sent"]["part_resolution"] == settled["steps"][0]["words"].removeprefix("resolution ")
    billed = settled["billed"]
    assert sum(billed["by_modality"].values()) + billed["unattributed"] == billed["prompt"]
    assert (billed["buckets"], billed["hops"], billed["tool_use"]) == (billed["by_modality"], 1, 0)
    assert 0 < sum(map(Decimal, billed["usd_by_modality"].values())) < Decimal(billed["usd"])
    assert set(billed["usd_by_modality"]) == {"IMAGE", "TEXT"}
    assert (settled["family"], picture["sent_mime"], picture["work"]) == (MODEL, "image/png", None)
    assert picture["sent_bytes"] == picture["size_bytes"]
    assert (let_go["codes"], let_go["billed"]) == (["not_sent"], None)
    assert (refused["outcome"], refused["codes"][0]) == ("refused", "budget_exceeded")
    assert refused["held"] == {}


def test_what_was_done_to_the_bytes_of_a_medium_is_there_with_every_parameter(wire: Wire, tmp_path: Path) -> None:
    cut = "local_work: allowed, limits: {bytes: 15KB}, media: {video: {apply: always, clip: last 2s, cut: exact}}"
    known, log = logged(tmp_path, cut)
    film = inline(films.film(6.0), "video/mp4")
    with Face(known, awaits=False) as face:
        ready = face.prepare(body("what is it?", film))
        face.settle(ready, answered(wire, ready.body))
    (line,) = lines(log)
    part, _ = line["parts"]
    work = part["work"]
    assert (work["kind"], work["start_s"], work["end_s"], work["exact"]) == ("VideoWork", 4.0, 6.0, True)
    assert part["sent_mime"] == "video/mp4"
    assert 0 < part["sent_bytes"] < part["size_bytes"]
    assert part["uploaded"] is None


def test_what_became_of_media_that_did_not_go_as_they_came(wire: Wire, tmp_path: Path) -> None:
    known, log = logged(tmp_path, "mode: enforce")
    shot, sound = media.picture((64, 48)), media.wav(0.5)
    listened = result("listen", inline(sound, "audio/wav"), inline(shot, "image/png"))
    asked = {"contents": [user("see", inline(shot, "image/jpeg")), called("listen"), user(listened)]}
    with Face(known, awaits=False) as face:
        ready = face.prepare(json.dumps(asked).encode())
        face.settle(ready, answered(wire, ready.body))
    (line,) = lines(log)
    assert line["screened"] == {"relabelled": {"IMAGE": 1}, "removed": {"AUDIO": 1}}


def test_files_brought_and_files_brought_again(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, log = logged(tmp_path, "mode: enforce", "uploads: {inline_below: {developer: 1KB}}\n")
    asked = body("see", inline(media.picture((640, 480)), "image/png"))
    with Face(known, awaits=False) as face:
        for _ in range(2):
            ready = face.prepare(asked)
            face.settle(ready, answered(wire, ready.body))
        ready = face.prepare(asked)
        (file,) = ready.receipt.uploads.values()
        deleted = wire.http.delete(f"/v1beta/{file.name}", headers={"x-goog-api-key": f"key-{CANARY}"})
        assert deleted.status_code == 200
        face.clock.passed_s += 3600  # what was uploaded a moment ago is not uploaded again
        told = f"You do not have permission to access the File {file.name.partition('/')[2]} or it may not exist."
        gone = APIError(403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": told}})
        again = face.preflight.mend(ready, gone)
        assert again is not None
        face.settle(again, answered(wire, again.body))
    first, second, third = lines(log)
    assert [one["parts"][0]["uploaded"] for one in (first, second, third)] == [True, False, False]
    assert [one["reuploads"] for one in (first, second, third)] == [{}, {}, {"refused": 1}]


@pytest.mark.parametrize("deletes", ["at_expiry", "after_request"])
def test_a_file_that_a_count_finds_gone_is_brought_again_once_and_kept_for_the_request(
    wire: Wire, running: Emulator, tmp_path: Path, deletes: str
) -> None:
    known, log = logged(
        tmp_path,
        "mode: enforce, count: {when: always}",
        f"uploads: {{inline_below: {{developer: 1KB}}, delete_remote: {deletes}}}\n",
    )
    with Face(known, awaits=False) as face:
        ready = face.prepare(body("see", inline(media.picture((640, 480)), "image/png")))
        (file,) = ready.receipt.uploads.values()
        with face.preflight._opened.registry().file.writing() as sql:
            sql.execute("UPDATE contents SET facts = NULL")  # of a file nobody has measured all is counted
        for there in running.files:
            running.files.delete(there.project, there.name)
        running.clock.advance(3600)  # what was uploaded a moment ago is not uploaded again
        again = face.prepare(body("see", at(file.uri, "image/png")))
        answer = answered(wire, again.body)
        face.settle(again, answer)
        face.release(ready)
    assert again.receipt.reuploads == {"refused": 1}
    assert len(running.requests.of("upload.finalize")) == 2
    assert [one["reuploads"] for one in lines(log)] == [{"refused": 1}, {}]


def test_no_name_of_a_file_where_one_resolution_holds_for_all_of_a_request(tmp_path: Path) -> None:
    known, log = logged(tmp_path, "limits: {prompt_tokens: 600}")
    known = replace(known, default=replace(known.default, model="gemini-2.5-flash"))
    shot, film = tmp_path / f"{CANARY}.png", tmp_path / f"{CANARY}.mp4"
    shot.write_bytes(media.picture((1920, 1080)))
    film.write_bytes(films.film(30.0, fps=5))
    with Face(known, awaits=False) as face:
        face.release(face.prepare(["what is it?", weighlock.media(shot), weighlock.media(film)]))
    (line,) = lines(log)
    assert line["steps"][0]["words"] == "the request's resolution low"
    assert CANARY not in log.read_text()


def test_a_log_that_cannot_be_written_stops_nobody(
    wire: Wire, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    log = DecisionLog(folder)
    with Face(settings(tmp_path, f"default: {{model: {MODEL}}}\n"), awaits=False) as face:
        face.preflight._witnesses._listeners.extend([log.write, log.write])
        face.release(face.prepare(body("a")))
    assert log.lost == 2
    assert caplog.text.count("cannot be written") == 1


def test_whoever_listens_may_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Ended] = []

    def fails(_: Ended) -> None:
        raise RuntimeError("dashboard")

    with weighlock.Preflight(
        settings(tmp_path, f"default: {{model: {MODEL}}}\n"), preload=False, on_event=[fails, told.append]
    ) as preflight:
        preflight.release(preflight.prepare(body("a")))
    assert len(told) == 1
    assert told[0].parts[0].sha256 is None
    assert "listener" in caplog.text


def test_torn_foreign_and_newer_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    good = {"v": 1, "at": now.isoformat(), "id": "a"}
    written = [
        good, {**good, "v": 2, "id": "b", "unheard of": 1}, {"v": 1}, {**good, "at": "2026-11-30T00:00:00"},
        {**good, "at": (now - timedelta(days=9)).isoformat()}, [], "x",
    ]  # fmt: skip
    log, reading = tmp_path / "log.jsonl", Reading()
    log.write_bytes(b"\n".join(json.dumps(one).encode() for one in written) + b'\n\xff\xfe{"v":1\n{"v": 1, "at"')
    found = list(read(log, now - timedelta(days=7), reading))
    assert [one["id"] for one in found] == ["a", "b"]
    assert (reading.lines, reading.broken, reading.newer) == (9, 6, 1)
    with pytest.raises(ConfigError):
        list(read(tmp_path / "none", None, Reading()))


def test_what_if_says_what_enforcing_would_have_done(wire: Wire, tmp_path: Path) -> None:
    known, log = logged(tmp_path, "mode: observe, limits: {prompt_tokens: 700, tokens: {video: 400}}")
    shot, film = inline(media.picture((1920, 1080)), "image/png"), inline(films.film(30.0, fps=5), "video/mp4")
    with Face(known, awaits=False) as face:
        for sent in (body("a"), body("look", shot), body("watch", film), body("words " * 4000)):
            ready = face.prepare(sent)
            assert ready.body == sent
            face.settle(ready, answered(wire, ready.body))
    assert [one["outcome"] for one in lines(log)] == ["admitted", "would_shape", "would_shape", "would_refuse"]
    enforced = settings(
        tmp_path, f"default: {{model: {MODEL}, limits: {{prompt_tokens: 700, tokens: {{video: 400}}}}}}\n"
    )
    rules = weighlock.RuleBook.packaged()
    cases: list[Case] = []
    outlook = what_if(lines(log), enforced, rules, told=cases.append)
    assert [one.outcome for one in cases] == ["admitted", "shaped", "shaped", "refused"]
    assert outlook.overall.outcomes == {"admitted": 1, "shaped": 2, "refused": 1}
    assert not outlook.unreadable
    for one, line in zip(cases, lines(log), strict=True):
        assert one.tokens_after in (0, line["wished_tokens"])
    roomy = settings(tmp_path, f"default: {{model: {MODEL}, windows: {{day: {{requests: 2}}}}}}\n")
    assert what_if(lines(log), roomy, rules).overall.outcomes == {"admitted": 2, "window": 2}
    broken = what_if([{"v": 1}, {**lines(log)[0], "endpoint": "gone"}], roomy, rules)
    assert sum(broken.unreadable.values()) == 2


def test_of_any_number_of_requests_the_worst_are_kept() -> None:
    outlook, at = Outlook(most=3), datetime.now(UTC)
    for number in range(100):
        outlook.add(
            Case(
                id=str(number),
                at=at,
                endpoint="e" if number % 2 else "f",
                outcome="refused" if number in (7, 50) else "shaped" if number % 3 else "admitted",
                why="",
                tokens_before=100 + number,
                tokens_after=0 if number in (7, 50) else 100,
                usd_before=None,
                usd_after=None,
            )
        )

    assert [one.id for one in outlook.worst()] == ["50", "7", "98"]
    assert (outlook.overall.requests, outlook.endpoints["e"].requests) == (100, 50)
    assert len(outlook._worst) == 3


def test_a_session_pays_for_its_history_again_and_again() -> None:
    steps = [{"session": "a", "at": "2026-12-01", "billed": {"prompt": prompt}} for prompt in (1000, 1800, 2600)]

    one = grouped(steps, "session")["a"]

    assert (one.prompt, one.longest, str(one.amplification)) == (5400, 2600, "2.08")


def test_usage_tells_who_spent_what(wire: Wire, tmp_path: Path) -> None:
    known, log = logged(tmp_path, "limits: {prompt_tokens: 5000}", "endpoints: {triage: {owner: team}}\n")
    shot = inline(media.picture((640, 480)), "image/png")
    with Face(known, awaits=False) as face:
        for endpoint in ("triage", "triage", None):
            ready = face.prepare(body("look", shot), endpoint=endpoint)
            face.settle(ready, answered(wire, ready.body))
        with pytest.raises(BudgetExceeded):
            face.prepare(body("words " * 9000), endpoint="triage")
    groups = grouped(lines(log), "endpoint")
    assert (groups["triage"].requests, groups["triage"].refused, groups["default"].requests) == (3, 1, 1)
    assert groups["triage"].prompt == 2 * groups["default"].prompt
    assert grouped(lines(log), "modality")["image"].prompt == 3 * groups["default"].modalities["IMAGE"]


@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_both_commands_read_it(wire: Wire, tmp_path: Path, columns: str, form: str) -> None:
    known, _ = logged(tmp_path, "mode: observe, limits: {prompt_tokens: 700}")
    with Face(known, awaits=False) as face:
        ready = face.prepare(body("look", inline(media.picture((1920, 1080)), "image/png")))
        face.settle(ready, answered(wire, ready.body))
    for command in (
        ["what-if", "--since", "7d"],
        *(["usage", "--by", what] for what in ("day", "modality", "session")),
    ):
        asked = [*command, "--config", str(tmp_path / "weighlock.yaml"), "--format", form]
        done = CliRunner().invoke(cli, asked, env={"COLUMNS": columns})
        assert done.exit_code == 0, done.output
        wide = [line for line in done.stdout.splitlines() if len(line) > int(columns)]
        assert not wide or form == "json", wide
        assert json.loads(done.stdout) if form == "json" else done.stdout
