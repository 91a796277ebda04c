"""`weighlock config …`: the settings file, from an operator's side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from weighlock.errors import ConfigError
from weighlock.settings import PACKAGED, Settings, find, json_schema, load

_EXIT_MISTAKES = 2

_config_option = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    help="Settings file; else $WEIGHLOCK_CONFIG, ./weighlock.yaml, ./config/weighlock.yaml, else the packaged one.",
)


@click.group()
def config() -> None:
    """Check, show and begin a settings file."""


@config.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.pass_context
def check(ctx: click.Context, path: Path | None) -> None:
    """Name every mistake in the settings and the nearest valid key; exit code 2 if there is one."""
    click.echo(f"read: {find(path)}")
    try:
        settings = load(path)
    except ConfigError as error:
        problems = error.figures["problems"]
        for problem in problems:
            click.echo(problem, err=True)
        click.echo(f"{len(problems)} mistake{'s' if len(problems) > 1 else ''}", err=True)
        ctx.exit(_EXIT_MISTAKES)
    for file in settings.files[1:]:
        click.echo(f"included: {file}")
    click.echo(f"accounts: {', '.join(settings.accounts)}")
    click.echo(f"endpoints: {', '.join(settings.endpoints) or 'none; every request is held to default'}")
    for variable in _variables(settings):
        click.echo(f"overridden by: {variable}")
    for key in _idle(settings):
        click.echo(f"checked, and not acted on by this version: {key}")
    click.echo("no mistakes")


@config.command()
@click.argument("endpoint", required=False)
@click.option("--origin", is_flag=True, help="Say beside each value where it came from.")
@_config_option
def show(endpoint: str | None, origin: bool, path: Path | None) -> None:
    """Print the settings in force, or one ENDPOINT with the default merged in, as YAML."""
    settings = load(path)
    values, prefix = _whole(settings) if endpoint is None else _of_endpoint(settings, endpoint)
    click.echo(_annotated(values, prefix, settings.origin) if origin else _yaml(values), nl=False)


@config.command()
def schema() -> None:
    """Print the JSON Schema of the file, for editors."""
    click.echo(json.dumps(json_schema(), indent=2))


@config.command()
@click.argument("path", default="weighlock.yaml", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def init(path: Path, force: bool) -> None:
    """Write the commented default to PATH (./weighlock.yaml)."""
    target = path / "weighlock.yaml" if path.is_dir() else path
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(PACKAGED.read_text(encoding="utf-8"))
    except FileExistsError:
        raise click.ClickException(f"{target} exists; --force overwrites it") from None
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror}") from error
    click.echo(f"wrote {target}")


def _variables(settings: Settings) -> list[str]:
    return sorted({origin for origin in settings.origin.values() if origin.startswith("WEIGHLOCK_")})


def _idle(settings: Settings) -> Iterator[str]:
    """Keys the file gives that are read for a later version's sake only."""
    for endpoint in (settings.default, *settings.endpoints.values()):
        prefix = "default" if endpoint is settings.default else f"endpoints.{endpoint.name}"
        for section in ("windows", "labels"):
            if any(key.startswith(f"{prefix}.{section}.") for key in settings.origin):
                yield f"{prefix}.{section}"


def _whole(settings: Settings) -> tuple[dict[str, Any], tuple[str, ...]]:
    from weighlock.settings.spelled import as_document

    return as_document(settings), ()


def _of_endpoint(settings: Settings, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    document, _ = _whole(settings)
    if settings.endpoint(name) is settings.default:
        return document["default"], ("default",)
    return document["endpoints"][name], ("endpoints", name)


def _yaml(values: Mapping[str, Any]) -> str:
    from weighlock.settings.text import dump_yaml

    return dump_yaml(values)


def _annotated(values: Mapping[str, Any], prefix: tuple[str, ...], origin: Mapping[str, str]) -> str:
    """The same YAML with a comment on every value."""
    rows = list(_rows(values, prefix, origin, 0))
    width = min(max((len(text) for text, comment in rows if comment), default=0), 60)
    return "".join(f"{text:<{width}}  # {comment}\n" if comment else f"{text}\n" for text, comment in rows)


def _rows(
    values: Mapping[str, Any], path: tuple[str, ...], origin: Mapping[str, str], depth: int
) -> Iterator[tuple[str, str]]:
    indent = "  " * depth
    for key, value in values.items():
        at = (*path, key)
        name = _yaml({key: None}).rpartition(":")[0]
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:", ""
            yield from _rows(value, at, origin, depth + 1)
        elif isinstance(value, list):
            items = ", ".join(_yaml({"x": item})[3:].strip() for item in value)
            yield f"{indent}{name}: [{items}]", origin.get(".".join(at), "")
        else:
            yield f"{indent}{_yaml({key: value}).rstrip()}", origin.get(".".join(at), "")
