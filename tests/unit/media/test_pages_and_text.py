"""PDF pages and text."""

from __future__ import annotations

from datetime import date

import pytest

from weighlock.media.facts import DocumentFacts, FactSource, ImageFacts, PageRun, TextFacts, TextSizes
from weighlock.media.text import request_tokens
from weighlock.request import Backend, Carrier, MediaResolution, Modality, Placement
from weighlock.rules import Controls, ModelRules, RuleBook, estimate

BOOK = RuleBook.packaged()
ON = date(2026, 11, 30)
A4 = (595.276, 841.89)
LETTER = (612.0, 792.0)


def pdf(
    *runs: tuple[int, tuple[float, float]], pages: int | None = None, pages_high: int | None = None
) -> DocumentFacts:
    listed = tuple(PageRun(pages=count, width_pt=size[0], height_pt=size[1]) for count, size in runs)
    total = sum(run.pages for run in listed) if pages is None else pages
    return DocumentFacts(pages=total, pages_high=total if pages_high is None else pages_high, runs=listed)


def rules(model: str = "gemini-3.8-flash", backend: Backend = Backend.DEVELOPER) -> ModelRules:
    return BOOK.for_model(model, backend, ON)


def test_each_page_counts_by_its_own_size() -> None:
    (found,) = estimate(pdf((3, A4), (2, LETTER)), Controls(), rules()).tokens

    assert found.likely == 3 * 532 + 2 * 520
    assert (found.modality, found.billed_as) == (Modality.DOCUMENT, Modality.IMAGE)


def test_pages_a_reader_may_see_beyond_the_leaves_raise_high_only() -> None:
    (found,) = estimate(pdf((2, A4), pages_high=1000), Controls(), rules()).tokens

    assert (found.likely, found.high) == (2 * 532, 1000 * 532)


def test_pages_of_unknown_size_count_as_the_dearest_known_page() -> None:
    (mixed,) = estimate(pdf((1, A4), (1, LETTER), pages=4), Controls(), rules()).tokens
    (unsized,) = estimate(pdf(pages=2), Controls(), rules()).tokens

    assert mixed.likely == 532 + 520 + 2 * 532
    assert unsized.likely == 2 * 532


def test_inside_a_tool_result_a_page_takes_the_image_budget_on_the_developer_api_only() -> None:
    inside = Controls(carrier=Carrier.TOOL_RESULT)
    found = [estimate(pdf((1, A4)), inside, rules(backend=backend)).tokens[0].likely for backend in Backend]

    assert found == [1092, 532]


def test_a_file_reference_inside_a_tool_result_is_not_read_and_the_sender_is_told() -> None:
    by_reference = Controls(carrier=Carrier.TOOL_RESULT, placement=Placement.FILES)
    for facts in (pdf((1, A4)), ImageFacts(width_px=597, height_px=566)):
        found = estimate(facts, by_reference, rules())

        assert found.tokens[0].likely == 0 < found.tokens[0].high
        assert "send the bytes inline" in found.notes[0]


def test_a_page_on_gemini_2_5_is_258_and_a_document_on_the_bill() -> None:
    (found,) = estimate(pdf((77, LETTER)), Controls(), rules("gemini-2.5-flash")).tokens

    assert (found.likely, found.high, found.billed_as) == (77 * 258, 77 * 258, Modality.DOCUMENT)


def test_a_lower_resolution_saves_four_fifths_and_more_on_gemini_3_images() -> None:
    shot = ImageFacts(width_px=1920, height_px=1080)
    high, low = (
        estimate(shot, Controls(media_resolution=level), rules()).tokens[0]
        for level in (MediaResolution.HIGH, MediaResolution.LOW)
    )

    assert 10 * high.high <= 11_200
    assert 10 * low.high == 2_800
    assert high.likely / low.likely > 4


def test_the_resolution_of_a_part_beats_the_requests_where_the_model_knows_one() -> None:
    controls = Controls(media_resolution=MediaResolution.LOW, part_resolution=MediaResolution.HIGH)
    shot = ImageFacts(width_px=1920, height_px=1080)

    assert estimate(shot, controls, rules()).tokens[0].likely == 1100
    old = estimate(shot, controls, rules("gemini-2.5-flash"))
    assert old.tokens[0].likely == 64
    assert "knows no resolution of a part" in old.notes[0]


def test_ultra_high_doubles_the_budget_of_one_part() -> None:
    controls = Controls(part_resolution=MediaResolution.ULTRA_HIGH)
    (found,) = estimate(ImageFacts(width_px=1920, height_px=1080), controls, rules()).tokens

    assert (found.likely, found.high) == (63 * 35, 2240)


@pytest.mark.parametrize("size", [(64, 64), (256, 256), (384, 384), (385, 385), (512, 512), (1024, 1024)])
def test_no_image_is_cheap_on_gemini_3(size: tuple[int, int]) -> None:
    (found,) = estimate(ImageFacts(width_px=size[0], height_px=size[1]), Controls(), rules()).tokens

    assert (found.low, found.likely, found.high) == (1089, 1089, 1089)


def test_one_image_on_two_backends_of_gemini_2_5() -> None:
    shot = ImageFacts(width_px=700, height_px=1003)
    found = [estimate(shot, Controls(), rules("gemini-2.5-flash", backend)).tokens[0].likely for backend in Backend]

    assert found == [258, 1806]


def test_a_guessed_image_size_raises_high_to_the_budget() -> None:
    guessed = ImageFacts(width_px=1920, height_px=1080, size_source=FactSource.ASSUMED)

    assert estimate(guessed, Controls(), rules()).tokens[0].high == 1120


def test_text_is_estimated_from_its_size_and_an_empty_one_costs_nothing() -> None:
    (found,) = estimate(TextFacts(chars=10_000), Controls(), rules()).tokens
    (empty,) = estimate(TextFacts(chars=0), Controls(), rules()).tokens

    assert (found.modality, found.likely) == (Modality.TEXT, 2200)
    assert found.low < 1800
    assert found.high > 3600
    assert (empty.low, empty.likely, empty.high) == (0, 0, 0)


def test_characters_beyond_ascii_cost_more() -> None:
    (ascii_only,) = estimate(TextFacts(chars=1000), Controls(), rules()).tokens
    (foreign,) = estimate(TextFacts(chars=1000, non_ascii_chars=1000), Controls(), rules()).tokens

    assert foreign.likely > 2 * ascii_only.likely
    assert foreign.high >= 1500


def test_signatures_count_while_the_turn_goes_on_and_only_on_the_developer_api() -> None:
    going_on = TextSizes(content_chars=400, thought_signature_chars=5000)
    spoken_since = TextSizes(content_chars=400, thought_signature_chars=5000, turn_continues=False)

    assert request_tokens(going_on, rules().text).likely > 900
    assert request_tokens(spoken_since, rules().text).likely < 120
    assert request_tokens(going_on, rules().text).high == request_tokens(spoken_since, rules().text).high
    assert request_tokens(going_on, rules(backend=Backend.VERTEX).text).likely < 120
