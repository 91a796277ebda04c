"""`weighlock budget …`: how budgets over time stand, more for a while, and whether the books are right."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from weighlock.budgeting import budgets_for, store_of
from weighlock.budgets.audit import verify as differences
from weighlock.budgets.hold import MICRO_USD, MOST, PROMPT_TOKENS, REQUESTS, Grant, Standing, Store, micro_usd
from weighlock.budgets.windows import Budget, caps, counters
from weighlock.cli import render
from weighlock.cli.amounts import usd as dollars
from weighlock.cli.printable import printable
from weighlock.errors import ConfigError
from weighlock.holding import usd as in_usd
from weighlock.settings import Settings, load
from weighlock.settings.amounts import parse_seconds

_EXIT_WRONG = 1
_LONGEST_REASON = 200
_config = click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
_form = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_reason = click.option("--reason", required=True, help="For the journal: why, in a line.")


@click.group()
def budget() -> None:
    """How budgets over time stand, more for a while, and whether the books are right."""


@budget.command()
@click.argument("endpoint", required=False)
@click.option("--tenant", help="Its budgets as well.")
@_config
@_form
def show(endpoint: str | None, tenant: str | None, config: Path | None, form: str) -> None:
    """Show what is used, held and left in every window: of ENDPOINT, or of all."""
    settings = load(config)
    with _store(settings) as store:
        budgets = _windows(settings, endpoint, tenant)
        standings = store.standings(caps(budgets, store.now()))
    if form == "json":
        render.print_json({"reach": store.reach.value, "budgets": [_as_dict(one) for one in standings]})
        return
    if not standings:
        click.echo("no windows: set windows.day.cost_usd of an endpoint, or overall", err=True)
        return
    _print(standings)
    shared = {"process": "this process", "host": "this machine", "shared": "all that share the store"}
    click.echo(f"counted together: {shared[store.reach.value]}")


@budget.command()
@click.argument("endpoint")
@click.option("--usd", metavar="USD", help="Dollars more, in each of its USD windows.")
@click.option("--tokens", type=click.IntRange(1, MOST), help="Prompt tokens more.")
@click.option("--requests", type=click.IntRange(1, MOST), help="Requests more.")
@click.option("--for", "lasting", required=True, metavar="TIME", help="For how long: 30m, 6h, 2d.")
@_reason
@_config
def grant(
    endpoint: str,
    usd: str | None,
    tokens: int | None,
    requests: int | None,
    lasting: str,
    reason: str,
    config: Path | None,
) -> None:
    """Give ENDPOINT more for a while, on top of what its windows allow. It stands in the journal."""
    settings = load(config)
    scope = f"endpoint:{settings.endpoint(endpoint).name}"
    amounts = {MICRO_USD: _micro(usd), PROMPT_TOKENS: tokens, REQUESTS: requests}
    given = {metric: amount for metric, amount in amounts.items() if amount}
    if not given:
        raise click.UsageError("name what is given: --usd, --tokens or --requests")
    limited = {metric for window in settings.endpoint(endpoint).windows.values() for metric in window.limits}
    if missing := sorted(given.keys() - limited):
        raise ConfigError(f"{endpoint} has no window of {', '.join(missing)}: there is nothing to add it to")
    with _store(settings) as store:
        until = store.now() + timedelta(seconds=_lasting(lasting))
        for metric, amount in given.items():
            one = Grant(scope=scope, metric=metric, amount=amount, until=until, reason=_line(reason), by=_who())
            store.grant(one, uuid4().hex)
            click.echo(printable(f"{endpoint}: {_amount(metric, amount)} more until {until:%Y-%m-%d %H:%M} UTC"))


@budget.command()
@click.argument("endpoint")
@click.option("--window", help="Only this one: day, month, rolling 3600s. Default: all of the endpoint's.")
@_reason
@_config
def reset(endpoint: str, window: str | None, reason: str, config: Path | None) -> None:
    """Take what ENDPOINT used in its windows now for nothing. What is held stays held; the journal keeps it all."""
    settings = load(config)
    known = settings.endpoint(endpoint)
    names = {one.name for one in known.windows.values()}
    if window is not None and window not in names:
        raise click.UsageError(f"{endpoint} has no window {window}; it has {', '.join(sorted(names)) or 'none'}")
    with _store(settings) as store:
        budgets = [
            one
            for one in budgets_for(settings, endpoint)
            if one.scope == f"endpoint:{known.name}" and window in (None, one.window.name)
        ]
        keys = [key for cap in caps(budgets, store.now()) for key in cap.counters] or [
            one.key for one in counters(budgets, store.now())
        ]
        note = {"endpoint": known.name, "reason": _line(reason), "by": _who()}
        spent = store.reset(list(dict.fromkeys(keys)), uuid4().hex, note)
    told = ", ".join(_amount(metric, amount) for metric, amount in spent.items() if amount)
    click.echo(printable(f"{endpoint}: {told or 'nothing'} no longer counted"))


@budget.command()
@click.option("--rebuild", is_flag=True, help="Counters anew from the journal, where they differ.")
@_config
def verify(rebuild: bool, config: Path | None) -> None:
    """Check that every counter is the sum of its rows in the journal. Exit code 1 where one is not."""
    with _store(load(config)) as store:
        found = differences(store)
        if found and rebuild:
            store.rebuild()
        counted = len(store.counters())
    for one in found:
        told = [
            f"{kind} {metric} {amount:+,}"
            for kind in ("spent", "held")
            for metric, amount in getattr(one, kind).items()
        ]
        click.echo(printable(f"{one.key}: {', '.join(told)} against the journal"))
    if not found:
        click.echo(f"{counted:,} counters, each the sum of its rows")
    elif rebuild:
        click.echo("rebuilt from the journal")
    else:
        click.echo("put right with --rebuild", err=True)
        sys.exit(_EXIT_WRONG)


@contextmanager
def _store(settings: Settings) -> Iterator[Store]:
    with closing(store_of(settings)) as store:
        yield store


def _windows(settings: Settings, endpoint: str | None, tenant: str | None) -> list[Budget]:
    names = [settings.endpoint(endpoint).name] if endpoint else ["default", *settings.endpoints]
    found = [one for name in names for one in budgets_for(settings, None if name == "default" else name, tenant)]
    return list({(one.scope, one.window.name): one for one in found}.values())


def _print(standings: Sequence[Standing]) -> None:
    from rich.table import Table

    from weighlock.cli.figures import print_plain

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("scope", "window", "of", "used", "held", "left", "limit", "until (UTC)"):
        right = column in ("used", "held", "left", "limit")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for one in standings:
        cap = one.cap
        limit = _figure(cap.metric, cap.limit) + (f" +{_figure(cap.metric, one.granted)}" if one.granted else "")
        until = "" if cap.ends_at is None else f"{cap.ends_at:%m-%d %H:%M}"
        figures = [_figure(cap.metric, amount) for amount in (one.spent, one.held, one.left)]
        table.add_row(printable(cap.scope), cap.window, _name(cap.metric), *figures, limit, until)
    print_plain(table)


def _as_dict(one: Standing) -> dict[str, Any]:
    cap = one.cap
    return {
        "scope": cap.scope,
        "window": cap.window,
        "metric": cap.metric,
        "used": one.spent,
        "held": one.held,
        "left": one.left,
        "limit": cap.limit,
        "granted": one.granted,
        "warns": one.warns,
        "ends_at": cap.ends_at and cap.ends_at.isoformat(),
    }


def _name(metric: str) -> str:
    return "USD" if metric == MICRO_USD else metric.replace("_", " ").removeprefix("tokens.").lower()


def _figure(metric: str, amount: int) -> str:
    return dollars(Decimal(amount) / 1_000_000) if metric == MICRO_USD else f"{amount:,}"


def _amount(metric: str, amount: int) -> str:
    return _figure(metric, amount) if metric == MICRO_USD else f"{_figure(metric, amount)} {_name(metric)}"


def _micro(words: str | None) -> int | None:
    if words is None:
        return None
    try:
        amount = Decimal(words.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or not 0 < amount <= in_usd(MOST):
        raise click.BadParameter(f"{words!r} is no amount of USD", param_hint="--usd")
    return micro_usd(amount, up=False)


def _lasting(words: str) -> float:
    try:
        seconds = parse_seconds(words)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 366 * 86_400:
        raise click.BadParameter(f"{words!r} is no time up to a year; write 30m, 6h or 2d", param_hint="--for")
    return seconds


def _line(reason: str) -> str:
    line = " ".join(reason.split())[:_LONGEST_REASON]
    if not line:
        raise click.BadParameter("say why", param_hint="--reason")
    return line


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
