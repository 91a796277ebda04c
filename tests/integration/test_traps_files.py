"""Files at the service that are lost, late or not what they were (tests/golden/known_traps_service.md)."""

from __future__ import annotations

import base64
import hashlib
import json
import mimetypes
import socket
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import media
from emulated import Wire, at, inline, refusal, user
from fake_io import FACES, Face, FakeClock
from integration.test_resumable_upload import Memory, noise
from traps import parsed, preflight, sent
from unit.gemini.test_http import said
from unit.planning.drawn import examined, screenshot
from weighlock import Preflight
from weighlock.converters import rest_json
from weighlock.emulator import Emulator, Remote
from weighlock.errors import FileProcessingFailed, ServiceRefused, UnsupportedMedia, UploadFailed
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.errors import Cause
from weighlock.gemini.errors import refusal as refused
from weighlock.gemini.files import Files, FileState, RemoteFile
from weighlock.gemini.http import Service, Target
from weighlock.io import Io
from weighlock.media.facts import TextSizes
from weighlock.planning.placement import InlineBelow, inline_bytes, place, put
from weighlock.planning.weigh import Examined, Weighed, base64_size, weigh
from weighlock.request import Backend, Modality, Placement
from weighlock.rules import Controls, RuleBook
from weighlock.uploads.names import remote_name
from weighlock.uploads.resumable import MOST_RESTARTS, Cargo, upload

NEW = "gemini-3.8-flash"
TEXT, PDF, WAV = "text/plain", "application/pdf", "audio/wav"
MB = 1_000_000
START = FakeClock().now()
RULES = {one: RuleBook.packaged().for_model(NEW, one, START.date()) for one in Backend}
each_face = pytest.mark.parametrize("face", FACES)


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    return running


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator, "k")
    yield wire
    wire.close()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Backend, Preflight]]:
    lines = {one: preflight(tmp_path_factory.mktemp(one), f"model: {NEW}", one.value) for one in Backend}
    yield lines
    for line in lines.values():
        line.close()


def cargo(data: bytes, mime: str = PDF, display_name: str | None = None) -> Cargo:
    digest = hashlib.sha256(data).hexdigest()

    def name_of(generation: int) -> str:
        return remote_name(b"secret", digest, mime, generation=generation)

    return Cargo(source=Memory(data), sha256=digest, mime=mime, name_of=name_of, display_name=display_name)


def uploaded(
    face: Face, what: Cargo, *, base_url: str = "http://service", transport: Any = None, clock: FakeClock | None = None
) -> RemoteFile:
    async def flow(io: Io) -> RemoteFile:
        return await upload(io, Files(Service(io, Target(base_url=base_url), ApiKey("k"))), what)

    return face(flow, clock or FakeClock(), transport)


# ---- FIL-002: a name's type, taken at the door and refused inside

NAMED = {
    "kernel.cu": b'extern "C" __global__ void add(float *a, const float *b) { a[threadIdx.x] += b[threadIdx.x]; }\n',
    "main.ts": b"export const answer: number = 42;\nexport function half(a: number) {\n  return a / 2;\n}\n",
    "run.py": b"import sys\n\nif __name__ == '__main__':\n    print(sys.argv)\n",
    "Makefile.am": b"bin_PROGRAMS = hello\nhello_SOURCES = hello.c\n",
    "shot.wav": media.picture((8, 8)),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_uploaded_by_the_type_of_its_bytes_can_be_used(
    emulator: Emulator, wire: Wire, lines: dict[Backend, Preflight], name: str
) -> None:
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    (part,), _ = sent(lines[Backend.DEVELOPER], inline(NAMED[name], guessed))

    file = uploaded(FACES[0], cargo(NAMED[name], part["inlineData"]["mimeType"]), base_url=emulator.base_url)

    assert part["inlineData"]["mimeType"] == ("image/png" if name == "shot.wav" else TEXT)
    assert wire.generate(user(at(file.uri or "", file.mime), "hi"), name=NEW).status_code == 200


def test_by_the_type_of_its_name_it_arrives_and_is_refused(emulator: Emulator, wire: Wire) -> None:
    file = uploaded(FACES[0], cargo(NAMED["kernel.cu"], "application/cu-seeme"), base_url=emulator.base_url)

    assert file.state is FileState.ACTIVE
    answer = wire.generate(user(at(file.uri or "", file.mime), "hi"), name=NEW)
    assert refusal(answer)[2] == "Unsupported MIME type: application/cu-seeme"


# ---- FIL-005, FIL-020: what arrived is not what was sent


class Shelf:
    """A Files API that tells `lies` of the first files, one each, and then the truth."""

    def __init__(self, what: Cargo, lies: list[dict[str, str]]) -> None:
        self.what, self.lies = what, lies
        self.kept: dict[str, Any] | None = None
        self.deleted = self.started = 0
        self.transport = httpx2.MockTransport(self.answer)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            self.kept, self.deleted = None, self.deleted + 1
            return httpx2.Response(200, json={})
        if request.method == "GET":
            return httpx2.Response(200, json=self.kept) if self.kept else said(403, "PERMISSION_DENIED", "no")
        if request.headers["x-goog-upload-command"] == "start":
            self.started += 1
            address = {"x-goog-upload-url": "http://service/upload?upload_id=1", "x-goog-upload-status": "active"}
            return httpx2.Response(200, headers=address)
        self.kept = {
            "name": self.what.name_of(0), "uri": "https://x/files/a", "state": "ACTIVE", "mimeType": self.what.mime,
            "sizeBytes": str(self.what.source.size_bytes), "sha256Hash": self.what.sha256,
            **(self.lies.pop(0) if self.lies else {}),
        }  # fmt: skip
        return httpx2.Response(200, json={"file": self.kept}, headers={"x-goog-upload-status": "final"})


LIES = {
    "nothing of it": {"sizeBytes": "0", "mimeType": "", "sha256Hash": ""},
    "less of it": {"sizeBytes": "7"},
    "other bytes": {"sha256Hash": hashlib.sha256(b"other").hexdigest()},
    "octets": {"mimeType": "application/octet-stream"},
    "another kind": {"mimeType": "video/mp4"},
}


@each_face
@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_is_not_what_was_sent_is_deleted_and_sent_again(face: Face, lie: str) -> None:
    what = cargo(media.wav(1.0), WAV)
    shelf = Shelf(what, [LIES[lie]])

    file = uploaded(face, what, transport=shelf.transport)

    assert (file.size_bytes, file.mime, file.sha256) == (what.source.size_bytes, WAV, what.sha256)
    assert (shelf.started, shelf.deleted) == (2, 1)


@each_face
@pytest.mark.parametrize("lie", LIES)
def test_one_that_never_is_is_refused_and_none_of_it_stays(face: Face, lie: str) -> None:
    what = cargo(media.wav(1.0), WAV)
    shelf = Shelf(what, [LIES[lie]] * 9)

    with pytest.raises(UploadFailed, match="otherwise than they were sent"):
        uploaded(face, what, transport=shelf.transport)

    assert shelf.started == shelf.deleted == MOST_RESTARTS + 1
    assert shelf.kept is None


@pytest.mark.parametrize("told", ["", "audio/x-wav", "audio/wave", "audio/vnd.wave"])
def test_a_type_that_is_not_told_or_told_by_another_name_is_no_other_file(told: str) -> None:
    what = cargo(media.wav(1.0), WAV)
    shelf = Shelf(what, [{"mimeType": told}])

    uploaded(FACES[0], what, transport=shelf.transport)

    assert (shelf.started, shelf.deleted) == (1, 0)


# ---- FIL-009: a name nobody has is forbidden, not missing


@each_face
def test_a_name_that_was_never_uploaded_is_taken_for_free(face: Face, emulator: Emulator) -> None:
    what = cargo(noise(2_000))

    async def look(io: Io) -> RemoteFile:
        return await Files(Service(io, Target(base_url=emulator.base_url), ApiKey("k"))).get(what.name_of(0))

    with pytest.raises(ServiceRefused) as caught:
        face(look, FakeClock())
    assert (caught.value.figures["service_status"], caught.value.figures["cause"]) == (403, Cause.FILE_MISSING)
    assert uploaded(face, what, base_url=emulator.base_url).name == what.name_of(0)


@each_face
def test_a_name_that_is_another_project_s_is_left_to_it(face: Face, emulator: Emulator, wire: Wire) -> None:
    what = cargo(noise(2_000))
    other = Wire(emulator, "another key")
    other.upload(b"theirs", PDF, what.name_of(0))
    other.close()

    file = uploaded(face, what, base_url=emulator.base_url)

    assert file.name == what.name_of(1)
    assert {(one.project.name == emulator.accounts.of_key("k").name, one.size_bytes) for one in emulator.files} == {
        (True, 2_000),
        (False, 6),
    }


# ---- FIL-013, FIL-035: parts of the service that are always, or for a while, out of order


@each_face
def test_a_list_that_always_fails_keeps_nothing_from_being_uploaded_or_found_again(
    face: Face, emulator: Emulator
) -> None:
    emulator.faults.set("return-500", on="files.list")
    what = cargo(noise(2_000))

    first, again = (uploaded(face, what, base_url=emulator.base_url) for _ in range(2))

    assert first.name == again.name
    assert len(emulator.requests.of("upload.finalize")) == 1
    assert emulator.requests.of("files.list") == []


@each_face
@pytest.mark.parametrize("fault", ["return-500", "return-503", "return-reset-connection", "return-corrupted-data"])
def test_looks_that_fail_while_a_film_is_processed_are_borne(face: Face, emulator: Emulator, fault: str) -> None:
    film = uploaded(face, cargo(b"film", "video/quicktime"), base_url=emulator.base_url)
    emulator.faults.set(fault, on="files.get", count=2)
    emulator.clock.advance(5)

    async def flow(io: Io) -> RemoteFile:
        files = Files(Service(io, Target(base_url=emulator.base_url), ApiKey("k")))
        return await files.wait_until_active(film, within_s=60)

    assert film.state is FileState.PROCESSING
    assert face(flow, FakeClock()).state is FileState.ACTIVE


# ---- FIL-014: an upload that begins without an address


def starting(script: list[dict[str, str]]) -> tuple[httpx2.MockTransport, list[str]]:
    """A service whose upload starts answer with these headers, the last for ever; what was asked of it."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        command = request.headers.get("x-goog-upload-command", "get")
        asked.append(command)
        if command == "start":
            return httpx2.Response(200, headers=script.pop(0) if len(script) > 1 else script[0])
        body = {"file": {"name": "files/a", "uri": "u", "state": "ACTIVE", "sizeBytes": "4",
                         "sha256Hash": hashlib.sha256(b"data").hexdigest()}}  # fmt: skip
        return httpx2.Response(200, json=body, headers={"X-Goog-Upload-Status": "final"})

    return httpx2.MockTransport(answer), asked


@each_face
@pytest.mark.parametrize("spelling", ["X-Goog-Upload-URL", "x-goog-upload-url", "X-GOOG-UPLOAD-URL"])
@pytest.mark.parametrize("without", [0, 1, 2])
def test_an_address_is_found_however_its_header_is_spelt_and_asked_for_again_where_there_is_none(
    face: Face, spelling: str, without: int
) -> None:
    transport, asked = starting([{}] * without + [{spelling: "http://service/u"}])

    assert uploaded(face, cargo(b"data"), transport=transport).name == "files/a"
    assert asked.count("start") == without + 1


@each_face
@pytest.mark.parametrize("headers", [{}, {"x-goog-upload-url": ""}, {"x-goog-upload-url": "http://elsewhere/u"}])
def test_a_service_that_never_names_an_address_of_its_own_is_an_error_and_no_crash(
    face: Face, headers: dict[str, str]
) -> None:
    transport, asked = starting([headers])

    with pytest.raises(UploadFailed, match="no address of its own"):
        uploaded(face, cargo(b"data"), transport=transport)

    assert asked == ["start"] * (MOST_RESTARTS + 1)


@each_face
@pytest.mark.parametrize(
    "standing",
    [
        (200, {"x-goog-upload-status": "cancelled"}),
        (200, {"x-goog-upload-status": "active", "x-goog-upload-size-received": "999"}),
        (404, {}),
        (410, {}),
    ],
    ids=["cancelled", "more than there is", "not found", "gone"],
)
@pytest.mark.parametrize("odd", [1, 2, 3])
def test_an_upload_that_makes_no_sense_any_more_is_begun_again_twice_and_no_more(
    face: Face, standing: tuple[int, dict[str, str]], odd: int
) -> None:
    plain, asked = starting([{"x-goog-upload-url": "http://service/u"}])
    sent: list[int] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        command = request.headers.get("x-goog-upload-command", "")
        if "upload" in command:
            sent.append(len(request.content))
        if command != "start" and len(sent) <= odd:
            return httpx2.Response(standing[0], headers=standing[1])
        return plain.handle_request(request)

    with pytest.raises(UploadFailed, match="3 uploads were lost") if odd > MOST_RESTARTS else nullcontext():
        uploaded(face, cargo(b"data"), transport=httpx2.MockTransport(answer))

    assert asked.count("start") == min(odd, MOST_RESTARTS) + 1
    assert set(sent) == {4}


# ---- FIL-015: FAILED, for whatever reason in whatever form

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["message", "code", "x"]), inner),
    max_leaves=5,
)


@given(error=anything)
def test_a_failure_of_any_form_is_final_and_read(error: Any) -> None:
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, content=json.dumps({"name": "files/a", "state": "FAILED", "error": error}))

    async def flow(io: Io) -> RemoteFile:
        files = Files(Service(io, Target(base_url="http://service"), ApiKey("k")))
        begun = RemoteFile(name="files/a", uri=None, state=FileState.PROCESSING)
        return await files.wait_until_active(begun, within_s=60)

    with pytest.raises(FileProcessingFailed, match=r"cannot read files/a: .") as caught:
        FACES[0](flow, FakeClock(), httpx2.MockTransport(answer))
    assert len(asked) == 1
    assert caught.value.figures == {"file": "files/a"}


# ---- FIL-019: a gateway that has no files

GATEWAYS = {
    "no route": httpx2.Response(404, json={"message": "Invalid URL (GET /v1beta/files/w1)", "type": "invalid_request"}),
    "in our envelope": httpx2.Response(404, json={"error": {"message": "Invalid URL (POST /upload/v1beta/files)"}}),
    "detail": httpx2.Response(404, json={"detail": "Not Found"}),
    "page": httpx2.Response(404, html="<html><title>404 Not Found</title></html>"),
    "empty": httpx2.Response(404),
    "not implemented": httpx2.Response(501, json={"error": "files are not supported"}),
}


@each_face
@pytest.mark.parametrize("gateway", GATEWAYS)
def test_a_gateway_without_files_is_no_missing_file_and_is_asked_once(face: Face, gateway: str) -> None:
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        known = GATEWAYS[gateway]
        return httpx2.Response(known.status_code, headers=known.headers, content=known.content)

    with pytest.raises(UploadFailed) as caught:
        uploaded(face, cargo(b"data"), transport=httpx2.MockTransport(answer))

    assert caught.value.figures["cause"] is None
    assert caught.value.figures["service_status"] in (404, 501)
    assert len(asked) == 1


# ---- FIL-025: names people give


@each_face
@pytest.mark.parametrize(
    "name", ["600165_20250315_GMF6.pdf", "Überblick 文 🧾.pdf", 'a"b\r\nX-Evil: 1.pdf', "half \ud83e.pdf", "x" * 900]
)
def test_any_name_goes_with_its_file_and_headers_stay_ascii(face: Face, emulator: Emulator, name: str) -> None:
    file = uploaded(face, cargo(noise(2_000), display_name=name), base_url=emulator.base_url)

    assert file.display_name == name[:512]
    assert file.size_bytes == 2_000
    for request in emulator.requests.of("upload"):
        assert all(value.isascii() for value in request.headers.values())
        assert "x-evil" not in request.headers


# ---- FIL-026, FIL-027, FIL-028: how many bytes are too many


def weighed(size_bytes: int, backend: Backend = Backend.DEVELOPER, placement: Placement = Placement.INLINE) -> Weighed:
    return weigh(examined(screenshot(), size_bytes=size_bytes), Controls(placement=placement), RULES[backend])


def said_in(chars: int) -> Weighed:
    words = Examined(label="text", modality=Modality.TEXT, facts=TextSizes(content_chars=chars))
    return weigh(words, Controls(), RULES[Backend.DEVELOPER])


@given(size=st.integers(0, 5_000))
def test_base64_takes_four_characters_for_every_begun_three_bytes(size: int) -> None:
    assert base64_size(size) == len(base64.b64encode(bytes(size)))


@pytest.mark.parametrize(("size", "chars"), [(-1, 27_962_028), (0, 27_962_028), (1, 27_962_028), (2, 27_962_032)])
def test_at_the_bound_it_goes_inline_and_a_character_beyond_it_does_not(size: int, chars: int) -> None:
    parts = [weighed(20 * 1024 * 1024 + size)]

    assert inline_bytes(parts) == chars
    assert place(parts, RULES[Backend.DEVELOPER], InlineBelow(developer=chars)) == {}
    assert list(place(parts, RULES[Backend.DEVELOPER], InlineBelow(developer=chars - 1))) == [0]


@pytest.mark.parametrize("pictures", [1, 5, 31])
def test_base64_and_text_count_towards_the_bound_of_a_request(pictures: int) -> None:
    below, rules = InlineBelow(developer=21 * MB), RULES[Backend.DEVELOPER]
    media_only = [weighed(15_500_000 // pictures) for _ in range(pictures)]
    parts = [*media_only, said_in(MB)]

    placed = place(parts, rules, below)

    assert place(media_only, rules, below) == {}
    assert placed
    assert inline_bytes(put(parts, placed, rules)) <= 21 * MB < inline_bytes(parts)


def test_on_vertex_what_is_named_takes_no_room_and_what_is_inline_takes_its_base64() -> None:
    named = [weighed(9 * MB, Backend.VERTEX, Placement.URI) for _ in range(10)]
    inlined = [weighed(2 * MB, Backend.VERTEX) for _ in range(2)]

    assert inline_bytes([*named, *inlined]) == 2 * base64_size(2 * MB)
    assert place([*named, *inlined], RULES[Backend.VERTEX], InlineBelow(vertex=MB)) == {}


# ---- FIL-007, FIL-011, FIL-029, FIL-034: refusals in words


@pytest.mark.parametrize(
    ("status", "words", "cause", "file", "counted", "limit"),
    [
        (400, "Request payload size exceeds the limit: 4194304 bytes.", "body_too_large", None, None, 4_194_304),
        (400, "Request payload size exceeds the limit: 20971520 bytes.", "body_too_large", None, None, 20_971_520),
        (413, "Request payload size exceeds the limit: 104,857,600 bytes", "body_too_large", None, None, 104_857_600),
        (400, "The input token count (1200345) exceeds the maximum number of tokens allowed (1048576).",
         "prompt_too_long", None, 1_200_345, 1_048_576),
        (400, "The input token count exceeds the maximum number of tokens allowed 1048576.", None, None, None, None),
        (400, "The File 4d21d8wxg1pe is not in an ACTIVE state and usage is not allowed.", "file_not_active",
         "files/4d21d8wxg1pe", None, None),
        (400, "FAILED_PRECONDITION: 'The File files/5y6l7yja98jc is not in an ACTIVE state and usage is not allowed.'",
         "file_not_active", "files/5y6l7yja98jc", None, None),
        (403, "You do not have permission to access the File xxxx or it may not exist.", "file_missing", "files/xxxx",
         None, None),
        (400, f"payload size exceeds the limit: {'9' * 400} bytes", "body_too_large", None, None, None),
    ],
)  # fmt: skip
def test_what_a_refusal_says_is_understood(
    status: int, words: str, cause: str | None, file: str | None, counted: int | None, limit: int | None
) -> None:
    body = json.dumps({"error": {"code": status, "message": words, "status": "INVALID_ARGUMENT"}}).encode()

    figures = refused(status, {}, body, START).figures

    assert (figures["cause"], figures["file"]) == (cause, file)
    assert (figures["counted"], figures["limit"]) == (counted, limit)


def test_the_emulator_s_own_refusals_are_understood(emulator: Emulator, wire: Wire) -> None:
    film = uploaded(FACES[0], cargo(b"film", "video/mp4"), base_url=emulator.base_url)
    gone = "https://generativelanguage.googleapis.com/v1beta/files/gone1"

    causes = {}
    for uri in (film.uri or "", gone):
        answer = wire.generate(user(at(uri, "video/mp4"), "hi"), name=NEW)
        figures = refused(answer.status_code, {}, answer.content, START).figures
        causes[figures["file"]] = figures["cause"]

    assert causes == {film.name: Cause.FILE_NOT_ACTIVE, "files/gone1": Cause.FILE_MISSING}


# ---- FIL-006, FIL-031, FIL-032, FIL-033: addresses

URIS = {
    "gs://bucket/take 2/film.mp4": Placement.URI,
    "https://generativelanguage.googleapis.com/v1beta/files/abc-1": Placement.FILES,
    "https://generativelanguage.googleapis.com/v1alpha/files/abc1": Placement.FILES,
    "https://example.com/api/storage/1f?sig=a%2Fb&x=1": Placement.URI,
    "https://www.youtube.com/watch?v=abc": Placement.URI,
    "https://youtu.be/abc": Placement.URI,
    "http://169.254.169.254/latest/meta-data": Placement.URI,
}


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize("mime", ["video/mp4", None])
def test_an_address_is_fetched_by_nobody_here_and_leaves_as_it_came(
    lines: dict[Backend, Preflight], monkeypatch: pytest.MonkeyPatch, backend: Backend, uri: str, mime: str | None
) -> None:
    def connected(*_: object) -> None:
        raise AssertionError("something is fetched")

    monkeypatch.setattr(socket, "getaddrinfo", connected)
    monkeypatch.setattr(socket.socket, "connect", connected)
    line, read = lines[backend], parsed(at(uri, mime))
    if backend is Backend.VERTEX and URIS[uri] is Placement.FILES:
        with pytest.raises(UnsupportedMedia, match="gs://"):
            line.screen(read.request).screening.demand_sendable()
        return

    (part,) = line.weigh_request(read.request).parts[:-1]
    document = json.loads(rest_json.emit(line.screen(read.request).request, read))

    left = document["contents"][0]["parts"][1]["fileData"]
    assert left["fileUri"] == uri
    assert left.get("mimeType") == (mime or ("video/mp4" if uri.endswith(".mp4") else None))
    assert part.error is not None
    assert part.error.figures["reference"] is True
    assert part.controls.placement is URIS[uri]


def test_the_emulator_reads_what_each_backend_reads(emulator: Emulator, wire: Wire) -> None:
    emulator.remotes["gs://bucket/shot.png"] = Remote(data=media.picture((64, 48)), mime="image/png")
    file = wire.upload(media.picture((64, 48)))
    asked = {"gs": at("gs://bucket/shot.png", "image/png"), "files": at(file["uri"], "image/png"),
             "https": at("https://example.com/unknown", "image/png")}  # fmt: skip

    told = {
        (name, vertex): wire.generate(user(part, "hi"), name=NEW, vertex=vertex).status_code
        for name, part in asked.items()
        for vertex in (False, True)
    }

    assert told["gs", True] == told["files", False] == 200
    assert told["files", True] == told["https", True] == told["https", False] == 400


def test_a_file_whose_type_the_service_forgot_is_named_by_ours(lines: dict[Backend, Preflight]) -> None:
    what = cargo(media.wav(1.0), WAV)
    file = uploaded(FACES[0], what, transport=Shelf(what, [{"mimeType": ""}]).transport)
    read = parsed(at(file.uri or "", file.mime or what.mime))

    document = json.loads(rest_json.emit(lines[Backend.DEVELOPER].screen(read.request).request, read))

    assert document["contents"][0]["parts"][1]["fileData"]["mimeType"] == WAV


# ---- FIL-036: whose file it was


def test_a_picture_keeps_its_name_when_it_becomes_another(
    lines: dict[Backend, Preflight], emulator: Emulator, tmp_path: Path
) -> None:
    blob = inline(media.animated_gif((8, 8), 3), "image/gif")
    blob["inlineData"]["displayName"] = "my holiday.gif"

    (part,), fitted = sent(lines[Backend.DEVELOPER], blob)

    (medium,) = [one for _, one, _ in fitted.request.media()]
    assert part["inlineData"]["mimeType"] == "image/png"
    assert part["inlineData"]["displayName"] == medium.label == "my holiday.gif"
    data = base64.b64decode(part["inlineData"]["data"])
    file = uploaded(FACES[0], cargo(data, "image/png", medium.label), base_url=emulator.base_url)
    assert file.display_name == "my holiday.gif"
