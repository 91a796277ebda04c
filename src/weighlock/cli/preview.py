"""`weighlock preview`: a picture, or the frames of a film, as small as the model sees them, on one page."""

from __future__ import annotations

import math
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from weighlock.cli.check import (
    CLIP_FORMS,
    EXIT_NOTHING,
    EXIT_OVER,
    EXIT_UNREADABLE,
    clip_of_words,
    controls_of_options,
    file_part,
    spooled_input,
)
from weighlock.cli.files import replace_file
from weighlock.cli.preview_page import Preview, page, sentences
from weighlock.cli.printable import printable
from weighlock.errors import InputError, ServiceError, WeighlockError
from weighlock.media.area import Shape
from weighlock.media.facts import ImageFacts, VideoFacts
from weighlock.media.image_sizes import Size
from weighlock.media.sight import seen_size, stride
from weighlock.media.video import fps_of, sampled
from weighlock.media.work import ImageWork, Made, StillsWork, Work
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import Weighed
from weighlock.report import Report
from weighlock.request import Backend, MediaPart, MediaResolution, Placement
from weighlock.rules import ModelRules
from weighlock.scales import Asked
from weighlock.settings import load
from weighlock.weigher import Weigher

_MOST_FRAMES = 60
"""More are no longer looked at one by one, and the page has to open on a phone."""


@click.command()
@click.argument("path", metavar="VIDEO|IMAGE")
@click.option("--fps", type=click.FloatRange(0, 24, min_open=True), help="Video frames sampled per second.")
@click.option(
    "--resolution",
    "--media-resolution",
    type=click.Choice([r.value for r in MediaResolution if r is not MediaResolution.UNSPECIFIED]),
    help="Of the whole request; ultra_high is set on the part.",
)
@click.option("--clip", metavar="START-END", help=f"{CLIP_FORMS}; of a video.")
@click.option("--model", "-m", help="Default: the endpoint's.")
@click.option("--backend", type=click.Choice([b.value for b in Backend]), help="Default: the endpoint's account.")
@click.option("--endpoint", "-e", help="Whose settings and limits apply. Default: the `default` section.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The page. Default: the file's name and .preview.html, in the working directory.",
)
@click.pass_context
def preview(
    ctx: click.Context,
    path: str,
    fps: float | None,
    resolution: str | None,
    clip: str | None,
    model: str | None,
    backend: str | None,
    endpoint: str | None,
    config: Path | None,
    out: Path | None,
) -> None:
    """See a picture, or the frames the service would sample, as small as the model does. `-` is standard input.

    One HTML page that needs nothing else, with tokens and USD: can you still read the error code? How many pixels a
    token stands for is assumed (see `weighlock rules show MODEL`). Nothing is sent.

    \b
    Exit code  0  the page is written
               3  it is written; the medium is over a limit
               4  not taken by the service as it stands; or not decoded, and no page
               2  usage, settings, or nothing could be weighed
    """
    settings = load(config)
    asked = Asked(
        endpoint=endpoint,
        model=model,
        backend=Backend(backend) if backend else None,
        controls=controls_of_options(resolution, fps, Placement.INLINE),
        clip=clip_of_words(clip) if clip is not None else None,
    )
    if os.path.isdir(path):  # noqa: PTH112  # as in `check`
        raise click.UsageError(f"{printable(path)} is a folder; name one picture or film")
    out = out or Path(f"{'standard-input' if path == '-' else Path(path).name}.preview.html")
    if path != "-" and out.exists() and Path(path).exists() and out.samefile(path):
        raise click.UsageError("--out would overwrite the medium itself")
    with ExitStack() as stack:
        weigher = stack.enter_context(Weigher(settings, preload=False))
        if path == "-":
            source = spooled_input(stack, settings.safety.max_file_bytes)
            part = MediaPart(source=source, label="standard input")
        else:
            part = file_part(path)
        scales = weigher.scales(asked)
        report = scales.weigh(weigher.examine([part]))
        _demand_visual(ctx, report.parts[0])
        try:
            found = _previewed(weigher, part, report, scales.rules)
        except InputError as error:
            _say(error)
            ctx.exit(EXIT_UNREADABLE)
    replace_file(out, page(found))
    for line in sentences(found):
        click.echo(printable(line))
    click.echo(printable(f"wrote {out}  {out.stat().st_size:,} bytes"), err=True)
    if report.refusal:
        click.echo(printable(f"weighlock: {report.refusal}"), err=True)
    ctx.exit(_exit_code(report))


def _demand_visual(ctx: click.Context, part: Weighed) -> None:
    """Ends the command where there is nothing to be seen."""
    if isinstance(part.error, ServiceError):
        raise part.error
    if part.error is not None and part.examined.facts is None:
        _say(part.error)
        ctx.exit(EXIT_NOTHING)
    if not isinstance(part.examined.facts, ImageFacts | VideoFacts):
        what = part.examined.mime or "this"
        raise click.UsageError(printable(f"{part.examined.label} is {what}; a preview is of a picture or a film"))


def _say(error: WeighlockError) -> None:
    click.echo(printable(f"weighlock: {error.code}: {error}"), err=True)


def _exit_code(report: Report) -> int:
    if report.verdict.decision is Decision.REJECT:
        return EXIT_OVER
    refused = report.refused or any(part.refused for part in report.parts)
    return EXIT_UNREADABLE if refused or report.verdict.decision is Decision.UNKNOWN else 0


# ---- what is seen


def _previewed(weigher: Weigher, part: MediaPart, report: Report, rules: ModelRules) -> Preview:
    """The pixels of it, made in the confined worker.

    Raises:
        InputError: it cannot be decoded.
    """
    weighed = report.parts[0]
    facts = weighed.examined.facts
    if isinstance(facts, VideoFacts):
        return _film(weigher, part, report, rules, facts)
    assert isinstance(facts, ImageFacts)  # noqa: S101 - `_demand_visual` saw to it
    area = rules.image(weighed.controls).area
    size = _seen((facts.width_px, facts.height_px), rules, area.likely)
    data, made = _made(weigher, part, ImageWork(mime="image/png", max_width_px=size[0], max_height_px=size[1]))
    seen = made.probed.facts
    assert isinstance(seen, ImageFacts)  # noqa: S101 - promised by the work
    return Preview(
        report=report, data=data, mime=made.mime, size_px=(seen.width_px, seen.height_px), cell_px=rules.cell_px,
        frame_tokens=area.count(facts.width_px, facts.height_px), notes=made.notes,
    )  # fmt: skip


def _film(weigher: Weigher, part: MediaPart, report: Report, rules: ModelRules, facts: VideoFacts) -> Preview:
    controls = report.parts[0].controls
    rule = rules.video(controls)
    frames, fps = sampled(facts, controls, rule), fps_of(controls, rule)
    every = stride(frames, _MOST_FRAMES)
    shown = -(-frames // every)
    columns = math.isqrt(shown - 1) + 1
    width_px, height_px = _seen((facts.width_px, facts.height_px), rules, rule.frame.likely)
    start_s, end_s = controls.start_offset_s or 0.0, controls.end_offset_s
    work = StillsWork(
        fps=fps / every, frames=shown, columns=columns, max_width_px=width_px, max_height_px=height_px,
        start_s=start_s, end_s=None if end_s == math.inf else end_s,
    )  # fmt: skip
    data, made = _made(weigher, part, work)
    seen = made.probed.facts
    assert isinstance(seen, ImageFacts)  # noqa: S101 - promised by the work
    return Preview(
        report=report, data=data, mime=made.mime, cell_px=rules.cell_px,
        size_px=(seen.width_px // columns, seen.height_px // work.rows),
        frame_tokens=rule.frame.count(facts.width_px, facts.height_px),
        notes=made.notes, columns=columns, sampled=frames, fps=fps,
        instants_s=tuple(start_s + number * every / fps for number in range(shown)),
    )  # fmt: skip


def _seen(size: Size, rules: ModelRules, shape: Shape) -> Size:
    return size if rules.cell_px is None else seen_size(size, shape, rules.cell_px)


def _made(weigher: Weigher, part: MediaPart, work: Work) -> tuple[bytes, Made]:
    """The work done; a bar shows it on a terminal."""
    if not sys.stderr.isatty():
        return weigher.made(part, work)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("frames", total=1.0)
        return weigher.made(part, work, lambda share: bars.update(task, completed=share))
