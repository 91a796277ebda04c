"""Environments of their own for packages that cannot live in ours: made once, kept, found again by what they hold."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import venv as stdlib_venv
from pathlib import Path

import pytest

_INSTALL_TIMEOUT_S = 300


def venv(name: str, *requirements: str) -> Path:
    """The Python of an environment that holds exactly `requirements` and what they need.

    Kept in the folder `WEIGHLOCK_VENVS` names, else beside other temporary files. Callers in several threads or
    processes wait for one another. Skips the test, with pip's last words, where pip cannot install.
    """
    digest = hashlib.sha256("\n".join((sys.version, *sorted(requirements))).encode()).hexdigest()[:12]
    folder = _home() / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    python, ready = folder / "bin" / "python", folder / "ready"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            stdlib_venv.create(folder, with_pip=True, symlinks=True)
            _install(name, python, requirements)
            ready.touch()
    return python


def _home() -> Path:
    chosen = os.environ.get("WEIGHLOCK_VENVS")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"weighlock-venvs-{os.getuid()}"


def _install(name: str, python: Path, requirements: tuple[str, ...]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    try:
        subprocess.run(
            [*command, *requirements], check=True, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the environment for {name} was not there after {_INSTALL_TIMEOUT_S} s")
    except subprocess.CalledProcessError as failed:
        errors = [line for line in failed.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        pytest.skip(f"no environment for {name}: " + re.sub(r"\w+://\S+", "(the index)", errors[-1]))


def npm_package(name: str, version: str) -> Path:
    """The folder of an npm package, with what it needs beside it; kept as environments are.

    Skips the test, with npm's last words, where npm cannot install.
    """
    folder = _home() / f"npm-{name.strip('@').replace('/', '-')}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]
            try:
                subprocess.run(
                    [*command, f"{name}@{version}"],
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=_INSTALL_TIMEOUT_S,
                )
            except FileNotFoundError:
                pytest.skip("there is no npm")
            except subprocess.TimeoutExpired:
                pytest.skip(f"{name} was not there after {_INSTALL_TIMEOUT_S} s")
            except subprocess.CalledProcessError as failed:
                pytest.skip(f"no {name}: " + re.sub(r"\w+://\S+", "(the registry)", failed.stderr[-300:]))
            (folder / "ready").touch()
    return folder / "node_modules" / name
