"""One file to the service, whole: whatever fails, the service is asked how far it is, and goes on from there.

The service's offset is the only truth; what was sent and not acknowledged is sent again, what arrived is not. A chunk
is read while it is sent. An upload's address lives as long as the flow, and is written down nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weighlock.errors import ServiceRefused, ServiceUnreachable, UnreadableSource, UploadFailed
from weighlock.gemini.errors import no_answer
from weighlock.gemini.files import Files, FileState, RemoteFile, UploadProgress, UploadSession, UploadStatus
from weighlock.gemini.http import Retry, may_pass
from weighlock.io import Io, Pieces
from weighlock.mime import canonical
from weighlock.planning.identify import modality_of
from weighlock.uploads.names import MOST_GENERATIONS
from weighlock.uploads.policy import GIVE_UP_AFTER_S
from weighlock.uploads.source import UploadSource

CHUNK_BYTES = 8 * 1024 * 1024
MOST_RESTARTS = 2
_YES = range(200, 300)
_PAUSE = Retry(first_s=0.5, longest_s=32.0)
_LEAST_DEADLINE_S = 600.0
_NOBODY_S = 20.0
"""So long nobody has answered at all: it is the address, or the network."""
_SLOWEST_BYTES_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cargo:
    """What is to arrive."""

    source: UploadSource
    sha256: str
    """In hex, as the source was when it was hashed."""
    mime: str
    name_of: Callable[[int], str]
    """Its name at the service, by generation, from 0: the next one where a name stays taken."""
    display_name: str | None = None


async def upload(
    io: Io,
    files: Files,
    cargo: Cargo,
    *,
    progress: Callable[[int, int], None] | None = None,
    told: Callable[[str], None] | None = None,
    within_s: float | None = None,
    give_up_after_s: float = GIVE_UP_AFTER_S,
    chunk_bytes: int = CHUNK_BYTES,
) -> RemoteFile:
    """The file at the service, its size and hash compared. It may still be PROCESSING.

    A file of the same name and content that is already there is taken as it is: an upload whose last answer was lost,
    or another process's.

    Args:
        io: What waits.
        files: Of the project it goes to.
        cargo: What is sent.
        progress: Told bytes arrived and bytes in all; never fewer than before.
        told: Told in words whenever it has to be tried again.
        within_s: 10 minutes and a second for every megabyte where left out.
        give_up_after_s: For trying again while nothing more arrives.
        chunk_bytes: Sent at a time, rounded down to what the service's granularity allows.

    Raises:
        UploadFailed: refused for good, not within the time, or what arrived is not what was sent.
        UnreadableSource: the source changed meanwhile, or cannot be read any more.
        StorageFull: the project has no room.
    """
    return await _Upload(io, files, cargo, progress, told, within_s, give_up_after_s, chunk_bytes).whole()


class _Gone(Exception):
    """The service has forgotten the upload."""


class _Upload:
    def __init__(
        self,
        io: Io,
        files: Files,
        cargo: Cargo,
        progress: Callable[[int, int], None] | None,
        told: Callable[[str], None] | None,
        within_s: float | None,
        give_up_after_s: float,
        chunk_bytes: int,
    ) -> None:
        self.io, self.files, self.cargo = io, files, cargo
        self.size_bytes = cargo.source.size_bytes
        self._tell, self._told, self._say = progress, -1, told
        allowed_s = _LEAST_DEADLINE_S + self.size_bytes / _SLOWEST_BYTES_PER_S if within_s is None else within_s
        self._until = io.monotonic() + allowed_s
        self._chunk_bytes = chunk_bytes
        self._give_up_after_s = give_up_after_s
        self._failures, self._failing_since, self._answered = 0, 0.0, False
        self._generation = 0

    async def whole(self) -> RemoteFile:
        for _ in range(MOST_RESTARTS + 1):
            try:
                file = await self._once()
            except _Gone:
                continue
            if file.state is FileState.FAILED or self._is_ours(file):  # FAILED: there, and nothing the service can read
                self._arrived(self.size_bytes)
                return file
            # Told apart from a changed source: the same bytes may arrive whole the next time.
            await self.files.delete(file.name)
            self.cargo.source.demand_unchanged()
        raise UploadFailed(
            f"{MOST_RESTARTS + 1} uploads were lost or arrived otherwise than they were sent",
            size_bytes=self.size_bytes,
        )

    async def _once(self) -> RemoteFile:
        """One upload from its first byte to its last."""
        begun = await self._begun()
        if isinstance(begun, RemoteFile):
            return begun
        offset = 0
        while True:
            failures, length = self._failures, self._length(offset, begun.granularity_bytes)
            standing = await self._sent(begun, offset, length)
            if standing.status is UploadStatus.CANCELLED:
                raise _Gone
            if standing.status is UploadStatus.FINAL:
                return await self._finished(standing.file)
            received = standing.received_bytes or 0
            if received > self.size_bytes:
                raise _Gone
            if received > offset:
                self._failures = 0
            elif self._failures == failures:
                await self._pause(no_answer(200, "but kept nothing of a chunk"), final=False)
            offset = received
            self._arrived(offset)

    async def _begun(self) -> UploadSession | RemoteFile:
        """A new upload; or the file, where it is there already."""
        unaddressed = 0
        while True:
            try:
                return await self.files.start(
                    mime=self.cargo.mime,
                    size_bytes=self.size_bytes,
                    name=self._name,
                    display_name=self.cargo.display_name,
                )
            except (ServiceRefused, ServiceUnreachable) as error:
                status = error.figures.get("service_status")
                if status != 409:
                    unaddressed += status in _YES  # and no address: python-genai #501; again it may name one
                    await self._pause(error, final=status not in _YES or unaddressed > MOST_RESTARTS)
                    continue
            known = await self._known()
            if known is not None and self._is_ours(known):
                return known
            self._generation += 1
            if self._generation >= MOST_GENERATIONS:
                raise UploadFailed("every name for this file is taken by something else at the service")

    async def _sent(self, session: UploadSession, offset: int, length: int) -> UploadProgress:
        """Where the upload stands after a chunk was sent, or should have been."""
        last = offset + length == self.size_bytes
        chunk = Pieces(size_bytes=length, read_at=lambda at, count: self._read(offset + at, count))
        try:
            standing = await self.files.send(session, offset, chunk, last=last)
        except (ServiceRefused, ServiceUnreachable) as error:
            return await self._asked(session, offset, error)
        if standing.status is UploadStatus.ACTIVE and standing.received_bytes is None:
            return await self._asked(session, offset, None)  # "active" was seen for a chunk of which a part arrived
        return standing

    async def _asked(
        self, session: UploadSession, offset: int, failed: ServiceRefused | ServiceUnreachable | None
    ) -> UploadProgress:
        """Where the service says the upload stands."""
        while True:
            if failed is not None:
                await self._pause(failed, final=False)
            try:
                standing = await self.files.query(session)
            except (ServiceRefused, ServiceUnreachable) as error:
                if error.figures.get("service_status") in (404, 410):
                    raise _Gone from error
                failed = error
                continue
            received = standing.received_bytes or 0  # silence is none: google-cloud-cpp #7835
            stands_still = standing.status is UploadStatus.ACTIVE and received == offset
            if stands_still and failed is not None and not may_pass(failed):
                raise _refused(failed) from failed
            return UploadProgress(status=standing.status, received_bytes=received, file=standing.file)

    async def _finished(self, file: RemoteFile | None) -> RemoteFile:
        """What the last answer says of the file; asked for where it was lost, or says too little."""
        if file is not None and file.size_bytes is not None and file.sha256 is not None:
            return file
        while (known := await self._known()) is None:
            if self.io.monotonic() > self._until:
                raise UploadFailed("the upload ended, and its file is not there", file=self._name)
            await self.io.sleep(_PAUSE.first_s)
        return known

    async def _known(self) -> RemoteFile | None:
        """The file under our name; `None` where there is none we may see."""
        while True:
            try:
                return await self.files.get(self._name)
            except (ServiceRefused, ServiceUnreachable) as error:
                if error.figures.get("service_status") in (403, 404):
                    return None
                await self._pause(error)

    @property
    def _name(self) -> str:
        return self.cargo.name_of(self._generation)

    def _is_ours(self, file: RemoteFile) -> bool:
        """Whether it is what was to arrive, as far as the service says.

        A type it does not say is no matter: a request names it beside the reference. One of another kind is, for the
        service reads the file as that: octets after a gateway took the headers off (litellm #9968).
        """
        same_size = file.size_bytes in (None, self.size_bytes)
        same_kind = not file.mime or modality_of(canonical(file.mime)) is modality_of(canonical(self.cargo.mime))
        same = same_size and same_kind and file.sha256 in (None, self.cargo.sha256)
        return same and file.state is not FileState.FAILED

    def _length(self, offset: int, granularity_bytes: int) -> int:
        """Of the next chunk, which ends where the service wants it to, or at the end."""
        whole = max(1, self._chunk_bytes // granularity_bytes) * granularity_bytes
        return min(whole - offset % granularity_bytes, self.size_bytes - offset)

    def _read(self, offset: int, length: int) -> bytes:
        chunk = self.cargo.source.read_at(offset, length)
        self.cargo.source.demand_unchanged()
        if len(chunk) != length:
            raise UnreadableSource("the file became shorter while it was read")
        return chunk

    def _arrived(self, count: int) -> None:
        if self._tell is not None and count > self._told:
            self._told = count
            self._tell(count, self.size_bytes)

    async def _pause(self, error: ServiceRefused | ServiceUnreachable, *, final: bool = True) -> None:
        """Waits before the next try. Raises where there is none: refused for good (`final`), or no time left."""
        if final and not may_pass(error):
            raise _refused(error) from error
        self._answered = self._answered or not error.figures.get("unsent")
        if not self._failures:
            self._failing_since = self.io.monotonic()
        self._failures += 1
        wait_s = _PAUSE.wait_s(self._failures, self.io.random(), error.figures.get("retry_after_s"))
        if why := self._too_late(self.io.monotonic() + wait_s):
            raise UploadFailed(f"not uploaded: {error.message}; {why}", **error.figures) from error
        if self._say is not None:
            self._say(f"{error.message}; trying again in {wait_s:.1f} s")
        await self.io.sleep(wait_s)

    def _too_late(self, then: float) -> str | None:
        """Why there is no other try at that time."""
        if then > self._until:
            return "not within the time"
        if not self._answered and then > self._failing_since + _NOBODY_S:
            return f"nobody has answered within {_NOBODY_S:g} s: is the network up, and the base URL right?"
        if then > self._failing_since + self._give_up_after_s:
            return f"nothing more arrived within {self._give_up_after_s:g} s (uploads.give_up_after)"
        return None


def _refused(error: ServiceRefused | ServiceUnreachable) -> UploadFailed:
    return UploadFailed(f"not uploaded: {error.message}", **error.figures)
