"""Files of a client through the service, step by step."""

from __future__ import annotations

from typing import Any

from serving import Served
from weighlock.emulator import Emulator


def begun(served: Served, size: int | None, mime: str = "image/png", name: str | None = None, **more: str) -> Any:
    headers = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-type": mime,
        **({} if size is None else {"x-goog-upload-header-content-length": str(size)}),
        **more,
    }
    file = {"display_name": "Köln 文件", **({} if name is None else {"name": name})}
    return served.http.post("/upload/v1beta/files", json={"file": file}, headers=headers)


def started(served: Served, size: int | None, mime: str = "image/png", name: str | None = None, **more: str) -> str:
    """Where the upload goes on."""
    answer = begun(served, size, mime, name, **more)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-goog-upload-status"] == "active"
    return str(answer.headers["x-goog-upload-url"])


def sent(served: Served, url: str, data: bytes, offset: int, commands: str = "upload, finalize") -> Any:
    headers = {"x-goog-upload-command": commands, "x-goog-upload-offset": str(offset)}
    return served.http.post(url, content=data, headers=headers)


def uploaded(
    served: Served, data: bytes, mime: str = "image/png", name: str | None = None, **more: str
) -> dict[str, Any]:
    """The file, as it is described."""
    answer = sent(served, started(served, len(data), mime, name, **more), data, 0)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-goog-upload-status"] == "final"
    file: dict[str, Any] = answer.json()["file"]
    return file


def uploads(emulator: Emulator) -> int:
    return sum(one.operation == "upload.start" for one in emulator.requests)
