"""What an operator says about uploads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_TENANT = "default"
"""Whose bytes they are where nobody says."""
GIVE_UP_AFTER_S = 300.0


class DeleteRemote(StrEnum):
    """When a file leaves the service."""

    AT_EXPIRY = "at_expiry"
    """By itself, two days later: until then it is used again."""
    AFTER_REQUEST = "after_request"
    """As soon as no request needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPolicy:
    """How references are kept."""

    keep_copies_s: float = 7 * 86_400.0
    """How long after its last use a copy is kept of what we would not see again. 0: none; infinite: until purged."""
    copies_cap_bytes: int = 5_000_000_000
    delete_remote: DeleteRemote = DeleteRemote.AT_EXPIRY
    quota_bytes: int = 18_000_000_000
    """Of our files at the service, all tenants of an account together."""
    give_up_after_s: float = GIVE_UP_AFTER_S
    """How long an upload is tried again with nothing more arriving."""
