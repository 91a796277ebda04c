"""Sizes a planner may offer: only those that save tokens, each the largest for its price."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighlock.errors import UnsupportedMedia
from weighlock.media.area import Area, Dearest, Flat, Grid, Tiles
from weighlock.media.image_sizes import fitted, lighter_sizes, made_size, within
from weighlock.media.work import ImageWork
from weighlock.request import Box

TILES = Area(likely=Tiles(tokens=258, whole_px=384, min_side_px=256, max_side_px=768))
SMALL_TILES = Area(likely=Tiles(tokens=10, whole_px=20, min_side_px=8, max_side_px=32))
sides = st.integers(1, 200)


def test_full_hd_costs_what_720p_costs_and_the_first_size_that_saves_is_far_below() -> None:
    assert TILES.likely.count(1280, 720) == TILES.likely.count(1920, 1080) == 1806
    assert lighter_sizes(1920, 1080, TILES) == [(512, 288, 1290), (455, 256, 774), (384, 216, 258)]
    assert lighter_sizes(384, 384, TILES) == []


@pytest.mark.parametrize("area", [Area(likely=Flat(258)), Area(likely=Grid(1120))])
@given(width=st.integers(1, 20_000), height=st.integers(1, 20_000))
def test_where_size_costs_nothing_nothing_is_offered(area: Area, width: int, height: int) -> None:
    assert lighter_sizes(width, height, area) == []


@given(width=sides, height=sides)
def test_each_offer_is_the_largest_of_its_price_and_none_is_missing(width: int, height: int) -> None:
    """Against every size there is, one by one."""
    expected, least = [], SMALL_TILES.likely.count(width, height)
    for longest in range(max(width, height) - 1, 0, -1):
        smaller = fitted((width, height), longest, longest)
        tokens = SMALL_TILES.likely.count(*smaller)
        if tokens < least:
            expected.append((*smaller, tokens))
            least = tokens

    assert lighter_sizes(width, height, SMALL_TILES) == expected


@given(width=st.integers(1, 6000), height=st.integers(1, 6000))
@settings(max_examples=60, deadline=None)
def test_offers_fall_in_size_and_price_and_keep_the_aspect(width: int, height: int) -> None:
    before = (width, height, TILES.likely.count(width, height))

    for now in lighter_sizes(width, height, TILES):
        assert now[0] <= before[0]
        assert now[1] <= before[1]
        assert now[2] < before[2]
        assert abs(now[0] * height - now[1] * width) <= max(width, height)
        before = now


def test_the_dearest_of_several_shapes_falls_only_as_far_as_its_flat_one() -> None:
    area = Area(likely=Dearest((TILES.likely, Grid(1120))))  # type: ignore[arg-type]  # `TILES` is made of tiles

    offered = lighter_sizes(4000, 3000, area)

    assert [tokens for *_, tokens in offered] == sorted((t for *_, t in offered), reverse=True)
    assert offered[-1][2] >= 1000


def test_a_huge_panorama_is_answered_at_once() -> None:
    begin = time.process_time()

    assert lighter_sizes(65_000, 40_000, TILES)
    assert lighter_sizes(65_000, 800, TILES)

    assert time.process_time() - begin < 1


@given(width=st.integers(1, 70_000), height=st.integers(1, 70_000), most=st.tuples(sides, sides))
def test_fitting_never_enlarges_and_keeps_the_aspect(width: int, height: int, most: tuple[int, int]) -> None:
    wide, high = fitted((width, height), *most)

    assert 1 <= wide <= min(width, most[0])
    assert 1 <= high <= min(height, most[1])
    assert (wide, high) == (width, height) or wide == most[0] or high == most[1]
    assert wide == 1 or high == 1 or abs(wide * height - high * width) <= max(width, height)
    assert fitted((wide, high), *most) == (wide, high)


def test_work_is_a_crop_and_then_a_fit() -> None:
    work = ImageWork(crop=Box(left=10, top=10, right=2000, bottom=110), max_width_px=99)

    assert made_size((208, 300), work) == (99, 50)
    with pytest.raises(UnsupportedMedia):
        within(Box(left=5, top=5, right=5, bottom=9), (10, 10))
