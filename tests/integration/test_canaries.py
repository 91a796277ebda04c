"""No key, upload address or signed URL comes out of logs, errors, reports, files, or what objects say of themselves."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import google.auth.credentials
import httpx2
import pytest
from click.testing import CliRunner

import media
from emulated import at, inline, user
from fake_io import FACES, Face, FakeClock
from integration.test_resumable_upload import Memory, noise
from integration.test_traps_files import cargo
from referenced import Bench, medium
from traps import preflight
from weighlock.cli import cli
from weighlock.converters import rest_json
from weighlock.emulator import Emulator, Remote
from weighlock.errors import WeighlockError
from weighlock.gemini.auth import ApiKey, Credential, GoogleLogin
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.files import Files, UploadSession
from weighlock.gemini.http import Service, Target
from weighlock.io import HttpRequest, Io
from weighlock.planning.counting import Form
from weighlock.request import Backend
from weighlock.uploads.references import References
from weighlock.uploads.repair import repaired
from weighlock.uploads.resumable import Cargo, upload

KEY = "AQ.canary-key-4711"
TOKEN = "ya29.canary-token-4712"  # noqa: S105  # no real one
UPLOAD = "canary-upload-4713"
SIGNATURE = "canary-signature-4714"
SIGNED = f"https://storage.googleapis.com/b/shot.png?X-Goog-Expires=900&X-Goog-Signature={SIGNATURE}"
CANARIES = (KEY, TOKEN, UPLOAD, SIGNATURE, "canary", "upload_id=")
DEVELOPER, VERTEX = Backend
MODEL = "gemini-3.8-flash"
BODY = {"contents": [user(at(SIGNED, "image/png"), inline(media.picture((8, 8)), "image/png"), "what is it?")]}
FAULTS = ("return-400", "return-401", "return-403", "return-404", "return-410", "return-429", "return-503",
          "return-reset-connection", "return-broken-stream", "return-corrupted-data", "absurd-retry-delay",
          "lose-response", "empty-count", "session-gone", "lose-final-response", "partial-commit",
          "fail-processing")  # fmt: skip
BEFALLEN = [*((DEVELOPER, fault) for fault in (None, *FAULTS)), (VERTEX, None), (VERTEX, "return-401")]
each_face = pytest.mark.parametrize("face", FACES)
Told = list[str]


class Login(google.auth.credentials.Credentials):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def refresh(self, request: Any) -> None:
        self.token = TOKEN


def credential(backend: Backend) -> Credential:
    return ApiKey(KEY) if backend is DEVELOPER else GoogleLogin(Login())


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        emulator.remotes[SIGNED] = Remote(data=media.picture((8, 8)), mime="image/png")
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    return running


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Everything logged so far, by anybody, at DEBUG and above."""
    caplog.set_level(logging.DEBUG)

    def text() -> str:
        form = logging.Formatter("%(name)s %(levelname)s %(message)s")
        return "\n".join(f"{form.format(record)} {record.args!r}" for record in caplog.records)

    return text


# ---- what an error, and an object, can say


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what caused it, and what it was raised on top of."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]


def all_of(error: BaseException) -> str:
    words = ["".join(traceback.format_exception(error))]
    for one in chain(error):
        words += [str(one), repr(one), repr(one.args), str(getattr(one, "__notes__", ""))]
        if isinstance(one, WeighlockError):
            words += [json.dumps(one.as_problem(), default=repr), repr(one.figures), repr(vars(one))]
    return "\n".join(words)


def said_by(thing: Any) -> str:
    """What an object says of itself, and what lies openly in it."""
    return f"{thing} {thing!r} {getattr(thing, '__dict__', '')!r}"


async def attempted(told: Told, flow: Awaitable[Any]) -> Any:
    try:
        result = await flow
    except WeighlockError as error:
        told.append(all_of(error))
        return None
    told.append(said_by(result))
    return result


def demand_silence(*texts: str) -> None:
    """Anything of a canary, as it is or as a file or a header would write it."""
    for text in texts:
        for canary in CANARIES:
            assert canary not in text, text[max(0, text.find(canary) - 300) :][:600]


# ---- flows


async def everything(io: Io, service: Service, told: Told) -> None:
    """Whatever is asked of the service, once: its answers and its errors."""
    counter, request = TokenCounter(service), rest_json.parse(BODY).request
    for form in Form:
        await attempted(told, counter.count(request, MODEL, form))
    told += [said_by(one) for one in (io, service, counter)]
    if service.target.backend is VERTEX:
        return
    files, what = Files(service), cargo(noise(400_000), "video/mp4", display_name="film.mp4")
    film = await attempted(told, upload(io, files, what, within_s=60, chunk_bytes=256 * 1024))
    if film is not None:
        await attempted(told, files.wait_until_active(film, within_s=20))
        await attempted(told, files.delete(film.name))
    await attempted(told, files.get("files/gone1"))
    await attempted(told, anext(files.listed(), None))
    session = await attempted(told, files.start(mime="image/png", size_bytes=4))
    if isinstance(session, UploadSession):
        await attempted(told, files.query(session))
        await attempted(told, files.send(session, 0, b"data", last=True))
    told.append(said_by(files))


@each_face
@pytest.mark.parametrize(
    ("backend", "fault"),
    [
        *((DEVELOPER, fault) for fault in (None, *FAULTS)),
        (VERTEX, None),
        (VERTEX, "return-401"),
    ],
)
def test_nothing_comes_out_of_any_call_whatever_befalls_it(
    face: Face, backend: Backend, fault: str | None, emulator: Emulator, logged: Callable[[], str]
) -> None:
    told: Told = []
    emulator.accounts.of_key(KEY).storage_bytes = 450_000
    if fault is not None:
        emulator.faults.set(fault, on="count upload files" if fault.startswith("return") else "", rate=0.7)

    async def flow(io: Io) -> None:
        target = Target(backend=backend, base_url=emulator.base_url, project="p")
        await everything(io, Service(io, target, credential(backend)), told)

    face(flow, FakeClock())

    assert len(told) >= (5 if backend is VERTEX else 10)
    assert {one.headers.get("x-goog-api-key") or one.headers.get("authorization") for one in emulator.requests} >= {
        KEY if backend is DEVELOPER else f"Bearer {TOKEN}"
    }
    demand_silence(*told, logged())
    uploads = {one.query.partition("upload_id=")[2].partition("&")[0] for one in emulator.requests.of("upload")} - {""}
    assert all(upload_id not in text for upload_id in uploads for text in (*told, logged()))


class Parrot:
    """A service, or a gateway, that repeats all it was told in every way it can."""

    def __init__(self, status: int, form: str) -> None:
        self.status, self.form = status, form
        self.transport = httpx2.MockTransport(self.answer)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        begins = request.headers.get("x-goog-upload-command") == "start"
        if begins and self.status != 302:
            address = f"http://service/upload?upload_id={UPLOAD}&upload_protocol=resumable"
            return httpx2.Response(200, headers={"x-goog-upload-url": address, "x-goog-upload-status": "active"})
        heard = (
            f"{request.method} {request.url} {request.url.query!r} {dict(request.headers)} {request.content[:999]!r}"
        )
        headers = {
            "location": f"http://elsewhere/?key={KEY}&u={UPLOAD}",
            "x-request": KEY,
            "x-upload": str(request.url),
        }
        match self.form:
            case "error":
                return httpx2.Response(self.status, headers=headers, json={
                    "error": {"code": self.status, "message": heard, "status": "INVALID_ARGUMENT",
                              "details": [{"@type": "x.ErrorInfo", "metadata": {"heard": heard}}]}})  # fmt: skip
            case "page":
                return httpx2.Response(self.status, headers=headers, html=f"<title>{heard}</title>{heard}")
            case "name":
                words = f"The File {UPLOAD} is gone, says {heard}"
                return httpx2.Response(self.status, headers=headers, json={"error": {"message": words}})
            case _:
                return httpx2.Response(self.status, headers=headers, json={
                    "totalTokens": heard, "name": heard, "state": "FAILED", "error": {"message": heard}})  # fmt: skip


@each_face
@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 429])
@pytest.mark.parametrize("form", ["error", "page", "fields"])
def test_what_a_service_repeats_is_taken_out_of_its_words(
    face: Face, status: int, form: str, logged: Callable[[], str]
) -> None:
    told: Told = []

    async def flow(io: Io) -> None:
        for credential in (ApiKey(KEY), GoogleLogin(Login())):
            await everything(io, Service(io, Target(base_url="http://service"), credential), told)

    face(flow, FakeClock(), Parrot(status, form).transport)

    assert len(told) >= 10
    demand_silence(*told, logged())


@each_face
def test_a_source_that_breaks_in_the_middle_says_nothing_either(
    face: Face, emulator: Emulator, logged: Callable[[], str]
) -> None:
    told: Told = []

    def broken(offset: int) -> None:
        if offset:
            raise OSError(5, "Input/output error")

    async def flow(io: Io) -> None:
        files = Files(Service(io, Target(base_url=emulator.base_url), ApiKey(KEY)))
        whole = cargo(noise(400_000))
        what = Cargo(source=Memory(noise(400_000), broken), sha256=whole.sha256, mime=whole.mime, name_of=whole.name_of)
        try:
            await upload(io, files, what, chunk_bytes=256 * 1024)
        except OSError as error:
            told.append(all_of(error))

    face(flow, FakeClock())

    assert "Input/output error" in told[0]
    demand_silence(*told, logged())


# ---- references, and what is written down of them


@each_face
@pytest.mark.parametrize(
    "fault", [None, "lose-final-response", "session-gone", "return-400", "return-reset-connection"]
)
def test_nothing_is_written_down_either(
    face: Face, fault: str | None, emulator: Emulator, tmp_path: Path, logged: Callable[[], str]
) -> None:
    bench, told = Bench(face=face, emulator=emulator, folder=tmp_path, key=KEY), list[str]()

    async def flow(references: References) -> None:
        reference = await attempted(told, references.ensure(medium(b"a shot"), "image/png", tenant="a"))
        if fault is not None:
            emulator.faults.set(fault, on="upload" if fault.startswith("return") else "", rate=0.7)
        await attempted(told, references.ensure(medium(b"another"), "image/png", tenant="a"))
        bench.advance(3 * 86_400)
        request = rest_json.parse(
            {"contents": [user(at(reference.uri), at(SIGNED, "image/png"), "what is it?")]}
        ).request
        counter = TokenCounter(bench.service(references.io))
        await attempted(
            told, repaired(references, "a", request, lambda asked: counter.count(asked, MODEL, Form.WHOLE, timeout_s=9))
        )
        told.extend(said_by(one) for one in (references, references.registry, references.files))

    bench.run(flow)
    bench.registry.close()

    written = {path: path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()}
    assert written
    told = [text.replace(SIGNED, "") for text in told]  # it stands in the request that is handed back
    demand_silence(*told, *written.values(), logged())
    uploads = {one.query.partition("upload_id=")[2].partition("&")[0] for one in emulator.requests.of("upload")} - {""}
    assert uploads
    assert all(upload_id not in text for upload_id in uploads for text in written.values())


# ---- objects


@pytest.mark.parametrize("backend", Backend)
def test_whoever_knows_a_secret_neither_says_nor_stores_it(backend: Backend) -> None:
    asks = credential(backend)
    FACES[0](asks.headers, FakeClock())
    service = Service(None, Target(), asks)  # type: ignore[arg-type]
    request = HttpRequest(method="POST", url=f"http://x/?upload_id={UPLOAD}", headers={"x-goog-api-key": KEY})
    session = UploadSession(url=f"http://x/?upload_id={UPLOAD}")

    assert asks.hidden() == (KEY if backend is DEVELOPER else TOKEN,)
    demand_silence(*map(said_by, (asks, service, request, session, TokenCounter(service), [asks], {"a": service})))
    for one in (asks, service, TokenCounter(service), {"service": service}):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError):
                pickle.dumps(one, protocol)
        with pytest.raises(TypeError):
            copy.deepcopy(one)


# ---- reports, and the commands


def test_reports_and_what_is_kept_hold_no_signed_address(tmp_path: Path, logged: Callable[[], str]) -> None:
    with preflight(tmp_path, f"model: {MODEL}, limits: {{prompt_tokens: 10}}") as line:
        request = rest_json.parse(BODY).request
        report, fitted, screened = line.weigh_request(request), line.fit(request), line.screen(request)

    told = [json.dumps(report.as_dict()), json.dumps(fitted.as_dict()), *map(repr, (report.parts, screened.screening))]
    told += [all_of(error) for part in report.parts if (error := part.error)]
    assert SIGNATURE in json.dumps(BODY)
    demand_silence(*told, logged(), str(report.refusal))


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        *((("count",), fault) for fault in (None, "return-403", "empty-count", "return-reset-connection")),
        (("count", "--format", "json"), None),
        (("check",), None),
        (("fit", "--format", "json"), None),
    ],
)
def test_the_commands_say_nothing_of_it(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str], words: Any,
    fault: str | None,
) -> None:  # fmt: skip
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(BODY))
    if fault is not None:
        emulator.faults.set(fault, on="count")

    result = CliRunner().invoke(cli, [*words, str(path)], standalone_mode=False)

    failed = all_of(result.exception) if result.exception is not None else ""
    assert result.output or failed
    demand_silence(result.output, failed, logged())


@pytest.mark.parametrize(
    ("fault", "on"),
    [
        (None, ""),
        ("return-403", "upload"),
        ("return-400", "upload.finalize"),
        ("return-reset-connection", "upload.chunk"),
        ("return-400", "files"),
    ],
)
def test_uploading_and_looking_after_uploads_say_and_keep_nothing_of_it(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str], fault: str | None,
    on: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
    Path("weighlock.yaml").write_text("version: 1\ndefault: {model: gemini-x}\nstate: {dir: state}\n")
    Path("shot.png").write_bytes(media.picture((64, 48)))
    told: Told = []
    if fault is not None:
        emulator.faults.set(fault, on=on, count=3)
    for words in (
        "upload shot.png", "upload --format json shot.png", "uploads list", "uploads list --format json",
        "uploads refresh --tenant default", "uploads purge --all --remote", "uploads list",
    ):  # fmt: skip
        result = CliRunner().invoke(cli, words.split(), standalone_mode=False)
        told += [result.output, all_of(result.exception) if result.exception is not None else ""]

    kept = [path.read_bytes().decode("latin-1") for path in Path("state").rglob("*") if path.is_file()]
    uploads = {one.query.partition("upload_id=")[2].partition("&")[0] for one in emulator.requests.of("upload")} - {""}
    assert kept
    demand_silence(*told, *kept, logged())
    assert not any(upload_id in text for upload_id in uploads for text in (*told, *kept, logged()))
