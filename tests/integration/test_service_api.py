"""The JSON API: what a request or a medium would cost, and nothing sent for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import films
import media
from emulated import at, inline, user
from serving import COUNT, GENERATE, MODEL, STREAM, Served, client_yaml, serving
from weighlock.emulator import Emulator

CHECK, FIT = "/weighlock/v1/check", "/weighlock/v1/fit"
YAML = f"""
default: {{model: {MODEL}}}
endpoints: {{tiny: {{mode: enforce, limits: {{prompt_tokens: 500}}}}}}
service: {{uris: ["gs://acme-media/"]}}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Emulator(processing_s=0) as emulator, serving(tmp_path_factory.mktemp("api"), emulator, YAML) as one:
        yield one


def test_one_medium_as_it_is(served: Served) -> None:
    shot = media.picture((1920, 1080))
    answer = served.http.post(CHECK, content=shot, headers={"content-type": "image/jpeg"})

    told = answer.json()
    assert (answer.status_code, told["schema"]) == (200, 1)
    medium, _ = told["parts"]
    assert (medium["mime"], medium["mislabelled"]) == ("image/png", True)
    assert medium["tokens"]["likely"] == 1100
    assert not [*served.emulator.requests]


def test_a_request_is_weighed_and_fitted_for_its_endpoint(served: Served) -> None:
    body = {"contents": [user("see", inline(media.picture((1920, 1080)), "image/png"))]}

    checked = served.http.post(CHECK, json=body, headers={"x-weighlock-endpoint": "tiny"}).json()
    fitted = served.http.post(f"/endpoints/tiny{FIT}", json=body).json()

    assert "prompt 1,1" in checked["refusal"]
    assert fitted["fits"] is True
    assert fitted["steps"][0]["lever"] == "resolution"
    assert fitted["saved"]["tokens_high"] > 500


@pytest.mark.parametrize(
    ("query", "fits"), [("max_tokens=300", True), ("max_tokens=100000", True), ("max_usd=0", False)]
)
def test_limits_of_the_call_itself(served: Served, query: str, fits: bool) -> None:
    body = {"contents": [user(inline(media.picture((1920, 1080)), "image/png"))]}

    told = served.http.post(f"{FIT}?{query}&model=gemini-3.5-flash&backend=vertex", json=body).json()

    assert (told["fits"], told["backend"]) == (fits, "vertex")


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("gs://acme-media/a.mp4", 200),
        ("gs://acme-media-evil/a.mp4", 415),
        ("gs://others/a.mp4", 415),
        ("https://metadata.example/a.png", 415),
        ("file:///etc/passwd", 415),
        ("/etc/passwd", 415),
    ],
)
def test_only_addresses_the_settings_list(served: Served, uri: str, status: int) -> None:
    answer = served.http.post(CHECK, json={"contents": [user("see", at(uri, "video/mp4"))]})

    assert answer.status_code == status
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"
        assert "service.uris" in answer.json()["detail"]
        assert uri not in answer.text


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        (CHECK, {"content": b"{", "headers": {"content-type": "application/json"}}, 400),
        (CHECK, {"json": []}, 400),
        (f"{CHECK}?max_tokens=-1", {"json": {}}, 400),
        (f"{CHECK}?max_usd=NaN", {"json": {}}, 400),
        (f"{CHECK}?max_usd=1e999999999", {"json": {}}, 400),
        (f"{CHECK}?output_tokens=٣", {"json": {}}, 400),
        (f"{CHECK}?backend=azure", {"json": {}}, 400),
        (CHECK, {"json": {}, "headers": {"x-weighlock-endpoint": "nowhere"}}, 403),
        ("/weighlock/v1/explode", {"json": {}}, 404),
    ],
)
def test_what_is_wrong_is_told(served: Served, path: str, options: dict[str, Any], status: int) -> None:
    answer = served.http.post(path, **options)

    assert answer.status_code == status, answer.text
    assert served.http.get(CHECK).status_code == 405


def test_keys_hold_there_too(tmp_path: Path, served: Served) -> None:
    yaml, keys = client_yaml(app="endpoints: [tiny]")
    more = YAML.replace("service: {", f"service: {{clients: {yaml}, ")
    with serving(tmp_path, served.emulator, more) as closed:
        body = {"contents": [user("hi")]}
        assert closed.http.post(CHECK, json=body).status_code == 403
        allowed = closed.http.post(CHECK, json=body, headers={"x-goog-api-key": keys["app"]})

    assert allowed.json()["endpoint"] == "tiny"


def test_it_describes_itself(served: Served) -> None:
    told = served.http.get("/weighlock/v1/openapi.json").json()

    assert told["openapi"] == "3.1.0"
    assert set(told["paths"]) == {CHECK, FIT, "/weighlock/v1/openapi.json"}


WORDS = (
    "contents parts role text inlineData inline_data data mimeType fileData fileUri functionCall functionResponse name "
    "response systemInstruction tools generationConfig mediaResolution videoMetadata fps startOffset cachedContent "
    "generateContentRequest model"
)
KEYS = st.sampled_from(WORDS.split()) | st.text(max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(KEYS, JSON, max_size=5), path=st.sampled_from([GENERATE, COUNT, STREAM, CHECK, FIT]))
def test_no_json_is_too_odd(served: Served, body: dict[str, Any], path: str) -> None:
    answer = served.http.post(path, json=body)

    assert answer.status_code < 500, (body, answer.text)


@pytest.mark.parametrize("path", [GENERATE, CHECK, FIT, COUNT])
def test_depth_and_breadth_are_bounded(served: Served, path: str) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"[" * 100_000, b'{"a":' * 50_000, b'{"contents":' + b"[" * 950 + b"]" * 950 + b"}", b"9" * 100_000):
        answer: httpx2.Response = served.http.post(path, content=body, headers=headers)
        assert answer.status_code == 400, answer.text
    film = inline(films.film(2.0, fps=5)[:-300], "video/mp4")
    assert served.http.post(path, json={"contents": [user(film)]}).status_code < 500
