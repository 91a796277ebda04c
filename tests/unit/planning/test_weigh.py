from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.errors import MalformedMedia
from weighlock.media.facts import ImageFacts
from weighlock.media.tokens import Confidence
from weighlock.planning.cost import Prices, Rates, ServiceTier, Unpriced
from weighlock.planning.weigh import Examined, Tally, by_modality, cost_of, explain, refused_together, weigh
from weighlock.request import Backend, Carrier, Modality, Placement
from weighlock.rules import Controls, ModelRules, RuleBook

PRICES = Prices(
    model="m",
    backend=Backend.DEVELOPER,
    tier=ServiceTier.STANDARD,
    base=Rates.uniform(Decimal(1), audio=Decimal(3), output=Decimal(10)),
    source="drawn",
    since=date(2026, 1, 1),
    checked_on=date(2026, 1, 1),
    confidence=Confidence.DOCUMENTED,
)


def test_a_film_is_frames_and_sound(rules: ModelRules) -> None:
    film = weigh(examined(recording(240)), Controls(), rules)

    assert film.of(Modality.VIDEO).likely == 15_840
    assert film.of(Modality.AUDIO).likely == 6_000
    assert film.total.likely == 21_840


def test_an_error_travels_through_and_weighs_nothing(rules: ModelRules) -> None:
    error = MalformedMedia("truncated")

    part = weigh(Examined(label="x", error=error), Controls(), rules)

    assert part.error is error
    assert part.total == Tally()


@pytest.mark.parametrize(
    ("declared", "refuse", "weighed"),
    [("image/jpeg", True, False), ("image/jpeg", False, True), ("image/png", True, True), (None, True, True)],
)
def test_a_wrong_label_is_corrected_or_refused(
    rules: ModelRules, declared: str | None, refuse: bool, weighed: bool
) -> None:
    part = weigh(examined(screenshot(), declared=declared), Controls(), rules, refuse_mislabelled=refuse)

    assert bool(part.tokens) is weighed
    assert (part.error is None) is weighed


def test_what_the_carrier_does_not_take_is_told_with_what_to_send_instead(rules: ModelRules, book: RuleBook) -> None:
    gif = Examined(
        label="a.gif", mime="image/gif", modality=Modality.IMAGE, facts=ImageFacts(width_px=10, height_px=10)
    )
    in_tool = Controls(carrier=Carrier.TOOL_RESULT)
    before_3 = book.for_model("gemini-2.5-flash", Backend.DEVELOPER, date(2026, 11, 30))

    assert "takes no image/gif; convert it to image/png" in weigh(gif, Controls(), rules).refused[0]
    assert (
        "takes no audio/mpeg in a tool result; send it in a user turn"
        in weigh(examined(song()), in_tool, rules).refused[0]
    )
    assert weigh(examined(screenshot()), in_tool, rules).refused == ()
    assert "send it in a user turn" in weigh(examined(screenshot()), in_tool, before_3).refused[0]


@pytest.mark.parametrize(
    ("mime", "developer", "vertex"),
    [("video/quicktime", "video/mov", "video/quicktime"), ("audio/aac", "audio/aac", "audio/x-aac")],
)
def test_each_backend_has_its_own_name_for_a_type(book: RuleBook, mime: str, developer: str, vertex: str) -> None:
    facts = recording(4) if mime.startswith("video") else song(4)
    modality = Modality.VIDEO if mime.startswith("video") else Modality.AUDIO
    one = Examined(label="x", mime=mime, modality=modality, facts=facts)

    named = {b: weigh(one, Controls(), book.for_model("gemini-3.8-flash", b, date(2026, 11, 30))) for b in Backend}

    assert named[Backend.DEVELOPER].send_as == developer
    assert named[Backend.VERTEX].send_as == vertex


def test_what_is_too_big_for_the_service_is_told_with_the_way_round(rules: ModelRules, book: RuleBook) -> None:
    vertex = book.for_model("gemini-3.8-flash", Backend.VERTEX, date(2026, 11, 30))
    uploaded = Controls(placement=Placement.FILES)

    assert "name it by gs://" in weigh(examined(screenshot(), size_bytes=8_000_000), Controls(), vertex).refused[0]
    assert "50,000,000: split it" in weigh(examined(paper(2), size_bytes=60_000_000), uploaded, rules).refused[0]
    assert "1,000: split it" in weigh(examined(paper(1_001)), Controls(), rules).refused[0]
    assert "2,000,000,000" in weigh(examined(recording(240), size_bytes=2_000_000_001), uploaded, rules).refused[0]


def test_a_request_past_the_context_or_with_too_many_films_is_told(rules: ModelRules) -> None:
    long = weigh(examined(recording(20_000)), Controls(), rules)
    short = weigh(examined(recording(4)), Controls(), rules)

    assert "a prompt of 1,820,000 tokens" in refused_together([long], rules.limits)[0]
    assert "11 videos; the service takes 10" in refused_together([short] * 11, rules.limits)[0]
    assert refused_together([short] * 10, rules.limits) == ()


def test_sums_are_by_modality_as_sent(rules: ModelRules) -> None:
    parts = [weigh(examined(facts), Controls(), rules) for facts in (song(30), recording(240), paper(2))]

    sums = by_modality(parts)

    assert {modality: tally.likely for modality, tally in sums.items()} == {
        Modality.VIDEO: 15_840,
        Modality.AUDIO: 6_750,
        Modality.DOCUMENT: 1_064,
    }


def test_cost_is_by_modality_and_unknown_is_none_not_zero(rules: ModelRules) -> None:
    sums = by_modality([weigh(examined(recording(240)), Controls(), rules)])

    cost = cost_of(sums, PRICES, output_tokens=1_000)

    assert cost is not None
    assert cost.likely == (Decimal(15_840) + 3 * Decimal(6_000) + 10 * Decimal(1_000)).scaleb(-6)
    assert cost.low <= cost.likely <= cost.high
    assert cost_of(sums, Unpriced(model="m", reason="nobody says")) is None


def test_the_arithmetic_can_be_told(rules: ModelRules) -> None:
    film = weigh(examined(recording(240)), Controls(fps=0.5, start_offset_s=180), rules)

    assert explain(film, Modality.VIDEO, rules) == "60 s × 0.5 fps × 66"
    assert explain(film, Modality.AUDIO, rules) == "60 s of sound × 25"
    assert explain(weigh(examined(song(30)), Controls(), rules), None, rules) == "30 s × 25"
    assert explain(weigh(examined(paper(2)), Controls(), rules), None, rules) == "2 pages × 532"
    assert explain(weigh(examined(screenshot()), Controls(), rules), None, rules) == "1920×1080 px"
