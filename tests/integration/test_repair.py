"""Calls whose files have expired, against the emulator: repaired once, wherever in the history they stand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import media
from emulated import FLASH, at, called, inline, result, user
from fake_io import FACES
from referenced import KEY, PNG, Bench, async_for_real, medium, sync_for_real
from weighlock.converters import rest_json
from weighlock.emulator import Emulator
from weighlock.errors import ReferenceUnrecoverable, ServiceRefused, UploadFailed
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.errors import refusal
from weighlock.gemini.http import ONCE
from weighlock.io import Io
from weighlock.planning.counting import Form
from weighlock.request import Request, ToolResultPart, Turn
from weighlock.uploads.policy import DeleteRemote, UploadPolicy
from weighlock.uploads.references import References
from weighlock.uploads.repair import file_name, freshened, readdressed, references_in, repaired

DAY_S = 86_400
USERS = 100
SHOTS = [media.picture((64, 48 + at)) for at in range(4)]


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    running.accounts.of_key(KEY).paid = True
    return running


@pytest.fixture(params=FACES, ids=["sync", "async"])
def bench(request: pytest.FixtureRequest, emulator: Emulator, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(face=request.param, emulator=emulator, folder=tmp_path)
    yield made
    made.registry.close()


def parsed(*contents: Any) -> Request:
    return rest_json.parse(json.dumps({"contents": list(contents)}).encode()).request


def history(uris: list[str]) -> Request:
    """Four references: two said by a user, one twice, two in tools' results."""
    return parsed(
        user("look", at(uris[0], PNG), at(uris[1], PNG)),
        called("shoot"),
        user(result("shoot", at(uris[2], PNG), at(uris[3], PNG))),
        user("and again", at(uris[0], PNG)),
    )


async def generate(references: References, bench: Bench, request: Request) -> Any:
    service = bench.service(references.io)
    url = service.target.model_url(FLASH, "generateContent")
    return (await service.call("POST", url, rest_json.document(request), retry=ONCE)).json


def called_with(bench: Bench, request: Request, tenant: str = "a", **how: Any) -> Request:
    """The request as it was sent in the end."""

    async def flow(references: References) -> Request:
        _, sent = await repaired(references, tenant, request, lambda asked: generate(references, bench, asked), **how)
        return sent

    return bench.run(flow)


def uploaded(bench: Bench) -> list[str]:
    return [bench.ensure(medium(shot)).uri for shot in SHOTS]


def uris(request: Request) -> list[str]:
    return [part.source.text for _, part in references_in(request)]  # type: ignore[union-attr]


def results(turn: Turn) -> list[Any]:
    """Media of tools' results."""
    return [medium for part in turn.parts if isinstance(part, ToolResultPart) for medium in part.media]


def generated(bench: Bench) -> list[int | None]:
    return [one.status for one in bench.emulator.requests.of("generate")]


def test_a_history_three_days_old_is_repaired_and_each_file_uploaded_once(bench: Bench) -> None:
    old = uploaded(bench)
    request = history(old)
    bench.advance(3 * DAY_S)

    sent = called_with(bench, request)

    assert generated(bench) == [200]
    assert bench.uploads == 8
    assert len(set(uris(sent))) == 4
    assert not set(uris(sent)) & set(old)
    assert uris(sent)[0] == uris(sent)[-1]
    assert [*map(len, (turn.parts for turn in sent.turns))] == [3, 1, 1, 2]
    assert called_with(bench, request) == sent
    assert bench.uploads == 8


def test_a_history_three_days_old_by_the_service_s_clock_alone_is_repaired_after_one_refusal(bench: Bench) -> None:
    old = uploaded(bench)
    request = history(old)
    bench.advance(120)
    bench.emulator.clock.advance(3 * DAY_S)

    sent = called_with(bench, request)

    assert generated(bench) == [403, 200]
    assert bench.uploads == 8
    assert sorted(file.sha256 for file in bench.emulator.files) == sorted(
        hashlib.sha256(shot).hexdigest() for shot in SHOTS
    )
    assert len(set(uris(sent))) == 4
    assert not set(uris(sent)) & set(old)
    assert [part.source.text for turn in sent.turns for part in results(turn)] == uris(sent)[2:4]


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_hours_off_does_not_matter(bench: Bench, hours: int) -> None:
    bench.clock.passed_s += hours * 3600
    request = history(uploaded(bench))
    bench.advance(2 * DAY_S - 700)
    called_with(bench, request)
    assert bench.uploads == 4
    bench.advance(200)

    called_with(bench, request)

    assert generated(bench) == [200, 200]
    assert bench.uploads == 8


def test_a_file_that_somebody_deleted_is_looked_at_and_replaced(bench: Bench) -> None:
    old = uploaded(bench)
    bench.advance(120)
    for file in bench.emulator.files:
        bench.emulator.files.delete(file.project, file.name)

    sent = called_with(bench, history(old))

    assert generated(bench) == [403] * 4 + [200]
    assert bench.uploads == 8
    assert not set(uris(sent)) & set(old)


def test_a_count_is_repaired_as_well(bench: Bench) -> None:
    old = uploaded(bench)
    bench.advance(120)
    for file in bench.emulator.files:
        bench.emulator.files.delete(file.project, file.name)

    async def flow(references: References) -> Any:
        counter = TokenCounter(bench.service(references.io))
        found, _ = await repaired(
            references, "a", history(old), lambda asked: counter.count(asked, FLASH, Form.WHOLE, timeout_s=10)
        )
        return found

    assert bench.run(flow).total > 0
    assert bench.uploads == 8


def test_a_file_not_yet_active_is_waited_for(emulator: Emulator, tmp_path: Path) -> None:
    bench = Bench(face=FACES[0], emulator=emulator, folder=tmp_path)
    emulator.files.processing_s = 0.0

    async def flow(io: Io) -> tuple[Request, Request]:
        references = bench.references(io)
        reference = await references.ensure(medium(b"film"), "video/mp4", tenant="a")
        (file,) = emulator.files
        file.active_at = emulator.clock.now() + timedelta(seconds=0.6)
        request = parsed(user("what?", at(reference.uri, "video/mp4")))
        _, sent = await repaired(references, "a", request, lambda asked: generate(references, bench, asked))
        return request, sent

    request, sent = sync_for_real(flow)

    assert sent is request
    assert generated(bench) == [400, 200]
    bench.registry.close()


def test_a_project_that_has_not_paid_is_told_and_not_uploaded_to_for_ever(bench: Bench) -> None:
    request = history(uploaded(bench))
    bench.advance(120)
    bench.emulator.accounts.of_key(KEY).paid = False

    for _ in range(3):
        with pytest.raises(ServiceRefused, match="403"):
            called_with(bench, request)

    assert bench.uploads == 5


def gone(bench: Bench) -> None:
    """Somebody deletes what is there."""
    for file in bench.emulator.files:
        bench.emulator.files.delete(file.project, file.name)


def looks(bench: Bench) -> int:
    return len(bench.emulator.requests.of("files.get"))


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_what_was_uploaded_a_moment_ago_is_not_uploaded_again_for_a_project_that_has_not_paid(
    bench: Bench, hours: int
) -> None:
    bench.clock.passed_s += hours * 3600
    request = history(uploaded(bench))
    bench.advance(30)
    bench.emulator.accounts.of_key(KEY).paid = False

    for _ in range(3):
        with pytest.raises(ServiceRefused, match="403"):
            called_with(bench, request)

    assert (bench.uploads, looks(bench)) == (4, 0)


def test_a_minute_later_it_may_be_the_file(bench: Bench) -> None:
    request = history(uploaded(bench))
    bench.advance(61)
    gone(bench)

    called_with(bench, request)

    assert bench.uploads == 8


def test_a_clock_set_back_makes_no_file_new(bench: Bench) -> None:
    request = history(uploaded(bench))
    bench.advance(120)
    bench.clock.passed_s -= 7200
    gone(bench)

    called_with(bench, request)

    assert bench.uploads == 8


def test_what_was_given_up_a_moment_ago_is_known_to_be_gone(bench: Bench) -> None:
    bench.policy = UploadPolicy(keep_copies_s=0, delete_remote=DeleteRemote.AFTER_REQUEST)
    reference = bench.ensure(medium(SHOTS[0]))
    bench.run(lambda references: references.release([reference]))

    with pytest.raises(ReferenceUnrecoverable, match="nowhere here"):
        called_with(bench, parsed(user("what is it?", at(reference.uri, PNG))))


def test_what_took_a_file_s_place_may_be_gone_as_well(bench: Bench) -> None:
    old = uploaded(bench)
    bench.advance(120)
    gone(bench)
    called_with(bench, history(old))
    bench.advance(120)
    gone(bench)

    sent = called_with(bench, history(old))

    assert bench.uploads == 12
    assert generated(bench)[-1] == 200
    assert len(set(uris(sent))) == 4


def test_what_somebody_else_replaced_meanwhile_is_taken_over(bench: Bench) -> None:
    request = parsed(user("what is it?", at(bench.ensure(medium(SHOTS[0])).uri, PNG)))
    bench.advance(120)
    gone(bench)
    sent: list[Request] = []

    async def flow(references: References) -> None:
        async def send(asked: Request) -> Any:
            sent.append(asked)
            if len(sent) == 1:
                await repaired(references, "a", request, lambda other: generate(references, bench, other))
            return await generate(references, bench, asked)

        await repaired(references, "a", request, send)

    bench.run(flow)

    assert bench.uploads == 2
    assert generated(bench) == [403, 200, 403, 200]


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "access the File {} or it may not exist"), (400, "The File {} is not in an ACTIVE state")],
)
def test_a_file_that_is_there_and_refused_all_the_same_is_tried_once_more(
    bench: Bench, status: int, words: str
) -> None:
    reference = bench.ensure(medium(SHOTS[0]))
    bench.advance(120)
    body = json.dumps({"error": {"message": words.format(reference.name.removeprefix("files/"))}}).encode()
    sent: list[Request] = []

    async def send(asked: Request) -> Any:
        sent.append(asked)
        assert len(sent) < 9
        raise refusal(status, {}, body, bench.clock.now())

    with pytest.raises(ServiceRefused):
        bench.run(lambda references: repaired(references, "a", parsed(user("what?", at(reference.uri, PNG))), send))

    assert (len(sent), looks(bench), bench.uploads) == (2, 1, 1)


def test_what_was_uploaded_for_a_request_is_uploaded_once_however_long_it_took(bench: Bench) -> None:
    request = parsed(user("what is it?", at(bench.ensure(medium(SHOTS[0])).uri, PNG)))
    gone(bench)
    sent: list[str] = []

    async def send(asked: Request) -> Any:
        bench.advance(61)
        sent.extend(uris(asked))
        said = {"message": f"access the File {sent[-1].rpartition('/')[2]} or it may not exist"}
        raise refusal(403, {}, json.dumps({"error": said}).encode(), bench.clock.now())

    with pytest.raises(ServiceRefused):
        bench.run(lambda references: repaired(references, "a", request, send))

    assert (len(sent), bench.uploads) == (2, 2)


def test_what_cannot_be_looked_at_is_not_uploaded_again(bench: Bench) -> None:
    request = history(uploaded(bench))
    bench.advance(120)
    gone(bench)
    bench.emulator.faults.set("return-500", on="files.get")

    with pytest.raises(ServiceRefused, match="500"):
        called_with(bench, request)

    assert bench.uploads == 4


def test_what_a_request_names_is_in_use(bench: Bench) -> None:
    project = bench.emulator.accounts.of_key(KEY)
    named = bench.ensure(medium(SHOTS[0]))
    bench.advance(10)
    other = bench.ensure(medium(SHOTS[1]))
    bench.advance(3600)
    called_with(bench, parsed(user("what is it?", at(named.uri, PNG))))
    project.storage_bytes, before = sum(map(len, SHOTS[:2])) + 10, project.storage_bytes

    new = bench.ensure(medium(b"more" * 10))

    project.storage_bytes = before
    assert {f"files/{file.name}" for file in bench.emulator.files} == {named.name, new.name}
    assert other.name != named.name


def test_a_file_we_take_for_expired_and_cannot_renew_is_the_service_s_to_refuse(bench: Bench) -> None:
    bench.policy = UploadPolicy(keep_copies_s=0)
    request = history(uploaded(bench))
    bench.clock.passed_s += 3 * DAY_S

    assert called_with(bench, request) is request
    assert generated(bench) == [200]


def test_bytes_the_caller_has_serve_where_those_it_came_from_are_gone(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(SHOTS[0])
    reference = bench.ensure(medium(path))
    path.unlink()
    bench.advance(120)
    gone(bench)
    request = parsed(user("what is it?", at(reference.uri, PNG)))

    called_with(bench, request, known={reference.name: medium(SHOTS[0])})

    assert bench.uploads == 2
    assert generated(bench) == [403, 200]


def test_what_was_renewed_serves_though_its_bytes_are_gone_by_now(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(SHOTS[0])
    request = parsed(user("what is it?", at(bench.ensure(medium(path)).uri, PNG)))
    bench.advance(3 * DAY_S)
    sent = called_with(bench, request)
    path.unlink()

    assert called_with(bench, request) == sent
    assert bench.uploads == 2


def test_what_was_renewed_for_a_request_that_fails_is_let_go(bench: Bench) -> None:
    bench.policy = UploadPolicy(delete_remote=DeleteRemote.AFTER_REQUEST)
    request = history(uploaded(bench))
    bench.advance(3 * DAY_S)
    bench.emulator.faults.set("return-400", on="upload.start", skip=2)

    with pytest.raises(UploadFailed):
        bench.run(lambda references: freshened(references, "a", request))

    assert bench.uploads == 7
    assert list(bench.emulator.files) == []


def test_a_strangers_file_is_nobodys_to_bring_back(bench: Bench) -> None:
    gone = "https://generativelanguage.googleapis.com/v1beta/files/neverhere1"

    with pytest.raises(ReferenceUnrecoverable, match="send its bytes again") as refused:
        called_with(bench, parsed(user("what is it?", at(gone, PNG))))

    assert refused.value.figures["file"] == "files/neverhere1"
    assert bench.uploads == 0


def test_a_strangers_file_is_brought_back_where_the_caller_has_its_bytes(bench: Bench) -> None:
    gone = "https://generativelanguage.googleapis.com/v1beta/files/neverhere1"
    request = parsed(user("what is it?", at(gone, PNG)))

    sent = called_with(bench, request, known={"files/neverhere1": medium(SHOTS[0])})

    assert generated(bench) == [403, 200]
    assert uris(sent) != [gone]


def test_an_expired_file_whose_bytes_are_gone_is_told_as_such(bench: Bench) -> None:
    bench.policy = UploadPolicy(keep_copies_s=0)
    request = history(uploaded(bench))
    bench.advance(3 * DAY_S)

    with pytest.raises(ReferenceUnrecoverable, match=r"uploads\.keep_copies"):
        called_with(bench, request)


def test_another_tenants_file_is_nobodys_to_see(bench: Bench) -> None:
    request = history(uploaded(bench))

    with pytest.raises(ReferenceUnrecoverable):
        called_with(bench, request, tenant="b")

    assert generated(bench) == []


def test_what_a_repair_uploads_is_deleted_after_the_request_where_the_policy_says_so(bench: Bench) -> None:
    bench.policy = UploadPolicy(delete_remote=DeleteRemote.AFTER_REQUEST)
    reference = bench.ensure(medium(SHOTS[0]))
    bench.run(lambda references: references.release([reference]))

    called_with(bench, parsed(user("what is it?", at(reference.uri, PNG))))

    assert generated(bench) == [200]
    assert list(iter(bench.emulator.files)) == []


@pytest.mark.parametrize("expired", [True, False], ids=["expired", "deleted"])
@pytest.mark.parametrize("real", [sync_for_real, async_for_real])
def test_a_hundred_users_of_one_file_that_is_gone_upload_it_once(
    emulator: Emulator, tmp_path: Path, real: Any, expired: bool
) -> None:
    bench = Bench(face=FACES[0], emulator=emulator, folder=tmp_path)
    reference = real(lambda io: bench.references(io).ensure(medium(SHOTS[0]), PNG, tenant="a"))
    request = parsed(user("what is it?", at(reference.uri, PNG)))
    ahead_s = 3 * DAY_S if expired else 120
    emulator.clock.advance(ahead_s)
    for file in emulator.files:
        emulator.files.delete(file.project, file.name)

    begun: list[int] = []

    async def asked(io: Io, references: References, number: int) -> Any:
        begun.append(number)
        until = io.monotonic() + 30
        while len(begun) < USERS:  # so that none ends before the last has begun
            assert io.monotonic() < until
            await io.sleep(0.01)
        return await repaired(references, "a", request, lambda sent: generate(references, bench, sent))

    async def all_at_once(io: Io) -> Any:
        references = bench.references(io)
        return await io.gather([asked(io, references, number) for number in range(USERS)], at_most=USERS)

    found = real(all_at_once, ahead_s)

    assert len(found) == USERS
    assert len({tuple(uris(sent)) for _, sent in found}) == 1
    assert bench.uploads == 2
    bench.registry.close()


# ---- rewriting


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://generativelanguage.googleapis.com/v1beta/files/abc-1", "files/abc-1"),
        ("https://gateway.example:8443/v1/files/abc", "files/abc"),
        ("files/abc", "files/abc"),
        ("gs://bucket/files/abc", None),
        ("https://example.com/files/abc", None),
        ("https://generativelanguage.googleapis.com/v1beta/files/abc?key=1", None),
        ("https://youtu.be/files", None),
    ],
)
def test_a_files_address_is_told_from_others(uri: str, name: str | None) -> None:
    assert file_name(uri) == name


def test_what_refers_to_nothing_moved_stays_the_same_object() -> None:
    request = history([f"files/f{n}" for n in range(4)])

    moved = readdressed(request, {"files/f2": "https://new/v1/files/g2"})

    assert readdressed(request, {"files/other": "x"}) is request
    assert uris(moved) == ["files/f0", "files/f1", "https://new/v1/files/g2", "files/f3", "files/f0"]
    assert moved.turns[0] is request.turns[0]
    assert moved.turns[2] is not request.turns[2]


def test_media_inline_are_left_alone() -> None:
    request = parsed(user("see", inline(SHOTS[0], PNG)))

    assert list(references_in(request)) == []
    assert readdressed(request, {"files/f2": "x"}) is request
