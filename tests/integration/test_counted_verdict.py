"""The service asked before the verdict: one table of scenarios through both faces, against the emulator."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import media
from emulated import Wire, at, inline, user
from fake_io import FakeAsyncIo, FakeClock, FakeSyncIo
from referenced import aged
from weighlock.accounts import references_of, registry_of, service_of
from weighlock.converters import rest_json
from weighlock.emulator import Emulator
from weighlock.emulator.weighing import Remote
from weighlock.errors import ConfigError, ReferenceUnrecoverable, UploadFailed
from weighlock.io import run
from weighlock.media.tokens import Confidence
from weighlock.planning.counting import CountPolicy, Form, OnCountFailure, When
from weighlock.planning.limits import Limits
from weighlock.preflight import Preflight
from weighlock.report import Report
from weighlock.request import Backend, MediaPart, Modality, Request
from weighlock.scales import Asked
from weighlock.settings import Settings, load
from weighlock.settings.model import State

CANARY = "canary-key-4711"
WORDS = "What went wrong in this screenshot of the checkout page? " * 20
AUTO, ALWAYS, REJECT = CountPolicy(), CountPolicy(when=When.ALWAYS), CountPolicy(on_failure=OnCountFailure.REJECT)
Run = Callable[..., list[Report]]


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        emulator.faults.stall_s = 0.5
        yield emulator


@pytest.fixture
def emulator(running: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    running.reset()
    running.remotes.clear()
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running.base_url)
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    return running


def settings(limits: Limits, policy: CountPolicy) -> Settings:
    shipped = load(None, environ={}, cwd=Path("/"))
    return replace(shipped, default=replace(shipped.default, limits=limits, count=policy))


def blocking(request: Request, known: Settings, times: int, asked: Asked) -> list[Report]:
    with Preflight(known, preload=False, io=FakeSyncIo(FakeClock())) as preflight:
        return [preflight.count(request, asked) for _ in range(times)]


def awaiting(request: Request, known: Settings, times: int, asked: Asked) -> list[Report]:
    async def flow() -> list[Report]:
        async with Preflight(known, preload=False, async_io=FakeAsyncIo(FakeClock())) as preflight:
            return [await preflight.acount(request, asked) for _ in range(times)]

    return asyncio.run(flow())


@pytest.fixture(params=[blocking, awaiting])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    def counted(
        body: dict[str, Any], limits: Limits, policy: CountPolicy = AUTO, times: int = 1, **asked: Any
    ) -> list[Report]:
        reports: list[Report] = request.param(
            rest_json.parse(body).request,
            replace(settings(limits, policy), state=State(dir=tmp_path)),
            times,
            Asked(**asked),
        )
        return reports

    return counted


def screenshot() -> dict[str, Any]:
    return {"contents": [user(WORDS, inline(media.picture((640, 480)), "image/png"))]}


def checked(body: dict[str, Any], **asked: Any) -> Report:
    with Preflight(settings(Limits(), CountPolicy()), preload=False) as preflight:
        return preflight.weigh_request(rest_json.parse(body).request, Asked(**asked))


def straddled(report: Report) -> Limits:
    """Broken by the high estimate alone."""
    return Limits(prompt_tokens=report.total.high - 1)


def test_a_count_of_the_text_admits_what_only_the_estimate_refuses(ask: Run, emulator: Emulator) -> None:
    estimated = checked(screenshot())

    (report,) = ask(screenshot(), straddled(estimated))

    (asked,) = emulator.requests
    assert asked.operation == "count"
    assert asked.headers["x-goog-api-key"] == CANARY
    assert report.verdict.decision == "admit"
    text, before = report.tokens[Modality.TEXT], estimated.tokens[Modality.TEXT]
    assert text.high - text.low <= 2 < before.high - before.low
    assert report.tokens[Modality.IMAGE] == estimated.tokens[Modality.IMAGE]
    assert report.screening is not None
    told = report.as_dict()["counted"]
    assert (told["covers"], told["stand_ins"], told["confidence"], told["error"]) == ("text", 1, "measured", None)
    assert "billed 11" in told["biases"][0]["note"]
    json.dumps(report.as_dict())


@pytest.mark.parametrize(
    ("limits", "policy"),
    [
        (lambda total: Limits(prompt_tokens=total.high), CountPolicy()),
        (lambda total: Limits(prompt_tokens=total.low - 1), CountPolicy()),
        (lambda total: Limits(prompt_tokens=total.high - 1), CountPolicy(when=When.OFF)),
        (lambda _: Limits(), CountPolicy()),
    ],
)
def test_where_no_count_would_change_it_nobody_is_asked(
    ask: Run, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, limits: Any, policy: CountPolicy
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")

    (report,) = ask(screenshot(), limits(checked(screenshot()).total), policy)

    assert report.counted is None
    assert report.as_dict()["counted"] is None
    assert not list(emulator.requests)


def test_always_asks_and_the_same_content_is_asked_about_once(ask: Run, emulator: Emulator) -> None:
    reports = ask(screenshot(), Limits(), ALWAYS, times=3)

    assert len(list(emulator.requests)) == 1
    assert len({report.total for report in reports}) == 1


FAULTS = ["empty-count", "return-503", "return-400", "stall-always", "return-reset-connection"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_count_that_fails_leaves_the_estimate_and_is_told(ask: Run, emulator: Emulator, fault: str) -> None:
    estimated = checked(screenshot())
    emulator.faults.set(fault, on="count")

    (report,) = ask(screenshot(), straddled(estimated), CountPolicy(timeout_s=0.1))

    assert report.counted is not None
    assert report.counted.failure is not None
    assert report.as_dict()["counted"]["error"]["code"] == "count_failed"
    assert report.total == estimated.total
    assert report.verdict.decision == "reject"
    assert report.verdict.reasons == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_under_reject_a_failed_count_refuses_and_names_the_knob(ask: Run, emulator: Emulator, fault: str) -> None:
    emulator.faults.set(fault, on="count")
    film = {"contents": [user("What is it?", at("https://example.org/shot.png", "image/png"))]}

    (report,) = ask(film, Limits(prompt_tokens=100_000), replace(REJECT, timeout_s=0.1))

    assert report.verdict.decision == "reject"
    assert report.refusal is not None
    assert "not counted: " in report.refusal
    assert "(count: {on_failure: reject})" in report.refusal


def test_a_busy_service_is_asked_once_more(ask: Run, emulator: Emulator) -> None:
    emulator.faults.set("return-503", on="count", count=1)

    (report,) = ask(screenshot(), straddled(checked(screenshot())))

    assert report.counted is not None
    assert report.counted.count is not None
    assert len(list(emulator.requests)) == 2


def test_a_failure_is_not_remembered(ask: Run, emulator: Emulator) -> None:
    emulator.faults.set("empty-count", on="count", count=1)

    first, second = ask(screenshot(), straddled(checked(screenshot())), times=2)

    assert (first.verdict.decision, second.verdict.decision) == ("reject", "admit")


def test_media_only_the_service_sees_are_counted_whole_and_bound_what_they_are_billed(
    ask: Run, emulator: Emulator
) -> None:
    song, film = media.sound(30, "libmp3lame", "mp3"), media.video(8)
    emulator.remotes["https://example.org/a.mp3"] = Remote(data=song, mime="audio/mpeg")
    emulator.remotes["gs://bucket/film.mp4"] = Remote(data=film, mime="video/mp4")
    seen = {
        "https://example.org/a.mp3": inline(song, "audio/mpeg"), "gs://bucket/film.mp4": inline(film, "video/mp4"),
    }  # fmt: skip

    for address, medium in seen.items():
        mime = medium["inlineData"]["mimeType"]
        truth = checked({"contents": [user(WORDS, medium)]})
        (report,) = ask({"contents": [user(WORDS, at(address, mime))]}, Limits(prompt_tokens=100_000))

        assert report.verdict.decision == "admit"
        assert report.counted is not None
        assert (report.counted.form, report.counted.confidence) == (Form.WHOLE, Confidence.ASSUMED)
        assert "as the service counts it" in report.parts[0].notes
        for modality, tally in truth.tokens.items():
            assert report.tokens[modality].low <= tally.likely <= report.tokens[modality].high


def test_a_medium_only_the_service_sees_is_refused_by_its_count(ask: Run, emulator: Emulator) -> None:
    emulator.remotes["gs://bucket/a.mp3"] = Remote(data=media.sound(30, "libmp3lame", "mp3"), mime="audio/mpeg")
    body = {"contents": [user("Sum it up.", at("gs://bucket/a.mp3", "audio/mpeg"))]}

    (report,) = ask(body, Limits(prompt_tokens=500))

    assert report.verdict.decision == "reject"
    assert report.refusal is not None
    assert "as the service counts it, in all 7" in report.refusal


def test_someone_else_s_file_is_counted_whole(ask: Run, emulator: Emulator) -> None:
    wire = Wire(emulator, key=CANARY)
    uri = wire.upload(media.picture((640, 480)))["uri"]
    wire.close()

    (report,) = ask({"contents": [user("What is it?", at(uri, "image/png"))]}, Limits(tokens={Modality.IMAGE: 1_200}))

    assert report.verdict.decision == "admit"
    billed = checked(screenshot()).tokens[Modality.IMAGE].likely
    assert billed - 1 <= report.tokens[Modality.IMAGE].low <= report.tokens[Modality.IMAGE].high == billed


# ---- files that are gone

PICTURES = Limits(tokens={Modality.IMAGE: 1_200})


@pytest.fixture
def lost(emulator: Emulator, tmp_path: Path) -> dict[str, Any]:
    """A request with a picture that was uploaded for one tenant, an hour ago, and deleted by somebody."""
    known = replace(settings(Limits(), AUTO), state=State(dir=tmp_path))
    account, shot = known.default.account, MediaPart(source=media.picture((640, 480)), label="shot.png")
    with FakeSyncIo(FakeClock()) as io, closing(registry_of(known)) as registry:
        references = references_of(known, registry, account.name, service_of(account, io))
        uri = run(references.ensure(shot, "image/png", tenant="acme")).uri
    aged(tmp_path / "uploads.db")
    for file in emulator.files:
        emulator.files.delete(file.project, file.name)
    emulator.requests.clear()
    return {"contents": [user("What is it?", at(uri, "image/png"))]}


def test_a_file_that_is_gone_is_uploaded_again_once_for_a_count(
    ask: Run, emulator: Emulator, lost: dict[str, Any]
) -> None:
    first, second = ask(lost, PICTURES, times=2, tenant="acme")

    assert first.counted is not None
    assert first.counted.failure is None
    assert (first.verdict.decision, second.total) == ("admit", first.total)
    steps = ["count", "files.get", "upload.start", "upload.finalize", "count"]
    assert [one.operation for one in emulator.requests] == steps


@pytest.mark.parametrize("of", ["another tenant's", "nobody's"])
def test_a_file_that_is_gone_and_that_nobody_brings_back_refuses_the_request(
    ask: Run, emulator: Emulator, lost: dict[str, Any], of: str
) -> None:
    body = lost if of == "another tenant's" else {"contents": [user("?", at("files/nobodys1", "image/png"))]}

    (report,) = ask(body, PICTURES)

    assert report.counted is not None
    assert isinstance(report.counted.failure, ReferenceUnrecoverable)
    assert report.as_dict()["counted"]["error"]["code"] == "reference_unrecoverable"
    assert report.verdict.decision == "reject"
    assert report.refusal is not None
    assert report.counted.failure.message in report.refusal
    assert not emulator.requests.of("upload")


def test_a_file_that_cannot_be_uploaded_again_just_now_is_a_count_that_failed(
    ask: Run, emulator: Emulator, lost: dict[str, Any]
) -> None:
    emulator.faults.set("return-400", on="upload.start")

    (report,) = ask(lost, PICTURES, tenant="acme")
    (refused,) = ask(lost, PICTURES, REJECT, tenant="acme")

    assert report.counted is not None
    assert isinstance(report.counted.failure, UploadFailed)
    assert report.verdict.decision == "unknown"
    assert "(count: {on_failure: reject})" in (refused.refusal or "")


def test_a_project_that_has_not_paid_is_not_uploaded_to_over_and_over(
    ask: Run, emulator: Emulator, lost: dict[str, Any]
) -> None:
    project = emulator.accounts.of_key(CANARY)
    project.paid = False

    try:
        reports = ask(lost, PICTURES, times=3, tenant="acme")
    finally:
        project.paid = True

    assert all("403" in report.counted.failure.message for report in reports)  # type: ignore[union-attr]
    assert len(emulator.requests.of("upload.start")) == 1


def test_where_no_place_remembers_uploads_it_is_the_operator_s_mistake(
    ask: Run, lost: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "uploads.db").unlink()
    (tmp_path / "uploads.db").mkdir()

    with pytest.raises(ConfigError, match=r"state\.dir"):
        ask(lost, PICTURES, tenant="acme")


def test_what_is_asked_of_a_picture_beyond_its_default_no_count_settles(ask: Run, emulator: Emulator) -> None:
    emulator.remotes["https://example.org/a.png"] = Remote(data=media.picture((640, 480)), mime="image/png")
    fine = at("https://example.org/a.png", "image/png", mediaResolution={"level": "MEDIA_RESOLUTION_ULTRA_HIGH"})

    (report,) = ask({"contents": [user("What is it?", fine)]}, Limits(prompt_tokens=100_000))

    assert report.counted is not None
    assert report.counted.count is not None
    assert report.verdict.decision == "unknown"


def test_a_model_nobody_measured_is_counted_whole_which_only_widens(ask: Run, emulator: Emulator) -> None:
    estimated = checked(screenshot(), model="gemini-9")

    (report,) = ask(screenshot(), Limits(prompt_tokens=10**6), model="gemini-9")

    assert report.counted is not None
    assert report.counted.form is Form.WHOLE
    assert report.counted.confidence is Confidence.ASSUMED
    assert report.total.high >= estimated.total.high


def test_what_cannot_be_sent_is_not_asked_about(ask: Run, emulator: Emulator) -> None:
    body = {"contents": [user(inline(b"II*\0" + bytes(100), "image/tiff"), WORDS)]}

    (report,) = ask(body, Limits(prompt_tokens=100), ALWAYS)

    assert report.counted is None
    assert not list(emulator.requests)


def test_an_account_counts_for_its_own_backend_only(ask: Run, emulator: Emulator) -> None:
    with pytest.raises(ConfigError, match="cannot count for vertex"):
        ask(screenshot(), Limits(), ALWAYS, backend=Backend.VERTEX)


def test_the_key_is_never_told(ask: Run, emulator: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    emulator.faults.set("return-400", on="count")

    with caplog.at_level(logging.DEBUG):
        (report,) = ask(screenshot(), straddled(checked(screenshot())), REJECT)

    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("uvicorn", "asyncio"))]
    assert CANARY not in f"{ours} {report} {report.refusal} {json.dumps(report.as_dict())}"
