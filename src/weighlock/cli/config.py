"""`weighlock config …`: the settings file, from an operator's side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from weighlock.cli.printable import printable
from weighlock.settings import PACKAGED, Endpoint, Settings, find, json_schema, load, read
from weighlock.settings.model import BUILT_IN, INHERITED
from weighlock.written import escaped, quoted

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
@click.argument("file", required=False, type=click.Path(path_type=Path))
@_config_option
@click.pass_context
def check(ctx: click.Context, file: Path | None, path: Path | None) -> None:
    """Name every mistake in the settings, with what would be right.

    Looks into the rule file that rules.overlay names, too. Exit code 2 if there is a mistake.
    """
    if file is not None and path is not None:
        raise click.UsageError("name the file once: as FILE, or with --config")
    path = file or path
    click.echo(printable(f"read: {find(path)}"))
    reading = read(path)
    problems = [*reading.problems, *_overlay_mistakes(reading.rules_overlay)]
    if reading.settings is None or problems:
        for problem in problems:
            click.echo(printable(problem), err=True)
        click.echo(f"{len(problems)} mistake{'s' if len(problems) > 1 else ''}", err=True)
        ctx.exit(_EXIT_MISTAKES)
    for line in _remarks(reading.settings):
        click.echo(printable(line))
    click.echo("no mistakes")


@config.command()
@click.argument("endpoint", required=False)
@click.option("--origin", is_flag=True, help="Say beside each value where it came from.")
@_config_option
def show(endpoint: str | None, origin: bool, path: Path | None) -> None:
    """Print the settings in force, or one ENDPOINT's, as YAML.

    What an ENDPOINT inherits from the default is merged in.
    """
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
        raise click.ClickException(printable(f"{target} exists; --force overwrites it")) from None
    except OSError as error:
        raise click.ClickException(printable(f"cannot write {target}: {error.strerror}")) from error
    click.echo(printable(f"wrote {target}"))


def _overlay_mistakes(overlay: Path | None) -> list[str]:
    from weighlock.rules.audit import file_mistakes

    return [f"{overlay}: {line}" for line in file_mistakes(overlay)] if overlay else []


def _remarks(settings: Settings) -> Iterator[str]:
    """What a sound file comes to, and what of it is not, or not fully, acted on."""
    for file in settings.files[1:]:
        yield f"included: {file}"
    if settings.rules_overlay:
        yield f"rules overlay: {settings.rules_overlay}"
    yield f"accounts: {', '.join(settings.accounts)}"
    yield f"endpoints: {', '.join(settings.endpoints) or 'none; every request is held to default'}"
    for variable in _variables(settings):
        yield f"overridden by: {variable}"
    yield from _unknown_models(settings)
    yield from _clamped(settings)
    for key in _set_here(settings, ("mode", "on_exceed")):
        yield f"changes the words of check, not its verdict: {key}"
    for key in _set_here(settings, ("windows", "session")):
        yield f"kept for requests that are prepared, not asked by check and fit: {key}"
    for key in _set_here(settings, ("labels",)):
        yield f"checked, and not acted on by this version: {key}"


def _unknown_models(settings: Settings) -> Iterator[str]:
    from weighlock.rules import Match
    from weighlock.weigher import rule_book

    book = rule_book(settings)
    named: dict[str, str] = {}
    for key, endpoint in _endpoints(settings):
        for model in (endpoint.model, *(endpoint.models or ())):
            named.setdefault(model, key)
    for model, key in named.items():
        if book.resolve(model).match is Match.UNKNOWN:
            yield f"no rules for model {quoted(model)} ({key}); see on_unknown_model{book.suggestion(model)}"


def _clamped(settings: Settings) -> Iterator[str]:
    """Thresholds that the service's own bound comes before."""
    from datetime import UTC, datetime

    from weighlock.planning.placement import out_of_reach
    from weighlock.weigher import rule_book

    book, today = rule_book(settings), datetime.now(UTC).date()
    told: dict[str, str] = {}
    for _, endpoint in _endpoints(settings):
        rules = book.for_model(endpoint.model, endpoint.account.backend, today)
        for name, size, bound in out_of_reach(settings.uploads.inline_below, rules):
            words = f"{size:,} bytes, and {endpoint.model} takes {bound:,} inline: that bound holds"
            told.setdefault(name, f"uploads.inline_below.{name}: {words}")
    yield from told.values()


def _variables(settings: Settings) -> list[str]:
    return sorted({origin for origin in settings.origin.values() if origin.startswith("WEIGHLOCK_")})


def _endpoints(settings: Settings) -> list[tuple[str, Endpoint]]:
    named = ((f"endpoints.{name}", endpoint) for name, endpoint in settings.endpoints.items())
    return [("default", settings.default), *named]


def _set_here(settings: Settings, keys: Iterable[str]) -> Iterator[str]:
    """Those of the keys that the default or an endpoint gives itself, rather than inherits or leaves out."""
    given = {key for key, origin in settings.origin.items() if origin != BUILT_IN and not origin.endswith(INHERITED)}
    for key in (f"{section}.{key}" for section, _ in _endpoints(settings) for key in keys):
        if any(one == key or one.startswith(f"{key}.") for one in given):
            yield key


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
            yield f"{indent}{name}: [{items}]", escaped(origin.get(".".join(at), ""))
        else:
            yield f"{indent}{_yaml({key: value}).rstrip()}", escaped(origin.get(".".join(at), ""))
