"""The only place that opens media.

FFmpeg, Pillow and the PDF libraries are loaded in a confined worker, never in the host. The prober itself loads on
first access: whoever only reads image headers does not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weighlock.codecs.limits import Confinement, ProbeLimits
from weighlock.codecs.text import text_facts

if TYPE_CHECKING:
    from weighlock.codecs.prober import Prober, descriptor_of, probe_bytes, versions

__all__ = ["Confinement", "ProbeLimits", "Prober", "descriptor_of", "probe_bytes", "text_facts", "versions"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("weighlock.codecs.prober"), name)
    globals()[name] = value
    return value
