"""Tokens of a rectangle: tiles, grids, and their edges."""

from __future__ import annotations

import pytest

from weighlock.media.area import Area, Dearest, Flat, Grid, Tiles

TILES = Tiles(tokens=258, whole_px=384, min_side_px=256, max_side_px=768)


@pytest.mark.parametrize(
    ("width", "height", "tiles"),
    [
        (1, 1, 1),
        (384, 384, 1),
        (385, 384, 5),  # 256 px tiles: 2 × 2 and the overview
        (384, 385, 5),
        (385, 385, 5),
        (540, 360, 7),  # 360 · ⅔ = 240, clamped up to 256: 3 × 2 and one
        (960, 540, 7),
        (700, 1003, 7),
        (1920, 1080, 7),
        (1980, 1380, 7),
        (3008, 2000, 13),  # clamped down to 768
        (3840, 2160, 16),
    ],
)
def test_an_image_is_cut_into_tiles_with_one_overview(width: int, height: int, tiles: int) -> None:
    assert TILES.count(width, height) == 258 * tiles
    assert TILES.count(height, width) == 258 * tiles


@pytest.mark.parametrize(
    ("width", "height", "budget", "tokens"),
    [
        (64, 64, 1120, 33 * 33),
        (2, 1, 1120, 47 * 23),
        (4, 1, 1120, 66 * 16),
        (2048, 1362, 1120, 41 * 27),
        (597, 566, 1120, 34 * 32),
        (400, 301, 1120, 38 * 29),
        (1600, 900, 560, 31 * 17),
        (854, 480, 70, 11 * 6),
        (1280, 720, 280, 22 * 12),
    ],
)
def test_a_grid_keeps_the_aspect_within_the_budget(width: int, height: int, budget: int, tokens: int) -> None:
    assert Grid(budget).count(width, height) == tokens


@pytest.mark.parametrize(("width", "height"), [(10_000, 1), (1, 10_000), (1_121, 1), (1, 1_121), (2**31, 1)])
def test_a_thread_of_pixels_is_one_row_of_cells_and_stays_within_the_budget(width: int, height: int) -> None:
    assert Grid(1120).count(width, height) == 1120


def test_the_last_aspect_with_a_row_of_its_own_meets_the_first_without() -> None:
    assert Grid(70).count(70, 1) == 70
    assert Grid(70).count(71, 1) == 70


@pytest.mark.parametrize("scale", [1, 3, 7, 10_007, 10**12 + 39])
def test_a_root_that_comes_out_exactly_does_not_slip_below_itself_at_any_scale(scale: int) -> None:
    # 1120 · 7/10 = 28² exactly, and 1120 · 10/7 = 1600 = 40² exactly; in floats either may come out a hair short.
    assert Grid(1120).count(7 * scale, 10 * scale) == 28 * 40


def test_where_a_root_is_exact_low_allows_for_a_service_whose_floats_fall_short() -> None:
    low, likely, high = Area(likely=Grid(1120)).count(7, 10)

    assert (low, likely, high) == (27 * 39, 28 * 40, 28 * 40)
    assert Area(likely=Grid(1120)).count(16, 9) == (1100, 1100, 1100)


def test_the_dearest_of_several_shapes_counts() -> None:
    dearest = Dearest((TILES, Grid(1120)))

    assert dearest.count(64, 64) == 1089
    assert dearest.count(3840, 2160) == 16 * 258


def test_bounds_never_cross_the_likely_figure() -> None:
    area = Area(likely=Grid(70), low=Flat(63), high=Flat(64))

    assert area.count(21, 9) == (60, 60, 64)
    assert area.count(16, 9) == (63, 66, 66)


def test_a_guessed_size_is_not_trusted_for_high() -> None:
    grid, tiles = Area(likely=Grid(1120)), Area(likely=TILES)

    assert grid.count(16, 9, size_known=False) == (1100, 1100, 1120)
    assert tiles.count(64, 64, size_known=False) == (258, 258, 258)
