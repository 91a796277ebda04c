"""What the model says: answers queued or set by the tester, else one that tells what the request held."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighlock.emulator.answers import example
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.weighing import Intake
from weighlock.errors import InputError
from weighlock.request import Json, Modality, TextPart, ToolResultPart

_CHARS_PER_TOKEN = 4


_LONGEST_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scripted answer of the model. Without anything set it is empty, with a finish reason."""

    text: str | None = None
    json: Json = None
    """Answered as JSON text."""
    calls: Sequence[Mapping[str, Json]] = ()
    """Function calls: `{"name": …, "args": {…}}`, also with an `id`."""
    parts: Sequence[Json] = ()
    """Any parts, as REST JSON, behind the others."""
    thoughts: int = 0
    """Tokens the model thought; billed, not shown."""
    finish_reason: str = "STOP"
    blocked: str | None = None
    """The prompt is blocked for this reason: no candidates, and a bill all the same."""
    usage: Mapping[str, Json] | None = None
    """Laid over `usageMetadata`, for bills that do not add up."""
    after_s: float = 0.0
    """How long the model thinks before its answer begins."""
    pause_s: float = 0.0
    """Between two pieces of a stream."""

    def __post_init__(self) -> None:
        if any(not call.get("name") for call in self.calls):
            raise InputError("a function call needs a name")
        if not (0 <= self.after_s <= _LONGEST_S and 0 <= self.pause_s <= _LONGEST_S):
            raise InputError(f"after_s and pause_s are 0 to {_LONGEST_S:g} seconds")

    def all_parts(self) -> list[Json]:
        """As REST JSON."""
        said = self.text if self.json is None else json.dumps(self.json)
        texts: list[Json] = [] if said is None else [{"text": said}]
        return [*texts, *({"functionCall": dict(call)} for call in self.calls), *self.parts]

    @property
    def tokens(self) -> int:
        """Of the answer itself."""
        chars = sum(len(part["text"]) if "text" in part else len(json.dumps(part)) for part in self.all_parts())
        return -(-chars // _CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    answer: Answer
    model: str | None
    contains: str | None

    def fits(self, model: str, text: str) -> bool:
        return self.model in (None, model) and (self.contains is None or self.contains in text)


class Script:
    """Queued answers first, then the last rule that fits, then the default. Thread-safe."""

    def __init__(self) -> None:
        self._queue: deque[Answer] = deque()
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def queue(self, *answers: Answer | str) -> None:
        """For the next requests, one each."""
        with self._lock:
            self._queue.extend(Answer(text=one) if isinstance(one, str) else one for one in answers)

    def when(self, answer: Answer | str, *, model: str | None = None, contains: str | None = None) -> None:
        """For every request to a model, or whose last turn holds a text."""
        answer = Answer(text=answer) if isinstance(answer, str) else answer
        with self._lock:
            self._rules.append(_Rule(answer=answer, model=model, contains=contains))

    def clear(self) -> None:
        with self._lock:
            self._queue.clear()
            self._rules.clear()

    def answer(self, intake: Intake, model: str) -> Answer:
        """What the model says to a request."""
        text = _last_text(intake)
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            fitting = [rule.answer for rule in self._rules if rule.fits(model, text)]
        return fitting[-1] if fitting else _default(intake)


@reproduces("json-when-asked", "invents-what-it-cannot-see", "mixed-turn-empty")
def _default(intake: Intake) -> Answer:
    config = intake.request.carried.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema or config.get("responseMimeType") == "application/json":
        return Answer(json=example(schema) if schema else {})
    if any(not sent.read for sent in intake.media):
        return Answer(text="The file shows a small brown dog on a lawn.")  # it does not: the service never looked
    last = intake.request.turns[-1].parts
    if intake.rules.model == "gemini-3.5-flash" and _mixed(last):
        return Answer()
    seen = Counter(str(sent.examined.modality) for sent in intake.media if sent.known)
    texts = sum(isinstance(part, TextPart) for turn in intake.request.turns for part in turn.parts)
    held = [f"{seen[kind]} {kind}" for kind in Modality if seen.get(kind)]
    return Answer(text=f"The emulator was sent {', '.join([*held, f'{texts} {Modality.TEXT} parts'])}.")


def _mixed(parts: Sequence[object]) -> bool:
    results = [isinstance(part, ToolResultPart) for part in parts]
    return any(results) and not all(results)


def _last_text(intake: Intake) -> str:
    return "\n".join(part.text for part in intake.request.turns[-1].parts if isinstance(part, TextPart))
