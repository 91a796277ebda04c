"""What passes between the host and the worker: jobs one way; progress and answers the other.

Answers are checked as hostile input.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weighlock.codecs.outcome import Outcome as Made
from weighlock.errors import (
    InputError,
    MalformedMedia,
    MediaTooLarge,
    TransformFailed,
    UnknownMediaType,
    UnsupportedMedia,
)
from weighlock.media.facts import Anomaly, AudioFacts, DocumentFacts, Facts, ImageFacts, Probed, VideoFacts
from weighlock.request import Modality

MAX_ANSWER_BYTES = 256 * 1024
END = b"\n"
"""Ends a complete answer; JSON on one line holds none."""
CLOSING = "closing"
"""The trouble of a program that was told to end while the child was at work."""
PROGRESS_MARK = b"%"
"""Begins a line that says how far a transform is, in thousandths; an answer begins otherwise."""
_PROGRESS = struct.Struct("<II")
_MAX_ANOMALIES = 16
_MAX_NOTES = 16
_LARGEST = 1e15

_FACTS: dict[type[Facts], str] = {
    ImageFacts: "image",
    AudioFacts: "audio",
    VideoFacts: "video",
    DocumentFacts: "document",
}
_ERRORS: dict[str, type[InputError]] = {
    e.code: e for e in (MalformedMedia, MediaTooLarge, TransformFailed, UnknownMediaType, UnsupportedMedia)
}


class InconsistentAnswer(Exception):
    """The child's answer is not one an honest prober gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One order to the worker. `task` other than `probe` and `make` are questions about the worker itself."""

    task: Literal["probe", "make", "limits", "sleep", "versions"]
    size_bytes: int = 0
    mime: str = ""
    modality: Modality = Modality.IMAGE
    memory_bytes: int
    cpu_s: int
    wall_s: float
    max_pixels: int = 0
    max_duration_s: float = 0
    max_pages: int = 0
    max_frames: int = 0
    file_bytes: int = 0
    """What it may write to the descriptor it is given for that."""
    work: dict[str, Any] | None = None
    """What is to be made, as `orders.dump` gives it."""
    encoding: dict[str, Any] | None = None

    def dump(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, data: bytes) -> Job:
        raw = json.loads(data)
        return cls(**{**raw, "modality": Modality(raw["modality"])})


class _Failure(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    code: str = Field(max_length=64)
    message: str = Field(max_length=1000)
    figures: dict[str, str | int | float | bool | None] = Field(default_factory=dict, max_length=16)


class _Made(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    mime: str = Field(max_length=64)
    actual_start_s: float | None = Field(default=None, ge=0, le=_LARGEST)
    notes: tuple[Annotated[str, Field(max_length=300)], ...] = Field(default=(), max_length=_MAX_NOTES)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    image: ImageFacts | None = None
    audio: AudioFacts | None = None
    video: VideoFacts | None = None
    document: DocumentFacts | None = None
    anomalies: tuple[Anomaly, ...] = Field(default=(), max_length=_MAX_ANOMALIES)
    failure: _Failure | None = None
    made: _Made | None = None
    values: dict[str, str] | list[str] | None = None


def dump_probed(probed: Probed) -> bytes:
    anomalies = [asdict(a) for a in probed.anomalies[:_MAX_ANOMALIES]]
    return json.dumps({_FACTS[type(probed.facts)]: asdict(probed.facts), "anomalies": anomalies}).encode()


def dump_failure(error: InputError) -> bytes:
    figures = {k: v for k, v in error.figures.items() if isinstance(v, str | int | float | bool | None)}
    return json.dumps({"failure": {"code": error.code, "message": error.message[:1000], "figures": figures}}).encode()


def dump_values(values: dict[str, str] | list[str]) -> bytes:
    return json.dumps({"values": values}).encode()


def load_values(payload: bytes) -> dict[str, str] | list[str]:
    """The answer to a question about the worker.

    Raises:
        InconsistentAnswer: not such an answer.
    """
    values = _load(payload).values
    if values is None:
        raise InconsistentAnswer("no values")
    return values


def load_probed(payload: bytes) -> Probed:
    """The facts a child found, checked for type and range.

    Raises:
        InputError: the child's own verdict on the medium.
        InconsistentAnswer: anything an honest child does not say.
    """
    answer = _heard(payload)
    found = [f for f in (answer.image, answer.audio, answer.video, answer.document) if f is not None]
    if len(found) != 1:
        raise InconsistentAnswer(f"{len(found)} kinds of facts")
    facts = found[0]
    problem = _contradiction(facts)
    if problem:
        raise InconsistentAnswer(problem)
    return Probed(facts=facts, anomalies=answer.anomalies)


def dump_made(made: Made) -> bytes:
    notes = [note[:300] for note in made.notes[:_MAX_NOTES]]
    return json.dumps({"made": {**asdict(made), "notes": notes}}).encode()


def load_made(payload: bytes) -> Made:
    """What a child says it made, checked for type and range.

    Raises:
        InputError: the child's own verdict on the medium.
        InconsistentAnswer: anything an honest child does not say.
    """
    made = _heard(payload).made
    if made is None:
        raise InconsistentAnswer("nothing was made")
    return Made(mime=made.mime, actual_start_s=made.actual_start_s, notes=made.notes)


def progress_of(line: bytes) -> int | None:
    """Thousandths done, from a line a child wrote; `None` for a line that is none of these."""
    digits = line[1:].strip()
    if not line.startswith(PROGRESS_MARK) or not digits.isdigit() or len(digits) > 4:
        return None
    return min(1000, int(digits))


def dump_progress(thousandths: int) -> bytes:
    """For the socket on which the outcome follows; told apart from it by the empty head."""
    return _PROGRESS.pack(0, thousandths)


def pop_progress(said: bytearray) -> int | None:
    """Take a progress message off the front of what was received, if there is a whole one."""
    if len(said) < _PROGRESS.size:
        return None
    head, thousandths = _PROGRESS.unpack_from(said)
    if head:
        return None
    del said[: _PROGRESS.size]
    return min(1000, int(thousandths))


def _heard(payload: bytes) -> _Answer:
    """The answer, unless it is a verdict, which is raised."""
    answer = _load(payload)
    if answer.failure is not None:
        kind = _ERRORS.get(answer.failure.code)
        if kind is None:
            raise InconsistentAnswer(f"unknown verdict {answer.failure.code!r}")
        raise kind(answer.failure.message, **answer.failure.figures)
    return answer


def _load(payload: bytes) -> _Answer:
    try:
        return _Answer.model_validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InconsistentAnswer(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _contradiction(facts: Facts) -> str | None:
    """Why these facts cannot be true of any file, or None."""
    for name, value in _figures(facts):
        if not math.isfinite(value) or not 0 <= value <= _LARGEST:
            return f"{name} is {value}"
    match facts:
        case ImageFacts():
            return None if min(facts.width_px, facts.height_px) > 0 else "an image without an extent"
        case AudioFacts():
            return None if facts.duration_s <= facts.duration_high_s else "duration above its own bound"
        case VideoFacts():
            if min(facts.width_px, facts.height_px) < 1:
                return "a video without an extent"
            return None if facts.duration_s <= facts.duration_high_s else "duration above its own bound"
        case DocumentFacts():
            if not 1 <= facts.pages <= facts.pages_high:
                return "pages out of order"
            return (
                None if sum(run.pages for run in facts.runs) == facts.pages else "page sizes do not add up to the pages"
            )
        case _:
            return "not a kind of facts a child reports"


def _figures(value: Any) -> Iterator[tuple[str, float]]:
    for field in fields(value):
        item = getattr(value, field.name)
        if isinstance(item, tuple):
            for part in item:
                yield from _figures(part)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield field.name, item


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a child ended, as told by the program that reaped it, and what it had said until then."""

    payload: bytes = b""
    exit_code: int = 0
    signal: int = 0
    timed_out: bool = False
    too_much: bool = False
    """It said more than an answer may hold."""
    cpu_s: float = 0.0
    peak_bytes: int = 0
    """Most memory it held at a time, with what it shared with the program."""
    trouble: str = ""
    """Why no child could be started at all."""

    _HEAD: ClassVar = struct.Struct("<II")

    @property
    def says_nothing(self) -> bool:
        """It tells of an end that no medium brings about: the program's own, or of a child that had no job."""
        nothing = not self.payload and not (self.exit_code or self.signal or self.timed_out or self.too_much)
        return self.trouble == CLOSING or (nothing and not self.trouble)

    def dump(self) -> bytes:
        head = json.dumps({**asdict(self), "payload": None}).encode()
        return self._HEAD.pack(len(head), len(self.payload)) + head + self.payload

    @classmethod
    def load(cls, data: bytes) -> Outcome:
        """An outcome as the program sent it.

        Raises:
            ValueError: cut short, or not an outcome.
        """
        start = cls._HEAD.size
        head, payload = cls._HEAD.unpack_from(data) if len(data) >= start else (0, 0)
        if len(data) != start + head + payload:
            raise ValueError("outcome cut short")
        return cls(**{**json.loads(data[start : start + head]), "payload": data[start + head :]})
