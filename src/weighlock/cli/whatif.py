"""`weighlock what-if`: what enforcing, or other settings, would have made of the requests of the past."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from weighlock.cli import render
from weighlock.cli.amounts import usd as dollars
from weighlock.cli.decisions import lines_of, say_unread
from weighlock.cli.printable import printable
from weighlock.observe.decision_log import Reading
from weighlock.settings import load
from weighlock.weigher import rule_book
from weighlock.whatif import Case, Outlook, what_if


@click.command("what-if")
@click.option("--since", metavar="TIME", help="From when on: 12h, 7d, 2026-11-30. Default: all of the log.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings to try. Default: those in force.")
@click.option("--log", type=click.Path(path_type=Path), help="A decision log. Default: observe.decision_log.")
@click.option("--endpoint", "-e", help="Only this one's requests.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def whatif(since: str | None, config: Path | None, log: Path | None, endpoint: str | None, form: str) -> None:
    """Plan the requests of the decision log once more, as if these settings had been enforced.

    Limits, levers, windows and sessions run through in order of time; the ten worst cases are named. Made from figures
    alone: no medium is read, nothing is sent.
    """
    settings, reading = load(config), Reading()
    known = [line for line in lines_of(log, settings, since, reading) if endpoint in (None, line.get("endpoint"))]
    outlook = what_if(known, settings, rule_book(settings))
    if form == "json":
        render.print_json(_as_dict(outlook, reading))
    else:
        _print(outlook)
    say_unread(reading)


def _print(outlook: Outlook) -> None:
    from rich.table import Table

    from weighlock.cli.figures import print_plain

    if not outlook.cases:
        click.echo("no requests in that time")
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        heads = ("endpoint", "requests", "admitted", "made lighter", "refused", "no room", "tokens saved", "USD saved")
        for head in heads:
            table.add_column(head, justify="left" if head == "endpoint" else "right", overflow="fold")
        for name, cases in _by_endpoint(outlook).items():
            table.add_row(printable(name), *_row(cases))
        if len(_by_endpoint(outlook)) > 1:
            table.add_row("all", *_row(outlook.cases), style="bold")
        print_plain(table)
        click.echo("\nworst:" if outlook.worst() else "\nnothing would have changed")
        for one in outlook.worst():
            tokens = f"{one.tokens_before:,}" + (f" → {one.tokens_after:,}" if one.tokens_after else "") + " tokens"
            told = f"{one.at:%m-%d %H:%M} {one.endpoint} {one.outcome}: {tokens} ({one.why}) {one.id[:12]}"
            print_plain(printable(f"  {told}"))
    for reason, count in outlook.unreadable.items():
        click.echo(printable(f"{count:,} requests cannot be planned again: {reason}"))


def _by_endpoint(outlook: Outlook) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for one in outlook.cases:
        found.setdefault(one.endpoint, []).append(one)
    return dict(sorted(found.items()))


def _row(cases: list[Case]) -> list[str]:
    told = Counter(one.outcome for one in cases)
    no_room = told["window"] + told["session"]
    saved = sum((one.saved_usd for one in cases), Decimal(0))
    return [
        *(f"{count:,}" for count in (len(cases), told["admitted"], told["shaped"], told["refused"], no_room)),
        f"{sum(one.saved_tokens for one in cases):,}",
        dollars(saved),
    ]


def _as_dict(outlook: Outlook, reading: Reading) -> dict[str, Any]:
    return {
        "endpoints": {
            name: {
                "requests": len(cases),
                "outcomes": dict(Counter(one.outcome for one in cases)),
                "saved_tokens": sum(one.saved_tokens for one in cases),
                "saved_usd": f"{sum((one.saved_usd for one in cases), Decimal(0)):f}",
            }
            for name, cases in _by_endpoint(outlook).items()
        },
        "worst": [
            {
                "id": one.id,
                "at": one.at.isoformat(),
                "endpoint": one.endpoint,
                "outcome": one.outcome,
                "why": one.why,
                "tokens_before": one.tokens_before,
                "tokens_after": one.tokens_after,
            }
            for one in outlook.worst()
        ],
        "not_planned": dict(outlook.unreadable),
        "lines": {"read": reading.lines, "broken": reading.broken, "newer": reading.newer},
    }
