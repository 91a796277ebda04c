"""The plan on the example it was made for: a bug report with a screenshot, a recording and a paragraph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import Facts, TextFacts
from weighlock.media.work import DocumentWork
from weighlock.planning.admit import Verdict, admit
from weighlock.planning.levers import EVERY_LEVER, Floor, Lever, LocalWork, Shaping, Target
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.moves import Why
from weighlock.planning.obstacles import obstacles, untaken
from weighlock.planning.plan import filled_after, moves_to_keep, plan
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import MediaResolution, Modality
from weighlock.rules import Controls, ModelRules

SCREENSHOT, RECORDING, WORDS = range(3)
TRIAGE = Shaping(
    levers=EVERY_LEVER,
    floors={
        Modality.IMAGE: Floor(resolution=MediaResolution.HIGH),
        Modality.VIDEO: Floor(fps=0.2, seconds=20),
    },
)
LAST_MINUTE = Target(fps=0.5, span_s=(180, 240), resolution=MediaResolution.LOW)
LIMITS = Limits(prompt_tokens=8_000, tokens={Modality.VIDEO: 2_500, Modality.AUDIO: 1_600, Modality.IMAGE: 2_300})


def judge_by(limits: Limits) -> Callable[[Load], Verdict]:
    return lambda load: admit(load, limits, None)


def weighed(rules: ModelRules, *media: Facts) -> list[Weighed]:
    labels = ("screenshot.png", "recording.mp4", "words", "more")
    return [weigh(examined(facts, label=label), Controls(), rules) for facts, label in zip(media, labels, strict=False)]


def triage(
    rules: ModelRules, limits: Limits = LIMITS, *, pinned: bool = False, always: bool = False, shaping: Shaping = TRIAGE
) -> tuple[list[Weighed], Plan]:
    parts = weighed(rules, screenshot(), recording(240), TextFacts(chars=300))
    wishes = [Wish(pinned=pinned), Wish(target=replace(LAST_MINUTE, always=always)), Wish()]
    return parts, plan(parts, rules, shaping, judge_by(limits), wishes)


def media_tokens(parts: Sequence[Weighed]) -> int:
    return sum(part.total.likely for part in parts[:WORDS])


@pytest.mark.parametrize("always", [False, True])
def test_the_recording_becomes_its_last_minute_and_the_screenshot_stays(rules: ModelRules, always: bool) -> None:
    before, made = triage(rules, always=always)

    assert before[RECORDING].of(Modality.VIDEO).likely + before[RECORDING].of(Modality.AUDIO).likely == 21_840
    assert before[SCREENSHOT].total.likely == 1_100
    assert made.fits
    assert made.parts[RECORDING].of(Modality.VIDEO).likely == pytest.approx(1_980, abs=66)
    assert made.parts[RECORDING].of(Modality.AUDIO).likely == pytest.approx(1_500, abs=25)
    assert made.parts[SCREENSHOT] == before[SCREENSHOT]
    assert {step.words for step in made.steps} >= {"fps 0.5", "clip last 60s"}
    assert {step.why for step in made.steps} == {Why.ALWAYS if always else Why.NEEDED}


def test_levers_are_moved_in_the_endpoint_s_order(rules: ModelRules) -> None:
    limits = Limits(prompt_tokens=12_000)
    clip_first = replace(TRIAGE, levers=(Lever.CLIP, Lever.FPS))

    _, by_rate = triage(rules, limits)
    _, by_clip = triage(rules, limits, shaping=clip_first)

    assert [step.lever for step in by_rate.steps] == [Lever.FPS]
    assert [step.lever for step in by_clip.steps] == [Lever.CLIP]


@pytest.mark.parametrize("limits", [LIMITS, Limits(prompt_tokens=4_500)])
def test_where_only_the_request_has_a_resolution_the_step_says_the_screenshot_fell_too(
    old_rules: ModelRules, limits: Limits
) -> None:
    before, made = triage(old_rules, limits)

    assert made.fits
    assert media_tokens(made.parts) * 15 <= media_tokens(before)
    (step,) = [step for step in made.steps if step.request_wide]
    assert step.parts == (SCREENSHOT, RECORDING)
    assert "lowers screenshot.png, recording.mp4" in step.told
    assert "screenshot.png below its floor" in step.told
    assert ".png" not in step.words


def test_a_pinned_screenshot_keeps_the_resolution_of_the_whole_request(old_rules: ModelRules) -> None:
    before, made = triage(old_rules, pinned=True)

    assert made.fits
    assert media_tokens(made.parts) * 7 <= media_tokens(before)
    assert made.parts[SCREENSHOT] == before[SCREENSHOT]
    assert not any(step.request_wide for step in made.steps)


@pytest.mark.parametrize("model", ["rules", "old_rules"])
def test_no_part_gets_worse_as_the_budget_grows(model: str, request: pytest.FixtureRequest) -> None:
    rules: ModelRules = request.getfixturevalue(model)
    budgets = (500, 1_300, 2_000, 3_000, 4_500, 7_000, 10_000, 14_000, 20_000, 80_000)

    plans = [triage(rules, Limits(prompt_tokens=budget))[1] for budget in budgets]

    for tighter, wider in pairwise(plans):
        assert all(a.total.high <= b.total.high for a, b in zip(tighter.parts, wider.parts, strict=True))
    for made in plans:
        controls = made.parts[RECORDING].controls
        assert controls.fps is None or controls.fps >= 0.2
        assert controls.span_s(240) >= 20
    assert not plans[0].fits
    assert not plans[-1].steps


@pytest.mark.parametrize("limits", [Limits(), LIMITS, Limits(prompt_tokens=5_000), Limits(prompt_tokens=100)])
@pytest.mark.parametrize("levers", [EVERY_LEVER, (Lever.CLIP,), ()])
@pytest.mark.parametrize("model", ["rules", "old_rules"])
def test_every_lever_moved_or_says_why_it_did_not(
    model: str, limits: Limits, levers: tuple[Lever, ...], request: pytest.FixtureRequest
) -> None:
    rules: ModelRules = request.getfixturevalue(model)
    shaping = replace(TRIAGE, levers=levers)

    _, made = triage(rules, limits, shaping=shaping)

    left = untaken(made, rules, shaping)
    told = {(one.part, one.lever) for one in left}
    told |= {(at, step.lever) for step in (*made.steps, *made.passed) for at in step.parts}
    film = {(RECORDING, lever) for lever in (Lever.RESOLUTION, Lever.FPS, Lever.CLIP, Lever.DROP_AUDIO)}
    assert told >= {(SCREENSHOT, Lever.RESOLUTION), *film}
    assert all(one.words for one in left)
    assert [one for one in left if not one.idle] == list(obstacles(made, rules, shaping))
    if limits == Limits() and levers == EVERY_LEVER:
        assert {one.words for one in left if one.part == RECORDING and one.idle} >= {"not needed"}


def test_the_impossible_is_as_light_as_it_gets_and_says_what_stops_it(rules: ModelRules) -> None:
    _, made = triage(rules, Limits(prompt_tokens=100))

    told = {(one.part, one.lever): one.knob for one in obstacles(made, rules, TRIAGE)}

    assert not made.fits
    assert made.verdict.over[0].high == sum(part.total.high for part in made.parts)
    assert told[SCREENSHOT, Lever.RESOLUTION] == "media.image.floor"
    assert told[RECORDING, Lever.FPS] == "media.video.floor.fps"
    assert told[RECORDING, Lever.CLIP] == "media.video.floor.seconds"


def test_a_step_that_is_not_needed_in_the_end_is_told_as_passed(rules: ModelRules) -> None:
    _, made = triage(rules)

    assert [step.words for step in made.passed] == ["fps 0.2"]


def test_what_fits_is_left_alone(rules: ModelRules) -> None:
    before, made = triage(rules, Limits(prompt_tokens=100_000))

    assert list(made.parts) == before
    assert not made.steps
    assert not made.moves


def test_what_could_not_be_weighed_is_left_alone(rules: ModelRules) -> None:
    broken = weigh(replace(examined(song()), facts=None, error=ValueError("x")), Controls(), rules)  # type: ignore[arg-type]
    parts = [broken, *weighed(rules, recording(240))]

    made = plan(parts, rules, TRIAGE, judge_by(Limits(prompt_tokens=5_000)), [Wish(), Wish()])

    assert not made.verdict.over
    assert not made.fits, "what it weighs, nobody knows"
    assert made.parts[0] is broken


def test_older_media_become_notes_by_the_batch_and_the_newest_stay(rules: ModelRules) -> None:
    parts = weighed(rules, *(screenshot() for _ in range(4)))
    wishes = [Wish(earlier=at, removable=at < 2) for at in range(3)] + [Wish()]
    only_history = Shaping(levers=(Lever.HISTORY,))

    made = plan(parts, rules, only_history, judge_by(Limits(prompt_tokens=4_000)), wishes, batch=2)

    assert made.removed == {0, 1}
    assert made.breaks_prefix
    assert made.parts[0].examined.modality is Modality.TEXT
    assert made.parts[3] == parts[3]


def test_what_earlier_turns_decided_is_kept(rules: ModelRules) -> None:
    parts = weighed(rules, screenshot(), screenshot())
    wishes, tight, wide = [Wish(), Wish()], Limits(prompt_tokens=1_500), Limits(prompt_tokens=99_000)
    first = plan(parts, rules, Shaping(), judge_by(tight), wishes)
    kept = moves_to_keep(parts, rules, Shaping(), judge_by(tight), wishes, batch=1, kept=(), memory={})

    later = plan(parts, rules, Shaping(), judge_by(wide), wishes, kept=kept)

    assert first.steps
    assert later.parts == first.parts
    assert {step.why for step in later.steps} == {Why.KEPT}
    assert not later.breaks_prefix


def test_local_work_is_planned_only_where_it_is_allowed(old_rules: ModelRules) -> None:
    parts, limits = weighed(old_rules, paper(200)), Limits(prompt_tokens=3_000)

    wire = plan(parts, old_rules, Shaping(local_work=LocalWork.NEVER), judge_by(limits), [Wish()])
    local = plan(parts, old_rules, Shaping(local_work=LocalWork.ALLOWED), judge_by(limits), [Wish()])

    assert not wire.fits
    assert [one.knob for one in obstacles(wire, old_rules, Shaping(local_work=LocalWork.NEVER))] == [
        None,
        "local_work",
    ]
    assert local.fits
    assert local.works == {0: DocumentWork(first_page=1, last_page=10)}


def test_hundreds_of_pictures_are_planned_by_their_number_only(rules: ModelRules) -> None:
    parts = [
        weigh(examined(screenshot(height_px=1080 - at % 50), label=f"{at}.png"), Controls(), rules) for at in range(600)
    ]
    asked = 0

    def judge(load: Load) -> Verdict:
        nonlocal asked
        asked += 1
        return admit(load, Limits(prompt_tokens=180_000), None)

    made = plan(parts, rules, Shaping(), judge, [Wish()] * len(parts))

    assert made.fits
    assert len(made.steps) == 600
    assert asked < 10 * len(parts)


@pytest.mark.parametrize(("cached", "filled"), [("0.1", "0.5"), ("0.25", "0.5"), ("1", "0.5"), (None, "0.5")])
def test_a_break_of_the_prefix_leaves_half_the_room_taken(cached: str | None, filled: str) -> None:
    assert filled_after(None if cached is None else Decimal(cached)) == Decimal(filled)


@pytest.mark.parametrize("cached", ["0.01", "0.05", "0.09"])
def test_the_cheaper_the_cache_the_deeper_a_break_goes_so_that_it_pays_in_nine_turns(cached: str) -> None:
    cached_price, filled = Decimal(cached), filled_after(Decimal(cached))

    read_anew, saved_a_turn = (1 - cached_price) * filled, cached_price * (1 - filled)

    assert filled < Decimal("0.5")
    assert float(read_anew) == pytest.approx(float(9 * saved_a_turn))
