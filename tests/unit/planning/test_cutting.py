"""Films, sound and documents under a limit of bytes: what is done first, what it will weigh, what stands in the way."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from unit.planning.drawn import examined, paper, recording, song
from weighlock.media.facts import Facts, VideoFacts
from weighlock.media.work import AudioWork, DocumentWork, VideoWork, Work
from weighlock.planning.admit import admit
from weighlock.planning.cutting import Cut, copy_of, weigh_cut, work_of
from weighlock.planning.levers import EVERY_LEVER, Floor, Lever, LocalWork, Shaping
from weighlock.planning.limits import Limits
from weighlock.planning.obstacles import obstacles
from weighlock.planning.plan import plan
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Modality, Placement
from weighlock.rules import Controls, ModelRules

BYTES = 60_000_000
MINUTE = Controls(start_offset_s=30, end_offset_s=90)


def part(facts: Facts, rules: ModelRules, controls: Controls | None = None, size_bytes: int = BYTES) -> Weighed:
    return weigh(examined(facts, size_bytes=size_bytes), controls or Controls(), rules)


def planned(one: Weighed, rules: ModelRules, limits: Limits, shaping: Shaping | None = None) -> Plan:
    return plan([one], rules, shaping or Shaping(), lambda load: admit(load, limits, None), [Wish()])


def words(found: Plan) -> list[str]:
    return [step.words for step in found.steps]


@pytest.mark.parametrize(
    ("limit", "told", "work"),
    [
        (
            40_000_000,
            ["its file at 1 fps, at most 30,000,000 bytes"],
            VideoWork(start_s=0, end_s=240, fps=1, max_bytes=30_000_000),
        ),
        (
            10_000_000,
            ["its file at 1 fps, at most 7,500,000 bytes"],
            VideoWork(start_s=0, end_s=240, fps=1, max_bytes=7_500_000),
        ),
        (
            1_600_000,
            ["its file at 1 fps, at most 7,500,000 bytes", "clip last 30s, at most 937,500 bytes"],
            VideoWork(start_s=210, end_s=240, fps=1, max_bytes=937_500),
        ),
    ],
)
def test_bytes_go_before_anything_that_is_sampled(
    rules: ModelRules, limit: int, told: list[str], work: VideoWork
) -> None:
    one = part(recording(fps=30), rules)

    found = planned(one, rules, Limits(bytes=limit))

    assert found.fits
    assert words(found) == told
    assert found.works == {0: work}
    assert found.parts[0].controls == Controls(fps=1)


@pytest.mark.parametrize(
    ("facts", "controls", "work"),
    [
        (recording(fps=30), MINUTE, VideoWork(start_s=30, end_s=90, max_bytes=BYTES // 4)),
        (song(240, codec="mp3"), MINUTE, AudioWork(start_s=30, end_s=90, max_bytes=BYTES // 4)),
        (paper(100), Controls(first_page=11, last_page=30), DocumentWork(first_page=11, last_page=30)),
    ],
)
def test_a_file_is_cut_to_what_is_sent_of_it_at_no_loss(
    rules: ModelRules, facts: Facts, controls: Controls, work: Work
) -> None:
    one = part(facts, rules, controls)

    found = planned(one, rules, Limits(bytes=BYTES // 2))

    assert found.works == {0: work}
    assert found.parts[0].total == one.total
    assert found.parts[0].controls == Controls()


def test_a_step_for_tokens_is_cut_into_the_file_where_bytes_are_over_too(rules: ModelRules) -> None:
    one, limits = part(recording(fps=30), rules), Limits(prompt_tokens=6_000, bytes=2_000_000)

    found = planned(one, rules, limits, Shaping(levers=(Lever.CLIP, Lever.REENCODE)))

    assert found.fits
    (work,) = found.works.values()
    assert isinstance(work, VideoWork)
    assert (work.start_s, work.end_s, work.fps) == (180, 240, 1)
    assert not found.parts[0].controls.clipped


def test_a_caller_s_rate_is_the_file_s_and_none_is_set_where_the_model_does_not_know_it(rules: ModelRules) -> None:
    slow = part(recording(fps=30), rules, Controls(fps=0.5))
    still = part(recording(fps=0.5), rules)

    (work,) = planned(slow, rules, Limits(bytes=BYTES // 2)).works.values()
    (kept,) = planned(still, rules, Limits(bytes=BYTES // 2)).works.values()

    assert isinstance(work, VideoWork)
    assert isinstance(kept, VideoWork)
    assert work.fps == 0.5
    assert kept.fps is None, "no frame is made up"


def test_sound_that_a_caller_does_not_send_leaves_the_file(rules: ModelRules) -> None:
    one = part(recording(fps=30), rules, Controls(drop_sound=True))

    (work,) = planned(one, rules, Limits(bytes=BYTES // 2)).works.values()

    assert isinstance(work, VideoWork)
    assert not work.keep_sound


def test_a_film_that_loses_its_sound_is_weighed_as_a_silent_one(old_rules: ModelRules) -> None:
    one = part(recording(30), old_rules)

    silent = weigh_cut(one, Controls(drop_sound=True), Cut(sound=True), old_rules)

    assert [(tokens.rule_id, tokens.high) for tokens in silent.tokens][1:] == [("gemini-2.5/silent_sound", 960)]
    assert not silent.controls.drop_sound
    assert isinstance(silent.examined.facts, VideoFacts)
    assert silent.examined.facts.audio_tracks == 0


@pytest.mark.parametrize(
    ("cut", "codec", "copied"),
    [
        (Cut(span=True), "h264", True),
        (Cut(span=True, sound=True), "vp9", True),
        (Cut(thinned=0), "hevc", True),
        (Cut(span=True), "mpeg2video", False),
        (Cut(span=True), None, False),
        (Cut(thinned=1), "h264", False),  # fewer frames
        (Cut(span=True, thinned=9), "h264", False),
        (Cut(sound=True), "h264", False),  # no window: its pictures are copied anyway
    ],
)
def test_what_is_only_cut_to_a_window_may_be_copied(
    rules: ModelRules, cut: Cut, codec: str | None, copied: bool
) -> None:
    one = part(replace(recording(fps=30), codec=codec), rules, Controls(drop_sound=cut.sound))
    controls = replace(MINUTE, drop_sound=cut.sound)
    work = work_of(one, controls, cut, rules)
    assert isinstance(work, VideoWork)

    found = copy_of(one, work, rules)

    if found is None or not copied:
        assert (found is None) is not copied
        return
    copy, most = found
    assert copy == replace(work, exact=False, max_bytes=None, most_earlier_s=10)
    assert most.of(Modality.VIDEO).likely == weigh_cut(one, controls, cut, rules).of(Modality.VIDEO).likely * 70 // 60


def test_fewer_bytes_than_a_window_has_are_no_mere_window(rules: ModelRules) -> None:
    """Its frames stay, since there are no more than are sampled: only the encoder can make it smaller."""
    one = part(replace(recording(fps=1), codec="h264"), rules)
    work = work_of(one, MINUTE, Cut(thinned=1), rules)
    assert isinstance(work, VideoWork)
    assert work.fps is None

    assert copy_of(one, work, rules) is None


def test_thinner_files_only_ever_get_lighter_and_no_token_changes(rules: ModelRules) -> None:
    one = part(recording(fps=30), rules)

    thinned = [weigh_cut(one, one.controls, Cut(thinned=steps), rules) for steps in range(13)]

    assert {then.total for then in thinned} == {one.total}
    assert all((a.examined.size_bytes or 0) >= (b.examined.size_bytes or 0) for a, b in pairwise(thinned))
    assert thinned[-1] == thinned[-2]


def test_only_bytes_that_are_ours_are_worked_on(rules: ModelRules) -> None:
    one = part(recording(fps=30), rules, Controls(placement=Placement.URI))

    assert not planned(one, rules, Limits(bytes=1)).steps


def test_a_locked_document_is_not_taken_apart(old_rules: ModelRules) -> None:
    one = part(replace(paper(100), encrypted=True), old_rules)

    assert not planned(one, old_rules, Limits(prompt_tokens=1_000), Shaping(local_work=LocalWork.ALLOWED)).works


@pytest.mark.parametrize("facts", [recording(fps=30), song(240, codec="mp3"), paper(100)])
def test_what_keeps_a_file_from_becoming_smaller_is_named(rules: ModelRules, facts: Facts) -> None:
    one, limits = part(facts, rules), Limits(bytes=1_000)

    def knobs(shaping: Shaping) -> set[str | None]:
        return {stop.knob for stop in obstacles(planned(one, rules, limits, shaping), rules, shaping)}

    kind = (one.examined.modality or Modality.TEXT).lower()
    name = "pages" if kind == "document" else "seconds"
    assert knobs(Shaping(local_work=LocalWork.NEVER)) == {"local_work"}
    assert knobs(Shaping(levers=(Lever.FPS,))) == {"media.levers"}
    floored = Shaping(levers=EVERY_LEVER, floors={Modality(kind.upper()): Floor(seconds=60, pages=50)})
    assert knobs(floored) == {f"media.{kind}.floor.{name}"}
