"""One content to the service, under a lease: room is made, it is sent, waited for, and written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from weighlock.errors import FileNotReady, FileProcessingFailed, ServiceError, StorageFull
from weighlock.gemini.files import Files, FileState, RemoteFile
from weighlock.gemini.http import Target
from weighlock.io import Io
from weighlock.uploads.copies import Copies
from weighlock.uploads.entries import LEASE_S, Key, Lease, Remote, columns
from weighlock.uploads.names import remote_name
from weighlock.uploads.policy import UploadPolicy
from weighlock.uploads.registry import Registry
from weighlock.uploads.resumable import Cargo, upload
from weighlock.uploads.source import UploadSource
from weighlock.uploads.storage import Storage

_POSTPONED_S = 3600.0
Progress = Callable[[int, int], None]
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
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
    told: Told | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What became of files that were to be deleted, by name."""

    gone: tuple[str, ...]
    absent: tuple[str, ...]
    """There was none, or it is not this key's to see: the service says the same of both."""
    missed: tuple[str, ...]
    """The service could not be reached."""


class _LeaseLost(Exception):
    """Somebody else took over."""


class Bringing:
    """The deeds of one account's uploads."""

    def __init__(
        self, io: Io, files: Files, registry: Registry, target: Target, policy: UploadPolicy, copies: Copies | None
    ) -> None:
        self._io, self._files, self._registry, self._target = io, files, registry, target
        self._policy, self._copies = policy, copies
        self._storage = Storage(registry.file)

    async def deleted(self, account: str, names: Iterable[str]) -> Deleted:
        """Deletes files at the service. What it could not reach ends by itself."""
        found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for name in names:
            there: bool | None = None
            with suppress(ServiceError):
                there = await self._files.delete(name)
            found[there].append(name)
            self._registry.give_up(account, name, deleted=there is not None)
        return Deleted(gone=tuple(found[True]), absent=tuple(found[False]), missed=tuple(found[None]))

    async def brought(self, lease: Lease, wanted: Wanted, still: Remote | None) -> bool:
        """Whether a new file is there, and known. A failure is borne while there `still` is a good one."""
        try:
            file = await self._active(lease, wanted, await self._sent(lease, wanted))
            file = replace(file, uri=file.uri or self._target.files_url(file.name))
            self._tell_time(lease.key.account, file)
            if not self._registry.record(lease, file, self._io.now(), self._io.random()):
                return False
        except FileProcessingFailed as error:
            self._registry.fail(lease, error.message, self._io.now())
            await self.deleted(lease.key.account, [str(error.figures["file"])])
            if still is None:
                raise
            return False
        except _LeaseLost:
            return False
        except ServiceError:
            self._registry.release(lease)
            if still is None:
                raise
            self._registry.postpone(lease.key.account, still.name, self._io.now(), _POSTPONED_S)
            return False
        except BaseException:
            self._registry.release(lease)
            raise
        if self._copies is not None and wanted.path is None and not wanted.is_copy:
            await self._io.call(self._copies.keep, lease.key, wanted.source, self._io.now())
        return True

    async def _sent(self, lease: Lease, wanted: Wanted) -> RemoteFile:
        key, size = lease.key, wanted.source.size_bytes
        await self._make_room(key, size)
        cargo = Cargo(
            source=wanted.source,
            sha256=key.sha256,
            mime=key.mime,
            name_of=lambda generation: remote_name(
                self._registry.secret, *columns(key), str(lease.round), generation=generation
            ),
            display_name=wanted.label,
        )
        while True:
            left_s = wanted.until - self._io.monotonic()
            try:
                return await upload(
                    self._io,
                    self._files,
                    cargo,
                    progress=self._renewing(lease, wanted.progress),
                    told=wanted.told,
                    within_s=left_s,
                    give_up_after_s=self._policy.give_up_after_s,
                )
            except StorageFull:
                if not await self._spared(key, size):
                    raise

    async def _active(self, lease: Lease, wanted: Wanted, file: RemoteFile) -> RemoteFile:
        """The file once it is ACTIVE; the lease goes on meanwhile."""
        begun = self._io.monotonic()
        while file.state is not FileState.ACTIVE:
            left_s = wanted.until - self._io.monotonic()
            try:
                return await self._files.wait_until_active(file, within_s=min(left_s, LEASE_S / 3))
            except FileNotReady:
                if left_s <= LEASE_S / 3:
                    waited_s = self._io.monotonic() - begun
                    said = f"{file.name} is still {FileState.PROCESSING} after {waited_s:,.0f} s"
                    raise FileNotReady(said, file=file.name, waited_s=waited_s) from None
                self._renew(lease)
                if wanted.told is not None:
                    wanted.told("the service is still reading it")
        return file

    def _renewing(self, lease: Lease, progress: Progress | None) -> Progress:
        renewed_at = self._io.monotonic()

        def arrived(done: int, of: int) -> None:
            nonlocal renewed_at
            if self._io.monotonic() - renewed_at > LEASE_S / 6:
                renewed_at = self._io.monotonic()
                self._renew(lease)
            if progress is not None:
                progress(done, of)

        return arrived

    def _renew(self, lease: Lease) -> None:
        if not self._registry.renew(lease, self._io.now()):
            raise _LeaseLost

    # ---- room and time

    async def _make_room(self, key: Key, size_bytes: int) -> None:
        """The content's own lease counts already."""
        over = self._storage.used_bytes(key.account, self._io.now()) - self._policy.quota_bytes
        if over > 0:
            await self._spared(key, over)
            over = self._storage.used_bytes(key.account, self._io.now()) - self._policy.quota_bytes
        if over > 0:
            raise StorageFull(
                f"{size_bytes:,} bytes more, and this account's files take {over:,} more than uploads.quota "
                f"({self._policy.quota_bytes:,}); none of this tenant's can go now",
                size_bytes=size_bytes,
                quota_bytes=self._policy.quota_bytes,
            )

    async def _spared(self, key: Key, need_bytes: int) -> bool:
        """Whether some of the tenant's own files made room."""
        names = self._storage.give_up_oldest(key.account, key.tenant, self._io.now(), need_bytes)
        return len((await self.deleted(key.account, names)).missed) < len(names)

    def _tell_time(self, account: str, file: RemoteFile) -> None:
        if file.served_at is not None:
            self._registry.set_clock(account, (file.served_at - self._io.now()).total_seconds())
