"""An upload of 2 GB passes through the emulator in the memory of a few chunks."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

pytestmark = pytest.mark.slow

CHUNK = 8 << 20
SIZE = 2 << 30


def peak_mb(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) / 1024


def test_two_gigabytes_are_received_in_48_mb() -> None:
    command = [sys.executable, "-m", "weighlock", "emulator", "--drop-bytes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, httpx2.Client(timeout=60) as http:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        headers = {
            "x-goog-api-key": "k",
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(SIZE),
            "X-Goog-Upload-Header-Content-Type": "text/plain",
        }
        where = http.post(f"{url}/upload/v1/files", headers=headers, json={}).headers["x-goog-upload-url"]
        before, began, chunk = peak_mb(process.pid), time.monotonic(), bytes(CHUNK)
        for offset in range(0, SIZE, CHUNK):
            last = offset + CHUNK == SIZE
            said = {"X-Goog-Upload-Command": "upload, finalize" if last else "upload"}
            answer = http.post(where, headers={**said, "X-Goog-Upload-Offset": str(offset)}, content=chunk)
        seconds, grown = time.monotonic() - began, peak_mb(process.pid) - before
        process.terminate()

    print(f"\n{SIZE / 1e6 / seconds:,.0f} MB/s, {grown:.1f} MB more")
    assert answer.json()["file"]["sizeBytes"] == str(SIZE)
    assert grown <= 48
