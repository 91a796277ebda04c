"""`weighlock what-if`: what enforcing, or other settings, would have made of the requests of the past."""

from __future__ import annotations

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
from weighlock.whatif import Outlook, Sums, what_if


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
    known = (line for line in lines_of(log, settings, since, reading) if endpoint in (None, line.get("endpoint")))
    outlook = what_if(known, settings, rule_book(settings))
    if form == "json":
        render.print_json(_as_dict(outlook, reading))
    else:
        _print(outlook)
    say_unread(reading)


def _print(outlook: Outlook) -> None:
    from rich.table import Table

    from weighlock.cli.figures import print_plain

    if not outlook.endpoints:
        click.echo("no requests in that time")
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        heads = ("endpoint", "requests", "admitted", "made lighter", "refused", "no room", "tokens saved", "USD saved")
        for head in heads:
            table.add_column(head, justify="left" if head == "endpoint" else "right", overflow="fold")
        for name, sums in sorted(outlook.endpoints.items()):
            table.add_row(printable(name), *_row(sums))
        if len(outlook.endpoints) > 1:
            table.add_row("all", *_row(outlook.overall), style="bold")
        print_plain(table)
        click.echo("\nworst:" if outlook.worst() else "\nnothing would have changed")
        for one in outlook.worst():
            tokens = f"{one.tokens_before:,}" + (f" → {one.tokens_after:,}" if one.tokens_after else "") + " tokens"
            told = f"{one.at:%m-%d %H:%M} {one.endpoint} {one.outcome}: {tokens} ({one.why}) {one.id[:12]}"
            print_plain(printable(f"  {told}"))
    for reason, count in outlook.unreadable.items():
        click.echo(printable(f"{count:,} requests cannot be planned again: {reason}"))


def _row(sums: Sums) -> list[str]:
    told = sums.outcomes
    no_room = told["window"] + told["session"]
    return [
        *(f"{count:,}" for count in (sums.requests, told["admitted"], told["shaped"], told["refused"], no_room)),
        f"{sums.saved_tokens:,}",
        dollars(sums.saved_usd),
    ]


def _as_dict(outlook: Outlook, reading: Reading) -> dict[str, Any]:
    return {
        "endpoints": {
            name: {
                "requests": sums.requests,
                "outcomes": dict(sums.outcomes),
                "saved_tokens": sums.saved_tokens,
                "saved_usd": f"{sums.saved_usd:f}",
            }
            for name, sums in sorted(outlook.endpoints.items())
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
