"""The kinds of media. By itself, so that the worker need not load what travels around them."""

from __future__ import annotations

from enum import StrEnum


class Modality(StrEnum):
    """What the caller sent, in the words of `usageMetadata.promptTokensDetails`."""

    TEXT = "TEXT"
    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    AUDIO = "AUDIO"
    DOCUMENT = "DOCUMENT"
