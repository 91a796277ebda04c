"""What meets the SDK works on every google-genai we promise, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from external.venvs import venv

pytestmark = pytest.mark.external

PROJECT = Path(__file__).parents[2]
TESTS = {
    "2.30": ["tests/unit/converters/test_genai_types.py"],
    "2.34": [
        "tests/unit/converters/test_genai_types.py",
        "tests/integration/test_client.py",
        "tests/integration/test_client_entry_points.py",
    ],
}


@pytest.mark.parametrize("version", TESTS)
def test_the_converter_and_the_client_work_on_the_major_before(version: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["service"], *extras["test"]]
    others = [requirement for requirement in needed if not requirement.startswith(("google-genai", "weighlock"))]
    python = venv(f"genai-{version}", f"google-genai=={version}.*", *others)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}

    run = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS[version]],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
