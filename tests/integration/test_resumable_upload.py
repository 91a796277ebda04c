"""Uploads to the emulator, through both faces: whole whatever fails on the way, or a typed error."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_io import FACES, Face, FakeClock
from weighlock.emulator import Emulator
from weighlock.errors import StorageFull, UnreadableSource, UploadFailed
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.files import Files, FileState, RemoteFile
from weighlock.gemini.http import Service, Target
from weighlock.io import Io
from weighlock.request import MediaPart
from weighlock.uploads.names import remote_name
from weighlock.uploads.resumable import Cargo, upload
from weighlock.uploads.source import PartSource, sha256_of

CANARY = "canary-key-4711"
GRANULE = 256 * 1024
each_face = pytest.mark.parametrize("face", FACES)


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        emulator.faults.stall_s = 0.2
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    return running


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


class Memory:
    """Bytes as a source; `at` is told every offset that is read."""

    def __init__(self, data: bytes, at: Callable[[int], object] = bool) -> None:
        self.data, self.size_bytes, self.at = data, len(data), at

    def read_at(self, offset: int, length: int) -> bytes:
        self.at(offset)
        return self.data[offset : offset + length]

    def demand_unchanged(self) -> None:
        pass


def cargo(data: bytes, source: Any = None, sha256: str | None = None) -> Cargo:
    digest = sha256 or hashlib.sha256(data).hexdigest()

    def name_of(generation: int) -> str:
        return remote_name(b"secret", "account", "tenant", digest, "application/pdf", generation=generation)

    return Cargo(
        source=source or Memory(data),
        sha256=digest,
        mime="application/pdf",
        name_of=name_of,
        display_name="Überblick 文.pdf",
    )


def uploaded(
    face: Face, emulator: Emulator, what: Cargo, *, chunk_bytes: int = GRANULE, key: str = CANARY, **how: Any
) -> RemoteFile:
    async def flow(io: Io) -> RemoteFile:
        files = Files(Service(io, Target(base_url=emulator.base_url), ApiKey(key)))
        return await upload(io, files, what, chunk_bytes=chunk_bytes, **how)

    return face(flow, FakeClock())


def stored(emulator: Emulator) -> list[str]:
    return [one.sha256 for one in emulator.files]


@each_face
def test_a_file_arrives_whole_with_its_name_and_progress(face: Face, emulator: Emulator) -> None:
    data, told = noise(3 * GRANULE + 17), []

    file = uploaded(face, emulator, cargo(data), progress=lambda done, of: told.append((done, of)))

    assert (file.size_bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert file.display_name == "Überblick 文.pdf"
    assert file.name == cargo(data).name_of(0)
    assert [done for done, _ in told] == [GRANULE, 2 * GRANULE, 3 * GRANULE, len(data)]


@each_face
@pytest.mark.parametrize(
    ("fault", "how"),
    [
        ("return-503", {"on": "upload.chunk", "count": 3}),
        ("return-503", {"on": "upload.start", "count": 2}),
        ("return-408", {"on": "upload.query upload.chunk", "count": 4}),
        ("return-reset-connection", {"on": "upload.chunk", "count": 2}),
        ("return-503-after-256K", {"on": "upload.chunk", "count": 1}),
        ("return-503-after-commit", {"on": "upload.chunk", "count": 2}),
        ("partial-commit", {"count": 2}),
        ("lose-final-response", {"count": 1}),
        ("return-reset-connection", {"on": "upload.finalize", "count": 1}),
        ("session-gone", {"count": 2, "skip": 1}),
        ("return-corrupted-data", {"on": "upload.chunk", "count": 1}),
        ("absurd-retry-delay", {"on": "upload.chunk", "count": 1}),
        ("return-503", {"on": "files.get", "count": 2}),
    ],
)
def test_passing_faults_are_survived(face: Face, emulator: Emulator, fault: str, how: dict[str, Any]) -> None:
    data = noise(6 * GRANULE + 5)
    emulator.faults.set(fault, **how)

    file = uploaded(face, emulator, cargo(data), chunk_bytes=2 * GRANULE)

    assert file.sha256 == hashlib.sha256(data).hexdigest()
    assert stored(emulator) == [file.sha256]


@each_face
def test_what_arrived_is_not_sent_again(face: Face, emulator: Emulator) -> None:
    read: list[int] = []
    data = noise(8 * GRANULE)
    emulator.faults.set("return-503-after-commit", on="upload.chunk", count=3)

    uploaded(face, emulator, cargo(data, Memory(data, read.append)))

    assert read == [offset * GRANULE for offset in range(8)]


@each_face
def test_of_a_chunk_that_arrived_in_part_the_rest_is_sent(face: Face, emulator: Emulator) -> None:
    read: list[int] = []
    data = noise(6 * GRANULE)
    emulator.faults.set("partial-commit", count=1, skip=1, after_bytes=GRANULE + 1000)

    uploaded(face, emulator, cargo(data, Memory(data, read.append)), chunk_bytes=2 * GRANULE)

    assert read == [offset * GRANULE for offset in (0, 2, 3, 5)]


@each_face
@pytest.mark.parametrize("fault", ["return-400", "return-401", "return-413"])
def test_a_refusal_for_good_ends_it_at_once(face: Face, emulator: Emulator, fault: str) -> None:
    emulator.faults.set(fault, on="upload.chunk upload.finalize")

    with pytest.raises(UploadFailed) as caught:
        uploaded(face, emulator, cargo(noise(2 * GRANULE)))

    assert caught.value.figures["service_status"] == int(fault[-3:])


@each_face
def test_a_service_that_never_recovers_ends_it_at_the_deadline(face: Face, emulator: Emulator) -> None:
    emulator.faults.set("return-503", on="upload.chunk upload.finalize")

    with pytest.raises(UploadFailed, match="within the time"):
        uploaded(face, emulator, cargo(noise(2 * GRANULE)), within_s=120)


@each_face
def test_an_address_where_nobody_answers_is_told_at_once_and_given_up_soon(face: Face) -> None:
    told: list[str] = []
    clock = FakeClock()

    async def flow(io: Io) -> RemoteFile:
        files = Files(Service(io, Target(base_url="http://127.0.0.1:9"), ApiKey(CANARY)))
        return await upload(io, files, cargo(b"x"), told=told.append)

    with pytest.raises(UploadFailed, match=r"ConnectError.*nobody has answered.*base URL"):
        face(flow, clock)

    assert told[0] == "the service gave no answer (ConnectError); trying again in 0.5 s"
    assert 5 < clock.passed_s <= 20


@each_face
def test_a_service_that_answered_once_is_waited_for_as_long_as_the_operator_says(
    face: Face, emulator: Emulator
) -> None:
    emulator.faults.set("return-503", on="upload.chunk upload.finalize", skip=1)
    told: list[str] = []

    with pytest.raises(UploadFailed, match=r"503 .*; nothing more arrived within 90 s .uploads\.give_up") as caught:
        uploaded(face, emulator, cargo(noise(3 * GRANULE)), give_up_after_s=90, told=told.append)

    assert caught.value.figures["service_status"] == 503
    assert len(told) > 5


@each_face
def test_as_long_as_more_arrives_it_goes_on(face: Face, emulator: Emulator) -> None:
    emulator.faults.set("return-503", on="upload.chunk", rate=0.5)
    data, told = noise(30 * GRANULE), list[str]()

    file = uploaded(face, emulator, cargo(data), give_up_after_s=20, told=told.append)

    assert file.sha256 == hashlib.sha256(data).hexdigest()
    assert sum(float(words.split()[-2]) for words in told) > 20


@each_face
def test_a_service_that_says_yes_and_keeps_nothing_ends_it_at_the_deadline(face: Face, emulator: Emulator) -> None:
    emulator.faults.set("partial-commit", after_bytes=1)

    with pytest.raises(UploadFailed, match="within the time"):
        uploaded(face, emulator, cargo(noise(3 * GRANULE)), within_s=120)


@each_face
def test_an_upload_lost_three_times_is_lost(face: Face, emulator: Emulator) -> None:
    emulator.faults.set("session-gone")

    with pytest.raises(UploadFailed, match="3 uploads"):
        uploaded(face, emulator, cargo(noise(2 * GRANULE)))


@each_face
def test_what_always_arrives_otherwise_is_deleted_and_refused(face: Face, emulator: Emulator) -> None:
    emulator.faults.set("return-corrupted-data", on="upload.chunk upload.finalize")

    with pytest.raises(UploadFailed):
        uploaded(face, emulator, cargo(noise(2 * GRANULE)))

    assert stored(emulator) == []


@each_face
def test_a_file_that_is_there_already_is_taken(face: Face, emulator: Emulator) -> None:
    data = noise(GRANULE)
    first = uploaded(face, emulator, cargo(data))
    chunks = len(emulator.requests.of("upload.finalize"))

    again = uploaded(face, emulator, cargo(data))

    assert again.name == first.name
    assert len(emulator.requests.of("upload.finalize")) == chunks


@each_face
def test_a_name_taken_by_something_else_is_left_alone(face: Face, emulator: Emulator) -> None:
    data, other = noise(GRANULE), noise(GRANULE, seed=1)
    taken = uploaded(face, emulator, cargo(other, sha256=hashlib.sha256(other).hexdigest()))

    def name_of(generation: int) -> str:
        return taken.name if generation == 0 else cargo(data).name_of(generation)

    plan = cargo(data)
    file = uploaded(face, emulator, Cargo(source=plan.source, sha256=plan.sha256, mime=plan.mime, name_of=name_of))

    assert file.name == cargo(data).name_of(1)
    assert set(stored(emulator)) == {file.sha256, taken.sha256}


@each_face
@pytest.mark.parametrize("opened", [False, True], ids=["path", "file object"])
def test_a_source_that_changes_meanwhile_fails(face: Face, emulator: Emulator, tmp_path: Path, opened: bool) -> None:
    path = tmp_path / "growing.pdf"
    path.write_bytes(b"%PDF-1.7" + noise(3 * GRANULE))
    with (
        path.open("rb") as file,
        PartSource(MediaPart(source=file if opened else path, label="g"), max_bytes=10**9) as source,
    ):
        what = cargo(path.read_bytes(), source, sha256_of(source))

        def change(done: int, of: int) -> None:
            path.write_bytes(b"%PDF-1.7" + noise(3 * GRANULE, seed=2))

        with pytest.raises(UnreadableSource, match="changed"):
            uploaded(face, emulator, what, progress=change)

    assert stored(emulator) == []


@each_face
def test_a_project_without_room_says_so(face: Face, emulator: Emulator) -> None:
    project = emulator.accounts.of_key("small")
    project.storage_bytes = 1_000

    with pytest.raises(StorageFull):
        uploaded(face, emulator, cargo(noise(GRANULE)), key="small")


@each_face
def test_neither_key_nor_upload_address_is_logged_or_told(
    face: Face, emulator: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    emulator.faults.set("return-400", on="upload.finalize")

    with caplog.at_level(logging.DEBUG), pytest.raises(UploadFailed) as caught:
        uploaded(face, emulator, cargo(noise(2 * GRANULE)))

    ours = [record for record in caplog.records if not record.name.startswith(("uvicorn", "asyncio"))]
    told = f"{[record.getMessage() for record in ours]} {caught.value} {caught.value.as_problem()}"
    assert CANARY not in told
    assert "upload_id" not in told


@each_face
def test_a_film_is_waited_for_and_a_broken_one_says_why(face: Face, emulator: Emulator) -> None:
    data = noise(GRANULE)
    emulator.faults.set("return-503", on="files.get", rate=0.3)

    async def flow(io: Io) -> RemoteFile:
        files = Files(Service(io, Target(base_url=emulator.base_url), ApiKey(CANARY)))
        film = await upload(io, files, Cargo(
            source=Memory(data), sha256=hashlib.sha256(data).hexdigest(), mime="video/mp4", name_of=cargo(data).name_of,
        ))  # fmt: skip
        assert film.state is FileState.PROCESSING
        emulator.clock.advance(10)
        return await files.wait_until_active(film, within_s=60)

    assert face(flow, FakeClock()).state is FileState.ACTIVE
