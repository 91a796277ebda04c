"""A picture encoded again: what it is made into, what it will weigh, and what becomes of it in a plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest

from unit.planning.drawn import examined, screenshot
from weighlock.media.facts import FactSource
from weighlock.media.image_sizes import reduced
from weighlock.media.work import ImageWork
from weighlock.planning.admit import admit
from weighlock.planning.levers import EVERY_LEVER, Floor, Lever, LocalWork, Shaping, Target, rungs
from weighlock.planning.limits import Limits
from weighlock.planning.moves import Why
from weighlock.planning.obstacles import obstacles
from weighlock.planning.plan import plan
from weighlock.planning.reencode import _smaller, weigh_made
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Examined, Weighed, weigh
from weighlock.request import Backend, Box, MediaResolution, Modality, Placement
from weighlock.rules import Controls, ModelRules, RuleBook

ALLOWED = Shaping(levers=(Lever.REENCODE,), local_work=LocalWork.ALLOWED)
BYTES_ONLY = replace(ALLOWED, local_work=LocalWork.BYTES_ONLY)


@pytest.fixture
def tiled() -> ModelRules:
    return RuleBook.packaged().for_model("gemini-2.5-flash", Backend.VERTEX, date(2026, 11, 30))


def picture(
    width_px: int = 1920, height_px: int = 1080, *, size_bytes: int = 400_000, mime: str = "image/png"
) -> Examined:
    return replace(examined(screenshot(width_px, height_px), size_bytes=size_bytes), mime=mime)


def words(one: Examined, rules: ModelRules, shaping: Shaping = ALLOWED, **count: bool) -> list[str]:
    part = weigh(one, Controls(), rules)
    return [rung.words for rung in rungs(Lever.REENCODE, part, rules, shaping, Target(), **count)]


def made(one: Examined, rules: ModelRules, limits: Limits, shaping: Shaping = ALLOWED) -> tuple[Weighed, Plan]:
    part = weigh(one, Controls(), rules)
    return part, plan([part], rules, shaping, lambda load: admit(load, limits, None), [Wish()])


def test_a_region_is_cropped_to_where_that_takes_fewer_tokens_exactly_as_planned(tiled: ModelRules) -> None:
    part, target = weigh(picture(), Controls(), tiled), Target(region=Box(left=10, top=20, right=410, bottom=320))

    def first(shaping: Shaping) -> ImageWork | None:
        found = rungs(Lever.REENCODE, part, tiled, shaping, target, bytes_count=False)
        return next((rung.work for rung in found), None)

    work = ImageWork(mime="image/png", crop=target.region)
    assert first(BYTES_ONLY) == first(ALLOWED) == work
    assert first(replace(ALLOWED, local_work=LocalWork.NEVER)) is None
    alone = weigh(picture(400, 300), Controls(), tiled)
    assert weigh_made(picture(), work, Controls(), tiled).tokens == alone.tokens
    assert alone.total.high < part.total.high


def test_what_is_done_beyond_a_crop_is_done_on_top_of_it(tiled: ModelRules) -> None:
    part, region = weigh(picture(), Controls(), tiled), Box(left=0, top=0, right=1000, bottom=1000)

    works = [rung.work for rung in rungs(Lever.REENCODE, part, tiled, ALLOWED, Target(region=region))]

    cut = [work for work in works if work and work.crop == region]
    assert len(cut) > 3
    assert works[: len(cut)] == cut
    assert all((work.max_width_px or 0) <= 1000 for work in cut)


def test_byte_targets_of_a_region_start_from_what_its_pixels_may_take(tiled: ModelRules) -> None:
    part, region = weigh(picture(1000, 1000), Controls(), tiled), Box(left=0, top=0, right=300, bottom=300)

    works = [rung.work for rung in rungs(Lever.REENCODE, part, tiled, ALLOWED, Target(region=region))]

    taken = weigh_made(part.examined, ImageWork(mime="image/png", crop=region), Controls(), tiled).examined.size_bytes
    assert taken is not None
    assert taken // 2 in {work.max_bytes for work in works if work and work.crop == region}


def test_a_crop_that_saves_nothing_is_none(rules: ModelRules) -> None:
    part = weigh(picture(1000, 1000), Controls(), rules)
    target = Target(region=Box(left=0, top=0, right=500, bottom=500))
    limits = Limits(prompt_tokens=1)

    found = plan([part], rules, ALLOWED, lambda load: admit(load, limits, None), [Wish(target=target)])

    assert not found.steps
    assert not found.works


def test_it_comes_last_and_is_known_by_its_name() -> None:
    assert EVERY_LEVER[-1] is Lever("reencode")


def test_pixels_go_where_that_crosses_the_edge_of_a_tile(tiled: ModelRules) -> None:
    found = words(picture(), tiled, bytes_count=False)

    assert found == ["scaled to 512×288", "scaled to 455×256", "scaled to 384×216"]


def test_on_a_grid_fewer_pixels_save_nothing_and_are_not_offered(rules: ModelRules) -> None:
    assert words(picture(4_000, 3_000), rules, bytes_count=False) == []


def test_nobody_shrinks_a_picture_for_a_model_nothing_is_known_of() -> None:
    unknown = RuleBook.packaged().for_model("gemini-9-unknown", Backend.VERTEX, date(2026, 11, 30))

    assert words(picture(), unknown, bytes_count=False) == []


def test_what_a_limit_is_decided_on_says_whether_pixels_save_anything(old_rules: ModelRules) -> None:
    assert old_rules.backend is Backend.DEVELOPER
    high = Controls(media_resolution=MediaResolution.HIGH)

    part = weigh(picture(), high, old_rules)
    found = list(rungs(Lever.REENCODE, part, old_rules, ALLOWED, Target(), bytes_count=False))

    assert weigh_made(part.examined, found[0].work or ImageWork(), high, old_rules).total.high < part.total.high
    assert words(picture(), old_rules, bytes_count=False) == []


def test_a_floor_holds_for_pixels_as_for_levels(tiled: ModelRules) -> None:
    def floored(level: MediaResolution) -> list[str]:
        shaping = replace(ALLOWED, floors={Modality.IMAGE: Floor(resolution=level)})
        return words(picture(), tiled, shaping, bytes_count=False)

    assert floored(MediaResolution.HIGH) == []
    assert floored(MediaResolution.MEDIUM)[-1] == "scaled to 384×216"


@pytest.mark.parametrize(
    ("shaping", "offered"),
    [
        (replace(ALLOWED, local_work=LocalWork.NEVER), []),
        (BYTES_ONLY, ["at most 200,000 bytes", "at most 100,000 bytes", "at most 50,000 bytes"]),
    ],
)
def test_local_work_says_what_may_be_done_for_bytes(shaping: Shaping, offered: list[str], tiled: ModelRules) -> None:
    assert words(picture(), tiled, shaping) == offered


def test_only_bytes_that_are_sent_can_be_made_fewer(tiled: ModelRules) -> None:
    part = weigh(picture(), Controls(placement=Placement.URI), tiled)

    assert list(rungs(Lever.REENCODE, part, tiled, ALLOWED, Target())) == []


def test_a_size_that_was_only_guessed_is_not_scaled(tiled: ModelRules) -> None:
    guessed = replace(screenshot(), size_source=FactSource.ASSUMED)

    assert words(replace(picture(), facts=guessed), tiled, bytes_count=False) == []


@pytest.mark.parametrize(
    ("mime", "width_px", "becomes"),
    [
        ("image/jpeg", 1920, "image/jpeg"),
        ("image/heic", 1920, "image/jpeg"),
        ("image/png", 1920, "image/webp"),
        ("image/webp", 1920, "image/webp"),
        ("image/png", 16_800, "image/png"),
    ],
)
def test_fewer_bytes_come_in_a_format_that_loses_no_transparency(
    mime: str, width_px: int, becomes: str, rules: ModelRules
) -> None:
    part = weigh(picture(width_px, 1_000, mime=mime, size_bytes=8_000_000), Controls(), rules)

    (first, *_) = rungs(Lever.REENCODE, part, rules, BYTES_ONLY, Target())

    assert first.work == ImageWork(mime=becomes, max_bytes=4_000_000)


def test_the_target_is_what_a_part_weighs_in_bytes_and_no_token_changes(rules: ModelRules) -> None:
    before, found = made(picture(size_bytes=10_000_000), rules, Limits(bytes=2_000_000), BYTES_ONLY)

    assert found.fits
    assert found.parts[0].examined.size_bytes == 1_250_000
    assert found.parts[0].total == before.total
    (step,) = found.steps
    assert (step.words, step.saved.high, step.saved_bytes) == ("at most 1,250,000 bytes", 0, 8_750_000)
    assert found.works == {0: ImageWork(mime="image/webp", max_bytes=1_250_000)}


def test_a_target_whose_pixels_may_cost_more_is_not_taken(tiled: ModelRules) -> None:
    """Scaled down a little, 1020×766 is three tiles wide and no longer two."""
    before, found = made(picture(1020, 766), tiled, Limits(bytes=300_000), BYTES_ONLY)
    work = ImageWork(mime="image/webp", max_bytes=200_000)

    assert weigh_made(before.examined, work, Controls(), tiled).total.high > before.total.high
    assert not found.fits
    assert not found.steps


@pytest.mark.parametrize("size", [(4032, 3024), (3024, 4032), (1024, 768), (1920, 1080), (1366, 768), (1170, 2532)])
def test_photographs_and_screens_come_within_any_target(
    size: tuple[int, int], rules: ModelRules, tiled: ModelRules
) -> None:
    for one in (rules, tiled):
        assert len(words(picture(*size, size_bytes=6_400_000), one, BYTES_ONLY)) == 7


def test_tokens_and_bytes_are_both_brought_down_no_further_than_needed(tiled: ModelRules) -> None:
    limits = Limits(prompt_tokens=1_300, bytes=250_000)

    before, found = made(picture(), tiled, limits)

    assert found.fits
    assert found.parts[0].total.high == 1_290 < before.total.high
    assert found.works == {0: ImageWork(mime="image/webp", max_width_px=512, max_height_px=288, max_bytes=150_026)}


def test_nothing_stays_that_lowers_nothing_where_bytes_cannot_be_reached(tiled: ModelRules) -> None:
    _, found = made(picture(), tiled, Limits(bytes=10), BYTES_ONLY)

    assert not found.fits
    assert found.parts[0].examined.size_bytes == 50_000


def test_fewer_pixels_are_counted_with_the_bytes_they_may_take(tiled: ModelRules) -> None:
    part = weigh(picture(size_bytes=9_000), Controls(), tiled)
    work = ImageWork(mime="image/png", max_width_px=512, max_height_px=288)

    assert (weigh_made(part.examined, work, Controls(), tiled).examined.size_bytes or 0) >= 512 * 288 * 4


def test_a_picture_the_service_takes_not_inline_is_made_one_it_takes(tiled: ModelRules) -> None:
    before, found = made(picture(size_bytes=20_000_000), tiled, Limits(), BYTES_ONLY)
    _, never = made(picture(size_bytes=20_000_000), tiled, Limits(), replace(BYTES_ONLY, local_work=LocalWork.NEVER))

    assert before.refused
    assert not found.parts[0].refused
    assert [(step.words, step.why) for step in found.steps] == [("at most 5,000,000 bytes", Why.TAKEN)]
    assert never.parts[0] == before


def test_what_is_over_goes_on_from_what_the_service_takes(tiled: ModelRules) -> None:
    _, found = made(picture(size_bytes=20_000_000), tiled, Limits(prompt_tokens=1_300))

    assert found.fits
    assert found.works[0] == ImageWork(mime="image/webp", max_bytes=5_000_000, max_width_px=512, max_height_px=288)


def test_what_stands_in_the_way_is_named(tiled: ModelRules) -> None:
    limits = Limits(prompt_tokens=100)
    _, bytes_only = made(picture(), tiled, limits, BYTES_ONLY)
    floor = replace(ALLOWED, floors={Modality.IMAGE: Floor(resolution=MediaResolution.HIGH)})
    _, floored = made(picture(), tiled, limits, floor)
    _, free = made(picture(), tiled, limits)

    def knobs(found: Plan, shaping: Shaping) -> list[str | None]:
        return [one.knob for one in obstacles(found, tiled, shaping) if one.lever is Lever.REENCODE]

    assert knobs(bytes_only, BYTES_ONLY) == ["local_work"]
    assert knobs(floored, floor) == ["media.image.floor"]
    assert knobs(free, ALLOWED) == []


def test_rungs_get_ever_lighter(tiled: ModelRules) -> None:
    part = weigh(picture(4_000, 3_000), Controls(), tiled)

    totals = [
        weigh_made(part.examined, rung.work, Controls(), tiled).total.high
        for rung in rungs(Lever.REENCODE, part, tiled, ALLOWED, Target(), bytes_count=False)
        if rung.work is not None
    ]

    assert all(a > b for a, b in pairwise([part.total.high, *totals]))


@pytest.mark.parametrize("size", [(4032, 3024), (1024, 768), (1366, 768), (997, 613), (613, 997), (5_000, 40)])
def test_every_size_a_byte_target_can_end_at_is_looked_at(size: tuple[int, int]) -> None:
    looked_at = set(_smaller(*size, 50_000))

    for thousandth in range(1, 1_001):
        width, height = reduced(size, thousandth / 1_000)
        if width * height * 6 >= 51_000:
            assert (width, height) in looked_at
