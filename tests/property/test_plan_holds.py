"""What holds of every plan, whatever the media, the limits and the policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import AudioFacts, Facts, ImageFacts, TextFacts, VideoFacts
from weighlock.media.work import AudioWork, DocumentWork, VideoWork
from weighlock.planning.admit import Verdict, admit
from weighlock.planning.cutting import sampled_fps
from weighlock.planning.levers import EVERY_LEVER, Floor, Lever, LocalWork, Shaping, Target
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.moves import Bench, Why
from weighlock.planning.plan import plan
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Backend, Box, MediaResolution, Modality
from weighlock.rules import Controls, ModelRules, RuleBook

BOOK = RuleBook.packaged()
RULES = [
    BOOK.for_model(model, backend, date(2026, 11, 30))
    for model in ("gemini-3.8-flash", "gemini-2.5-flash", "gemini-2.0-flash", "gemini-9-unknown")
    for backend in Backend
]
SHARES = st.sampled_from([None, None, 1, 2, 9])
SIZES = st.sampled_from([1_000, 120_000, 900_000, 12_000_000, 90_000_000])
FPS = st.sampled_from([None, None, 0.5, 1, 5])
LEVELS = st.sampled_from([None, None, MediaResolution.HIGH, MediaResolution.MEDIUM, MediaResolution.LOW])
MEDIA: st.SearchStrategy[Facts] = st.one_of(
    st.builds(screenshot, st.integers(1, 5_000), st.integers(1, 5_000)),
    st.builds(recording, st.floats(2, 4_000), sound=st.booleans(), fps=st.sampled_from([None, 0.5, 30])),
    st.builds(song, st.floats(2, 4_000), codec=st.sampled_from([None, "mp3", "flac", "pcm_s16le"])),
    st.builds(paper, st.integers(1, 400)),
)
FLOORS = st.builds(
    Floor,
    resolution=st.sampled_from([MediaResolution.HIGH, MediaResolution.MEDIUM, MediaResolution.LOW]),
    fps=st.sampled_from([0.1, 0.2, 0.3, 1]),
    seconds=st.sampled_from([5, 10, 25, 60]),
    pages=st.integers(1, 5),
)


@st.composite
def caller_s(draw: st.DrawFn) -> Controls:
    start_s, end_s = draw(st.sampled_from([(None, None), (None, None), (1.0, None), (None, 30.0), (5.0, 90.0)]))
    return Controls(
        fps=draw(FPS),
        part_resolution=draw(LEVELS),
        start_offset_s=start_s,
        end_offset_s=end_s,
        drop_sound=draw(st.booleans()),
    )


def region_of(facts: Facts) -> st.SearchStrategy[Box | None]:
    """Half of a picture each way, or nothing."""
    if not isinstance(facts, ImageFacts) or min(facts.width_px, facts.height_px) < 2:
        return st.none()
    left, top = facts.width_px // 2, facts.height_px // 2
    return st.sampled_from([None, Box(left=left, top=top, right=facts.width_px, bottom=facts.height_px)])


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[Weighed], list[Wish], ModelRules]:
    rules = draw(st.sampled_from(RULES))
    media = draw(st.lists(MEDIA, min_size=1, max_size=4))
    parts = [weigh(examined(facts, size_bytes=draw(SIZES)), draw(caller_s()), rules) for facts in media]
    text = weigh(examined(TextFacts(chars=draw(st.integers(0, 2_000)))), Controls(), rules)
    spans = st.sampled_from([None, (5.0, 65.0), (1.0, 3.0)])
    targets = st.builds(Target, fps=FPS, resolution=LEVELS, span_s=spans, around_s=st.sampled_from([None, 2.0, 40.0]))
    wishes = [
        Wish(pinned=draw(st.integers(0, 4)) == 0, target=replace(draw(targets), region=draw(region_of(facts))))
        for facts in media
    ]
    return [*parts, text], [*wishes, Wish()], rules


SHAPINGS = st.builds(
    Shaping,
    levers=st.one_of(st.just(EVERY_LEVER), st.permutations(EVERY_LEVER).map(tuple)),
    floors=st.dictionaries(st.sampled_from(list(Modality)), FLOORS, max_size=4),
    local_work=st.sampled_from(list(LocalWork)),
)


@st.composite
def limits(draw: st.DrawFn, parts: Sequence[Weighed]) -> Limits:
    """From hopeless to generous, some over one modality only."""
    share = draw(st.floats(0.005, 1.2))
    whole = int(sum(part.total.high for part in parts) * share)
    kinds = draw(st.lists(st.sampled_from(list(Modality)), max_size=2, unique=True))
    tokens = {kind: int(sum(part.of(kind).high for part in parts) * draw(st.floats(0.01, 1.2))) for kind in kinds}
    share_of_bytes = draw(SHARES)
    stored = sum(part.examined.size_bytes or 0 for part in parts)
    return Limits(
        prompt_tokens=whole if draw(st.booleans()) or not tokens else None,
        tokens=tokens,
        bytes=stored // share_of_bytes if share_of_bytes else None,
    )


def judge_by(bounds: Limits) -> Callable[[Load], Verdict]:
    return lambda load: admit(load, bounds, None)


def made(parts: Sequence[Weighed], wishes: Sequence[Wish], rules: ModelRules, shaping: Shaping, bounds: Limits) -> Plan:
    return plan(parts, rules, shaping, judge_by(bounds), wishes)


def total(parts: Sequence[Weighed]) -> int:
    return sum(part.total.high for part in parts)


def as_made(wish: Wish, *, cut: bool) -> Wish:
    """A region, and a window in a file that was cut, are of the medium as it came: what is made drops them."""
    target = replace(wish.target, region=None)
    return replace(wish, target=replace(target, span_s=None, around_s=None) if cut else target)


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_the_same_request_gives_the_same_plan(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request
    bounds = data.draw(limits(parts))

    assert made(parts, wishes, rules, shaping, bounds) == made(list(parts), list(wishes), rules, shaping, bounds)


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_no_part_is_ever_made_heavier_and_none_that_is_pinned_is_touched(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request

    after = made(parts, wishes, rules, shaping, data.draw(limits(parts))).parts

    for part, new, wish in zip(parts, after, wishes, strict=True):
        assert new.total.high <= part.total.high
        assert len(new.refused) <= len(part.refused)
        if wish.pinned:
            assert new == part


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_what_the_caller_asked_for_is_only_ever_lowered_and_never_below_a_floor(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request

    found = made(parts, wishes, rules, shaping, data.draw(limits(parts)))

    for at, (part, new) in enumerate(zip(parts, found.parts, strict=True)):
        asked, now, floor = part.controls, new.controls, shaping.floor(part.examined.modality)
        start_s, end_s = now.start_offset_s, now.end_offset_s
        work = found.works.get(at)
        if isinstance(work, VideoWork | AudioWork) and not now.clipped:
            start_s, end_s = work.start_s, work.end_s
        facts = part.examined.facts
        whole_s = facts.duration_s if isinstance(facts, VideoFacts | AudioFacts) else 1e9
        asked_s, now_s = asked.span_s(whole_s), (whole_s if end_s is None else end_s) - (start_s or 0)
        assert asked.fps is None or (now.fps or 0) <= asked.fps
        assert (start_s or 0) >= (asked.start_offset_s or 0)
        assert asked.end_offset_s is None or (end_s is not None and end_s <= asked.end_offset_s)
        assert now.drop_sound >= asked.drop_sound
        if now.fps != asked.fps:
            assert (now.fps or 0) >= min(floor.fps, sampled_fps(asked, rules))
        if asked_s > 0:
            assert now_s >= min(floor.seconds, asked_s) - 1e-6


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_bytes_only_ever_become_fewer_and_what_is_made_is_held_to_them(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request
    bounds = replace(data.draw(limits(parts)), bytes=data.draw(st.sampled_from([90_000, 700_000, 9_000_000])))

    found = made(parts, wishes, rules, shaping, bounds)

    for at, (part, new) in enumerate(zip(parts, found.parts, strict=True)):
        before, after, work = part.examined.size_bytes or 0, new.examined.size_bytes or 0, found.works.get(at)
        if not isinstance(part.examined.facts, ImageFacts):  # fewer pixels may take more bytes, and say so
            assert after <= before
        if isinstance(work, VideoWork):
            assert work.max_bytes == after
            assert work.fps is None or new.controls.fps is None or work.fps >= new.controls.fps
            assert not new.controls.clipped or work.end_s is None
        if isinstance(work, VideoWork | AudioWork | DocumentWork):
            assert shaping.local_work is not LocalWork.NEVER
            assert not wishes[at].pinned


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_a_plan_made_again_of_what_came_out_changes_nothing(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request
    bounds = data.draw(limits(parts))
    once = made(parts, wishes, rules, shaping, bounds)

    kept = [as_made(wish, cut=at in once.works) for at, wish in enumerate(wishes)]
    again = made(once.parts, kept, rules, shaping, bounds)

    assert again.parts == once.parts
    assert not again.steps


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_no_single_step_can_be_taken_back_without_breaking_a_limit(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request
    bounds = data.draw(limits(parts))
    found = made(parts, wishes, rules, shaping, bounds)

    for move in found.moves if found.fits else ():
        without = Bench(parts, rules).parts(one for one in found.moves if one is not move)
        if move.why is Why.TAKEN:
            assert any(new.refused for new in without)
            continue
        assert move.why is Why.NEEDED
        assert judge_by(bounds)(Load.of(without)).over


@given(request=requests(), shaping=SHAPINGS, share=st.floats(0.005, 1), more=st.floats(1, 3))
def test_the_total_never_falls_as_the_budget_grows(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, share: float, more: float
) -> None:
    parts, wishes, rules = request
    tight = Limits(prompt_tokens=int(total(parts) * share))
    wide = replace(tight, prompt_tokens=int(total(parts) * share * more))

    lighter, heavier = (made(parts, wishes, rules, shaping, bounds) for bounds in (tight, wide))

    assert total(lighter.parts) <= total(heavier.parts)


@given(seconds=st.floats(2, 4_000), sound=st.booleans(), shaping=SHAPINGS, budgets=st.lists(st.integers(0, 99_999)))
def test_a_medium_that_is_alone_never_gets_worse_as_the_budget_grows(
    seconds: float, sound: bool, shaping: Shaping, budgets: list[int]
) -> None:
    rules = RULES[0]
    parts = [weigh(examined(recording(seconds, sound=sound)), Controls(), rules)]

    totals = [
        made(parts, [Wish()], rules, shaping, Limits(prompt_tokens=budget)).parts[0].total.high
        for budget in sorted(budgets)
    ]

    assert totals == sorted(totals)


@given(request=requests(), shaping=SHAPINGS, data=st.data())
def test_the_steps_add_up_to_the_plan(
    request: tuple[list[Weighed], list[Wish], ModelRules], shaping: Shaping, data: st.DataObject
) -> None:
    parts, wishes, rules = request
    found = made(parts, wishes, rules, shaping, data.draw(limits(parts)))

    assert sum(step.saved.high for step in found.steps) == total(parts) - total(found.parts)
    assert all(step.saved.high > 0 or step.saved_bytes > 0 for step in found.steps)
    assert {step.lever for step in found.steps} <= set(Lever)
