"""One upload in a process of its own: `python uploading.py WAY URL FILE` prints what it took, and how it grew."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

from weighlock.gemini.auth import ApiKey  # noqa: E402
from weighlock.gemini.files import Files  # noqa: E402
from weighlock.gemini.http import Service, Target  # noqa: E402
from weighlock.io import AsyncIo, Io, SyncIo, run  # noqa: E402
from weighlock.request import MediaPart  # noqa: E402
from weighlock.uploads.names import remote_name  # noqa: E402
from weighlock.uploads.resumable import Cargo, upload  # noqa: E402
from weighlock.uploads.source import PartSource, sha256_of  # noqa: E402

MIME = "application/pdf"  # neither side looks into it
Times = dict[str, float]


def blocking(url: str, path: Path) -> Times:
    with SyncIo() as io:
        return run(_uploaded(io, url, path))


def awaiting(url: str, path: Path) -> Times:
    async def flow() -> Times:
        async with AsyncIo() as io:
            return await _uploaded(io, url, path)

    return asyncio.run(flow())


async def _uploaded(io: Io, url: str, path: Path) -> Times:
    files = Files(Service(io, Target(base_url=url), ApiKey(_key())))
    began = time.perf_counter()
    with PartSource(MediaPart(source=path, label=path.name), max_bytes=1 << 40) as source:
        digest = await io.call(sha256_of, source)
        hashed = time.perf_counter()
        name = remote_name(b"secret", str(began))
        file = await upload(io, files, Cargo(source=source, sha256=digest, mime=MIME, name_of=lambda _: name))
    ended = time.perf_counter()
    assert file.sha256 == digest
    return {"send_s": ended - hashed, "whole_s": ended - began}


def sdk(url: str, path: Path) -> Times:
    client, config = _sdk(url)
    began = time.perf_counter()
    file = client.files.upload(file=path, config=config)
    took_s = time.perf_counter() - began
    assert file.size_bytes == path.stat().st_size
    client.close()
    return {"send_s": took_s, "whole_s": took_s}


def sdk_awaiting(url: str, path: Path) -> Times:
    async def flow() -> Times:
        client, config = _sdk(url)
        began = time.perf_counter()
        file = await client.aio.files.upload(file=path, config=config)
        took_s = time.perf_counter() - began
        assert file.size_bytes == path.stat().st_size
        await client.aio.aclose()
        return {"send_s": took_s, "whole_s": took_s}

    return asyncio.run(flow())


def _sdk(url: str) -> tuple[Any, Any]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url)
    config = types.UploadFileConfig(mime_type=MIME, http_options=options)
    return genai.Client(api_key=_key(), http_options=options), config


WAYS: dict[str, Callable[[str, Path], Times]] = {
    "blocking": blocking,
    "awaiting": awaiting,
    "sdk": sdk,
    "sdk_awaiting": sdk_awaiting,
}


def _key() -> str:
    """Of a project of its own: one has room for 20 GB."""
    return f"k{os.getpid()}"


def _memory_mb(which: str) -> float:
    found = re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    way, url, file = sys.argv[1:]
    small = Path(file).with_suffix(".small")  # so that what is loaded once is not counted
    small.write_bytes(b"%PDF-1.7")
    WAYS[way](url, small)
    before_mb = _memory_mb("VmRSS")
    told = WAYS[way](url, Path(file))
    print(json.dumps({**told, "grown_mb": _memory_mb("VmHWM") - before_mb}))
