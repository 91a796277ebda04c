"""Keys stay where they belong: in no log, no answer, no event, no metric, no file."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx2
import pytest

import media
from emulated import at, inline, user
from serving import COUNT, GENERATE, MODEL, NO_TLS, STREAM, UPSTREAM_KEY, client_yaml, serving
from weighlock.emulator import Emulator
from weighlock.observe.decision_log import as_json

CANARY = "sesame-canary-4711-open"


def test_no_key_no_upload_and_no_content_leaves_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    yaml, keys = client_yaml(app="tenant: acme")
    more = f"observe: {{decision_log: {tmp_path}/decisions.jsonl}}\nuploads: {{inline_below: {{developer: 1KB}}}}\n"
    told: list[str] = []
    with (
        Emulator(processing_s=0) as emulator,
        serving(tmp_path, emulator, f"default: {{model: {MODEL}}}\n{more}service: {{clients: {yaml}}}\n") as served,
    ):
        key = {"x-goog-api-key": keys["app"]}
        shot = inline(media.picture((640, 480)), "image/png", displayName=f"{CANARY}.png")
        body = {"contents": [user(CANARY, shot)]}
        for path in (GENERATE, STREAM, f"{STREAM}?alt=sse", COUNT, "/weighlock/v1/check", "/weighlock/v1/fit"):
            separator = "&" if "?" in path else "?"
            told.append(served.http.post(f"{path}{separator}key={keys['app']}", json=body).text)
        told.append(served.http.post(f"{GENERATE}?key={CANARY}", json=body).text)
        told.append(served.http.post(GENERATE, json=body, headers={"authorization": f"Bearer {CANARY}"}).text)
        emulator.faults.set("return-500", on="generate", count=1)
        told.append(served.http.post(GENERATE, json=body, headers=key).text)
        emulator.faults.set("return-reset-connection", on="generate", count=1)
        told.append(served.http.post(GENERATE, json=body, headers=key).text)
        lost = at("https://generativelanguage.googleapis.com/v1beta/files/gone", "image/png")
        told.append(served.http.post(GENERATE, json={"contents": [user(lost)]}, headers=key).text)
        start = {**key, "x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start"}
        url = served.http.post("/upload/v1beta/files", json={"file": {"displayName": CANARY}}, headers=start)
        word = url.headers["x-goog-upload-url"].partition("upload_id=")[2].partition("&")[0]
        served.http.post(url.headers["x-goog-upload-url"], content=b"", headers={"x-goog-upload-command": "finalize"})
        served.http.post("/v1beta/interactions", params={"key": keys["app"]}, json={})
        told.append(httpx2.get(f"{served.admin_url}/metrics", verify=NO_TLS).text)
        told.append(httpx2.get(f"{served.admin_url}/readyz", verify=NO_TLS).text)
        told += [repr(as_json(event)) for event in served.events]
        events = len(served.events)

    assert events >= 6
    own = [one for one in caplog.records if not one.name.startswith(("httpx2", "httpcore2"))]  # those are this client's
    logs = "\n".join(f"{one.getMessage()} {one.__dict__}" for one in own)
    assert own
    assert (tmp_path / "state").is_dir()
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file() and path.parent.name != "copies"]
    files = b"".join(path.read_bytes() for path in [*kept, tmp_path / "decisions.jsonl"])
    for secret in (keys["app"], UPSTREAM_KEY, word):
        assert secret not in logs, secret
        assert secret not in "".join(told), secret
        assert secret.encode() not in files, secret
    assert f"key={CANARY}" not in logs
    assert CANARY not in "".join(told[-4:])
    assert CANARY.encode() not in (tmp_path / "decisions.jsonl").read_bytes()
