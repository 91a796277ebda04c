"""`weighlock keys new`: a key for a client of the service, printed once."""

from __future__ import annotations

import click

from weighlock.errors import ConfigError


@click.group()
def keys() -> None:
    """Keys that clients of `weighlock serve` show."""


@keys.command()
@click.argument("name")
@click.option("--endpoint", "endpoints", multiple=True, help="The only one it may use; may be repeated.")
@click.option("--tenant", help="Whose requests they are; the name itself when left out.")
def new(name: str, endpoints: tuple[str, ...], tenant: str | None) -> None:
    """Print a new key for NAME, and the line that goes into the settings. The key is kept nowhere."""
    from pydantic import ValidationError

    from weighlock.service.keys import hash_of, new_key
    from weighlock.settings.schema_service import ServiceSection

    key = new_key()
    body = {"key_sha256": hash_of(key), "endpoints": list(endpoints) or None, "tenant": tenant}
    given = {part: value for part, value in body.items() if value is not None}
    try:
        ServiceSection.model_validate({"clients": {name: given}})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigError(f"{'.'.join(map(str, first['loc'][1:2]))}: {first['msg']}") from None
    words = ", ".join(f"{part}: {_written(value)}" for part, value in given.items())
    click.echo(f"key, shown this once: {key}")
    click.echo("settings, under service.clients (or service.operators):")
    click.echo(f"  {name}: {{{words}}}")


def _written(value: str | list[str]) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, list) else value
