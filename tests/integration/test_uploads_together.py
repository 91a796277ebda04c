"""Many processes, one registry: every file is uploaded once, whoever is killed meanwhile."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from uploading import content
from weighlock.emulator import Emulator
from weighlock.uploads.registry import Registry

HERE = Path(__file__).parent.parent
FILES = 20


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


def begun(
    emulator: Emulator, folder: Path, seed: int, *, asked: int, files: int = FILES, mime: str = "image/png"
) -> subprocess.Popen[str]:
    words = [emulator.base_url, str(folder), str(seed), str(asked), str(files), mime]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    return subprocess.Popen([sys.executable, "-m", "uploading", *words], stdout=subprocess.PIPE, text=True, env=environ)


def ended(processes: list[subprocess.Popen[str]]) -> tuple[int, set[str]]:
    """How many files they uploaded themselves, and what they were given."""
    uploaded, given = 0, set()
    for one in processes:
        said = one.communicate()[0].split()
        assert one.returncode == 0
        said = said[said[0] == "begun" :]
        uploaded += int(said[0])
        given |= set(said[1:])
    return uploaded, given


def uploads(emulator: Emulator) -> int:
    return sum(one.status == 200 for one in emulator.requests.of("upload.finalize"))


def demand_whole(emulator: Emulator, folder: Path, files: int = FILES) -> None:
    """The registry is intact, no lease is left, and the service has every content once, as it was sent."""
    sql = sqlite3.connect(folder / "uploads.db")
    assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    sql.close()
    registry = Registry(folder / "uploads.db")
    known = registry.entries(datetime.now(UTC))
    registry.close()
    assert not any(entry.uploading for entry in known)
    expected = sorted(hashlib.sha256(content(number)).hexdigest() for number in range(files))
    assert sorted(entry.key.sha256 for entry in known) == expected
    assert sorted(file.sha256 for file in emulator.files) == expected
    assert {entry.remote.name for entry in known if entry.remote} == {f"files/{file.name}" for file in emulator.files}


@pytest.mark.parametrize(
    ("processes", "asked"), [(3, 40), pytest.param(16, 100, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_processes_that_ask_for_the_same_upload_each_once(
    emulator: Emulator, tmp_path: Path, processes: int, asked: int
) -> None:
    uploaded, given = ended([begun(emulator, tmp_path, seed, asked=asked) for seed in range(processes)])

    assert uploaded == uploads(emulator) == FILES
    assert len(given) == FILES
    demand_whole(emulator, tmp_path)


@pytest.mark.slow
def test_sixteen_processes_a_hundred_times_killed_while_they_wait_for_twenty_films(
    emulator: Emulator, tmp_path: Path
) -> None:
    chance, kills, struck = random.Random(4711), 0, 0
    emulator.files.processing_s = 20.0  # whoever uploads one holds its lease as long
    seeds = iter(range(1000))
    running = [begun(emulator, tmp_path, next(seeds), asked=100, mime="video/mp4") for _ in range(16)]
    registry = Registry(tmp_path / "uploads.db")
    while kills < 100:
        one = running.pop(chance.randrange(8))  # one of the older half: it has begun
        assert one.stdout is not None
        one.stdout.readline()
        time.sleep(chance.uniform(0, 0.1))
        struck += any(entry.uploading for entry in registry.entries(datetime.now(UTC)))
        kills += one.poll() is None
        one.kill()
        one.communicate()
        running.append(begun(emulator, tmp_path, next(seeds), asked=100, mime="video/mp4"))
    registry.close()

    ended(running)

    starts = len(emulator.requests.of("upload.start"))
    print(f"{kills} kills, {struck} of them with an upload under way, {starts} uploads begun of {FILES} files")
    assert struck > 50
    assert FILES <= uploads(emulator) <= starts <= FILES + kills
    demand_whole(emulator, tmp_path)


@pytest.mark.slow
def test_processes_killed_at_any_moment_cost_one_upload_each_at_most(emulator: Emulator, tmp_path: Path) -> None:
    chance, kills, files = random.Random(4711), 0, 3000
    emulator.requests.clear()
    running = [begun(emulator, tmp_path, at, asked=files, files=files) for at in range(4)]
    while kills < 100:
        oldest = running.pop(0)
        assert oldest.stdout is not None
        oldest.stdout.readline()
        until = min(files, len(emulator.files) + chance.randint(1, 15))
        while len(emulator.files) < until:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.02))
        kills += oldest.poll() is None
        oldest.kill()
        oldest.communicate()
        running.append(begun(emulator, tmp_path, 1000 + kills, asked=files, files=files))
    interrupted = sum(1 for _ in emulator.files)

    ended(running)

    print(f"{kills} kills, {interrupted} files by then, {uploads(emulator)} uploads of {files} files")
    assert interrupted < files
    assert files <= uploads(emulator) <= files + kills
    demand_whole(emulator, tmp_path, files)
