"""What holds of every estimate, whatever the medium, the settings, the model and the backend."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import example, given, settings
from hypothesis import strategies as st

from weighlock.media.area import Grid
from weighlock.media.facts import (
    AudioFacts,
    DocumentFacts,
    Facts,
    FactSource,
    ImageFacts,
    PageRun,
    TextFacts,
    VideoFacts,
)
from weighlock.request import Backend, Carrier, MediaResolution, Modality, Placement
from weighlock.rules import Controls, ModelRules, RuleBook, estimate

BOOK = RuleBook.packaged()
ON = date(2026, 11, 30)
RULES = {
    (model, backend): BOOK.for_model(model, backend, ON) for model in (*BOOK.models(), "unknown") for backend in Backend
}
# Hours of film, sides of a gigapixel, pages of a library: far beyond what any request may hold.
_SECONDS = st.floats(min_value=0.0, max_value=1e6, allow_nan=False, allow_infinity=False)
_SIDE = st.integers(min_value=1, max_value=2**24)
_PAGES = st.integers(min_value=0, max_value=100_000)
_POINTS = st.floats(min_value=0.01, max_value=14_400)
_RULES = st.sampled_from(sorted(RULES)).map(RULES.__getitem__)


@st.composite
def images(draw: st.DrawFn) -> ImageFacts:
    return ImageFacts(
        width_px=draw(_SIDE), height_px=draw(_SIDE), frames=draw(st.sampled_from([None, 1, 100])),
        size_source=draw(st.sampled_from(FactSource)),
    )  # fmt: skip


@st.composite
def sounds(draw: st.DrawFn) -> AudioFacts:
    shown_s, more_s = draw(_SECONDS), draw(_SECONDS)
    return AudioFacts(duration_s=shown_s, duration_high_s=shown_s + more_s, duration_source=FactSource.SCANNED)


@st.composite
def films(draw: st.DrawFn) -> VideoFacts:
    shown_s, more_s, sound_s = draw(_SECONDS), draw(_SECONDS), draw(st.none() | _SECONDS)
    return VideoFacts(
        width_px=draw(_SIDE), height_px=draw(_SIDE), duration_s=shown_s, duration_high_s=shown_s + more_s,
        duration_source=FactSource.SCANNED, audio_tracks=draw(st.integers(0, 3)),
        audio_duration_s=sound_s, audio_duration_high_s=None if sound_s is None else sound_s + draw(_SECONDS),
    )  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> DocumentFacts:
    run = st.builds(PageRun, pages=_PAGES, width_pt=_POINTS, height_pt=_POINTS)
    runs = tuple(draw(st.lists(run, max_size=4)))
    pages = draw(st.just(sum(one.pages for one in runs)) | _PAGES)
    return DocumentFacts(pages=pages, pages_high=pages + draw(_PAGES), runs=runs)


@st.composite
def texts(draw: st.DrawFn) -> TextFacts:
    chars = draw(st.integers(0, 10**9))
    return TextFacts(chars=chars, non_ascii_chars=draw(st.integers(0, chars)))


@st.composite
def ways(draw: st.DrawFn) -> Controls:
    start_s, length_s = draw(st.none() | _SECONDS), draw(st.none() | st.floats(min_value=0.001, max_value=1e5))
    return Controls(
        media_resolution=draw(st.sampled_from([one for one in MediaResolution if one != MediaResolution.ULTRA_HIGH])),
        part_resolution=draw(st.none() | st.sampled_from(MediaResolution)),
        fps=draw(st.none() | st.floats(min_value=0.001, max_value=60)),
        start_offset_s=start_s,
        end_offset_s=None if length_s is None else (start_s or 0.0) + length_s,
        placement=draw(st.sampled_from(Placement)),
        carrier=draw(st.sampled_from(Carrier)),
    )


unhurried = settings(deadline=None)  # a busy machine proves nothing wrong
_FACTS = images() | sounds() | films() | documents() | texts()


def bounds(facts: Facts, controls: Controls, rules: ModelRules) -> dict[Modality, tuple[int, int, int]]:
    tokens = estimate(facts, controls, rules).tokens
    found = {one.modality: (one.low, one.likely, one.high) for one in tokens}
    assert len(found) == len(tokens)
    return found


def never_less(
    less: dict[Modality, tuple[int, int, int]], more: dict[Modality, tuple[int, int, int]], bound: int
) -> bool:
    return all(more[modality][bound] >= figures[bound] for modality, figures in less.items())


@unhurried
@given(_FACTS, ways(), _RULES)
@example(ImageFacts(width_px=10_000, height_px=1), Controls(), RULES["gemini-3.8-flash", Backend.DEVELOPER])
@example(DocumentFacts(pages=0, pages_high=0, runs=()), Controls(), RULES["gemini-3.8-flash", Backend.DEVELOPER])
def test_nothing_raises_and_low_likely_and_high_stand_in_order(
    facts: Facts, controls: Controls, rules: ModelRules
) -> None:
    for low, likely, high in bounds(facts, controls, rules).values():
        assert 0 <= low <= likely <= high


@unhurried
@given(_FACTS, ways(), st.sampled_from([*BOOK.models(), "unknown"]))
def test_both_backends_see_the_same_modalities_as_sent(facts: Facts, controls: Controls, model: str) -> None:
    developer, vertex = (bounds(facts, controls, RULES[model, backend]) for backend in Backend)

    assert developer.keys() == vertex.keys()


@unhurried
@given(films(), ways(), _RULES, st.floats(min_value=0, max_value=1e5))
def test_more_seconds_of_film_never_cost_less(
    film: VideoFacts, controls: Controls, rules: ModelRules, more_s: float
) -> None:
    longer = replace(film, duration_s=film.duration_s + more_s, duration_high_s=film.duration_high_s + more_s)
    if film.audio_duration_s is not None and film.audio_duration_high_s is not None:
        longer = replace(
            longer,
            audio_duration_s=film.audio_duration_s + more_s,
            audio_duration_high_s=film.audio_duration_high_s + more_s,
        )
    for bound in range(3):
        assert never_less(bounds(film, controls, rules), bounds(longer, controls, rules), bound)


@unhurried
@given(sounds(), ways(), _RULES, st.floats(min_value=0, max_value=1e5))
def test_more_seconds_of_sound_never_cost_less(
    sound: AudioFacts, controls: Controls, rules: ModelRules, more_s: float
) -> None:
    longer = replace(sound, duration_s=sound.duration_s + more_s, duration_high_s=sound.duration_high_s + more_s)
    for bound in range(3):
        assert never_less(bounds(sound, controls, rules), bounds(longer, controls, rules), bound)


@unhurried
@given(films(), ways(), _RULES, st.floats(min_value=0.001, max_value=24), st.floats(min_value=0, max_value=24))
def test_more_frames_a_second_never_cost_less_and_leave_the_sound_alone(
    film: VideoFacts, controls: Controls, rules: ModelRules, fps: float, more_fps: float
) -> None:
    slow = bounds(film, replace(controls, fps=fps), rules)
    fast = bounds(film, replace(controls, fps=fps + more_fps), rules)
    for bound in range(3):
        assert never_less(slow, fast, bound)
    assert slow.get(Modality.AUDIO) == fast.get(Modality.AUDIO)


@unhurried
@example(
    DocumentFacts(pages=0, pages_high=5, runs=()),
    PageRun(pages=1, width_pt=1000.0, height_pt=10.0),
    Controls(),
    RULES["gemini-3.8-flash", Backend.DEVELOPER],
)
@given(documents(), st.builds(PageRun, pages=_PAGES, width_pt=_POINTS, height_pt=_POINTS), ways(), _RULES)
def test_more_pages_never_cost_less(
    document: DocumentFacts, run: PageRun, controls: Controls, rules: ModelRules
) -> None:
    listed = sum(one.pages for one in document.runs)
    document = replace(document, pages=listed, pages_high=max(listed, document.pages_high))
    more = replace(
        document,
        runs=(*document.runs, run),
        pages=listed + run.pages,
        pages_high=document.pages_high + run.pages,
    )
    for bound in range(3):
        assert never_less(bounds(document, controls, rules), bounds(more, controls, rules), bound)


@unhurried
@given(_SIDE, _SIDE, st.integers(1, 1000), st.integers(1, 5000))
def test_a_grid_depends_on_the_aspect_only_and_stays_within_its_budget(
    width: int, height: int, scale: int, budget: int
) -> None:
    grid = Grid(budget)

    assert grid.count(width * scale, height * scale) == grid.count(width, height)
    assert grid.count(height, width) == grid.count(width, height)
    assert 1 <= grid.least(width, height) <= grid.count(width, height) <= budget


@unhurried
@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 100), ways(), st.sampled_from(Backend))
def test_an_image_costs_by_its_aspect_on_gemini_3(
    width: int, height: int, scale: int, controls: Controls, backend: Backend
) -> None:
    small = ImageFacts(width_px=width, height_px=height)
    large = ImageFacts(width_px=width * scale, height_px=height * scale)
    rules = RULES["gemini-3.8-flash", backend]

    assert bounds(small, controls, rules) == bounds(large, controls, rules)


@unhurried
@given(_FACTS, ways(), _RULES)
def test_no_known_model_can_cost_more_than_the_fallback_allows(
    facts: Facts, controls: Controls, rules: ModelRules
) -> None:
    # On models without a resolution per part the request's counts, so the same one is asked of the fallback.
    way = replace(controls, media_resolution=MediaResolution.UNSPECIFIED, part_resolution=rules.resolution(controls))
    bound = bounds(facts, way, RULES["unknown", rules.backend])

    assert all(high <= bound[modality][2] for modality, (_, _, high) in bounds(facts, controls, rules).items())
