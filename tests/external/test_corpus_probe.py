"""The corpus of real files through the confined worker, against what decoding every packet says.

`duration_s_ffprobe` is a header's figure and often wrong; the truth here is the presentation of a full decode, done in
this process.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

import corpus
from corpus import CORPUS
from weighlock.codecs import Prober
from weighlock.errors import WeighlockError
from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, Probed, VideoFacts
from weighlock.request import Modality

pytestmark = pytest.mark.external

PROBED = {"image", "audio", "video", "document"}
NOT_TAKEN = {
    "image/tiff", "image/svg+xml", "image/jp2", "image/jxl", "image/vnd.adobe.photoshop", "image/x-icon", "audio/midi",
}  # fmt: skip
"""Kinds outside the allow-list: `UnsupportedMedia` is the right answer."""

CUT = {
    "music-metadata/Pnossnd.aif": "has no sound chunk",
    "music-metadata/issue-749.m4a": "its header promises 26 minutes, its samples were cut away",
    "music-metadata/max-numberOfObjectHeaders.wma": "only a header",
    "tinytag/id3_image_jfif.mp3": "only a tag",
    "file-type/fixture.3g2": "12 bytes",
    "file-type/fixture.ogv": "256 bytes",
    "media/sample_with_sdt.ts": "4 KB of a stream: no picture of it can be sized",
}
"""Parts of files that nothing can play: a typed error is the right answer."""

HEADER_READER = {
    "mp4parse-rust/valid-avif-colr-nclx-and-prof-and-rICC.avif",
    "libavif/color_grid_alpha_grid_tile_shared_in_dimg.avif",
    "Pillow/rgb32-111110.bmp",
}  # fmt: skip
"""Pictures the library refuses; `weighlock.mime` reads their size from the header and does not ask the worker."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return corpus.needed()


@pytest.fixture(scope="module")
def answers(rows: list[dict[str, Any]]) -> dict[str, Probed | WeighlockError]:
    found: dict[str, Probed | WeighlockError] = {}
    with Prober() as prober:
        for row in rows:
            if row["modality"] in PROBED:
                found[row["file"]] = probe(prober, row)
    return found


def probe(prober: Prober, row: dict[str, Any]) -> Probed | WeighlockError:
    path = CORPUS / row["file"]
    with path.open("rb") as file:
        try:
            return prober.probe(
                file.fileno(),
                size_bytes=path.stat().st_size,
                mime=row["mime"],
                modality=Modality(row["modality"].upper()),
            )
        except WeighlockError as error:
            return error


def decoded_spans(path: Path) -> list[float]:
    """Seconds a full decode presents, by samples and by time stamps: two truths where a stream has gaps."""
    av.logging.set_level(None)
    samples: dict[int, Fraction] = {}
    first: dict[int, Fraction] = {}
    last: dict[int, Fraction] = {}
    packets: dict[int, Fraction] = {}
    with av.open(str(path), metadata_errors="ignore") as container:
        played = [s for s in container.streams if s.type in ("audio", "video")]
        played = [s for s in played if not s.disposition & av.stream.Disposition.attached_pic]
        with contextlib.suppress(av.error.FFmpegError):
            for packet in container.demux(played):
                base, duration = packet.time_base, packet.duration or 0
                at = packet.pts if packet.pts is not None else packet.dts
                index = packet.stream_index
                if packet.size and at is not None:
                    packets[index] = packets.get(index, Fraction(0)) + duration * base
                    first[index] = min(first.get(index, at * base), at * base)
                    last[index] = max(last.get(index, Fraction(0)), (at + duration) * base)
                with contextlib.suppress(av.error.FFmpegError):
                    for frame in packet.decode():
                        if isinstance(frame, av.AudioFrame):
                            samples[index] = samples.get(index, Fraction(0)) + Fraction(
                                frame.samples, frame.sample_rate
                            )
    if not samples and not any(packets.values()):
        return []
    spans = [max(samples.values(), default=Fraction(0)), max(packets.values(), default=Fraction(0))]
    if last:
        spans.append(max(last.values()) - min(max(value, Fraction(0)) for value in first.values()))
    return [float(span) for span in spans if span > 0]


def test_every_file_ends_in_facts_or_in_the_error_it_deserves(
    rows: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    wrong = []
    for row in rows:
        answer = answers.get(row["file"])
        if isinstance(answer, WeighlockError) and not row.get("degenerate"):
            expected = row["mime"] in NOT_TAKEN or row["file"] in CUT or row["file"] in HEADER_READER
            if not expected:
                wrong.append((row["file"], str(answer)))

    assert wrong == []


def test_each_degenerate_file_is_an_error_or_flagged_or_measured(
    rows: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    for row in rows:
        if row.get("degenerate") and row["file"] in answers:
            answer = answers[row["file"]]
            small_but_whole = isinstance(answer, Probed) and isinstance(answer.facts, ImageFacts | AudioFacts)

            assert isinstance(answer, WeighlockError) or answer.anomalies or small_but_whole, row["file"]


def test_durations_are_those_of_the_packets(rows: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    checked, wrong = 0, []
    for row in rows:
        answer = answers.get(row["file"])
        if row.get("duration_s_ffprobe") is None or not isinstance(answer, Probed) or row.get("degenerate"):
            continue
        facts = answer.facts
        assert isinstance(facts, AudioFacts | VideoFacts)
        checked += 1
        # Nothing here decodes MPEG-H, and its packets do not say how long they last: there the header is all there is.
        truths = decoded_spans(CORPUS / row["file"]) or [row["duration_s_ffprobe"]]
        if not any(abs(facts.duration_s - truth) <= max(0.05, 0.01 * truth) for truth in truths):
            wrong.append((row["file"], facts.duration_s, truths, row["duration_s_ffprobe"]))
        assert facts.duration_high_s >= 0.95 * min(truths, default=0.0), row["file"]

    print(f"{checked} durations, {len(wrong)} off: {wrong}")
    assert checked >= 95
    assert len(wrong) <= 0.01 * checked


def test_sizes_of_films_are_those_stated(rows: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    """The manifest states coded pixels; ours are displayed: turned, and with square pixels."""
    checked, wrong = 0, []
    for row in rows:
        answer = answers.get(row["file"])
        if row["modality"] != "video" or not row.get("width_px") or not isinstance(answer, Probed):
            continue
        facts = answer.facts
        assert isinstance(facts, VideoFacts)
        checked += 1
        shape = pixel_shape(CORPUS / row["file"])
        stated = (round(row["width_px"] * shape), row["height_px"])
        if (facts.width_px, facts.height_px) not in (stated, stated[::-1]):
            wrong.append((row["file"], facts.width_px, facts.height_px, stated))

    print(f"{checked} sizes, {len(wrong)} off: {wrong}")
    assert checked >= 28
    assert len(wrong) <= 0.01 * checked


def pixel_shape(path: Path) -> Fraction:
    with av.open(str(path), metadata_errors="ignore") as container:
        return container.streams.video[0].sample_aspect_ratio or Fraction(1)


def test_sizes_of_pictures_are_those_stated(rows: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    wrong = []
    for row in rows:
        answer = answers.get(row["file"])
        if row["modality"] == "image" and row.get("width_px") and isinstance(answer, Probed):
            assert isinstance(answer.facts, ImageFacts)
            size, stated = (answer.facts.width_px, answer.facts.height_px), (row["width_px"], row["height_px"])
            if size not in (stated, stated[::-1]):
                wrong.append((row["file"], size, stated))

    assert wrong == []


def test_every_document_has_its_pages(rows: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    documents = [answers[row["file"]] for row in rows if row["modality"] == "document"]

    assert len(documents) >= 10
    assert all(isinstance(a, Probed) and isinstance(a.facts, DocumentFacts) and a.facts.pages >= 1 for a in documents)


NOT_CLEAN = {
    "music-metadata/flac-bug.flac": "557 s in its header, 3.7 s in what is left of it",
    "tinytag/vbr_xing_header_2channel.mp3": "250 s in its header, 0.1 s in what is left of it",
    "file-type/fixture.wma.asf": "2.6 s in its header, 0.6 s in what is left of it",
    "mp4parse-rust/bipbop_audioinit.mp4": "the first segment of a stream: no samples",
    "mp4parse-rust/bipbop_480wp_1001kbps-cenc-video-key1-init.mp4": "the first segment of a stream: no samples",
}
"""Not marked degenerate, but parts of files: each must be flagged."""


def test_parts_of_files_are_flagged(answers: dict[str, Any]) -> None:
    for name in NOT_CLEAN:
        assert answers[name].anomalies, name


def test_the_clean_corpus_is_hardly_ever_called_odd(rows: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    clean = [row["file"] for row in rows if not row.get("degenerate") and row["file"] not in NOT_CLEAN]
    flagged = {
        name: [anomaly.detail for anomaly in answer.anomalies]
        for name in clean
        if isinstance(answer := answers.get(name), Probed) and answer.anomalies
    }

    print(f"{len(flagged)} of {len(clean)} flagged: {flagged}")
    assert len(flagged) <= 0.02 * len(clean)
