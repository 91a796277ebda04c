"""What one request may weigh, as its endpoint allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a single request, inclusive: need ≤ limit admits. `None` is no limit, 0 admits nothing of the kind."""

    prompt_tokens: int | None = None
    """Whole prompt, every modality and the text."""
    cost_usd: Decimal | None = None
    media_parts: int | None = None
    """Media in the request, whatever their modality; text is no medium."""
    bytes: int | None = None
    """Stored size of the media together, before base64."""
    tokens: Mapping[Modality, int] = field(default_factory=lambda: MappingProxyType({}))
    """By modality as sent: frames are VIDEO, sound is AUDIO (also a film's), PDF pages are DOCUMENT."""

    @property
    def empty(self) -> bool:
        """Whether nothing is limited."""
        return not self.tokens and all(
            limit is None for limit in (self.prompt_tokens, self.cost_usd, self.media_parts, self.bytes)
        )
