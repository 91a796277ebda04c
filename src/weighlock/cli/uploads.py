"""`weighlock uploads …`: what was uploaded, until when it is good, and how to be rid of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from weighlock.accounts import account_id, copies_of, references_of, registry_of, service_of
from weighlock.cli import render
from weighlock.cli.printable import printable
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


@click.group()
def uploads() -> None:
    """What was uploaded from this machine: list it, show it, renew it, erase it."""


def _chosen(command: Command) -> Command:
    for option in (
        click.option("--config", type=click.Path(path_type=Path), help="Settings file."),
        click.option("--older-than", metavar="TIME", help="Not used for so long: 12h, 7d."),
        click.option("--tenant", help="Of one tenant."),
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
    with _open(config, sha256, tenant, older_than) as desk:
        entries = desk.entries() if desk.is_choosy else due(desk.entries(), desk.now)
        if not entries:
            click.echo("nothing to renew", err=True)
        for one in entries:
            try:
                if (references := desk.references(one, base_url)) is None:
                    raise ConfigError("no account of the settings has it")
                new = run(references.renewed(one, beyond=one.round, told=partial(_say, one)))
                click.echo(f"{_name(one)}\t{printable(new.uri)}\tgood until {new.usable_until:%Y-%m-%d %H:%M} UTC")
            except WeighlockError as error:
                failed = True
                _say(one, str(error))
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
    with _open(config, sha256, tenant, older_than) as desk:
        if not desk.is_choosy and not everything:
            raise click.UsageError("choose by --sha256, --tenant or --older-than; or name --all")
        copies = copies_of(desk.settings, desk.registry)
        for one in desk.entries():
            try:
                references = desk.references(one, base_url) if remote else None
                done = run(purge(desk.registry, copies, one, desk.now, references, remote=remote))
            except WeighlockError as error:  # the others are erased all the same
                _say(one, str(error))
                unreached += 1
                continue
            _say_purged(one, done, remote=remote)
            unreached += done.kept
    if unreached:
        sys.exit(_EXIT_FAILED)


def _say_purged(one: Entry, done: Purged, *, remote: bool) -> None:
    words = [*(["copy erased"] if done.copy else []), *(f"{name} deleted" for name in done.deleted)]
    words += ["kept here for another try" if done.kept else "forgotten"]
    click.echo(f"{_name(one)}\t{', '.join(words)}")
    for name in done.left:
        expires = "" if one.remote is None else f", which deletes it by {one.remote.expires_at:%Y-%m-%d %H:%M} UTC"
        said = "not reached" if remote else "still"
        click.echo(f"{_name(one)}: {name} {said} at the service{expires}", err=True)


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

    def references(self, entry: Entry, base_url: str | None) -> References | None:
        """By the account of the settings that an entry is of."""
        for name, account in self.settings.accounts.items():
            if account.backend is Backend.DEVELOPER and entry.key.account.startswith(f"{name}@"):
                service = service_of(account, self.io, base_url=base_url)
                if account_id(name, service.target) == entry.key.account:
                    return references_of(self.settings, self.registry, name, service)
        return None


@contextmanager
def _open(config: Path | None, sha256: str | None, tenant: str | None, older_than: str | None) -> Iterator[_Desk]:
    try:
        unused_for_s = None if older_than is None else parse_seconds(older_than)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--older-than") from None
    # Every hash begins with nothing: a variable of a script that is not set would mean them all.
    if sha256 is not None and not sha256.strip():
        raise click.BadParameter("no digits", param_hint="--sha256")
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


def _say(entry: Entry, words: str) -> None:
    click.echo(f"{_name(entry)}: {printable(words)}", err=True)


def _state(entry: Entry, now: datetime) -> str:
    if (remote := entry.usable(now)) is not None:
        return f"good until {remote.usable_until:%Y-%m-%d %H:%M} UTC"
    if entry.uploading:
        return "uploading"
    if (failure := entry.failed(now)) is not None:
        return f"failed: {printable(failure)}"
    return "expired or deleted" if entry.remote is not None else "not uploaded"


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
