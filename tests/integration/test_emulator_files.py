"""The emulator's Files API: the resumable protocol, the life of a file, and who may see it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import httpx2
import pytest

import media
from emulated import FLASH, GRANULE, Wire, at, proves, refusal, user
from weighlock.emulator import Emulator, Project

SHOT = media.picture((64, 48))


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator(processing_s=30) as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    return running


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator)
    yield wire
    wire.close()


@proves("file-resource", "sha256-base64-of-hex", "file-uri-host", "upload-start", "upload-commands", "upload-final")
def test_an_uploaded_file_is_told_as_the_sdk_reads_it(wire: Wire) -> None:
    file = wire.upload(SHOT, name="files/my-shot")

    assert file["name"] == "files/my-shot"
    assert file["uri"] == "https://generativelanguage.googleapis.com/v1beta/files/my-shot"
    assert (file["sizeBytes"], file["state"], file["source"]) == (str(len(SHOT)), "ACTIVE", "UPLOADED")
    assert base64.b64decode(file["sha256Hash"]).decode() == hashlib.sha256(SHOT).hexdigest()
    assert file["displayName"] == "Überblick"
    assert wire.http.get("/v1beta/files/my-shot").json() == file


@proves("upload-keyless", "upload-query", "upload-granularity", "upload-offset")
def test_an_upload_goes_on_from_the_offset_the_server_tells(wire: Wire) -> None:
    data = bytes(range(256)) * 2048
    url = wire.begin(len(data))

    assert wire.command(url, "upload", data[:GRANULE], 0).headers["x-goog-upload-status"] == "active"
    assert wire.command(url, "query").headers["x-goog-upload-size-received"] == str(GRANULE)
    behind = wire.command(url, "upload", data, 0)
    assert (behind.status_code, behind.headers["x-goog-upload-status"]) == (400, "active")
    odd = wire.command(url, "upload", data[GRANULE : GRANULE + 100], GRANULE)
    assert (odd.status_code, odd.headers["x-goog-upload-size-received"]) == (400, str(GRANULE))
    done = wire.command(url, "upload, finalize", data[GRANULE:], GRANULE)
    assert done.headers["x-goog-upload-status"] == "final"
    assert base64.b64decode(done.json()["file"]["sha256Hash"]).decode() == hashlib.sha256(data).hexdigest()
    asked = wire.command(url, "query")
    assert (asked.headers["x-goog-upload-status"], asked.content) == ("final", b"")


def test_an_empty_file_and_a_bare_finalize_are_uploads_too(wire: Wire) -> None:
    url = wire.begin(GRANULE)
    wire.command(url, "upload", bytes(GRANULE), 0)

    assert wire.command(url, "finalize").json()["file"]["sizeBytes"] == str(GRANULE)
    assert wire.command(wire.begin(0), "upload, finalize", b"", 0).json()["file"]["sizeBytes"] == "0"


@proves("size-declared")
def test_more_or_fewer_bytes_than_announced_are_refused_and_the_upload_stays_open(wire: Wire) -> None:
    url = wire.begin(len(SHOT))

    assert wire.command(url, "upload, finalize", SHOT[:-1], 0).status_code == 400
    assert wire.command(url, "upload, finalize", SHOT, 0).status_code == 200


@proves("session-gone")
def test_a_cancelled_or_unknown_upload_takes_nothing(wire: Wire) -> None:
    url = wire.begin(len(SHOT))

    assert wire.command(url, "cancel").headers["x-goog-upload-status"] == "cancelled"
    assert wire.command(url, "upload, finalize", SHOT, 0).status_code == 400
    assert wire.command(url.replace("upload_id=", "upload_id=x"), "query").status_code == 404


@proves("two-writers")
def test_a_later_writer_shuts_out_one_whose_connection_hangs(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.stall_s = 1.0
    emulator.faults.set("stall-at-256KiB", on="upload.chunk", count=1)
    data = bytes(3 * GRANULE)
    url = wire.begin(len(data))

    with pytest.raises(httpx2.TransportError):
        httpx2.post(
            url,
            headers={"X-Goog-Upload-Command": "upload", "X-Goog-Upload-Offset": "0"},
            content=data[: 2 * GRANULE],
            timeout=0.2,
        )
    assert wire.command(url, "query").headers["x-goog-upload-size-received"] == str(GRANULE)
    assert wire.command(url, "upload, finalize", data[GRANULE:], GRANULE).status_code == 200


@proves("file-names", "name-taken")
def test_a_name_is_checked_and_taken_once_a_file_is_finished(wire: Wire) -> None:
    for wrong in ("files/Ab", "-a", "a-", "x" * 41, "a_b"):
        assert wire.start(1, name=wrong).status_code == 400
    wire.begin(len(SHOT), name="files/mine")  # half an upload takes no name
    wire.upload(SHOT, name="mine")

    code, status, words = refusal(wire.start(1, name="files/mine"))
    assert (code, status) == (409, "ALREADY_EXISTS")
    assert "already exists" in words


def test_of_two_uploads_under_one_name_the_second_to_finish_gets_409(wire: Wire) -> None:
    first, second = wire.begin(len(SHOT), name="same"), wire.begin(len(SHOT), name="same")

    assert wire.command(first, "upload, finalize", SHOT, 0).status_code == 200
    assert wire.command(second, "upload, finalize", SHOT, 0).status_code == 409


@proves("file-states", "file-not-active")
def test_a_film_is_processed_first_and_may_not_be_used_until_then(emulator: Emulator, wire: Wire) -> None:
    file = wire.upload(media.video(1.0), "video/mp4")
    name = file["name"].removeprefix("files/")

    assert file["state"] == "PROCESSING"
    assert refusal(wire.generate(user(at(file["uri"]), "hi"))) == (
        400,
        "FAILED_PRECONDITION",
        f"The File {name} is not in an ACTIVE state and usage is not allowed.",
    )
    emulator.clock.advance(31)
    assert wire.http.get(f"/v1beta/{file['name']}").json()["state"] == "ACTIVE"
    assert wire.generate(user(at(file["uri"]), "hi")).status_code == 200


@proves("failed-with-reason", "fail-processing")
def test_a_file_that_cannot_be_processed_says_why(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("fail-processing", count=1)
    file = wire.upload(SHOT)
    emulator.clock.advance(31)

    told = wire.http.get(f"/v1beta/{file['name']}").json()

    assert (told["state"], told["error"]["code"]) == ("FAILED", 3)
    assert refusal(wire.generate(user(at(file["uri"]), "hi")))[1] == "FAILED_PRECONDITION"
    assert wire.upload(SHOT)["state"] == "ACTIVE"


@proves("file-expiry", "file-forbidden")
def test_a_file_is_gone_after_48_hours_everywhere(emulator: Emulator, wire: Wire) -> None:
    file = wire.upload(SHOT)
    id_ = file["name"].removeprefix("files/")
    emulator.clock.advance(47.9 * 3600)
    assert wire.http.get(f"/v1beta/{file['name']}").status_code == 200
    emulator.clock.advance(0.2 * 3600)

    words = f"You do not have permission to access the File {id_} or it may not exist."
    asked = (
        wire.http.get(f"/v1beta/{file['name']}"),
        wire.http.delete(f"/v1beta/{file['name']}"),
        wire.generate(user(at(file["uri"]), "hi")),
        wire.count(user(at(file["uri"]), "hi")),
        wire.generate(user(at("https://generativelanguage.googleapis.com/v1/files/" + id_), "hi")),
    )
    assert {refusal(answer) for answer in asked} == {(403, "PERMISSION_DENIED", words)}
    assert wire.http.get("/v1beta/files").json() == {}


@proves("projects-own-files", "unpaid-project")
def test_another_key_sees_nothing_of_it_and_an_unpaid_project_nothing_at_all(emulator: Emulator, wire: Wire) -> None:
    file, other = wire.upload(SHOT), Wire(emulator, "other")

    assert other.http.get(f"/v1beta/{file['name']}").status_code == 403
    assert other.http.delete(f"/v1beta/{file['name']}").status_code == 403
    assert other.generate(user(at(file["uri"]), "hi")).status_code == 403
    assert other.http.get("/v1beta/files").json() == {}
    project = emulator.accounts.of_key("k")
    project.paid = False
    assert wire.generate(user(at(file["uri"]), "hi")).status_code == 403
    project.paid = True
    assert wire.generate(user(at(file["uri"]), "hi")).status_code == 200
    other.close()


@proves("list-files")
def test_files_are_listed_in_pages_newest_first(wire: Wire) -> None:
    names = [wire.upload(SHOT, name=f"shot{number}")["name"] for number in range(5)]

    first = wire.http.get("/v1beta/files?pageSize=3").json()
    second = wire.http.get(f"/v1beta/files?pageSize=3&pageToken={first['nextPageToken']}").json()

    assert [file["name"] for file in first["files"] + second["files"]] == names[::-1]
    assert "nextPageToken" not in second


@proves("storage-quota", "file-too-large")
def test_a_project_has_so_much_room_and_no_file_is_above_2_gb(emulator: Emulator, wire: Wire) -> None:
    project = emulator.accounts.of_key("k")
    project.storage_bytes = 2 * len(SHOT)
    files = [wire.upload(SHOT), wire.upload(SHOT)]

    code, status, words = refusal(wire.start(1))
    assert (code, status) == (429, "RESOURCE_EXHAUSTED")
    assert "file storage" in words
    wire.http.delete(f"/v1beta/{files[0]['name']}")
    assert wire.start(1).status_code == 200
    project.storage_bytes = 20_000_000_000
    assert wire.start(2**31 + 1).status_code == 400


def test_a_deleted_file_takes_its_bytes_with_it(emulator: Emulator, wire: Wire) -> None:
    file = wire.upload(SHOT)
    (kept,) = emulator.files
    assert kept.path is not None
    assert kept.path.read_bytes() == SHOT

    assert wire.http.delete(f"/v1beta/{file['name']}").json() == {}

    assert not kept.path.exists()
    assert wire.http.get(f"/v1beta/{file['name']}").status_code == 403


def test_without_keeping_bytes_their_size_and_hash_are_known_all_the_same() -> None:
    with Emulator(keep_bytes=False) as emulator:
        wire = Wire(emulator)
        file = wire.upload(SHOT)

        assert base64.b64decode(file["sha256Hash"]).decode() == hashlib.sha256(SHOT).hexdigest()
        assert "IMAGE" not in wire.billed(user(at(file["uri"]), "hi"))
        wire.close()


def test_listed_keys_share_projects(emulator: Emulator) -> None:
    ours = Project(name="ours")
    with Emulator(keys={"a": ours, "b": ours, "c": Project(name="theirs")}) as strict:
        wires = {key: Wire(strict, key) for key in "abcx"}
        name = wires["a"].upload(SHOT)["name"]

        seen = {key: wire.http.get(f"/v1/{name}").status_code for key, wire in wires.items()}

        assert seen == {"a": 200, "b": 200, "c": 403, "x": 400}
        for wire in wires.values():
            wire.close()


def test_the_answers_are_dated_by_the_emulators_clock(wire: Wire, emulator: Emulator) -> None:
    before = wire.generate("hi").headers["date"]
    emulator.clock.advance(7200)

    assert wire.generate("hi").headers["date"] != before
    assert FLASH in wire.generate("hi").text
