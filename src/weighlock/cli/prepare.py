"""`weighlock prepare`: the whole line in front of one request, as a program would have it go through."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from weighlock.cli import render
from weighlock.cli.check import EXIT_OVER, EXIT_UNREADABLE
from weighlock.cli.files import replace_file
from weighlock.cli.fit_request import read_request
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS, Broken, say_broken
from weighlock.errors import BudgetError, InputError
from weighlock.preflight import Preflight
from weighlock.prepared import PreparedRequest
from weighlock.settings import load


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH... | REQUEST")
@click.option("--endpoint", "-e", help="Whose limits, windows and levers apply. Default: the `default` section.")
@click.option("--model", "-m", help="Default: the request's, or the endpoint's.")
@click.option("--tenant", help="Whose request it is.")
@click.option("--session", help="Which run of an agent it is part of.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--text", help="Prompt text that goes with the files.")
@click.option(
    "--as",
    "taken_as",
    type=click.Choice(["auto", "file", *FORMS]),
    default="auto",
    show_default=True,
    help="What JSON is: a REST body, neutral messages, or a file like any other.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File for the REST body; `-` prints it.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def prepare(
    ctx: click.Context,
    paths: tuple[str, ...],
    endpoint: str | None,
    model: str | None,
    tenant: str | None,
    session: str | None,
    config: Path | None,
    text: str | None,
    taken_as: str,
    out: Path | None,
    form: str,
) -> None:
    """Take a request through the whole line: screened, fitted, held against its budgets, uploaded where it has to be.

    In `mode: observe` what would be done is told, and nothing but a certain refusal of the service's is put right. What
    was held is let go at the end, for nothing is sent to a model. Files that are too large to go inline are uploaded:
    that takes the account's key.

    \b
    Exit code  0  may be sent
               3  a limit, a window or a session has no room for it
               4  cannot be sent as it is
               2  usage or settings
    """
    with ExitStack() as stack:
        settings = load(config)
        preflight = stack.enter_context(Preflight(settings, preload=False))
        try:
            loaded, request = read_request(paths, taken_as, text, stack, settings.safety.max_file_bytes)
        except InputError as error:
            say_broken(Broken(label=paths[0], error=error))
            ctx.exit(EXIT_UNREADABLE)
        parsed = loaded.parsed if loaded is not None and loaded.form == "rest" else request
        if request is not (loaded.request if loaded is not None else None):
            parsed = request
        try:
            ready = preflight.prepare(parsed, endpoint=endpoint, model=model, tenant=tenant, session=session)
        except (BudgetError, InputError) as error:
            if form == "json":
                render.print_json(error.as_problem())
            click.echo(printable(f"weighlock: {error.code}: {error}"), err=True)
            ctx.exit(EXIT_OVER if isinstance(error, BudgetError) else EXIT_UNREADABLE)
        preflight.release(ready)
        if out is not None:
            _write(out, ready)
    if form == "json":
        render.print_json(ready.receipt.as_dict())
    elif str(out) != "-":
        _print(ready, loaded.label if loaded else None)
    if ready.receipt.fitted.problems:
        ctx.exit(EXIT_UNREADABLE)


def _write(out: Path, ready: PreparedRequest) -> None:
    if str(out) == "-":
        sys.stdout.buffer.write(ready.body + (b"\n" if sys.stdout.isatty() else b""))
        sys.stdout.buffer.flush()
    else:
        replace_file(out, ready.body)
        click.echo(printable(f"wrote {out}  {out.stat().st_size:,} bytes"), err=True)


def _print(ready: PreparedRequest, label: str | None) -> None:
    from weighlock.cli.fit_table import print_fitted
    from weighlock.cli.receipt_table import lines_of
    from weighlock.cli.table import console, print_all

    print_fitted(ready.receipt.wished, label, explain=False)
    print_all(console(), list(lines_of(ready.receipt)))
