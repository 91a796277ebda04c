"""What was made is kept by what it was made of: made once, bounded, never a failure, never another's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.errors import Cancelled, MalformedMedia, ProberUnavailable
from weighlock.made import MadeMedia
from weighlock.media.facts import ImageFacts, Probed
from weighlock.media.work import Made

PROBED = Probed(facts=ImageFacts(width_px=1, height_px=1))


def medium(size: int) -> tuple[bytes, Made]:
    return bytes(size), Made(mime="image/png", size_bytes=size, probed=PROBED)


class Deed:
    """Counts how often it is done; waits where it is told to, and ends as it is told to."""

    def __init__(self, size: int = 10, error: BaseException | None = None) -> None:
        self.done, self.size, self.error = 0, size, error
        self.began, self.go = threading.Event(), threading.Event()
        self.go.set()

    def __call__(self) -> tuple[bytes, Made]:
        self.done += 1
        self.began.set()
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error
        return medium(self.size)


def at_once(media: MadeMedia, deed: Deed, others: int, second: Callable[[], tuple[bytes, Made]]) -> list[object]:
    """Who begins, then others who ask meanwhile; what each of them got, or the error."""

    def asked(make: Callable[[], tuple[bytes, Made]]) -> object:
        try:
            return media.get("key", make)
        except Exception as error:
            return error

    deed.go.clear()
    with ThreadPoolExecutor(others + 1) as pool:
        first = pool.submit(asked, deed)
        assert deed.began.wait(10)
        rest = [pool.submit(asked, second) for _ in range(others)]
        deed.go.set()
        return [one.result(10) for one in (first, *rest)]


def test_what_was_made_is_the_same_object_the_next_time() -> None:
    media, deed = MadeMedia(), Deed()

    assert media.get("key", deed) is media.get("key", deed)
    assert deed.done == 1


def test_what_is_asked_for_twice_at_once_is_done_once() -> None:
    deed = Deed()

    found = at_once(MadeMedia(), deed, 5, deed)

    assert deed.done == 1
    assert len({id(one) for one in found}) == 1


def test_a_failure_is_shared_by_those_who_wait_and_not_kept() -> None:
    media, error = MadeMedia(), MalformedMedia("broken")
    deed = Deed(error=error)

    found = at_once(media, deed, 3, deed)

    assert set(found) == {error}
    later = Deed()
    assert media.get("key", later)
    assert later.done == 1


@pytest.mark.parametrize("error", [Cancelled("by the first"), ProberUnavailable("ended"), KeyboardInterrupt()])
def test_one_that_was_broken_off_is_no_news_about_the_medium(error: BaseException) -> None:
    media, second = MadeMedia(), Deed()
    deed = Deed(error=error)
    deed.go.clear()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(media.get, "key", deed)
        assert deed.began.wait(10)
        rest = [pool.submit(media.get, "key", second) for _ in range(2)]
        deed.go.set()

        assert {one.result(10)[0] for one in rest} == {bytes(10)}
        assert first.exception(10) is error
    assert second.done == 1


def test_one_who_waits_for_another_can_be_broken_off() -> None:
    media, deed = MadeMedia(), Deed()
    deed.go.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(media.get, "key", deed)
        assert deed.began.wait(10)
        with pytest.raises(Cancelled):
            media.get("key", deed, lambda: True)
        deed.go.set()

        assert first.result(10)
    assert deed.done == 1


def test_what_is_larger_than_the_bound_is_given_and_not_kept() -> None:
    media, small, large = MadeMedia(max_bytes=100), Deed(60), Deed(101)
    media.get("small", small)

    assert len(media.get("large", large)[0]) == 101
    media.get("large", large)
    media.get("small", small)

    assert (small.done, large.done) == (1, 2)


def test_what_was_not_asked_for_longest_goes_first() -> None:
    media, deeds = MadeMedia(max_bytes=100), {name: Deed(40) for name in "abc"}

    for name in "abacab":
        media.get(name, deeds[name])

    assert [deeds[name].done for name in "abc"] == [1, 2, 1]


def test_what_is_cleared_is_made_again() -> None:
    media, deed = MadeMedia(), Deed()
    media.get("key", deed)

    media.clear()
    media.get("key", deed)

    assert deed.done == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=40))
def test_no_more_bytes_are_kept_than_allowed(asked: list[tuple[int, int]]) -> None:
    media = MadeMedia(max_bytes=100)

    for key in asked:
        assert len(media.get(key, lambda size=key[1]: medium(size))[0]) == key[1]  # type: ignore[misc]

        assert media._bytes == sum(len(data) for data, _ in media._kept.values()) <= 100
