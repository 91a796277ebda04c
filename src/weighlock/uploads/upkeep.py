"""Looking after what was uploaded: which of it to renew, and erasing it wherever it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from weighlock.uploads.bringing import Deleted
from weighlock.uploads.copies import Copies
from weighlock.uploads.entries import Entry
from weighlock.uploads.references import References
from weighlock.uploads.registry import Registry

_IN_USE = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which contents are meant; what is left out holds for all."""

    sha256: str | None = None
    """Its first digits."""
    tenant: str | None = None
    unused_for_s: float | None = None

    def of(self, entries: Iterable[Entry], now: datetime) -> list[Entry]:
        return [one for one in entries if self._means(one, now)]

    def _means(self, entry: Entry, now: datetime) -> bool:
        if self.unused_for_s is not None and (now - entry.used_at).total_seconds() < self.unused_for_s:
            return False
        return self.tenant in (None, entry.key.tenant) and entry.key.sha256.startswith(self.sha256 or "")


def due(entries: Iterable[Entry], now: datetime) -> list[Entry]:
    """What is in use, and near or past its end."""
    return [
        one
        for one in entries
        if now - one.used_at < _IN_USE and one.remote is not None and (one.is_due(now) or one.usable(now) is None)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What became of one content."""

    entry: Entry
    copy: bool
    """Whether there was a copy."""
    deleted: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """Files the service does not show us: gone before, or another project's."""
    left: tuple[str, ...] = ()
    """Files still at the service, until they expire."""
    kept: bool = False
    """Whether it stays in the registry, for another try."""


async def purge(
    registry: Registry, copies: Copies, entry: Entry, now: datetime, references: References | None, *, remote: bool
) -> Purged:
    """Erases copy and row; with `remote` also the files at the service, by the `references` of its account.

    Where those cannot be reached, or there are no `references`, the row stays, so that it can be tried again.
    """
    copy, names = copies.drop(entry.key), tuple(registry.names(entry.key, now))
    done = Deleted(gone=(), absent=(), missed=names)
    if remote and references is not None:
        done = await references.deleted(names)
    kept = remote and bool(done.missed)
    if not kept:
        registry.forget(entry.key)
    return Purged(entry=entry, copy=copy, deleted=done.gone, absent=done.absent, left=done.missed, kept=kept)
