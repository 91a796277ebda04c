"""The only place that opens media.

FFmpeg, Pillow and the PDF libraries are loaded in a confined worker, never in the host. Names resolve on first access:
whoever only reads image headers does not pay for the prober, nor the worker for what the host needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighlock.codecs.limits import Confinement, MakeLimits, ProbeLimits
    from weighlock.codecs.prober import Prober, descriptor_of, probe_bytes, versions
    from weighlock.codecs.text import text_facts
    from weighlock.codecs.transformer import Transformer, make_bytes, make_file

__all__ = [
    "Confinement",
    "MakeLimits",
    "ProbeLimits",
    "Prober",
    "Transformer",
    "descriptor_of",
    "make_bytes",
    "make_file",
    "probe_bytes",
    "text_facts",
    "versions",
]
_HOMES = {
    "Confinement": "limits", "MakeLimits": "limits", "ProbeLimits": "limits", "text_facts": "text",
    "Transformer": "transformer", "make_bytes": "transformer", "make_file": "transformer",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"weighlock.codecs.{_HOMES.get(name, 'prober')}"), name)
    globals()[name] = value
    return value
