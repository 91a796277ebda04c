"""Uploads through the proxy when something goes wrong: with the service, with the client, or on purpose."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from google import genai
from google.genai import types
from google.genai.errors import APIError

import films
import media
from emulated import GRANULE
from sending import sent, started, uploaded, uploads
from serving import MODEL, Served, client_yaml, serving
from weighlock.emulator import Emulator

YAML = f"default: {{model: {MODEL}}}\n"
START = {"x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start"}


@pytest.fixture
def served(tmp_path: Path, emulator: Emulator) -> Iterator[Served]:
    with serving(tmp_path, emulator, YAML) as one:
        yield one


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def stored(emulator: Emulator) -> list[str]:
    return [one.sha256 for one in emulator.files]


def spooled(served: Served) -> list[Path]:
    assert served.settings.state.dir is not None
    folder = served.settings.state.dir / "spool"
    return [*folder.iterdir()] if folder.is_dir() else []


def size_of(path: Path) -> int:
    """0 of what is gone by now."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def received(served: Served, url: str) -> int:
    answer = served.http.post(url, headers={"x-goog-upload-command": "query"})
    assert answer.headers["x-goog-upload-status"] == "active"
    return int(answer.headers["x-goog-upload-size-received"])


def client_of(served: Served, key: str = "none needed") -> genai.Client:
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=served.base_url))


# ---- the service


@pytest.mark.parametrize(
    "fault",
    [
        "return-503-after-256K",
        "return-reset-connection-after-256K",
        "return-503-after-commit",
        "partial-commit",
        "lose-final-response",
        "session-gone",
        "return-corrupted-data",
    ],
)
def test_a_service_that_fails_once_is_the_proxys_to_bear(served: Served, fault: str) -> None:
    film = films.film(6.0, fps=5) + bytes(3 * GRANULE)
    served.emulator.faults.set(fault, count=1, on="upload.finalize")

    file = uploaded(served, film, "video/mp4")

    assert [one.happened for one in served.emulator.faults] == [1]
    assert stored(served.emulator) == [hashlib.sha256(film).hexdigest()]
    assert served.http.get(f"/v1beta/{file['name']}").json()["sizeBytes"] == str(len(film))


def test_what_could_not_be_brought_there_is_brought_when_its_last_chunk_comes_again(
    tmp_path: Path, emulator: Emulator
) -> None:
    with serving(tmp_path, emulator, f"{YAML}uploads: {{give_up_after: 0.01s}}\n") as served:
        emulator.faults.set("return-503", on="upload")
        data = noise(GRANULE + 1000)
        url = started(served, len(data), "video/mp4")
        sent(served, url, data[:GRANULE], 0, "upload")

        failed = sent(served, url, data[GRANULE:], GRANULE)
        emulator.faults.clear()
        again = sent(served, url, data[GRANULE:], GRANULE)

    assert failed.status_code == 502
    assert "x-goog-upload-status" not in failed.headers  # so that clients try again
    assert again.json()["file"]["sizeBytes"] == str(len(data))
    assert stored(emulator) == [hashlib.sha256(data).hexdigest()]


def test_what_the_service_cannot_read_is_refused_for_good_and_nothing_of_it_stays(served: Served) -> None:
    served.emulator.faults.set("fail-processing", count=1)

    answer = sent(served, started(served, 1000, "video/mp4"), noise(1000), 0)

    assert (answer.status_code, answer.headers["x-goog-upload-status"]) == (400, "cancelled")
    assert "could not be processed" in answer.json()["error"]["message"]
    assert spooled(served) == []


def test_an_account_without_room_says_so_as_the_service_would(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, f"{YAML}uploads: {{quota: 1KB}}\n") as served:
        answer = sent(served, started(served, 2000, "video/mp4"), noise(2000), 0)

    assert answer.status_code == 429
    assert answer.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert "uploads.quota" in answer.json()["error"]["message"]


# ---- the client


@contextmanager
def left_behind(url: str, data: bytes, count: int) -> Iterator[None]:
    """Of a whole upload in one chunk the first bytes are sent; then the client leaves."""
    parts = urlsplit(url)
    head = (
        f"POST {parts.path}?{parts.query} HTTP/1.1\r\nhost: {parts.netloc}\r\nx-goog-upload-command: upload, finalize"
        f"\r\nx-goog-upload-offset: 0\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as client:
        client.sendall(head.encode() + data[:count])
        yield


def test_a_file_arrives_though_its_client_left_with_the_last_byte_and_its_name_may_be_asked_for(served: Served) -> None:
    data = noise(GRANULE)
    url = started(served, len(data), "video/mp4")
    until = time.monotonic() + 10
    with left_behind(url, data, len(data)):
        while [one for one in spooled(served) if one.suffix == ".part" and one.exists() and size_of(one) < len(data)]:
            assert time.monotonic() < until
            time.sleep(0.001)
    while True:
        told = served.http.post(url, headers={"x-goog-upload-command": "query"})
        if told.headers.get("x-goog-upload-status") == "final":
            break
        assert time.monotonic() < until
        time.sleep(0.02)

    assert stored(served.emulator) == [hashlib.sha256(data).hexdigest()]
    assert served.http.get(f"/v1beta/{told.json()['file']['name']}").status_code == 200
    assert uploads(served.emulator) == 1


def test_what_came_of_a_chunk_whose_client_left_is_gone_on_from(served: Served) -> None:
    data = noise(3 * GRANULE)
    url = started(served, len(data), "video/mp4")
    with left_behind(url, data, 2 * GRANULE):
        until = time.monotonic() + 10
        while sum(size_of(one) for one in spooled(served) if one.suffix == ".part") < GRANULE:
            assert time.monotonic() < until
            time.sleep(0.01)
    busy = 409
    while busy == 409:
        told = served.http.post(url, headers={"x-goog-upload-command": "query"})
        busy = told.status_code
    here = int(told.headers["x-goog-upload-size-received"])

    assert GRANULE <= here <= 2 * GRANULE
    assert stored(served.emulator) == []
    assert sent(served, url, data[here:], here).status_code == 200
    assert stored(served.emulator) == [hashlib.sha256(data).hexdigest()]
    assert [one.suffix for one in spooled(served)] == [".json"]


@pytest.mark.parametrize("overlap", [0, 1, GRANULE])
def test_a_chunk_that_comes_again_is_taken_once(served: Served, overlap: int) -> None:
    data = noise(2 * GRANULE)
    url = started(served, len(data), "video/mp4")
    sent(served, url, data[:GRANULE], 0, "upload")
    before = GRANULE - overlap
    sent(served, url, data[before : before + GRANULE], before, "upload")

    here = received(served, url)

    assert here == before + GRANULE
    assert sent(served, url, data[here:], here).status_code == 200
    assert stored(served.emulator) == [hashlib.sha256(data).hexdigest()]


def test_two_workers_take_the_chunks_of_one_upload_in_turns(tmp_path: Path, emulator: Emulator) -> None:
    data = noise(4 * GRANULE)
    with serving(tmp_path, emulator, YAML) as one, serving(tmp_path, emulator, YAML) as other:
        query = urlsplit(started(one, len(data), "video/mp4")).query
        for number in range(4):
            worker = (one, other)[number % 2]
            command = "upload, finalize" if number == 3 else "upload"
            chunk = data[number * GRANULE : (number + 1) * GRANULE]
            answer = sent(worker, f"{worker.base_url}/upload/v1beta/files?{query}", chunk, number * GRANULE, command)
            assert answer.status_code == 200, answer.text
        listed = other.http.get("/v1beta/files").json()["files"]

    assert [file["name"] for file in listed] == [answer.json()["file"]["name"]]
    assert stored(emulator) == [hashlib.sha256(data).hexdigest()]


def test_who_ends_an_upload_twice_at_once_ends_it_once(served: Served) -> None:
    data = noise(GRANULE)
    url = started(served, len(data), "video/mp4")
    sent(served, url, data, 0, "upload")

    with ThreadPoolExecutor(4) as pool:
        ended = [*pool.map(lambda _: sent(served, url, b"", GRANULE, "finalize"), range(4))]

    assert {one.status_code for one in ended} <= {200, 409}
    assert 200 in {one.status_code for one in ended}
    assert uploads(served.emulator) == 1


@pytest.mark.parametrize("name", ["日本語 Ελληνικά עברית 😀", "a\nb\0c\x1b[31m", "../../etc/passwd", "x" * 512])
def test_a_display_name_in_any_script_comes_back_as_it_was(served: Served, name: str) -> None:
    url = served.http.post("/upload/v1beta/files", json={"file": {"displayName": name}}, headers=START)
    file = sent(served, url.headers["x-goog-upload-url"], media.picture((64, 48)), 0).json()["file"]

    assert file["displayName"] == name
    assert served.http.get(f"/v1beta/{file['name']}").json()["displayName"] == name


def test_by_the_sdk_a_refusal_for_good_comes_at_once_in_our_words(tmp_path: Path, emulator: Emulator) -> None:
    begun = time.monotonic()
    with serving(tmp_path, emulator, f"default: {{model: {MODEL}, mime_mismatch: reject}}\n") as served:
        with client_of(served) as client, pytest.raises(APIError, match="the bytes are image/png") as refused:
            client.files.upload(file=io.BytesIO(media.picture((64, 48))), config={"mime_type": "image/jpeg"})

        assert refused.value.code == 400
        assert time.monotonic() - begun < 5
        assert spooled(served) == []
        assert stored(emulator) == []


@pytest.mark.parametrize("awaits", [False, True])
def test_by_the_sdk_a_file_that_ended_three_days_ago_is_asked_about_in_one_call(served: Served, awaits: bool) -> None:
    film = io.BytesIO(films.film(6.0, fps=5))

    def contents(file: Any) -> list[Any]:
        return [file, "what happens?"]

    async def awaiting(client: genai.Client) -> Any:
        file = await client.aio.files.upload(file=film, config={"mime_type": "video/mp4"})
        served.emulator.clock.advance(72 * 3600)
        answer = await client.aio.models.generate_content(model=MODEL, contents=contents(file))
        await client.aio.aclose()
        return answer

    def blocking(client: genai.Client) -> Any:
        file = client.files.upload(file=film, config={"mime_type": "video/mp4"})
        served.emulator.clock.advance(72 * 3600)
        return client.models.generate_content(model=MODEL, contents=contents(file))

    with client_of(served) as client:
        answer = asyncio.run(awaiting(client)) if awaits else blocking(client)

    assert {one.modality for one in answer.usage_metadata.prompt_tokens_details} >= {types.MediaModality.VIDEO}
    assert uploads(served.emulator) == 2
    assert sum(one.operation == "generate" and one.status == 200 for one in served.emulator.requests) == 1


def test_who_reads_no_more_of_what_is_passed_on_does_not_keep_the_service_waiting(tmp_path: Path) -> None:
    left = threading.Event()

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(bytes(65_536))
            except OSError:
                left.set()

        def log_message(self, *_: Any) -> None:
            """Of tests nobody reads a log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as upstream, Emulator() as nobody:
        upstream.daemon_threads = True
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        (tmp_path / "key").write_text("k")
        url = f"http://127.0.0.1:{upstream.server_address[1]}"
        account = f"{{backend: developer, api_key_file: {tmp_path}/key, base_url: '{url}'}}"
        yaml = f"accounts: {{one: {account}}}\n{YAML}service: {{deadlines: {{idle: 0.3s}}}}\n"
        with serving(tmp_path, nobody, yaml) as served:
            parts = urlsplit(served.base_url)
            with socket.create_connection((parts.hostname or "", parts.port or 0)) as client:
                client.sendall(f"GET /v1beta/models HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode())
                assert left.wait(10)
        upstream.shutdown()


def test_a_service_that_begins_erases_what_nobody_may_go_on_with(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, YAML) as served:
        sent(served, started(served, 2000, "video/mp4"), noise(1000), 0, "upload")
        for one in spooled(served):
            os.utime(one, (0, 0))

    with serving(tmp_path, emulator, YAML) as served:
        until = time.monotonic() + 10
        while spooled(served):
            assert time.monotonic() < until
            time.sleep(0.01)


# ---- on purpose


@pytest.mark.parametrize(
    ("headers", "body", "word"),
    [
        ({"x-goog-upload-header-content-length": "\xb2"}, "{}", "Content-Length"),
        ({"x-goog-upload-header-content-length": "-1"}, "{}", "Content-Length"),
        ({"x-goog-upload-header-content-type": "nonsense"}, "{}", "media type"),
        ({"x-goog-upload-header-content-type": "image/*"}, "{}", "media type"),
        ({"x-goog-upload-header-content-type": "\xfc/\xf6"}, "{}", "media type"),
        ({"x-goog-upload-command": "upload"}, "{}", "start"),
        ({"x-goog-upload-command": "start, finalize"}, "{}", "Command"),
        ({"x-goog-upload-protocol": "multipart"}, "{}", "resumable"),
        ({}, "[]", "file"),
        ({}, '{"file": 3}', "file"),
        ({}, '{"file": {"displayName": 3}}', "displayName"),
        ({}, '{"file": {"displayName": "\\ud800"}}', "displayName"),
        ({}, f'{{"file": {{"displayName": "{"x" * 513}"}}}}', "512"),
        ({}, '{"file": {"mimeType": "x"}}', "media type"),
        ({}, '{"file": {"name": "Üb/er"}}', "file.name"),
        ({}, f'{{"file": {{"name": "{"x" * 41}"}}}}', "file.name"),
        ({}, "{", "JSON"),
    ],
)
def test_an_upload_that_is_announced_in_no_way_anybody_means_is_refused(
    served: Served, headers: dict[str, str], body: str, word: str
) -> None:
    raw = {name: value.encode("latin-1") for name, value in {**START, **headers}.items()}

    answer = served.http.post("/upload/v1beta/files", content=body, headers=raw)  # type: ignore[arg-type]

    assert answer.status_code == 400, answer.text
    assert word in answer.json()["error"]["message"]
    assert spooled(served) == []


@pytest.mark.parametrize(
    "headers",
    [
        [("x-goog-upload-command", "upload"), ("x-goog-upload-command", "finalize"), ("x-goog-upload-offset", "0")],
        [("x-goog-upload-command", "upload"), ("x-goog-upload-offset", "0"), ("x-goog-upload-offset", "5")],
        [("x-goog-upload-command", "upload"), ("x-goog-upload-offset", "\xb2")],
        [("x-goog-upload-command", "upload"), ("x-goog-upload-offset", "9" * 5000)],
        [("x-goog-upload-command", "upload"), ("x-goog-upload-offset", "0x0")],
        [("x-goog-upload-command", "upload, cancel"), ("x-goog-upload-offset", "0")],
        [("x-goog-upload-command", "upload, query, finalize"), ("x-goog-upload-offset", "0")],
        [("x-goog-upload-command", "start")],
    ],
)
def test_a_command_that_could_be_meant_in_two_ways_is_refused_and_takes_nothing_in(
    served: Served, headers: list[tuple[str, str]]
) -> None:
    data = noise(1000)
    url = started(served, len(data), "video/mp4")
    raw: Any = [(name.encode(), value.encode("latin-1")) for name, value in headers]

    assert served.http.post(url, content=data, headers=raw).status_code == 400

    assert received(served, url) == 0
    assert sent(served, url, data, 0).status_code == 200


@pytest.mark.parametrize("query", ["pageSize=%C2%B2", "pageSize=-1", "a=1" + "&a=1" * 50])
def test_a_query_nobody_means_is_refused(served: Served, query: str) -> None:
    assert served.http.get(f"/v1beta/files?{query}").status_code == 400


def test_another_tenants_key_opens_no_upload_and_that_of_who_began_it_does(tmp_path: Path, emulator: Emulator) -> None:
    yaml, keys = client_yaml(app="tenant: acme", colleague="tenant: acme", other="tenant: initech")
    with serving(tmp_path, emulator, f"{YAML}service: {{clients: {yaml}}}\n") as served:
        shot = media.picture((64, 48))
        url = started(served, len(shot), **{"x-goog-api-key": keys["app"]})
        nobodys = url.replace("upload_id=", "upload_id=x")

        def query(where: str, *more: tuple[str, str]) -> Any:
            return served.http.post(where, headers=[("x-goog-upload-command", "query"), *more])

        foreign = [
            query(url, ("x-goog-api-key", keys["other"])),
            query(url, ("authorization", f"Bearer {keys['other']}"), ("x-goog-api-key", keys["app"])),
            query(f"{url}&key={keys['other']}"),
        ]
        unknown = query(nobodys)
        own = [query(url), query(url, ("x-goog-api-key", keys["colleague"])), query(url, ("x-goog-api-key", "odd"))]

    assert {(one.status_code, one.text) for one in foreign} == {(unknown.status_code, unknown.text)}
    assert unknown.status_code == 404
    assert [one.status_code for one in own] == [200] * 3


def test_an_upload_ends_with_the_client_that_began_it(tmp_path: Path, emulator: Emulator) -> None:
    yaml, keys = client_yaml(app="tenant: acme")
    without, _ = client_yaml(another="tenant: acme")
    with serving(tmp_path, emulator, f"{YAML}service: {{clients: {yaml}}}\n") as served:
        shot = media.picture((64, 48))
        url = started(served, len(shot), **{"x-goog-api-key": keys["app"]})
        file = served.settings.files[0]
        (tmp_path / "new.yaml").write_text(file.read_text().replace(yaml, without))
        (tmp_path / "new.yaml").rename(file)
        served.service.reload()
        until = time.monotonic() + 10
        while (answer := served.http.post(url, headers={"x-goog-upload-command": "query"})).status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.01)

    assert answer.status_code == 404


def test_a_disk_that_fills_up_is_told_and_what_came_stays(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    data, usage = noise(2 * GRANULE), shutil.disk_usage("/")
    url = started(served, len(data), "video/mp4")
    sent(served, url, data[:GRANULE], 0, "upload")

    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
        refused = sent(served, url, data[GRANULE:], GRANULE)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
    assert sent(served, url, data[GRANULE:], GRANULE).status_code == 200
    assert stored(served.emulator) == [hashlib.sha256(data).hexdigest()]


def test_vertex_has_no_files_and_nothing_of_one_is_read(tmp_path: Path, emulator: Emulator) -> None:
    (tmp_path / "login").write_text("k")
    account = f"{{backend: vertex, project: p, api_key_file: {tmp_path}/login, base_url: '{emulator.base_url}'}}"
    with serving(tmp_path, emulator, f"accounts: {{cloud: {account}}}\n{YAML}") as served:
        answer = served.http.post("/upload/v1beta/files", json={}, headers=START)

        assert answer.status_code == 404
        assert "Vertex" in answer.json()["error"]["message"]
        assert spooled(served) == []
