"""What a child says is checked as hostile input: wrong types, wrong ranges and wrong sums are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from weighlock.codecs import answers, wire
from weighlock.codecs.outcome import Outcome
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
        {"failure": {"code": "malformed_media", "message": "x", "figures": {"message": "y"}}},
        {"failure": {"code": "malformed_media", "message": "x", "figures": {}}, "image": IMAGE},
        {"failure": {"code": "malformed_media", "message": "x", "figures": {"name": "\ud800"}}},
        {"values": ["a"]},
        {"image": IMAGE, "anomalies": [{"code": "x"}]},
        {"image": IMAGE, "anomalies": {"code": "x", "detail": "y"}},
        {"audio": SOUND | {"codec": "half \ud800"}},
        {"audio": SOUND | {"duration_high_s": True}},
        {"audio": SOUND | {"duration_high_s": 10**400}},
        b'{"audio": {"duration_s": 1.0, "duration_high_s": 1e999, "duration_source": "header"}}',
        b"\xff{}",
        b'{"image": ' + b"[" * 100_000,
        b'{"image": {"width_px": ' + b"9" * 10_000,
    ],
    ids=lambda answer: str(answer)[:60],
)
def test_an_answer_no_honest_child_gives_is_inconsistent(answer: bytes | dict[str, Any]) -> None:
    payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    with pytest.raises(answers.InconsistentAnswer):
        answers.load_probed(payload)


@pytest.mark.parametrize(
    "made",
    [
        {"mime": "x" * 65, "actual_start_s": None, "notes": []},
        {"mime": "video/mp4", "actual_start_s": -1.0, "notes": []},
        {"mime": "video/mp4", "actual_start_s": 1e16, "notes": []},
        {"mime": "video/mp4", "actual_start_s": None, "notes": ["x"] * 17},
        {"mime": "video/mp4", "actual_start_s": None, "notes": ["x" * 301]},
        {"mime": "video/mp4", "actual_start_s": None, "notes": [1]},
        {"mime": "video/mp4", "surprise": 1},
        {"actual_start_s": 1.0},
    ],
    ids=str,
)
def test_an_account_of_what_was_made_that_no_honest_child_gives_is_inconsistent(made: dict[str, Any]) -> None:
    with pytest.raises(answers.InconsistentAnswer):
        answers.load_made(json.dumps({"made": made}).encode())


def test_what_was_made_survives_the_journey() -> None:
    made = Outcome(mime="video/mp4", actual_start_s=1.5, notes=("its end is damaged",))

    assert answers.load_made(wire.dump_made(made)) == made


@pytest.mark.parametrize("values", [{"av": "18"}, ["memory", "cpu"]])
def test_answers_about_the_worker_survive_the_journey(values: dict[str, str] | list[str]) -> None:
    assert answers.load_values(wire.dump_values(values)) == values


@pytest.mark.parametrize("module", ["transformer", "worker"])
def test_neither_side_of_a_transform_loads_what_it_does_not_use(module: str) -> None:
    needless = ("pydantic", "tempfile", "hashlib", "decimal", "pybase64", "platform")
    script = f"import sys, weighlock.codecs.{module}; print([name for name in {needless!r} if name in sys.modules])"

    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout

    assert told == "[]\n"


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
