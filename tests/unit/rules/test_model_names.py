"""What a model's name stands for, and that no unknown one borrows."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from weighlock.media.facts import ImageFacts
from weighlock.media.tokens import Confidence
from weighlock.request import Backend
from weighlock.rules import Controls, Match, RuleBook, estimate
from weighlock.rules.book import packaged_aliases

BOOK = RuleBook.packaged()
ON = date(2026, 11, 30)


@pytest.mark.parametrize("model", BOOK.models())
def test_every_listed_name_stands_for_itself(model: str) -> None:
    found = BOOK.resolve(model)

    assert (found.model, found.match, found.note) == (model, Match.EXACT, None)
    assert BOOK.for_model(model, Backend.VERTEX, ON).known


def test_spaces_around_a_name_are_no_part_of_it() -> None:
    assert BOOK.resolve(" gemini-2.5-flash\n") == BOOK.resolve("gemini-2.5-flash")


@pytest.mark.parametrize(
    ("asked", "model"),
    [
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("projects/acme-1/locations/eu/publishers/google/models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("google/gemini-2.5-pro", "gemini-2.5-pro"),
        ("Gemini-2.5-Flash", "gemini-2.5-flash"),
        (" models/gemini-2.5-flash ", "gemini-2.5-flash"),
        ("gemini-2.5-flash-latest", "gemini-2.5-flash"),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash"),
        ("gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite"),
        ("gemini-2.5-pro-preview-03-25", "gemini-2.5-pro"),
        ("gemini-2.5-flash-image-preview", "gemini-2.5-flash-image"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.0-flash-lite-001", "gemini-2.0-flash-lite"),
        ("gemini-2.0-flash-exp", "gemini-2.0-flash"),
        ("gemini-2.0-flash@001", "gemini-2.0-flash"),
        ("gemini-2.5-flash@default", "gemini-2.5-flash"),
        ("gemini-3-pro-image-preview", "gemini-3-pro-image"),
        ("gemini-3-flash-preview-12-2025", "gemini-3-flash-preview"),
        ("models/gemini-4-neon", "gemini-4-neon"),
    ],
)
def test_paths_versions_and_previews_stand_for_the_listed_model_and_say_so(asked: str, model: str) -> None:
    found = BOOK.resolve(asked)

    assert (found.model, found.match) == (model, Match.ALIAS)
    assert model in (found.note or "")


def test_a_name_that_moves_is_what_it_stood_for_and_says_when() -> None:
    found = BOOK.resolve("models/gemini-flash-latest")

    assert (found.model, found.generation, found.match) == ("gemini-3.8-flash", "gemini-3", Match.ALIAS)
    assert "moves with Google's releases" in (found.note or "")
    assert all(BOOK.resolve(model).match is Match.EXACT for model in packaged_aliases()["models"].values())


@pytest.mark.parametrize(
    "asked",
    [
        "gemini-3.9-flash",
        "gemini-5-pro",
        "gemini-30-flash",
        "gemini-3-flash",  # no such name is listed, and a preview's figures are not its successor's
        "gemini-3",
        "gemini-2.5-flash-preview-tts",
        "gemini-2.5-flash-native-audio-latest",
        "gemini-2.5-computer-use-preview-10-2025",
        "gemini-nano-latest",
        "gemini-1.5-flash",
        "tunedModels/my-gemini-2.5-flash",
        "projects/p/locations/us-central1/endpoints/1234567890",
        "fallback",
        "sources",
        "aliases",
        "",
        "../gemini-3",
        "gpt-4o",
    ],
)
def test_an_unknown_name_gets_the_fallback_and_says_so(asked: str) -> None:
    rules = BOOK.for_model(asked, Backend.DEVELOPER, ON)

    assert (rules.known, rules.generation) == (False, "fallback")
    assert "no measured rules" in (rules.note or "")
    (found,) = estimate(ImageFacts(width_px=1920, height_px=1080), Controls(), rules).tokens
    assert (found.rule_id, found.confidence) == ("fallback/image", Confidence.ASSUMED)
    assert found.likely == 1806  # the dearest of the generations


def test_a_misspelt_name_is_answered_with_the_nearest_one_and_a_foreign_one_with_none() -> None:
    assert BOOK.suggestion("models/gemini-2.5-flahs") == "; did you mean 'gemini-2.5-flash'?"
    assert BOOK.suggestion("gpt-9") == ""


def test_gemini_4_is_carried_over_and_every_figure_of_a_medium_is_marked_assumed() -> None:
    rules = BOOK.for_model("gemini-4-argon", Backend.DEVELOPER, ON)
    sections = ("image", "video", "sampling", "sound", "audio", "document", "text")

    assert {entry.confidence for name in sections for entry in rules.sections[name]} == {Confidence.ASSUMED}
    (found,) = estimate(ImageFacts(width_px=1920, height_px=1080), Controls(), rules).tokens
    assert (found.likely, found.high, found.rule_id) == (1100, 1120, "gemini-4/image")


def test_a_new_model_file_on_disk_is_the_whole_of_adding_a_generation(tmp_path: Path) -> None:
    file = tmp_path / "gemini-5.toml"
    file.write_text(
        'generation = "gemini-5"\nchecked_on = 2027-01-01\ninherits = "gemini-4"\nmodels = ["gemini-5-flash"]\n'
        '[[audio]]\ntokens_per_s = 10\nrounding = "ceil"\nsince = 2026-11-01\nsource = "https://example.com"\n'
        'confidence = "documented"\n'
    )
    rules = BOOK.with_overlay(file).for_model("gemini-5-flash-preview-01-15", Backend.DEVELOPER, ON)

    assert (rules.model, rules.generation) == ("gemini-5-flash", "gemini-5")
    assert rules.audio(Controls()).tokens_per_s == 10
    assert BOOK.resolve("gemini-5-flash").match is Match.UNKNOWN


def test_the_rule_date_is_when_the_figures_were_checked() -> None:
    assert BOOK.for_model("gemini-3.8-flash", Backend.DEVELOPER, ON).rule_date == date(2026, 11, 30)
