"""What can be observed of a request, as frozen values of plain ones: no content, no names, no addresses.

Of a medium it holds the first digits of its hash, its type, what was measured and what it weighs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

VERSION = 1
"""Of `Ended` as JSON. A reader of one version reads later ones, and passes over what it does not know."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """One medium, or all the text of a request."""

    sha256: str | None
    """The first 12 digits; `None` where its bytes were not looked at, or would have to be read from disk for it."""
    mime: str | None
    modality: str | None
    size_bytes: int | None
    facts: Mapping[str, Any] | None
    """What was measured: pixels, seconds, frames, pages, characters."""
    asked: Mapping[str, Any]
    """What the request itself asks of it."""
    sent: Mapping[str, Any]
    """The controls it is sent with: resolution, fps, offsets, placement."""
    before: Mapping[str, tuple[int, int, int]]
    """Tokens by modality as sent: low, likely, high."""
    after: Mapping[str, tuple[int, int, int]]
    resent: bool = False
    """Whether an earlier turn sent it already."""
    sent_mime: str | None = None
    sent_bytes: int | None = None
    """As it is sent."""
    work: Mapping[str, Any] | None = None
    """What was done to its bytes, with every parameter: clip, frames a second, pixels, pages."""
    uploaded: bool | None = None
    """Whether its bytes went to the Files API for this request; `False` where a file there was used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One lever moved."""

    lever: str
    parts: tuple[int, ...]
    words: str
    saved_tokens: int
    """By the high estimate."""
    local: bool
    breaks_prefix: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledRecord:
    """What the call cost."""

    prompt: int | None
    by_modality: Mapping[str, int]
    cached: int
    answer: int
    thoughts: int
    usd: str | None
    estimated: bool
    underestimated: Mapping[str, int]
    findings: tuple[str, ...]
    hops: int = 1
    tool_use: int = 0
    """Prompt tokens beside `prompt`, of the service's own tools."""
    unattributed: int = 0
    cached_by_modality: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    buckets: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    """As Google files them."""
    usd_by_modality: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Of the prompt, cached tokens at their rate; the answer's share is the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A request at its end: settled, let go, or refused."""

    at: datetime
    """When it was prepared."""
    id: str
    endpoint: str
    owner: str | None
    model: str
    family: str
    """The model by the name the rules have for it."""
    backend: str
    tenant: str
    session: str | None
    """Hashed."""
    mode: str
    outcome: str
    codes: tuple[str, ...]
    parts: tuple[PartRecord, ...]
    steps: tuple[StepRecord, ...]
    """As it is sent; in `mode: observe` those that would be taken are `wished`."""
    wished: tuple[StepRecord, ...]
    wished_tokens: int
    """What the endpoint's policy would send, by the high estimate."""
    before: Mapping[str, tuple[int, int, int]]
    after: Mapping[str, tuple[int, int, int]]
    usd_before: str | None
    usd_after: str | None
    """By the high estimates, the expected answer included."""
    output_tokens: int
    held: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    unverified: bool = False
    cache_kept: int | None = None
    """Tokens of what was sent before that stand as they were; `None` of a first turn."""
    cache_lost: int | None = None
    counted: bool = False
    counted_tokens: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    """What the service counted, by the modalities it named."""
    uploads: int = 0
    reuploads: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    """By cause: `expired`, `refused`."""
    screened: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: _NOTHING)
    """Media that did not go as they came, by what became of them (`removed`, `relocated`, `converted`, `lifted` …) and
    modality."""
    stages_ms: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    billed: BilledRecord | None = None
    """`None` where it was not sent, or cost nothing."""
    escalates: str | None = None
    """Of which request it is the sharper pass."""
