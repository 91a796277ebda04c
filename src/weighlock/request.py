"""What travels, and the words for it. Names are the google-genai SDK's where it has one.

A converter reads a message format into these values and writes them back. They are never changed in place: whoever
wants another request makes another value, and what stayed the same object leaves as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from weighlock.encoded import Base64
from weighlock.modality import Modality as Modality  # noqa: PLC0414 - one of these words, for whoever imports it from here
from weighlock.region import Box as Box  # noqa: PLC0414 - the same

Json = Any
"""A JSON value: what `json.loads` gives. Inside a tool's `response`, also a `MediaPart` a tool returned raw."""


class _Nothing(Mapping[str, Json]):
    """No fields. One object for all, for most parts carry none."""

    __slots__ = ()

    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and not other

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


class Backend(StrEnum):
    """Which service answers; the same model is billed differently on each."""

    DEVELOPER = "developer"
    VERTEX = "vertex"


class MediaResolution(StrEnum):
    """`generationConfig.mediaResolution` (request-wide) and `part.mediaResolution.level` (`ULTRA_HIGH` only there)."""

    UNSPECIFIED = "unspecified"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    ULTRA_HIGH = "ultra_high"


class Placement(StrEnum):
    """How a medium's bytes reach the service. It can change what a video frame costs."""

    INLINE = "inline"
    FILES = "files"
    URI = "uri"
    """gs://, https:// or YouTube, which the service reads itself."""


class Carrier(StrEnum):
    """Whose turn holds the medium. A PDF inside a tool result has another page budget than in a user turn."""

    USER = "user"
    TOOL_RESULT = "tool_result"
    MODEL = "model"


class Content(StrEnum):
    """What a film shows, as far as it says how often one has to look."""

    SCREEN = "screen"
    """A screen recording: it stands still for seconds."""
    TALK = "talk"
    """Somebody speaks, or shows slides."""
    MOTION = "motion"
    """Things move, and what matters is over in a second."""


@dataclass(frozen=True, slots=True)
class Uri:
    """A medium the service reads itself: a Files API URI, gs://, https://, YouTube. Never fetched here."""

    text: str

    def __repr__(self) -> str:
        return f"Uri({self.text.partition(':')[0][:10]}:…)"  # the rest may hold a key


Source = bytes | Path | Base64 | Uri | BinaryIO
"""Where a medium's bytes are. A binary file object is read from its start, and left where it stood."""


AROUND_S = 60.0
"""How much `around 95s` takes: half a minute before what is looked for, and half a minute behind it."""


def _length(span: tuple[float, float]) -> float:
    return span[1] - span[0]


def about(instant_s: float, length_s: float, begin_s: float, end_s: float) -> tuple[float, float]:
    """Start and end of what lies around an instant; at the ends of a recording shifted, not shortened."""
    length_s = min(length_s, end_s - begin_s)
    start_s = min(max(begin_s, instant_s - length_s / 2), end_s - length_s)
    return start_s, min(start_s + length_s, end_s)


def _seconds(value: float) -> str:
    return f"{Decimal(f'{value:.15g}'):f}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """A span of a recording, in seconds.

    Exactly one of `first_s`, `last_s`, `around_s` or the pair (`start_s`, `end_s`) is set.
    """

    first_s: float | None = None
    last_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    around_s: float | None = None
    """An instant, in the middle of the span as far as the recording's ends allow."""
    length_s: float = AROUND_S
    """Of a span around an instant."""

    def span(self, duration_s: float) -> tuple[float, float]:
        """Start and end within a recording of this length; an empty span where the clip lies behind its end."""
        if self.last_s is not None:
            return max(0.0, duration_s - self.last_s), duration_s
        if self.around_s is not None and self.around_s <= duration_s:
            return about(self.around_s, self.length_s, 0.0, duration_s)
        start_s, end_s = self.bounds_s
        return min(start_s, duration_s), min(end_s, duration_s)

    def recuts(self, duration_s: float) -> bool:
        """Whether it is less than the whole of what it leaves of a recording: `2-10` is, `last 60s` is not."""
        left_s = _length(self.span(duration_s))
        return 0 < _length(self.span(left_s)) < left_s

    def spans(self, duration_s: float) -> bool:
        """Whether a recording is no longer than a window between two places: `2-10` spans 8 s."""
        return self.start_s is not None and self.end_s is not None and duration_s <= self.end_s - self.start_s

    @property
    def bounds_s(self) -> tuple[float, float]:
        """Start and end in a recording that has none."""
        if self.around_s is not None:
            return max(0.0, self.around_s - self.length_s / 2), self.around_s + self.length_s / 2
        end_s = self.first_s if self.end_s is None else self.end_s
        return self.start_s or 0.0, float("inf") if end_s is None else end_s

    def __str__(self) -> str:
        if self.first_s is not None:
            return f"first {_seconds(self.first_s)}"
        if self.last_s is not None:
            return f"last {_seconds(self.last_s)}"
        if self.around_s is not None:
            length = "" if self.length_s == AROUND_S else f"{_seconds(self.length_s)} "
            return f"{length}around {_seconds(self.around_s)}"
        end = "" if self.end_s is None else _seconds(self.end_s)
        return f"{_seconds(self.start_s or 0.0)}-{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text somebody said."""

    text: str
    carried: Mapping[str, Json] = NOTHING
    """The part's other fields as REST JSON (`thought`, `thoughtSignature`, unknown ones); passed on as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPart:
    """One medium of a request."""

    source: Source
    label: str
    """What a person calls it, in reports: a file name, `screenshot 1`."""
    declared_mime: str | None = None
    """What the caller says it is; `None` where nobody said. Never believed."""
    carried: Mapping[str, Json] = NOTHING
    """The part's other fields as REST JSON, controls among them (`videoMetadata`, `mediaResolution`); what stands
    beside `data` or `fileUri` is under `inlineData` or `fileData` (`displayName`)."""
    pinned: bool = False
    """The caller wants it sent as it is: no lever touches it."""
    clip: Clip | None = None
    """What the caller wants sent of a recording, whatever the limits; beats offsets in `carried`."""
    content: Content | None = None
    """What the caller says a film shows."""
    region: Box | None = None
    """What of a picture matters to the caller: it may be cropped to that, where that makes it lighter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPart:
    """The model asks for a tool. Passed on as it is; name and id are what its result must answer to."""

    name: str
    call_id: str | None
    wire: Mapping[str, Json]
    """The whole part as REST JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaquePart:
    """Anything we do not understand: code, server tools, part kinds of tomorrow. Passed on as it is."""

    wire: Mapping[str, Json]
    """The whole part as REST JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPart:
    """What a tool answered: a `functionResponse`."""

    name: str
    response: Json
    """An object, by the service's rules; whatever a caller put there, until it is screened."""
    call_id: str | None = None
    media: tuple[MediaPart | OpaquePart, ...] = ()
    """`functionResponse.parts`, in order."""
    carried: Mapping[str, Json] = NOTHING
    """The part's other fields as REST JSON; those inside it under `functionResponse` (`willContinue`)."""


Part = TextPart | MediaPart | ToolCallPart | ToolResultPart | OpaquePart


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One `Content`."""

    role: str | None
    """`user` or `model`; others as the caller wrote them, `None` where nobody did."""
    parts: tuple[Part, ...]
    carried: Mapping[str, Json] = NOTHING
    """Its other fields as REST JSON."""

    @property
    def carrier(self) -> Carrier:
        """Who speaks, where the medium is not inside a tool result."""
        return Carrier.MODEL if self.role == "model" else Carrier.USER


class Place(NamedTuple):
    """Where in a request something stands, counted from 0. `str()` is its path in REST JSON."""

    turn: int | None
    """`None` is the system instruction."""
    part: int | None = None
    medium: int | None = None
    """Which one of a tool result's media."""

    def __str__(self) -> str:
        path = "systemInstruction" if self.turn is None else f"contents[{self.turn}]"
        path += "" if self.part is None else f".parts[{self.part}]"
        return path + ("" if self.medium is None else f".functionResponse.parts[{self.medium}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to `generateContent`, whatever format it came in."""

    turns: Sequence[Turn]
    """A tuple, or what behaves as one and reads a turn when somebody looks at it."""
    system_instruction: Turn | None = None
    model: str | None = None
    """Where the request itself names one."""
    carried: Mapping[str, Json] = NOTHING
    """Every other field of the body as REST JSON: `tools`, `generationConfig`, `safetySettings`, unknown ones."""

    def placed_turns(self) -> Iterator[tuple[int | None, Turn]]:
        """The system instruction, if there is one, then the turns with their number."""
        if self.system_instruction is not None:
            yield None, self.system_instruction
        yield from enumerate(self.turns)

    def beyond_text(self) -> Iterator[tuple[int | None, Turn]]:
        """As `placed_turns`, without the turns that hold nothing but text: nearly all of a long history.

        A converter that reads turns late knows which those are and says so (`turns.beyond_text`); else they are looked
        at.
        """
        if self.system_instruction is not None:
            yield None, self.system_instruction
        known = getattr(self.turns, "beyond_text", None)
        if known is not None:
            yield from ((number, self.turns[number]) for number in known)
            return
        for number, turn in enumerate(self.turns):
            if not all(type(part) is TextPart for part in turn.parts):
                yield number, turn

    def media(self) -> Iterator[tuple[Place, MediaPart, Carrier]]:
        """Every medium in order, those inside tool results too; not those hidden in a tool's text."""
        for number, turn in self.beyond_text():
            for index, part in enumerate(turn.parts):
                if isinstance(part, MediaPart):
                    yield Place(number, index), part, turn.carrier
                elif isinstance(part, ToolResultPart):
                    for at, medium in enumerate(part.media):
                        if isinstance(medium, MediaPart):
                            yield Place(number, index, at), medium, Carrier.TOOL_RESULT
