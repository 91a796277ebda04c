"""What passes between the host and the worker: jobs one way; progress and answers the other.

Answers are read in `answers.py`, which the worker does not load.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from weighlock.codecs.outcome import Outcome as Made
from weighlock.errors import InputError
from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, Probed, VideoFacts
from weighlock.modality import Modality

MAX_ANSWER_BYTES = 256 * 1024
END = b"\n"
"""Ends a complete answer; JSON on one line holds none."""
CLOSING = "closing"
"""The trouble of a program that was told to end while the child was at work."""
PROGRESS_MARK = b"%"
"""Begins a line that says how far a transform is, in thousandths; an answer begins otherwise."""
_PROGRESS = struct.Struct("<II")
MAX_ANOMALIES = 16
MAX_NOTES = 16
MAX_NOTE_CHARS = 300

FACTS: dict[type[Facts], str] = {
    ImageFacts: "image",
    AudioFacts: "audio",
    VideoFacts: "video",
    DocumentFacts: "document",
}


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
    """What is to be made, as `orders.dump` gives it; of a probe, what is to be made next."""
    encoding: dict[str, Any] | None = None

    def dump(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, data: bytes) -> Job:
        raw = json.loads(data)
        return cls(**{**raw, "modality": Modality(raw["modality"])})


def dump_probed(probed: Probed) -> bytes:
    anomalies = [asdict(a) for a in probed.anomalies[:MAX_ANOMALIES]]
    return json.dumps({FACTS[type(probed.facts)]: asdict(probed.facts), "anomalies": anomalies}).encode()


def dump_failure(error: InputError) -> bytes:
    figures = {k: v for k, v in error.figures.items() if isinstance(v, str | int | float | bool | None)}
    return json.dumps({"failure": {"code": error.code, "message": error.message[:1000], "figures": figures}}).encode()


def dump_values(values: dict[str, str] | list[str]) -> bytes:
    return json.dumps({"values": values}).encode()


def dump_made(made: Made) -> bytes:
    notes = [note[:MAX_NOTE_CHARS] for note in made.notes[:MAX_NOTES]]
    return json.dumps({"made": {**asdict(made), "notes": notes}}).encode()


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
