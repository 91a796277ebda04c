"""The life of a reference against the emulator, through both faces."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import media
from fake_io import FACES, Face
from referenced import KEY, PNG, Bench, async_for_real, medium, sync_for_real
from weighlock.emulator import Emulator
from weighlock.errors import (
    FileNotReady,
    FileProcessingFailed,
    InputError,
    ReferenceUnrecoverable,
    StateUnavailable,
    StorageFull,
    UnreadableSource,
    UploadFailed,
)
from weighlock.gemini.files import FileState, RemoteFile
from weighlock.io import Io
from weighlock.request import MediaPart
from weighlock.uploads.copies import Copies
from weighlock.uploads.entries import LEASE_S, Key
from weighlock.uploads.owners import new_owner
from weighlock.uploads.policy import DeleteRemote, UploadPolicy
from weighlock.uploads.references import Reference
from weighlock.uploads.resumable import CHUNK_BYTES

DAY_S = 86_400
SHOT = media.picture((64, 48))
each_for_real = pytest.mark.parametrize("real", [sync_for_real, async_for_real])
each_face = pytest.mark.parametrize("face", FACES)


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    project = running.accounts.of_key(KEY)
    project.paid, project.storage_bytes = True, 20_000_000_000
    running.files.processing_s = 0.2
    return running


@pytest.fixture(params=FACES, ids=["sync", "async"])
def bench(request: pytest.FixtureRequest, emulator: Emulator, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(face=request.param, emulator=emulator, folder=tmp_path)
    yield made
    made.registry.close()


@pytest.fixture
def one_face(emulator: Emulator, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(face=FACES[0], emulator=emulator, folder=tmp_path)
    yield made
    made.registry.close()


def test_the_same_bytes_are_uploaded_once_and_used_again(bench: Bench) -> None:
    first, second = bench.ensure(medium(SHOT)), bench.ensure(medium(SHOT, "another name"))

    assert (first.reused, second.reused) == (False, True)
    assert first.uri == second.uri
    assert bench.uploads == 1


def test_a_file_whose_name_is_no_utf8_is_uploaded_as_any_other(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.png")
    path.write_bytes(SHOT)

    bench.ensure(MediaPart(source=path, label=path.name))

    (entry,) = bench.registry.entries(bench.emulator.clock.now())
    assert (entry.label, entry.path) == ("?.png", path)
    with pytest.raises(InputError, match="tenant"):
        bench.ensure(medium(SHOT), tenant="\udcff")


def test_another_type_and_another_tenant_are_other_files(bench: Bench) -> None:
    uris = {
        bench.ensure(medium(SHOT)).uri,
        bench.ensure(medium(SHOT), mime="image/webp").uri,
        bench.ensure(medium(SHOT), tenant="b").uri,
    }

    assert len(uris) == bench.uploads == 3


@each_for_real
def test_a_film_is_waited_for_until_it_is_active(one_face: Bench, real: Any) -> None:
    one_face.emulator.files.processing_s = 0.2

    real(lambda io: one_face.references(io).ensure(medium(b"film"), "video/mp4", tenant="a"))

    (file,) = one_face.emulator.files
    assert file.state(one_face.emulator.clock.now()) == "ACTIVE"


def test_a_file_the_service_cannot_read_is_not_sent_again_that_day(bench: Bench) -> None:
    bench.emulator.files.processing_s = 0
    bench.emulator.files.fail_next = "no video track"

    for _ in range(2):
        with pytest.raises(FileProcessingFailed, match="no video track"):
            bench.ensure(medium(b"film"), mime="video/mp4")

    assert bench.uploads == 1
    assert names(bench) == set()
    bench.advance(DAY_S)
    assert not bench.ensure(medium(b"film"), mime="video/mp4").reused


def test_an_expired_file_is_uploaded_again_with_margin(bench: Bench) -> None:
    first = bench.ensure(medium(SHOT))
    bench.advance(2 * DAY_S - 500)

    second = bench.ensure(medium(SHOT))

    assert not second.reused
    assert second.uri != first.uri
    assert bench.uploads == 2


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_hours_off_changes_nothing(bench: Bench, hours: int) -> None:
    off_s = hours * 3600
    bench.clock.passed_s += off_s
    bench.ensure(medium(SHOT))
    bench.advance(0.69 * 2 * DAY_S)

    assert bench.ensure(medium(SHOT)).reused
    bench.advance(0.31 * 2 * DAY_S - 500)
    assert not bench.ensure(medium(SHOT)).reused


def test_what_is_in_use_is_replaced_ahead_of_its_end(bench: Bench) -> None:
    first = bench.ensure(medium(SHOT))
    bench.advance(0.95 * 2 * DAY_S)

    second, third = bench.ensure(medium(SHOT)), bench.ensure(medium(SHOT))

    assert not second.reused
    assert third.reused
    assert third.uri == second.uri != first.uri
    assert bench.uploads == 2


def test_where_that_fails_the_old_one_serves_and_it_is_not_tried_at_every_call(bench: Bench) -> None:
    first = bench.ensure(medium(SHOT))
    bench.advance(0.95 * 2 * DAY_S)
    bench.emulator.faults.set("return-400", on="upload.start")

    try:
        again = [bench.ensure(medium(SHOT)) for _ in range(3)]
    finally:
        bench.emulator.faults.clear()

    assert {one.uri for one in again} == {first.uri}
    assert bench.uploads == 2


def test_one_call_tries_once_to_replace_what_still_serves(bench: Bench) -> None:
    first = bench.ensure(medium(SHOT))
    bench.advance(0.95 * 2 * DAY_S)
    bench.registry.postpone = lambda *_: None  # type: ignore[method-assign]  # as where the clock leaps meanwhile
    bench.emulator.faults.set("return-400", on="upload.start", count=9)

    assert bench.ensure(medium(SHOT)).uri == first.uri
    assert bench.uploads == 2


def test_where_the_service_cannot_read_the_new_one_the_old_one_serves(bench: Bench) -> None:
    bench.emulator.files.processing_s = 0
    first = bench.ensure(medium(b"film"), mime="video/mp4")
    bench.advance(0.95 * 2 * DAY_S)
    bench.emulator.files.fail_next = "no video track"

    again = [bench.ensure(medium(b"film"), mime="video/mp4") for _ in range(3)]

    assert {one.uri for one in again} == {first.uri}
    assert bench.uploads == 2


def test_an_old_file_that_is_found_again_serves_and_is_replaced_the_next_time(bench: Bench) -> None:
    first = bench.ensure(medium(SHOT))
    bench.registry.forget(first.key)
    bench.advance(0.95 * 2 * DAY_S)

    second, third = bench.ensure(medium(SHOT)), bench.ensure(medium(SHOT))

    assert second.uri == first.uri != third.uri
    assert len(bench.emulator.requests.of("upload.finalize")) == 2


def test_a_file_that_has_ended_as_soon_as_it_is_there_is_uploaded_three_times_and_no_more(bench: Bench) -> None:
    bench.registry.set_clock = lambda *_: None  # type: ignore[method-assign]  # the service does not tell its time
    bench.clock.passed_s += (bench.emulator.clock.now() - bench.clock.now()).total_seconds() + 3 * DAY_S

    with pytest.raises(UploadFailed, match="do the clocks agree"):
        bench.ensure(medium(SHOT))

    assert bench.uploads == 3


def test_an_upload_that_fails_leaves_the_way_free(bench: Bench) -> None:
    bench.emulator.faults.set("return-400", on="upload.start", count=1)

    with pytest.raises(UploadFailed):
        bench.ensure(medium(SHOT))

    assert not bench.ensure(medium(SHOT)).reused


@pytest.mark.parametrize("how", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_upload_that_is_stopped_leaves_the_way_free_at_once(bench: Bench, how: type[BaseException]) -> None:
    def stop(done: int, of: int) -> None:
        raise how

    with pytest.raises(how):
        bench.ensure(medium(SHOT), progress=stop)

    assert not bench.ensure(medium(SHOT)).reused
    assert bench.clock.slept == []


@each_for_real
def test_many_flows_of_one_process_upload_once(one_face: Bench, real: Any) -> None:
    bench = one_face

    async def all_at_once(io: Io) -> list[Reference]:
        references = bench.references(io)
        asked = [references.ensure(medium(SHOT), PNG, tenant="a") for _ in range(100)]
        return await io.gather(asked, at_most=len(asked))

    found = real(all_at_once)

    assert bench.uploads == 1
    assert len({one.uri for one in found}) == 1
    assert sum(not one.reused for one in found) == 1


def test_who_waits_for_somebody_else_or_for_the_service_is_told(bench: Bench) -> None:
    key = Key(account="acme", tenant="a", sha256=hashlib.sha256(b"film").hexdigest(), mime="video/mp4")
    assert bench.registry.claim(key, new_owner(), bench.clock.now(), wanting=0, size_bytes=4) is not None
    bench.emulator.files.processing_s = 100
    told: list[str] = []

    async def sleep(seconds: float) -> None:
        bench.advance(seconds)

    bench.clock.sleep = sleep  # type: ignore[method-assign]  # both clocks go on while it waits
    bench.ensure(medium(b"film"), mime="video/mp4", told=told.append)

    assert told == [
        "somebody else is uploading the same file; waiting for that",
        "the service is still reading it",
    ]


def claimed_by_somebody_else(bench: Bench, data: bytes, mime: str = PNG) -> Any:
    key = Key(account="acme", tenant="a", sha256=hashlib.sha256(data).hexdigest(), mime=mime)
    return bench.registry.claim(key, new_owner(), bench.clock.now(), wanting=0, size_bytes=len(data))


def test_a_long_upload_keeps_its_lease(one_face: Bench) -> None:
    data, taken = bytes(4 * CHUNK_BYTES), []

    def slowly(done: int, of: int) -> None:
        one_face.advance(LEASE_S - 60)
        taken.append(claimed_by_somebody_else(one_face, data))

    one_face.ensure(medium(data), progress=slowly)

    assert taken == [None] * 4
    assert one_face.uploads == 1


def test_a_lease_is_kept_while_the_service_reads_a_film(bench: Bench) -> None:
    bench.emulator.files.processing_s, taken = 2.5 * LEASE_S, []

    async def sleep(seconds: float) -> None:
        bench.advance(seconds)
        taken.append(claimed_by_somebody_else(bench, b"film", "video/mp4"))

    bench.clock.sleep = sleep  # type: ignore[method-assign]
    bench.ensure(medium(b"film"), mime="video/mp4")

    assert len(taken) > 30
    assert not any(taken)


def test_a_film_that_is_read_for_ever_is_waited_for_within_the_time_and_then_adopted(bench: Bench) -> None:
    bench.emulator.files.processing_s = 600

    async def sleep(seconds: float) -> None:
        bench.advance(seconds)

    bench.clock.sleep = sleep  # type: ignore[method-assign]
    with pytest.raises(FileNotReady, match=r"still PROCESSING after 2[89]\d s") as late:
        bench.ensure(medium(b"film"), mime="video/mp4", within_s=300)
    assert 250 < late.value.figures["waited_s"] <= 300

    bench.ensure(medium(b"film"), mime="video/mp4", within_s=900)
    assert len(names(bench)) == 1
    assert len(bench.emulator.requests.of("upload.finalize")) == 1


def test_who_lost_his_lease_stops_and_takes_what_the_other_brought(one_face: Bench) -> None:
    data = bytes(3 * CHUNK_BYTES)

    def overtaken(done: int, of: int) -> None:
        one_face.advance(LEASE_S + 1)
        if (lease := claimed_by_somebody_else(one_face, data)) is not None:
            theirs = RemoteFile(name="files/theirs", uri="theirs", state=FileState.ACTIVE)
            assert one_face.registry.record(lease, theirs, one_face.clock.now(), 0.5)

    found = one_face.ensure(medium(data), progress=overtaken)

    assert found.name == "files/theirs"
    assert found.reused
    assert one_face.emulator.requests.of("upload.finalize") == []


# ---- room


def full(bench: Bench, *, uploaded: int) -> list[Any]:
    return [bench.ensure(medium(bytes([at]) * 1000)) for at in range(uploaded)]


def names(bench: Bench) -> set[str]:
    return {f"files/{file.name}" for file in bench.emulator.files}


@each_face
def test_a_quota_is_kept_by_the_longest_unused_of_the_tenants_own(
    face: Face, emulator: Emulator, tmp_path: Path
) -> None:
    bench = Bench(face=face, emulator=emulator, folder=tmp_path, policy=UploadPolicy(quota_bytes=3500))
    others = bench.ensure(medium(b"o" * 1000), tenant="b")
    old, used = full(bench, uploaded=2)
    bench.advance(3600)
    bench.ensure(medium(b"\1" * 1000))

    new = bench.ensure(medium(b"n" * 1000))

    assert names(bench) == {others.name, used.name, new.name}
    assert old.name not in names(bench)
    with pytest.raises(StorageFull, match=r"uploads\.quota"):
        bench.ensure(medium(b"m" * 1000))
    bench.registry.close()


def test_a_full_project_loses_our_oldest_and_nobody_elses(bench: Bench) -> None:
    project = bench.emulator.accounts.of_key(KEY)
    first, second = full(bench, uploaded=2)
    project.storage_bytes = 2500
    bench.advance(3600)
    bench.ensure(medium(b"\0" * 1000))

    third = bench.ensure(medium(b"t" * 1000))

    assert names(bench) == {first.name, third.name}
    assert second.name not in names(bench)
    with pytest.raises(StorageFull):
        bench.ensure(medium(b"x" * 2600), tenant="b")
    assert names(bench) == {first.name, third.name}


def test_after_request_deletes_once_nobody_needs_it(bench: Bench) -> None:
    bench.policy = UploadPolicy(delete_remote=DeleteRemote.AFTER_REQUEST)
    one, other = bench.ensure(medium(SHOT)), bench.ensure(medium(SHOT))

    bench.run(lambda references: references.release([one]))
    assert names(bench) == {one.name}

    bench.run(lambda references: references.release([other]))
    assert names(bench) == set()
    assert not bench.ensure(medium(SHOT)).reused


# ---- copies


def copies(bench: Bench) -> list[Path]:
    return sorted((bench.folder / "copies").glob("*"))


def known(bench: Bench) -> Any:
    (entry,) = bench.registry.entries(bench.clock.now())
    return entry


def test_bytes_we_would_not_see_again_are_kept_for_their_owner_only(bench: Bench) -> None:
    bench.ensure(medium(SHOT))

    (copy,) = copies(bench)
    assert copy.read_bytes() == SHOT
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert known(bench).key.sha256 not in copy.name
    bench.advance(3 * DAY_S)
    again = bench.run(lambda references: references.renewed(known(bench)))
    assert not again.reused
    assert (known(bench).path, known(bench).copied) == (None, True)


def test_a_file_is_read_again_and_not_copied(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(SHOT)
    bench.ensure(medium(path))
    bench.advance(3 * DAY_S)

    assert copies(bench) == []
    assert not bench.run(lambda references: references.renewed(known(bench))).reused
    bench.advance(3 * DAY_S)
    path.write_bytes(SHOT[::-1])
    with pytest.raises(ReferenceUnrecoverable, match="nowhere here"):
        bench.run(lambda references: references.renewed(known(bench)))


def test_no_copies_are_kept_where_the_operator_wants_none(bench: Bench) -> None:
    bench.policy = UploadPolicy(keep_copies_s=0)

    bench.ensure(medium(SHOT))

    assert copies(bench) == []


def test_copies_end_some_time_after_their_last_use(bench: Bench) -> None:
    bench.ensure(medium(SHOT))
    bench.advance(8 * DAY_S)

    bench.ensure(medium(b"other"))

    (copy,) = copies(bench)
    assert copy.read_bytes() == b"other"


def test_a_copy_is_kept_from_its_last_use_on(bench: Bench) -> None:
    bench.policy = UploadPolicy(keep_copies_s=3600)
    bench.ensure(medium(SHOT))
    bench.advance(3000)
    assert bench.ensure(medium(SHOT)).reused
    bench.advance(3000)

    bench.ensure(medium(b"other"))

    assert {copy.read_bytes() for copy in copies(bench)} == {SHOT, b"other"}


def test_what_a_process_left_half_copied_goes_after_an_hour(bench: Bench) -> None:
    bench.ensure(medium(SHOT))
    now = bench.clock.now().timestamp()
    for name, old_s in (("late", 3700), ("new", 10)):
        left = bench.folder / "copies" / f".new-{name}"
        left.write_bytes(b"half")
        os.utime(left, (now - old_s, now - old_s))

    bench.ensure(medium(b"other"))

    assert {path.name for path in copies(bench) if path.name.startswith(".")} == {".new-new"}


def test_copies_stay_below_the_cap_by_the_longest_unused_of_the_same_tenant(bench: Bench) -> None:
    bench.policy = UploadPolicy(copies_cap_bytes=2500)
    bench.ensure(medium(b"o" * 1000), tenant="b")
    full(bench, uploaded=1)
    bench.advance(60)

    bench.ensure(medium(b"new" * 300))
    bench.ensure(medium(b"x" * 2000), tenant="c")

    assert {copy.read_bytes() for copy in copies(bench)} == {b"o" * 1000, b"new" * 300}


def test_the_longest_unused_copy_makes_room_first(bench: Bench) -> None:
    bench.policy = UploadPolicy(copies_cap_bytes=3000)
    for at in range(3):
        bench.ensure(medium(bytes([at]) * 1000))
        bench.advance(100)
    bench.ensure(medium(bytes([0]) * 1000))

    bench.ensure(medium(b"n" * 1000))

    assert {copy.read_bytes()[:1] for copy in copies(bench)} == {b"\0", b"\2", b"n"}


def test_what_changed_after_it_arrived_is_uploaded_and_not_copied(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(SHOT)

    def told(done: int, of: int) -> None:
        if done == of:
            path.write_bytes(SHOT + b"more")

    with path.open("rb") as file:
        reference = bench.ensure(MediaPart(source=file, label="shot"), progress=told)

    assert names(bench) == {reference.name}
    assert copies(bench) == []
    assert not known(bench).copied


def test_a_copy_that_cannot_be_erased_hinders_no_upload_and_is_told_where_it_is_to_go(bench: Bench) -> None:
    bench.policy = UploadPolicy(copies_cap_bytes=1500)
    full(bench, uploaded=1)
    (copy,) = copies(bench)
    copy.unlink()
    copy.mkdir()

    bench.ensure(medium(b"new" * 300))

    store = Copies(bench.folder / "copies", bench.registry, bench.policy)
    old = next(one for one in bench.registry.entries(bench.clock.now()) if one.size_bytes == 1000)
    with pytest.raises(StateUnavailable, match="a copy stays there"):
        store.drop(old.key)
    assert bench.uploads == 2


# ---- what stays secret


def test_neither_key_nor_upload_address_is_written_anywhere(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bench.emulator.faults.set("return-reset-connection", on="upload.finalize", count=1)
    reference = bench.ensure(medium(SHOT))
    bench.emulator.faults.set("return-400", on="upload.finalize", count=1)
    with pytest.raises(UploadFailed) as failed:
        bench.ensure(medium(b"other"))

    written = b"".join(path.read_bytes() for path in bench.folder.rglob("*") if path.is_file())
    logs = "".join(record.getMessage() for record in caplog.records if record.name != "uvicorn.access")
    told = f"{logs}{failed.value!r}{failed.value.as_problem()}{reference!r}".encode()
    for where in (written, told):
        assert KEY.encode() not in where
        assert b"upload_id" not in where
        assert b"/upload/" not in where


def test_a_source_that_is_not_there_is_the_callers_error(bench: Bench) -> None:
    with pytest.raises(UnreadableSource):
        bench.ensure(medium(Path("/nowhere")))
