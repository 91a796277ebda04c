from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from weighlock.uploads.names import MOST_GENERATIONS, remote_name

words = st.lists(st.text(max_size=20), min_size=1, max_size=4)


@given(secret=st.binary(min_size=1), parts=words, generation=st.integers(0, MOST_GENERATIONS - 1))
def test_every_name_is_one_the_service_and_the_sdk_take(secret: bytes, parts: list[str], generation: int) -> None:
    name = remote_name(secret, *parts, generation=generation)

    assert re.fullmatch(r"files/[a-z0-9]{1,40}", name)
    assert name == remote_name(secret, *parts, generation=generation)


@given(one=words, other=words)
def test_other_things_have_other_names(one: list[str], other: list[str]) -> None:
    assert (remote_name(b"s", *one) == remote_name(b"s", *other)) is (one == other)


def test_nobody_without_the_secret_can_guess_a_name() -> None:
    assert remote_name(b"a", "sha") != remote_name(b"b", "sha")
