"""Agent frameworks given `weighlock.Client`, unchanged: every call they make is prepared and settled."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

import media
from external.test_frameworks_wire import REQUIREMENTS
from external.venvs import venv
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer

pytestmark = pytest.mark.external

PROJECT = Path(__file__).parents[2]
YAML = """\
version: 1
accounts: {mine: {backend: developer, api_key_env: GEMINI_API_KEY}}
default: {account: mine, model: gemini-3.5-flash, mode: enforce, windows: {day: {prompt_tokens: 10000000}}}
"""


@pytest.mark.parametrize("framework", ["pydantic_ai", "langchain"])
def test_every_call_of_an_agent_is_prepared_and_settled(framework: str, tmp_path: Path) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = [one for one in project["dependencies"] if not one.startswith("google-genai")]
    python = venv(f"client-{framework}", *REQUIREMENTS[framework], *ours)
    (tmp_path / "weighlock.yaml").write_text(f"{YAML}state: {{dir: {tmp_path}/state}}\n")
    (tmp_path / "shot.png").write_bytes(media.picture((640, 480)))
    (tmp_path / "tone.wav").write_bytes(media.wav(1.0))
    with Emulator() as emulator:
        calls = [Answer(calls=({"name": name, "args": {}},)) for name in ("look", "listen")]
        emulator.script.queue(*calls, "a button and a beep", "the same")
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT / "src"),
            "GOOGLE_GEMINI_BASE_URL": emulator.base_url,
            "GEMINI_API_KEY": "k",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        driver = Path(__file__).parent / "frameworks" / "our_client.py"
        run = subprocess.run(
            [str(python), str(driver), framework, str(tmp_path / "weighlock.yaml"), str(tmp_path)],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        asked = [one for one in emulator.requests if "enerateContent" in one.path]

    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert len(asked) == 4
    assert (told["prepared"], told["settled"], told["held"]) == (4, 4, [])
    assert told["spent"] > 0
    assert "a button and a beep" in told["said"][0]
    assert "the same" in told["said"][1]
