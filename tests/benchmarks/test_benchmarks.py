"""The benchmarks run and print figures. What the figures are is not asserted: machines are noisy."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import files, requests, startup, uploads
from benchmarks.harness import as_table

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize(
    "bench",
    [files.mime, files.images, files.video, files.pdf, requests.requests, startup.startup, uploads.uploads],
)
def test_a_comparison_has_a_positive_figure_for_each_way(bench: object, tmp_path: Path) -> None:
    comparisons = list(bench(tmp_path, 1))  # type: ignore[operator]  # one of the functions above

    assert comparisons
    for comparison in comparisons:
        assert all(value > 0 for value in comparison.medians.values())
        assert comparison.task in as_table(comparison)
        assert comparison.as_dict()["ratios"][comparison.baseline] == 1
