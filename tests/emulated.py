"""The emulator from the outside: a plain HTTP client, and the mark that says which behaviour a test proves."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import httpx2

from weighlock.emulator import Emulator

Test = TypeVar("Test", bound=Callable[..., Any])
FLASH, FLASH_25 = "gemini-3.5-flash", "gemini-2.5-flash"
KIB = 1024
GRANULE = 256 * KIB
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading the machine's certificates takes 30 ms a client


def proves(*_names: str) -> Callable[[Test], Test]:
    """Says which entries of the emulator's table a test proves; a test holds the two together."""
    return lambda test: test


def inline(data: bytes, mime: str, **beside: Any) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime, "data": base64.b64encode(data).decode()}, **beside}


def at(uri: str, mime: str | None = None, **beside: Any) -> dict[str, Any]:
    return {"fileData": {"fileUri": uri, **({"mimeType": mime} if mime else {})}, **beside}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return {**user(*parts), "role": "model"}


def called(*names: str) -> dict[str, Any]:
    return model(*({"functionCall": {"name": name, "args": {}}} for name in names))


def result(name: str, *media: Any, response: Any = None) -> dict[str, Any]:
    answer = {"name": name, "response": {"result": "ok"} if response is None else response}
    return {"functionResponse": answer | ({"parts": list(media)} if media else {})}


class Wire:
    """Requests as they travel, with one key."""

    def __init__(self, emulator: Emulator, key: str = "k", version: str = "v1beta") -> None:
        self.emulator, self.version = emulator, version
        headers = {"x-goog-api-key": key}
        self.http = httpx2.Client(base_url=emulator.base_url, headers=headers, timeout=10, verify=_NO_TLS)
        self.keyless = httpx2.Client(timeout=10, verify=_NO_TLS)

    def close(self) -> None:
        self.http.close()
        self.keyless.close()

    def ask(
        self, method: str, *contents: Any, name: str = FLASH, vertex: bool = False, **fields: Any
    ) -> httpx2.Response:
        """`method` of a model, with contents (a bare text is a user's)."""
        turns = [user(one) if isinstance(one, str) else one for one in contents]
        path = f"/v1beta1/projects/p/locations/global/publishers/google/models/{name}:{method}"
        where = path if vertex else f"/{self.version}/models/{name}:{method}"
        return self.http.post(where, json={"contents": turns, **fields})

    def generate(self, *contents: Any, **fields: Any) -> httpx2.Response:
        return self.ask("generateContent", *contents, **fields)

    def count(self, *contents: Any, **fields: Any) -> httpx2.Response:
        return self.ask("countTokens", *contents, **fields)

    def billed(self, *contents: Any, **fields: Any) -> dict[str, int]:
        """Prompt tokens by bucket."""
        answer = self.generate(*contents, **fields)
        assert answer.status_code == 200, answer.text
        return by_modality(answer.json()["usageMetadata"]["promptTokensDetails"])

    def counted(self, *contents: Any, **fields: Any) -> dict[str, int]:
        answer = self.count(*contents, **fields)
        assert answer.status_code == 200, answer.text
        return by_modality(answer.json()["promptTokensDetails"])

    # ---- files

    def start(self, size: int | None, mime: str = "image/png", name: str | None = None) -> httpx2.Response:
        length = {} if size is None else {"X-Goog-Upload-Header-Content-Length": str(size)}
        headers = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Type": mime,
            **length,
        }
        file = {"file": {"displayName": "Überblick", **({"name": name} if name else {})}}
        return self.http.post(f"/upload/{self.version}/files", headers=headers, json=file)

    def begin(self, size: int | None, mime: str = "image/png", name: str | None = None) -> str:
        """The upload URL of a new upload."""
        answer = self.start(size, mime, name)
        assert answer.status_code == 200, answer.text
        return str(answer.headers["x-goog-upload-url"])

    def command(self, url: str, command: str, data: bytes = b"", offset: int | None = None) -> httpx2.Response:
        """One command to an upload, without a key."""
        headers = {"X-Goog-Upload-Command": command} | ({} if offset is None else {"X-Goog-Upload-Offset": str(offset)})
        return self.keyless.post(url, headers=headers, content=data)

    def upload(self, data: bytes, mime: str = "image/png", name: str | None = None) -> dict[str, Any]:
        """The finished file."""
        answer = self.command(self.begin(len(data), mime, name), "upload, finalize", data, 0)
        assert answer.status_code == 200, answer.text
        file: dict[str, Any] = answer.json()["file"]
        return file


def by_modality(details: list[dict[str, Any]]) -> dict[str, int]:
    return {one["modality"]: one["tokenCount"] for one in details}


def refusal(answer: httpx2.Response) -> tuple[int, str, str]:
    """Code, status and message."""
    error = answer.json()["error"]
    assert answer.status_code == error["code"]
    return error["code"], error["status"], error["message"]
