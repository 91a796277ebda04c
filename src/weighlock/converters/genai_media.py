"""A medium among the SDK's contents whose bytes are where they are."""

from __future__ import annotations

from google.genai import types
from pydantic import PrivateAttr

from weighlock.request import MediaPart


class Media(types.Part):
    """A part whose bytes are where they are: the SDK passes it on, and the line reads it.

    To be sent by `weighlock.Client`, or by what `prepare` makes of it; by itself it is an empty part.
    """

    _medium: MediaPart = PrivateAttr()

    @classmethod
    def of(cls, medium: MediaPart) -> Media:
        part = cls()
        part._medium = medium
        return part

    @property
    def medium(self) -> MediaPart:
        """What is to be sent, and how."""
        return self._medium
