"""What formats `StripWork` is planned for."""

from __future__ import annotations

from weighlock.codecs import strip
from weighlock.media.work import STRIPPED


def test_a_strip_is_planned_for_just_the_formats_it_is_known_for() -> None:
    assert {*strip._SURGERIES, *strip._SAME, strip._PDF} == STRIPPED
