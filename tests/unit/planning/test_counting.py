from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.planning.conftest import DAY
from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.errors import MalformedMedia, UnreadableSource
from weighlock.media.counted import counted
from weighlock.media.facts import Facts, TextFacts
from weighlock.media.tokens import Confidence
from weighlock.planning.admit import admit
from weighlock.planning.counting import (
    Count,
    CountPolicy,
    Form,
    When,
    form_wanted,
)
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.recount import corrected, media_counted, text_counted
from weighlock.planning.weigh import CostRange, Examined, Tally, Weighed, weigh
from weighlock.request import Backend, MediaResolution, Modality
from weighlock.rules import Controls, ModelRules, RuleBook, estimate

AUTO = CountPolicy()


@pytest.fixture
def shot(rules: ModelRules) -> Weighed:
    return weigh(examined(screenshot()), Controls(), rules)


@pytest.fixture
def text(rules: ModelRules) -> Weighed:
    return weigh(examined(TextFacts(chars=4_000)), Controls(), rules)


@pytest.fixture
def blind() -> Weighed:
    return failed(UnreadableSource("is a reference", reference=True))


def failed(error: Exception) -> Weighed:
    return Weighed(examined=Examined(label="film"), controls=Controls(), error=error)  # type: ignore[arg-type]


def wanted(parts: list[Weighed], limits: Limits, policy: CountPolicy = AUTO, **how: bool) -> Form | None:
    return form_wanted(parts, admit(Load.of(parts), limits, None), policy, known_model=how.get("known_model", True))


def test_what_fits_by_the_high_estimate_or_breaks_by_the_low_one_is_not_counted(shot: Weighed, text: Weighed) -> None:
    high, low = shot.total.high + text.total.high, shot.total.low + text.total.low

    assert wanted([shot, text], Limits(prompt_tokens=high)) is None
    assert wanted([shot, text], Limits(prompt_tokens=low - 1)) is None
    assert wanted([shot, text], Limits()) is None


def test_in_between_the_text_is_counted_where_its_length_can_decide(shot: Weighed, text: Weighed) -> None:
    high = shot.total.high + text.total.high

    assert wanted([shot, text], Limits(prompt_tokens=high - 1)) is Form.TEXT
    assert wanted([shot, text], Limits(tokens={Modality.TEXT: text.total.high - 1})) is Form.TEXT


def test_in_between_for_what_no_count_of_text_settles_there_is_none(rules: ModelRules, text: Weighed) -> None:
    film = weigh(examined(recording()), Controls(), rules)
    video = film.of(Modality.VIDEO)

    assert wanted([film, text], Limits(tokens={Modality.VIDEO: video.high - 1})) is None
    assert wanted([film], Limits(prompt_tokens=film.total.high - 1)) is None
    assert wanted([film, text], Limits(prompt_tokens=film.total.high + text.total.low - 1)) is None


def test_what_nobody_here_can_see_is_counted_whole_where_a_limit_is_at_stake(blind: Weighed, text: Weighed) -> None:
    assert wanted([blind, text], Limits(prompt_tokens=100_000)) is Form.WHOLE
    assert wanted([text], Limits(prompt_tokens=100_000), known_model=False) is Form.WHOLE
    assert wanted([blind, text], Limits(media_parts=3)) is None
    assert wanted([blind, text], Limits(prompt_tokens=10)) is None


def test_what_is_refused_anyway_is_not_counted(shot: Weighed, text: Weighed) -> None:
    limits = Limits(prompt_tokens=shot.total.high + text.total.high - 1)
    broken = failed(MalformedMedia("broken"))
    unpriced = admit(Load.of([shot, text]), limits, None, reasons=("no price",))

    assert wanted([shot, text, broken], limits) is None
    assert form_wanted([shot, text], unpriced, AUTO, known_model=True) is None
    assert wanted([shot, text], replace(limits, media_parts=0)) is None


def test_a_limit_in_usd_is_counted_for_too(shot: Weighed, text: Weighed) -> None:
    cost = CostRange(low=Decimal("0.001"), likely=Decimal("0.002"), high=Decimal("0.003"))
    verdict = admit(Load.of([shot, text]), Limits(cost_usd=Decimal("0.002")), cost)

    assert form_wanted([shot, text], verdict, AUTO, known_model=True) is Form.TEXT


def test_always_and_off_are_as_they_say(shot: Weighed, blind: Weighed) -> None:
    assert wanted([shot], Limits(), CountPolicy(when=When.ALWAYS)) is Form.TEXT
    assert wanted([shot, blind], Limits(), CountPolicy(when=When.ALWAYS)) is Form.WHOLE
    broken = failed(MalformedMedia("broken"))
    assert wanted([broken, blind], Limits(), CountPolicy(when=When.ALWAYS)) is Form.TEXT
    assert wanted([blind], Limits(prompt_tokens=1), CountPolicy(when=When.OFF)) is None


def test_a_counted_text_is_billed_one_more_and_stand_ins_are_none_of_it(rules: ModelRules, text: Weighed) -> None:
    count = Count(total=1_003, covers=Form.TEXT, model="m", stand_ins=3)

    told = text_counted(count, text.tokens[0], rules)

    assert (told.low, told.likely, told.high, told.confidence) == (1_000, 1_001, 1_004, Confidence.MEASURED)
    assert text_counted(count, text.tokens[0], rules, unmeasured=50).high == 1_054


def test_nothing_is_billed_for_nothing(rules: ModelRules) -> None:
    (estimated,) = weigh(examined(TextFacts(chars=0)), Controls(), rules).tokens

    told = text_counted(Count(total=0, covers=Form.TEXT, model="m"), estimated, rules)

    assert (told.low, told.likely, told.high) == (0, 0, 0)


def test_a_count_of_a_model_nobody_measured_only_widens(book: RuleBook, text: Weighed) -> None:
    unknown = book.for_model("gemini-9", Backend.DEVELOPER, DAY)
    estimated = text.tokens[0]

    far, near = (
        text_counted(Count(total=total, covers=Form.TEXT, model="m"), estimated, unknown)
        for total in (10 * estimated.high, estimated.likely)
    )

    assert (far.low, far.likely, far.high) == (estimated.low, 10 * estimated.high, 10 * estimated.high)
    assert (near.low, near.high, near.confidence) == (estimated.low, estimated.high, Confidence.ASSUMED)


@given(
    kind=st.sampled_from([Modality.VIDEO, Modality.AUDIO, Modality.DOCUMENT]),
    lengths=st.lists(st.integers(1, 2_000), min_size=1, max_size=4),
    sound=st.booleans(),
    words=st.integers(0, 5_000),
    fps=st.sampled_from([None, 0.5, 2.0]),
    resolution=st.sampled_from([MediaResolution.UNSPECIFIED, MediaResolution.LOW, MediaResolution.HIGH]),
    clip=st.none() | st.tuples(st.integers(0, 500), st.integers(1, 500)),
    reads=st.booleans(),
)
def test_the_count_of_unseen_media_bounds_what_they_are_billed(
    kind: Modality,
    lengths: list[int],
    sound: bool,
    words: int,
    fps: float | None,
    resolution: MediaResolution,
    clip: tuple[int, int] | None,
    reads: bool,
) -> None:
    """Whether or not the service's count `reads` the clip."""
    rules = RuleBook.packaged().for_model("gemini-3.8-flash", Backend.DEVELOPER, DAY)
    controls = Controls(fps=fps, media_resolution=resolution)
    if clip is not None:
        start, length = clip
        pages = {"first_page": start + 1, "last_page": start + length}
        span = {"start_offset_s": float(start), "end_offset_s": float(start + length)}
        controls = replace(controls, **(pages if kind is Modality.DOCUMENT else span))
    hidden, cut = ([medium(kind, length, sound) for length in lengths] for _ in "12")
    if clip is not None and reads:
        cut = [medium(kind, max(0, min(length, sum(clip)) - clip[0]), sound) for length in lengths]
    known = screenshot()
    total = counted([known, *cut], rules.counts)
    assert total is not None
    count = Count(total=total + words, covers=Form.WHOLE, model="m", by_modality={Modality.TEXT: words})

    told = media_counted(count, [known], Tally(), kind, controls, rules, media=len(hidden))

    assert told is not None
    bounds = {tokens.modality: tokens for tokens in told}
    billed: dict[Modality, int] = {}
    for facts in hidden:
        for tokens in estimate(facts, controls, rules).tokens:
            billed[tokens.modality] = billed.get(tokens.modality, 0) + tokens.likely
    for modality, sum_ in billed.items():
        assert bounds[modality].low <= sum_ <= bounds[modality].high


def medium(kind: Modality, length: int, sound: bool) -> Facts:
    match kind:
        case Modality.VIDEO:
            return recording(length, sound=sound)
        case Modality.AUDIO:
            return song(length)
        case _:
            return paper(length)


def unseen(mime: str, **asked: Any) -> Weighed:
    error = UnreadableSource("is a reference", reference=True)
    there = Examined(label="there", declared_mime=mime, error=error)
    return Weighed(examined=there, controls=Controls(**asked), error=error)


def test_a_sum_of_unseen_media_stands_with_the_first_of_them(rules: ModelRules, text: Weighed) -> None:
    total = counted([song(60), song(30)], rules.counts)
    assert total is not None
    count = Count(total=total, covers=Form.WHOLE, model="m", by_modality={Modality.TEXT: 0})

    words, first, second = corrected([text, unseen("audio/mpeg"), unseen("audio/mpeg")], None, count, rules)

    assert words == text
    assert (first.error, second.error, second.tokens) == (None, None, ())
    assert first.total.low <= 2_250 <= first.total.high < 2_400
    assert "counted together with there" in second.notes


@pytest.mark.parametrize(
    "hidden",
    [
        [unseen("audio/mpeg"), unseen("video/mp4")],
        [unseen("audio/mpeg"), unseen("audio/mpeg", start_offset_s=3.0)],
        [unseen("image/png", part_resolution=MediaResolution.ULTRA_HIGH)],
        [unseen("image/png", part_resolution=MediaResolution.LOW)],
        [unseen("application/x-unknown")],
    ],
)
def test_what_a_sum_cannot_tell_apart_or_no_count_covers_stays_unknown(
    hidden: list[Weighed], rules: ModelRules
) -> None:
    count = Count(total=5_000, covers=Form.WHOLE, model="m", by_modality={Modality.TEXT: 0})

    assert corrected(hidden, None, count, rules) == tuple(hidden)


def test_a_picture_nobody_sees_is_billed_what_counts_of_it_where_both_have_one_shape(
    rules: ModelRules, book: RuleBook, shot: Weighed
) -> None:
    count = Count(total=1_101, covers=Form.WHOLE, model="m", by_modality={Modality.TEXT: 1})
    tiled = book.for_model("gemini-2.5-flash", Backend.VERTEX, DAY)

    (told,) = corrected([unseen("image/png")], None, count, rules)
    (not_told,) = corrected([unseen("image/png")], None, count, tiled)

    assert shot.total.likely == told.total.high == 1_100
    assert not_told.error is not None


def test_the_whole_of_a_model_nobody_measured_is_as_dear_as_its_count_and_no_cheaper(
    book: RuleBook, shot: Weighed, text: Weighed
) -> None:
    unknown = book.for_model("gemini-9", Backend.DEVELOPER, DAY)
    high = shot.total.high + text.total.high

    for counted_, told_high in ((high + 500, high + 500), (high - 500, high)):
        told = corrected([shot, text], None, Count(total=counted_, covers=Form.WHOLE, model="m"), unknown)

        assert Tally.of(part.total for part in told).high == told_high


def test_without_its_own_figure_the_text_is_taken_off_as_estimated(rules: ModelRules) -> None:
    total = counted([song(60)], rules.counts)
    assert total is not None
    count = Count(total=total + 100, covers=Form.WHOLE, model="m")

    (told,) = media_counted(count, [], Tally(low=80, likely=100, high=120), Modality.AUDIO, Controls(), rules) or ()

    assert told.low <= 1_500 <= told.high
    assert told.high - told.low < 60


def test_a_kind_whose_counts_nobody_measured_stays_unknown(old_rules: ModelRules, rules: ModelRules) -> None:
    count = Count(total=5_000, covers=Form.WHOLE, model="m")

    assert media_counted(count, [], Tally(), Modality.VIDEO, Controls(), old_rules) is None
    assert media_counted(count, [], Tally(), Modality.IMAGE, Controls(), rules) is None
    assert media_counted(count, [recording()], Tally(), Modality.AUDIO, Controls(), old_rules) is None
