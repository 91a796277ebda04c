"""`weighlock check --compare`: the same files on several models and settings, as a matrix of tokens and USD."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from weighlock.cli.amounts import confidence_of, dollars_per_thousand, figure
from weighlock.cli.printable import printable
from weighlock.cli.render import print_json
from weighlock.cli.table import console
from weighlock.media.tokens import Confidence
from weighlock.planning.weigh import CostRange, Examined, Tally, by_modality, cost_of
from weighlock.report import SCHEMA, cost_dict, scale_dict
from weighlock.request import MediaResolution, Modality
from weighlock.rules import Controls
from weighlock.scales import Scales

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
    """Prints the matrix: a row a model, a column a setting, each cell the sum of all files that could be weighed.

    Nothing weighed prints no matrix, only the reasons.
    """
    rows = [(scale, [_cell(examined, scale, *setting) for setting in _settings(examined, scale)]) for scale in scales]
    match form:
        case "json":
            entries = [entry for row in rows for entry in _entries(*row)]
            print_json({"schema": SCHEMA, "compare": entries, "errors": _errors(examined)})
        case "jsonl":
            for row in rows:
                for entry in _entries(*row):
                    print_json({"schema": SCHEMA, **entry, "errors": _errors(examined)}, indent=None)
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
        fps = scale.fps / 2
        settings.append((f"fps {fps:g}", replace(asked, fps=fps)))
    return settings


def _cell(examined: Sequence[Examined], scale: Scales, setting: str, controls: Controls) -> Cell:
    parts = scale.parts(examined, controls)
    tokens = by_modality(parts)
    return Cell(
        setting=setting,
        tokens=tokens,
        cost=cost_of(tokens, scale.prices, output_tokens=scale.output_tokens),
        confidence=confidence_of(parts),
    )


def _errors(examined: Sequence[Examined]) -> list[dict[str, str]]:
    """The files that are in no figure."""
    return [{"source": o.label, "code": o.error.code, "message": o.error.message} for o in examined if o.error]


def _entries(scale: Scales, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    return [
        {
            **scale_dict(scale.scale),
            "setting": cell.setting,
            "tokens": {modality.value: asdict(tally) for modality, tally in cell.tokens.items()},
            "total": asdict(cell.total) if cell.tokens else None,
            "confidence": cell.confidence.value if cell.tokens else None,
            "cost_usd": cost_dict(cell.cost) if cell.tokens else None,
        }
        for cell in cells
    ]


def _csv(entries: Sequence[dict[str, Any]]) -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    bounds = ("tokens_low", "tokens_likely", "tokens_high")
    out.writerow(("model", "backend", "setting", *bounds, *(m.value.lower() for m in Modality), "cost_usd"))
    for entry in entries:
        by_modality = [entry["tokens"].get(m.value, {}).get("likely", "") for m in Modality]
        total = entry["total"] or dict.fromkeys(bounds, "")
        row = (entry["model"], entry["backend"], entry["setting"], *total.values())
        out.writerow((*row, *by_modality, (entry["cost_usd"] or {}).get("likely", "")))


def _table(examined: Sequence[Examined], rows: Sequence[tuple[Scales, Sequence[Cell]]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = console()
    weighed = sum(1 for one in examined if one.facts)
    if weighed:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("model", overflow="fold")
        for cell in rows[0][1]:
            table.add_column(cell.setting, justify="right", no_wrap=True)
        for scale, cells in rows:
            table.add_row(printable(scale.model), *(_in_words(cell) for cell in cells))
        out.print(table)
        files = f"{weighed} file{'s' * (weighed != 1)} together"
        legend = "low, medium, high: resolution of the request · ~ estimated, ≤ bound"
        backend = rows[0][0].backend.value
        out.print(Text(f"Tokens, and $ for 1,000 requests, of {files} on {backend} · {legend}", style="dim"))
    for one in examined:
        if one.error:
            out.print(Text(f"{printable(one.label)}: {one.error}", style="yellow"))


def _in_words(cell: Cell) -> str:
    dollars = dollars_per_thousand(cell.cost, cell.confidence)
    cost = "no price" if cell.cost is None else f"≤${dollars[1:]}" if dollars[0] == "≤" else f"${dollars}"
    return f"{figure(cell.total, cell.confidence)}\n{cost}"
