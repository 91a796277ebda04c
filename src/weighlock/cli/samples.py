"""`weighlock samples DIR`: media to try the other commands on."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--request",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a REST body in which tools answered with a PNG and a WAV as base64 text.",
)
def samples(folder: Path, request: Path | None) -> None:
    """Draw a screenshot, a 4-minute screen recording, an A4 page and 30 s of MP3 into FOLDER (about 3 MB)."""
    from weighlock.codecs.samples import draw_request, draw_samples

    try:
        drawn = draw_samples(folder)
        if request is not None:
            draw_request(request, screenshot=drawn[0])
            drawn.append(request)
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror or error}") from error
    for path in drawn:
        click.echo(f"{path}  {path.stat().st_size:,} bytes")
