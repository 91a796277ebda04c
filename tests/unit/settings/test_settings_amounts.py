"""Sizes, durations and clips as people write them."""

from __future__ import annotations

import pytest

from weighlock.settings import Clip
from weighlock.settings.amounts import parse_clip, parse_seconds, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("100MB", 100_000_000), ("2GB", 2_000_000_000), ("15 mb", 15_000_000), ("1.5KiB", 1536), ("7", 7), (7, 7)],
)
def test_a_size_counts_mb_in_thousands_and_mib_in_1024s(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1.5B", "10XB", "1e9", True, None, [1]])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"size|whole number"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("1.5m", 90.0), ("2h", 7200.0), ("7d", 604_800.0), (3, 3)]
)
def test_a_duration_is_in_seconds(text: object, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("last 60s", (180.0, 240.0)),
        ("last 10m", (0.0, 240.0)),
        ("first 2m", (0.0, 120.0)),
        ("10s-70s", (10.0, 70.0)),
        ("10-", (10.0, 240.0)),
        ("5m-6m", (240.0, 240.0)),
        ("around 95s", (65.0, 125.0)),
        ("30s around 95s", (80.0, 110.0)),
        ("around 10s", (0.0, 60.0)),
        ("around 4m", (180.0, 240.0)),
        ("10m around 95s", (0.0, 240.0)),
        ("around 250s", (220.0, 240.0)),
        ("around 5m", (240.0, 240.0)),
    ],
)
def test_a_clip_is_a_span_within_the_recording(text: str, span: tuple[float, float]) -> None:
    assert parse_clip(text).span(240.0) == span


@pytest.mark.parametrize(
    "text", ["last 60s", "first 120s", "10s-70s", "10s-", "0s-0.5s", "around 95s", "5s around 0.5s"]
)
def test_a_clip_is_printed_as_it_is_read(text: str) -> None:
    assert str(parse_clip(text)) == text
    assert parse_clip(str(parse_clip(text))) == parse_clip(text)


@pytest.mark.parametrize(
    "text",
    ["", "last", "last 0s", "middle 5s", "70s-10s", "-", "abc", "1-2-3", "around", "0s around 5s", "1s 2s around 3s"],
)
def test_what_is_no_clip_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_clip(text)


def test_a_clip_holds_what_it_says() -> None:
    assert parse_clip("last 60s") == Clip(last_s=60.0)
