"""`weighlock check`: what files are, what they would cost, and whether an endpoint admits them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from weighlock import mime
from weighlock.cli import render
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import Examined
from weighlock.preflight import Preflight, Scales, prompt_text
from weighlock.report import Report
from weighlock.request import Backend, MediaPart, MediaResolution
from weighlock.rules import Controls
from weighlock.settings import load

EXIT_OVER, EXIT_UNREADABLE, EXIT_NOTHING = 3, 4, 2
_CHUNK = 1 << 20


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--model", "-m", help="Model, or several parted by commas. Default: the endpoint's.")
@click.option("--backend", type=click.Choice([b.value for b in Backend]), help="Default: the endpoint's account.")
@click.option("--endpoint", "-e", help="Whose limits apply. Default: the `default` section.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--text", help="Prompt text that goes with the files.")
@click.option(
    "--media-resolution", "resolution", type=click.Choice([r.value for r in MediaResolution if r != "unspecified"])
)
@click.option("--fps", type=click.FloatRange(0, 24, min_open=True), help="Video frames sampled per second.")
@click.option("--clip", metavar="START-END", help="Seconds or m:ss, as in 30-90, 2:30-3:30, 150-.")
@click.option(
    "--together/--each", default=None, help="One request, or one a file. Default: each when a folder is named."
)
@click.option("--compare", metavar="M1,M2", help="A model × setting matrix; files are probed once.")
@click.option("--output-tokens", type=click.IntRange(min=0), help="Expected answer, added to the cost.")
@click.option("--format", "form", type=click.Choice(["table", "json", "jsonl", "csv"]), default="table")
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
    together: bool | None,
    compare: str | None,
    output_tokens: int | None,
    form: str,
) -> None:
    """Weigh files and folders offline: no key, no network. `-` is standard input.

    Files named together are one request; a folder is weighed file by file.

    \b
    Exit code: 0 all admitted · 3 some over a limit · 4 none over, some unreadable · 2 usage, settings, nothing weighed
    """
    settings = load(config)
    controls = _controls(resolution, fps, clip)
    as_one = together if together is not None else not any(Path(path).is_dir() for path in paths)
    models: list[str | None] = [*_names(compare or model)] or [None]
    with ExitStack() as stack:
        preflight = stack.enter_context(Preflight(settings))
        scales = [
            preflight.scales(
                endpoint=endpoint,
                model=name,
                backend=Backend(backend) if backend else None,
                controls=controls,
                output_tokens=output_tokens,
            )
            for name in models
        ]
        parts = render.with_progress(_parts(paths, stack, settings.safety.max_file_bytes), wanted=form != "jsonl")
        examined = _with_text(preflight.examine(parts), text)
        if compare:
            everything = list(examined)
            from weighlock.cli.compare import compare as print_matrix

            print_matrix(everything, scales, form)
            ctx.exit(0 if any(one.facts for one in everything) else EXIT_NOTHING)
        outcome = render.Outcome()
        writer = render.writer(form, scales, as_one=as_one, confinement=preflight.confinement)
        for reports in _requests(examined, scales, as_one=as_one):
            outcome.add(reports)
            writer.add(reports)
        writer.close(outcome)
    ctx.exit(_exit_code(outcome))


def _requests(examined: Iterator[Examined], scales: Sequence[Scales], *, as_one: bool) -> Iterator[tuple[Report, ...]]:
    """The reports of each request, one a scale."""
    requests = iter([list(examined)]) if as_one else ([one] for one in examined)
    for request in requests:
        yield tuple(scale.weigh(request) for scale in scales)


def _exit_code(outcome: render.Outcome) -> int:
    if not outcome.weighed:
        return EXIT_NOTHING
    if outcome.decisions[Decision.REJECT]:
        return EXIT_OVER
    return EXIT_UNREADABLE if outcome.decisions[Decision.UNKNOWN] else 0


def _parts(paths: Sequence[str], stack: ExitStack, max_bytes: int) -> Iterator[MediaPart]:
    for path in paths:
        if path == "-":
            yield MediaPart(source=_spooled_input(stack, max_bytes), label="standard input")
        elif os.path.isdir(path):  # noqa: PTH112  # a str may hold bytes that are no UTF-8, and is 3 × faster
            yield from (_file(name) for name in _walk(path))
        else:
            yield _file(path)


def _file(path: str) -> MediaPart:
    return MediaPart(source=Path(path), label=path, declared_mime=mime.declared_from_name(path))


def _walk(folder: str) -> Iterator[str]:
    """Files below a folder in a stable order; hidden ones are left out, links to folders are not followed."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(here, name) for name in sorted(files) if not name.startswith("."))  # noqa: PTH118


def _spooled_input(stack: ExitStack, max_bytes: int) -> Path:
    """Standard input on disk, so that memory does not grow with it; one byte past the bound is enough to refuse it."""
    import tempfile

    spool = stack.enter_context(tempfile.NamedTemporaryFile(prefix="weighlock-"))  # noqa: SIM115  # closed by the stack
    left = max_bytes + 1
    while left > 0 and (chunk := sys.stdin.buffer.read(min(_CHUNK, left))):
        spool.write(chunk)
        left -= len(chunk)
    spool.flush()
    return Path(spool.name)


def _with_text(examined: Iterator[Examined], text: str | None) -> Iterator[Examined]:
    if text is not None:
        yield prompt_text(text)
    yield from examined


def _controls(resolution: str | None, fps: float | None, clip: str | None) -> Controls:
    start, end = _clip(clip) if clip else (None, None)
    level = MediaResolution(resolution) if resolution else None
    per_part = level is MediaResolution.ULTRA_HIGH
    return Controls(
        media_resolution=MediaResolution.UNSPECIFIED if per_part or level is None else level,
        part_resolution=level if per_part else None,
        fps=fps,
        start_offset_s=start,
        end_offset_s=end,
    )


def _clip(words: str) -> tuple[float, float | None]:
    start, dash, end = words.partition("-")
    try:
        window = (_seconds(start or "0"), _seconds(end) if end else None)
    except ValueError:
        dash = ""
        window = (0.0, None)
    if not dash or not (start or end) or (window[1] is not None and window[1] <= window[0]):
        raise click.BadParameter(
            f"{words!r} is no START-END in seconds or m:ss, as in 30-90 or 2:30-3:30", param_hint="--clip"
        )
    return window


def _seconds(words: str) -> float:
    seconds = 0.0
    for field in words.strip().split(":"):
        value = float(field)
        if not 0 <= value < float("inf"):
            raise ValueError(field)
        seconds = seconds * 60 + value
    return seconds


def _names(words: str | None) -> list[str]:
    return [name for name in (part.strip() for part in (words or "").split(",")) if name]
