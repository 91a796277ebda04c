from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import media
from weighlock.accounts import credential_of
from weighlock.cli import cli
from weighlock.emulator import Emulator
from weighlock.errors import ConfigError, CountFailed
from weighlock.gemini.auth import ApiKey, GoogleLogin
from weighlock.request import Backend
from weighlock.settings.model import Account


def count(*words: str) -> Result:
    return CliRunner(catch_exceptions=False).invoke(cli, ["count", *words], standalone_mode=False)


@pytest.fixture
def body(tmp_path: Path) -> Path:
    import base64

    shot = base64.b64encode(media.picture((640, 480))).decode()
    parts = [{"text": "What went wrong here?"}, {"inlineData": {"mimeType": "image/png", "data": shot}}]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"contents": [{"role": "user", "parts": parts}]}))
    return path


def test_a_request_is_checked_counted_and_put_right_side_by_side(body: Path) -> None:
    result = count(str(body), "--against", "emulator", "-m", "gemini-3.8-flash", "--format", "json")

    told = json.loads(result.stdout)
    image, text, total = (told["modalities"][name] for name in ("IMAGE", "TEXT", "total"))
    assert image["counted"] == image["checked"]["likely"] == image["corrected"]["likely"]
    assert text["corrected"]["high"] - text["corrected"]["low"] <= 2 < text["checked"]["high"] - text["checked"]["low"]
    assert total["counted"] == told["counts"]["whole"]["total"]
    assert told["counts"]["text"]["stand_ins"] == 1


def test_the_table_says_what_is_which(body: Path) -> None:
    said = count(str(body), "--against", "emulator").stdout

    assert "counted by the emulator" in said
    assert "proves how, never how much" in said


def test_a_service_is_asked_with_the_account_s_key_which_is_never_said(
    body: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "canary-4711")
    with Emulator() as emulator:
        said = count(str(body), "--base-url", emulator.base_url)
        keys = [one.headers["x-goog-api-key"] for one in emulator.requests]
        emulator.faults.set("empty-count")
        with pytest.raises(CountFailed) as caught:
            count(str(body), "--base-url", emulator.base_url)

    assert keys == ["canary-4711"] * 2
    assert "canary" not in f"{said.output} {caught.value}"


def test_without_a_key_it_says_where_one_is_looked_for(body: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)

    with pytest.raises(ConfigError, match="GEMINI_API_KEY is not set"):
        count(str(body))


def test_an_account_s_key_is_found_where_it_says(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("canary-4711\n")
    named = Account(name="a", backend=Backend.DEVELOPER, api_key_file=file)

    assert isinstance(credential_of(named), ApiKey)
    assert isinstance(credential_of(Account(name="v", backend=Backend.VERTEX, project="p")), GoogleLogin)
    file.unlink()
    with pytest.raises(ConfigError, match="api_key_file"):
        credential_of(named)
    with pytest.raises(ConfigError, match="names no key"):
        credential_of(Account(name="d", backend=Backend.DEVELOPER))
