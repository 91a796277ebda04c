"""What a path asks for; and that no path of another kind is understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.request import Backend
from weighlock.service.paths import Kind, route

VERTEX = "/projects/acme/locations/eu/publishers/google/models/gemini-2.5-flash"


@pytest.mark.parametrize("version", ["", "/v1", "/v1beta", "/v1alpha"])
@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("generateContent", Kind.GENERATE),
        ("streamGenerateContent", Kind.STREAM),
        ("countTokens", Kind.COUNT),
        ("embedContent", Kind.EMBED),
        ("batchEmbedContents", Kind.BATCH_EMBED),
        ("batchGenerateContent", Kind.BATCH),
    ],
)
def test_methods_of_a_model(version: str, method: str, kind: Kind) -> None:
    found = route(f"{version}/models/gemini-3.5-flash:{method}")

    assert found is not None
    assert (found.kind, found.model, found.backend) == (kind, "gemini-3.5-flash", Backend.DEVELOPER)
    assert found.endpoint is None


@pytest.mark.parametrize("version", ["/v1", "/v1beta1"])
@pytest.mark.parametrize("place", [VERTEX, "/publishers/google/models/gemini-2.5-flash"])
def test_vertex_paths(version: str, place: str) -> None:
    found = route(f"{version}{place}:generateContent")

    assert found is not None
    assert (found.kind, found.model, found.backend) == (Kind.GENERATE, "gemini-2.5-flash", Backend.VERTEX)


def test_an_endpoint_may_stand_in_front() -> None:
    found = route("/endpoints/bug_triage/v1beta/models/gemini-3.5-flash:countTokens")

    assert found is not None
    assert (found.endpoint, found.kind, found.path) == (
        "bug_triage",
        Kind.COUNT,
        "/v1beta/models/gemini-3.5-flash:countTokens",
    )


@pytest.mark.parametrize(
    ("path", "kind", "name", "method"),
    [
        ("/v1beta/models", Kind.MODELS, None, None),
        ("/v1beta/models/gemini-3.5-flash", Kind.MODELS, None, None),
        ("/upload/v1beta/files", Kind.UPLOAD, None, None),
        ("/upload/files", Kind.UPLOAD, None, None),
        ("/v1beta/files", Kind.FILES, None, None),
        ("/v1/files/abc", Kind.FILES, "files/abc", None),
        ("/v1/files/abc:download", Kind.FILES, "files/abc", "download"),
        ("/v1beta/cachedContents/x1", Kind.CACHES, "cachedContents/x1", None),
        ("/v1beta1/projects/p/locations/l/cachedContents/x1", Kind.CACHES, "cachedContents/x1", None),
        ("/v1beta/batches/b:cancel", Kind.BATCHES, "batches/b", "cancel"),
    ],
)
def test_named_resources(path: str, kind: Kind, name: str | None, method: str | None) -> None:
    found = route(path)

    assert found is not None
    assert (found.kind, found.name, found.method) == (kind, name, method)


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/interactions",
        "/v1/files:register",
        "/v1beta/models/x:predictLongRunning",
        "/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict",
        "/v1/projects/p/locations/l/publishers/anthropic/models/claude:generateContent",
        "/v2/models/x:generateContent",
        "/ws/google.ai.generativelanguage.v1.GenerativeService.BidiGenerateContent",
        "/endpoints/bug_triage/endpoints/other/v1/models/x:generateContent",
        "/v1beta/models/x:GenerateContent",
    ],
)
def test_what_nobody_weighs_is_known_as_such(path: str) -> None:
    found = route(path)

    assert found is not None
    assert found.kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//v1/models/x:generateContent",
        "/v1/models/x:generateContent/",
        "/v1/../v1/models/x:generateContent",
        "/v1/models/..:generateContent",
        "/v1/models/a%2fb:generateContent",
        "/v1/models/x%3AgenerateContent",
        "/v1/models/x:generateContent#",
        "/v1/models/x y:generateContent",
        "http://evil.example/v1/models/x:generateContent",
        "@evil.example/v1/models/x:generateContent",
        "/v1\\models/x:generateContent",
        "/v1/models/x:generateContent\r\nx: y",
        "/v1/models/ⓧ:generateContent",
        "/v1/models/" + "x" * 200 + ":generateContent",
        "/v1" * 2_000,
    ],
)
def test_no_path_of_a_client_is_refused_whole(path: str) -> None:
    assert route(path) is None


@given(st.text(max_size=200))
def test_any_text_is_a_route_or_none(path: str) -> None:
    found = route(path)

    assert found is None or (found.path in path and ".." not in found.path.split("/"))
