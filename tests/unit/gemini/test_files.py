"""The Files API's answers, honest and otherwise."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from fake_io import FACES, Face, FakeClock
from unit.gemini.test_http import Script, Scripted, said
from weighlock.errors import ConfigError, FileNotReady, FileProcessingFailed, ServiceRefused
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.files import Files, FileState, RemoteFile, UploadSession, sha256_hex
from weighlock.gemini.http import Service, Target
from weighlock.io import Io
from weighlock.request import Backend

each_face = pytest.mark.parametrize("face", FACES)
DIGEST = hashlib.sha256(b"x").hexdigest()


def described(**fields: Any) -> httpx2.Response:
    return httpx2.Response(200, json={"name": "files/a", **fields})


def files(io: Io) -> Files:
    return Files(Service(io, Target(base_url="http://service"), ApiKey("canary")))


def waited(face: Face, script: Script, within_s: float = 60.0) -> tuple[RemoteFile, FakeClock]:
    clock = FakeClock()
    begun = RemoteFile(name="files/a", uri=None, state=FileState.PROCESSING)
    service = Scripted(script)
    return face(lambda io: files(io).wait_until_active(begun, within_s=within_s), clock, service.transport), clock


@each_face
def test_a_file_is_read_as_the_service_writes_it(face: Face) -> None:
    answer = described(
        uri="https://x/files/a", state="ACTIVE", mimeType="video/mp4", sizeBytes="7", displayName="Ü",
        sha256Hash=base64.b64encode(DIGEST.encode()).decode(), createTime="2026-11-30T12:00:00.123456789Z",
        expirationTime="2026-12-02T14:00:00+02:00", error={"message": "no"}, videoMetadata={}, unknown=1,
    )  # fmt: skip
    service = Scripted([answer])

    file = face(lambda io: files(io).get("files/a"), FakeClock(), service.transport)

    assert file == RemoteFile(
        name="files/a", uri="https://x/files/a", state=FileState.ACTIVE, mime="video/mp4", size_bytes=7, sha256=DIGEST,
        display_name="Ü", created_at=datetime(2026, 11, 30, 12, 0, 0, 123456, UTC),
        expires_at=datetime(2026, 12, 2, 12, tzinfo=UTC), error="no",
    )  # fmt: skip


@each_face
@pytest.mark.parametrize(
    "fields",
    [{"state": 3}, {"state": "NEW"}, {"sizeBytes": "-1"}, {"sha256Hash": "%%"}, {"createTime": "yesterday"},
     {"expirationTime": "2026-13-40T99:00:00Z"}, {"error": []}, {"uri": 4}],
)  # fmt: skip
def test_what_cannot_be_understood_of_a_file_is_unknown(face: Face, fields: dict[str, Any]) -> None:
    service = Scripted([described(**fields)])

    file = face(lambda io: files(io).get("files/a"), FakeClock(), service.transport)

    assert file == RemoteFile(name="files/a", uri=None, state=FileState.UNSPECIFIED)


@each_face
@pytest.mark.parametrize("body", [{}, {"name": "models/x"}, {"name": "files/../x"}, {"file": 3}])
def test_what_describes_no_file_is_no_answer(face: Face, body: Any) -> None:
    service = Scripted([httpx2.Response(200, json=body)])

    with pytest.raises(ServiceRefused):
        face(lambda io: files(io).get("files/a"), FakeClock(), service.transport)


@pytest.mark.parametrize("written", [DIGEST, DIGEST.upper(), base64.b64encode(DIGEST.encode()).decode(),
                                     base64.b64encode(bytes.fromhex(DIGEST)).decode()])  # fmt: skip
def test_a_hash_is_read_in_every_way_it_is_written(written: str) -> None:
    assert sha256_hex(written) == DIGEST


@each_face
def test_a_file_is_waited_for_ever_more_patiently_whatever_fails_meanwhile(face: Face) -> None:
    busy = [said(503, "UNAVAILABLE", "busy")] * 4  # one question, and its tries
    script: Script = [described(state="PROCESSING"), *busy, httpx2.ReadError, described(), described(state="ACTIVE")]

    file, clock = waited(face, script)

    assert file.state is FileState.ACTIVE
    assert clock.slept[:2] == [0.5, 0.75]


@each_face
def test_a_file_the_service_cannot_read_is_final_and_its_reason_quoted(face: Face) -> None:
    with pytest.raises(FileProcessingFailed, match="moov"):
        waited(face, [described(state="FAILED", error={"code": 3, "message": "no moov atom"})])


@each_face
def test_a_file_that_takes_too_long_is_not_ready(face: Face) -> None:
    with pytest.raises(FileNotReady) as caught:
        waited(face, [described(state="PROCESSING") for _ in range(30)], within_s=20)

    assert 10 < caught.value.figures["waited_s"] <= 20


@each_face
def test_a_file_that_is_gone_is_not_waited_for(face: Face) -> None:
    gone = said(403, "PERMISSION_DENIED", "You do not have permission to access the File a or it may not exist.")

    with pytest.raises(ServiceRefused):
        waited(face, [gone] * 3)


@each_face
def test_every_page_of_a_list_is_read_and_a_page_that_names_itself_ends_it(face: Face) -> None:
    pages = [
        {"files": [{"name": "files/a"}, {"name": "files/b"}], "nextPageToken": "2&x=1"},
        {"nextPageToken": "3"},
        {"files": [{"name": "files/c"}], "nextPageToken": "3"},
    ]
    service = Scripted([httpx2.Response(200, json=page) for page in pages])

    async def names(io: Io) -> list[str]:
        return [file.name async for file in files(io).listed()]

    assert face(names, FakeClock(), service.transport) == ["files/a", "files/b", "files/c"]
    assert str(service.asked[1].url).endswith("pageToken=2%26x%3D1")


@each_face
def test_deleting_says_whether_there_was_anything(face: Face) -> None:
    service = Scripted([httpx2.Response(200, json={}), said(403, "PERMISSION_DENIED", "File a may not exist")])

    async def twice(io: Io) -> list[bool]:
        return [await files(io).delete("files/a") for _ in range(2)]

    assert face(twice, FakeClock(), service.transport) == [True, False]


@each_face
@pytest.mark.parametrize(
    "answer",
    [
        said(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 7, or it is disabled."),
        said(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers"),
        httpx2.Response(404, html="<title>404 page not found</title>"),
    ],
)
def test_a_refusal_that_speaks_of_no_file_is_none_that_was_gone(face: Face, answer: httpx2.Response) -> None:
    async def deleted(io: Io) -> bool:
        return await files(io).delete("files/a")

    with pytest.raises(ServiceRefused):
        face(deleted, FakeClock(), Scripted([answer]).transport)


@each_face
@pytest.mark.parametrize(
    ("url", "followed"),
    [
        ("http://service/upload?upload_id=1", True),
        ("https://generativelanguage.googleapis.com/upload?upload_id=1", True),
        ("http://evil/upload", False),
        ("https://googleapis.com.evil/upload", False),
        ("http://service:81/upload", False),
        ("http://[bad", False),
        ("", False),
    ],
)
def test_bytes_go_to_the_service_and_nowhere_else(face: Face, url: str, followed: bool) -> None:
    service = Scripted([httpx2.Response(200, headers={"X-Goog-Upload-URL": url, "X-Goog-Upload-Status": "active"})])

    async def flow(io: Io) -> UploadSession | None:
        try:
            return await files(io).start(mime="image/png", size_bytes=1, display_name="Ü" * 600)
        except ServiceRefused:
            return None

    session = face(flow, FakeClock(), service.transport)

    assert (session is not None) is followed
    assert session is None or url not in repr(session)


def test_vertex_has_no_files() -> None:
    with pytest.raises(ConfigError, match="gs://"):
        Files(Service(None, Target(backend=Backend.VERTEX), None))  # type: ignore[arg-type]
