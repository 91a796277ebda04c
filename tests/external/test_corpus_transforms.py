"""Every film and song of the corpus through the transforms: what comes out decodes and agrees with itself."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import av
import pytest

import corpus
from corpus import CORPUS
from making import frames_given
from weighlock.codecs import Prober, Transformer, make_bytes
from weighlock.errors import InputError
from weighlock.media.facts import AudioFacts, VideoFacts
from weighlock.media.work import AudioWork, Made, VideoWork
from weighlock.request import Modality

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


def weighed(transformer: Transformer, row: dict[str, Any]) -> AudioFacts | VideoFacts | None:
    """What a probe says of it; `None` where it cannot be weighed, and so not be transformed."""
    path = CORPUS / row["file"]
    with path.open("rb") as file:
        try:
            facts = transformer._prober.probe(
                file.fileno(), size_bytes=path.stat().st_size, mime=row["mime"],
                modality=Modality(row["modality"].upper()),
            ).facts  # fmt: skip
        except InputError:
            return None
    assert isinstance(facts, AudioFacts | VideoFacts)
    return facts


def decodes(data: bytes) -> bool:
    container: Any
    with av.open(io.BytesIO(data)) as container:
        try:
            return sum(len(packet.decode()) for packet in container.demux() if packet.stream.type != "data") > 0
        except av.error.FFmpegError:
            return False


@pytest.mark.parametrize("name", FILM_WORKS)
def test_films_of_the_corpus(rows: list[dict[str, Any]], transformer: Transformer, name: str) -> None:
    work, wrong, done = FILM_WORKS[name], [], 0
    for row in rows:
        facts = weighed(transformer, row) if row["modality"] == "video" else None
        if not isinstance(facts, VideoFacts) or (work.start_s or 0) >= facts.duration_s:
            continue
        try:
            out, made = make_bytes(transformer, (CORPUS / row["file"]).read_bytes(), mime=row["mime"], work=work)
        except InputError as error:
            wrong.append(f"{row['file']}: {error.message}")
            continue
        done += 1
        if problem := judged_film(work, facts, out, made):
            wrong.append(f"{row['file']}: {problem}")

    assert not wrong
    assert done >= 20


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


@pytest.mark.parametrize("name", SONG_WORKS)
def test_songs_and_the_sound_of_films_of_the_corpus(
    rows: list[dict[str, Any]], transformer: Transformer, name: str
) -> None:
    work, wrong, done = SONG_WORKS[name], [], 0
    for row in rows:
        facts = weighed(transformer, row)
        if facts is None or row["file"] in UNDECODABLE | TOO_SHORT:
            continue
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

    assert not wrong
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
