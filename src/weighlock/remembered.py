"""What files of ours at the service are: measured before they went there, and told again to whoever names one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from weighlock.errors import ConfigError, StateUnavailable
from weighlock.examiner import Recall
from weighlock.planning.weigh import Examined
from weighlock.request import Backend, MediaPart, Modality, Uri
from weighlock.uploads.repair import file_name

if TYPE_CHECKING:
    from weighlock.settings import Account
    from weighlock.uploads.registry import Registry

_VERSION = 1
"""Of what is written; another one's is passed over."""


def told(examined: Examined) -> str | None:
    """For the registry; `None` where nothing was measured."""
    from weighlock.facts_values import values_of

    if examined.facts is None or examined.modality is None:
        return None
    modality, facts = examined.modality.value, values_of(examined.facts)
    return json.dumps({"v": _VERSION, "mime": examined.mime, "modality": modality, "facts": facts})


def recall(account: Account, tenant: str, registry: Callable[[], Registry | None]) -> Recall:
    """What a part is that names a file of this tenant which we uploaded; `None` of every other one."""

    def recalled(part: MediaPart) -> Examined | None:
        name = file_name(part.source.text) if isinstance(part.source, Uri) else None
        if name is None or account.backend is Backend.VERTEX:
            return None
        from weighlock.accounts import account_id, target_of

        try:
            known = registry()
            where = account_id(account.name, target_of(account))
            entry = None if known is None else known.described(where, tenant, name)
        except (ConfigError, StateUnavailable):  # it is weighed as what nobody has seen
            return None
        return None if entry is None else _examined(part, *entry)

    return recalled


def _examined(part: MediaPart, size_bytes: int, text: str) -> Examined | None:
    from weighlock.facts_values import facts_of

    try:
        said = json.loads(text)
        if said["v"] != _VERSION:
            return None
        return Examined(
            label=part.label,
            size_bytes=size_bytes,
            declared_mime=part.declared_mime,
            mime=said["mime"],
            modality=Modality(said["modality"]),
            facts=facts_of(said["facts"]),
            clip=part.clip,
            here=False,
        )
    except (ValueError, KeyError, TypeError):
        return None
