"""weighlock weighs the media in a Gemini request before it is sent.

Public names resolve on first access: importing the package loads neither the SDK nor a codec.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighlock.errors import BudgetExceeded, ConfigError, InputError, WeighlockError
    from weighlock.media.tokens import TokenRange
    from weighlock.preflight import Preflight, check
    from weighlock.report import Report
    from weighlock.request import Backend, Carrier, MediaPart, MediaResolution, Modality, Placement
    from weighlock.rules import Controls, RuleBook
    from weighlock.settings import Settings, load

__version__ = "0.1.0"

_HOMES = {
    "Backend": "request",
    "BudgetExceeded": "errors",
    "Carrier": "request",
    "ConfigError": "errors",
    "Controls": "rules",
    "InputError": "errors",
    "MediaPart": "request",
    "MediaResolution": "request",
    "Modality": "request",
    "Placement": "request",
    "Preflight": "preflight",
    "Report": "report",
    "RuleBook": "rules",
    "Settings": "settings",
    "TokenRange": "media.tokens",
    "WeighlockError": "errors",
    "check": "preflight",
    "load": "settings",
}

__all__ = [
    "Backend",
    "BudgetExceeded",
    "Carrier",
    "ConfigError",
    "Controls",
    "InputError",
    "MediaPart",
    "MediaResolution",
    "Modality",
    "Placement",
    "Preflight",
    "Report",
    "RuleBook",
    "Settings",
    "TokenRange",
    "WeighlockError",
    "__version__",
    "check",
    "load",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weighlock' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"weighlock.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
