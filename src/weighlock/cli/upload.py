"""`weighlock upload`: files to the service, once, and how a request refers to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from weighlock import remembered
from weighlock.accounts import references_of, registry_of, service_of
from weighlock.cli import render
from weighlock.cli.printable import printable
from weighlock.errors import UnknownMediaType, WeighlockError
from weighlock.examiner import Examiner
from weighlock.io import SyncIo, run
from weighlock.request import MediaPart
from weighlock.settings import load
from weighlock.uploads.bringing import Progress as Progressed
from weighlock.uploads.bringing import Told
from weighlock.uploads.policy import DEFAULT_TENANT
from weighlock.uploads.references import Reference

_EXIT_FAILED = 1


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="PATH...")
@click.option("--endpoint", "-e", help="Whose account it goes to. Default: the `default` section's.")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose bytes these are.")
@click.option("--mime", help="What they are; told by their bytes when left out.")
@click.option("--base-url", metavar="URL", help="A gateway in front of the service, or an emulator.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def upload(
    names: tuple[str, ...],
    endpoint: str | None,
    tenant: str,
    mime: str | None,
    base_url: str | None,
    config: Path | None,
    form: str,
) -> None:
    """Upload files to the Files API, and print how a request refers to them and until when.

    What is there already is not sent again; an upload that breaks off goes on from where the service is.
    """
    if not all(names):  # as a path that would be the folder one is in
        raise click.BadParameter("a path is empty", param_hint="PATH...")
    paths = tuple(map(Path, names))
    settings = load(config)
    account = settings.endpoint(endpoint).account
    found: list[tuple[Path, Reference | WeighlockError]] = []
    try:
        with (
            SyncIo() as io,
            closing(registry_of(settings)) as registry,
            closing(Examiner(settings, preload=False)) as examiner,
            _bars(paths) as bars,
        ):
            references = references_of(settings, registry, account.name, service_of(account, io, base_url=base_url))
            for path, (progress, told) in zip(paths, bars, strict=True):
                part = MediaPart(source=path, label=path.name, declared_mime=mime)
                try:
                    known = mime or _mime(examiner, part)
                    sent = run(references.ensure(part, known, tenant=tenant, progress=progress, told=told))
                    found.append((path, sent))
                    for facts in filter(None, map(remembered.told, examiner.examine([part]))):
                        registry.describe(sent.key, facts)
                except WeighlockError as error:
                    found.append((path, error))
    finally:  # stopped in the middle, what is there by then is told
        if found:
            _print(found, form)
    if any(isinstance(one, WeighlockError) for _, one in found):
        sys.exit(_EXIT_FAILED)


def _mime(examiner: Examiner, part: MediaPart) -> str:
    medium = examiner.identify(part)
    if medium.error is not None:
        raise medium.error
    if medium.mime is None:
        raise UnknownMediaType("nothing recognises these bytes; name their type by --mime")
    return medium.mime


def _print(found: list[tuple[Path, Reference | WeighlockError]], form: str) -> None:
    if form == "json":
        render.print_json({"files": [_as_dict(path, one) for path, one in found]})
        return
    for path, one in found:
        if isinstance(one, WeighlockError):
            _say(path, str(one))
        else:
            state = "reused" if one.reused else "new"
            until = f"{state}, good until {one.usable_until:%Y-%m-%d %H:%M} UTC"
            name = printable(str(path))
            click.echo(f"{name}\t{printable(one.uri)}\t{printable(one.key.mime)}\t{until}")


def _as_dict(path: Path, one: Reference | WeighlockError) -> dict[str, Any]:
    if isinstance(one, WeighlockError):
        return {"path": str(path), "error": {"code": one.code, "message": one.message}}
    return {
        "path": str(path),
        "uri": one.uri,
        "mime": one.key.mime,
        "sha256": one.key.sha256,
        "usable_until": one.usable_until.isoformat(),
        "expires_at": one.expires_at.isoformat(),
        "reused": one.reused,
    }


def _say(path: Path, words: str) -> None:
    click.echo(_told(path, words), err=True)


def _told(path: Path, words: str) -> str:
    return f"{printable(str(path))}: {printable(words)}"


@contextmanager
def _bars(paths: tuple[Path, ...]) -> Iterator[Sequence[tuple[Progressed | None, Told]]]:
    """For each path where its progress is shown, on a terminal, and where it is said why it waits."""
    if not sys.stderr.isatty():
        yield [(None, partial(_say, path)) for path in paths]
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
    from rich.text import Text

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def bar_of(path: Path) -> tuple[Progressed, Told]:
            task = bars.add_task(escape(printable(path.name)), total=None)
            return (
                lambda done, of: bars.update(task, completed=done, total=of),
                lambda words: bars.console.print(Text(_told(path, words))),
            )

        yield [*map(bar_of, paths)]
