"""The files of a request: brought to the service before it is sent, let go once it has ended, replaced when refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weighlock import fitting
from weighlock.accounts import Accounts
from weighlock.errors import ConfigError
from weighlock.fitted import Fitted
from weighlock.io import Io
from weighlock.remembered import told
from weighlock.request import MediaPart, Request
from weighlock.scales import Scales
from weighlock.settings import Account
from weighlock.uploads.references import Reference, References
from weighlock.uploads.repair import EXPIRED, freshened, references_in


@dataclass(slots=True, kw_only=True)
class Files:
    """What a request refers to. Grows while it is being prepared, so that whoever breaks that off can let all go."""

    by_part: dict[int, Reference] = field(default_factory=dict)
    """What went by the Files API, by part."""
    renewed: list[Reference] = field(default_factory=list)
    """What stands in the place of files the caller named."""
    known: dict[str, MediaPart] = field(default_factory=dict)
    """The bytes of files, by their names."""
    looked_at: set[str] = field(default_factory=set)
    """Names of files the service refused, and of those uploaded in their place: neither is uploaded again."""
    reuploads: Counter[str] = field(default_factory=Counter)
    """How many of `renewed` were uploaded, by cause."""

    def renew(self, references: Iterable[Reference], cause: str) -> None:
        """These stand in the place of others, which are past their end (`expired`) or were `refused`."""
        for one in references:
            self.renewed.append(one)
            self.reuploads[cause] += not one.reused

    @property
    def all(self) -> list[Reference]:
        return [*self.by_part.values(), *self.renewed]


async def brought(
    io: Io, fitted: Fitted, scales: Scales, accounts: Accounts, tenant: str, files: Files
) -> tuple[Fitted, Request]:
    """The plan with nothing left to upload, and the request as it is to be sent, its references all good.

    Raises:
        ConfigError: the account is another backend's, or its key is not where it says.
        ServiceError: a file could not be brought there, or is not usable.
        InputError: a medium cannot be read any more.
    """
    account = scales.endpoint.account
    if fitted.to_upload:
        references = _of(accounts, account, scales)
        media = {at: fitting.as_sent(fitted, at) for at in fitted.to_upload}

        async def bring(at: int, part: MediaPart) -> None:
            reference = await references.ensure(part, part.declared_mime or "", tenant=tenant)
            files.by_part[at] = reference
            files.known[reference.name] = part
            if (facts := told(fitted.after.parts[at].examined)) is not None:
                references.registry.describe(reference.key, facts)

        await io.gather([bring(at, part) for at, part in media.items()])
        fitted = fitting.referred(fitted, {at: one.uri for at, one in files.by_part.items()})
    named = any(name not in files.known for name, _ in references_in(fitted.request))
    if not named or account.backend is not scales.backend:
        return fitted, fitted.request
    try:
        references = _of(accounts, account, scales)
    except ConfigError:  # without a key nothing can be renewed: the caller's own client has one
        return fitted, fitted.request
    request, renewed = await freshened(references, tenant, fitted.request, files.known, files.looked_at)
    files.renew(renewed, EXPIRED)
    return fitted, request


async def let_go(files: Iterable[Reference], account: Account, accounts: Accounts) -> None:
    """The request that needed them has ended."""
    held = [one for one in files if one.held is not None]
    if held:
        await accounts.references(account).release(held)


def _of(accounts: Accounts, account: Account, scales: Scales) -> References:
    if account.backend is not scales.backend:
        raise ConfigError(f"account {account.name} is of {account.backend}, and cannot upload for {scales.backend}")
    return accounts.references(account)


def known_bytes(fitted: Fitted, uploads: Mapping[int, Reference]) -> dict[str, MediaPart]:
    """The bytes of the files of a request, by their names."""
    return {one.name: fitting.as_sent(fitted, at) for at, one in uploads.items()}
