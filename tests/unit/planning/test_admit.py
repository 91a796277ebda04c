from __future__ import annotations

from decimal import Decimal

import pytest

from unit.planning.drawn import examined, recording, screenshot
from weighlock.errors import MalformedMedia
from weighlock.planning.admit import Decision, admit
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.weigh import CostRange, Examined, Weighed, weigh
from weighlock.request import Modality
from weighlock.rules import Controls, ModelRules


@pytest.fixture
def shot(rules: ModelRules) -> Weighed:
    return weigh(examined(screenshot()), Controls(), rules)


@pytest.fixture
def film(rules: ModelRules) -> Weighed:
    return weigh(examined(recording()), Controls(), rules)


def test_a_limit_of_exactly_the_need_admits_and_one_less_refuses(shot: Weighed) -> None:
    need = shot.total.high

    assert admit(Load.of([shot]), Limits(prompt_tokens=need), None).decision is Decision.ADMIT
    assert admit(Load.of([shot]), Limits(prompt_tokens=need - 1), None).decision is Decision.REJECT


def test_the_high_estimate_decides_and_says_when_a_count_would_settle_it(film: Weighed) -> None:
    video = film.of(Modality.VIDEO)
    assert video.low < video.high

    verdict = admit(Load.of([film]), Limits(tokens={Modality.VIDEO: video.high - 1}), None)

    assert verdict.decision is Decision.REJECT
    assert verdict.over[0].a_count_would_settle


def test_the_sound_of_a_film_counts_against_the_audio_limit(film: Weighed) -> None:
    verdict = admit(Load.of([film]), Limits(tokens={Modality.AUDIO: 5_999}), None)

    assert [check.name for check in verdict.over] == ["tokens.audio"]
    assert verdict.over[0].likely == 6_000


def test_zero_admits_nothing_of_the_kind_and_no_limit_admits_all(shot: Weighed, film: Weighed) -> None:
    nothing_heard = admit(Load.of([shot]), Limits(tokens={Modality.AUDIO: 0}), None)
    something_heard = admit(Load.of([film]), Limits(tokens={Modality.AUDIO: 0}), None)

    assert nothing_heard.decision is Decision.ADMIT
    assert something_heard.decision is Decision.REJECT
    assert admit(Load.of([film] * 1000), Limits(), None).decision is Decision.ADMIT


def test_an_unreadable_part_leaves_the_verdict_open_unless_something_is_over_anyway(shot: Weighed) -> None:
    broken = Weighed(
        examined=Examined(label="broken", error=MalformedMedia("truncated")),
        controls=Controls(),
        error=MalformedMedia("truncated"),
    )

    assert admit(Load.of([shot, broken]), Limits(prompt_tokens=10_000), None).decision is Decision.UNKNOWN
    assert admit(Load.of([shot, broken]), Limits(prompt_tokens=10), None).decision is Decision.REJECT


def test_usd_are_held_against_the_high_cost(shot: Weighed) -> None:
    cost = CostRange(low=Decimal("0.01"), likely=Decimal("0.02"), high=Decimal("0.03"))

    assert admit(Load.of([shot]), Limits(cost_usd=Decimal("0.03")), cost).decision is Decision.ADMIT
    assert admit(Load.of([shot]), Limits(cost_usd=Decimal("0.029")), cost).decision is Decision.REJECT


def test_parts_and_bytes_are_counted(shot: Weighed) -> None:
    verdict = admit(Load.of([shot, shot]), Limits(media_parts=1, bytes=1_999), None)

    assert {check.name: check.high for check in verdict.over} == {"media_parts": 2, "bytes": 2_000}


def test_a_policy_reason_refuses_by_itself(shot: Weighed) -> None:
    verdict = admit(Load.of([shot]), Limits(), None, reasons=("no price is known",))

    assert verdict.decision is Decision.REJECT
    assert not verdict.over
