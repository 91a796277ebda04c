"""`weighlock fit`: a request made to fit its endpoint's limits, and what it took."""

from __future__ import annotations

import math
import re
import sys
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import click
from rich.markup import escape

from weighlock.cli import render
from weighlock.cli.check import CLIP_FORMS, EXIT_NOTHING, EXIT_OVER, EXIT_UNREADABLE, clip_of_words
from weighlock.cli.fit_request import Said, named, read_request, wished
from weighlock.cli.fit_written import demand_place, write
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS, Broken, say_broken
from weighlock.errors import InputError
from weighlock.fitted import Fitted
from weighlock.planning.admit import Decision
from weighlock.request import Backend, Box, Content
from weighlock.scales import Asked
from weighlock.settings import load
from weighlock.settings.amounts import parse_number, parse_seconds
from weighlock.weigher import Weigher


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH... | REQUEST")
@click.option("--endpoint", "-e", help="Whose limits and levers apply. Default: the `default` section.")
@click.option("--max-tokens", type=click.IntRange(min=0), help="Of the whole prompt; beats the endpoint's limit.")
@click.option("--max-usd", metavar="USD", help="Of the whole request; beats the endpoint's limit.")
@click.option("--model", "-m", help="Default: the request's, or the endpoint's.")
@click.option("--backend", type=click.Choice([b.value for b in Backend]), help="Default: the endpoint's account.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--text", help="Prompt text that goes with the files.")
@click.option("--pin", multiple=True, metavar="PART", help="Leave it as it is: a file's name, or contents[n].parts[n].")
@click.option("--clip", multiple=True, metavar="[PART=]START-END", help=f"{CLIP_FORMS}; of one recording, or of all.")
@click.option(
    "--content", multiple=True, metavar="[PART=]KIND", help="What a film shows, or all: screen, talk, motion."
)
@click.option(
    "--crop", multiple=True, metavar="PART=L,T,R,B", help="What of a picture matters: left, top, right, bottom."
)
@click.option(
    "--as",
    "taken_as",
    type=click.Choice(["auto", "file", *FORMS]),
    default="auto",
    show_default=True,
    help="What JSON is: a REST body, neutral messages, or a file like any other.",
)
@click.option("--deadline", metavar="SECONDS", help="For work on the media; then it goes without. Default: none.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for request.json and new files.")
@click.option("--dry-run", is_flag=True, help="Only plan: nothing is worked on, nothing is written.")
@click.option("--explain", is_flag=True, help="Also the steps that were tried, and why nothing gets lighter still.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def fit(
    ctx: click.Context,
    paths: tuple[str, ...],
    endpoint: str | None,
    max_tokens: int | None,
    max_usd: str | None,
    model: str | None,
    backend: str | None,
    config: Path | None,
    text: str | None,
    pin: tuple[str, ...],
    clip: tuple[str, ...],
    content: tuple[str, ...],
    crop: tuple[str, ...],
    taken_as: str,
    deadline: str | None,
    out: Path | None,
    dry_run: bool,
    explain: bool,
    form: str,
) -> None:
    """Make files, or a request, fit: the mildest way within the endpoint's levers, and what it takes.

    Files named together are one request, with the media first and then --text. `-` is standard input. Settings the
    model honours are set in the request; only the rest is work on the media. Nothing is sent.

    \b
    Exit code  0  fits
               3  does not fit; the table says how far it goes, and what stands in the way
               4  cannot be sent as it is
               2  usage, settings, or nothing could be weighed
    """
    settings = load(config)
    clips = [named("--clip", words, clip_of_words) for words in clip]
    contents = [named("--content", words, _content) for words in content]
    asked = Asked(
        endpoint=endpoint,
        model=model,
        backend=Backend(backend) if backend else None,
        clip=next((one for part, one in reversed(clips) if part is None), None),
        content=next((one for part, one in reversed(contents) if part is None), None),
        max_tokens=max_tokens,
        max_usd=_usd(max_usd),
        deadline_s=_seconds(deadline),
    )
    with ExitStack() as stack:
        weigher = stack.enter_context(Weigher(settings, preload=False))
        try:
            loaded, request = read_request(paths, taken_as, text, stack, settings.safety.max_file_bytes)
        except InputError as error:
            say_broken(Broken(label=paths[0], error=error))
            ctx.exit(EXIT_UNREADABLE)
        said = [Said("--pin", part, {"pinned": True}) for part in pin]
        said += [Said("--clip", part, {"clip": one}) for part, one in clips if part is not None]
        said += [Said("--crop", *_cropped(words)) for words in crop]
        said += [Said("--content", part, {"content": one}) for part, one in contents if part is not None]
        request = wished(request, said)
        fitted = weigher.fit(request, asked)
        if out is not None and not dry_run:
            demand_place(out, fitted, paths)
        code = _exit_code(fitted)
        written: list[Path] = []
        stopped: InputError | None = None
        if code == 0 and not dry_run:
            try:
                fitted = carry_out(weigher, fitted, asked)
                if fitted.after.verdict.decision is Decision.REJECT:  # what was made is more than was planned
                    code = EXIT_OVER
                elif out is not None:
                    written = write(out, fitted, loaded, request)
            except InputError as error:
                stopped, code = error, EXIT_UNREADABLE
    if form == "json":
        render.print_json({**fitted.as_dict(), "written": list(map(str, written))})
    else:
        from weighlock.cli.fit_table import print_fitted

        print_fitted(fitted, loaded.label if loaded else None, explain=explain)
    for path in written:
        click.echo(printable(f"wrote {path}  {path.stat().st_size:,} bytes"), err=True)
    if stopped is not None:
        click.echo(printable(f"weighlock: {stopped.code}: {stopped}"), err=True)
    ctx.exit(code)


def carry_out(weigher: Weigher, fitted: Fitted, asked: Asked) -> Fitted:
    """The request with its media worked on as planned, and the receipt of what came out. A bar shows it on a terminal.

    Raises:
        InputError: a medium cannot be worked on as planned.
    """
    if not fitted.works or not sys.stderr.isatty():
        return weigher.carry_out(fitted, asked)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        labels = {at: printable(fitted.before.parts[at].examined.label) for at in fitted.works}
        tasks = {at: bars.add_task(escape(label), total=1.0) for at, label in labels.items()}
        return weigher.carry_out(fitted, asked, progress=lambda at, share: bars.update(tasks[at], completed=share))


def _usd(words: str | None) -> Decimal | None:
    if words is None:
        return None
    try:
        amount = Decimal(parse_number(words.removeprefix("$")))
    except ValueError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise click.BadParameter(f"{words!r} is no amount of USD", param_hint="--max-usd")
    return amount


def _content(word: str) -> Content:
    try:
        return Content(word)
    except ValueError:
        raise click.BadParameter(f"{word!r} is not one of {', '.join(Content)}", param_hint="--content") from None


def _cropped(words: str) -> tuple[str, dict[str, Box]]:
    part, _, edges = words.rpartition("=")
    found = re.fullmatch(r"(\d{1,9}),(\d{1,9}),(\d{1,9}),(\d{1,9})", edges, re.ASCII)
    if not part or not found:
        raise click.BadParameter(f"{words!r} is no PART=LEFT,TOP,RIGHT,BOTTOM in pixels", param_hint="--crop")
    left, top, right, bottom = map(int, found.groups())
    return part, {"region": Box(left=left, top=top, right=right, bottom=bottom)}


def _seconds(words: str | None) -> float:
    """Who makes files waits for them, unless they say how long."""
    if words is None:
        return math.inf
    try:
        if (seconds := parse_seconds(words)) > 0:
            return seconds
    except ValueError:
        pass
    raise click.BadParameter(f"{words!r} is no time; write 10, 90s or 5m", param_hint="--deadline")


def _exit_code(fitted: Fitted) -> int:
    if fitted.after.verdict.decision is Decision.REJECT:
        return EXIT_OVER
    *media, text = fitted.before.parts
    if not (any(part.tokens for part in media) if media else text.total.high):
        return EXIT_NOTHING
    return 0 if fitted.is_sendable else EXIT_UNREADABLE
