"""`weighlock check --compare`: the same files on several models and settings, as a matrix of tokens and USD."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighlock.cli.render import print_json
from weighlock.cli.table import dollars_per_thousand, figure
from weighlock.media.tokens import Confidence
from weighlock.planning.weigh import CostRange, Examined, Tally, by_modality, cost_of, weigh
from weighlock.preflight import Scales
from weighlock.report import SCHEMA
from weighlock.request import MediaResolution, Modality
from weighlock.rules import Controls

_LEVELS = (MediaResolution.LOW, MediaResolution.MEDIUM, MediaResolution.HIGH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All files together on one model under one setting."""

    setting: str
    tokens: dict[Modality, Tally]
    cost: CostRange | None
    confidence: Confidence

    @property
    def total(self) -> Tally:
        return Tally.of(self.tokens.values())


def compare(examined: Sequence[Examined], scales: Sequence[Scales], form: str) -> None:
    """Prints the matrix: a row a model, a column a setting, each cell the sum of all files that could be weighed."""
    rows = [(scale, [_cell(examined, scale, *setting) for setting in _settings(examined, scale)]) for scale in scales]
    match form:
        case "json":
            print_json({"schema": SCHEMA, "compare": [entry for row in rows for entry in _entries(*row)]})
        case "jsonl":
            for row in rows:
                for entry in _entries(*row):
                    print_json(entry, indent=None)
        case "csv":
            _csv([entry for row in rows for entry in _entries(*row)])
        case _:
            _table(examined, rows)


def _settings(examined: Sequence[Examined], scale: Scales) -> list[tuple[str, Controls]]:
    """What the caller asked for first, then the request-wide levels, then half the frames where there is video."""
    asked = scale.controls
    settings = [("as asked" if asked != Controls() else "default", asked)]
    settings += [(level.value, replace(asked, media_resolution=level, part_resolution=None)) for level in _LEVELS]
    if any(one.modality is Modality.VIDEO for one in examined):
        fps = (asked.fps or 1.0) / 2
        settings.append((f"fps {fps:g}", replace(asked, fps=fps)))
    return settings


def _cell(examined: Sequence[Examined], scale: Scales, setting: str, controls: Controls) -> Cell:
    parts = [weigh(one, controls, scale.rules) for one in examined]
    tokens = by_modality(parts)
    found = {one.confidence for part in parts for one in part.tokens}
    return Cell(
        setting=setting,
        tokens=tokens,
        cost=cost_of(tokens, scale.prices, output_tokens=scale.output_tokens),
        confidence=next((level for level in reversed(Confidence) if level in found), Confidence.MEASURED),
    )


def _entries(scale: Scales, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    return [
        {
            "model": scale.model,
            "backend": scale.backend.value,
            "setting": cell.setting,
            "tokens": {m.value: {"low": t.low, "likely": t.likely, "high": t.high} for m, t in cell.tokens.items()},
            "total": {"low": cell.total.low, "likely": cell.total.likely, "high": cell.total.high},
            "confidence": cell.confidence.value,
            "cost_usd": f"{cell.cost.likely:f}" if cell.cost else None,
            "rule_date": scale.rules.rule_date.isoformat(),
        }
        for cell in cells
    ]


def _csv(entries: Sequence[dict[str, Any]]) -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("model", "backend", "setting", *(m.value.lower() for m in Modality), "total", "cost_usd"))
    for entry in entries:
        by_modality = [entry["tokens"].get(m.value, {}).get("likely", "") for m in Modality]
        row = (entry["model"], entry["backend"], entry["setting"])
        out.writerow((*row, *by_modality, entry["total"]["likely"], entry["cost_usd"] or ""))


def _table(examined: Sequence[Examined], rows: Sequence[tuple[Scales, Sequence[Cell]]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("model", overflow="fold")
    for cell in rows[0][1]:
        table.add_column(cell.setting, justify="right", no_wrap=True)
    for scale, cells in rows:
        table.add_row(
            scale.model,
            *(f"{figure(cell.total, cell.confidence)}\n${dollars_per_thousand(cell.cost)}" for cell in cells),
        )
    console.print(table)
    weighed = sum(1 for one in examined if one.facts)
    console.print(
        f"Tokens and $ per 1,000 for {weighed} file{'s' * (weighed != 1)} together on {rows[0][0].backend.value}"
        " · ~ estimated, ≤ bound",
        style="dim",
    )
    for one in examined:
        if one.error:
            console.print(Text(f"{one.label}: {one.error}", style="yellow"))
