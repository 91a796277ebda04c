"""Reading what a child answered, on the host's side: checked for type and range, as hostile input is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from weighlock.codecs import wire
from weighlock.codecs.outcome import Outcome as Made
from weighlock.codecs.shaped import parsed, shaped
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
_MAX_WORD_CHARS = 64
_MAX_MESSAGE_CHARS = 1000
_MAX_FIGURES = 16

_ERRORS: dict[str, type[InputError]] = {
    e.code: e for e in (MalformedMedia, MediaTooLarge, TransformFailed, UnknownMediaType, UnsupportedMedia)
}


class InconsistentAnswer(Exception):
    """The child's answer is not one an honest prober gives."""


@dataclass(frozen=True, slots=True)
class _Failure:
    code: str
    message: str
    figures: dict[str, str | int | float | bool | None]


def load_probed(payload: bytes) -> Probed:
    """The facts a child found, checked for type and range.

    Raises:
        InputError: the child's own verdict on the medium.
        InconsistentAnswer: anything an honest child does not say.
    """
    answer = _heard(payload)
    anomalies = _shaped(tuple[Anomaly, ...], answer.pop("anomalies", []))
    kind = next((kind for kind, name in wire.FACTS.items() if answer.keys() == {name}), None)
    if kind is None or len(anomalies) > wire.MAX_ANOMALIES:
        raise InconsistentAnswer("not one kind of facts, or anomalies without end")
    facts: Facts = _shaped(kind, answer[wire.FACTS[kind]])
    problem = _contradiction(facts)
    if problem:
        raise InconsistentAnswer(problem)
    return Probed(facts=facts, anomalies=anomalies)


def load_made(payload: bytes) -> Made:
    """What a child says it made, checked for type and range.

    Raises:
        InputError: the child's own verdict on the medium.
        InconsistentAnswer: anything an honest child does not say.
    """
    made: Made = _shaped(Made, _only(_heard(payload), "made"))
    if len(made.mime) > _MAX_WORD_CHARS or not 0 <= (made.actual_start_s or 0) <= _LARGEST:
        raise InconsistentAnswer("what was made is out of range")
    if len(made.notes) > wire.MAX_NOTES or any(len(note) > wire.MAX_NOTE_CHARS for note in made.notes):
        raise InconsistentAnswer("notes without end")
    return made


def load_values(payload: bytes) -> dict[str, str] | list[str]:
    """The answer to a question about the worker.

    Raises:
        InconsistentAnswer: not such an answer.
    """
    values: dict[str, str] | list[str] = _shaped(dict[str, str] | list[str], _only(_load(payload), "values"))
    return values


def _heard(payload: bytes) -> dict[str, Any]:
    """The answer, unless it is a verdict, which is raised."""
    answer = _load(payload)
    if "failure" in answer:
        _raise(_shaped(_Failure, _only(answer, "failure")))
    return answer


def _raise(failure: _Failure) -> NoReturn:
    kind = _ERRORS.get(failure.code)
    if kind is None or len(failure.message) > _MAX_MESSAGE_CHARS or len(failure.figures) > _MAX_FIGURES:
        raise InconsistentAnswer("an unknown verdict")
    if not failure.figures.keys().isdisjoint({"self", "message"}):
        raise InconsistentAnswer("a figure by the name of something else")
    raise kind(failure.message, **failure.figures)


def _only(answer: dict[str, Any], name: str) -> Any:
    if answer.keys() != {name}:
        raise InconsistentAnswer(f"not {name} alone")
    return answer[name]


def _load(payload: bytes) -> dict[str, Any]:
    try:
        answer = parsed(payload)
    except ValueError as error:
        raise InconsistentAnswer(f"not JSON: {error}") from None
    if not isinstance(answer, dict):
        raise InconsistentAnswer("not an object")
    return answer


def _shaped(kind: Any, raw: Any) -> Any:
    try:
        return shaped(kind, raw)
    except ValueError as error:
        raise InconsistentAnswer(str(error)) from None


def _contradiction(facts: Facts) -> str | None:
    """Why these facts cannot be true of any file, or None."""
    for name, value in _figures(facts):
        if not 0 <= value <= _LARGEST:
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
