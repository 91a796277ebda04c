"""How reports leave the command: as a table for a person, or as JSON, JSON lines or CSV for a program."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from weighlock.cli.printable import printable
from weighlock.errors import WeighlockError
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import CostRange, Tally, Weighed, by_modality
from weighlock.report import SCHEMA, Report, Scale, cost_dict, part_dict, scale_dict
from weighlock.request import MediaPart, Modality
from weighlock.scales import Scales

Confinement = Callable[[], dict[str, Any] | None]


class Outcome:
    """What came of all requests together, for the exit code and the closing lines."""

    def __init__(self) -> None:
        self.decisions: Counter[Decision] = Counter()
        self.weighed = 0
        self.cannot_be_sent = 0
        """Requests that are broken, or that screening found unfit to be sent."""

    def add(self, reports: Sequence[Report]) -> None:
        self.decisions.update(report.verdict.decision for report in reports)
        self.weighed += sum(1 for part in reports[0].parts if part.tokens)
        self.cannot_be_sent += any(report.screening is not None and report.screening.errors for report in reports)


class Writer(Protocol):
    def add(self, reports: Sequence[Report]) -> None:
        """One request, weighed on every scale."""

    def close(self, outcome: Outcome) -> None:
        """No more requests."""


def writer(form: str, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement) -> Writer:
    match form:
        case "json":
            return Json(scales, as_one=as_one, confinement=confinement)
        case "jsonl":
            return JsonLines(as_one=as_one, confinement=confinement)
        case "csv":
            return Csv(as_one=as_one)
        case _:
            from weighlock.cli.table import Tables

            return Tables(scales, as_one=as_one, confinement=confinement)


class Json:
    """One document. Several models: a document each, under `models`.

    File by file, parts are written as they come and only sums are kept, so that memory does not grow with a folder;
    with several models the written parts wait for their turn. `whole=True` writes nothing: `document` has it all.
    """

    def __init__(
        self, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement, whole: bool = False
    ) -> None:
        self._scales = scales
        self._as_one = as_one
        self._confinement = confinement
        self._whole: Sequence[Report] = ()
        self._folders = [_Folder(one.scale) for one in scales]
        self._whole_only = whole
        self._streams = not as_one and len(scales) == 1 and not whole
        if self._streams:
            sys.stdout.write(self._folders[0].opening())

    def add(self, reports: Sequence[Report]) -> None:
        if self._as_one:
            self._whole = reports
            return
        for folder, report in zip(self._folders, reports, strict=True):
            folder.add(report)
            if self._streams:
                sys.stdout.write(folder.take())

    def close(self, outcome: Outcome) -> None:
        if self._streams:
            sys.stdout.write(self._folders[0].closing(self._confinement()))
        elif not self._whole_only:
            print_json(self.document())

    def document(self) -> dict[str, Any]:
        """All of it, once there are no more requests."""
        limits = {"confinement": self._confinement()}
        documents: list[Report | _Folder] = [*self._whole] if self._as_one else [*self._folders]
        dumped = [{**one.as_dict(), **limits} for one in documents]
        return dumped[0] if len(dumped) == 1 else {"schema": SCHEMA, "models": dumped}


class _Folder:
    """A document of many requests in the making."""

    def __init__(self, scale: Scale) -> None:
        self._head = {"schema": SCHEMA, **scale_dict(scale)}
        self._parts: list[str] = []
        self._count = 0
        self._tokens: dict[Modality, Tally] = {}
        self._cost: CostRange | None = None
        self._decisions: set[Decision] = set()

    def add(self, report: Report) -> None:
        self._parts.append(json.dumps(_request_of_one(report)))
        self._count += 1
        for modality, tally in report.tokens.items():
            self._tokens[modality] = self._tokens.get(modality, Tally()) + tally
        if report.cost is not None:
            self._cost = report.cost if self._cost is None else self._cost + report.cost
        self._decisions.add(report.verdict.decision)

    def opening(self) -> str:
        return json.dumps(self._head, indent=2)[:-2] + ',\n  "parts": ['

    def take(self) -> str:
        """The parts added since the last time, as they stand in the document."""
        taken = "".join(f"{',' if self._count > 1 else ''}\n    {part}" for part in self._parts)
        self._parts.clear()
        return taken

    def closing(self, confinement: dict[str, Any] | None) -> str:
        return "\n  ],\n" + json.dumps({**self._sums(), "confinement": confinement}, indent=2)[2:] + "\n"

    def as_dict(self) -> dict[str, Any]:
        return {**self._head, "parts": [json.loads(part) for part in self._parts], **self._sums()}

    def _sums(self) -> dict[str, Any]:
        worst = (d for d in (Decision.REJECT, Decision.UNKNOWN) if d in self._decisions)
        return {
            "total": asdict(Tally.of(self._tokens.values())) if self._tokens else None,
            "tokens": {m.value: asdict(self._tokens[m]) for m in Modality if m in self._tokens},
            "cost_usd": cost_dict(self._cost),
            "verdict": next(worst, Decision.ADMIT).value,
            "limits": [],
            "refusal": None,
            "weighed": "each",
        }


class JsonLines:
    """A document a request, as soon as it is known."""

    def __init__(self, *, as_one: bool, confinement: Confinement) -> None:
        self._weighed = "together" if as_one else "each"
        self._confinement = confinement

    def add(self, reports: Sequence[Report]) -> None:
        for report in reports:
            probed = any(part.examined.probed for part in report.parts)
            limits = {"weighed": self._weighed, "confinement": self._confinement() if probed else None}
            print_json({**report.as_dict(), **limits}, indent=None)

    def close(self, outcome: Outcome) -> None:
        pass


class Csv:
    """A row a part; file by file, a row a request, its prompt text and expected answer included."""

    _FIELDS = (
        "source", "model", "backend", "declared_mime", "mime", "modality", "tokens_low", "tokens_likely",
        "tokens_high", "text", "image", "video", "audio", "document", "cost_usd", "verdict", "over", "rule_id",
        "confidence", "anomalies", "refused_by_service", "error",
    )  # fmt: skip
    _SCREENED = ("request", "place", "action", "code", "reason")

    def __init__(self, *, as_one: bool, screened: bool = False) -> None:
        """`screened` adds the columns of `add_request`."""
        self.as_one = as_one
        self._blank = ("",) * len(self._SCREENED) if screened else ()
        self._out = csv.writer(sys.stdout, lineterminator="\n")
        self._write((*self._FIELDS, *(self._SCREENED if screened else ())))

    def add(self, reports: Sequence[Report]) -> None:
        for report in reports:
            if self.as_one:
                for part, cost in zip(report.parts, report.costs, strict=True):
                    self._write((*self._row(report, part, by_modality([part]), cost), *self._blank))
            else:
                self._write((*self._row(report, report.parts[0], report.tokens, report.cost), *self._blank))

    def add_request(self, label: str, reports: Sequence[Report]) -> None:
        """A row a medium, sent or not; then one a text, a repair and a problem."""
        for report in reports:
            told = (screening := report.as_dict()["screening"])["findings"]
            by_part = {one["part"]: one for one in told if one["part"] is not None}
            for index, (part, cost) in enumerate(zip(report.parts, report.costs, strict=True)):
                row = self._row(report, part, by_modality([part]), cost)
                self._write((*row, *self._said(label, by_part.get(index, {}))))
            for one in told:
                if one["part"] is None:
                    self._write((*self._untold(report, one), *self._said(label, one)))
            for one in screening["changes"]:
                self._write((*self._untold(report, {}), *self._said(label, one)))
            for one in screening["problems"]:
                said = {"place": one["place"], "reason": one["message"]}
                self._write((*self._untold(report, {"error": one}), *self._said(label, said)))

    def add_broken(self, label: str, error: WeighlockError) -> None:
        """A file that is no request."""
        known = {"source": label, "verdict": Decision.UNKNOWN.value, "error": error.code}
        said = {"place": error.figures.get("place"), "reason": error.message}
        self._write((*(known.get(name, "") for name in self._FIELDS), *self._said(label, said)))

    def _write(self, row: Iterable[Any]) -> None:
        self._out.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in row])

    def _untold(self, report: Report, one: Mapping[str, Any]) -> list[Any]:
        """What is no part of what would be sent: without figures."""
        known = {
            "source": one.get("place", "the request"),
            "model": report.scale.model,
            "backend": report.scale.backend.value,
            "declared_mime": one.get("declared_mime") or "",
            "mime": one.get("mime") or "",
            "verdict": report.verdict.decision.value,
            "error": (one.get("error") or {}).get("code", ""),
        }
        return [known.get(name, "") for name in self._FIELDS]

    def _said(self, label: str, one: Mapping[str, Any]) -> list[str]:
        said = {**one, "request": label}
        return [str(said.get(name) or "") for name in self._SCREENED]

    def close(self, outcome: Outcome) -> None:
        pass

    def _row(
        self, report: Report, weighed: Weighed, tokens: Mapping[Modality, Tally], cost: CostRange | None
    ) -> list[Any]:
        part, total = part_dict(weighed, cost), Tally.of(tokens.values())
        return [
            part["source"],
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
            "; ".join((*part["refused_by_service"], *report.refused)),
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
        "refusal": report.refusal,
        "refused_by_service": [*report.parts[0].refused, *report.refused],
    }


def _harmless(name: str) -> str:
    """A file called `=cmd()` must not become a formula in somebody's spreadsheet, nor an escape code one on screen."""
    shown = printable(name)
    return f"'{shown}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else shown


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
