"""`weighlock check` where requests were named: each is weighed by itself, and so are the files beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from weighlock.cli import render
from weighlock.cli.request_file import Broken, Loaded, say_broken
from weighlock.errors import InputError
from weighlock.report import SCHEMA, Report
from weighlock.scales import Asked, Scales
from weighlock.weigher import Weigher

WeighFiles = Callable[[render.Writer, render.Outcome], None]
"""Weighs the files beside the requests, and closes the writer."""


class Requests:
    """Weighs requests as they come and keeps none of them. `alone`: one request is all that was named."""

    def __init__(
        self,
        weigher: Weigher,
        asked: Asked,
        models: Sequence[str | None],
        *,
        text: str | None,
        form: str,
        alone: bool,
    ) -> None:
        self.outcome = render.Outcome()
        self._preflight, self._asked, self._models, self._text = weigher, asked, models, text
        self._out = _output(form, weigher, alone=alone)

    def add(self, one: Loaded | Broken) -> None:
        """Weighs a request on every model, or tells why it cannot be."""
        if isinstance(one, Loaded):
            one = self._weigh(one)
        if isinstance(one, Broken):
            self.outcome.cannot_be_sent += 1
            say_broken(one)
            self._out.broken(one)

    def _weigh(self, loaded: Loaded) -> Loaded | Broken:
        scales: list[Scales] = []
        reports: list[Report] = []
        for name in self._models:
            asked = replace(self._asked, model=name or loaded.request.model)
            scale = self._preflight.scales(asked)
            try:
                report = self._preflight.weigh_request(loaded.request, asked, text=self._text)
            except InputError as error:
                return Broken(label=loaded.label, error=error)
            scales.append(scale)
            reports.append(report)
        self.outcome.add(reports)
        self._out.request(loaded, reports, scales)
        return loaded

    def close(self, files: WeighFiles | None, scales: Sequence[Scales], *, as_one: bool) -> render.Outcome:
        """What came of all of it, the files that were named beside the requests too."""
        if files is not None:
            files(self._out.files(scales, as_one=as_one), self.outcome)
        self._out.close()
        return self.outcome


class _Output(Protocol):
    def request(self, loaded: Loaded, reports: Sequence[Report], scales: Sequence[Scales]) -> None:
        """A request, weighed on every scale."""

    def broken(self, broken: Broken) -> None:
        """A file that is no request; standard error has said so."""

    def files(self, scales: Sequence[Scales], *, as_one: bool) -> render.Writer:
        """Where the files beside the requests go."""

    def close(self) -> None:
        """No more of anything."""


def _output(form: str, weigher: Weigher, *, alone: bool) -> _Output:
    match form:
        case "json":
            return _Json(weigher.confinement, alone=alone)
        case "jsonl":
            return _Lines(weigher.confinement)
        case "csv":
            return _Csv()
        case _:
            return _Tables(weigher.confinement, alone=alone)


class _Tables:
    def __init__(self, confinement: render.Confinement, *, alone: bool) -> None:
        from weighlock.cli.table import WIDE, console

        self._console = console()
        self._narrow = self._console.width < WIDE
        self._confinement, self._alone, self._told = confinement, alone, False

    def request(self, loaded: Loaded, reports: Sequence[Report], scales: Sequence[Scales]) -> None:
        from weighlock.cli.request_table import sheets_of
        from weighlock.cli.table import print_confinement, print_sheet

        for sheet in sheets_of(loaded, reports, scales, narrow=self._narrow):
            self._heading(sheet.title)
            print_sheet(self._console, sheet)
        print_confinement(self._console, next((one.confinement for one in reports if one.confinement), None))

    def _heading(self, words: str) -> None:
        from rich.text import Text

        if self._told:
            self._console.print()
        self._console.print(Text(words, style="bold"))
        self._told = True

    def broken(self, broken: Broken) -> None:
        pass

    def files(self, scales: Sequence[Scales], *, as_one: bool) -> render.Writer:
        self._heading("files")
        return render.writer("table", scales, as_one=as_one, confinement=self._confinement)

    def close(self) -> None:
        pass


class _Json:
    """One document; several requests, or files beside them: a document each, under `requests`."""

    def __init__(self, confinement: render.Confinement, *, alone: bool) -> None:
        self._confinement, self._alone = confinement, alone
        self._documents: list[dict[str, Any]] = []
        self._files: render.Json | None = None

    def request(self, loaded: Loaded, reports: Sequence[Report], scales: Sequence[Scales]) -> None:
        head = _head(loaded)
        if len(reports) == 1:
            self._documents.append({**head, **reports[0].as_dict()})
        else:
            self._documents.append({**head, "models": [report.as_dict() for report in reports]})

    def broken(self, broken: Broken) -> None:
        self._documents.append(_broken(broken))

    def files(self, scales: Sequence[Scales], *, as_one: bool) -> render.Writer:
        self._files = render.Json(scales, as_one=as_one, confinement=self._confinement, whole=True)
        return self._files

    def close(self) -> None:
        if self._files is not None:
            self._documents.append(self._files.document())
        whole = self._documents[0] if self._alone else {"schema": SCHEMA, "requests": self._documents}
        render.print_json(whole)


class _Lines:
    """A document a request and model, as soon as it is known."""

    def __init__(self, confinement: render.Confinement) -> None:
        self._confinement = confinement

    def request(self, loaded: Loaded, reports: Sequence[Report], scales: Sequence[Scales]) -> None:
        for report in reports:
            render.print_json({**_head(loaded), **report.as_dict()}, indent=None)

    def broken(self, broken: Broken) -> None:
        render.print_json(_broken(broken), indent=None)

    def files(self, scales: Sequence[Scales], *, as_one: bool) -> render.Writer:
        return render.JsonLines(as_one=as_one, confinement=self._confinement)

    def close(self) -> None:
        pass


class _Csv:
    def __init__(self) -> None:
        self._out = render.Csv(as_one=True, screened=True)

    def request(self, loaded: Loaded, reports: Sequence[Report], scales: Sequence[Scales]) -> None:
        self._out.add_request(loaded.label, reports)

    def broken(self, broken: Broken) -> None:
        self._out.add_broken(broken.label, broken.error)

    def files(self, scales: Sequence[Scales], *, as_one: bool) -> render.Writer:
        self._out.as_one = as_one
        return self._out

    def close(self) -> None:
        pass


def _head(loaded: Loaded) -> dict[str, Any]:
    return {"schema": SCHEMA, "source": loaded.label, "format": loaded.form}


def _broken(broken: Broken) -> dict[str, Any]:
    error = broken.error
    told = {"code": error.code, "message": error.message, "place": error.figures.get("place") or None}
    return {"schema": SCHEMA, "source": broken.label, "error": told}
