"""What the proxy holds in memory of files that pass through it, and of answers nobody reads."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from serving import MODEL, NO_TLS, STREAM
from weighlock.emulator import Emulator

pytestmark = pytest.mark.slow

UPLOADS, SIZE, CHUNK, PIECE = 20, 100_000_000, 8 << 20, 1 << 20
READERS = 20
MOST_MB_EACH = 3


class Sparse:
    """A file of which only the first bytes are its own; hashed as it is sent."""

    def __init__(self, number: int) -> None:
        self._head = b"weighlock %03d\0" % number
        self.sha256 = hashlib.sha256()

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        while length > 0:
            piece = (self._head if not offset else b"").ljust(min(PIECE, length), b"\0")
            self.sha256.update(piece)
            offset, length = offset + len(piece), length - len(piece)
            yield piece


def uploaded(url: str, number: int) -> tuple[str, str]:
    """Hash as it was sent, and the file's name, by the steps of the SDKs."""
    source = Sparse(number)
    with httpx2.Client(timeout=300, verify=NO_TLS) as http:
        start = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(SIZE),
            "x-goog-upload-header-content-type": "video/mp4",
        }
        where = http.post(f"{url}/upload/v1beta/files", headers=start, json={}).headers["x-goog-upload-url"]
        for offset in range(0, SIZE, CHUNK):
            length = min(CHUNK, SIZE - offset)
            command = "upload, finalize" if offset + length == SIZE else "upload"
            headers = {
                "x-goog-upload-command": command,
                "x-goog-upload-offset": str(offset),
                "content-length": str(length),
            }
            answer = http.post(where, headers=headers, content=source.pieces(offset, length))
            assert answer.status_code == 200, answer.text
        assert answer.headers["x-goog-upload-status"] == "final"
        return source.sha256.hexdigest(), answer.json()["file"]["name"]


def stalled(url: str) -> socket.socket:
    """Asks for a stream, and never reads it."""
    parts, body = urlsplit(url), b'{"contents":[{"parts":[{"text":"tell"}]}]}'
    head = f"POST {STREAM}?alt=sse HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: {len(body)}\r\n\r\n"
    connection = socket.create_connection((parts.hostname or "", parts.port or 0))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(head.encode() + body)
    return connection


def in_memory_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) / 1000


@contextmanager
def proxy(folder: Path, upstream: str) -> Iterator[tuple[str, int]]:
    """A proxy in a process of its own, whose memory is nobody else's."""
    file = folder / "weighlock.yaml"
    file.write_text(
        "version: 1\naccounts: {one: {backend: developer, api_key_env: WEIGHLOCK_TEST_KEY}}\n"
        f"default: {{model: {MODEL}}}\nservice: {{admin: null, deadlines: {{idle: 5m}}}}\n"
        f"state: {{dir: {folder / 'state'}}}\n"
    )
    command = [sys.executable, "-m", "weighlock", "serve", "--upstream", upstream, "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "WEIGHLOCK_TEST_KEY": "k"}
    with subprocess.Popen(
        [*command, "--config", str(file)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+?(?=,)", process.stdout.readline())
            assert found is not None
            yield found[0], process.pid
        finally:
            process.terminate()


def test_twenty_uploads_and_twenty_readers_that_do_not_read_take_three_megabytes_each(tmp_path: Path) -> None:
    with (
        Emulator(keep_bytes=False, processing_s=0) as emulator,
        proxy(tmp_path, emulator.base_url) as (url, pid),
        ExitStack() as open_ones,
    ):
        uploaded(url, 999)  # whatever is loaded on first use
        for _ in range(READERS):
            emulator.script.queue("word " * 800_000)
        before, most, done = in_memory_mb(pid), 0.0, threading.Event()

        def watch() -> None:
            nonlocal most
            while not done.wait(0.02):
                most = max(most, in_memory_mb(pid))

        watching = threading.Thread(target=watch)
        watching.start()
        for _ in range(READERS):
            open_ones.callback(stalled(url).close)
        begun = time.monotonic()
        with ThreadPoolExecutor(UPLOADS) as pool:
            sent = dict(pool.map(lambda number: uploaded(url, number), range(UPLOADS)))
        took_s = time.monotonic() - begun
        done.set()
        watching.join()
        arrived = {f"files/{one.name}": one.sha256 for one in emulator.files}

    more_mb = most - before
    print(f"\n{before:.0f} MB, {more_mb:.0f} more; {UPLOADS * SIZE / 1e6 / took_s:.0f} MB/s in {took_s:.1f} s")
    assert {arrived[name]: name for name in sent.values()} == sent
    assert more_mb <= MOST_MB_EACH * (UPLOADS + READERS)
