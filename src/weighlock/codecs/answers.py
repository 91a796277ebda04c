"""Reading what a child answered, on the host's side: checked for type and range, as hostile input is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weighlock.codecs import wire
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

_LARGEST = 1e15
_Note = Annotated[str, Field(max_length=wire.MAX_NOTE_CHARS)]

_ERRORS: dict[str, type[InputError]] = {
    e.code: e for e in (MalformedMedia, MediaTooLarge, TransformFailed, UnknownMediaType, UnsupportedMedia)
}


class InconsistentAnswer(Exception):
    """The child's answer is not one an honest prober gives."""


class _Failure(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    code: str = Field(max_length=64)
    message: str = Field(max_length=1000)
    figures: dict[str, str | int | float | bool | None] = Field(default_factory=dict, max_length=16)


class _Made(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    mime: str = Field(max_length=64)
    actual_start_s: float | None = Field(default=None, ge=0, le=_LARGEST)
    notes: tuple[Annotated[str, Field(max_length=wire.MAX_NOTE_CHARS)], ...] = Field(
        default=(), max_length=wire.MAX_NOTES
    )


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    image: ImageFacts | None = None
    audio: AudioFacts | None = None
    video: VideoFacts | None = None
    document: DocumentFacts | None = None
    anomalies: tuple[Anomaly, ...] = Field(default=(), max_length=wire.MAX_ANOMALIES)
    failure: _Failure | None = None
    made: _Made | None = None
    values: dict[str, str] | list[str] | None = None


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


def load_values(payload: bytes) -> dict[str, str] | list[str]:
    """The answer to a question about the worker.

    Raises:
        InconsistentAnswer: not such an answer.
    """
    values = _load(payload).values
    if values is None:
        raise InconsistentAnswer("no values")
    return values


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
