"""weighlock weighs the media in a Gemini request before it is sent.

Public names resolve on first access: importing the package loads neither the SDK nor a codec.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighlock.context import endpoint, session, tenant
    from weighlock.encoded import Base64
    from weighlock.errors import (
        BudgetExceeded,
        BudgetStoreUnavailable,
        ConfigError,
        InputError,
        MalformedMedia,
        MalformedRequest,
        ServiceError,
        UncoveredCall,
        UnsupportedMedia,
        WeighlockError,
        WindowExhausted,
    )
    from weighlock.fitted import Fitted
    from weighlock.integrations.genai_client import Client
    from weighlock.integrations.media import media
    from weighlock.integrations.receipts import receipt
    from weighlock.media.tokens import TokenRange
    from weighlock.planning.admit import Decision, LimitCheck, Verdict
    from weighlock.planning.carrying import Action, Code
    from weighlock.planning.screen import Change, Finding, Screening
    from weighlock.planning.steps import Plan, Step
    from weighlock.planning.weigh import CostRange, Tally, Weighed
    from weighlock.preflight import Preflight, check
    from weighlock.prepared import PreparedRequest, Receipt
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
    "BudgetStoreUnavailable": "errors",
    "Carrier": "request",
    "Change": "planning.screen",
    "Client": "integrations.genai_client",
    "Clip": "request",
    "Code": "planning.carrying",
    "ConfigError": "errors",
    "Content": "request",
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
    "PreparedRequest": "prepared",
    "Receipt": "prepared",
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
    "UncoveredCall": "errors",
    "UnsupportedMedia": "errors",
    "Uri": "request",
    "Verdict": "planning.admit",
    "Weighed": "planning.weigh",
    "WeighlockError": "errors",
    "WindowExhausted": "errors",
    "check": "preflight",
    "endpoint": "context",
    "load": "settings",
    "media": "integrations.media",
    "receipt": "integrations.receipts",
    "session": "context",
    "tenant": "context",
}

__all__ = [
    "Action",
    "Asked",
    "Backend",
    "Base64",
    "Box",
    "BudgetExceeded",
    "BudgetStoreUnavailable",
    "Carrier",
    "Change",
    "Client",
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
    "PreparedRequest",
    "Receipt",
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
    "UncoveredCall",
    "UnsupportedMedia",
    "Uri",
    "Verdict",
    "Weighed",
    "WeighlockError",
    "WindowExhausted",
    "__version__",
    "check",
    "endpoint",
    "load",
    "media",
    "receipt",
    "session",
    "tenant",
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
