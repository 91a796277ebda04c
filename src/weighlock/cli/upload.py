"""`weighlock upload`: files to the service, once, and how a request refers to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from weighlock import remembered
from weighlock.accounts import references_of, registry_of, service_of
from weighlock.cli import render
from weighlock.cli.check import spooled_input
from weighlock.cli.printable import printable
from weighlock.cli.tenant import demand_tenant
from weighlock.errors import InputError, MimeMismatch, UnknownMediaType, WeighlockError
from weighlock.examiner import Examiner
from weighlock.gemini.files import demand_mime
from weighlock.io import SyncIo, run
from weighlock.mime import agrees, canonical
from weighlock.request import MediaPart
from weighlock.settings import load
from weighlock.uploads.bringing import Progress as Progressed
from weighlock.uploads.bringing import Told
from weighlock.uploads.policy import DEFAULT_TENANT
from weighlock.uploads.references import Reference

_EXIT_FAILED = 1
_INPUT = "standard input"


def _known_type(_: click.Context, __: click.Parameter, said: str | None) -> str | None:
    if said is None:
        return None
    name = canonical(said)
    if name is None:
        raise click.BadParameter(f"{printable(said)!r} names no type; one is such as video/mp4")
    try:
        demand_mime(name)
    except InputError as error:
        raise click.BadParameter(error.message) from None
    return name


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="PATH... | -")
@click.option("--endpoint", "-e", help="Whose account it goes to. Default: the `default` section's.")
@click.option(
    "--tenant", default=DEFAULT_TENANT, show_default=True, callback=demand_tenant, help="Whose bytes these are."
)
@click.option("--mime", callback=_known_type, help="What they are; told by their bytes when left out.")
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

    What is there already is not sent again; an upload that breaks off goes on from where the service is. `-` is
    standard input.
    """
    if not all(names):  # as a path that would be the folder one is in
        raise click.BadParameter("a path is empty", param_hint="PATH...")
    if names.count("-") > 1:
        raise click.UsageError("standard input can be read once")
    labels = [_INPUT if name == "-" else name for name in names]
    settings = load(config)
    account = settings.endpoint(endpoint).account
    found: list[tuple[str, Reference | WeighlockError]] = []
    try:
        with (
            SyncIo() as io,
            closing(registry_of(settings)) as registry,
            closing(Examiner(settings, preload=False)) as examiner,
            _bars(labels) as bars,
            ExitStack() as stack,
        ):
            references = references_of(settings, registry, account.name, service_of(account, io, base_url=base_url))
            for name, label, (progress, told) in zip(names, labels, bars, strict=True):
                try:
                    part = _part(name, mime, stack, settings.safety.max_file_bytes)
                    known = _mime(examiner, part)
                    sent = run(references.ensure(part, known, tenant=tenant, progress=progress, told=told))
                    found.append((label, sent))
                    for facts in filter(None, map(remembered.told, examiner.examine([part]))):
                        registry.describe(sent.key, facts)
                except WeighlockError as error:
                    found.append((label, error))
    finally:  # stopped in the middle, what is there by then is told
        if found:
            _print(found, form)
    if any(isinstance(one, WeighlockError) for _, one in found):
        sys.exit(_EXIT_FAILED)


def _part(name: str, mime: str | None, stack: ExitStack, max_bytes: int) -> MediaPart:
    if name != "-":
        return MediaPart(source=Path(name), label=Path(name).name, declared_mime=mime)
    spool = stack.enter_context(spooled_input(stack, max_bytes).open("rb"))  # no path: it is not there again
    return MediaPart(source=spool, label=_INPUT, declared_mime=mime)


def _mime(examiner: Examiner, part: MediaPart) -> str:
    """What its bytes are, or are said to be where they do not contradict it."""
    medium, said = examiner.identify(part), part.declared_mime
    if medium.error is not None:
        raise medium.error
    if said is not None and medium.mime is not None and medium.certain and not agrees(said, medium.mime):
        raise MimeMismatch(
            f"the bytes are {medium.mime}, not {said}; leave --mime out", declared=said, mime=medium.mime
        )
    known = said or medium.mime
    if known is None:
        raise UnknownMediaType("nothing recognises these bytes; name their type by --mime")
    return known


def _print(found: list[tuple[str, Reference | WeighlockError]], form: str) -> None:
    if form == "json":
        render.print_json({"files": [_as_dict(path, one) for path, one in found]})
        return
    for path, one in found:
        if isinstance(one, WeighlockError):
            _say(path, str(one))
        else:
            state = "reused" if one.reused else "new"
            until = f"{state}, good until {one.usable_until:%Y-%m-%d %H:%M} UTC"
            click.echo(f"{printable(path)}\t{printable(one.uri)}\t{printable(one.key.mime)}\t{until}")


def _as_dict(path: str, one: Reference | WeighlockError) -> dict[str, Any]:
    if isinstance(one, WeighlockError):
        return {"path": path, "error": {"code": one.code, "message": one.message}}
    return {
        "path": path,
        "uri": one.uri,
        "mime": one.key.mime,
        "sha256": one.key.sha256,
        "usable_until": one.usable_until.isoformat(),
        "expires_at": one.expires_at.isoformat(),
        "reused": one.reused,
    }


def _say(path: str, words: str) -> None:
    click.echo(_told(path, words), err=True)


def _told(path: str, words: str) -> str:
    return f"{printable(path)}: {printable(words)}"


@contextmanager
def _bars(paths: Sequence[str]) -> Iterator[Sequence[tuple[Progressed | None, Told]]]:
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

        def bar_of(path: str) -> tuple[Progressed, Told]:
            task = bars.add_task(escape(printable(Path(path).name)), total=None)
            return (
                lambda done, of: bars.update(task, completed=done, total=of),
                lambda words: bars.console.print(Text(_told(path, words))),
            )

        yield [*map(bar_of, paths)]
