"""References that do not die: used again while they are good, else uploaded once for all who ask, and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from weighlock.errors import (
    FileNotReady,
    FileProcessingFailed,
    InputError,
    ReferenceUnrecoverable,
    ServiceError,
    StorageFull,
    UploadFailed,
)
from weighlock.gemini.files import Files, FileState, RemoteFile
from weighlock.gemini.http import Service
from weighlock.io import Io
from weighlock.request import MediaPart
from weighlock.uploads.copies import Copies
from weighlock.uploads.entries import LEASE_S, Entry, Key, Lease, Remote
from weighlock.uploads.names import remote_name
from weighlock.uploads.owners import new_owner
from weighlock.uploads.policy import DeleteRemote, UploadPolicy
from weighlock.uploads.registry import Registry
from weighlock.uploads.resumable import Cargo, upload
from weighlock.uploads.source import PartSource, UploadSource, sha256_of
from weighlock.uploads.storage import Storage

_FIRST_POLL_S, _LONGEST_POLL_S = 0.02, 0.5
_LEAST_TIME_S, _SLOWEST_BYTES_PER_S = 1200.0, 500_000
_MOST_UPLOADS = 3
_POSTPONED_S = 3600.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A file a request may refer to."""

    key: Key
    name: str
    uri: str
    expires_at: datetime
    """By the service's clock."""
    reused: bool
    """Whether nothing was sent for it."""
    held: str | None = None
    """Keeps it from being deleted until `References.release`, where the policy deletes after a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One content, open."""

    key: Key
    source: UploadSource
    label: str | None
    path: Path | None
    """Where it can be read again."""
    is_copy: bool
    """Whether the source is our own copy."""
    until: float
    """On the monotonic clock."""
    beyond: int = 0
    """Files of this round and earlier ones are not good enough."""
    progress: Progress | None = None


class _LeaseLost(Exception):
    """Somebody else took over."""


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
        self.storage = Storage(registry.file)
        self.policy = policy or UploadPolicy()
        self._target, self._copies, self._max_bytes = service.target, copies, max_bytes

    async def ensure(
        self,
        part: MediaPart,
        mime: str,
        *,
        tenant: str,
        sha256: str | None = None,
        progress: Progress | None = None,
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
            within_s: For everything; by size where left out.

        Raises:
            UploadFailed, StorageFull: it could not be brought there.
            FileProcessingFailed, FileNotReady: it is there, and cannot be used.
            UnreadableSource, MediaTooLarge, MalformedMedia: the source is nothing to send.
            StateUnavailable: what is known of uploads cannot be read.
        """
        with PartSource(part, max_bytes=self._max_bytes) as source:
            digest = sha256 if sha256 is not None else await self.io.call(sha256_of, source)
            key = Key(account=self.account, tenant=tenant, sha256=digest, mime=mime)
            return await self._reference(self._wanted(key, source, part, within_s, progress=progress))

    async def renewed(
        self,
        entry: Entry,
        *,
        beyond: int = 0,
        also: Iterable[MediaPart] = (),
        within_s: float | None = None,
        progress: Progress | None = None,
    ) -> Reference:
        """A usable file of a content we know, of a later round than `beyond`.

        Its bytes are those of `also`, of the file they came from, or of our copy: whichever still are what they were.

        Raises:
            ReferenceUnrecoverable: nobody has its bytes any more.
            ServiceError: as `ensure`.
        """
        remote = entry.usable(self.io.now()) if entry.round > beyond else None
        if remote is not None and (known := self._used(entry.key, remote, reused=True)) is not None:
            return known
        label, copy = entry.label or "", self._copy(entry)
        kept = (MediaPart(source=path, label=label) for path in (entry.path, copy) if path is not None)
        for part in (*also, *kept):
            with suppress(InputError), PartSource(part, max_bytes=self._max_bytes) as source:
                same = source.size_bytes == entry.size_bytes
                if same and await self.io.call(sha256_of, source) == entry.key.sha256:
                    wanted = self._wanted(entry.key, source, part, within_s, beyond=beyond, progress=progress)
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
        """The request that needed them has ended."""
        for one in references:
            if one.held is not None:
                await self.deleted(self.storage.let_go(one.held, self.io.now()))

    async def deleted(self, names: Iterable[str]) -> list[str]:
        """Deletes files at the service; the names it could not reach. Those end by themselves."""
        missed = []
        for name in names:
            try:
                await self.files.delete(name)
            except ServiceError:
                missed.append(name)
            self.registry.give_up(self.account, name, deleted=name not in missed)
        return missed

    # ---- one for all who ask

    async def _reference(self, wanted: _Wanted) -> Reference:
        key, wait_s, uploads = wanted.key, _FIRST_POLL_S, 0
        while True:
            now = self.io.now()
            entry = self.registry.find(key, now)
            remote = None if entry is None or entry.round <= wanted.beyond else entry.usable(now)
            failure = None if entry is None else entry.failed(now)
            if remote is None and failure is not None:
                raise FileProcessingFailed(failure, file=None)
            lease = None
            if remote is None or (entry is not None and entry.is_due(now) and not failure and not uploads):
                if uploads == _MOST_UPLOADS:
                    raise UploadFailed(f"uploaded {uploads} times, and never usable: do the clocks agree?")
                lease = self._claimed(wanted, entry, now)
            if lease is not None:
                uploads += await self._brought(lease, wanted, remote)
            elif remote is None:
                wait_s = await self._wait(wait_s, wanted.until)
            elif (known := self._used(key, remote, reused=not uploads)) is not None:
                return known

    def _claimed(self, wanted: _Wanted, entry: Entry | None, now: datetime) -> Lease | None:
        return self.registry.claim(
            wanted.key,
            new_owner(),
            now,
            wanting=0 if entry is None else entry.round,
            size_bytes=wanted.source.size_bytes,
            label=wanted.label,
            path=wanted.path,
        )

    async def _brought(self, lease: Lease, wanted: _Wanted, still: Remote | None) -> bool:
        """Whether a new file is there, and known. A failure is borne while there `still` is a good one."""
        try:
            file = await self._active(lease, wanted, await self._sent(lease, wanted))
            file = replace(file, uri=file.uri or self._target.files_url(file.name))
            self._tell_time(file)
            if not self.registry.record(lease, file, self.io.now(), self.io.random()):
                return False
        except FileProcessingFailed as error:
            self.registry.fail(lease, error.message, self.io.now())
            await self.deleted([str(error.figures["file"])])
            raise
        except _LeaseLost:
            return False
        except ServiceError:
            self.registry.release(lease)
            if still is None:
                raise
            self.registry.postpone(self.account, still.name, self.io.now(), _POSTPONED_S)
            return False
        except BaseException:
            self.registry.release(lease)
            raise
        if self._copies is not None and wanted.path is None and not wanted.is_copy:
            await self.io.call(self._copies.keep, lease.key, wanted.source, self.io.now())
        return True

    async def _sent(self, lease: Lease, wanted: _Wanted) -> RemoteFile:
        key, size = lease.key, wanted.source.size_bytes
        await self._make_room(key, size)
        cargo = Cargo(
            source=wanted.source,
            sha256=key.sha256,
            mime=key.mime,
            name_of=lambda generation: remote_name(
                self.registry.secret, *_parts(key), str(lease.round), generation=generation
            ),
            display_name=wanted.label,
        )
        while True:
            left_s = wanted.until - self.io.monotonic()
            try:
                return await upload(
                    self.io, self.files, cargo, progress=self._renewing(lease, wanted.progress), within_s=left_s
                )
            except StorageFull:
                if not await self._spared(key, size):
                    raise

    async def _active(self, lease: Lease, wanted: _Wanted, file: RemoteFile) -> RemoteFile:
        """The file once it is ACTIVE; the lease goes on meanwhile."""
        while file.state is not FileState.ACTIVE:
            left_s = wanted.until - self.io.monotonic()
            try:
                return await self.files.wait_until_active(file, within_s=min(left_s, LEASE_S / 3))
            except FileNotReady:
                if left_s <= LEASE_S / 3:
                    raise
                self._renew(lease)
        return file

    def _used(self, key: Key, remote: Remote, *, reused: bool) -> Reference | None:
        """The reference to a file there is; `None` where it is about to be deleted."""
        now, held = self.io.now(), None
        if self.policy.delete_remote is DeleteRemote.AFTER_REQUEST:
            held = self.storage.hold(key, remote.name, new_owner(), now)
            if held is None:
                return None
        self.registry.touch(key, now)
        return Reference(
            key=key, name=remote.name, uri=remote.uri, expires_at=remote.expires_at, reused=reused, held=held
        )

    async def _wait(self, wait_s: float, until: float) -> float:
        if self.io.monotonic() + wait_s > until:
            raise UploadFailed("somebody else is uploading the same file, and has not ended within the time")
        await self.io.sleep(wait_s * (0.5 + self.io.random() / 2))
        return min(wait_s * 1.5, _LONGEST_POLL_S)

    def _renewing(self, lease: Lease, progress: Progress | None) -> Progress:
        renewed_at = self.io.monotonic()

        def arrived(done: int, of: int) -> None:
            nonlocal renewed_at
            if self.io.monotonic() - renewed_at > LEASE_S / 6:
                renewed_at = self.io.monotonic()
                self._renew(lease)
            if progress is not None:
                progress(done, of)

        return arrived

    def _renew(self, lease: Lease) -> None:
        if not self.registry.renew(lease, self.io.now()):
            raise _LeaseLost

    # ---- room, time, bytes

    async def _make_room(self, key: Key, size_bytes: int) -> None:
        """The content's own lease counts already."""
        over = self.storage.used_bytes(self.account, self.io.now()) - self.policy.quota_bytes
        if over > 0:
            await self._spared(key, over)
            over = self.storage.used_bytes(self.account, self.io.now()) - self.policy.quota_bytes
        if over > 0:
            raise StorageFull(
                f"{size_bytes:,} bytes more, and this account's files take {over:,} more than uploads.quota "
                f"({self.policy.quota_bytes:,}); none of this tenant's can go now",
                size_bytes=size_bytes,
                quota_bytes=self.policy.quota_bytes,
            )

    async def _spared(self, key: Key, need_bytes: int) -> bool:
        """Whether some of the tenant's own files made room."""
        names = self.storage.give_up_oldest(self.account, key.tenant, self.io.now(), need_bytes)
        return len(await self.deleted(names)) < len(names)

    def _tell_time(self, file: RemoteFile) -> None:
        if file.served_at is not None:
            self.registry.set_clock(self.account, (file.served_at - self.io.now()).total_seconds())

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
    ) -> _Wanted:
        allowed_s = _LEAST_TIME_S + source.size_bytes / _SLOWEST_BYTES_PER_S if within_s is None else within_s
        return _Wanted(
            key=key,
            source=source,
            label=part.label or None,
            path=part.source.absolute() if isinstance(part.source, Path) else None,
            is_copy=False,
            until=self.io.monotonic() + allowed_s,
            beyond=beyond,
            progress=progress,
        )


def _parts(key: Key) -> tuple[str, str, str, str]:
    return key.account, key.tenant, key.sha256, key.mime
