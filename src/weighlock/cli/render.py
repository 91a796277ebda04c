"""How reports leave the command: as a table for a person, or as JSON, JSON lines or CSV for a program."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from weighlock.planning.admit import Decision
from weighlock.planning.weigh import CostRange, Tally, Weighed, by_modality
from weighlock.report import SCHEMA, Report, part_dict, scale_dict
from weighlock.request import MediaPart, Modality
from weighlock.scales import Scales

Confinement = Callable[[], dict[str, Any] | None]


class Outcome:
    """What came of all requests together, for the exit code and the closing lines."""

    def __init__(self) -> None:
        self.decisions: Counter[Decision] = Counter()
        self.weighed = 0

    def add(self, reports: Sequence[Report]) -> None:
        self.decisions.update(report.verdict.decision for report in reports)
        self.weighed += sum(1 for part in reports[0].parts if part.tokens)


class Writer(Protocol):
    def add(self, reports: Sequence[Report]) -> None:
        """One request, weighed on every scale."""

    def close(self, outcome: Outcome) -> None:
        """No more requests."""


def writer(form: str, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement) -> Writer:
    match form:
        case "json":
            return _Json(scales, as_one=as_one, confinement=confinement)
        case "jsonl":
            return _JsonLines(as_one=as_one, confinement=confinement)
        case "csv":
            return _Csv(as_one=as_one)
        case _:
            from weighlock.cli.table import Tables

            return Tables(scales, as_one=as_one, confinement=confinement)


class _Json:
    """One document. Several models: a document each, under `models`."""

    def __init__(self, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement) -> None:
        self._scales = scales
        self._as_one = as_one
        self._confinement = confinement
        self._requests: list[Sequence[Report]] = []

    def add(self, reports: Sequence[Report]) -> None:
        self._requests.append(reports)

    def close(self, outcome: Outcome) -> None:
        documents = [self._document(at) for at in range(len(self._scales))]
        whole = documents[0] if len(documents) == 1 else {"schema": SCHEMA, "models": documents}
        print_json({**whole, "confinement": self._confinement()})

    def _document(self, at: int) -> dict[str, Any]:
        if self._as_one:
            return self._requests[0][at].as_dict()
        reports = [request[at] for request in self._requests]
        tokens: dict[Modality, Tally] = {}
        for report in reports:
            for modality, tally in report.tokens.items():
                tokens[modality] = tokens.get(modality, Tally()) + tally
        return {
            "schema": SCHEMA,
            **scale_dict(self._scales[at].scale),
            "parts": [_request_of_one(report) for report in reports],
            "total": asdict(Tally.of(tokens.values())),
            "tokens": {modality.value: asdict(tokens[modality]) for modality in Modality if modality in tokens},
            "cost_usd": sum_costs(reports),
            "verdict": worst(reports).value,
            "limits": [],
            "refusal": None,
            "weighed": "each",
        }


class _JsonLines:
    """A document a request, as soon as it is known."""

    def __init__(self, *, as_one: bool, confinement: Confinement) -> None:
        self._weighed = "together" if as_one else "each"
        self._confinement = confinement

    def add(self, reports: Sequence[Report]) -> None:
        for report in reports:
            limits = {"weighed": self._weighed, "confinement": self._confinement()}
            print_json({**report.as_dict(), **limits}, indent=None)

    def close(self, outcome: Outcome) -> None:
        pass


class _Csv:
    """A row a part; file by file, a row a request, its prompt text and expected answer included."""

    _FIELDS = (
        "source", "model", "backend", "declared_mime", "mime", "modality", "tokens_low", "tokens_likely",
        "tokens_high", "text", "image", "video", "audio", "document", "cost_usd", "verdict", "over", "rule_id",
        "confidence", "anomalies", "refused_by_service", "error",
    )  # fmt: skip

    def __init__(self, *, as_one: bool) -> None:
        self._as_one = as_one
        self._out = csv.writer(sys.stdout, lineterminator="\n")
        self._out.writerow(self._FIELDS)

    def add(self, reports: Sequence[Report]) -> None:
        for report in reports:
            if self._as_one:
                for part, cost in zip(report.parts, report.costs, strict=True):
                    self._out.writerow(self._row(report, part, by_modality([part]), cost))
            else:
                self._out.writerow(self._row(report, report.parts[0], report.tokens, report.cost))

    def close(self, outcome: Outcome) -> None:
        pass

    def _row(
        self, report: Report, weighed: Weighed, tokens: Mapping[Modality, Tally], cost: CostRange | None
    ) -> list[Any]:
        part, total = part_dict(weighed, cost), Tally.of(tokens.values())
        return [
            _harmless(part["source"]),
            report.scale.model,
            report.scale.backend.value,
            part["declared_mime"] or "",
            part["mime"] or "",
            part["modality"] or "",
            *((total.low, total.likely, total.high) if tokens else ("", "", "")),
            *(tokens[modality].likely if modality in tokens else "" for modality in Modality),
            (part["cost_usd"] or {}).get("likely", ""),
            report.verdict.decision.value,
            " ".join(check.name for check in report.verdict.over),
            part["rule_id"] or "",
            part["confidence"] or "",
            " ".join(anomaly["code"] for anomaly in part["anomalies"]),
            "; ".join(part["refused_by_service"]),
            part["error"]["code"] if part["error"] else "",
        ]


def _request_of_one(report: Report) -> dict[str, Any]:
    """A file with what its own request comes to: the prompt text and the expected answer are in the sums."""
    sums = report.sums_dict()
    return {
        **part_dict(report.parts[0], report.costs[0]),
        "request": {"total": sums["total"], "tokens": sums["tokens"], "cost_usd": sums["cost_usd"]},
        "verdict": sums["verdict"],
        "limits": sums["limits"],
        "refusal": sums["refusal"],
    }


def sum_costs(reports: Iterable[Report]) -> dict[str, str] | None:
    """The cost of several requests; `None` where none has a price."""
    costs = [report.cost for report in reports if report.cost is not None]
    if not costs:
        return None
    return {bound: f"{sum(getattr(cost, bound) for cost in costs):f}" for bound in ("low", "likely", "high")}


def worst(reports: Iterable[Report]) -> Decision:
    found = {report.verdict.decision for report in reports}
    return next((d for d in (Decision.REJECT, Decision.UNKNOWN) if d in found), Decision.ADMIT)


def _harmless(name: str) -> str:
    """A file called `=cmd()` must not become a formula in somebody's spreadsheet."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name


def print_json(value: dict[str, Any], *, indent: int | None = 2) -> None:
    # ASCII escapes keep a file name that is no UTF-8 from breaking the output.
    sys.stdout.write(json.dumps(value, indent=indent) + "\n")


def with_progress(parts: Iterator[MediaPart], *, wanted: bool) -> Iterator[MediaPart]:
    """Counts files on a terminal's standard error while they are handed on; silent anywhere else."""
    if not wanted or not sys.stderr.isatty():
        yield from parts
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("weighing"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("weighing", total=None)
        for part in parts:
            yield part
            progress.advance(task)
