"""Files of a client through the service, step by step."""

from __future__ import annotations

from typing import Any

from serving import Served
from weighlock.emulator import Emulator


def started(served: Served, size: int | None, mime: str = "image/png", **more: str) -> str:
    headers = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-type": mime,
        **({} if size is None else {"x-goog-upload-header-content-length": str(size)}),
        **more,
    }
    answer = served.http.post("/upload/v1beta/files", json={"file": {"display_name": "Köln 文件"}}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-goog-upload-status"] == "active"
    return str(answer.headers["x-goog-upload-url"])


def sent(served: Served, url: str, data: bytes, offset: int, commands: str = "upload, finalize") -> Any:
    headers = {"x-goog-upload-command": commands, "x-goog-upload-offset": str(offset)}
    return served.http.post(url, content=data, headers=headers)


def uploaded(served: Served, data: bytes, mime: str = "image/png", **more: str) -> dict[str, Any]:
    answer = sent(served, started(served, len(data), mime, **more), data, 0)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-goog-upload-status"] == "final"
    file: dict[str, Any] = answer.json()["file"]
    return file


def uploads(emulator: Emulator) -> int:
    return sum(one.operation == "upload.start" for one in emulator.requests)
