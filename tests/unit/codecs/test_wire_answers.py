"""What a child says is checked as hostile input: wrong types, wrong ranges and wrong sums are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weighlock.codecs import answers, wire
from weighlock.errors import MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.facts import (
    Anomaly,
    AudioFacts,
    DocumentFacts,
    FactSource,
    ImageFacts,
    PageRun,
    Probed,
    VideoFacts,
)
from weighlock.request import Modality

IMAGE = {"width_px": 3, "height_px": 2, "orientation": 1, "frames": 1, "size_source": "header"}
SOUND = {"duration_s": 1.0, "duration_high_s": 2.0, "duration_source": "header"}
PAGES = {"pages": 2, "pages_high": 2, "runs": [{"pages": 2, "width_pt": 9.0, "height_pt": 9.0}]}

EVERY_KIND = [
    ImageFacts(width_px=3, height_px=2, frames=None),
    AudioFacts(duration_s=1.5, duration_high_s=2.0, duration_source=FactSource.SCANNED, codec="aac"),
    VideoFacts(width_px=3, height_px=2, duration_s=1, duration_high_s=1, duration_source=FactSource.HEADER,
    audio_duration_s=None),
    DocumentFacts(pages=3, pages_high=4, runs=(PageRun(pages=1, width_pt=9, height_pt=8), PageRun(pages=2,
    width_pt=8, height_pt=9))),
]  # fmt: skip


@pytest.mark.parametrize("facts", EVERY_KIND, ids=lambda facts: type(facts).__name__)
def test_every_kind_of_facts_survives_the_journey(facts: Any) -> None:
    sent = Probed(facts=facts, anomalies=(Anomaly(code="duration_mismatch", detail="1 s, 2 s"),))

    assert answers.load_probed(wire.dump_probed(sent)) == sent


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{",
        b"[]",
        {"anomalies": []},
        {"image": IMAGE, "audio": SOUND},
        {"image": IMAGE | {"width_px": "3"}},
        {"image": IMAGE | {"width_px": True}},
        {"image": IMAGE | {"width_px": 0}},
        {"image": IMAGE | {"width_px": -3}},
        {"image": IMAGE | {"width_px": 10**16}},
        {"image": {"width_px": 3}},
        {"image": IMAGE, "surprise": 1},
        {"image": IMAGE | {"size_source": "rumour"}},
        {"image": IMAGE, "anomalies": [{"code": "x", "detail": "y"}] * 17},
        b'{"audio": {"duration_s": NaN, "duration_high_s": 2.0, "duration_source": "header"}}',
        b'{"audio": {"duration_s": 1.0, "duration_high_s": Infinity, "duration_source": "header"}}',
        {"audio": SOUND | {"duration_s": 3.0}},
        {"audio": SOUND | {"duration_s": -1.0}},
        {"document": PAGES | {"pages": 3}},
        {"document": PAGES | {"pages_high": 1}},
        {"document": PAGES | {"pages": 0, "runs": []}},
        {"failure": {"code": "config", "message": "not a verdict on a medium"}},
        {"failure": {"code": "malformed_media", "message": "x" * 1001}},
        {"failure": {"code": "malformed_media", "message": "x", "figures": {"nested": [1]}}},
        {"values": ["a"]},
    ],
    ids=str,
)
def test_an_answer_no_honest_child_gives_is_inconsistent(answer: bytes | dict[str, Any]) -> None:
    payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    with pytest.raises(answers.InconsistentAnswer):
        answers.load_probed(payload)


@pytest.mark.parametrize("kind", [MalformedMedia, UnsupportedMedia, MediaTooLarge])
def test_a_verdict_arrives_as_the_error_it_was(kind: type[MalformedMedia]) -> None:
    with pytest.raises(kind, match="no good") as caught:
        answers.load_probed(wire.dump_failure(kind("no good", pages=3, limit="memory", secret=object())))

    assert caught.value.figures == {"pages": 3, "limit": "memory"}


def test_a_job_and_an_outcome_survive_the_journey() -> None:
    job = wire.Job(
        task="probe", mime="video/mp4", modality=Modality.VIDEO, memory_bytes=1, cpu_s=2, wall_s=3.5, max_pages=4
    )
    outcome = wire.Outcome(payload=b"{}\n", exit_code=1, signal=9, timed_out=True, cpu_s=0.5, trouble="none")

    assert wire.Job.load(job.dump()) == job
    assert wire.Outcome.load(outcome.dump()) == outcome


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xff\0\0\0{}"])
def test_an_outcome_cut_short_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which words say so is not promised
        wire.Outcome.load(data)
