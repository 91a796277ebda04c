"""weighlock weighs the media in a Gemini request before it is sent.

Public names resolve on first access: importing the package loads neither the SDK nor a codec.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighlock.encoded import Base64
    from weighlock.errors import (
        BudgetExceeded,
        ConfigError,
        InputError,
        MalformedMedia,
        MalformedRequest,
        ServiceError,
        UnsupportedMedia,
        WeighlockError,
    )
    from weighlock.fitted import Fitted
    from weighlock.media.tokens import TokenRange
    from weighlock.planning.admit import Decision, LimitCheck, Verdict
    from weighlock.planning.carrying import Action, Code
    from weighlock.planning.screen import Change, Finding, Screening
    from weighlock.planning.steps import Plan, Step
    from weighlock.planning.weigh import CostRange, Tally, Weighed
    from weighlock.preflight import Preflight, check
    from weighlock.report import Report
    from weighlock.request import (
        Backend,
        Box,
        Carrier,
        Clip,
        Content,
        MediaPart,
        MediaResolution,
        Modality,
        OpaquePart,
        Place,
        Placement,
        Request,
        TextPart,
        ToolCallPart,
        ToolResultPart,
        Turn,
        Uri,
    )
    from weighlock.rules import Controls, RuleBook
    from weighlock.scales import Asked
    from weighlock.settings import Settings, load
    from weighlock.weigher import Screened

__version__ = "0.1.0"

_HOMES = {
    "Action": "planning.carrying",
    "Asked": "scales",
    "Backend": "request",
    "Base64": "encoded",
    "Box": "request",
    "BudgetExceeded": "errors",
    "Carrier": "request",
    "Change": "planning.screen",
    "Clip": "request",
    "Content": "request",
    "Code": "planning.carrying",
    "ConfigError": "errors",
    "Controls": "rules",
    "CostRange": "planning.weigh",
    "Decision": "planning.admit",
    "Finding": "planning.screen",
    "Fitted": "fitted",
    "InputError": "errors",
    "LimitCheck": "planning.admit",
    "MalformedMedia": "errors",
    "MalformedRequest": "errors",
    "MediaPart": "request",
    "MediaResolution": "request",
    "Modality": "request",
    "OpaquePart": "request",
    "Place": "request",
    "Placement": "request",
    "Plan": "planning.steps",
    "Preflight": "preflight",
    "Report": "report",
    "Request": "request",
    "RuleBook": "rules",
    "Screened": "weigher",
    "Screening": "planning.screen",
    "ServiceError": "errors",
    "Settings": "settings",
    "Step": "planning.steps",
    "Tally": "planning.weigh",
    "TextPart": "request",
    "TokenRange": "media.tokens",
    "ToolCallPart": "request",
    "ToolResultPart": "request",
    "Turn": "request",
    "UnsupportedMedia": "errors",
    "Uri": "request",
    "Verdict": "planning.admit",
    "Weighed": "planning.weigh",
    "WeighlockError": "errors",
    "check": "preflight",
    "load": "settings",
}

__all__ = [
    "Action",
    "Asked",
    "Backend",
    "Base64",
    "Box",
    "BudgetExceeded",
    "Carrier",
    "Change",
    "Clip",
    "Code",
    "ConfigError",
    "Content",
    "Controls",
    "CostRange",
    "Decision",
    "Finding",
    "Fitted",
    "InputError",
    "LimitCheck",
    "MalformedMedia",
    "MalformedRequest",
    "MediaPart",
    "MediaResolution",
    "Modality",
    "OpaquePart",
    "Place",
    "Placement",
    "Plan",
    "Preflight",
    "Report",
    "Request",
    "RuleBook",
    "Screened",
    "Screening",
    "ServiceError",
    "Settings",
    "Step",
    "Tally",
    "TextPart",
    "TokenRange",
    "ToolCallPart",
    "ToolResultPart",
    "Turn",
    "UnsupportedMedia",
    "Uri",
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
