"""The worked example as it is shown: its figures, and that each receipt adds up to the emulator's bill."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_demo_shows_what_the_line_saves(columns: str) -> None:
    begun = time.monotonic()
    environ = {**os.environ, "COLUMNS": columns}
    done = subprocess.run(
        [sys.executable, "-m", "weighlock", "demo"], capture_output=True, text=True, env=environ, check=False
    )
    taken_s = time.monotonic() - begun

    assert done.returncode == 0, done.stderr
    assert taken_s < 60  # 30 s on a machine of its own
    assert all(len(line) <= int(columns) for line in done.stdout.splitlines())
    rows: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        found = re.match(r" (image|video|audio|total) +(.*)", line)
        if found:
            rows.setdefault(found[1], []).append(found[2])
    figures = {name: [re.findall(r"[\d,]+", row) for row in told] for name, told in rows.items()}
    beside = {name: figures[name][0] for name in ("image", "video", "audio")}
    assert [told[-1] for told in beside.values()] == ["1,100", "1,980", "1,500"]
    assert {"15,840"} <= {*beside["video"]}
    assert {"6,000"} <= {*beside["audio"]}
    assert beside["image"] == ["1,100"] * 4
    assert "7,920" in figures["video"][1]  # sharper, within the budget
    assert "Lowest reachable total" in re.sub(r"\s+", " ", done.stdout)
    assert "Saved: 18," in done.stdout
