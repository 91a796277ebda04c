"""Requests that frameworks really sent, read, screened and written again; see `tests/fixtures/wire/README.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wire_oracle
from weighlock.converters import rest_json
from weighlock.preflight import Preflight
from weighlock.request import Backend
from weighlock.scales import Asked

Json = dict[str, Any]

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "wire").glob("*.json"))
SOUND = ("adk-2.13-load-artifacts", "pydantic-ai-2.68")
"""Frameworks and forms that send nothing amiss."""

every_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
every_backend = pytest.mark.parametrize("backend", Backend)


def model_of(fixture: Path) -> str:
    return str(re.findall(r"gemini-[\d.]+-[a-z]+", fixture.stem)[-1])


@pytest.fixture(scope="module")
def preflight() -> Iterator[Preflight]:
    with Preflight.from_config() as preflight:
        yield preflight


def screened(preflight: Preflight, body: bytes, asked: Asked) -> bytes:
    parsed = rest_json.parse(body)
    screened = preflight.screen(parsed.request, asked)
    screened.screening.demand_sendable()
    return rest_json.emit(screened.request, parsed)


def test_there_are_fixtures_of_every_framework() -> None:
    assert {path.name.split("-")[0] for path in FIXTURES} == {"adk", "langchain", "litellm", "pydantic"}


@every_fixture
def test_a_request_read_and_written_is_the_same_to_the_byte(fixture: Path) -> None:
    body = fixture.read_bytes()
    parsed = rest_json.parse(body)

    assert rest_json.emit(parsed.request, parsed) == body


@every_backend
@every_fixture
def test_a_screened_request_is_fit_to_send(fixture: Path, backend: Backend, preflight: Preflight) -> None:
    body, model = fixture.read_bytes(), model_of(fixture)
    out = screened(preflight, body, Asked(model=model, backend=backend))

    assert wire_oracle.complaints(body, out, model) == []


@every_backend
@every_fixture
def test_screening_again_changes_nothing(fixture: Path, backend: Backend, preflight: Preflight) -> None:
    asked = Asked(model=model_of(fixture), backend=backend)
    once = screened(preflight, fixture.read_bytes(), asked)

    assert screened(preflight, once, asked) == once


@every_backend
@every_fixture
def test_only_what_is_amiss_is_touched(fixture: Path, backend: Backend, preflight: Preflight) -> None:
    body = fixture.read_bytes()
    unchanged = screened(preflight, body, Asked(model=model_of(fixture), backend=backend)) == body

    assert unchanged == fixture.name.startswith(SOUND)


# -- the judge itself -------------------------------------------------------------------------------------------------


@every_fixture
def test_the_oracle_finds_what_frameworks_do_wrong(fixture: Path) -> None:
    body = fixture.read_bytes()
    found = wire_oracle.complaints(body, body, model_of(fixture))

    assert bool(found) != fixture.name.startswith(SOUND), found


def without_first_response(contents: list[Json]) -> None:
    contents[2]["parts"].pop(0)


def with_another_id(contents: list[Json]) -> None:
    contents[2]["parts"][0]["functionResponse"]["id"] = "call-9999"


def in_another_order(contents: list[Json]) -> None:
    contents[2]["parts"].reverse()


def without_a_remark(contents: list[Json]) -> None:
    contents[2]["parts"][1]["functionResponse"]["response"]["artifact_names"] = []


def with_other_arguments(contents: list[Json]) -> None:
    contents[1]["parts"][0]["functionCall"]["args"] = {"artifactNames": ["tone.wav"]}


def without_the_picture(contents: list[Json]) -> None:
    del contents[4]["parts"][1]


def without_the_sound(contents: list[Json]) -> None:
    del contents[3]["parts"][1]


def with_media_before_the_response(contents: list[Json]) -> None:
    contents.insert(2, contents.pop(3))


def in_one_content(contents: list[Json]) -> None:
    contents[2]["parts"] += contents.pop(3)["parts"]


def without_a_turn(contents: list[Json]) -> None:
    del contents[0]


WRONGS: dict[Callable[[list[Json]], None], str] = {
    without_first_response: "functionResponses were",
    with_another_id: "functionResponses were",
    in_another_order: "functionResponses were",
    without_a_remark: "lost: 'shot.png'",
    with_other_arguments: "functionCalls were",
    without_the_picture: "a medium is gone",
    without_the_sound: "audio is gone without a word",
    with_media_before_the_response: "contents[2] comes before 2 response(s)",
    in_one_content: "contents[2] holds function responses and other parts",
    without_a_turn: "lost: '[adk.load_artifacts",
}


@pytest.mark.parametrize("wrong", WRONGS, ids=lambda wrong: wrong.__name__)
def test_the_oracle_finds_each_wrong(wrong: Callable[[list[Json]], None]) -> None:
    fixture = next(path for path in FIXTURES if "load-artifacts" in path.name)
    original = fixture.read_bytes()
    body = json.loads(original)
    wrong(body["contents"])

    found = wire_oracle.complaints(original, json.dumps(body).encode(), model_of(fixture))
    assert any(complaint.startswith(WRONGS[wrong]) for complaint in found), found


def test_the_oracle_finds_changed_surroundings() -> None:
    original = FIXTURES[0].read_bytes()
    body = json.loads(original)
    del body["tools"][0]["functionDeclarations"][0]

    assert "tools is not what it was" in wire_oracle.complaints(original, json.dumps(body).encode(), "gemini-3.5-flash")
