from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import Facts, TextFacts
from weighlock.planning.admit import Decision, Verdict, admit
from weighlock.planning.knobs import Advice, advise, heaviest
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.weigh import weigh
from weighlock.request import Modality
from weighlock.rules import Controls, ModelRules


def judge_by(limits: Limits) -> Callable[[Load], Verdict]:
    return lambda load: admit(load, limits, None)


def advice_for(rules: ModelRules, limits: Limits, *media: Facts) -> Advice:
    parts = [weigh(examined(facts), Controls(), rules) for facts in media]
    return advise(parts, rules, judge_by(limits))


def test_a_recording_keeps_as_many_seconds_as_fit_before_it_keeps_frames(rules: ModelRules) -> None:
    limits = Limits(prompt_tokens=8_000, tokens={Modality.VIDEO: 2_500, Modality.AUDIO: 1_600})

    advice = advice_for(rules, limits, recording(240))

    assert advice.fits
    assert advice.settings[0].words == "clip last 60s + fps 0.5"
    assert advice.parts[0].of(Modality.VIDEO).likely == 1_980
    assert advice.parts[0].of(Modality.AUDIO).likely == 1_500


def test_a_screenshot_is_made_lighter_by_resolution_only(rules: ModelRules) -> None:
    advice = advice_for(rules, Limits(tokens={Modality.IMAGE: 600}), screenshot())

    assert advice.fits
    assert advice.settings[0].words == "resolution medium"


def test_a_setting_that_saves_nothing_is_never_advised(old_rules: ModelRules) -> None:
    advice = advice_for(old_rules, Limits(tokens={Modality.TEXT: 100, Modality.AUDIO: 7_000}), recording(240))

    assert advice.fits
    assert advice.settings[0].words == "clip last 120s"  # no level of resolution and no frame rate lowers sound


def test_where_no_part_has_a_resolution_of_its_own_the_request_s_is_advised(old_rules: ModelRules) -> None:
    advice = advice_for(old_rules, Limits(tokens={Modality.IMAGE: 100}), screenshot())

    assert advice.fits
    assert advice.settings[0].words == "the request's resolution low"


def test_a_setting_the_service_would_refuse_is_never_advised(rules: ModelRules) -> None:
    advice = advice_for(rules, Limits(tokens={Modality.VIDEO: 100}), recording(4))

    assert not advice.fits
    assert all(not part.refused for part in advice.parts)


def test_one_hopeless_limit_does_not_keep_the_others_from_help(rules: ModelRules) -> None:
    limits = Limits(tokens={Modality.TEXT: 1, Modality.IMAGE: 300, Modality.DOCUMENT: 10})
    words = TextFacts(chars=10_000)

    advice = advice_for(rules, limits, words, screenshot(), paper(1))

    assert advice.settings[1].words == "resolution low"
    assert [check.name for check in advice.still_over] == ["tokens.text", "tokens.document"]


def test_nothing_to_lower_is_no_advice(rules: ModelRules) -> None:
    over = admit(Load.of([]), Limits(prompt_tokens=0), None, reasons=("x",)).limits

    assert advise([], rules, judge_by(Limits(prompt_tokens=0))).fits
    assert heaviest([], over, rules) is None


def test_a_long_document_is_cut_to_its_first_pages(rules: ModelRules) -> None:
    advice = advice_for(rules, Limits(tokens={Modality.DOCUMENT: 6_000}), paper(pages=200))

    assert advice.fits
    assert advice.settings[0].first_pages


def test_the_lowest_reachable_is_told_when_nothing_fits(rules: ModelRules) -> None:
    advice = advice_for(rules, Limits(tokens={Modality.AUDIO: 10}), song(600))

    assert not advice.fits
    assert advice.settings[0].words == "clip last 20s"
    assert advice.parts[0].of(Modality.AUDIO).likely == 500


def test_of_several_media_the_heaviest_is_lightened_first(rules: ModelRules) -> None:
    advice = advice_for(rules, Limits(prompt_tokens=20_000), screenshot(), recording(240), song(30))

    assert advice.fits
    assert set(advice.settings) == {1}


@given(
    limit=st.integers(0, 30_000),
    seconds=st.floats(1, 10_000),
    pages=st.integers(1, 1_000),
    modality=st.sampled_from([None, *Modality]),
)
def test_advice_that_says_it_fits_fits(limit: int, seconds: float, pages: int, modality: Modality | None) -> None:
    from datetime import date

    from weighlock.request import Backend
    from weighlock.rules import RuleBook

    rules = RuleBook.packaged().for_model("gemini-3.8-flash", Backend.DEVELOPER, date(2026, 11, 30))
    limits = Limits(tokens={modality: limit}) if modality else Limits(prompt_tokens=limit)

    advice = advice_for(rules, limits, recording(seconds), paper(pages), screenshot(), song(seconds))

    assert advice.fits == (admit(Load.of(advice.parts), limits, None).decision is Decision.ADMIT)
    before = [
        weigh(examined(f), Controls(), rules) for f in (recording(seconds), paper(pages), screenshot(), song(seconds))
    ]
    assert all(after.total.high <= part.total.high for after, part in zip(advice.parts, before, strict=True))
