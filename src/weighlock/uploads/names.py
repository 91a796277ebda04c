"""Names for files at the service: found again by whoever uploads the same thing, telling nobody else what it is."""

from __future__ import annotations

import hashlib
import hmac

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MOST_GENERATIONS = len(_DIGITS)


def remote_name(secret: bytes, *parts: str, generation: int = 0) -> str:
    """The name (`files/…`) of one content of one owner; `parts` are account, tenant, sha256 and media type.

    An HMAC and not the hash itself: who may list a project's files could else ask whether it holds a file he has. At
    most 40 characters and no dash, at which the SDK cuts a name off. A `generation` is another name for the same thing,
    for when one stays taken.
    """
    said = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return f"files/w{hmac.new(secret, said, hashlib.sha256).hexdigest()[:37]}{_DIGITS[generation]}"
