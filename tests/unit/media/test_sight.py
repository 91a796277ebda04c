"""How small a picture is seen: known grids, and what holds for every shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.media.area import Dearest, Flat, Grid, Shape, Tiles
from weighlock.media.sight import seen_size, stride

TILES = Tiles(tokens=258, whole_px=384, min_side_px=256, max_side_px=768)
SIDE = st.integers(min_value=1, max_value=2**16)
ONE_SHAPE = st.one_of(
    st.integers(0, 5000).map(Flat), st.integers(1, 5000).map(Grid), st.just(TILES),
)  # fmt: skip
SHAPE: st.SearchStrategy[Shape] = st.one_of(
    ONE_SHAPE, st.lists(ONE_SHAPE, min_size=1, max_size=3).map(lambda shapes: Dearest(tuple(shapes)))
)


@pytest.mark.parametrize(
    ("size", "shape", "seen"),
    [
        ((1920, 1080), Grid(1120), (1920, 1080)),  # 44 × 25 cells are 2112 × 1200 px: nothing is lost
        ((1920, 1080), Grid(280), (1024, 576)),  # 22 × 12: 1056 × 576
        ((1280, 720), Grid(70), (512, 288)),  # 11 × 6: 528 × 288
        ((720, 1280), Grid(70), (288, 512)),
        ((10_000, 10), Grid(70), (3360, 3)),  # one row of 70
        ((1920, 1080), Flat(258), (768, 432)),  # 16 × 16 tokens, two of the 258 are not of the picture
        ((1920, 1080), Flat(64), (384, 216)),
        ((300, 200), Flat(258), (300, 200)),
        ((3840, 2160), TILES, (3840, 2160)),  # a tile of 768 px is seen whole
        ((1920, 1080), Dearest((TILES, Grid(70))), (512, 288)),
    ],
)
def test_known_sizes_at_48_pixels_a_token(size: tuple[int, int], shape: Shape, seen: tuple[int, int]) -> None:
    assert seen_size(size, shape, 48) == seen


@given(SIDE, SIDE, SHAPE, st.integers(1, 64))
def test_a_picture_is_never_seen_larger_than_it_is_and_keeps_its_aspect(
    width: int, height: int, shape: Shape, cell_px: int
) -> None:
    seen_width, seen_height = seen_size((width, height), shape, cell_px)

    assert 1 <= seen_width <= width
    assert 1 <= seen_height <= height
    if min(seen_width, seen_height) > 1:  # a thread keeps one pixel, whatever its aspect
        assert abs(seen_width * height - seen_height * width) <= max(width, height)


@given(SIDE, SIDE, st.integers(1, 2500), st.integers(1, 64))
def test_a_grid_shows_no_more_pixels_than_its_tokens_stand_for(
    width: int, height: int, budget: int, cell_px: int
) -> None:
    seen_width, seen_height = seen_size((width, height), Grid(budget), cell_px)

    assert seen_width * seen_height <= Grid(budget).count(width, height) * cell_px**2


@given(SIDE, SIDE, st.integers(1, 2500), st.integers(0, 2500))
def test_a_larger_budget_never_shows_less(width: int, height: int, budget: int, more: int) -> None:
    few, many = (seen_size((width, height), Flat(tokens), 48) for tokens in (budget, budget + more))

    assert few[0] <= many[0]
    assert few[1] <= many[1]


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_frames_are_left_out_evenly_and_no_more_than_needed(frames: int, most: int) -> None:
    every = stride(frames, most)

    assert -(-frames // every) <= most
    assert every == 1 or -(-frames // (every - 1)) > most
