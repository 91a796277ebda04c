"""What holds of every placement, whatever the media, the thresholds and the turns before."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import Facts, TextFacts
from weighlock.planning.admit import admit
from weighlock.planning.conversation import Stage, plan_conversation
from weighlock.planning.levers import LocalWork, Shaping
from weighlock.planning.limits import Limits
from weighlock.planning.placement import InlineBelow, inline_bytes, place, put
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Backend, Carrier, Modality, Placement
from weighlock.rules import Controls, ModelRules, RuleBook

BOOK = RuleBook.packaged()
RULES = [
    BOOK.for_model(model, backend, date(2026, 11, 30))
    for model in ("gemini-3.8-flash", "gemini-2.5-flash", "gemini-9-unknown")
    for backend in Backend
]
MEDIA: st.SearchStrategy[Facts] = st.sampled_from([screenshot(), recording(20.5, sound=False), song(), paper(3)])
SIZES = st.one_of(st.integers(1, 60_000_000), st.sampled_from([1, 3_000_000, 9_000_000, 90_000_000]))
BELOW = st.builds(
    InlineBelow,
    developer=st.sampled_from([0, 5_000_000, 15_000_000, 400_000_000]),
    pdf=st.sampled_from([0, 4_000_000, 60_000_000]),
    mime=st.dictionaries(st.sampled_from(["video/*", "audio/mpeg", "image/*"]), st.integers(0, 10**7)),
)
CARRIERS = st.sampled_from([Carrier.USER, Carrier.USER, Carrier.TOOL_RESULT, Carrier.MODEL])
TEXT = st.integers(0, 6_000_000)


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[Weighed], ModelRules]:
    rules = draw(st.sampled_from(RULES))
    media = [
        weigh(examined(draw(MEDIA), size_bytes=draw(SIZES)), Controls(carrier=draw(CARRIERS)), rules)
        for _ in range(draw(st.integers(1, 6)))
    ]
    return [*media, weigh(examined(TextFacts(chars=9), size_bytes=draw(TEXT)), Controls(), rules)], rules


@given(request=requests(), below=BELOW)
def test_placing_is_deterministic_and_placing_what_is_placed_changes_nothing(
    request: tuple[list[Weighed], ModelRules], below: InlineBelow
) -> None:
    parts, rules = request
    placed = place(parts, rules, below)
    there = put(parts, placed, rules)

    assert place(list(parts), rules, below) == placed
    assert place(parts, rules, below, kept=placed) == placed
    assert place(there, rules, below) == {}
    assert put(there, placed, rules) == there


@given(request=requests(), below=BELOW)
def test_what_stays_inline_is_below_the_threshold_wherever_anything_could_still_go(
    request: tuple[list[Weighed], ModelRules], below: InlineBelow
) -> None:
    parts, rules = request
    there = put(parts, place(parts, rules, below), rules)
    limit = rules.limits.inline_request_bytes
    bound = below.developer if limit is None else min(below.developer, limit)

    def could_go(part: Weighed) -> bool:
        files = weigh(part.examined, Controls(placement=Placement.FILES), rules)
        inline = part.controls.placement is Placement.INLINE and part.examined.modality is not Modality.TEXT
        return inline and part.controls.carrier is Carrier.USER and {*files.refused} <= {*part.refused}

    if rules.backend is Backend.VERTEX:
        assert there == parts
    elif any(map(could_go, there)):
        assert inline_bytes(there) <= bound
    for old, new in zip(parts, there, strict=True):
        assert {*new.refused} <= {*old.refused}
        assert new is old or old.controls.carrier is Carrier.USER


@settings(max_examples=40)
@given(
    rules=st.sampled_from(RULES),
    media=st.lists(st.tuples(MEDIA, SIZES, CARRIERS), min_size=2, max_size=6),
    below=BELOW,
    limits=st.builds(
        Limits,
        prompt_tokens=st.sampled_from([None, 3_000, 9_000]),
        bytes=st.sampled_from([None, 10_000_000, 70_000_000]),
    ),
    work=st.sampled_from(list(LocalWork)),
)
def test_what_a_turn_decided_stays_in_the_next_unless_it_says_that_the_cache_breaks(
    rules: ModelRules,
    media: list[tuple[Facts, int, Carrier]],
    below: InlineBelow,
    limits: Limits,
    work: LocalWork,
) -> None:
    parts = [weigh(examined(facts, size_bytes=size), Controls(carrier=who), rules) for facts, size, who in media]
    text = weigh(examined(TextFacts(chars=50), size_bytes=50), Controls(), rules)

    def turn(held: int) -> Plan:
        return plan_conversation(
            parts[:held],
            text,
            [Stage(before, lambda: text) for before in range(1, held)],
            rules,
            Shaping(local_work=work),
            lambda load: admit(load, limits, None),
            [Wish(removable=True)] * held,
            below=below,
            keep=3,
            batch=2,
        )

    for held in range(1, len(parts)):
        now, then = turn(held), turn(held + 1)
        for at in range(held):
            there = then.placements.get(at)
            if at in now.placements:
                assert there is not None or at in then.removed
            else:
                assert there is None or (there.breaks_prefix and then.breaks_prefix)
