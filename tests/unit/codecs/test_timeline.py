"""Which pictures are shown when, and what must be decoded to see them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weighlock.codecs.timeline import Feed, Timeline, choose, choose_all, shown_at


def timeline(*pictures: tuple[int | None, bool], hidden: tuple[int, ...] = ()) -> Timeline:
    """(time, stands alone) in file order."""
    found = Timeline()
    for number, (pts, key) in enumerate(pictures):
        found.add(pts, None, 1, key=key, hidden=number in hidden)
    return found


GROUPS = timeline((0, True), (3, False), (1, False), (2, False), (4, True), (7, False), (5, False), (6, False))


def test_the_picture_shown_is_the_last_one_that_has_begun() -> None:
    assert [GROUPS.pts[n] for n in shown_at(GROUPS, [-5, 0, 2, 3, 99])] == [0, 0, 2, 3, 7]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=40),
    st.lists(st.integers(-5, 70), max_size=20).map(sorted),
)
def test_of_many_pictures_each_instant_sees_the_latest_shown_one_in_any_order(
    pictures: list[tuple[int, bool]], instants: list[int]
) -> None:
    hidden = tuple(n for n, (_, is_hidden) in enumerate(pictures[1:], 1) if is_hidden)
    found = timeline(*((at, False) for at, _ in pictures), hidden=hidden)

    seen = shown_at(found, instants)

    order = sorted((at, n) for n, (at, _) in enumerate(pictures) if n not in hidden)
    assert seen == [max((p for p in order if p[0] <= instant), default=order[0])[1] for instant in instants]


def test_hidden_pictures_are_never_shown() -> None:
    edited = timeline((0, True), (1, False), (2, False), hidden=(0, 1))

    assert [edited.pts[n] for n in shown_at(edited, [0, 1, 2])] == [2, 2, 2]


def test_groups_without_a_wanted_picture_are_not_fed_and_none_past_its_last() -> None:
    choice = choose(GROUPS, shown_at(GROUPS, [5]))

    assert list(choice.feed) == [0, 0, 0, 0, Feed.IF_OTHERS_LEAN_ON_IT, Feed.IF_OTHERS_LEAN_ON_IT, Feed.EVERYTHING, 0]
    assert choice.ends == {6}


def test_a_picture_that_leans_on_the_group_before_has_it_decoded_too() -> None:
    open_groups = timeline((0, True), (1, False), (4, True), (2, False), (3, False), (5, False))

    assert list(choose(open_groups, shown_at(open_groups, [3])).feed) == [1, 1, 1, 1, 2, 0]
    assert list(choose(open_groups, shown_at(open_groups, [5])).feed) == [0, 0, 1, 1, 1, 2]


def test_times_that_are_missing_or_all_the_same_are_not_relied_on() -> None:
    assert GROUPS.reliable
    assert not timeline((0, True), (None, False)).reliable
    assert not timeline(*[(0, False)] * 5).reliable


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40, unique=True), st.data())
def test_made_up_decode_times_rise_and_precede_their_pictures(times: list[int], data: st.DataObject) -> None:
    found = timeline(*((at, False) for at in times))

    decoded = list(found.decode_times())

    assert decoded == sorted(decoded)
    assert len(set(decoded)) == len(decoded)
    assert all(dts <= pts for dts, pts in zip(decoded, times, strict=True))


@given(
    st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=1, max_size=40, unique_by=lambda p: p[0]),
    st.lists(st.integers(0, 300), min_size=1, max_size=20).map(sorted),
)
def test_less_is_fed_than_to_a_full_decode_and_everything_wanted(
    pictures: list[tuple[int, bool]], instants: list[int]
) -> None:
    found = timeline(*pictures)
    targets = shown_at(found, instants)

    choice, everything = choose(found, targets), choose_all(found, targets)

    first_key = next((n for n in range(len(found)) if found.is_key(n)), 0)
    assert choice.wanted == everything.wanted
    assert all(choice.feed[n] == Feed.EVERYTHING for n in targets if n >= first_key)
    assert sum(map(bool, choice.feed)) <= len(everything.feed)
