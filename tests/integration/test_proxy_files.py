"""Files through the proxy: taken in, brought to the service once, whose they are, repaired when they are gone."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import types
from google.genai.errors import APIError

import films
import media
from emulated import GRANULE, at, inline, user
from sending import begun, sent, started, uploaded, uploads
from serving import GENERATE, MODEL, UPSTREAM_KEY, Served, client_yaml, serving
from weighlock.emulator import Emulator

YAML = f"default: {{model: {MODEL}}}\n"


@pytest.fixture
def served(tmp_path: Path, emulator: Emulator) -> Iterator[Served]:
    with serving(tmp_path, emulator, YAML) as one:
        yield one


@contextmanager
def two_tenants(folder: Path, emulator: Emulator) -> Iterator[tuple[Served, dict[str, str], dict[str, str]]]:
    yaml, keys = client_yaml(app="tenant: acme", other="tenant: initech")
    with serving(folder, emulator, f"{YAML}service: {{clients: {yaml}}}\n") as served:
        yield served, {"x-goog-api-key": keys["app"]}, {"x-goog-api-key": keys["other"]}


def test_a_file_is_described_as_the_service_does_and_a_request_may_name_it(served: Served) -> None:
    shot = media.picture((640, 480))
    file = uploaded(served, shot)

    assert file["state"] == "ACTIVE"
    assert file["sizeBytes"] == str(len(shot))
    assert file["displayName"] == "Köln 文件"
    assert file["uri"].startswith("https://generativelanguage.googleapis.com/")
    answer = served.ask(GENERATE, "see", at(file["uri"], "image/png"))
    assert "image=" in answer.headers["x-weighlock-billed"]
    assert served.http.get(f"/v1beta/{file['name']}").json()["name"] == file["name"]


def test_the_same_content_goes_to_the_service_once(served: Served) -> None:
    shot = media.picture((640, 480))

    first, again = uploaded(served, shot), uploaded(served, shot)
    answer = served.ask(GENERATE, "see", inline(shot, "image/png"))

    assert first["name"] == again["name"]
    assert uploads(served.emulator) == 1
    assert answer.status_code == 200


def test_in_chunks_with_a_query_after_one_that_was_lost(served: Served) -> None:
    film = films.film(6.0, fps=5) + bytes(2 * GRANULE)
    url = started(served, len(film), "video/mp4")

    assert sent(served, url, film[:GRANULE], 0, "upload").headers["x-goog-upload-size-received"] == str(GRANULE)
    wrong = sent(served, url, film[:10], 0, "upload")
    assert (wrong.status_code, wrong.headers["x-goog-upload-size-received"]) == (400, str(GRANULE))
    told = served.http.post(url, headers={"x-goog-upload-command": "query"})
    assert told.headers["x-goog-upload-size-received"] == str(GRANULE)
    early = served.http.post(url, headers={"x-goog-upload-command": "finalize"})
    assert early.status_code == 400
    final = sent(served, url, film[GRANULE:], GRANULE)
    assert final.json()["file"]["sizeBytes"] == str(len(film))
    again = served.http.post(url, headers={"x-goog-upload-command": "query"})
    assert again.headers["x-goog-upload-status"] == "final"
    assert again.json()["file"]["name"] == final.json()["file"]["name"]


def test_what_the_bytes_are_beats_what_the_client_calls_them(served: Served) -> None:
    assert uploaded(served, media.picture((64, 48)), "image/jpeg")["mimeType"] == "image/png"


def test_a_file_that_is_gone_three_days_later_is_uploaded_again_by_the_proxy(served: Served) -> None:
    file = uploaded(served, films.film(6.0, fps=5), "video/mp4")
    served.emulator.clock.advance(72 * 3600)

    answer = served.ask(GENERATE, "see", at(file["uri"], "video/mp4"))

    assert answer.status_code == 200, answer.text
    assert "video=" in answer.headers["x-weighlock-billed"]
    assert uploads(served.emulator) == 2


def test_a_deleted_file_leaves_nothing_behind(served: Served) -> None:
    file = uploaded(served, media.picture((64, 48)))
    assert served.settings.state.dir is not None
    copies = served.settings.state.dir / "copies"
    assert len([*copies.iterdir()]) == 1

    assert served.http.delete(f"/v1beta/{file['name']}").status_code == 200

    assert [*copies.iterdir()] == []
    assert served.http.get(f"/v1beta/{file['name']}").status_code == 403
    assert served.http.get("/v1beta/files").json() == {}


def test_a_tenant_sees_its_own_files_and_learns_of_no_other(tmp_path: Path, emulator: Emulator) -> None:
    with two_tenants(tmp_path, emulator) as (served, acme, initech):
        names = [uploaded(served, media.picture((64, 40 + at)), **acme)["name"] for at in range(3)]
        own = uploaded(served, media.picture((64, 48)), **initech)["name"]
        pages, token = [], ""
        while True:
            page = served.http.get(f"/v1beta/files?pageSize=2&pageToken={token}", headers=acme).json()
            pages.append([one["name"] for one in page["files"]])
            if not (token := page.get("nextPageToken", "")):
                break
        before = len(emulator.requests)
        missing = "files/nobodys123"
        for method, suffix in (("GET", ""), ("DELETE", ""), ("GET", ":download?alt=media")):
            told = [
                served.http.request(method, f"/v1beta/{name}{suffix}", headers=initech) for name in (names[0], missing)
            ]
            assert told[0].status_code == told[1].status_code == 403
            assert told[0].text.replace(names[0][6:], "X") == told[1].text.replace(missing[6:], "X")
        asked = [
            served.ask(
                GENERATE,
                "see",
                at(f"https://generativelanguage.googleapis.com/v1beta/{name}", "image/png"),
                headers=initech,
            )
            for name in (names[0], missing)
        ]
        assert [one.status_code for one in asked] == [403, 403]
        assert asked[0].text.replace(names[0][6:], "X") == asked[1].text.replace(missing[6:], "X")
        assert len(emulator.requests) == before

    assert sorted(name for page in pages for name in page) == sorted(names)
    assert [len(page) for page in pages] == [2, 1]
    assert own not in names


def test_a_name_the_client_chose_is_its_files_for_that_tenant(tmp_path: Path, emulator: Emulator) -> None:
    with two_tenants(tmp_path, emulator) as (served, acme, initech):
        one = uploaded(served, media.picture((640, 480)), name="files/the-shot", **acme)
        other = uploaded(served, media.picture((64, 48)), name="the-shot", **initech)
        uri = f"https://{GOOGLE}/files/the-shot"

        assert {one["name"], other["name"]} == {"files/the-shot"}
        for key, size in ((acme, one["sizeBytes"]), (initech, other["sizeBytes"])):
            described = served.http.get("/v1beta/files/the-shot", headers=key).json()
            assert (described["name"], described["sizeBytes"]) == ("files/the-shot", size)
            assert [file["name"] for file in served.http.get("/v1beta/files", headers=key).json()["files"]] == [
                "files/the-shot"
            ]
            assert served.ask(GENERATE, "see", at(uri, "image/png"), headers=key).status_code == 200
        again = begun(served, 10, name="the-shot", **acme)
        assert again.status_code == 409
        assert again.json()["error"]["status"] == "ALREADY_EXISTS"
        emulator.clock.advance(72 * 3600)
        assert served.ask(GENERATE, "see", at(uri, "image/png"), headers=acme).status_code == 200
        assert served.http.get("/v1beta/files/the-shot", headers=acme).json()["state"] == "ACTIVE"
        assert served.http.delete("/v1beta/files/the-shot", headers=acme).status_code == 200
        assert served.http.get("/v1beta/files/the-shot", headers=acme).status_code == 403
        assert uploaded(served, media.picture((70, 48)), name="the-shot", **acme)["name"] == "files/the-shot"


def test_of_two_uploads_for_one_name_the_second_is_refused_when_it_ends(served: Served) -> None:
    shots = [media.picture((64, 48 + number)) for number in range(2)]
    urls = [begun(served, len(shot), name="the-shot").headers["x-goog-upload-url"] for shot in shots]

    first, second = (sent(served, url, shot, 0) for url, shot in zip(urls, shots, strict=True))

    assert first.json()["file"]["name"] == "files/the-shot"
    assert (second.status_code, second.headers["x-goog-upload-status"]) == (409, "cancelled")
    assert served.http.get("/v1beta/files/the-shot").json()["sizeBytes"] == str(len(shots[0]))


def test_what_a_client_uploaded_outlives_the_requests_that_need_the_same_and_what_they_brought_does_not(
    tmp_path: Path, emulator: Emulator
) -> None:
    after_request = "uploads: {delete_remote: after_request, inline_below: {developer: 1KB}}\n"
    given, brought = media.picture((640, 480)), media.picture((600, 480))
    with serving(tmp_path, emulator, YAML + after_request) as served:
        name = uploaded(served, given)["name"]
        for shot in (given, brought, given):
            assert served.ask(GENERATE, "see", inline(shot, "image/png")).status_code == 200

        assert uploads(emulator) == 2
        assert [f"files/{one.name}" for one in emulator.files] == [name]
        assert [one["name"] for one in served.http.get("/v1beta/files").json()["files"]] == [name]


def test_a_file_is_deleted_under_every_name_it_has_at_the_service(served: Served) -> None:
    file = uploaded(served, films.film(6.0, fps=5), "video/mp4")
    served.emulator.clock.advance(72 * 3600)
    served.ask(GENERATE, "see", at(file["uri"], "video/mp4"))
    assert served.http.get(f"/v1beta/{file['name']}").json()["name"] == file["name"]
    assert len(served.emulator.files) == 1

    assert served.http.delete(f"/v1beta/{file['name']}").json() == {}

    assert len(served.emulator.files) == 0


def test_what_the_service_did_not_delete_may_be_deleted_again(served: Served) -> None:
    file = uploaded(served, media.picture((64, 48)))
    served.emulator.faults.set("return-400", on="files.delete", count=1)

    assert served.http.delete(f"/v1beta/{file['name']}").status_code == 503
    assert served.http.delete(f"/v1beta/{file['name']}").status_code == 200
    assert len(served.emulator.files) == 0


@pytest.mark.parametrize("path", ["files/{}", "files"])
def test_a_service_that_does_not_say_is_no_sign_that_a_file_is_gone(served: Served, path: str) -> None:
    name = uploaded(served, media.picture((64, 48)))["name"]
    served.emulator.faults.set("return-500", on="files.get", count=1)

    answer = served.http.get(f"/v1beta/{path}".format(name.removeprefix("files/")))

    assert answer.status_code == 502
    assert UPSTREAM_KEY not in answer.text


GOOGLE = "generativelanguage.googleapis.com/v1beta"


def test_another_tenants_file_is_not_there_however_it_is_spelled(tmp_path: Path, emulator: Emulator) -> None:
    spellings = ["{}", "/{}", "http://HOST/{}", "HTTPS://HOST/{}", "https://HOST/{}?alt=media", "https://HOST/{}#x"]
    spellings += ["https://HOST/{}/", " https://HOST/{}", "https://HOST/x/{}", "https://HOST/{}:download", "//HOST/{}"]
    spellings += ["https://HOST//{}", "https://HOST/../{}", "gs://bucket/{}", "https:\\\\HOST\\{}"]
    with two_tenants(tmp_path, emulator) as (served, acme, initech):
        name = uploaded(served, media.picture((640, 480)), **acme)["name"]
        spelled = [one.format(name).replace("HOST", GOOGLE) for one in spellings]
        spelled += [f"https://{GOOGLE}/{name.replace('/', '%2F')}", f"https://{GOOGLE}/{name.upper()}"]
        parts: list[dict[str, Any]] = [at(uri, "image/png") for uri in spelled]
        hidden = at(f"https://{GOOGLE}/{name}", "image/png")
        parts += [{"toolResponse": hidden}, {"toolResponse": {"deep": [{"file_uri": name}]}}]
        before = len(emulator.requests)

        told = [served.ask(GENERATE, "see", part, headers=initech) for part in parts]

        assert [(one.status_code, part) for one, part in zip(told, parts, strict=True) if one.status_code != 403] == []
        assert len(emulator.requests) == before
        assert served.ask(GENERATE, "see", at(f"https://{GOOGLE}/{name}", "image/png"), headers=acme).status_code == 200


def test_addresses_of_other_places_are_no_files_of_anybody(tmp_path: Path, emulator: Emulator) -> None:
    with two_tenants(tmp_path, emulator) as (served, acme, _):
        for uri in ("https://example.com/files/cat.png", "https://example.com/profiles/abc", "https://youtu.be/files"):
            assert served.ask(GENERATE, "see", at(uri, "image/png"), headers=acme).status_code != 403


def test_a_cache_is_nobodys_to_use_where_tenants_share_a_project(tmp_path: Path, emulator: Emulator) -> None:
    yaml, keys = client_yaml(app="tenant: acme")
    service = f"service: {{unknown_paths: pass, clients: {yaml}}}\n"
    with serving(tmp_path, emulator, YAML + service) as served:
        key, before = {"x-goog-api-key": keys["app"]}, len(emulator.requests)
        for spelling in ("cachedContent", "cached_content"):
            body = {"contents": [user("hi")], spelling: "cachedContents/of-initech"}
            assert served.http.post(GENERATE, json=body, headers=key).status_code == 403
        for path in ("/v1beta/cachedContents", "/v1beta/cachedContents/x", "/v1beta/batches"):
            assert served.http.get(path, headers=key).status_code == 404
        assert len(emulator.requests) == before


@pytest.mark.parametrize(
    ("word", "status"),
    [("", 404), ("x" * 43, 404), ("../../etc/passwd", 404), ("ü", 404), ("a" * 5_000, 404)],
)
def test_a_word_nobody_was_given_opens_nothing(served: Served, word: str, status: int) -> None:
    answer = served.http.post(
        "/upload/v1beta/files", params={"upload_id": word}, content=b"x", headers={"x-goog-upload-command": "upload"}
    )

    assert answer.status_code == status
    assert answer.json()["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-goog-upload-command": "upload", "x-goog-upload-offset": "-1"}, 400),
        ({"x-goog-upload-command": "upload", "x-goog-upload-offset": "9" * 400}, 400),
        ({"x-goog-upload-command": "upload", "x-goog-upload-offset": "٣"}, 400),
        ({"x-goog-upload-command": "upload"}, 400),
        ({"x-goog-upload-command": "explode"}, 400),
        ({}, 400),
        ({"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}, 413),
    ],
)
def test_what_no_client_does_is_refused_and_harms_nothing(served: Served, headers: dict[str, str], status: int) -> None:
    shot = media.picture((64, 48))
    url = started(served, len(shot))
    raw = {name: value.encode() for name, value in headers.items()}

    assert served.http.post(url, content=shot + b"more", headers=raw).status_code == status  # type: ignore[arg-type]

    received = int(
        served.http.post(url, headers={"x-goog-upload-command": "query"}).headers["x-goog-upload-size-received"]
    )
    assert sent(served, url, shot[received:], received).status_code == 200


def test_a_file_larger_than_files_may_be_is_refused_before_it_is_sent(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, f"{YAML}safety: {{max: {{file: 1MB}}}}\n") as served:
        headers = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": "9" * 30,
        }
        answer = served.http.post("/upload/v1beta/files", json={}, headers=headers)

    assert answer.status_code == 413
    assert "safety.max.file" in answer.json()["error"]["message"]


def test_nothing_is_left_of_what_is_cancelled_and_the_spool_is_for_its_owner_only(served: Served) -> None:
    assert served.settings.state.dir is not None
    spool = served.settings.state.dir / "spool"
    url = started(served, 100)
    assert {one.stat().st_mode & 0o777 for one in spool.iterdir()} == {0o600}
    assert spool.stat().st_mode & 0o777 == 0o700
    assert not any(url.partition("upload_id=")[2][:20] in one.name for one in spool.iterdir())

    answer = served.http.post(url, headers={"x-goog-upload-command": "cancel"})

    assert answer.headers["x-goog-upload-status"] == "cancelled"
    assert [*spool.iterdir()] == []


def test_what_is_no_medium_is_refused_in_words_and_an_empty_file_too(served: Served) -> None:
    answer = sent(served, started(served, 0), b"", 0)

    assert answer.status_code == 400
    assert "empty" in answer.json()["error"]["message"]


@pytest.mark.parametrize("awaits", [False, True])
def test_the_sdk_uploads_asks_lists_and_deletes(tmp_path: Path, emulator: Emulator, awaits: bool) -> None:
    yaml, keys = client_yaml(app="tenant: acme")
    shot = media.picture((640, 480))
    with serving(tmp_path, emulator, f"{YAML}service: {{clients: {yaml}}}\n") as served:
        options = types.HttpOptions(base_url=served.base_url)
        client = genai.Client(api_key=keys["app"], http_options=options)

        def blocking() -> list[Any]:
            file = client.files.upload(file=io.BytesIO(shot), config={"mime_type": "image/png", "display_name": "shot"})
            contents: list[Any] = [file, "what is it?"]
            answer = client.models.generate_content(model=MODEL, contents=contents)
            listed = [one.name for one in client.files.list()]
            client.files.delete(name=file.name or "")
            with pytest.raises(APIError) as gone:
                client.files.get(name=file.name or "")
            return [file, answer, listed, gone.value.code]

        async def awaiting() -> list[Any]:
            aio = client.aio
            file = await aio.files.upload(
                file=io.BytesIO(shot), config={"mime_type": "image/png", "display_name": "shot"}
            )
            contents: list[Any] = [file, "what is it?"]
            answer = await aio.models.generate_content(model=MODEL, contents=contents)
            listed = [one.name async for one in await aio.files.list()]
            await aio.files.delete(name=file.name or "")
            with pytest.raises(APIError) as gone:
                await aio.files.get(name=file.name or "")
            await aio.aclose()
            return [file, answer, listed, gone.value.code]

        file, answer, listed, code = asyncio.run(awaiting()) if awaits else blocking()
        client.close()

    assert (file.display_name, file.state) == ("shot", types.FileState.ACTIVE)
    assert answer.usage_metadata.prompt_token_count > 1000
    assert listed == [file.name]
    assert code == 403
