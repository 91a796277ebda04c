"""`weighlock rules …`: the figures everything rests on, who says so, and since when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import click

from weighlock.errors import ConfigError
from weighlock.request import Backend
from weighlock.rules import Generation, ModelRules, RuleBook
from weighlock.rules.audit import doubly_listed, mistakes, stale
from weighlock.rules.book import load as load_rules
from weighlock.rules.book import packaged_names, packaged_path, packaged_sources
from weighlock.rules.in_force import InForce, differences, in_force
from weighlock.rules.wording import in_words

_EXIT_MISTAKES = 2
_MEDIA = ("image", "video", "audio", "document", "text")
_DATED = re.compile(r"(?P<model>.+)@(?P<on>\d{4}-\d{2}-\d{2})")

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
    """List the models with rules, when those were checked, and how well they are founded."""
    from rich.table import Table

    book = _book(config_path)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "generation", "checked on", "founded on"):
        table.add_column(column, no_wrap=column != "founded on", overflow="fold")
    for generation in book.generations():
        for model in generation.models:
            found = book.for_model(model, Backend(backend), _today())
            table.add_row(model, generation.name, found.rule_date.isoformat(), _founded(found))
    _print(table)
    click.echo(f"\n{backend}; any other model is weighed with the dearest known figures, and said to be unknown")


@rules.command()
@click.argument("model")
@_backend_option
@click.option("--on", type=click.DateTime(["%Y-%m-%d"]), help="The rules as they stood on a day; today when left out.")
@_config_option
def show(model: str, backend: str, on: datetime | None, config_path: Path | None) -> None:
    """Show every figure in force for MODEL: when it holds, since when, how well founded, and on whose word."""
    from rich.table import Table

    book = _book(config_path)
    found = book.for_model(model, Backend(backend), on.date() if on else _today())
    click.echo(f"{found.model} on {backend} · {found.generation} · checked on {found.rule_date}")
    if found.note:
        click.echo(found.note if found.known else f"{found.note}{book.suggestion(model)}", err=not found.known)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("figure", "when", "is", "since", "confidence", "source"):
        table.add_column(column, overflow="fold", no_wrap=column in ("since", "confidence"))
    figures = in_force(found)
    for one in figures:
        table.add_row(*_show_row(one))
    _print(table)
    click.echo()
    sources = {**packaged_sources(), **book.generation(found.generation).sources}
    for line in _sources(figures, sources):
        click.echo(line)


@rules.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@_config_option
@click.pass_context
def check(ctx: click.Context, files: tuple[Path, ...], config_path: Path | None) -> None:
    """Check the packaged rules, the overlay of the settings and each of FILES; exit code 2 on a mistake."""
    found: dict[str, Sequence[str]] = {}
    generations: list[Generation] = []
    for path in (*(packaged_path(name) for name in packaged_names()), *_overlay(config_path), *files):
        try:
            generation = load_rules(path)
        except ConfigError as error:
            found[path.name] = error.figures.get("mistakes", [error.message])
            continue
        generations.append(generation)
        found[path.name] = (*mistakes(generation), *_incomplete(path))
    for name, lines in found.items():
        click.echo(f"{name}: {_count(len(lines))}")
        for line in lines:
            click.echo(f"  {line}", err=True)
    doubled = doubly_listed(generations[: len(packaged_names())])
    for line in doubled:
        click.echo(line, err=True)
    for line in filter(None, (stale(generation, _today()) for generation in generations)):
        click.echo(f"warning: {line}", err=True)
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
    from rich.table import Table

    book = _book(config_path)
    before, after = _side(old, new, book, Backend(backend)), _side(new, old, book, Backend(backend))
    for side in (before, after):
        if not side.known:
            click.echo(f"{side.note}{book.suggestion(side.resolved.asked)}", err=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("figure", "when", f"old: {old}", f"new: {new}"):
        table.add_column(column, overflow="fold")
    found = differences(before, after)
    for one in found:
        table.add_row(one.name, one.when, one.old or "—", one.new or "—")
    if found:
        _print(table)
    else:
        click.echo("every figure is the same")


def _book(config_path: Path | None) -> RuleBook:
    from weighlock.preflight import rule_book
    from weighlock.settings import load

    return rule_book(load(config_path))


def _overlay(config_path: Path | None) -> list[Path]:
    from weighlock.settings import load

    overlay = load(config_path).rules_overlay
    return [overlay] if overlay else []


def _today() -> date:
    return datetime.now(UTC).date()


def _print(table: object) -> None:
    from rich.console import Console

    Console(highlight=False).print(table)


def _founded(found: ModelRules) -> str:
    """`measured; text assumed`: what most of the default figures rest on, and which do not."""
    confidence = {one.name: one.entry.confidence for one in reversed(in_force(found)) if one.name in _MEDIA}
    usual = max(confidence.values(), key=list(confidence.values()).count)
    others = [f"{name} {rests_on}" for name, rests_on in confidence.items() if rests_on is not usual]
    return "; ".join((usual, *others))


def _count(lines: int) -> str:
    return {0: "no mistakes", 1: "1 mistake"}.get(lines, f"{lines} mistakes")


def _show_row(one: InForce) -> tuple[str, ...]:
    entry = one.entry
    words = "\n  ".join(filter(None, (in_words(entry), entry.note, entry.warning)))
    return one.name, one.when, words, entry.since.isoformat(), str(entry.confidence), " ".join(entry.sources)


def _sources(figures: Sequence[InForce], sources: Mapping[str, Mapping[str, object]]) -> list[str]:
    named = dict.fromkeys(key for one in figures for key in one.entry.sources)
    lines = []
    for key in named:
        source = sources.get(key, {})
        words = [str(source[part]) for part in ("title", "dated", "url") if part in source]
        lines.append(f"{key}: {' · '.join(words)}" if words else key)
    return lines


def _incomplete(path: Path) -> tuple[str, ...]:
    """What a file lacks once it lies over the packaged ones."""
    try:
        RuleBook.packaged().with_overlay(path)
    except ConfigError as error:
        return (error.message,)
    return ()


def _side(named: str, other: str, book: RuleBook, backend: Backend) -> ModelRules:
    path = Path(named)
    if path.suffix == ".toml" or path.is_file():
        under = book.with_overlay(path)
        listed = under.generation(under.overlays[-1].name).models
        model = listed[0] if Path(other).suffix == ".toml" or Path(other).is_file() else other
        return _of_day(model, under, backend)
    return _of_day(named, book, backend)


def _of_day(named: str, book: RuleBook, backend: Backend) -> ModelRules:
    dated = _DATED.fullmatch(named)
    if dated is None:
        return book.for_model(named, backend, _today())
    try:
        on = date.fromisoformat(dated["on"])
    except ValueError:
        raise click.BadParameter(f"{dated['on']} is no date") from None
    return book.for_model(dated["model"], backend, on)
