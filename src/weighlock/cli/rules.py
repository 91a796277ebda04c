"""`weighlock rules …`: the figures everything rests on, who says so, and since when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

import click

from weighlock.cli.printable import printable
from weighlock.errors import ConfigError
from weighlock.request import Backend
from weighlock.rules import Generation, ModelRules, RuleBook
from weighlock.rules.audit import doubly_listed, file_mistakes, stale
from weighlock.rules.book import load as load_rules
from weighlock.rules.book import packaged_names, packaged_path, packaged_sources
from weighlock.rules.in_force import InForce, differences, in_force, younger
from weighlock.written import plain, quoted

_EXIT_MISTAKES = 2
_MEDIA = ("image", "video", "audio", "document", "text")
_DATED = re.compile(r"(?P<model>.+)@(?P<on>\d{4}-\d{1,2}-\d{1,2})")

_config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Settings file, whose rules.overlay is laid on top; found as by check.",
)
_backend_option = click.option(
    "--backend", type=click.Choice([str(one) for one in Backend]), default=str(Backend.DEVELOPER), show_default=True
)


@click.group()
def rules() -> None:
    """Show the figures everything rests on, with source, date and confidence."""


@rules.command("list")
@_backend_option
@_config_option
def list_models(backend: str, config_path: Path | None) -> None:
    """List the models with rules, and how well founded those are."""
    from rich.table import Table

    from weighlock.cli.figures import print_plain

    book = _book(config_path)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "generation", "checked on", "founded on"):
        table.add_column(column, no_wrap=column != "founded on", overflow="fold")
    for generation in book.generations():
        for model in generation.models:
            found = book.for_model(model, Backend(backend), _today())
            table.add_row(model, generation.name, found.rule_date.isoformat(), _founded(found))
    print_plain(table)
    click.echo(f"\n{backend}; any other model is weighed with the dearest known figures, and said to be unknown")


@rules.command()
@click.argument("model")
@_backend_option
@click.option("--on", type=click.DateTime(["%Y-%m-%d"]), help="The rules as they stood on a day; today when left out.")
@_config_option
def show(model: str, backend: str, on: datetime | None, config_path: Path | None) -> None:
    """Show every figure in force for MODEL, with its source.

    MODEL may be a resource path, and may end in @YYYY-MM-DD instead of --on. For a model without rules the figures
    are those it would be weighed with.
    """
    from weighlock.cli.figures import print_figures

    book = _book(config_path)
    name, day = _split(model)
    if on and day:
        raise click.UsageError(f"the day is given twice: --on {on.date()} and @{day}")
    found = book.for_model(name, Backend(backend), day or (on.date() if on else _today()))
    if not found.known:
        click.echo(_unknown(found, book, "the figures below are the dearest known ones, which stand in"), err=True)
    whose = found.model if found.known else f"{found.model} (unknown)"
    click.echo(printable(f"{whose} on {backend} · {found.generation} · checked on {found.rule_date}"))
    if found.known and found.note:
        click.echo(printable(found.note))
    figures = in_force(found)
    if remark := _nothing_older(found, figures):
        click.echo(remark)
    print_figures(figures)
    click.echo(click.style("\nSources", bold=True))
    for line in _sources(figures, {**packaged_sources(), **book.generation(found.generation).sources}):
        click.echo(printable(f"  {line}"))


@rules.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@_config_option
@click.pass_context
def check(ctx: click.Context, files: tuple[Path, ...], config_path: Path | None) -> None:
    """Check the packaged rules, the overlay and FILES for mistakes.

    The overlay is the one the settings name. Exit code 2 on a mistake.
    """
    found: dict[Path, Sequence[str]] = {}
    generations: list[Generation] = []
    for path in (*(packaged_path(name) for name in packaged_names()), *_overlay(config_path), *files):
        found[path] = file_mistakes(path)
        with suppress(ConfigError):
            generations.append(load_rules(path))
    for path, lines in found.items():
        click.echo(printable(f"{path.name}: {_count(len(lines))}"))
        for line in lines:
            click.echo(printable(f"  {line}"), err=True)
    doubled = doubly_listed(generations[: len(packaged_names())])
    for line in doubled:
        click.echo(printable(line), err=True)
    for line in filter(None, (stale(generation, _today()) for generation in generations)):
        click.echo(printable(f"warning: {line}"), err=True)
    if doubled or any(found.values()):
        ctx.exit(_EXIT_MISTAKES)


@rules.command()
@click.argument("old")
@click.argument("new")
@_backend_option
@_config_option
def diff(old: str, new: str, backend: str, config_path: Path | None) -> None:
    """Show every figure that differs between OLD and NEW.

    Each is a MODEL, a MODEL@YYYY-MM-DD (its rules of that day), or a rule FILE: the other's model, or the first one
    the file lists, under that file.
    """
    from weighlock.cli.figures import print_differences

    book = _book(config_path)
    before, after = _side(old, new, book, Backend(backend)), _side(new, old, book, Backend(backend))
    for side in (before, after):
        if remark := _nothing_older(side, in_force(side)):
            click.echo(remark, err=True)
    if found := differences(before, after):
        click.echo(f"- {printable(old)}\n+ {printable(new)}\n")
        print_differences(found)
    else:
        click.echo("every figure is the same")


def _book(config_path: Path | None) -> RuleBook:
    from weighlock.settings import load
    from weighlock.weigher import rule_book

    return rule_book(load(config_path))


def _overlay(config_path: Path | None) -> list[Path]:
    from weighlock.settings import load

    overlay = load(config_path).rules_overlay
    return [overlay] if overlay else []


def _today() -> date:
    return datetime.now(UTC).date()


def _founded(found: ModelRules) -> str:
    """`measured; text assumed`: what most of the default figures rest on, and which do not."""
    confidence = {one.name: one.entry.confidence for one in reversed(in_force(found)) if one.name in _MEDIA}
    usual = max(confidence.values(), key=list(confidence.values()).count)
    others = [f"{name} {rests_on}" for name, rests_on in confidence.items() if rests_on is not usual]
    return "; ".join((usual, *others))


def _count(lines: int) -> str:
    return {0: "no mistakes", 1: "1 mistake"}.get(lines, f"{lines} mistakes")


def _unknown(found: ModelRules, book: RuleBook, consequence: str) -> str:
    asked = found.resolved.asked
    nearest = book.suggestion(asked) or "; `weighlock rules list` names the known ones"
    return f"no rules for model {quoted(asked)}: {consequence}{nearest}"


def _nothing_older(found: ModelRules, figures: Sequence[InForce]) -> str | None:
    """A line where a day was asked for of which nothing, or not everything, is known."""
    late = younger(figures, found.on)
    if not late:
        return None
    which = f"{len(late)} of the {len(figures)} figures" if len(late) < len(figures) else "these figures"
    since = min(one.entry.since for one in late)
    return f"{found.on}: {which} are the first known ones, since {since} or later; nothing older is known"


def _sources(figures: Sequence[InForce], sources: Mapping[str, Mapping[str, object]]) -> list[str]:
    named = dict.fromkeys(key for one in figures for key in one.entry.sources)
    lines = []
    for key in named:
        source = sources.get(key, {})
        words = [str(source[part]) for part in ("title", "dated", "url") if part in source]
        lines.append(f"{key}: {' · '.join(words)}" if words else key)
    return lines


def _side(named: str, other: str, book: RuleBook, backend: Backend) -> ModelRules:
    """The rules one argument of `diff` stands for.

    Raises:
        click.BadParameter: it is a model without rules: comparing what merely stands in would mislead.
    """
    model = named
    if _is_file(named):
        book = book.with_overlay(Path(named))
        model = _first_model(book, named) if _is_file(other) else other
    name, day = _split(model)
    found = book.for_model(name, backend, day or _today())
    if not found.known:
        raise click.BadParameter(_unknown(found, book, "there is nothing to compare"))
    return found


def _is_file(named: str) -> bool:
    path = Path(named)
    return path.suffix == ".toml" or path.is_file()


def _first_model(book: RuleBook, named: str) -> str:
    models = book.generation(book.overlays[-1].name).models
    if not models:
        raise click.BadParameter(f"{plain(named, 300)} lists no model; compare it with a MODEL")
    return models[0]


def _split(named: str) -> tuple[str, date | None]:
    """`MODEL` or `MODEL@YYYY-MM-DD` as the name and the day."""
    name = named.strip()
    if not name:
        raise click.BadParameter("a model's name is empty")
    dated = _DATED.fullmatch(name)
    if dated is None:
        return name, None
    try:
        return dated["model"], date.fromisoformat(dated["on"])
    except ValueError:
        raise click.BadParameter(f"{dated['on']} is no date; write MODEL@YYYY-MM-DD") from None
