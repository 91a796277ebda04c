"""What the kernel saw while media was probed: no other file opened, no connection made, no program started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import media

pytestmark = pytest.mark.external

SCRIPT = textwrap.dedent("""
    import pathlib, sys
    from weighlock.codecs import Prober
    from weighlock.request import Modality
    with Prober() as prober:
        for line in sys.stdin:
            path, mime, modality = line.split()
            file = pathlib.Path(path)
            with file.open("rb") as opened:
                try:
                    size = file.stat().st_size
                    prober.probe(opened.fileno(), size_bytes=size, mime=mime, modality=Modality(modality))
                except ValueError:
                    pass
""")


def test_children_open_nothing_and_call_nobody(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        if os.environ.get("CI"):
            pytest.fail("strace is missing")
        pytest.skip("strace is missing")
    jobs = []
    for name, (data, mime, modality) in media.mixed_bag().items():
        path = tmp_path / name
        path.write_bytes(data)
        jobs.append(f"{path} {mime} {modality}\n")
    traces = tmp_path / "trace"

    subprocess.run(
        ["strace", "-ff", "-o", str(traces), "-e",
        "trace=openat,open,connect,sendto,execve,socket,fork,vfork,clone,clone3,prctl",
         sys.executable, "-c", SCRIPT],
        input="".join(jobs), text=True, check=True, capture_output=True, timeout=300,
    )  # fmt: skip

    confined = [sealed(trace.read_text()) for trace in tmp_path.glob("trace.*")]
    children = [calls for calls in confined if calls is not None]
    assert len(children) >= len(jobs)
    allowed = re.compile(r"= -1 (EPERM|ENOSYS) |CLONE_THREAD|\+\+\+ (exited|killed)|^---")
    assert [line for calls in children for line in calls if not allowed.search(line)] == []
    everything = "\n".join(trace.read_text() for trace in tmp_path.glob("trace.*"))
    assert re.findall(r"(?:connect|sendto)\(.*AF_INET.*", everything) == []


def sealed(trace: str) -> list[str] | None:
    """The calls a process made after it had sealed itself; `None` if it never did."""
    lines = trace.splitlines()
    at = next((i for i, line in enumerate(lines) if "PR_SET_SECCOMP" in line and line.rstrip().endswith("= 0")), None)
    return None if at is None else lines[at + 1 :]
