"""`weighlock check`: what files are, what they would cost, and whether an endpoint admits them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from weighlock import mime
from weighlock.cli import render
from weighlock.cli.printable import printable
from weighlock.cli.request_file import FORMS, sorted_out
from weighlock.planning.admit import Decision
from weighlock.request import Backend, MediaPart, MediaResolution, Placement
from weighlock.rules import Controls
from weighlock.scales import Asked
from weighlock.settings import Clip, load
from weighlock.settings.amounts import parse_clip
from weighlock.weigher import Weigher, prompt_text

if TYPE_CHECKING:
    from weighlock.cli.request_check import Requests

EXIT_OVER, EXIT_UNREADABLE, EXIT_NOTHING = 3, 4, 2
CLIP_FORMS = "30-90, 2:30-3:30, 150-, 'last 60s', 'first 2m' or 'around 95s'"
_CHUNK = 1 << 20
_NO_COMPARE = (
    "{} is a request, and --compare weighs files; name models with --model, or weigh it as a file with --as file"
)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--model", "-m", help="Model, or several parted by commas. Default: the endpoint's.")
@click.option("--backend", type=click.Choice([b.value for b in Backend]), help="Default: the endpoint's account.")
@click.option("--endpoint", "-e", help="Whose limits apply. Default: the `default` section.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--text", help="Prompt text that goes with every request.")
@click.option(
    "--media-resolution",
    "resolution",
    type=click.Choice([r.value for r in MediaResolution if r is not MediaResolution.UNSPECIFIED]),
    help="Of the whole request; ultra_high is set on each part.",
)
@click.option("--fps", type=click.FloatRange(0, 24, min_open=True), help="Video frames sampled per second.")
@click.option("--clip", metavar="START-END", help=f"{CLIP_FORMS}; video and audio.")
@click.option(
    "--placement",
    type=click.Choice([p.value for p in Placement]),
    default=Placement.INLINE.value,
    show_default=True,
    help="How the bytes travel; files: the Files API, uri: gs:// and the like.",
)
@click.option("--together/--each", default=None, help="One request, or one a file. Default: each if a folder is named.")
@click.option(
    "--as",
    "taken_as",
    type=click.Choice(["auto", "file", *FORMS]),
    default="auto",
    show_default=True,
    help="What JSON is: a REST body, neutral messages, or a file like any other. auto: told by its content; in a "
    "folder, a file.",
)
@click.option("--compare", metavar="M1,M2", help="A model × setting matrix; files are probed once. Not of requests.")
@click.option("--output-tokens", type=click.IntRange(min=0), help="Expected answer, added to the cost.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl", "csv"]),
    default="table",
    show_default=True,
    help="jsonl: a line a request, as soon as it is known.",
)
@click.pass_context
def check(
    ctx: click.Context,
    paths: tuple[str, ...],
    model: str | None,
    backend: str | None,
    endpoint: str | None,
    config: Path | None,
    text: str | None,
    resolution: str | None,
    fps: float | None,
    clip: str | None,
    placement: str,
    together: bool | None,
    taken_as: str,
    compare: str | None,
    output_tokens: int | None,
    form: str,
) -> None:
    """Weigh files and folders offline: no key, no network. `-` is standard input.

    Files named together are one request; a folder is weighed file by file.

    JSON that is a request already (a REST body, neutral messages) is screened and weighed turn by turn; --fps, --clip
    and --media-resolution hold where its parts ask for nothing.

    \b
    Exit code  0  all admitted
               3  some over a limit
               4  none over, some unreadable or unfit to be sent
               2  usage, settings, or nothing could be weighed
    """
    if compare is not None and model is not None:
        raise click.UsageError("--compare names the models; leave --model out")
    settings = load(config)
    as_one = together if together is not None else not any(map(os.path.isdir, paths))
    asked = Asked(
        endpoint=endpoint,
        backend=Backend(backend) if backend else None,
        controls=controls_of_options(resolution, fps, Placement(placement)),
        clip=clip_of_words(clip) if clip is not None else None,
        output_tokens=output_tokens,
    )
    with ExitStack() as stack:
        weigher = stack.enter_context(Weigher(settings, preload=False))
        models = _names(compare if compare is not None else model)
        scales = [weigher.scales(replace(asked, model=name)) for name in models]
        max_bytes = settings.safety.max_file_bytes
        named = _named(paths, stack, max_bytes, unfolded=taken_as in FORMS)
        requests: Requests | None = None
        files: list[MediaPart | str] = []
        for one in sorted_out(named, taken_as, max_bytes):
            if isinstance(one, MediaPart | str):
                files.append(one)
                continue
            if compare is not None:
                raise click.UsageError(_NO_COMPARE.format(printable(one.label)))
            if requests is None:
                requests = _requests(weigher, asked, models, text=text, form=form, alone=_alone(paths))
            requests.add(one)
        examined = weigher.examine(render.with_progress(_parts(files), wanted=form != "jsonl"))
        prompt = [prompt_text(text)] if text is not None else []
        if compare is not None:
            from weighlock.cli.compare import compare as print_matrix

            everything = [*examined, *prompt]
            print_matrix(everything, scales, form)
            ctx.exit(0 if any(one.facts for one in everything) else EXIT_NOTHING)

        def weigh(writer: render.Writer, outcome: render.Outcome) -> None:
            for request in [list(examined)] if as_one else ([one] for one in examined):
                reports = [one.weigh([*request, *prompt]) for one in scales]
                outcome.add(reports)
                writer.add(reports)
            writer.close(outcome)

        if requests is not None:
            outcome = requests.close(weigh if files else None, scales, as_one=as_one)
        else:
            outcome = render.Outcome()
            weigh(render.writer(form, scales, as_one=as_one, confinement=weigher.confinement), outcome)
    ctx.exit(_exit_code(outcome))


def _exit_code(outcome: render.Outcome) -> int:
    if outcome.decisions[Decision.REJECT]:
        return EXIT_OVER
    if not outcome.weighed:
        return EXIT_NOTHING
    return EXIT_UNREADABLE if outcome.decisions[Decision.UNKNOWN] or outcome.cannot_be_sent else 0


def _requests(
    weigher: Weigher, asked: Asked, models: Sequence[str | None], *, text: str | None, form: str, alone: bool
) -> Requests:
    from weighlock.cli.request_check import Requests

    return Requests(weigher, asked, models, text=text, form=form, alone=alone)


def _alone(paths: Sequence[str]) -> bool:
    """Whether one file is all that was named."""
    return len(paths) == 1 and not os.path.isdir(paths[0])  # noqa: PTH112  # as in `_named`


def _named(paths: Sequence[str], stack: ExitStack, max_bytes: int, *, unfolded: bool) -> Iterator[MediaPart | str]:
    """What was named: files as parts, folders as they are, or file by file where all of them are requests."""
    for path in paths:
        if path == "-":
            yield MediaPart(source=spooled_input(stack, max_bytes), label="standard input")
        elif not os.path.isdir(path):  # noqa: PTH112  # a str may hold bytes that are no UTF-8, and is 3 × faster
            yield file_part(path)
        elif unfolded:
            yield from map(file_part, walk(path))
        else:
            yield path


def _parts(named: Iterable[MediaPart | str]) -> Iterator[MediaPart]:
    for one in named:
        if isinstance(one, MediaPart):
            yield one
        else:
            yield from map(file_part, walk(one))


def file_part(path: str) -> MediaPart:
    return MediaPart(source=Path(path), label=path, declared_mime=mime.declared_from_name(path))


def walk(folder: str) -> Iterator[str]:
    """Files below a folder in a stable order; hidden ones are left out, links to folders are not followed.

    A folder that cannot be listed comes out as itself, so that it is told like a file that cannot be read.
    """
    closed: list[str] = []
    for here, folders, files in os.walk(folder, onerror=lambda error: closed.append(str(error.filename))):
        yield from closed
        closed.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(here, name) for name in sorted(files) if not name.startswith("."))  # noqa: PTH118
    yield from closed


def spooled_input(stack: ExitStack, max_bytes: int) -> Path:
    """Standard input on disk, so that memory does not grow with it; one byte past the bound is enough to refuse it.

    Where the system names open files, the spool has no name of its own and cannot outlive the process.
    """
    import tempfile

    if sys.stdin is None:
        return Path(os.devnull)
    spool: IO[bytes] = stack.enter_context(tempfile.TemporaryFile(prefix="weighlock-"))  # noqa: SIM115  # closed by the stack
    path = Path(f"/dev/fd/{spool.fileno()}")
    if not path.exists():
        named = stack.enter_context(tempfile.NamedTemporaryFile(prefix="weighlock-"))  # noqa: SIM115
        spool, path = named.file, Path(named.name)
    left = max_bytes + 1
    while left > 0 and (chunk := sys.stdin.buffer.read(min(_CHUNK, left))):
        spool.write(chunk)
        left -= len(chunk)
    spool.flush()
    return path


def controls_of_options(resolution: str | None, fps: float | None, placement: Placement) -> Controls:
    level = MediaResolution(resolution) if resolution else None
    per_part = level is MediaResolution.ULTRA_HIGH
    return Controls(
        media_resolution=MediaResolution.UNSPECIFIED if per_part or level is None else level,
        part_resolution=level if per_part else None,
        fps=fps,
        placement=placement,
    )


def clip_of_words(words: str) -> Clip:
    """As in the settings, and with minutes as `2:30`."""
    plain = re.sub(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", _in_seconds, words)
    try:
        return parse_clip(plain)
    except ValueError:
        raise click.BadParameter(f"{words!r} is no START-END; write {CLIP_FORMS}", param_hint="--clip") from None


def _in_seconds(clock: re.Match[str]) -> str:
    hours, minutes, seconds = clock.groups(default="0")
    return f"{int(hours) * 3600 + int(minutes) * 60 + float(seconds):g}"


def _names(words: str | None) -> list[str | None]:
    """The models named; `None` alone leaves it to the endpoint."""
    if words is None:
        return [None]
    names: list[str | None] = [name for name in (part.strip() for part in words.split(",")) if name]
    if not names:
        raise click.BadParameter("names no model", param_hint="--model")
    return names
