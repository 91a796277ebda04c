"""Tokens × rates = USD."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.media.tokens import Confidence
from weighlock.planning.cost import PriceChange, Prices, Rates, ServiceTier
from weighlock.planning.limits import Limits
from weighlock.request import Backend, Modality

BASE = Rates.uniform(Decimal(2), cached=Decimal("0.2"), output=Decimal(12))
LONG = Rates.uniform(Decimal(4), cached=Decimal("0.4"), output=Decimal(18))


def prices(base: Rates = BASE, long: Rates | None = LONG, *, uplift: str = "1", discount: str = "0") -> Prices:
    return Prices(
        model="gemini-3.1-pro-preview",
        backend=Backend.DEVELOPER,
        tier=ServiceTier.STANDARD,
        base=base,
        long=long,
        uplift=Decimal(uplift),
        discount=Decimal(discount),
        source="test",
        confidence=Confidence.DOCUMENTED,
    )


def test_a_prompt_of_exactly_200000_tokens_pays_the_base_rate_and_one_more_pays_the_long_rate() -> None:
    assert prices().input_cost({Modality.TEXT: 200_000}) == Decimal("0.4")
    assert prices().input_cost({Modality.TEXT: 200_001}) == Decimal("0.800004")


def test_above_the_threshold_every_token_pays_the_long_rate_not_only_those_above_it() -> None:
    assert prices().input_cost({Modality.VIDEO: 300_000}) == Decimal("1.2")


def test_the_answer_of_a_long_prompt_pays_the_long_rate_too() -> None:
    short = prices().cost({Modality.TEXT: 200_000}, output_tokens=1_000)
    long = prices().cost({Modality.TEXT: 250_000}, output_tokens=1_000)

    assert short == Decimal("0.4") + Decimal("0.012")
    assert long == Decimal("1.0") + Decimal("0.018")


def test_the_threshold_counts_the_whole_prompt_cached_tokens_and_unlisted_ones_included() -> None:
    cost = prices().input_cost({Modality.IMAGE: 1_000}, prompt_tokens=250_000, cached_tokens=200_000)

    assert cost == Decimal(4 * 50_000 + Decimal("0.4") * 200_000) / 1_000_000


def test_a_model_without_a_long_tier_keeps_its_rate_however_long_the_prompt() -> None:
    assert prices(long=None).input_cost({Modality.TEXT: 1_000_000}) == 2


def test_no_modality_is_dropped_and_an_unknown_one_pays_the_text_rate() -> None:
    cost = prices().input_cost({"TEXT": 9, "DOCUMENT": 774, "HOLOGRAM": 50}, prompt_tokens=833)

    assert cost == Decimal(2) * 833 / 1_000_000


def test_what_the_list_does_not_account_for_pays_the_text_rate() -> None:
    assert prices().input_cost({Modality.TEXT: 9}, prompt_tokens=783) == Decimal(2) * 783 / 1_000_000


def test_sound_pays_its_own_rate_where_the_model_has_one() -> None:
    flash = prices(Rates.uniform(Decimal("0.30"), audio=Decimal(1), output=Decimal("2.5")), None)

    cost = flash.input_cost({Modality.VIDEO: 63_120, Modality.AUDIO: 7_680})

    assert cost == Decimal("0.018936") + Decimal("0.00768")


def test_uplift_and_discount_touch_prompt_and_answer_alike() -> None:
    plain = prices().cost({Modality.TEXT: 1_000}, output_tokens=100)
    adjusted = prices(uplift="1.1", discount="0.2").cost({Modality.TEXT: 1_000}, output_tokens=100)

    assert plain is not None
    assert adjusted == plain * Decimal("1.1") * Decimal("0.8")


def test_an_unknown_output_rate_makes_the_cost_of_an_answer_unknown_not_free() -> None:
    priced = prices(Rates.uniform(Decimal(1)), None)

    assert priced.cost({Modality.TEXT: 10}, output_tokens=1) is None
    assert priced.cost({Modality.TEXT: 10}, output_tokens=0) == Decimal("0.00001")


def test_without_a_cached_rate_cached_tokens_pay_in_full() -> None:
    priced = prices(Rates.uniform(Decimal(1)), None)

    assert priced.input_cost({Modality.TEXT: 10}, cached_tokens=10) == priced.input_cost({Modality.TEXT: 10})


def test_what_is_read_from_a_cache_pays_the_cached_rate_of_its_modality() -> None:
    rates = Rates.uniform(Decimal("0.30"), audio=Decimal(1), cached=Decimal("0.03"))
    tokens = {Modality.TEXT: 100, Modality.AUDIO: 1_000}

    own = prices(replace(rates, cached_audio=Decimal("0.1")), None).input_cost(tokens, cached_tokens=tokens)
    none_of_its_own = prices(rates, None).input_cost(tokens, cached_tokens=tokens)

    assert own == (Decimal("0.03") * 100 + Decimal("0.1") * 1_000) / 1_000_000
    assert none_of_its_own == (Decimal("0.03") * 100 + Decimal("0.73") * 1_000) / 1_000_000


@pytest.mark.parametrize(
    ("tokens", "prompt", "cached"), [({"TEXT": -1}, 0, 0), ({}, -1, 0), ({}, 0, -1), ({"TEXT": 5}, 5, 6)]
)
def test_impossible_counts_are_refused(tokens: dict[str, int], prompt: int, cached: int) -> None:
    with pytest.raises(ValueError, match="token"):
        prices().input_cost(tokens, prompt_tokens=prompt, cached_tokens=cached)


COUNTS = st.dictionaries(st.sampled_from(Modality), st.integers(0, 10**7))


@given(COUNTS, st.sampled_from(Modality), st.integers(0, 10**6))
def test_more_tokens_never_cost_less(tokens: dict[Modality, int], more: Modality, extra: int) -> None:
    heavier = {**tokens, more: tokens.get(more, 0) + extra}

    assert prices().input_cost(heavier) >= prices().input_cost(tokens)


def test_a_change_ahead_reads_as_one_line() -> None:
    change = PriceChange(model="gemini-x", on=date(2026, 12, 1), before=BASE, after=LONG, source="test")

    assert change.message == "gemini-x from 2026-12-01: input 2.00 → 4.00, output 12.00 → 18.00 USD per 1M tokens"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (Rates.uniform(Decimal("2.125"), cached=Decimal("0.2"), output=Decimal(12)), "input 2.00 → 2.125"),
        (Rates.uniform(Decimal(2), audio=Decimal(3), cached=Decimal("0.2"), output=Decimal(12)), "audio 2.00 → 3.00"),
        (Rates.uniform(Decimal(2), cached=Decimal("0.2")), "output 12.00 → unknown"),
        (Rates.uniform(Decimal(2), cached=Decimal("0.02"), output=Decimal(12)), "cached 0.20 → 0.02"),
        (BASE, "other rates change"),
    ],
)
def test_a_change_says_what_moves_and_only_that(after: Rates, told: str) -> None:
    change = PriceChange(model="m", on=date(2026, 12, 1), before=BASE, after=after, source="test")

    assert change.message == f"m from 2026-12-01: {told} USD per 1M tokens"


def test_limits_that_limit_nothing_say_so() -> None:
    assert Limits().empty
    assert not Limits(media_parts=0).empty
    assert not Limits(tokens={Modality.VIDEO: 1}).empty


COUNTS = st.dictionaries(st.sampled_from(list(Modality)), st.integers(0, 400_000))


@given(COUNTS, st.integers(0, 500_000), st.dictionaries(st.sampled_from(list(Modality)), st.integers(0, 1_000)))
def test_what_each_modality_comes_to_is_the_whole_price(
    tokens: dict[Modality, int], prompt: int, cached: dict[Modality, int]
) -> None:
    tokens = {one: count + cached.get(one, 0) for one, count in tokens.items()}
    cached = {one: count for one, count in cached.items() if one in tokens}
    found = prices(uplift="1.1", discount="0.2")

    shares = found.shares(tokens, prompt_tokens=prompt, cached_tokens=cached)

    assert sum(shares.values()) == found.input_cost(tokens, prompt_tokens=prompt, cached_tokens=cached)
    assert set(shares) <= {*tokens, Modality.TEXT}
    assert min(shares.values(), default=Decimal(0)) >= 0
