"""`weighlock convert`: a request from one format into another, screened on the way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from weighlock.cli.check import EXIT_UNREADABLE, spooled_input
from weighlock.cli.files import replace_file
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS, Broken, Loaded, read_any, say_broken
from weighlock.errors import InputError, UnsupportedMedia
from weighlock.request import Backend, MediaPart, Request
from weighlock.scales import Asked
from weighlock.screening_report import change_in_words, done_in_words, is_untouched
from weighlock.settings import load
from weighlock.weigher import Weigher
from weighlock.written import listed

EXIT_UNFIT = EXIT_UNREADABLE
_IN_THE_URL = "model"
"""What a REST request says in its URL, and messages beside them."""
_BY_FIT = ": weighlock fit --out DIR makes it"


@click.command()
@click.argument("path", metavar="REQUEST")
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="A REST body, or neutral messages.")
@click.option(
    "--from", "taken_as", type=click.Choice(["auto", *FORMS]), default="auto", show_default=True, help="What it is."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Where to write. Default: standard output."
)
@click.option("--model", "-m", help="Whose carriers it is screened for. Default: the request's, or the endpoint's.")
@click.option("--backend", type=click.Choice([b.value for b in Backend]), help="Default: the endpoint's account.")
@click.option("--endpoint", "-e", help="Whose settings apply. Default: the `default` section.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--screen/--no-screen", default=True, help="Put right what no carrier may hold.  [default: screen]")
@click.option("--drop-settings", is_flag=True, help="To messages: leave out tools and generation settings.")
@click.pass_context
def convert(
    ctx: click.Context,
    path: str,
    form: str,
    taken_as: str,
    out: Path | None,
    model: str | None,
    backend: str | None,
    endpoint: str | None,
    config: Path | None,
    screen: bool,
    drop_settings: bool,
) -> None:
    """Write a request in another format, or put it right in its own. `-` is standard input.

    What was changed is told on standard error. A request nobody changed leaves as the very bytes that came. Nothing is
    written where it cannot be sent, or where the other format cannot express it.

    \b
    Exit code  0  written
               4  it cannot be sent or expressed; nothing was written
               2  usage, settings, or no request
    """
    settings = load(config)
    asked = Asked(endpoint=endpoint, model=model, backend=Backend(backend) if backend else None)
    with ExitStack() as stack:
        max_bytes = settings.safety.max_file_bytes
        source: Path = spooled_input(stack, max_bytes) if path == "-" else Path(path)
        part = MediaPart(source=source, label="standard input" if path == "-" else path)
        try:
            loaded = read_any(part, taken_as, max_bytes)
        except InputError as error:
            say_broken(Broken(label=part.label, error=error))
            ctx.exit(2)
        request = loaded.request
        if screen:
            weigher = stack.enter_context(Weigher(settings, preload=False))
            request, errors = _screened(weigher, request, asked)
            if errors:
                _say_all(error.message for error in errors)
                ctx.exit(EXIT_UNFIT)
        try:
            data = _written(loaded, request, form, drop_settings=drop_settings)
        except InputError as error:
            _say_all([f"{error.code}: {error.message}"])
            ctx.exit(EXIT_UNFIT)
    if out is None:
        sys.stdout.buffer.write(data + (b"\n" if sys.stdout.isatty() else b""))
        sys.stdout.buffer.flush()
    else:
        replace_file(out, data)


def _screened(weigher: Weigher, request: Request, asked: Asked) -> tuple[Request, tuple[InputError, ...]]:
    """The request put right, and why it cannot be sent; tells what was changed where it can."""
    screened = weigher.screen(request, asked)
    screening = screened.screening
    if not screening.errors:
        _say_all(f"{one.place}: {done_in_words(one)}" for one in screening.findings if not is_untouched(one))
        _say_all(f"{one.place}: {change_in_words(one)}" for one in screening.changes)
    unconverted = (UnsupportedMedia(f"{one.place}: {one.decision.reason} first{_BY_FIT}") for one in screening.pending)
    return screened.request, (*screening.errors, *unconverted)


def _written(loaded: Loaded, request: Request, form: str, *, drop_settings: bool) -> bytes:
    """The request in the format that is wanted.

    Raises:
        InputError: it cannot express something.
    """
    from weighlock.converters import messages, rest_json
    from weighlock.converters.json_text import dumps

    parsed = loaded.parsed
    if form == loaded.form and request is loaded.request:
        return loaded.body
    if form == "rest":
        if request.model and _IN_THE_URL not in request.carried:
            _say_all([f"model {request.model}: named in the URL of a REST request, so left out"])
        return rest_json.emit(request, parsed if isinstance(parsed, rest_json.Parsed) else None)
    _demand_no_settings(loaded, request, drop=drop_settings)
    emitted = messages.emit(request, parsed if isinstance(parsed, messages.Parsed) else None)
    return dumps({"model": request.model, "messages": emitted} if request.model else emitted)


def _demand_no_settings(loaded: Loaded, request: Request, *, drop: bool) -> None:
    """Raises `InputError` where something would be lost that nobody said may be."""
    around = getattr(loaded.parsed, "around", None) or {}
    others = [key for key in (*request.carried, *around) if key != _IN_THE_URL]
    if others and not drop:
        raise InputError(f"messages have no place for {listed(others)}; --drop-settings leaves that out")
    if others:
        _say_all([f"left out: {listed(others)}"])


def _say_all(sentences: Iterator[str] | list[str]) -> None:
    for words in sentences:
        click.echo(printable(f"weighlock: {words}"), err=True)
