"""References that die, and whose files they are (tests/golden/known_traps_service.md), each trap with its kind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import media
from emulated import FLASH, at, called, result, user
from fake_io import FACES
from integration.test_repair import called_with, generated, parsed, uris
from referenced import KEY, PNG, Bench, medium
from weighlock.emulator import Emulator
from weighlock.errors import FileProcessingFailed, ReferenceUnrecoverable, ServiceError, ServiceRefused, StorageFull
from weighlock.gemini.errors import Cause
from weighlock.uploads.registry import MARGIN_S

DAY_S = 86_400
LIFE_S = 2 * DAY_S
SHOT = media.picture((64, 48))
FILES = "https://generativelanguage.googleapis.com/v1beta/files"


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    project = running.accounts.of_key(KEY)
    project.paid, project.storage_bytes = True, 20_000_000_000
    running.files.processing_s = 0.0
    return running


@pytest.fixture(params=FACES, ids=["sync", "async"])
def bench(request: pytest.FixtureRequest, emulator: Emulator, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(face=request.param, emulator=emulator, folder=tmp_path)
    yield made
    made.registry.close()


def gone_at_the_service(bench: Bench) -> None:
    """Deleted behind our back, long enough ago that it is no new file any more."""
    bench.advance(120)
    for file in bench.emulator.files:
        bench.emulator.files.delete(file.project, file.name)


# ---- FIL-007, FIL-008: 403 for a file that is gone, and for a project that has not paid


@pytest.mark.parametrize(
    "stands", [lambda part: [user("look", part)],
               lambda part: [user("look", part), called("f"), user(result("f"))],
               lambda part: [user(part, "a", part, "b", part)]],
    ids=["alone", "turns ago", "three times"],
)  # fmt: skip
def test_a_file_that_is_gone_is_uploaded_once_and_every_mention_of_it_led_there(bench: Bench, stands: Any) -> None:
    old = bench.ensure(medium(SHOT)).uri
    gone_at_the_service(bench)

    sent = called_with(bench, parsed(*stands(at(old, PNG))))

    assert generated(bench) == [403, 200]
    assert bench.uploads == 2
    assert old not in uris(sent)
    assert len(set(uris(sent))) == 1


@pytest.mark.parametrize("after_s", [0, 30, 120, DAY_S])
def test_a_project_that_may_not_use_its_files_is_told_after_one_more_upload_at_most(
    bench: Bench, after_s: float
) -> None:
    request = parsed(user("look", at(bench.ensure(medium(SHOT)).uri, PNG)))
    bench.advance(after_s)
    bench.emulator.accounts.of_key(KEY).paid = False

    with pytest.raises(ServiceError) as caught:
        called_with(bench, request)

    assert caught.value.figures["cause"] is Cause.FILE_MISSING
    assert bench.uploads <= 2
    assert len(generated(bench)) <= 2


# ---- FIL-010, FIL-011, FIL-012: not ACTIVE yet


def test_every_file_of_a_request_is_waited_for_wherever_it_stands(bench: Bench) -> None:
    films = [bench.ensure(medium(b"film %d" % n), mime="video/mp4").uri for n in range(3)]
    late = bench.emulator.clock.now() + timedelta(seconds=1.5)
    for file in bench.emulator.files:
        file.active_at = late
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        bench.advance(seconds)

    bench.clock.sleep = sleep  # type: ignore[method-assign]  # both clocks go on while it waits
    request = parsed(
        user("look", at(films[0], "video/mp4"), at(films[0], "video/mp4")),
        called("f"), user(result("f", at(films[1], "video/mp4"))),
        user(at(films[2], "video/mp4"), "well?"),
    )  # fmt: skip

    sent = called_with(bench, request)

    assert sent is request
    assert generated(bench)[-1] == 200
    assert set(generated(bench)[:-1]) <= {400}
    assert bench.uploads == 3
    assert 1 < sum(slept) < 10


def test_a_film_that_fails_later_is_told_with_the_reason_and_not_sent_again(bench: Bench) -> None:
    bench.emulator.files.processing_s = 0.1
    bench.emulator.files.fail_next = "Can not find message descriptor by type_url: type.googleapis.com/x"

    for _ in range(2):
        with pytest.raises(FileProcessingFailed, match="message descriptor"):
            bench.ensure(medium(b"film"), mime="video/mp4")

    assert bench.uploads == 1


# ---- FIL-013: a list nobody can read


@pytest.mark.parametrize("fault", ["return-500", "return-corrupted-data", "return-reset-connection"])
def test_nothing_rests_on_the_list_of_files(bench: Bench, fault: str) -> None:
    bench.emulator.faults.set(fault, on="files.list")
    first = bench.ensure(medium(SHOT))
    bench.advance(3 * DAY_S)

    called_with(bench, parsed(user("look", at(first.uri, PNG))))

    assert bench.ensure(medium(SHOT)).reused
    assert bench.emulator.requests.of("files.list") == []


# ---- FIL-022: room that is never given back


def test_a_project_that_stays_full_though_it_has_no_files_is_told_so_at_once(bench: Bench) -> None:
    bench.ensure(medium(b"old" * 300))
    bench.advance(3600)
    bench.emulator.accounts.of_key(KEY).storage_bytes = 0

    with pytest.raises(StorageFull, match="storage"):
        bench.ensure(medium(SHOT))

    assert len(bench.emulator.files) == 0
    assert len(bench.emulator.requests.of("files.delete")) == 1
    assert bench.uploads <= 4


# ---- FIL-023, FIL-024: until when, and for whom


@pytest.mark.parametrize("off_s", [-7200.0, 0.0, 7200.0])
@pytest.mark.parametrize(
    ("before_end_s", "reused"),
    [(2 * MARGIN_S, True), (MARGIN_S + 5, True), (MARGIN_S - 5, False), (1, False), (-1, False)],
)
def test_a_file_is_used_until_shortly_before_its_end_whatever_our_clock_says(
    bench: Bench, off_s: float, before_end_s: float, reused: bool
) -> None:
    bench.clock.passed_s += off_s
    first = bench.ensure(medium(SHOT))
    bench.emulator.faults.set("return-400", on="upload.start")  # so that nothing is refreshed ahead
    bench.advance(LIFE_S - before_end_s)
    if not reused:
        bench.emulator.faults.clear()

    second = bench.ensure(medium(SHOT))

    assert second.reused is reused
    assert (second.uri == first.uri) is reused


@pytest.mark.parametrize("names", [["a.png", "b.png"], ["a.png"] * 3, ["", "ü.png"]])
def test_the_same_bytes_by_any_name_are_one_file(bench: Bench, names: list[str]) -> None:
    assert len({bench.ensure(medium(SHOT, name)).uri for name in names}) == bench.uploads == 1


def test_another_key_another_type_or_another_tenant_is_another_file(bench: Bench, tmp_path: Path) -> None:
    other = Bench(face=bench.face, emulator=bench.emulator, folder=tmp_path / "other", key="another-key")
    found = [
        bench.ensure(medium(SHOT)),
        bench.ensure(medium(SHOT), mime="image/webp"),
        bench.ensure(medium(SHOT), tenant="b"),
        other.ensure(medium(SHOT)),
    ]
    other.registry.close()

    assert len({one.uri for one in found}) == bench.uploads == 4


# ---- FIL-006, FIL-031: what a reference says of itself


def test_a_reference_is_named_by_our_own_type(bench: Bench) -> None:
    reference = bench.ensure(medium(media.wav(0.5), "a.wav"), mime="audio/wav")

    assert reference.key.mime == "audio/wav"
    assert called_with(bench, parsed(user("hear", at(reference.uri, reference.key.mime)))) is not None
    assert generated(bench) == [200]


def test_an_address_of_the_files_api_is_looked_at_with_the_key_only_where_the_service_refuses_it(bench: Bench) -> None:
    with pytest.raises((ReferenceUnrecoverable, ServiceRefused)):
        called_with(bench, parsed(user("look", at(f"{FILES}/nobodys1", PNG))))

    looks = bench.emulator.requests.of("files.get")
    assert len(looks) <= 1
    assert all(one.headers["x-goog-api-key"] == KEY for one in looks)
    assert FLASH in bench.emulator.requests.of("generate")[0].path
