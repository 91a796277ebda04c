"""`weighlock samples DIR`: media to try the other commands on."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def samples(folder: Path) -> None:
    """Draw a screenshot, a 4-minute screen recording, an A4 page and 30 s of MP3 into FOLDER (about 3 MB)."""
    from weighlock.codecs.samples import draw_samples

    try:
        drawn = draw_samples(folder)
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror or error}") from error
    for path in drawn:
        click.echo(f"{path}  {path.stat().st_size:,} bytes")
