"""Films made lighter, against the `ffmpeg` program: CPU time of everything started, on one core, and peak memory."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Comparison, as_installed

_SCRIPT = """
import sys
from pathlib import Path
from weighlock.codecs import Transformer, make_file
from weighlock.media.work import AudioWork, VideoWork
with Transformer() as transformer:
    make_file(transformer, Path(sys.argv[1]), Path(sys.argv[2]), mime="video/mp4", work=eval(sys.argv[3]))
"""
_WATCHED = """
import os, sys
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small process in between: the system counts the memory of who starts a program as that program's."""
_FFMPEG = ["ffmpeg", "-v", "error", "-y", "-nostdin"]
_ENCODER = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "28", "-c:a", "copy"]
_MIB = 1024


def transforms(folder: Path, rounds: int) -> Iterator[Comparison]:
    """Whole processes, start-up and confinement included; both scale to 768 pixels and encode alike."""
    if shutil.which("ffmpeg") is None:
        print("ffmpeg: not installed")
        return
    rounds = max(3, rounds // 2)
    short = {
        "720p30, long GOP": _drawn(folder / "a720.mp4", (1280, 720), 60, gop=250),
        "1080p30, long GOP": _drawn(folder / "b1080.mp4", (1920, 1080), 60, gop=250),
        "720p30, 1 s GOP": _drawn(folder / "d720.mp4", (1280, 720), 60, gop=30),
    }
    for name, path in short.items():
        for fps in (0.5, 1):
            goal = 0.2 if "1 s" in name else 0.7
            yield _thinned(path, folder, fps, f"60 s of {name} to {fps:g} fps", goal, rounds)
    four = _repeated(short["720p30, 1 s GOP"], folder / "four.mp4", 4)
    yield _thinned(four, folder, 0.1, "240 s of 720p30, 1 s GOP, to 0.1 fps", 0.08, rounds)
    yield _copied(short["720p30, long GOP"], folder, rounds)
    yield _memory(four, _repeated(four, folder / "hour.mp4", 15), folder)


def _thinned(path: Path, folder: Path, fps: float, task: str, goal: float, rounds: int) -> Comparison:
    work = f"VideoWork(fps={fps}, max_width_px=768)"
    filters = ["-vf", f"fps={fps},scale=768:-2", *_ENCODER]
    return _compared(path, folder, task, work, ["-i", str(path), *filters], goal, rounds)


def _copied(path: Path, folder: Path, rounds: int) -> Comparison:
    peer = ["-ss", "20.4", "-i", str(path), "-t", "19.6", "-c", "copy"]
    work = "VideoWork(start_s=20.4, end_s=40, exact=False)"
    return _compared(path, folder, "20 s copied out of 60", work, peer, 3.5, rounds)


def _compared(path: Path, folder: Path, task: str, work: str, peer: list[str], goal: float, rounds: int) -> Comparison:
    ours = [sys.executable, "-c", _SCRIPT, str(path), str(folder / "ours.mp4"), work]
    theirs = [*_FFMPEG, *peer, str(folder / "theirs.mp4")]
    samples: dict[str, list[tuple[float, float]]] = {"weighlock": [], "ffmpeg": []}
    for _ in range(rounds):
        samples["weighlock"].append(_cost(ours))
        samples["ffmpeg"].append(_cost(theirs))
    peaks = ", ".join(f"{name} {max(peak for _, peak in runs):.0f} MB" for name, runs in samples.items())
    return Comparison(
        task=task, unit="CPU s, one core", baseline="ffmpeg",
        medians={name: statistics.median(cpu for cpu, _ in runs) for name, runs in samples.items()},
        goals={"weighlock": goal}, notes=(f"peak memory: {peaks}",),
    )  # fmt: skip


def _memory(short: Path, long: Path, folder: Path) -> Comparison:
    """Peak memory of thinning out 4 and 60 minutes, and how much the `ffmpeg` program's own grows between them.

    What an hour adds is the index of the MP4 that is read, which FFmpeg keeps in one piece: about 36 bytes a sample of
    every track (10 MB). Ours are 17 bytes a picture and 4 a packet that is written (3 MB).
    """
    work, thin = "VideoWork(fps=0.5, max_width_px=768)", ["-vf", "fps=0.5,scale=768:-2", *_ENCODER]
    ours, theirs = {}, []
    for name, path in (("4 min", short), ("60 min", long)):
        ours[name] = _cost([sys.executable, "-c", _SCRIPT, str(path), str(folder / "ours.mp4"), work])[1]
        decode = [*_FFMPEG, "-skip_frame", "nokey", "-i", str(path)]  # which is quicker, and takes the same tables
        theirs.append(_cost([*decode, *thin, str(folder / "theirs.mp4")])[1])
    grown = f"grown by {ours['60 min'] - ours['4 min']:.0f} MB, the ffmpeg program by {theirs[1] - theirs[0]:.0f} MB"
    return Comparison(
        task="peak memory by length", unit="MB", baseline="4 min", medians=ours, goals={"60 min": 1.1},
        notes=(f"at most 120 MB: {'met' if max(ours.values()) <= 120 else 'MISSED'}", grown),
    )  # fmt: skip


def _cost(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, peak MB) of a command and all it started, pinned to one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        environment = {**as_installed(), "PYTHONPATH": os.pathsep.join(sys.path)}
        told = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _WATCHED, *command], env=environment, stdout=subprocess.PIPE, check=True
        )
    finally:
        os.sched_setaffinity(0, cores)
    cpu_s, peak_kib = told.stdout.split()[-2:]
    return float(cpu_s), float(peak_kib) / _MIB


def _drawn(path: Path, size: tuple[int, int], seconds: int, *, gop: int) -> Path:
    """A film that moves all over, with B-frames and a tone."""
    _run(
        "-f", "lavfi", "-i", f"testsrc2=s={size[0]}x{size[1]}:r=30:d={seconds}", "-f", "lavfi", "-i",
        f"sine=d={seconds}", "-c:v", "libx264", "-preset", "fast", "-g", str(gop), "-bf", "3", "-c:a", "aac", str(path),
    )  # fmt: skip
    return path


def _repeated(source: Path, path: Path, times: int) -> Path:
    _run("-stream_loop", str(times - 1), "-i", str(source), "-c", "copy", str(path))
    return path


def _run(*arguments: str) -> None:
    subprocess.run([*_FFMPEG, *arguments], check=True)
