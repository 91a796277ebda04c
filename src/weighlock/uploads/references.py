"""References that do not die: used again while they are good, else uploaded once for all who ask, and remembered."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from weighlock.errors import (
    FileProcessingFailed,
    InputError,
    ReferenceUnrecoverable,
    UploadFailed,
)
from weighlock.gemini.files import Files, demand_mime
from weighlock.gemini.http import Service
from weighlock.io import Io
from weighlock.request import MediaPart
from weighlock.uploads.bringing import Bringing, Deleted, Progress, Told, Wanted
from weighlock.uploads.copies import Copies
from weighlock.uploads.entries import Entry, Key, Lease, Remote
from weighlock.uploads.owners import new_owner
from weighlock.uploads.policy import DeleteRemote, UploadPolicy
from weighlock.uploads.registry import Registry
from weighlock.uploads.source import PartSource, UploadSource, sha256_of
from weighlock.uploads.storage import Storage

_FIRST_POLL_S, _LONGEST_POLL_S = 0.02, 0.5
_LEAST_TIME_S, _SLOWEST_BYTES_PER_S = 1200.0, 500_000
_MOST_UPLOADS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A file a request may refer to."""

    key: Key
    name: str
    uri: str
    usable_until: datetime
    """No request should refer to it later, for it has to be read as well. By the service's clock."""
    expires_at: datetime
    """When the service deletes it. By its own clock."""
    reused: bool
    """Whether nothing was sent for it."""
    held: str | None = None
    """Keeps it from being deleted until `References.release`, where the policy deletes after a request."""


class References:
    """The files of one account. Thread-safe as its `io` is."""

    def __init__(
        self,
        io: Io,
        service: Service,
        registry: Registry,
        *,
        account: str,
        policy: UploadPolicy | None = None,
        copies: Copies | None = None,
        max_bytes: int = 2_000_000_000,
    ) -> None:
        """`account` is whose files they are, in the registry; without `copies`, none are kept.

        Raises:
            ConfigError: on Vertex, which has no files.
        """
        self.io, self.files, self.registry, self.account = io, Files(service), registry, account
        self._storage = Storage(registry.file)
        self.policy = policy or UploadPolicy()
        self._copies, self._max_bytes = copies, max_bytes
        self._bringing = Bringing(io, self.files, registry, service.target, self.policy, copies)

    async def ensure(
        self,
        part: MediaPart,
        mime: str,
        *,
        tenant: str,
        sha256: str | None = None,
        progress: Progress | None = None,
        told: Told | None = None,
        within_s: float | None = None,
    ) -> Reference:
        """A file with the part's bytes, ACTIVE, of this tenant: known, or uploaded now.

        Whoever asks for the same while it is uploaded, in this process or another, waits for that upload.

        Args:
            part: A medium with bytes.
            mime: What it is.
            tenant: Whose bytes these are; another tenant's file of the same bytes is another file.
            sha256: In hex, where it is known already.
            progress: Told bytes arrived and bytes in all, where it is uploaded.
            told: Told in words whenever that has to be tried again, or waited for.
            within_s: For everything; by size where left out.

        Raises:
            InputError: that is no media type, or no tenant.
            UploadFailed, StorageFull: it could not be brought there.
            FileProcessingFailed, FileNotReady: it is there, and cannot be used.
            UnreadableSource, MediaTooLarge, MalformedMedia: the source is nothing to send.
            StateUnavailable: what is known of uploads cannot be read.
        """
        demand_mime(mime)
        with PartSource(part, max_bytes=self._max_bytes) as source:
            digest = sha256 if sha256 is not None else await self.io.call(sha256_of, source)
            key = Key(account=self.account, tenant=tenant, sha256=digest, mime=mime)
            return await self._reference(self._wanted(key, source, part, within_s, progress=progress, told=told))

    async def renewed(
        self,
        entry: Entry,
        *,
        beyond: int = 0,
        also: Iterable[MediaPart] = (),
        within_s: float | None = None,
        told: Told | None = None,
    ) -> Reference:
        """A usable file of a content we know, of a later round than `beyond`.

        Its bytes are those of `also`, of the file they came from, or of our copy: whichever still are what they were.

        Raises:
            ReferenceUnrecoverable: nobody has its bytes any more.
            ServiceError: as `ensure`.
        """
        remote = entry.usable(self.io.now()) if entry.round > beyond else None
        if remote is not None and (known := self._used(entry, remote, reused=True)) is not None:
            return known
        label, copy = entry.label or "", self._copy(entry)
        kept = (MediaPart(source=path, label=label) for path in (entry.path, copy) if path is not None)
        for part in (*also, *kept):
            with suppress(InputError), PartSource(part, max_bytes=self._max_bytes) as source:
                same = source.size_bytes == entry.size_bytes
                if same and await self.io.call(sha256_of, source) == entry.key.sha256:
                    wanted = self._wanted(entry.key, source, part, within_s, beyond=beyond, told=told)
                    return await self._reference(
                        replace(wanted, path=None, is_copy=True) if part.source == copy else wanted
                    )
        name = entry.remote.name if entry.remote else None
        raise ReferenceUnrecoverable(
            f"{name or 'a file'} is gone, and its bytes are nowhere here any more: neither the file they came from "
            "nor a copy (uploads.keep_copies)",
            file=name,
        )

    async def release(self, references: Iterable[Reference]) -> None:
        """The request that needed them has ended. All are let go before the service is told of any: that may be broken
        off."""
        held = [one.held for one in references if one.held is not None]
        await self.deleted([name for one in held for name in self._storage.let_go(one, self.io.now())])

    async def deleted(self, names: Iterable[str]) -> Deleted:
        """Deletes files at the service. What it could not reach ends by itself."""
        return await self._bringing.deleted(self.account, names)

    def forgotten(self, tenant: str, name: str) -> None:
        """Erases what is kept here of the content a file of the tenant's has: its owner wants it gone."""
        entry = self.registry.by_name(self.account, tenant, name, self.io.now())
        if entry is not None:
            if self._copies is not None:
                self._copies.drop(entry.key)
            self.registry.forget(entry.key)

    # ---- one for all who ask

    async def _reference(self, wanted: Wanted) -> Reference:
        wait_s, uploads, tried = _FIRST_POLL_S, 0, False
        while True:
            now = self.io.now()
            entry = self.registry.find(wanted.key, now)
            remote = None if entry is None or entry.round <= wanted.beyond else entry.usable(now)
            failure = None if entry is None else entry.failed(now)
            if remote is None and failure is not None:
                raise FileProcessingFailed(failure, file=None)
            lease = None
            if remote is None or (entry is not None and entry.is_due(now) and not failure and not tried):
                if uploads == _MOST_UPLOADS:
                    raise UploadFailed(f"uploaded {uploads} times, and never usable: do the clocks agree?")
                lease = self._claimed(wanted, entry, now)
            if lease is not None:
                tried = True
                uploads += await self._bringing.brought(lease, wanted, remote)
            elif remote is None:
                wait_s = await self._wait(wait_s, wanted)
            elif entry is not None and (known := self._used(entry, remote, reused=not uploads)) is not None:
                return known

    def _claimed(self, wanted: Wanted, entry: Entry | None, now: datetime) -> Lease | None:
        return self.registry.claim(
            wanted.key,
            new_owner(),
            now,
            wanting=0 if entry is None else entry.round,
            size_bytes=wanted.source.size_bytes,
            label=wanted.label,
            path=wanted.path,
        )

    def _used(self, entry: Entry, remote: Remote, *, reused: bool) -> Reference | None:
        """The reference to a file there is; `None` where it is about to be deleted."""
        now, held = self.io.now(), None
        if self.policy.delete_remote is DeleteRemote.AFTER_REQUEST:
            held = self._storage.hold(entry.key, remote.name, new_owner(), now)
            if held is None:
                return None
        self.registry.touch(entry, now)
        return Reference(
            key=entry.key,
            name=remote.name,
            uri=remote.uri,
            usable_until=remote.usable_until,
            expires_at=remote.expires_at,
            reused=reused,
            held=held,
        )

    async def _wait(self, wait_s: float, wanted: Wanted) -> float:
        if self.io.monotonic() + wait_s > wanted.until:
            raise UploadFailed("somebody else is uploading the same file, and has not ended within the time")
        await self.io.sleep(wait_s * (0.5 + self.io.random() / 2))
        longer_s = min(wait_s * 1.5, _LONGEST_POLL_S)
        if wanted.told is not None and wait_s < longer_s == _LONGEST_POLL_S:  # once, and not of a moment
            wanted.told("somebody else is uploading the same file; waiting for that")
        return longer_s

    def _copy(self, entry: Entry) -> Path | None:
        return self._copies.path(entry.key) if self._copies is not None and entry.copied else None

    def _wanted(
        self,
        key: Key,
        source: UploadSource,
        part: MediaPart,
        within_s: float | None,
        *,
        beyond: int = 0,
        progress: Progress | None = None,
        told: Told | None = None,
    ) -> Wanted:
        allowed_s = _LEAST_TIME_S + source.size_bytes / _SLOWEST_BYTES_PER_S if within_s is None else within_s
        return Wanted(
            key=key,
            source=source,
            label=part.label.encode("utf-8", "replace").decode("utf-8") or None,  # a file's name may be no UTF-8
            path=part.source.absolute() if isinstance(part.source, Path) else None,
            is_copy=False,
            until=self.io.monotonic() + allowed_s,
            beyond=beyond,
            progress=progress,
            told=told,
        )
