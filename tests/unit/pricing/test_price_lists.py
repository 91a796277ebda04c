"""Which price list counts, for which model, tier, place and day."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import date
from decimal import Decimal
from importlib import resources

import pytest

from weighlock import pricing
from weighlock.media.tokens import Confidence
from weighlock.planning.cost import Contract, Override, Prices, Rates, ServiceTier, Unpriced
from weighlock.pricing import prices_for, upcoming_change
from weighlock.request import Backend, Modality

TODAY = date(2026, 11, 30)


def priced(
    model: str,
    *,
    backend: Backend = Backend.DEVELOPER,
    on: date = TODAY,
    tier: ServiceTier = ServiceTier.STANDARD,
    location: str | None = None,
) -> Prices:
    prices = prices_for(model, backend, on=on, tier=tier, location=location)
    assert isinstance(prices, Prices)
    return prices


@pytest.mark.parametrize(
    ("model", "text", "audio", "output"),
    [
        ("gemini-4-argon", "2", "2", "10"),
        ("gemini-4-neon", "3", "3", "15"),
        ("gemini-4-hydrogen", "1.5", "1.5", "7.5"),
        ("gemini-3.8-flash", "0.75", "0.75", "3.75"),
        ("gemini-3.5-flash", "1.5", "1.5", "9"),
        ("gemini-3.5-flash-lite", "0.3", "0.3", "2.5"),
        ("gemini-3.1-flash-lite", "0.25", "0.5", "1.5"),
        ("gemini-3-flash-preview", "0.5", "1", "3"),
        ("gemini-2.5-pro", "1.25", "1.25", "10"),
        ("gemini-2.5-flash", "0.3", "1", "2.5"),
        ("gemini-2.5-flash-lite", "0.1", "0.3", "0.4"),
        ("gemini-2.0-flash", "0.1", "0.7", "0.4"),
    ],
)
def test_list_prices_of_2026_11_30(model: str, text: str, audio: str, output: str) -> None:
    base = priced(model).base

    assert (base.text, base.audio, base.output) == (Decimal(text), Decimal(audio), Decimal(output))
    assert base.image == base.video == base.document == base.text


@pytest.mark.parametrize(
    ("model", "text", "audio"),
    [("gemini-2.5-flash", "0.03", "0.1"), ("gemini-3.8-flash", "0.075", "0.075"), ("gemini-4-neon", "0.15", "0.15")],
)
def test_sound_read_from_the_cache_has_its_own_rate_where_the_list_has_one(model: str, text: str, audio: str) -> None:
    base = priced(model).base

    assert (base.of_cached(Modality.VIDEO), base.of_cached(Modality.AUDIO)) == (Decimal(text), Decimal(audio))


def test_only_pro_models_have_a_long_tier() -> None:
    pro, flash = priced("gemini-3.1-pro-preview"), priced("gemini-3.8-flash")

    assert pro.long is not None
    assert (pro.long.text, pro.long.cached, pro.long.output) == (Decimal(4), Decimal("0.4"), Decimal(18))
    assert pro.long_above == 200_000
    assert flash.long is None


def test_a_quarter_million_tokens_on_a_pro_model_cost_a_dollar() -> None:
    pro = priced("gemini-3.1-pro-preview")

    assert pro.input_cost({Modality.VIDEO: 250_000}) == 1
    assert pro.input_cost({Modality.VIDEO: 200_000}) == Decimal("0.4")


@pytest.mark.parametrize(
    "name",
    [
        "models/gemini-2.5-flash",
        "projects/p/locations/eu/publishers/google/models/gemini-2.5-flash",
        "gemini-2.5-flash@001",
        "GEMINI-2.5-Flash",
    ],
)
def test_a_models_resource_path_does_not_change_its_price(name: str) -> None:
    assert priced(name) == priced("gemini-2.5-flash")


@pytest.mark.parametrize("name", ["gemini-3.7-flash-lite", "gemini-3.8-flash-ultra", "gemini-4-neon-mini"])
def test_a_sibling_is_not_sold_at_the_price_of_the_model_its_name_begins_with(name: str) -> None:
    assert isinstance(prices_for(name, Backend.DEVELOPER, on=TODAY), Unpriced)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gemini-3.5-flash-001", "gemini-3.5-flash"),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
        ("gemini-4-neon-preview", "gemini-4-neon"),
        ("gemini-flash-latest", "gemini-3.8-flash"),
    ],
)
def test_stages_dates_and_aliases_of_a_model_are_sold_at_its_price(name: str, model: str) -> None:
    assert priced(name).model == model


@pytest.mark.parametrize("name", ["gemini-4-carbon", "claude-opus-4", "gpt-5", "", "gemini"])
def test_an_unknown_model_has_no_price_and_a_reason_and_is_not_free(name: str) -> None:
    unpriced = prices_for(name, Backend.DEVELOPER, on=TODAY)

    assert isinstance(unpriced, Unpriced)
    assert "no price is known for" in unpriced.reason


def test_a_model_has_no_price_before_its_first_day() -> None:
    assert isinstance(prices_for("gemini-4-neon", Backend.DEVELOPER, on=date(2026, 11, 17)), Unpriced)


class TestChanges:
    @pytest.mark.parametrize(
        ("model", "day", "before", "after"),
        [
            ("gemini-4-argon", date(2026, 12, 1), 2, 4),
            ("gemini-3.7-flash", date(2027, 1, 1), "0.75", "1.5"),
            ("gemini-3.6-flash", date(2027, 1, 1), "0.75", "1.5"),
        ],
    )
    def test_a_dated_change_within_sixty_days_is_seen_coming(
        self, model: str, day: date, before: str, after: str
    ) -> None:
        change = upcoming_change(model, Backend.DEVELOPER, on=TODAY)

        assert change is not None
        assert (change.on, change.before.text, change.after.text) == (day, Decimal(before), Decimal(after))
        assert day.isoformat() in change.message

    def test_the_price_changes_on_the_day_it_says(self) -> None:
        assert priced("gemini-4-argon", on=date(2026, 11, 30)).base.output == 10
        assert priced("gemini-4-argon", on=date(2026, 12, 1)).base.output == 20

    def test_a_change_further_ahead_or_already_past_is_not_announced(self) -> None:
        assert upcoming_change("gemini-3.7-flash", Backend.DEVELOPER, on=date(2026, 11, 1)) is None
        assert upcoming_change("gemini-3.7-flash", Backend.DEVELOPER, on=date(2026, 11, 2)) is not None
        assert upcoming_change("gemini-3.7-flash", Backend.DEVELOPER, on=date(2027, 1, 1)) is None

    def test_a_day_on_which_only_what_we_do_not_price_changes_is_no_change(self) -> None:
        # From 2026-01-05 this model's list names web searches; its tokens cost the same.
        assert upcoming_change("gemini-3-flash-preview", Backend.DEVELOPER, on=date(2025, 12, 20)) is None

    def test_unknown_models_and_contract_prices_do_not_change(self) -> None:
        contract = Contract(overrides={"gemini-4-argon": Override(base=Rates.uniform(Decimal(1)))})

        assert upcoming_change("gemini-4-carbon", Backend.DEVELOPER, on=TODAY) is None
        assert upcoming_change("gemini-4-argon", Backend.DEVELOPER, on=TODAY, pricing=contract) is None


class TestTiers:
    def test_a_tier_the_list_names_is_taken_from_the_list(self) -> None:
        batch = priced("gemini-3.1-flash-lite", tier=ServiceTier.BATCH)

        assert (batch.base.text, batch.base.cached) == (Decimal("0.125"), Decimal("0.0125"))
        assert not batch.notes

    @pytest.mark.parametrize(
        ("tier", "text", "cached"),
        [(ServiceTier.FLEX, "0.375", "0.075"), (ServiceTier.PRIORITY, "1.35", "0.135")],
    )
    def test_a_tier_no_list_names_is_derived_and_says_so(self, tier: ServiceTier, text: str, cached: str) -> None:
        derived = priced("gemini-3.7-flash", tier=tier)

        assert (derived.base.text, derived.base.cached) == (Decimal(text), Decimal(cached))
        assert tier.value in derived.notes[0]

    def test_the_long_tier_is_halved_by_batch_too(self) -> None:
        long = priced("gemini-2.5-pro", tier=ServiceTier.BATCH).long

        assert long is not None
        assert long.text == Decimal("1.25")

    def test_a_derived_priority_price_is_assumed(self) -> None:
        assert priced("gemini-4-neon", tier=ServiceTier.PRIORITY).confidence is Confidence.ASSUMED


class TestPlaces:
    @pytest.mark.parametrize("location", [None, "global"])
    def test_the_global_endpoint_has_no_uplift(self, location: str | None) -> None:
        assert priced("gemini-3.5-flash", backend=Backend.VERTEX, location=location).uplift == 1

    @pytest.mark.parametrize("location", ["eu", "us", "europe-west1"])
    def test_a_regional_endpoint_costs_a_tenth_more_with_a_source(self, location: str) -> None:
        regional = priced("gemini-3.5-flash", backend=Backend.VERTEX, location=location)

        assert regional.uplift == Decimal("1.1")
        assert regional.uplift_source is not None
        assert location in regional.notes[0]
        assert regional.input_cost({Modality.TEXT: 1_000_000}) == Decimal("1.65")

    def test_the_uplift_began_in_july_2026(self) -> None:
        def uplift(day: date) -> Decimal:
            return priced("gemini-3.5-flash", backend=Backend.VERTEX, location="eu", on=day).uplift

        assert uplift(date(2026, 6, 30)) == 1
        assert uplift(date(2026, 7, 1)) == Decimal("1.1")

    def test_older_generations_cost_the_same_everywhere(self) -> None:
        assert priced("gemini-2.5-flash", backend=Backend.VERTEX, location="eu").uplift == 1

    def test_a_model_without_a_figure_is_assumed_to_cost_more(self) -> None:
        regional = priced("gemini-4-argon", backend=Backend.VERTEX, location="eu")

        assert regional.uplift == Decimal("1.1")
        assert "assumed" in regional.notes[0]

    def test_the_developer_api_has_no_places(self) -> None:
        assert priced("gemini-3.5-flash", location="eu").uplift == 1


class TestContract:
    OVERRIDE = Override(base=Rates.uniform(Decimal("0.6"), output=Decimal(3)))

    def test_an_override_is_final(self) -> None:
        contract = Contract(discount=Decimal("0.5"), overrides={"gemini-3.5-flash": self.OVERRIDE})

        prices = prices_for("gemini-3.5-flash", Backend.VERTEX, on=TODAY, location="eu", pricing=contract)

        assert isinstance(prices, Prices)
        assert prices.input_cost({Modality.TEXT: 1_000_000}) == Decimal("0.6")
        assert prices.source == "pricing.overrides"

    def test_an_override_prices_a_model_nobody_lists(self) -> None:
        contract = Contract(overrides={"gemini-9": self.OVERRIDE})

        assert isinstance(prices_for("models/gemini-9", Backend.DEVELOPER, on=TODAY, pricing=contract), Prices)

    def test_a_discount_comes_off_the_list_price(self) -> None:
        contract = Contract(discount=Decimal("0.2"))

        prices = prices_for("gemini-3.5-flash", Backend.DEVELOPER, on=TODAY, pricing=contract)

        assert isinstance(prices, Prices)
        assert prices.input_cost({Modality.TEXT: 1_000_000}) == Decimal("1.2")


class TestOwnFile:
    def test_every_entry_has_a_source_a_date_and_a_confidence(self) -> None:
        text = resources.files("weighlock").joinpath("prices.toml").read_text(encoding="utf-8")
        entries = [entry for kind in ("price", "tier", "regional") for entry in tomllib.loads(text)[kind]]

        assert entries
        for entry in entries:
            assert entry["source"]
            assert isinstance(entry["checked_on"], date)
            assert Confidence(entry["confidence"])

    def test_it_fills_a_gap_of_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pricing, "_package_model", lambda _: None)

        assert priced("gemini-4-argon").base.text == 2
        assert priced("gemini-4-argon", on=date(2026, 12, 1)).base.text == 4
        change = upcoming_change("gemini-4-argon", Backend.DEVELOPER, on=TODAY)
        assert change is not None
        assert change.on == date(2026, 12, 1)

    def test_it_agrees_with_the_package_where_both_know_a_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        days = [date(2026, 11, 30), date(2026, 12, 1), date(2027, 1, 1)]
        theirs = [priced("gemini-4-argon", on=day) for day in days]
        monkeypatch.setattr(pricing, "_package_model", lambda _: None)
        ours = [priced("gemini-4-argon", on=day) for day in days]

        assert [one.base for one in ours] == [one.base for one in theirs]
        assert {one.source[:12] for one in theirs} == {"genai-prices"}

    @pytest.mark.parametrize(("checked_on", "wins"), [(date(2026, 10, 15), True), (date(2026, 10, 14), False)])
    def test_it_beats_the_package_only_when_it_was_checked_later(
        self, monkeypatch: pytest.MonkeyPatch, checked_on: date, wins: bool
    ) -> None:
        entry = {
            "model": "gemini-2.5-flash",
            "since": date(2026, 1, 1),
            "input": "9",
            "source": "test",
            "checked_on": checked_on,
            "confidence": "documented",
        }
        monkeypatch.setattr(pricing, "_file", lambda: {"price": [entry], "tier": [], "regional": []})

        assert (priced("gemini-2.5-flash").base.text == 9) is wins


def test_looking_up_a_price_asks_no_network_and_importing_the_module_loads_no_price_list() -> None:
    script = (
        "import sys, socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "import weighlock.pricing as p\n"
        "assert 'genai_prices' not in sys.modules\n"
        "from datetime import date\n"
        "from weighlock.request import Backend\n"
        "print(p.prices_for('gemini-3.8-flash', Backend.DEVELOPER, on=date(2026, 11, 30)).base.text)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout.strip()) == (0, "0.75"), done.stderr
