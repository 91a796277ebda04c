"""`weighlock fit`: a request made to fit its endpoint's limits, and what it took."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

import click
from rich.markup import escape

from weighlock.cli import render
from weighlock.cli.check import EXIT_NOTHING, EXIT_OVER, EXIT_UNREADABLE
from weighlock.cli.files import replace_file
from weighlock.cli.fit_request import pinned, read_request
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS, Broken, Loaded, say_broken
from weighlock.errors import InputError, MediaTooLarge
from weighlock.fitted import Fitted
from weighlock.media.work import StripWork, Work
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import base64_size
from weighlock.preflight import Preflight
from weighlock.request import Backend, MediaPart, Part, Request, Uri
from weighlock.rules import ModelRules
from weighlock.scales import Asked
from weighlock.settings import load

_EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "application/pdf": ".pdf",
}
_INLINE_BYTES = 20_000_000
"""Of a request's media in base64, where the rules know no bound."""


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
@click.option(
    "--as",
    "taken_as",
    type=click.Choice(["auto", "file", *FORMS]),
    default="auto",
    show_default=True,
    help="What JSON is: a REST body, neutral messages, or a file like any other.",
)
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
    taken_as: str,
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
    asked = Asked(
        endpoint=endpoint,
        model=model,
        backend=Backend(backend) if backend else None,
        max_tokens=max_tokens,
        max_usd=_usd(max_usd),
    )
    with ExitStack() as stack:
        preflight = stack.enter_context(Preflight(settings, preload=False))
        try:
            loaded, request = read_request(paths, taken_as, text, stack, settings.safety.max_file_bytes)
        except InputError as error:
            say_broken(Broken(label=paths[0], error=error))
            ctx.exit(EXIT_UNREADABLE)
        request = pinned(request, pin)
        fitted = preflight.fit(request, asked)
        rules = preflight.scales(replace(asked, model=asked.model or request.model)).rules
        if loaded is None:
            fitted = _some_named(fitted, rules)
        code = _exit_code(fitted)
        written: list[Path] = []
        stopped: InputError | None = None
        if code == 0 and not dry_run:
            try:
                fitted = carry_out(preflight, fitted, asked)
                fitted = _unrefused(fitted) if loaded is None else fitted
                if fitted.after.verdict.decision is Decision.REJECT:  # what was made is more than was planned
                    code = EXIT_OVER
                elif out is not None:
                    written = _write(out, fitted, loaded, request, rules)
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


def carry_out(preflight: Preflight, fitted: Fitted, asked: Asked) -> Fitted:
    """The request with its media worked on as planned, and the receipt of what came out. A bar shows it on a terminal.

    Raises:
        InputError: a medium cannot be worked on as planned.
    """
    if not fitted.works or not sys.stderr.isatty():
        return preflight.carry_out(fitted, asked)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        labels = {at: printable(fitted.before.parts[at].examined.label) for at in fitted.works}
        tasks = {at: bars.add_task(escape(label), total=1.0) for at, label in labels.items()}
        return preflight.carry_out(fitted, asked, progress=lambda at, share: bars.update(tasks[at], completed=share))


def work_in_words(work: Work) -> str:
    """What is set of it: `video: start_s 180, end_s 240`."""
    told = []
    for one in fields(work):
        value = getattr(work, one.name)
        if value != one.default:
            told.append(f"{one.name} {value:g}" if isinstance(value, float) else f"{one.name} {value}")
    if isinstance(work, StripWork):
        return "metadata taken out"
    kind = type(work).__name__.removesuffix("Work").lower()
    return f"{kind}: {', '.join(told)}" if told else kind


def _usd(words: str | None) -> Decimal | None:
    if words is None:
        return None
    try:
        amount = Decimal(words.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise click.BadParameter(f"{words!r} is no amount of USD", param_hint="--max-usd")
    return amount


def _exit_code(fitted: Fitted) -> int:
    if fitted.after.verdict.decision is Decision.REJECT:
        return EXIT_OVER
    if not any(part.tokens for part in fitted.before.parts[:-1]):
        return EXIT_NOTHING
    return 0 if fitted.is_sendable else EXIT_UNREADABLE


# ---- what is written


def _write(folder: Path, fitted: Fitted, loaded: Loaded | None, given: Request, rules: ModelRules) -> list[Path]:
    """The request's body in the format it came in, and of files a REST body.

    Raises:
        InputError: it cannot be written in that format.
    """
    from weighlock.converters import json_text, messages, rest_json

    path = folder / "request.json"
    names = _names(folder, fitted, path) if loaded is None else {}
    if loaded is None:
        made = {id(fitted.files[at]): name for at, name in names.items()}
        data = rest_json.emit(_with_references(fitted.request, rules, made))
    elif fitted.request is given:
        data = loaded.body
    elif isinstance(loaded.parsed, rest_json.Parsed):
        data = rest_json.emit(fitted.request, loaded.parsed)
    else:
        data = json_text.dumps(messages.emit(fitted.request, loaded.parsed))
    folder.mkdir(parents=True, exist_ok=True)
    for at, name in names.items():
        replace_file(name, fitted.files[at])
    replace_file(path, data)
    return [path, *names.values()]


def _names(folder: Path, fitted: Fitted, body: Path) -> dict[int, Path]:
    """Where each medium that was made is written."""
    names: dict[int, Path] = {}
    for at in fitted.files:
        names[at] = _name(folder, fitted, at, [body, *names.values()])
    return names


def _name(folder: Path, fitted: Fitted, at: int, taken: list[Path]) -> Path:
    """That of what a medium was made of, with the ending of what it is now."""
    named, mime = Path(fitted.before.parts[at].examined.label), fitted.made[at].mime
    stem, ending = named.stem or "medium", _EXTENSIONS.get(mime, named.suffix)
    path, nth = folder / f"{stem}{ending}", 1
    while path in taken:
        nth += 1
        path = folder / f"{stem}-{nth}{ending}"
    return path


def _some_named(fitted: Fitted, rules: ModelRules) -> Fitted:
    """Without the complaint that files do not all go inline: those that do not are named, to be uploaded."""
    screening, limit = fitted.before.screening, rules.limits.inline_request_bytes
    if screening is None or limit is None:
        return fitted
    too_much = [
        one for one in screening.problems if isinstance(one, MediaTooLarge) and one.figures.get("limit") == limit
    ]
    if not too_much:
        return fitted
    screening = replace(screening, problems=tuple(one for one in screening.problems if one not in too_much))
    return _unrefused(replace(fitted, before=replace(fitted.before, screening=screening)))


def _unrefused(fitted: Fitted) -> Fitted:
    """Without the service's word on what goes inline together."""
    after = replace(fitted.after, refused=tuple(words for words in fitted.after.refused if "inline" not in words))
    return replace(fitted, after=after)


def _with_references(request: Request, rules: ModelRules, made: Mapping[int, Path]) -> Request:
    """The request with files that do not fit inline named, largest first, for somebody to upload.

    `made` is where media that were made are written, by the id of their bytes.
    """
    sizes: dict[int, int] = {}
    for _, part, _ in request.media():
        if isinstance(part.source, Path):
            sizes[id(part)] = base64_size(part.source.stat().st_size)
        elif isinstance(part.source, bytes) and id(part.source) in made:
            sizes[id(part)] = base64_size(len(part.source))
    left, bound = sum(sizes.values()), rules.limits.inline_request_bytes or _INLINE_BYTES
    named: set[int] = set()
    for part_id, size in sorted(sizes.items(), key=lambda one: -one[1]):
        if left <= bound:
            break
        named.add(part_id)
        left -= size

    def reference(part: Part) -> Part:
        if not isinstance(part, MediaPart) or id(part) not in named:
            return part
        file = made.get(id(part.source), Path(part.label))
        uri = f"file:{file.name}"
        words = f"{file} is too large to go inline: upload it, and put its URI in place of {uri}"
        click.echo(printable(f"weighlock: {words}"), err=True)
        return replace(part, source=Uri(uri))

    turns = tuple(replace(turn, parts=tuple(map(reference, turn.parts))) for turn in request.turns)
    return replace(request, turns=turns)
