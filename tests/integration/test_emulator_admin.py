"""The emulator from another process: its admin routes and its command."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest
from click.testing import CliRunner

import media
from emulated import Wire, at, user
from weighlock.cli import cli
from weighlock.emulator import Emulator
from weighlock.errors import ConfigError

pytest_plugins = ["weighlock.emulator.pytest_plugin"]


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator)
    yield wire
    wire.close()


def test_faults_clock_script_rules_and_addresses_are_set_over_http(emulator: Emulator, wire: Wire) -> None:
    http, shot = wire.http, media.picture((64, 48))
    flat = (
        'generation = "gemini-3"\nchecked_on = 2026-11-30\n[[image]]\nlikely = {flat = 7}\n'
        'since = 2026-01-01\nsource = "https://example.com"\nconfidence = "measured"\n'
    )

    fault = {"name": "return-503", "rate": 1, "count": 1, "on": "count"}
    assert http.put("/emulator/faults", json={"faults": [fault], "seed": 3, "stall_s": 1}).json() == {}
    assert [wire.count("hi").status_code for _ in range(2)] == [503, 200]
    assert http.get("/emulator/state").json()["faults"][0]["happened"] == 1
    assert http.delete("/emulator/faults").json() == {}
    http.put("/emulator/script", json={"queue": [{"text": "said"}], "when": [{"json": {"n": 1}, "contains": "cat"}]})
    answers = [wire.generate(text).json()["candidates"][0]["content"]["parts"][0]["text"] for text in ("hi", "a cat")]
    assert answers == ["said", '{"n": 1}']
    http.put("/emulator/remotes?uri=gs://b/o.png", content=shot, headers={"content-type": "image/png"})
    http.put("/emulator/rules", content=flat)
    assert wire.billed(user(at("gs://b/o.png"), "hi"))["IMAGE"] == 7
    http.delete("/emulator/rules")
    assert wire.billed(user(at("gs://b/o.png"), "hi"))["IMAGE"] > 7
    before = emulator.clock.now()
    http.post("/emulator/clock", json={"advance_s": 3600})
    assert (emulator.clock.now() - before).total_seconds() >= 3600


def test_what_was_asked_is_told_without_keys_and_forgotten_on_reset(emulator: Emulator, wire: Wire) -> None:
    wire.http.post("/v1/models/gemini-3.5-flash:countTokens?key=CANARY", json={"contents": [user("SECRET")]})
    wire.upload(media.picture((8, 8)))

    told = wire.http.get("/emulator/requests")
    assert told.json()[0] == {
        "operation": "count",
        "path": "/v1/models/gemini-3.5-flash:countTokens",
        "status": 200,
        "fault": None,
        "body_bytes": told.json()[0]["body_bytes"],
        "usage": None,
    }
    assert "CANARY" not in told.text + repr(list(emulator.requests))
    wire.http.post("/emulator/reset")
    assert wire.http.get("/emulator/requests").json() == []
    assert wire.http.get("/emulator/state").json()["files"] == []


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent"])
def test_what_each_request_was_billed_is_told_also_of_answers_that_were_streamed_or_blocked(
    wire: Wire, method: str
) -> None:
    wire.http.put("/emulator/script", json={"queue": [{"text": "a long answer", "thoughts": 3}, {"blocked": "OTHER"}]})
    answers = [wire.ask(method, "hi").json() for _ in range(2)]
    refused = wire.ask(method, user(at("https://nowhere.example/files/a")))

    told = [one["usage"] for one in wire.http.get("/emulator/requests").json()]
    last = [one[-1] if isinstance(one, list) else one for one in answers]
    assert told == [*(one["usageMetadata"] for one in last), None]
    assert (told[0]["candidatesTokenCount"], told[0]["thoughtsTokenCount"]) == (4, 3)
    assert refused.status_code >= 400


def test_a_mistake_is_a_400_that_names_it(wire: Wire) -> None:
    http = wire.http
    mistakes = [
        http.put("/emulator/faults", json={"faults": [{"name": "return-302"}]}),
        http.put("/emulator/faults", json={"fault": []}),
        http.put("/emulator/script", json={"queue": [{"txt": "x"}]}),
        http.post("/emulator/clock", json={"advance_s": "soon"}),
        http.put("/emulator/rules", content="generation = 3"),
        http.put("/emulator/remotes", content=b"x"),
        http.put("/emulator/script", content=b"["),
        http.post("/emulator/clock", json={"advance_s": 1e300}),
        http.put("/emulator/faults", json={"faults": [{"name": "return-503", "rate": "often"}]}),
        http.put("/emulator/faults", json={"faults": [{"name": "return-503", "count": -1}]}),
        http.put("/emulator/faults", json={"faults": [], "stall_s": "long"}),
        http.put("/emulator/script", json={"queue": [{"thoughts": "many"}]}),
        http.put("/emulator/script", json={"when": [{"text": "x", "contains": 3}]}),
    ]

    assert [answer.status_code for answer in mistakes] == [400] * len(mistakes)
    assert "there is no fault 'return-302'" in mistakes[0].text
    assert "faults.0.rate" in mistakes[8].text
    assert wire.generate("hi").status_code == 200


def test_time_ends_with_the_calendar_and_goes_on(emulator: Emulator, wire: Wire) -> None:
    statuses = {wire.http.post("/emulator/clock", json={"advance_s": 3.2e9}).status_code for _ in range(90)}

    assert statuses == {200, 400}
    assert wire.upload(b"late")["expirationTime"]


def test_the_command_serves_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "weighlock", "emulator", "--fault", "return-503@0.5", "--seed", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert url is not None
        body, headers = {"contents": [user("hi")]}, {"x-goog-api-key": "k"}
        with httpx2.Client(base_url=url[0], headers=headers) as http:
            path = "/v1/models/gemini-3.5-flash:countTokens"
            statuses = {http.post(path, json=body).status_code for _ in range(20)}
        process.terminate()
        process.wait(10)

    assert statuses == {200, 503}


def test_two_cannot_have_one_port(emulator: Emulator) -> None:
    port = emulator.base_url.rpartition(":")[2]

    run = CliRunner().invoke(cli, ["emulator", "--port", port])

    assert isinstance(run.exception, ConfigError)
    assert f"port {port}: Address already in use" in str(run.exception)


@pytest.mark.parametrize("fault", ["return-302", "return-503@2", "return-503@often"])
def test_a_wrong_fault_is_named(fault: str) -> None:
    run = CliRunner().invoke(cli, ["emulator", "--fault", fault])

    assert run.exit_code == 2
    assert "--fault" in run.output
    assert "float" not in run.output


@pytest.mark.parametrize("words", ["nan", "inf", "-1", "1e300"])
def test_a_time_without_end_is_none_a_film_is_processed_for(words: str) -> None:
    run = CliRunner().invoke(cli, ["emulator", "--processing", words])

    assert run.exit_code == 2
    assert "--processing" in run.output


def test_the_fixture_gives_a_running_emulator(gemini_emulator: Emulator) -> None:
    with httpx2.Client(base_url=gemini_emulator.base_url, headers={"x-goog-api-key": "k"}) as http:
        assert http.get("/v1/files").json() == {}
