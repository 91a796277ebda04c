"""`weighlock uploads …`: what was uploaded, until when it is good, and how to be rid of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import click

from weighlock.accounts import account_id, copies_of, references_of, registry_of, service_of
from weighlock.cli import render
from weighlock.cli.printable import printable
from weighlock.cli.tenant import demand_tenant
from weighlock.errors import ConfigError, WeighlockError
from weighlock.io import SyncIo, run
from weighlock.request import Backend
from weighlock.settings import Settings, load
from weighlock.settings.amounts import parse_seconds
from weighlock.uploads.entries import Entry
from weighlock.uploads.references import References
from weighlock.uploads.registry import Registry
from weighlock.uploads.upkeep import Chosen, Purged, due, purge

Command = TypeVar("Command", bound=Callable[..., Any])
_EXIT_FAILED = 1
_SHORT = 12
_DIGITS = re.compile(r"[0-9a-fA-F]{1,64}")


@click.group()
def uploads() -> None:
    """What was uploaded from this machine: list it, show it, renew it, erase it."""


def _chosen(command: Command) -> Command:
    for option in (
        click.option("--config", type=click.Path(path_type=Path), help="Settings file."),
        click.option("--older-than", metavar="TIME", help="Not used for so long: 12h, 7d."),
        click.option("--tenant", callback=demand_tenant, help="Of one tenant."),
        click.option("--sha256", metavar="DIGITS", help="Of one content, by the first digits of its hash."),
    ):
        command = option(command)
    return command


_base_url = click.option("--base-url", metavar="URL", help="A gateway in front of the service, or an emulator.")
_form = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)


@uploads.command("list")
@_chosen
@_form
def list_uploads(
    sha256: str | None, tenant: str | None, older_than: str | None, config: Path | None, form: str
) -> None:
    """List what is known, the last used first."""
    with _open(config, sha256, tenant, older_than) as desk:
        entries, now = desk.entries(), desk.now
    if form == "json":
        render.print_json({"uploads": [_as_dict(one, now) for one in entries]})
        return
    from rich.table import Table

    from weighlock.cli.figures import print_plain

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("sha256", "file", "type", "bytes", "tenant", "state"):
        table.add_column(column, justify="right" if column == "bytes" else "left", overflow="fold")
    for one in entries:
        name, tenant_name = printable(one.label or "-"), printable(one.key.tenant)
        table.add_row(
            one.key.sha256[:_SHORT], name, printable(one.key.mime), f"{one.size_bytes:,}", tenant_name, _state(one, now)
        )
    print_plain(table)


@uploads.command()
@click.argument("sha256", metavar="DIGITS")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
def show(sha256: str, config: Path | None) -> None:
    """Show everything known of the content whose hash begins with DIGITS, as JSON. Exit code 1 where there is none."""
    with _open(config, sha256, None, None) as desk:
        found = [_as_dict(one, desk.now) for one in desk.entries()]
    if not found:
        click.echo("nothing uploaded has a hash that begins so; see `weighlock uploads list`", err=True)
        sys.exit(_EXIT_FAILED)
    render.print_json({"uploads": found})


@uploads.command("refresh")
@_chosen
@_base_url
def refresh_uploads(
    sha256: str | None, tenant: str | None, older_than: str | None, config: Path | None, base_url: str | None
) -> None:
    """Upload again what is in use and near or past its end; or all that is chosen.

    From the files it came from, or our copies.
    """
    failed = False
    with _open(config, sha256, tenant, older_than) as desk, _Told() as told:
        entries = desk.entries() if desk.is_choosy else due(desk.entries(), desk.now)
        if not entries:
            told.error("nothing to renew")
        for one in entries:
            try:
                references = desk.references(one, base_url)
                new = run(references.renewed(one, beyond=one.round, told=partial(told.of, one)))
                told.done(f"{_name(one)}\t{printable(new.uri)}\tgood until {new.usable_until:%Y-%m-%d %H:%M} UTC")
            except WeighlockError as error:
                failed = True
                told.of(one, str(error))
    if failed:
        sys.exit(_EXIT_FAILED)


@uploads.command("purge")
@_chosen
@click.option("--all", "everything", is_flag=True, help="All there is.")
@click.option("--remote", is_flag=True, help="Also at the service; else files stay there until they expire.")
@_base_url
def purge_uploads(
    sha256: str | None,
    tenant: str | None,
    older_than: str | None,
    config: Path | None,
    everything: bool,
    remote: bool,
    base_url: str | None,
) -> None:
    """Erase copies and what is remembered; with --remote also the files at the service."""
    unreached = 0
    with _open(config, sha256, tenant, older_than) as desk, _Told() as told:
        if not desk.is_choosy and not everything:
            raise click.UsageError("choose by --sha256, --tenant or --older-than; or name --all")
        copies, entries = copies_of(desk.settings, desk.registry), desk.entries()
        if not entries:
            told.error("nothing to erase")
        for one in entries:
            references = None
            try:
                references = desk.references(one, base_url) if remote else None
            except ConfigError as error:  # what is here is erased all the same
                told.of(one, str(error))
            try:
                done = run(purge(desk.registry, copies, one, desk.now, references, remote=remote))
            except WeighlockError as error:  # the others are, too
                told.of(one, str(error))
                unreached += 1
                continue
            _say_purged(told, one, done, remote=remote)
            unreached += done.kept
    if unreached:
        sys.exit(_EXIT_FAILED)


def _say_purged(told: _Told, one: Entry, done: Purged, *, remote: bool) -> None:
    words = [*(["copy erased"] if done.copy else []), *(f"{name} deleted" for name in done.deleted)]
    words += [f"{name} was not there, or is another project's" for name in done.absent]
    words += ["kept here for another try" if done.kept else "forgotten"]
    told.done(f"{_name(one)}\t{', '.join(words)}")
    for name in done.left:
        expires = "" if one.remote is None else f", which deletes it by {one.remote.expires_at:%Y-%m-%d %H:%M} UTC"
        said = "not reached" if remote else "still"
        told.of(one, f"{name} {said} at the service{expires}")


class _Told:
    """What is told while it is done. Nobody listening is no reason to stop in the middle: that comes out at the end."""

    def __init__(self) -> None:
        self._unheard: OSError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None and self._unheard is not None:
            raise self._unheard

    def done(self, line: str, *, err: bool = False) -> None:
        try:
            click.echo(line, err=err)
        except OSError as error:
            self._unheard = self._unheard or error

    def error(self, line: str) -> None:
        self.done(line, err=True)

    def of(self, entry: Entry, words: str) -> None:
        """Beside the output."""
        self.error(f"{_name(entry)}: {printable(words)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """What every command works on."""

    settings: Settings
    registry: Registry
    io: SyncIo
    chosen: Chosen
    now: datetime

    @property
    def is_choosy(self) -> bool:
        return self.chosen != Chosen()

    def entries(self) -> list[Entry]:
        return self.chosen.of(self.registry.entries(self.now), self.now)

    def references(self, entry: Entry, base_url: str | None) -> References:
        """By the account of the settings that an entry is of.

        Raises:
            ConfigError: none leads where it is, or its key is not where it says.
        """
        for name, account in self.settings.accounts.items():
            if account.backend is Backend.DEVELOPER and entry.key.account.startswith(f"{name}@"):
                service = service_of(account, self.io, base_url=base_url)
                if account_id(name, service.target) == entry.key.account:
                    return references_of(self.settings, self.registry, name, service)
        raise ConfigError(f"it is at {entry.key.account}, where no account of the settings leads; see --base-url")


@contextmanager
def _open(config: Path | None, sha256: str | None, tenant: str | None, older_than: str | None) -> Iterator[_Desk]:
    try:
        unused_for_s = None if older_than is None else parse_seconds(older_than)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--older-than") from None
    # Every hash begins with nothing: a variable of a script that is not set would mean them all.
    if sha256 is not None and not _DIGITS.fullmatch(sha256):
        raise click.BadParameter("no digits of a hash: 0 to 9 and a to f, 64 at most", param_hint="--sha256")
    settings = load(config)
    chosen = Chosen(sha256=sha256 and sha256.lower(), tenant=tenant, unused_for_s=unused_for_s)
    registry = registry_of(settings)
    with SyncIo() as io:
        try:
            yield _Desk(settings=settings, registry=registry, io=io, chosen=chosen, now=datetime.now(UTC))
        finally:
            registry.close()


def _name(entry: Entry) -> str:
    return f"{entry.key.sha256[:_SHORT]} {printable(entry.label or '-')}"


def _state(entry: Entry, now: datetime) -> str:
    if (remote := entry.usable(now)) is not None:
        return f"good until {remote.usable_until:%Y-%m-%d %H:%M} UTC"
    if entry.uploading:
        return "uploading"
    if (failure := entry.failed(now)) is not None:
        return f"failed: {printable(failure)}"
    if entry.remote is None:
        return "not uploaded"
    return "deleted, or not to be used any more" if entry.remote.given_up else "expired"


def _as_dict(entry: Entry, now: datetime) -> dict[str, Any]:
    remote = entry.remote
    return {
        "sha256": entry.key.sha256,
        "mime": entry.key.mime,
        "account": entry.key.account,
        "tenant": entry.key.tenant,
        "size_bytes": entry.size_bytes,
        "label": entry.label,
        "path": None if entry.path is None else str(entry.path),
        "copied": entry.copied,
        "state": _state(entry, now),
        "uploads": entry.round,
        "used_at": entry.used_at.isoformat(),
        "name": None if remote is None else remote.name,
        "uri": None if remote is None else remote.uri,
        "usable_until": None if remote is None else remote.usable_until.isoformat(),
        "expires_at": None if remote is None else remote.expires_at.isoformat(),
    }
