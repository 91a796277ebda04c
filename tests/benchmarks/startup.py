"""From the shell to the first answer, as whole processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import media
from benchmarks.harness import Comparison, Operations, as_installed, medians, timed


def startup(folder: Path, rounds: int) -> Iterator[Comparison]:
    """`weighlock check one.png` against the imports it cannot do without."""
    picture = folder / "one.png"
    picture.write_bytes(media.picture((1280, 720)))
    commands = {
        "weighlock check": [sys.executable, "-m", "weighlock", "check", str(picture)],
        "import pydantic_settings, rich": [sys.executable, "-c", "import pydantic_settings, rich"],
        "import weighlock": [sys.executable, "-c", "import weighlock"],
        "bare python": [sys.executable, "-c", "pass"],
    }
    operations: Operations = {
        name: partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True, env=as_installed())
        for name, command in commands.items()
    }
    sdk = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "weighlock", "check", str(picture)],
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    loaded = "google.genai" in sdk
    yield Comparison(
        task="start-up",
        unit="ms",
        baseline="import pydantic_settings, rich",
        medians=medians(timed(operations, rounds=rounds * 2), scale=1000),
        goals={"weighlock check": 1.8},
        notes=(f"SDK imported: {'yes' if loaded else 'no'}",),
    )
