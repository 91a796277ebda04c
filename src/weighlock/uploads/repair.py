"""Calls that survive the end of the files they refer to, wherever in the history those stand.

Before a call, references we know to be past their end are replaced; after one that is refused for a file, that file is
looked at, uploaded again at most once, and every reference to it is rewritten. The refusal of a project that has not
paid reads the same: what was uploaded a moment ago is not uploaded again.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Self, TypeVar

from weighlock.errors import CountFailed, ReferenceUnrecoverable, ServiceRefused
from weighlock.gemini.errors import Cause
from weighlock.request import MediaPart, OpaquePart, Part, Request, ToolResultPart, Turn, Uri
from weighlock.uploads.entries import Entry
from weighlock.uploads.references import Reference, References

T = TypeVar("T")
Keep = Callable[[Iterable[Reference], str], object]
EXPIRED, REFUSED = "expired", "refused"
"""Why a file was uploaded again: it was known to be past its end; the service refused it."""
_NEW = timedelta(seconds=60)
_MENDABLE = (Cause.FILE_MISSING, Cause.FILE_NOT_ACTIVE)
_ACTIVE_WITHIN_S = 600.0
_URI = re.compile(r"(?:https://[^/?#]{1,253}/v[0-9][a-z0-9]{0,15}/)?(files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)")
NO_BYTES: Mapping[str, MediaPart] = MappingProxyType({})


def file_name(uri: str) -> str | None:
    """The name (`files/…`) of the Files API's file an address stands for; `None` where it is another address."""
    found = _URI.fullmatch(uri)
    return found[1] if found else None


def references_in(request: Request) -> Iterator[tuple[str, MediaPart]]:
    """Every file a request refers to by name, tool results' too."""
    for _, part, _ in request.media():
        if isinstance(part.source, Uri) and (name := file_name(part.source.text)) is not None:
            yield name, part


def readdressed(request: Request, moved: Mapping[str, str]) -> Request:
    """The request with files' names led to other addresses, everywhere; the same object where none stands in it."""
    if not any(name in moved for name, _ in references_in(request)):
        return request
    system = request.system_instruction
    return replace(
        request,
        turns=tuple(_turn(turn, moved) for turn in request.turns),
        system_instruction=None if system is None else _turn(system, moved),
    )


def _turn(turn: Turn, moved: Mapping[str, str]) -> Turn:
    parts = tuple(_part(part, moved) for part in turn.parts)
    same = all(new is old for new, old in zip(parts, turn.parts, strict=True))
    return turn if same else replace(turn, parts=parts)


def _part(part: Part, moved: Mapping[str, str]) -> Part:
    if isinstance(part, MediaPart):
        return _medium(part, moved)
    if isinstance(part, ToolResultPart) and part.media:
        media = tuple(one if isinstance(one, OpaquePart) else _medium(one, moved) for one in part.media)
        same = all(new is old for new, old in zip(media, part.media, strict=True))
        return part if same else replace(part, media=media)
    return part


def _medium(part: MediaPart, moved: Mapping[str, str]) -> MediaPart:
    name = file_name(part.source.text) if isinstance(part.source, Uri) else None
    uri = moved.get(name) if name is not None else None
    return part if uri is None else replace(part, source=Uri(uri))


async def repaired(
    references: References,
    tenant: str,
    request: Request,
    send: Callable[[Request], Awaitable[T]],
    *,
    known: Mapping[str, MediaPart] = NO_BYTES,
    keep: Keep | None = None,
) -> tuple[T, Request]:
    """What `send` gives, and the request as it was sent last.

    Args:
        references: Of the account that is asked.
        tenant: Whose request it is.
        request: May refer to files uploaded long ago.
        send: One generate or count call.
        known: Bytes of files, by the files' names, where the caller has them.
        keep: Takes what stands in the place of files, and why; whoever keeps it lets it go. Left out, that is done
            here, at the end.

    Raises:
        ReferenceUnrecoverable: a file is gone, or another tenant's, and nobody here has its bytes.
        ServiceRefused, CountFailed: as `send`, where a repair does not help.
    """
    mending = _Mending(references, tenant, known, keep=keep)
    try:
        request = await mending.freshened(request)
        while True:
            try:
                return await send(request), request
            except (ServiceRefused, CountFailed) as error:
                # The service has told its time by now: others may be known to be past their end as well.
                request = await mending.freshened(await mending.mended(request, error))
    finally:
        if keep is None:
            await references.release(mending.renewed)


async def freshened(
    references: References,
    tenant: str,
    request: Request,
    known: Mapping[str, MediaPart] = NO_BYTES,
    looked_at: set[str] | None = None,
) -> tuple[Request, Sequence[Reference]]:
    """The request without references we know to be past their end, and those in their place.

    `looked_at` are files that are not uploaded again for this request; what is uploaded for it comes to them.

    Raises:
        ReferenceUnrecoverable: a file is another tenant's.
    """
    async with _Mending(references, tenant, known, looked_at) as mending:
        return await mending.freshened(request), mending.renewed


async def mended(
    references: References,
    tenant: str,
    request: Request,
    refusal: ServiceRefused | CountFailed,
    known: Mapping[str, MediaPart] = NO_BYTES,
    looked_at: set[str] | None = None,
) -> tuple[Request, Sequence[Reference]]:
    """The request as it is worth another try after a refusal, and what was uploaded for it.

    To be called once of each refusal, with the same `looked_at` for all of one request.

    Raises:
        The refusal, where it names no file of the request, or cannot be helped.
        ReferenceUnrecoverable, ServiceError: as `repaired`.
    """
    async with _Mending(references, tenant, known, looked_at) as mending:
        return await mending.freshened(await mending.mended(request, refusal)), mending.renewed


class _Mending:
    """One request's references. Left with an error, what it uploaded is needed by nobody."""

    def __init__(
        self,
        references: References,
        tenant: str,
        known: Mapping[str, MediaPart],
        looked_at: set[str] | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.renewed: list[Reference] = []
        self._keep, self._cause = keep, EXPIRED
        self._references, self._tenant, self._known = references, tenant, known
        self._looked_at = set[str]() if looked_at is None else looked_at

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            await self._references.release(self.renewed)

    async def freshened(self, request: Request) -> Request:
        """The request without references we know to be past their end, as far as we have the bytes."""
        moved: dict[str, str] = {}
        for name in dict(references_in(request)):
            entry, now = self._entry(name), self._references.io.now()
            if entry is None:
                continue
            remote = entry.usable(now)
            if remote is not None and remote.name == name:
                self._references.registry.touch(entry, now)
                continue
            with suppress(ReferenceUnrecoverable):  # it may be alive, whatever we know: the service decides
                moved[name] = await self._again(name, entry)
        return readdressed(request, moved)

    async def mended(self, request: Request, refusal: ServiceRefused | CountFailed) -> Request:
        """The request as it is worth another try: with a new file for the one that was refused, or as it is.

        Raises:
            The refusal, where that was tried, or cannot help.
        """
        name, parts = refusal.figures.get("file"), dict(references_in(request))
        if refusal.figures.get("cause") not in _MENDABLE or name in self._looked_at or name not in parts:
            raise refusal
        self._looked_at.add(name)
        self._cause = REFUSED
        self._set_clock(refusal)
        entry = self._entry(name)
        if self._is_new(name, entry) and refusal.figures["cause"] is Cause.FILE_MISSING:
            raise refusal
        if await self._is_there(name):
            return request
        self._references.registry.give_up(self._references.account, name, deleted=True)
        if entry is not None:
            uri = await self._again(name, self._entry(name) or entry)
        else:
            uri = await self._for_the_first_time(name, parts[name].declared_mime, refusal)
        return readdressed(request, {name: uri})

    def _set_clock(self, refusal: ServiceRefused | CountFailed) -> None:
        """The service has told its time: what is past its end by that is known to be."""
        if (told := refusal.figures.get("served_at")) is not None:
            ahead = datetime.fromisoformat(told) - self._references.io.now()
            self._references.registry.set_clock(self._references.account, ahead.total_seconds())

    async def _is_there(self, name: str) -> bool:
        """Whether a request may refer to it after all; waits where it is not ACTIVE yet."""
        try:
            file = await self._references.files.get(name)
        except ServiceRefused as error:
            if error.figures["cause"] is Cause.FILE_MISSING:
                return False
            raise
        await self._references.files.wait_until_active(file, within_s=_ACTIVE_WITHIN_S)
        return True

    def _is_new(self, name: str, entry: Entry | None) -> bool:
        """Whether it was uploaded a moment ago: then it is the project that is refused."""
        remote = None if entry is None else entry.remote
        if entry is None or remote is None or remote.name != name or remote.given_up:
            return False
        return abs(entry.served(self._references.io.now()) - remote.uploaded_at) < _NEW

    async def _again(self, name: str, entry: Entry) -> str:
        also = [self._known[name]] if name in self._known else []
        return self._kept(await self._references.renewed(entry, also=also))

    async def _for_the_first_time(self, name: str, mime: str | None, refusal: Exception) -> str:
        part = self._known.get(name)
        if part is None or mime is None:
            raise ReferenceUnrecoverable(
                f"{name} is gone or not this account's to see, and was not uploaded from here: send its bytes again",
                file=name,
            ) from refusal
        return self._kept(await self._references.ensure(part, mime, tenant=self._tenant))

    def _kept(self, reference: Reference) -> str:
        self.renewed.append(reference)
        if self._keep is not None:
            self._keep([reference], self._cause)
        if not reference.reused:  # once a request; what somebody else uploaded may be gone as well
            self._looked_at.add(reference.name)
        return reference.uri

    def _entry(self, name: str) -> Entry | None:
        """What a file is, where this tenant uploaded it here.

        Raises:
            ReferenceUnrecoverable: another tenant did.
        """
        registry, account = self._references.registry, self._references.account
        if (found := registry.by_name(account, self._tenant, name, self._references.io.now())) is not None:
            return found
        if registry.is_others(account, self._tenant, name):
            raise ReferenceUnrecoverable(f"{name} is not there, or not yours to see", file=name)
        return None
