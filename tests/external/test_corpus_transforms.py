"""Every film and song of the corpus through the transforms: what comes out decodes and agrees with itself."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date
from typing import Any

import av
import pytest

import corpus
import sounds
from corpus import CORPUS
from making import frames_given
from weighlock.codecs import Prober, Transformer, make_bytes
from weighlock.errors import InputError
from weighlock.media.facts import AudioFacts, Facts, Probed, VideoFacts
from weighlock.media.work import AudioWork, Made, VideoWork
from weighlock.request import Backend, Modality
from weighlock.rules import Controls, ModelRules, RuleBook, estimate

pytestmark = pytest.mark.external

FILM_WORKS = {
    "thin": VideoWork(fps=1), "thick": VideoWork(fps=5, max_width_px=96), "exact": VideoWork(start_s=0.3, end_s=1.1),
    "copy": VideoWork(start_s=0.3, exact=False), "hushed": VideoWork(keep_sound=False),
}  # fmt: skip
SONG_WORKS = {
    "flac": AudioWork(start_s=0.2, end_s=1.4, mime="audio/flac"), "mp3": AudioWork(mime="audio/mpeg"),
    "wav": AudioWork(start_s=0.1, mime="audio/wav"), "kept": AudioWork(),
}  # fmt: skip
UNDECODABLE = {
    "media/sample_mpegh_lcbl_cicp1_multi.ts", "media/sample_mpegh_bl_configchange_multi.ts",
    "media/sample_mpegh_bl_cicp1_cont_setrai_unsetdai.ts",
    "media/sample_mhm1_prefaudiolang.mp4",
    "media/sample_ac4.mp4",
    "media/sample_ac4_fragmented.mp4",
}  # fmt: skip
"""Sound that no decoder here knows (MPEG-H, AC-4): a typed error is the right answer."""
CUT_WITHIN_A_GROUP = {"media/dolbyVision-hdr.MOV"}
"""Its edit list ends before a picture that others lean on: a copy without its sound has to hold that, 60 ms more."""
BOOK, AS_OF = RuleBook.packaged(), date(2026, 11, 30)
SLACK_S, SYNC_S = 0.05, 0.040
BROKEN = {"music-metadata/flac-bug.flac"}
"""Copied with the packet in it that no decoder takes."""
TOO_SHORT = {"tinytag/vbr_xing_header_2channel.mp3"}
"""Whose header promises more than there is: a clip of what is not there is refused."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [row for row in corpus.needed() if row["modality"] in ("video", "audio")]


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Prober() as prober:
        yield Transformer(prober)


def weighed(transformer: Transformer, row: dict[str, Any]) -> Probed | None:
    """What a probe says of it; `None` where it cannot be weighed, and so not be transformed."""
    path = CORPUS / row["file"]
    with path.open("rb") as file:
        try:
            return transformer._prober.probe(
                file.fileno(), size_bytes=path.stat().st_size, mime=row["mime"],
                modality=Modality(row["modality"].upper()),
            )  # fmt: skip
        except InputError:
            return None


def decodes(data: bytes) -> bool:
    container: Any
    with av.open(io.BytesIO(data)) as container:
        try:
            return sum(len(packet.decode()) for packet in container.demux() if packet.stream.type != "data") > 0
        except av.error.FFmpegError:
            return False


@pytest.mark.parametrize("name", FILM_WORKS)
def test_films_of_the_corpus(rows: list[dict[str, Any]], transformer: Transformer, name: str) -> None:
    work, wrong, done, heard = FILM_WORKS[name], [], 0, 0
    for row in rows:
        probed = weighed(transformer, row) if row["modality"] == "video" else None
        if probed is None or not isinstance(facts := probed.facts, VideoFacts):
            continue
        if (work.start_s or 0) >= facts.duration_s:
            continue
        source = (CORPUS / row["file"]).read_bytes()
        try:
            out, made = make_bytes(transformer, source, mime=row["mime"], work=work)
        except InputError as error:
            wrong.append(f"{row['file']}: {error.message}")
            continue
        done += 1
        problem = judged_film(work, facts, out, made)
        if (lag_s := drift_s(work, facts, source, out, made)) is not None:
            heard += 1
            if abs(lag_s) > SYNC_S:
                problem = problem or f"its sound is {lag_s:+.3f} s off"
        copied = name == "hushed" and row["file"] in CUT_WITHIN_A_GROUP
        if problem is None and not (copied or probed.anomalies or made.notes):  # nobody knows how long the others are
            problem = mismeasured(work, facts, made)
        if problem:
            wrong.append(f"{row['file']}: {problem}")

    assert not wrong, "\n".join(wrong)
    assert done >= 20
    assert heard >= 7 or not work.keep_sound  # the others are too even, or too short, to tell


def judged_film(work: VideoWork, before: VideoFacts, out: bytes, made: Made) -> str | None:
    facts = made.probed.facts
    assert isinstance(facts, VideoFacts)
    if not decodes(out):
        return "nothing decodes"
    if facts.rotation_deg and (work.exact and work.keep_sound):
        return "not upright"
    if facts.audio_tracks and not work.keep_sound:
        return "sound was to be dropped"
    if not made.notes and made.probed.anomalies:
        return f"contradicts itself: {made.probed.anomalies[0].detail}"
    return None


def planned_s(work: VideoWork | AudioWork, before: AudioFacts | VideoFacts, made: Made) -> tuple[float, float]:
    """How long the result is to be: where one of a film's two streams ends or begins within the other, between two."""
    shortest_s = longest_s = before.duration_s
    if isinstance(before, VideoFacts) and isinstance(work, AudioWork):
        shortest_s = before.audio_duration_s or 0.0
    elif isinstance(before, VideoFacts) and isinstance(work, VideoWork) and not work.keep_sound:
        shortest_s = (before.frames or 0) / (before.average_fps or 25.0)
    start_s = made.actual_start_s if made.actual_start_s is not None else work.start_s or 0.0
    end_s = work.end_s or longest_s
    return min(shortest_s, end_s) - start_s, min(longest_s, end_s) - start_s


def mismeasured(work: VideoWork | AudioWork, before: AudioFacts | VideoFacts, made: Made) -> str | None:
    """How the result differs from its plan by more than one frame or 50 ms, or in what is billed for it."""
    after, (shortest_s, longest_s) = made.probed.facts, planned_s(work, before, made)
    assert isinstance(after, AudioFacts | VideoFacts)
    slack_s = max(SLACK_S, 1 / (before.average_fps or 25.0)) if isinstance(before, VideoFacts) else SLACK_S
    if not shortest_s - slack_s <= after.duration_s <= longest_s + slack_s:
        return f"{after.duration_s:.3f} s instead of {shortest_s:.3f} to {longest_s:.3f} s"
    if not isinstance(work, VideoWork) or not isinstance(before, VideoFacts) or work.max_width_px:
        return None
    start_s = made.actual_start_s if made.actual_start_s is not None else work.start_s
    asked = Controls(start_offset_s=start_s or None, end_offset_s=work.end_s, drop_sound=not work.keep_sound)
    for model in ("gemini-2.5-flash", "gemini-3.8-flash"):
        rules = BOOK.for_model(model, Backend.DEVELOPER, AS_OF)
        rule = rules.video(Controls())
        slack = {
            Modality.VIDEO: rule.frame.count(before.width_px, before.height_px)[1],
            Modality.AUDIO: rule.sound.tokens_per_s,
        }
        plan, bill = billed(before, asked, rules), billed(after, Controls(), rules)
        for modality, most in slack.items():
            if abs(bill.get(modality, 0) - plan.get(modality, 0)) > most:
                return f"{bill.get(modality, 0):,} tokens of {modality} instead of {plan.get(modality, 0):,} ({model})"
    return None


def billed(facts: Facts, controls: Controls, rules: ModelRules) -> dict[Modality, int]:
    return {tokens.modality: tokens.likely for tokens in estimate(facts, controls, rules).tokens}


def drift_s(work: VideoWork, before: VideoFacts, source: bytes, out: bytes, made: Made) -> float | None:
    """How much later its sound comes; `None` where there is none, or too even to tell."""
    if not work.keep_sound or not before.audio_tracks:
        return None
    start_s = made.actual_start_s if made.actual_start_s is not None else work.start_s or 0.0
    return sounds.lag_s(source, out, start_s)


@pytest.mark.parametrize("name", SONG_WORKS)
def test_songs_and_the_sound_of_films_of_the_corpus(
    rows: list[dict[str, Any]], transformer: Transformer, name: str
) -> None:
    work, wrong, done = SONG_WORKS[name], [], 0
    for row in rows:
        probed = weighed(transformer, row)
        if probed is None or row["file"] in UNDECODABLE | TOO_SHORT:
            continue
        facts = probed.facts
        assert isinstance(facts, AudioFacts | VideoFacts)
        sounding_s = facts.duration_s if isinstance(facts, AudioFacts) else facts.audio_duration_s or 0.0
        if sounding_s <= (work.start_s or 0) + 0.05:
            continue
        try:
            out, made = make_bytes(transformer, (CORPUS / row["file"]).read_bytes(), mime=row["mime"], work=work)
        except InputError as error:
            wrong.append(f"{row['file']}: {error.message}")
            continue
        done += 1
        if not (decodes(out) or row["file"] in BROKEN) or not isinstance(made.probed.facts, AudioFacts):
            wrong.append(f"{row['file']}: does not decode")
        elif not probed.anomalies and not made.notes and (problem := mismeasured(work, facts, made)):
            wrong.append(f"{row['file']}: {problem}")

    assert not wrong, "\n".join(wrong)
    assert done >= 60


def test_decoding_only_what_is_needed_gives_the_pictures_of_a_full_decode(rows: list[dict[str, Any]]) -> None:
    compared, differ = 0, []
    for row in rows:
        if row["modality"] != "video":
            continue
        data = (CORPUS / row["file"]).read_bytes()
        for fps in (0.7, 3.0):
            try:
                whole = frames_given(data, row["mime"], VideoWork(fps=fps), thrifty=False)
            except InputError:
                continue
            compared += 1
            if frames_given(data, row["mime"], VideoWork(fps=fps), thrifty=True) != whole:
                differ.append(row["file"])

    assert not differ
    assert compared >= 50
