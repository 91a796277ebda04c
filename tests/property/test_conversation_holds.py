"""What holds of the plans of a conversation from turn to turn, whatever its media, its tools and its endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from property.test_plan_holds import FLOORS, MEDIA, RULES, judge_by
from unit.planning.drawn import examined
from weighlock.media.facts import TextFacts
from weighlock.planning.conversation import Stage, plan_conversation
from weighlock.planning.levers import EVERY_LEVER, Lever, LocalWork, Older, Shaping
from weighlock.planning.limits import Limits
from weighlock.planning.placement import InlineBelow
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Modality
from weighlock.rules import Controls, ModelRules

SHAPINGS = st.builds(
    Shaping,
    levers=st.sampled_from([EVERY_LEVER, (Lever.HISTORY,), (Lever.HISTORY, Lever.RESOLUTION), EVERY_LEVER[::-1]]),
    floors=st.dictionaries(st.sampled_from(list(Modality)), FLOORS, max_size=2),
    local_work=st.sampled_from(list(LocalWork)),
    older=st.sampled_from(list(Older)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A medium a turn."""

    media: Sequence[Weighed]
    wishes: Sequence[Wish]
    rules: ModelRules
    shaping: Shaping
    limits: Limits
    keep: int
    per_tool: bool
    batch: int

    def plans(self) -> list[Plan]:
        """The plan of every turn."""
        text = weigh(examined(TextFacts(chars=100)), Controls(), self.rules)
        return [
            plan_conversation(
                self.media[:held],
                text,
                [Stage(before, lambda: text) for before in range(1, held)],
                self.rules,
                self.shaping,
                judge_by(self.limits),
                self.wishes[:held],
                below=InlineBelow(),
                keep=self.keep,
                per_tool=self.per_tool,
                batch=self.batch,
            )
            for held in range(1, len(self.media) + 1)
        ]


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    rules = draw(st.sampled_from(RULES))
    media = [weigh(examined(facts), Controls(), rules) for facts in draw(st.lists(MEDIA, min_size=2, max_size=7))]
    wishes = [
        Wish(pinned=draw(st.integers(0, 5)) == 0, removable=True, tool=draw(st.sampled_from([None, "look", "record"])))
        for _ in media
    ]
    whole = sum(part.total.high for part in media)
    return Talk(
        media=media,
        wishes=wishes,
        rules=rules,
        shaping=draw(SHAPINGS),
        limits=Limits(prompt_tokens=int(whole * draw(st.floats(0.02, 1)))),
        keep=draw(st.integers(0, 3)),
        per_tool=draw(st.booleans()),
        batch=draw(st.integers(1, 3)),
    )


@settings(max_examples=60)
@given(talk=talks())
def test_what_was_sent_stays_as_it_was_sent_unless_the_plan_says_that_the_prefix_breaks(talk: Talk) -> None:
    for before, now in pairwise(talk.plans()):
        sent = len(before.parts) - 1
        same = now.parts[:sent] == before.parts[:sent]

        assert same or now.breaks_prefix


@settings(max_examples=60)
@given(talk=talks())
def test_the_history_lever_leaves_the_newest_media_alone_and_makes_of_older_ones_what_the_endpoint_says(
    talk: Talk,
) -> None:
    *_, now = talk.plans()
    moved = {at for step in now.steps if step.lever is Lever.HISTORY for at in step.parts}

    for at in moved:
        newer = [wish for wish in talk.wishes[at + 1 :] if not talk.per_tool or wish.tool == talk.wishes[at].tool]
        assert len(newer) >= talk.keep
        assert not talk.wishes[at].pinned
    assert now.removed == (moved if talk.shaping.older is Older.NOTE else frozenset())
    for at in moved - now.removed:
        assert now.parts[at].controls.part_resolution is talk.shaping.floor(now.parts[at].examined.modality).resolution
