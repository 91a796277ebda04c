"""`weighlock check` of a 1,000-file mixed folder, as a whole process, on one and on two cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import media
from benchmarks.harness import Comparison, Operations, as_installed, medians, timed

COUNT = 1000


def mixed_folder(folder: Path, rounds: int) -> Iterator[Comparison]:
    """700 images, 100 recordings, 100 songs, 60 PDFs, 40 texts."""
    _fill(folder)
    cores = sorted(os.sched_getaffinity(0))
    runs = {1: cores[:1], 2: cores[:2]} if len(cores) > 1 else {1: cores}
    peaks: list[int] = []
    operations: Operations = {
        f"{count} core{'s' * (count > 1)}": partial(_check, folder, these, peaks) for count, these in runs.items()
    }
    samples = timed(operations, rounds=min(rounds, 3))
    seconds = medians(samples, scale=1)
    rates = ", ".join(f"{name} {COUNT / value:,.0f} files/s" for name, value in seconds.items())
    yield Comparison(
        task=f"check of a {COUNT:,}-file mixed folder",
        unit="s",
        baseline="1 core",
        medians=seconds,
        notes=(rates, f"largest process of a run: {max(peaks) / 1024:.0f} MiB resident"),
    )


def _check(folder: Path, cores: list[int], peaks: list[int]) -> None:
    command = [sys.executable, "-m", "weighlock", "check", str(folder), "--format", "jsonl"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env=as_installed(),
        preexec_fn=lambda: os.sched_setaffinity(0, cores),  # noqa: PLW1509  # no threads here
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    peaks.append(usage.ru_maxrss)


def _fill(folder: Path) -> None:
    shapes: list[tuple[int, str, bytes]] = [
        (400, "png", media.picture((1280, 720))),
        (300, "jpg", media.picture((1024, 768), "JPEG")),
        (100, "mp4", media.video(5, fps=25, size=(640, 360), sound_s=5)),
        (100, "mp3", media.sound(10, "libmp3lame", "mp3")),
        (60, "pdf", media.pdf([(595.28, 841.89)] * 3)),
        (40, "txt", b"The quick brown fox jumps over the lazy dog.\n" * 50),
    ]
    number = 0
    for count, suffix, data in shapes:
        for _ in range(count):
            (folder / f"{(number * 617) % COUNT:04}.{suffix}").write_bytes(data)
            number += 1
