"""Facts ⇄ JSON values, as they stand in the decision log and in the registry of uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, ImageFacts, TextFacts, TextSizes, VideoFacts

_KINDS = {kind.__name__: kind for kind in (ImageFacts, VideoFacts, AudioFacts, DocumentFacts, TextFacts, TextSizes)}


def values_of(facts: Facts) -> dict[str, Any]:
    """With their `kind`."""
    values = {name: value.value if isinstance(value, Enum) else value for name, value in asdict(facts).items()}
    return {"kind": type(facts).__name__, **values}


def facts_of(values: Mapping[str, Any]) -> Facts:
    """The facts of such values.

    Raises:
        KeyError, ValueError: they are none.
    """
    facts: Facts = _adapter(values["kind"]).validate_python({key: one for key, one in values.items() if key != "kind"})
    return facts


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])
