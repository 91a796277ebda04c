"""weighlock weighs the media in a Gemini request before it is sent.

Public names resolve on first access: importing the package loads neither the SDK nor a codec.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighlock.errors import ConfigError, InputError, ServiceError, WeighlockError
    from weighlock.media.tokens import TokenRange
    from weighlock.planning.admit import Decision, LimitCheck, Verdict
    from weighlock.planning.weigh import CostRange, Tally, Weighed
    from weighlock.preflight import Preflight, check
    from weighlock.report import Report
    from weighlock.request import Backend, Carrier, MediaPart, MediaResolution, Modality, Placement
    from weighlock.rules import Controls, RuleBook
    from weighlock.scales import Asked
    from weighlock.settings import Clip, Settings, load

__version__ = "0.1.0"

_HOMES = {
    "Asked": "scales",
    "Backend": "request",
    "Carrier": "request",
    "Clip": "settings",
    "ConfigError": "errors",
    "Controls": "rules",
    "CostRange": "planning.weigh",
    "Decision": "planning.admit",
    "InputError": "errors",
    "LimitCheck": "planning.admit",
    "MediaPart": "request",
    "MediaResolution": "request",
    "Modality": "request",
    "Placement": "request",
    "Preflight": "preflight",
    "Report": "report",
    "RuleBook": "rules",
    "ServiceError": "errors",
    "Settings": "settings",
    "Tally": "planning.weigh",
    "TokenRange": "media.tokens",
    "Verdict": "planning.admit",
    "Weighed": "planning.weigh",
    "WeighlockError": "errors",
    "check": "preflight",
    "load": "settings",
}

__all__ = [
    "Asked",
    "Backend",
    "Carrier",
    "Clip",
    "ConfigError",
    "Controls",
    "CostRange",
    "Decision",
    "InputError",
    "LimitCheck",
    "MediaPart",
    "MediaResolution",
    "Modality",
    "Placement",
    "Preflight",
    "Report",
    "RuleBook",
    "ServiceError",
    "Settings",
    "Tally",
    "TokenRange",
    "Verdict",
    "Weighed",
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
