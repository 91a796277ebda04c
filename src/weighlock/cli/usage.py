"""`weighlock usage`: who spent what, by the decision log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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

_BY = ("endpoint", "modality", "session", "day", "tenant", "model")


@dataclass(slots=True)
class Spent:
    """Of one group."""

    requests: int = 0
    refused: int = 0
    prompt: int = 0
    longest: int = 0
    """The longest prompt of all."""
    cached: int = 0
    output: int = 0
    resent: int = 0
    """Of the prompts, media that earlier turns had sent already."""
    usd: Decimal = Decimal(0)
    unpriced: int = 0
    estimated: int = 0
    modalities: Counter[str] = field(default_factory=Counter)

    @property
    def amplification(self) -> Decimal | None:
        """How many times over a session paid for its history: all its prompts, by the longest one."""
        return (Decimal(self.prompt) / self.longest).quantize(Decimal("0.01")) if self.longest else None


@click.command()
@click.option("--by", type=click.Choice(_BY), default="endpoint", show_default=True, help="What a row is.")
@click.option("--since", metavar="TIME", help="From when on: 12h, 7d, 2026-11-30. Default: all of the log.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.option("--log", type=click.Path(path_type=Path), help="A decision log. Default: observe.decision_log.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def usage(by: str, since: str | None, config: Path | None, log: Path | None, form: str) -> None:
    """Tell who spent what, as it was billed: by endpoint, modality as sent, session, day, tenant or model."""
    reading = Reading()
    groups = grouped(lines_of(log, load(config), since, reading), by)
    if form == "json":
        render.print_json({"by": by, "groups": {name: _as_dict(one) for name, one in groups.items()}})
    else:
        _print(groups, by)
    say_unread(reading)


def grouped(lines: Iterable[Mapping[str, Any]], by: str) -> dict[str, Spent]:
    """Sums of each group, the dearest first. By modality, a request counts in each of its modalities."""
    groups: dict[str, Spent] = {}
    for line in lines:
        billed = line.get("billed") or {}
        if by == "modality":
            for name, tokens in (billed.get("by_modality") or {}).items():
                one = groups.setdefault(str(name).lower(), Spent())
                one.requests, one.prompt = one.requests + 1, one.prompt + int(tokens)
            continue
        name = str(line["at"])[:10] if by == "day" else str(line.get(by) or "-")
        _add(groups.setdefault(name, Spent()), line, billed)
    return dict(sorted(groups.items(), key=lambda pair: (-pair[1].usd, -pair[1].prompt, pair[0])))


def _add(one: Spent, line: Mapping[str, Any], billed: Mapping[str, Any]) -> None:
    one.requests += 1
    one.refused += line.get("outcome") in ("refused", "failed")
    if not billed:
        return
    one.prompt += int(billed.get("prompt") or 0)
    one.longest = max(one.longest, int(billed.get("prompt") or 0))
    one.cached += int(billed.get("cached") or 0)
    one.output += int(billed.get("answer") or 0) + int(billed.get("thoughts") or 0)
    one.estimated += bool(billed.get("estimated"))
    if billed.get("usd") is None:
        one.unpriced += 1
    else:
        one.usd += Decimal(billed["usd"])
    one.modalities.update({str(name): int(tokens) for name, tokens in (billed.get("by_modality") or {}).items()})
    for part in line.get("parts") or ():
        if part.get("resent"):
            one.resent += sum(int(bounds[1]) for bounds in (part.get("after") or {}).values())


def _print(groups: Mapping[str, Spent], by: str) -> None:
    from rich.table import Table

    from weighlock.cli.figures import print_plain

    if not groups:
        click.echo("no requests in that time")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    heads = ["requests", "prompt tokens"]
    if by != "modality":
        heads = ["requests", "refused", "prompt tokens", "cached", "sent again", "answers", "USD"]
    if by == "session":
        heads.append("history ×")
    table.add_column(by, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right")
    for name, one in groups.items():
        figures: list[Any] = [one.requests, one.prompt]
        if by != "modality":
            figures = [one.requests, one.refused, one.prompt, one.cached, one.resent, one.output, None]
        cells = [
            dollars(one.usd) + (" +?" if one.unpriced else "") if each is None else f"{each:,}" for each in figures
        ]
        if by == "session":
            cells.append("-" if one.amplification is None else f"{one.amplification}")
        table.add_row(printable(name), *cells)
    print_plain(table)
    if estimated := sum(one.estimated for one in groups.values()):
        click.echo(f"{estimated:,} requests are charged as estimated: nobody said what they cost")


def _as_dict(one: Spent) -> dict[str, Any]:
    return {
        "requests": one.requests,
        "refused": one.refused,
        "prompt_tokens": one.prompt,
        "longest_prompt_tokens": one.longest,
        "cached_tokens": one.cached,
        "resent_tokens": one.resent,
        "output_tokens": one.output,
        "by_modality": dict(one.modalities),
        "usd": f"{one.usd:f}",
        "unpriced": one.unpriced,
        "estimated": one.estimated,
    }
