"""Bills as the service writes them, and what is made of them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.planning.drawn import paper, recording, screenshot
from weighlock.gemini.usage import Usage, billed, last_usage
from weighlock.media.facts import Facts, TextFacts
from weighlock.media.tokens import TokenRange
from weighlock.request import Backend, MediaResolution, Modality
from weighlock.rules import Controls, RuleBook, estimate

TEXT, IMAGE, VIDEO, AUDIO, DOCUMENT = Modality
BOOK = RuleBook.packaged()


def sent(
    *media: Facts,
    model: str = "gemini-3.8-flash",
    backend: Backend = Backend.DEVELOPER,
    controls: Controls | None = None,
) -> list[TokenRange]:
    rules = BOOK.for_model(model, backend, date(2026, 11, 30))
    return [tokens for facts in media for tokens in estimate(facts, controls or Controls(), rules).tokens]


def usage(total: int | None, cached: dict[str, int] | None = None, /, **buckets: int) -> dict[str, Any]:
    said: dict[str, Any] = {
        "promptTokensDetails": [{"modality": name, "tokenCount": tokens} for name, tokens in buckets.items()]
    }
    if total is not None:
        said["promptTokenCount"] = total
    if cached is not None:
        said["cachedContentTokenCount"] = sum(cached.values())
        said["cacheTokensDetails"] = [{"modality": name, "tokenCount": tokens} for name, tokens in cached.items()]
    return said


def codes(bill: Usage) -> list[str]:
    return [finding.code for finding in bill.findings]


def test_of_a_stream_each_field_s_last_word_counts() -> None:
    chunks = [
        {"candidates": []},
        {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 1, "promptTokensDetails": [1]}},
        {"usage_metadata": {"prompt_token_count": 9, "candidates_token_count": None}},
        {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 30, "thoughtsTokenCount": 5}},
        None,
    ]

    last = last_usage(chunks)

    assert last == {
        "promptTokenCount": 9, "candidatesTokenCount": 30, "thoughtsTokenCount": 5, "promptTokensDetails": [1],
    }  # fmt: skip
    assert billed([last], []).output == 35
    assert billed([last_usage([])], []).prompt is None


def test_sound_folded_into_video_is_told_apart_and_pages_filed_under_image_too() -> None:
    media = sent(recording(10), paper(1), screenshot(597, 566), TextFacts(chars=40))

    bill = billed([usage(910 + 532 + 1088 + 9, VIDEO=910, IMAGE=532 + 1088, TEXT=9)], media)

    assert bill.by_modality == {TEXT: 9, IMAGE: 1088, VIDEO: 660, AUDIO: 250, DOCUMENT: 532}
    assert (bill.unattributed, codes(bill)) == (0, [])


def test_sound_with_its_own_bucket_stays_there() -> None:
    bill = billed([usage(890, VIDEO=640, AUDIO=250)], sent(recording(10), backend=Backend.VERTEX))

    assert bill.by_modality == {VIDEO: 640, AUDIO: 250}


def test_what_nobody_sent_is_billed_under_its_own_name() -> None:
    silent = sent(recording(1.3, sound=False), model="gemini-2.5-flash")

    assert billed([usage(570, VIDEO=526, AUDIO=44)], silent).by_modality == {VIDEO: 526, AUDIO: 44}


def test_what_stands_under_no_modality_is_unattributed_and_found() -> None:
    bill = billed([usage(120, TEXT=100, SMELL=5)], [])

    assert (bill.prompt, bill.by_modality, bill.unattributed) == (120, {TEXT: 100}, 20)
    assert codes(bill) == ["unattributed"]
    assert billed([usage(7, MODALITY_UNSPECIFIED=7)], []).by_modality == {TEXT: 7}


def test_modalities_beyond_the_total_are_paid_and_found() -> None:
    bill = billed([usage(90, TEXT=100)], [])

    assert (bill.prompt, codes(bill)) == (100, ["modalities_exceed_total"])


def test_a_bill_without_a_total_is_the_sum_of_its_modalities_or_unknown() -> None:
    assert billed([usage(None, TEXT=4)], []).prompt == 4
    assert billed([{}], []).prompt is None
    assert codes(billed([{}], [])) == ["no_prompt_count"]
    assert codes(billed([], [])) == ["no_prompt_count"]


def test_cached_tokens_are_taken_off_by_modality_as_sent() -> None:
    media = sent(recording(10), TextFacts(chars=40))

    bill = billed([usage(1000, {"VIDEO": 455, "TEXT": 10}, VIDEO=910, TEXT=90)], media)

    assert bill.cached == 465
    assert bill.uncached_by_modality == {TEXT: 80, VIDEO: 330, AUDIO: 125}


def test_cached_tokens_never_make_a_figure_negative() -> None:
    bill = billed([usage(50, {"TEXT": 80, "IMAGE": 9}, TEXT=50)], [])

    assert (bill.cached, bill.uncached_by_modality) == (50, {TEXT: 0})
    assert codes(bill) == ["cached_exceeds_prompt"]


def test_every_hop_pays_the_whole_prompt() -> None:
    hop = usage(263, VIDEO=200, TEXT=63) | {"candidatesTokenCount": 10}
    summed = usage(789, VIDEO=600, TEXT=189) | {"candidatesTokenCount": 30, "initial_prompt_token_count": 263}

    bills = billed([hop] * 3, []), billed([summed], [])

    for bill in bills:
        assert (bill.prompt, bill.hops, bill.answer) == (789, 3, 30)
        assert bill.by_modality == {TEXT: 189, VIDEO: 600}


@pytest.mark.parametrize(
    ("backend", "buckets"),
    [
        (Backend.DEVELOPER, {"VIDEO": 660}),
        (Backend.VERTEX, {"VIDEO": 640}),
        (Backend.VERTEX, {"VIDEO": 660, "AUDIO": 0}),
    ],
)
def test_sound_that_was_sent_and_not_billed_is_found(backend: Backend, buckets: dict[str, int]) -> None:
    bill = billed([usage(sum(buckets.values()), **buckets)], sent(recording(10), backend=backend))

    assert codes(bill) == ["sound_not_billed"]


def test_a_resolution_that_changed_nothing_is_found() -> None:
    low = Controls(media_resolution=MediaResolution.LOW)
    asked, default = sent(screenshot(597, 566), controls=low), sent(screenshot(597, 566))

    ignored = billed([usage(1088, IMAGE=1088)], asked, unasked=default)
    heeded = billed([usage(asked[0].likely, IMAGE=asked[0].likely)], asked, unasked=default)

    assert (codes(ignored), codes(heeded)) == (["resolution_ignored"], [])


def test_tool_use_is_a_prompt_beside_the_prompt() -> None:
    assert billed([usage(5, TEXT=5) | {"toolUsePromptTokenCount": "70"}], []).tool_use == 70


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=True),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["modality", "tokenCount"]), inner),
    max_leaves=6,
)
FIELDS = ["promptTokenCount", "promptTokensDetails", "cacheTokensDetails", "cachedContentTokenCount", "x"]


@given(hops=st.lists(st.dictionaries(st.sampled_from(FIELDS), anything), max_size=3))
def test_whatever_the_service_says_the_bill_adds_up(hops: list[dict[str, Any]]) -> None:
    bill = billed(hops, sent(recording(10), paper(2)))

    assert sum(bill.by_modality.values()) + bill.unattributed == (bill.prompt or 0)
    assert all(tokens >= 0 for tokens in (*bill.by_modality.values(), *bill.uncached_by_modality.values()))
    assert 0 <= bill.cached <= (bill.prompt or 0)


@given(
    buckets=st.dictionaries(st.sampled_from([*Modality, "SMELL"]), st.integers(0, 5_000)),
    total=st.integers(0, 20_000),
    cached=st.dictionaries(st.sampled_from(list(Modality)), st.integers(0, 6_000)),
)
def test_nothing_of_a_bill_is_lost_or_made_up(buckets: dict[str, int], total: int, cached: dict[str, int]) -> None:
    bill = billed([usage(total, cached, **buckets)], sent(recording(10), paper(2), screenshot()))

    assert bill.prompt == max(total, sum(buckets.values()))
    assert sum(bill.by_modality.values()) + bill.unattributed == bill.prompt
    assert all(bill.cached_by_modality[one] <= bill.by_modality[one] for one in bill.cached_by_modality)
