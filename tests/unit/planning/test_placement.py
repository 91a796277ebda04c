from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pytest

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import Facts, TextFacts
from weighlock.planning.placement import (
    InlineBelow,
    Placed,
    inline_bytes,
    out_of_reach,
    place,
    put,
    refused_inline,
    stays_inline,
)
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Backend, Carrier, Placement
from weighlock.rules import Controls, ModelRules, RuleBook

MB = 1_000_000
BELOW = InlineBelow()


def rules_of(model: str, backend: Backend = Backend.DEVELOPER) -> ModelRules:
    return RuleBook.packaged().for_model(model, backend, date(2026, 11, 30))


RULES, VERTEX = rules_of("gemini-3.8-flash"), rules_of("gemini-3.8-flash", Backend.VERTEX)


def part(
    facts: Facts, size: int, rules: ModelRules = RULES, *, carrier: Carrier = Carrier.USER, label: str = "file"
) -> Weighed:
    return weigh(examined(facts, size_bytes=size, label=label), Controls(carrier=carrier), rules)


def said(size: int) -> Weighed:
    return part(TextFacts(chars=size), size)


def test_what_is_small_goes_inline() -> None:
    assert place([part(screenshot(), MB), part(recording(), 10 * MB), said(1000)], RULES, BELOW) == {}


def test_the_largest_go_by_reference_until_the_rest_is_below_the_threshold() -> None:
    parts = [part(song(), 3 * MB), part(recording(), 9 * MB), part(screenshot(), 6 * MB), part(song(), 5 * MB)]

    placed = place(parts, RULES, BELOW)

    assert list(placed) == [1, 2]
    assert placed[1].reason == "12.0 MB in base64, over inline_below 15MB"
    assert inline_bytes(put(parts, placed, RULES)) <= 15 * MB


def test_of_media_of_one_size_the_first_goes() -> None:
    assert list(place([part(screenshot(), 6 * MB)] * 3, RULES, BELOW)) == [0, 1]


def test_the_text_counts_as_it_is_and_media_in_base64() -> None:
    film = part(recording(), 9 * MB)  # 12 MB of base64

    assert place([film, said(3 * MB)], RULES, BELOW) == {}
    assert list(place([film, said(3 * MB + 1)], RULES, BELOW)) == [0]


def test_a_pdf_has_a_threshold_of_its_own() -> None:
    small = InlineBelow(pdf=2 * MB)

    assert place([part(paper(), 3 * MB // 2), part(song(), 3 * MB)], RULES, small) == {}
    found = place([part(paper(), 3 * MB // 2 + 1), part(song(), 3 * MB)], RULES, small)

    assert found == {0: Placed(reason="2.0 MB in base64, over inline_below.pdf 2MB")}


def test_a_type_and_a_kind_have_thresholds_of_their_own_and_the_type_s_comes_first() -> None:
    below = InlineBelow(mime={"video/*": 0, "audio/*": MB, "audio/mpeg": 4 * MB, "application/*": 0})
    parts = [part(recording(), 900), part(song(), 3 * MB), part(paper(), MB), part(screenshot(), MB)]

    placed = place(parts, RULES, below)

    assert placed == {0: Placed(reason="1,200 bytes in base64, over inline_below.mime.video/* 0 bytes")}
    assert "audio/mpeg 4MB" in place([part(song(), 3 * MB + 1)], RULES, below)[0].reason
    assert place(parts, RULES, below, sent=4) == {}, "what was sent inline stays there"
    assert list(out_of_reach(InlineBelow(mime={"video/*": 200 * MB}), RULES)) == [("mime.video/*", 200 * MB, 100 * MB)]


def test_a_picture_larger_than_the_service_takes_inline_is_uploaded_and_not_encoded_again() -> None:
    limit = replace(VERTEX, backend=Backend.DEVELOPER)  # the one with a bound on a picture

    placed = place([part(screenshot(), 8 * MB, limit), part(screenshot(), 7 * MB, limit)], limit, InlineBelow(pdf=1))

    assert placed[0].reason == "8.0 MB; the service takes 7.0 MB of a picture inline"


@pytest.mark.parametrize("carrier", [Carrier.TOOL_RESULT, Carrier.MODEL])
def test_media_of_a_tool_or_of_the_model_stay_inline_and_it_is_said(carrier: Carrier) -> None:
    parts = [part(screenshot(), 12 * MB, carrier=carrier), part(screenshot(), MB)]

    placed = place(parts, RULES, BELOW)

    assert list(placed) == [1], "what can go goes, though the rest is still too much"
    words = stays_inline(put(parts, placed, RULES), RULES, BELOW)
    assert words is not None
    assert words.startswith("16.0 MB go inline, over uploads.inline_below.developer 15MB")


def test_vertex_has_no_files_api_and_the_way_round_is_said() -> None:
    parts = [part(recording(), 9 * MB, VERTEX)]

    assert place(parts, VERTEX, BELOW) == {}
    assert "Vertex has no Files API; name media by gs://" in (stays_inline(parts, VERTEX, BELOW) or "")
    assert stays_inline([part(recording(), 4 * MB, VERTEX)], VERTEX, BELOW) is None
    assert stays_inline([said(9 * MB)], VERTEX, BELOW) is None, "of text alone there is nothing to name"


def test_a_file_larger_than_the_files_api_takes_stays_where_the_service_refuses_it_once() -> None:
    assert place([part(recording(), 2_000_000_001)], RULES, BELOW) == {}


def test_what_went_by_reference_stays_there_and_what_went_inline_too_while_the_service_takes_it() -> None:
    old, new = part(screenshot(), 9 * MB), part(screenshot(), 6 * MB)
    kept = {0: Placed(reason="as before", breaks_prefix=True)}

    assert place([old, new], RULES, BELOW, kept=kept, sent=1) == {0: Placed(reason="as before")}
    assert list(place([old, new], RULES, BELOW, sent=1)) == [1], "the smaller one, since the other was sent inline"
    assert place([old, new], RULES, BELOW, sent=2) == {}
    assert "the prompt cache holds it so" in (stays_inline([old, new], RULES, BELOW) or "")


def test_the_service_s_bound_moves_what_was_sent_before_and_tells_that_the_cache_breaks() -> None:
    parts = [part(recording(), 40 * MB), part(recording(), 50 * MB)]

    placed = place(parts, RULES, BELOW, sent=2)

    words = "66.7 MB in base64, over the 100MB of a request the service takes inline"
    assert placed == {1: Placed(reason=words, breaks_prefix=True)}


def test_a_threshold_above_the_service_s_bound_gives_way_to_it() -> None:
    generous = InlineBelow(developer=200 * MB)
    parts = [part(recording(), 80 * MB)]

    assert list(place(parts, RULES, generous)) == [0]
    assert list(out_of_reach(generous, RULES)) == [("developer", 200 * MB, 100 * MB)]
    assert list(out_of_reach(BELOW, RULES)) == []
    assert list(out_of_reach(InlineBelow(vertex=10**12), VERTEX)) == [], "no bound of a whole request is known there"


def test_placing_can_change_what_a_film_costs() -> None:
    rules = rules_of("gemini-2.5-flash")
    film = part(recording(10.5, sound=False), 30 * MB, rules)

    (by_files,) = put([film], place([film], rules, BELOW), rules)

    assert by_files.controls.placement is Placement.FILES
    assert by_files.total.high < film.total.high, "rounded down, and no sound billed where there is none"


def refused(*sizes: int, rules: ModelRules = RULES, placement: Placement = Placement.INLINE) -> Sequence[str]:
    controls = Controls(placement=placement)
    parts = [weigh(examined(song(), size_bytes=size, label=f"{size}.mp3"), controls, rules) for size in sizes]
    return refused_inline(parts, rules)


def test_the_bytes_inline_are_those_of_the_whole_request_to_the_byte_of_base64() -> None:
    assert refused(75_000_000) == ()  # three bytes are four of base64
    assert "100,000,004 bytes inline" in refused(75_000_001)[0]
    assert refused(75_000_001, placement=Placement.FILES) == ()


def test_a_refusal_of_bytes_names_what_to_upload() -> None:
    (words,) = refused(40_000_000, 50_000_000, 1)

    assert words.endswith("the service takes 100,000,000: upload by the Files API: 50000000.mp3")


def test_where_no_upload_cures_it_the_refusal_does_not_promise_one() -> None:
    tool_s = [part(screenshot(), 80 * MB, carrier=Carrier.TOOL_RESULT), part(screenshot(), MB)]

    assert "send less" in refused_inline(tool_s, RULES)[0]
