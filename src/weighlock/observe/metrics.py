"""The metrics by name: public, renamed only in a major version. README has the same table.

A request is told of once, when it has ended. Modalities are those it was sent in; `billed_as` are Google's buckets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OTHER = "other"
"""In the place of a label nobody knows: endpoints, models and reasons are bounded."""
NO_MODALITY = "UNATTRIBUTED"
"""Billed under no modality."""
ANSWER = "OUTPUT"
"""In the place of a modality, where money is told apart: what the answer and the thinking cost."""
OVERALL = "_overall"
"""In the place of an endpoint: what is limited of all together."""


class Kind(StrEnum):
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One family."""

    name: str
    """Of a counter with its `_total`."""
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


TOKENS = tuple(float(2**power) for power in range(7, 21))
"""128 to 1,048,576: what one frame costs, and more than any prompt holds."""
SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

_WHERE = ("endpoint", "model")
_KINDS = ("endpoint", "model", "modality")


def _counter(name: str, help: str, *labels: str) -> Metric:  # noqa: A002
    return Metric(name=f"weighlock_{name}_total", kind=Kind.COUNTER, help=help, labels=labels)


def _gauge(name: str, help: str, *labels: str) -> Metric:  # noqa: A002
    return Metric(name=f"weighlock_{name}", kind=Kind.GAUGE, help=help, labels=labels)


REQUESTS = _counter("requests", "Requests that have ended, by what became of them.", *_WHERE, "outcome")
REASONS = _counter("request_reasons", "Why requests were refused, shaped or would have been.", "endpoint", "reason")
ESTIMATED = _counter("estimated_tokens", "Prompt tokens of requests sent, by the likely estimate.", *_KINDS)
COUNTED = _counter("counted_tokens", "Tokens the service counted before the verdict.", *_KINDS)
BILLED = _counter("billed_tokens", "Prompt tokens billed, by modality as sent.", *_KINDS)
BILLED_AS = _counter("billed_as_tokens", "The same by the bucket the service files them in.", *_WHERE, "billed_as")
BILLED_ESTIMATE = _counter("billed_estimate_tokens", "What those billed had been estimated at, to compare.", *_KINDS)
ASSUMED = _counter("assumed_tokens", "Tokens charged as they were held, where nobody told the bill.", *_KINDS)
CACHED = _counter("cached_tokens", "Of the tokens billed, those read from a cache.", *_KINDS)
OUTPUT = _counter("output_tokens", "Tokens of answers and of thinking.", *_WHERE, "kind")
TOOL_USE = _counter("tool_use_tokens", "Prompt tokens of the service's own tools, beside those billed.", *_WHERE)
SAVED = _counter("saved_tokens", "Tokens requests are lighter than they came, by the high estimate.", *_KINDS)
SAVED_BY = _counter("lever_saved_tokens", "The same by the lever that saved them.", "endpoint", "lever")
RESENT = _counter("resent_tokens", "Tokens of media sent again from earlier turns, by the likely estimate.", *_KINDS)
COST = _counter("cost_usd", "US dollars billed; the answer's share is modality OUTPUT.", *_KINDS)
ESTIMATED_COST = _counter("estimated_cost_usd", "US dollars of requests sent, by the high estimate.", *_WHERE)
UNKNOWN_BILLS = _counter("unknown_bills", "Requests nobody told the bill of: charged as they were held.", "endpoint")
UNDERESTIMATED = _counter("underestimated_requests", "Requests billed above what was held.", "endpoint")
FINDINGS = _counter("bill_findings", "What is odd about bills.", "endpoint", "finding")
PARTS = _counter("parts", "Media, by what became of them before they were sent.", "endpoint", "modality", "done")
PREFIX_BREAKS = _counter("prefix_breaks", "Requests that break the prompt cache of the turn before.", "endpoint")
PREFIX_LOST = _counter("prefix_lost_tokens", "Tokens such a break takes out of the cache.", "endpoint")
UPLOADS = _counter("uploads", "Media sent by the Files API, uploaded or used again.", "endpoint", "result")
REUPLOADS = _counter("reuploads", "Files that had to be uploaded again, by cause.", "endpoint", "cause")
UNVERIFIED = _counter("unverified_admissions", "Requests admitted while the budgets could not be asked.", "endpoint")
PROMPT = Metric(
    name="weighlock_request_prompt_tokens",
    kind=Kind.HISTOGRAM,
    help="Prompt tokens of a request as it is sent: billed, or the likely estimate.",
    labels=("endpoint",),
    buckets=TOKENS,
)
ASKED = Metric(
    name="weighlock_request_asked_tokens",
    kind=Kind.HISTOGRAM,
    help="Tokens of one modality in a request as the client sent it, by the likely estimate.",
    labels=("endpoint", "modality"),
    buckets=TOKENS,
)
STAGE = Metric(
    name="weighlock_stage_seconds",
    kind=Kind.HISTOGRAM,
    help="How long a step of the line takes.",
    labels=("stage",),
    buckets=SECONDS,
)

ENDPOINT = _gauge("endpoint_info", "Endpoints, and who answers for them.", "endpoint", "owner", "mode")
BUDGET_LIMIT = _gauge("budget_limit", "What a window allows now, grants included.", "endpoint", "window", "unit")
BUDGET_USED = _gauge("budget_used", "Of that, what is spent.", "endpoint", "window", "unit")
BUDGET_HELD = _gauge("budget_held", "Of that, what is held for requests under way.", "endpoint", "window", "unit")
FILES_BYTES = _gauge("files_stored_bytes", "Of our files at the service.", "account")
FILES_QUOTA = _gauge("files_quota_bytes", "What they may take.", "account")
FILES_EXPIRY = _gauge("files_next_expiry_timestamp_seconds", "When the first of them ends.", "account")
RULES_CHECKED = _gauge("rules_checked_timestamp_seconds", "When the rules were last held against their sources.")
PRICE_CHANGE = _gauge("price_change_timestamp_seconds", "When the price of a model in use next changes.", "model")
PRICE_FACTOR = _gauge("price_change_factor", "By what its input price changes then.", "model")
RELOADED = _gauge("config_reloaded_timestamp_seconds", "When the settings in force were read.")
RELOAD_OK = _gauge("config_reload_ok", "Whether the last try to read them succeeded.")
STORE = _gauge("store_info", "What keeps the budgets, and who shares them.", "store", "reach")

COUNTED_UP = (
    REQUESTS, REASONS, ESTIMATED, COUNTED, BILLED, BILLED_AS, BILLED_ESTIMATE, ASSUMED, CACHED, OUTPUT, TOOL_USE, SAVED,
    SAVED_BY, RESENT, COST, ESTIMATED_COST, UNKNOWN_BILLS, UNDERESTIMATED, FINDINGS, PARTS, PREFIX_BREAKS, PREFIX_LOST,
    UPLOADS, REUPLOADS, UNVERIFIED, PROMPT, ASKED, STAGE,
)  # fmt: skip
"""What grows with every request."""
LOOKED_AT = (
    ENDPOINT, BUDGET_LIMIT, BUDGET_USED, BUDGET_HELD, FILES_BYTES, FILES_QUOTA, FILES_EXPIRY, RULES_CHECKED,
    PRICE_CHANGE, PRICE_FACTOR, RELOADED, RELOAD_OK, STORE,
)  # fmt: skip
"""How things stand when somebody asks."""
EVERY = (*COUNTED_UP, *LOOKED_AT)
