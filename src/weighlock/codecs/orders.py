"""Orders for transforms: which door does which work, and how the work travels to the child."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from weighlock.media.work import AudioWork, DocumentWork, ImageWork, StillsWork, StripWork, VideoWork, Work
from weighlock.region import Box

_KINDS: dict[str, type[Work]] = {
    "video": VideoWork,
    "stills": StillsWork,
    "audio": AudioWork,
    "image": ImageWork,
    "document": DocumentWork,
    "strip": StripWork,
}
_DOORS = {
    "video": "weighlock.codecs.pyav_video",
    "stills": "weighlock.codecs.pyav_stills",
    "audio": "weighlock.codecs.pyav_audio",
    "image": "weighlock.codecs.pillow_make",
    "document": "weighlock.codecs.pdf_make",
    "strip": "weighlock.codecs.strip",
}


def dump(work: Work) -> dict[str, Any]:
    return {"kind": kind_of(work), **asdict(work)}


def load(order: dict[str, Any]) -> Work:
    """The work `dump` was given. Orders come from the host, so they are trusted."""
    kind = _KINDS[order["kind"]]
    known = {field.name for field in fields(kind)}
    values = {name: value for name, value in order.items() if name in known}
    if values.get("crop") is not None:
        values["crop"] = Box(**values["crop"])
    return kind(**values)


def kind_of(work: Work) -> str:
    return next(name for name, kind in _KINDS.items() if isinstance(work, kind))


def door(order: dict[str, Any]) -> str:
    """The module whose `make` does it."""
    return _DOORS[order["kind"]]
