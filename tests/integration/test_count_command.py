from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import media
from emulated import at, user
from referenced import aged
from weighlock.accounts import credential_of
from weighlock.cli import cli
from weighlock.emulator import Emulator
from weighlock.emulator.weighing import Remote
from weighlock.errors import ConfigError, UnreadableSource
from weighlock.gemini.auth import ApiKey, GoogleLogin
from weighlock.request import Backend
from weighlock.settings.model import Account


def count(*words: str) -> Result:
    return CliRunner(catch_exceptions=False).invoke(cli, ["count", *words], standalone_mode=False)


def failed(*words: str) -> Result:
    """What is told of a count that failed."""
    result = CliRunner(catch_exceptions=False).invoke(cli, ["count", *words])
    assert result.exit_code == 1
    return result


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An account's service, with state beside the request."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", "canary-4711")
    Path("weighlock.yaml").write_text("version: 1\ndefault: {model: gemini-3.8-flash}\nstate: {dir: state}\n")
    with Emulator() as emulator:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
        yield emulator


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
        emulator.faults.set("return-400")
        refused = failed(str(body), "--base-url", emulator.base_url)

    assert keys == ["canary-4711"] * 2
    assert "count_failed: not counted: the service refuses: 400" in refused.stderr
    assert "canary" not in said.output + refused.output


def test_a_count_that_says_nothing_is_told_beside_what_was_checked(service: Emulator, body: Path) -> None:
    service.faults.set("empty-count")

    table, told = failed(str(body)), json.loads(failed(str(body), "--format", "json").stdout)

    assert "the service says nothing of a request that holds something" in table.stderr
    assert re.search(r"^IMAGE +1,", table.stdout, re.MULTILINE)
    assert "short text" not in table.stdout
    assert told["error"]["code"] == "count_failed"
    assert told["modalities"]["total"]["counted"] is None
    assert told["modalities"]["total"]["checked"] == told["modalities"]["total"]["corrected"]


def test_what_a_bucket_holds_is_weighed_on_vertex_by_its_count_which_is_said(
    service: Emulator, body: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", service.base_url)
    service.remotes["gs://bucket/a.mp3"] = Remote(data=media.sound(30, "libmp3lame", "mp3"), mime="audio/mpeg")
    account = "{backend: vertex, api_key_env: GEMINI_API_KEY}"
    body.with_name("weighlock.yaml").write_text(
        f"version: 1\naccounts: {{v: {account}}}\ndefault: {{account: v, model: gemini-3.8-flash}}\n"
    )
    body.write_text(json.dumps({"contents": [user("Sum it up.", at("gs://bucket/a.mp3", "audio/mpeg"))]}))

    table, told = count(str(body)).stdout, json.loads(count(str(body), "--format", "json").stdout)

    assert "Media only the service can see, 1 here, are weighed by their count." in table
    sound = told["modalities"]["AUDIO"]
    assert (sound["checked"], sound["counted"], sound["corrected"]["high"]) == (None, 30 * 32, 30 * 25)
    assert all("/publishers/google/models/" in one.path for one in service.requests)


def test_a_request_that_holds_nothing_costs_nothing(service: Emulator, body: Path) -> None:
    body.write_text('{"contents": []}')

    told = json.loads(count(str(body), "--format", "json").stdout)

    assert told["modalities"]["total"] == {
        "checked": {"low": 0, "likely": 0, "high": 0},
        "counted": 0,
        "corrected": {"low": 0, "likely": 0, "high": 0},
    }
    assert "short text" not in count(str(body)).stdout
    assert not list(service.requests)


def test_somebody_s_file_that_is_gone_is_told_beside_what_was_checked(service: Emulator, body: Path) -> None:
    body.write_text(json.dumps({"contents": [user("What is it?", at("files/nobodys1", "image/png"))]}))

    result = failed(str(body), "--format", "json")

    told = json.loads(result.stdout)
    assert told["error"]["code"] == "reference_unrecoverable"
    assert "files/nobodys1" in result.stderr
    assert told["modalities"]["TEXT"]["checked"]["likely"] > 0
    assert told["counts"]["text"]["total"] > 0


def test_where_no_place_remembers_uploads_what_was_checked_is_told(service: Emulator, body: Path) -> None:
    body.write_text(json.dumps({"contents": [user("What is it?", at("files/nobodys1", "image/png"))]}))
    body.with_name("state").write_text("no folder")

    result = failed(str(body))

    assert "state_unavailable: state.dir" in result.stderr
    assert "TEXT" in result.stdout


def test_a_file_of_ours_that_is_gone_is_uploaded_again_and_counted(service: Emulator, body: Path) -> None:
    shot = body.with_name("shot.png")
    shot.write_bytes(media.picture((640, 480)))
    words = ["upload", "--tenant", "acme", "--format", "json", str(shot)]
    uri = json.loads(CliRunner().invoke(cli, words).stdout)["files"][0]["uri"]
    body.write_text(json.dumps({"contents": [user("What is it?", at(uri, "image/png"))]}))
    for file in service.files:
        service.files.delete(file.project, file.name)
    aged(body.parent / "state" / "uploads.db")

    others = failed(str(body))
    ours = json.loads(count(str(body), "--tenant", "acme", "--format", "json").stdout)

    assert "not yours to see" in others.stderr
    assert ours["error"] is None
    assert ours["modalities"]["IMAGE"]["counted"] > 0
    assert len(service.requests.of("upload.start")) == 2


@pytest.mark.parametrize(("path", "why"), [("missing.png", "no such file"), ("/dev/zero", "is a device")])
def test_a_file_that_cannot_be_read_is_named_and_nobody_is_asked(service: Emulator, path: str, why: str) -> None:
    result = CliRunner().invoke(cli, ["count", path])

    assert isinstance(result.exception, UnreadableSource)
    assert str(result.exception).startswith(f"{path}: ")
    assert why in str(result.exception)
    assert not list(service.requests)


def test_the_emulator_has_no_file_of_the_account_which_is_said(service: Emulator, body: Path) -> None:
    body.write_text(json.dumps({"contents": [user("What is it?", at("files/mine1", "image/png"))]}))

    result = failed(str(body), "--against", "emulator")

    assert "files/mine1 is at the account's service" in result.stderr
    assert "TEXT" in result.stdout
    assert not body.with_name("state").exists()


def test_without_a_key_it_says_where_one_is_looked_for(body: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)

    with pytest.raises(ConfigError, match="GEMINI_API_KEY is not set"):
        count(str(body))


def test_a_variable_that_holds_no_key_is_named_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "two words")

    with pytest.raises(ConfigError, match="account a: MY_KEY: the API key is empty, or holds blanks") as error:
        credential_of(Account(name="a", backend=Backend.DEVELOPER, api_key_env="MY_KEY"))

    assert "words" not in str(error.value)


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
