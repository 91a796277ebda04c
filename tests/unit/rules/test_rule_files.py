"""Rule files: read strictly, dated, overlaid, and complete."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import pytest

from weighlock.errors import ConfigError
from weighlock.media.facts import ImageFacts
from weighlock.media.tokens import Confidence
from weighlock.request import Backend, Carrier, MediaResolution, Placement
from weighlock.rules import Controls, RuleBook, estimate
from weighlock.rules.audit import STALE_AFTER_DAYS, doubly_listed, mistakes, stale
from weighlock.rules.book import load, packaged_names, packaged_path, packaged_sources
from weighlock.rules.in_force import differences, in_force

BOOK = RuleBook.packaged()
ON = date(2026, 11, 30)
SHOT = ImageFacts(width_px=1920, height_px=1080)
HEAD = 'generation = "gemini-3"\nchecked_on = 2026-11-30\n'
IMAGE = '[[image]]\nlikely = {flat = 7}\nsince = 2026-01-01\nsource = "https://example.com"\nconfidence = "measured"\n'

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def overlay(text: str) -> Path:
        path = tmp_path / "overlay.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return overlay


def image_tokens(book: RuleBook, model: str, on: date = ON, backend: Backend = Backend.DEVELOPER) -> int:
    return estimate(SHOT, Controls(), book.for_model(model, backend, on)).tokens[0].likely


@pytest.mark.parametrize("name", packaged_names())
def test_every_packaged_file_is_named_after_its_generation_and_without_mistakes(name: str) -> None:
    generation = load(packaged_path(name))

    assert generation.name == name
    assert mistakes(generation) == ()
    assert all(model.startswith(f"{name}.") or model.startswith(f"{name}-") for model in generation.models)


def test_no_model_is_listed_twice() -> None:
    assert doubly_listed(BOOK.generations()) == ()


def test_every_packaged_source_is_used_and_has_a_title_and_an_address() -> None:
    used = {key for generation in BOOK.generations() for entry in generation.entries for key in entry.sources}

    assert used == packaged_sources().keys()
    assert all({"title", "url"} <= source.keys() for source in packaged_sources().values())


@pytest.mark.parametrize("model", [*BOOK.models(), "unknown"])
@pytest.mark.parametrize("backend", list(Backend))
def test_every_combination_of_resolution_placement_and_carrier_meets_a_rule(model: str, backend: Backend) -> None:
    rules = BOOK.for_model(model, backend, ON)
    for level, placement, carrier in product(MediaResolution, Placement, Carrier):
        way = Controls(part_resolution=level, placement=placement, carrier=carrier)
        named = (rules.image(way), rules.video(way), rules.audio(way), rules.document(way), rules.text)

        assert [rule.provenance.rule_id.split("/")[1] for rule in named] == [
            "image", "video", "audio", "document", "text",
        ]  # fmt: skip


def test_an_overlay_is_laid_over_the_packaged_figures_and_they_stay_as_they_are(write: Write) -> None:
    book = BOOK.with_overlay(write(HEAD + IMAGE))

    assert image_tokens(book, "gemini-3.8-flash") == 7
    assert image_tokens(BOOK, "gemini-3.8-flash") == 1100
    assert image_tokens(book, "gemini-2.5-flash") == 258


def test_an_overlaid_parent_reaches_the_generations_that_inherit_it(write: Write) -> None:
    book = BOOK.with_overlay(write(HEAD + IMAGE.replace("[[image]]", '[[image]]\nresolution = "low"')))
    low = Controls(media_resolution=MediaResolution.LOW)

    assert estimate(SHOT, low, book.for_model("gemini-4-neon", Backend.DEVELOPER, ON)).tokens[0].likely == 7


def test_selectors_narrow_an_entry(write: Write) -> None:
    narrow = '[[image]]\nbackend = "vertex"\nmodels = "gemini-3.[5-8]-flash*"\nplacement = "uri"\n'
    book = BOOK.with_overlay(write(HEAD + IMAGE.replace("[[image]]\n", narrow)))
    by_uri, inline = Controls(placement=Placement.URI), Controls()

    def ask(model: str, backend: Backend, way: Controls) -> int:
        return estimate(SHOT, way, book.for_model(model, backend, ON)).tokens[0].likely

    assert ask("gemini-3.8-flash", Backend.VERTEX, by_uri) == 7
    assert ask("gemini-3.8-flash", Backend.VERTEX, inline) == 1100
    assert ask("gemini-3.8-flash", Backend.DEVELOPER, by_uri) == 1100
    assert ask("gemini-3.1-flash-lite", Backend.VERTEX, by_uri) == 1100


def test_the_last_entry_that_had_begun_on_the_asked_day_wins(write: Write) -> None:
    later = IMAGE.replace("2026-01-01", "2026-06-01").replace("= 7", "= 8")
    book = BOOK.with_overlay(write(HEAD + IMAGE + later))

    assert image_tokens(book, "gemini-3.8-flash", date(2025, 12, 31)) == 1100
    assert image_tokens(book, "gemini-3.8-flash", date(2026, 1, 1)) == 7
    assert image_tokens(book, "gemini-3.8-flash", date(2026, 5, 31)) == 7
    assert image_tokens(book, "gemini-3.8-flash", date(2026, 6, 1)) == 8


def test_a_day_before_everything_known_gets_the_first_known_rules() -> None:
    assert image_tokens(BOOK, "gemini-3.8-flash", date(2001, 1, 1)) == 1100


def test_the_inline_limit_follows_its_dates() -> None:
    limits = [
        BOOK.for_model("gemini-3.8-flash", Backend.DEVELOPER, on).limits.inline_request_bytes
        for on in (date(2026, 1, 7), date(2026, 1, 8))
    ]

    assert limits == [20_000_000, 100_000_000]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[imgae]]\n", "imgae: unknown key; did you mean 'image'?"),
        (IMAGE.replace("likely", "likley"), "image[1].likley: unknown key; did you mean 'likely'?"),
        (IMAGE.replace("flat", "flta"), "image[1].likely: expected {flat = n}"),
        (IMAGE.replace("= 7", '= "7"'), "image[1].likely.flat: expected a whole number"),
        (IMAGE.replace("= 7", "= -7"), "image[1].likely.flat: expected a whole number"),
        (IMAGE.replace("measured", "measurd"), "unknown value 'measurd'; did you mean 'measured'?"),
        (IMAGE.replace('source = "https://example.com"\n', ""), "image[1].source: missing"),
        (IMAGE.replace("2026-01-01", '"2026-01-01"'), "image[1].since: expected a date"),
        (IMAGE.replace("2026-01-01", "2026-01-01T00:00:00"), "image[1].since: expected a date"),
        (IMAGE + 'backend = "vertx"\n', "image[1].backend: unknown value 'vertx'; did you mean 'vertex'?"),
        (IMAGE + 'resolution = ["low", "hihg"]\n', "image[1].resolution: unknown value 'hihg'; did you mean 'high'?"),
        (IMAGE.replace("[[image]]", "[image]"), "image: expected [[image]] entries"),
        (
            '[[limits]]\nlimit = "imges"\nvalue = 3\nsince = 2026-01-01\nsource = "x"\nconfidence = "measured"\n',
            "limits[1].limit: unknown limit 'imges'; did you mean 'images'?",
        ),
        (
            '[[audio]]\ntokens_per_s = 0\nrounding = "ceil"\nsince = 2026-01-01\nsource = "x"\n'
            'confidence = "measured"\n',
            "audio[1].tokens_per_s: expected a whole number of at least 1",
        ),
        ("checked_on = 2026-01-01\n", "not TOML"),
        ("\x00", "not TOML"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_the_nearest_right_one(write: Write, text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BOOK.with_overlay(write(HEAD + text))

    assert named in str(caught.value)
    assert "overlay.toml" in str(caught.value)


def test_every_mistake_is_kept_with_the_error(write: Write) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(HEAD + IMAGE.replace("measured", "sure").replace("likely", "likley")))

    assert len(caught.value.figures["mistakes"]) == 3
    assert "(and 2 more)" in str(caught.value)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: No such file"):
        BOOK.with_overlay(tmp_path / "gone.toml")


def test_a_new_generation_must_say_what_every_medium_costs(write: Write) -> None:
    alone = HEAD.replace("gemini-3", "acme") + 'models = ["acme-1"]\n' + IMAGE

    with pytest.raises(ConfigError, match=r"acme has no \[\[video\]\] entry"):
        BOOK.with_overlay(write(alone))


def test_an_unknown_parent_and_a_circle_are_errors(write: Write) -> None:
    with pytest.raises(ConfigError, match="no generation 'gemini-33'; did you mean 'gemini-3'"):
        BOOK.with_overlay(write(HEAD.replace("gemini-3", "acme") + 'inherits = "gemini-33"\n'))
    with pytest.raises(ConfigError, match="circle"):
        BOOK.with_overlay(write(HEAD + 'inherits = "gemini-4"\n'))


def test_a_source_nobody_knows_and_a_date_after_the_check_are_mistakes(write: Write) -> None:
    found = mistakes(
        load(write(HEAD + IMAGE.replace("https://example.com", "MRgg").replace("2026-01-01", "2027-01-01")))
    )

    assert [line.split(":")[0] for line in found] == ["image[1].source", "image[1]"]
    assert "did you mean 'MRg'" in found[0]


def test_rules_grow_stale() -> None:
    generation = BOOK.generation("gemini-3")
    last_day = generation.checked_on + timedelta(days=STALE_AFTER_DAYS)

    assert stale(generation, last_day) is None
    assert "91 days ago" in (stale(generation, last_day + timedelta(days=1)) or "")


@pytest.mark.parametrize(
    ("model", "backend", "carrier", "mime", "taken"),
    [
        ("gemini-3.8-flash", "developer", "user", "image/heic", True),
        ("gemini-3.8-flash", "developer", "user", "image/gif", False),
        ("gemini-3.8-flash", "developer", "user", "video/quicktime", True),  # there as video/mov
        ("gemini-3.8-flash", "developer", "user", "audio/aiff", True),
        ("gemini-3.8-flash", "vertex", "user", "audio/aiff", False),
        ("gemini-3.8-flash", "developer", "tool_result", "image/webp", True),
        ("gemini-3.8-flash", "developer", "tool_result", "image/heic", False),
        ("gemini-3.8-flash", "vertex", "tool_result", "application/pdf", True),
        ("gemini-3.8-flash", "developer", "tool_result", "audio/mpeg", False),
        ("gemini-3.8-flash", "vertex", "tool_result", "video/mp4", False),
        ("gemini-2.5-flash", "developer", "user", "application/pdf", True),
        ("gemini-2.5-flash", "developer", "tool_result", "image/png", False),
        ("gemini-2.0-flash", "vertex", "tool_result", "text/plain", False),
        ("unknown", "developer", "user", "image/gif", True),
        ("unknown", "developer", "tool_result", "image/png", True),
        ("unknown", "developer", "tool_result", "video/mp4", False),  # nobody's tool results hold a film so far
    ],
)
def test_what_a_carrier_may_hold(model: str, backend: str, carrier: str, mime: str, taken: bool) -> None:
    rules = BOOK.for_model(model, Backend(backend), ON)

    assert rules.accepts(mime, Carrier(carrier)) is taken


def test_a_film_is_as_well_founded_as_the_weaker_of_its_frames_and_their_number() -> None:
    rules = BOOK.for_model("gemini-2.5-flash", Backend.DEVELOPER, ON)
    inline, by_files = (rules.video(Controls(placement=one)) for one in (Placement.INLINE, Placement.FILES))

    assert inline.provenance.confidence is Confidence.MEASURED
    assert by_files.provenance.confidence is Confidence.ASSUMED  # one bill shows how many frames the Files API takes


def test_holding_nothing_is_told_from_knowing_nothing() -> None:
    old, unknown = (BOOK.for_model(model, Backend.DEVELOPER, ON) for model in ("gemini-2.5-flash", "unknown"))

    assert old.accepted(Carrier.TOOL_RESULT) == frozenset()
    assert unknown.accepted(Carrier.USER) is None


def test_every_figure_in_force_is_listed_once_with_when_it_holds() -> None:
    rules = BOOK.for_model("gemini-3-flash-preview", Backend.DEVELOPER, ON)
    frames = [(one.when, one.entry.figure) for one in in_force(rules) if one.name == "video"]

    assert [when for when, _ in frames] == [
        "unspecified, low, medium · inline, uri",
        "unspecified, low, medium · files",
        "high, ultra_high",
    ]
    assert not [one for one in in_force(rules) if "20_000_000" in str(one.entry.figure)]


def test_a_model_does_not_differ_from_itself_and_differs_from_another() -> None:
    new = BOOK.for_model("gemini-3.8-flash", Backend.DEVELOPER, ON)
    old = BOOK.for_model("gemini-2.5-flash", Backend.DEVELOPER, ON)
    audio = next(one for one in differences(old, new) if one.name == "audio")

    assert differences(new, new) == ()
    assert (audio.old, audio.new, audio.when) == ("32 a second, rounded up", "25 a second, rounded up", "")


def test_a_rule_is_read_only_when_its_generation_is_asked_for() -> None:
    code = (
        "import tomllib; read = []; loads = tomllib.loads\n"
        "tomllib.loads = lambda text: read.append(loads(text)) or read[-1]\n"
        "from datetime import date; from weighlock.rules import RuleBook; from weighlock.request import Backend\n"
        "RuleBook.packaged().for_model('gemini-2.5-flash', Backend.DEVELOPER, date(2026, 11, 30))\n"
        "print([file['generation'] for file in read])"
    )
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert answer.stdout.strip() == "['gemini-2.5']"


def test_packaged_files_are_small_enough_to_be_read_by_a_person() -> None:
    for name in packaged_names():
        assert len(tomllib.loads(packaged_path(name).read_text(encoding="utf-8")))
        assert packaged_path(name).stat().st_size < 20_000
