"""The ladder of every lever on one part."""

from __future__ import annotations

import pytest

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import Facts
from weighlock.planning.levers import Floor, Lever, LocalWork, Shaping, Target, request_levels, rungs, standing
from weighlock.planning.weigh import weigh
from weighlock.request import Clip, Content, MediaResolution, Modality
from weighlock.rules import Controls, ModelRules


def words(
    lever: Lever,
    facts: Facts,
    rules: ModelRules,
    *,
    controls: Controls | None = None,
    shaping: Shaping | None = None,
    target: Target | None = None,
) -> list[str]:
    part = weigh(examined(facts), controls or Controls(), rules)
    return [rung.words for rung in rungs(lever, part, rules, shaping or Shaping(), target or Target())]


def floored(modality: Modality, floor: Floor) -> Shaping:
    return Shaping(floors={modality: floor})


def test_resolution_goes_down_to_the_floor(rules: ModelRules) -> None:
    shaping = floored(Modality.IMAGE, Floor(resolution=MediaResolution.MEDIUM))

    found = words(Lever.RESOLUTION, screenshot(), rules, shaping=shaping)

    assert found[-1] == "resolution medium"


def test_no_rung_is_finer_than_what_the_caller_asked_for(rules: ModelRules) -> None:
    controls = Controls(part_resolution=MediaResolution.MEDIUM, fps=1, start_offset_s=10, end_offset_s=50)

    assert words(Lever.RESOLUTION, screenshot(), rules, controls=controls) == ["resolution low"]
    assert words(Lever.FPS, recording(60), rules, controls=controls) == ["fps 0.5", "fps 0.2", "fps 0.1"]
    assert words(Lever.CLIP, recording(60), rules, controls=controls) == [
        "clip 20s-50s",
        "clip 30s-50s",
        "clip 40s-50s",
    ]


def test_a_target_is_gone_to_at_once_and_left_only_below(rules: ModelRules) -> None:
    target = Target(fps=0.5, span_s=(30, 60), resolution=MediaResolution.LOW)

    assert words(Lever.FPS, recording(60), rules, target=target) == ["fps 0.5", "fps 0.2", "fps 0.1"]
    assert words(Lever.CLIP, recording(60), rules, target=target) == ["clip last 30s", "clip last 20s", "clip last 10s"]
    assert words(Lever.RESOLUTION, recording(60), rules, target=target) == ["resolution low"]


@pytest.mark.parametrize(
    ("target", "floor", "found"),
    [
        (Target(content=Content.SCREEN), 0.1, ["fps 0.5", "fps 0.2", "fps 0.1"]),
        (Target(content=Content.TALK), 0.1, ["fps 0.2", "fps 0.1"]),
        (Target(content=Content.TALK), 0.5, ["fps 0.5"]),
        (Target(content=Content.MOTION), 0.1, ["fps 2", "fps 1"]),
        (Target(content=Content.MOTION), 2, ["fps 2"]),
        (Target(content=Content.MOTION, fps=0.5), 0.1, ["fps 0.5", "fps 0.2", "fps 0.1"]),
        (Target(content=Content.SCREEN, fps=2), 1, ["fps 2", "fps 1"]),
    ],
)
def test_what_a_film_shows_says_how_far_its_rate_goes_where_none_is_named(
    target: Target, floor: float, found: list[str], rules: ModelRules
) -> None:
    shaping = floored(Modality.VIDEO, Floor(fps=floor))

    assert words(Lever.FPS, recording(60), rules, controls=Controls(fps=5), shaping=shaping, target=target) == found
    assert target.fps or not any(standing(weigh(examined(recording(60)), Controls(), rules), rules, shaping, target))


def test_a_target_below_the_floor_is_no_rung(rules: ModelRules) -> None:
    shaping = floored(Modality.VIDEO, Floor(fps=1, seconds=60))
    target = Target(fps=0.5, span_s=(30, 60))

    assert words(Lever.FPS, recording(90), rules, shaping=shaping, target=target) == []
    assert words(Lever.CLIP, recording(90), rules, shaping=shaping, target=target) == ["clip last 60s"]


def test_a_window_the_caller_s_clip_does_not_hold_is_not_gone_to(rules: ModelRules) -> None:
    controls = Controls(end_offset_s=40)

    found = words(Lever.CLIP, recording(60), rules, controls=controls, target=Target(span_s=(30, 60)))

    assert found == ["clip 10s-40s", "clip 20s-40s", "clip 30s-40s"]


@pytest.mark.parametrize(
    ("instant_s", "found"),
    [
        (95.0, ["clip 65s-125s", "clip 80s-110s", "clip 85s-105s", "clip 90s-100s"]),
        (10.0, ["clip 0s-60s", "clip 0s-30s", "clip 0s-20s", "clip 5s-15s"]),
        (240.0, ["clip last 60s", "clip last 30s", "clip last 20s", "clip last 10s"]),
    ],
)
def test_a_clip_around_an_instant_narrows_about_it(instant_s: float, found: list[str], rules: ModelRules) -> None:
    target = Target(span_s=Clip(around_s=instant_s).span(240), around_s=instant_s)

    assert words(Lever.CLIP, recording(240), rules, target=target) == found


def test_sound_is_dropped_only_where_there_is_some(rules: ModelRules) -> None:
    assert words(Lever.DROP_AUDIO, recording(60), rules) == ["without its sound"]
    assert words(Lever.DROP_AUDIO, recording(60, sound=False), rules) == []
    assert words(Lever.DROP_AUDIO, recording(60), rules, controls=Controls(drop_sound=True)) == []


def test_pages_are_kept_from_the_first_one_asked_for(rules: ModelRules) -> None:
    assert words(Lever.PAGES, paper(12), rules)[:2] == ["its first 10 pages", "its first 7 pages"]
    assert words(Lever.PAGES, paper(12), rules, controls=Controls(first_page=3, last_page=6)) == [
        "pages 3-5",
        "pages 3-4",
        "page 3",
    ]


@pytest.mark.parametrize(("lever", "facts"), [(Lever.PAGES, paper(12)), (Lever.CLIP, song(60))])
def test_what_the_model_is_not_known_to_honour_is_local_work(lever: Lever, facts: Facts, old_rules: ModelRules) -> None:
    part = weigh(examined(facts), Controls(), old_rules)
    local = Shaping(local_work=LocalWork.ALLOWED)

    assert list(rungs(lever, part, old_rules, Shaping(), Target())) == []
    assert all(rung.local for rung in rungs(lever, part, old_rules, local, Target()))


def test_a_level_of_the_whole_request_respects_the_finest_floor(old_rules: ModelRules) -> None:
    parts = [weigh(examined(facts), Controls(), old_rules) for facts in (screenshot(), recording(60))]
    shaping = floored(Modality.IMAGE, Floor(resolution=MediaResolution.MEDIUM))
    high, medium, low = MediaResolution.HIGH, MediaResolution.MEDIUM, MediaResolution.LOW

    assert list(request_levels(parts, shaping, [Target(), Target()])) == [high, medium]
    assert list(request_levels(parts, shaping, [Target(), Target(resolution=low)])) == [low]
    assert list(request_levels([], shaping, [])) == []


def test_what_holds_always_is_set_only_where_the_caller_is_silent(rules: ModelRules) -> None:
    target = Target(fps=0.5, span_s=(30, 60), resolution=MediaResolution.LOW, always=True)
    silent = weigh(examined(recording(60)), Controls(), rules)
    asked = weigh(
        examined(recording(60)),
        Controls(fps=2, start_offset_s=1, part_resolution=MediaResolution.HIGH),
        rules,
    )

    assert [lever for lever, _ in standing(silent, rules, Shaping(), target)] == [
        Lever.RESOLUTION,
        Lever.FPS,
        Lever.CLIP,
    ]
    assert list(standing(asked, rules, Shaping(), target)) == []
