"""A medium among the SDK's contents whose bytes are where they are: a `types.Part` that carries a `MediaPart`.

A chat takes nothing but the very class `types.Part`, so no class of our own will do. What it carries stands where
pydantic keeps a model's private attributes: it is copied with the part and never sent.
"""

from __future__ import annotations

from google.genai import types

from weighlock.request import MediaPart

_PRIVATE = "__pydantic_private__"
_KEY = "_weighlock_medium"


def carrying(medium: MediaPart) -> types.Part:
    """A part that stands for a medium. To the SDK by itself it is an empty one."""
    part = types.Part()
    object.__setattr__(part, _PRIVATE, {_KEY: medium})
    return part


def carried_by(part: object) -> MediaPart | None:
    """What a part stands for; `None` of an ordinary one."""
    private = getattr(part, _PRIVATE, None)
    medium = private.get(_KEY) if isinstance(private, dict) else None
    return medium if isinstance(medium, MediaPart) else None
