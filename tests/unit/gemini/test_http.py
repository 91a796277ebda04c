"""One scenario table through both faces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import google.auth.credentials
import httpx2
import pytest

from fake_io import FACES, START, Face, FakeClock
from weighlock.errors import ConfigError, InputError, ServiceError, ServiceRefused, ServiceUnreachable
from weighlock.gemini.auth import ApiKey, Credential, GoogleLogin
from weighlock.gemini.errors import Cause, refusal
from weighlock.gemini.http import Answer, Retry, Service, Target
from weighlock.io import Io
from weighlock.request import Backend

KEY = "canary-key-4711"
each_face = pytest.mark.parametrize("face", FACES)
Script = list[httpx2.Response | type[Exception]]


def said(status: int, code: str, message: str, *details: dict[str, Any], **headers: str) -> httpx2.Response:
    error = {"code": status, "status": code, "message": message, "details": list(details)}
    return httpx2.Response(status, json={"error": error}, headers=headers)


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def quota(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


class Scripted:
    """Answers in order; remembers what was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[httpx2.Request] = []
        self.transport = httpx2.MockTransport(self.answer)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        step = self.script.pop(0)
        if isinstance(step, type):
            raise step("broke off")
        return httpx2.Response(step.status_code, headers=step.headers, content=step.content)


def call(
    face: Face, script: Script, credential: Credential | None = None, **how: Any
) -> tuple[Answer | ServiceError, Scripted, FakeClock]:
    service, clock = Scripted(list(script)), FakeClock()

    async def flow(io: Io) -> Answer | ServiceError:
        client = Service(io, Target(base_url="http://gateway/g"), credential or ApiKey(KEY))
        try:
            return await client.call("POST", client.target.model_url("gemini-3.8-flash", "countTokens"), {}, **how)
        except ServiceError as error:
            return error

    return face(flow, clock, service.transport), service, clock


def ok() -> httpx2.Response:
    return httpx2.Response(200, json={"totalTokens": 3})


@each_face
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_after_a_doubling_wait(face: Face, status: int) -> None:
    answer, service, clock = call(face, [said(status, "UNAVAILABLE", "later"), httpx2.ReadError, ok()])

    assert isinstance(answer, Answer)
    assert answer.json == {"totalTokens": 3}
    assert clock.slept == [0.5, 1.0]
    assert len(service.asked) == 3


@each_face
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 499, 501, 302])
def test_what_will_not_pass_is_said_at_once(face: Face, status: int) -> None:
    answer, service, clock = call(face, [said(status, "INVALID_ARGUMENT", "no")])

    assert isinstance(answer, ServiceRefused)
    assert answer.figures["service_status"] == status
    assert (len(service.asked), clock.slept) == (1, [])


@each_face
def test_what_cannot_be_repeated_is_tried_again_only_where_it_surely_was_not_done(face: Face) -> None:
    passed, _, _ = call(
        face, [httpx2.ConnectError, said(429, "RESOURCE_EXHAUSTED", "slow down"), ok()], repeatable=False
    )
    broke_off, once, _ = call(face, [httpx2.ReadError], repeatable=False)
    failed, _, _ = call(face, [said(503, "UNAVAILABLE", "?")], repeatable=False)

    assert isinstance(passed, Answer)
    assert isinstance(broke_off, ServiceUnreachable)
    assert len(once.asked) == 1
    assert isinstance(failed, ServiceRefused)


@each_face
@pytest.mark.parametrize(
    ("refused", "waited_s"),
    [
        (said(429, "RESOURCE_EXHAUSTED", "wait", retry_info("18s")), 18.0),
        (said(429, "RESOURCE_EXHAUSTED", "wait", retry_info("1.5s"), **{"Retry-After": "7"}), 7.0),
        (said(503, "UNAVAILABLE", "wait", **{"Retry-After": "Mon, 30 Nov 2026 12:00:10 GMT"}), 10.0),
        (said(429, "RESOURCE_EXHAUSTED", "wait", retry_info("86400s")), 60.0),
        (said(429, "RESOURCE_EXHAUSTED", "wait", retry_info("-3s")), 0.5),
        (said(429, "RESOURCE_EXHAUSTED", "wait", retry_info("infs"), **{"Retry-After": "soon"}), 0.5),
        (said(503, "UNAVAILABLE", "wait", **{"Retry-After": "Fri, 31 Dec 0000 99:00:00 GMT"}), 0.5),
    ],
)
def test_a_wait_the_service_asks_for_is_honoured_within_reason(
    face: Face, refused: httpx2.Response, waited_s: float
) -> None:
    answer, _, clock = call(face, [refused, ok()])

    assert isinstance(answer, Answer)
    assert clock.slept == [waited_s]


@each_face
def test_no_wait_outlasts_the_time_there_is(face: Face) -> None:
    answer, service, clock = call(face, [said(429, "RESOURCE_EXHAUSTED", "x", retry_info("30s"))], within_s=2.0)

    assert isinstance(answer, ServiceRefused)
    assert answer.figures["retry_after_s"] == 30.0
    assert (len(service.asked), clock.slept) == (1, [])


@each_face
def test_a_quota_of_the_day_is_not_waited_for(face: Face) -> None:
    refused = said(429, "RESOURCE_EXHAUSTED", "x", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"))

    answer, service, _ = call(face, [refused])

    assert isinstance(answer, ServiceRefused)
    assert (answer.figures["cause"], len(service.asked)) == (Cause.DAILY_QUOTA, 1)


@each_face
def test_attempts_end(face: Face) -> None:
    answer, service, _ = call(face, [said(503, "UNAVAILABLE", "no")] * 9)

    assert isinstance(answer, ServiceRefused)
    assert len(service.asked) == 4


@each_face
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><head><title>502 Bad Gateway</title></head>", "502 Bad Gateway"),
        (b'{"error": {"message": "cut', "no reason given"),
        (b"", "no reason given"),
        (b"\xff\xfe\x00", "no reason given"),
        (b"[" * 100_000, "no reason given"),
        (b'[{"error": {"message": "in a list", "status": 7, "details": [3, {"@type": 1}]}}]', "in a list"),
        (b'{"error": "invalid_grant", "error_description": "log in"}', "invalid_grant: log in"),
        (b'{"error": null}', "no reason given"),
        (b"7", "no reason given"),
    ],
)
def test_a_refusal_in_any_shape_is_a_refusal(face: Face, body: bytes, words: str) -> None:
    answer, _, _ = call(face, [httpx2.Response(400, content=body)])

    assert isinstance(answer, ServiceRefused)
    assert answer.message == f"the service refuses: 400: {words}"


@each_face
@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"totalTokens": 12', b"[1]", b"3", b"\xff", b"[" * 100_000])
def test_a_success_that_says_nothing_is_no_success(face: Face, body: bytes) -> None:
    answer, _, _ = call(face, [httpx2.Response(200, content=body)])

    assert isinstance(answer, ServiceRefused)
    assert answer.figures["service_status"] == 200


def test_a_key_of_a_few_letters_is_hidden_as_a_word_and_makes_no_hole_in_others() -> None:
    body = json.dumps({"error": {"message": "check the key 'k' (k=k)"}}).encode()

    told = refusal(400, {}, body, START, ["k"])

    assert str(told).endswith("check the key '[key hidden]' ([key hidden]=[key hidden])")


@pytest.mark.parametrize(
    ("name", "shown"), [("w" + "5ea6f" * 7 + "900", True), ("k5ea6f" * 6, False), ("w" + "5ea6f" * 7 + "9001", False)]
)
def test_a_file_of_ours_is_named_and_what_may_be_a_key_is_not(name: str, shown: bool) -> None:
    body = json.dumps({"error": {"message": f"You may not access the File {name} or it may not exist."}}).encode()

    told = refusal(403, {}, body, START)

    assert (name in str(told)) is shown
    assert told.figures["file"] == f"files/{name}"


@each_face
def test_nothing_the_service_says_back_holds_the_key(face: Face) -> None:
    echo = f"API key {KEY} not valid; Consumer 'api_key:AIzaSyA1234567890123456789012345678901'; see https://x/y?key=abc&u=1"

    answer, service, _ = call(face, [said(403, "PERMISSION_DENIED", echo)])

    assert isinstance(answer, ServiceRefused)
    assert service.asked[0].headers["x-goog-api-key"] == KEY
    assert KEY not in str(service.asked[0].url)
    for text in (str(answer), repr(answer), json.dumps(answer.as_problem())):
        assert not any(secret in text for secret in (KEY, "AIza", "key=abc"))


@each_face
@pytest.mark.parametrize(
    ("status", "code", "message", "cause", "file"),
    [
        (403, "PERMISSION_DENIED", "You do not have permission to access the File abc12 or it may not exist.",
         Cause.FILE_MISSING, "files/abc12"),
        (404, "NOT_FOUND", "File files/a-b not found", Cause.FILE_MISSING, "files/a-b"),
        (400, "FAILED_PRECONDITION", "The File q1 is not in an ACTIVE state and usage is not allowed.",
         Cause.FILE_NOT_ACTIVE, "files/q1"),
        (429, "RESOURCE_EXHAUSTED", "You have exceeded the file storage limit of your project.",
         Cause.STORAGE_FULL, None),
        (403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1.", None, None),
        (404, "NOT_FOUND", "models/x is not found for API version v1beta", None, None),
    ],
)  # fmt: skip
def test_refusals_something_can_be_done_about_say_which(
    face: Face, status: int, code: str, message: str, cause: Cause | None, file: str | None
) -> None:
    answer, _, _ = call(face, [said(status, code, message)])

    assert isinstance(answer, ServiceRefused)
    assert (answer.figures["cause"], answer.figures["file"]) == (cause, file)


class Login(google.auth.credentials.Credentials):
    def __init__(self, refreshing: Callable[[], str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refreshing = refreshing

    def refresh(self, request: Any) -> None:
        self.token = self.refreshing()


@each_face
def test_a_token_is_fetched_once_and_once_more_when_it_is_refused(face: Face) -> None:
    tokens = iter(["first", "second"])

    answer, service, _ = call(
        face, [said(401, "UNAUTHENTICATED", "expired first"), ok()], GoogleLogin(Login(lambda: next(tokens)))
    )

    assert isinstance(answer, Answer)
    assert [request.headers["authorization"] for request in service.asked] == ["Bearer first", "Bearer second"]


@each_face
def test_a_login_that_gives_no_token_says_so_without_its_words(face: Face) -> None:
    from google.auth.exceptions import RefreshError

    def refuse() -> str:
        raise RefreshError(f"invalid_grant {KEY}")  # type: ignore[no-untyped-call]

    with pytest.raises(ConfigError) as caught:
        call(face, [], GoogleLogin(Login(refuse)))

    assert KEY not in f"{caught.value}"


@pytest.mark.parametrize(
    ("target", "model", "url"),
    [
        (Target(), "gemini-3.8-flash", "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:m"),
        (Target(api_version="v1"), "models/g", "https://generativelanguage.googleapis.com/v1/models/g:m"),
        (Target(), "tunedModels/t-1", "https://generativelanguage.googleapis.com/v1beta/tunedModels/t-1:m"),
        (Target(base_url="https://gw/p/"), "g", "https://gw/p/v1beta/models/g:m"),
        (Target(backend=Backend.VERTEX, project="p"), "g",
         "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google/models/g:m"),
        (Target(backend=Backend.VERTEX, project="p", location="europe-west4"), "models/g",
         "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4/publishers/google/models/g:m"),
        (Target(backend=Backend.VERTEX, project="p", location="eu"), "publishers/google/models/g",
         "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/locations/eu/publishers/google/models/g:m"),
        (Target(backend=Backend.VERTEX), "g",
         "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/g:m"),
        (Target(backend=Backend.VERTEX, project="p"), "projects/q/locations/l/endpoints/7",
         "https://aiplatform.googleapis.com/v1beta1/projects/q/locations/l/endpoints/7:m"),
    ],
)  # fmt: skip
def test_addresses(target: Target, model: str, url: str) -> None:
    assert target.model_url(model, "m") == url


@pytest.mark.parametrize("model", ["", "../files", "a/../b", "a?b=c", "a b", "a#b", "/a", "a//b", "x" * 2000])
def test_what_is_no_model_reaches_no_address(model: str) -> None:
    with pytest.raises(InputError):
        Target().model_url(model, "countTokens")


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "gateway"}, {"base_url": "ftp://x"}, {"base_url": "https://x/?key=1"},
        {"base_url": "https://u:p@x"}, {"project": "a/b"}, {"location": "x.evil/"}, {"api_version": "v1/.."},
    ],
)  # fmt: skip
def test_a_target_no_address_can_be_made_of_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Target(backend=Backend.VERTEX, **wrong)


@pytest.mark.parametrize("key", ["", "  ", "a b", "a\nb", "schlüssel"])
def test_what_is_no_key_is_refused_unquoted(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ApiKey(key)

    assert not key.strip() or key not in str(caught.value)


def test_a_key_is_shown_by_nothing() -> None:
    assert KEY not in repr(Service(None, Target(), ApiKey(f"{KEY}\n"), Retry()))  # type: ignore[arg-type]
