"""The table of `weighlock check REQUEST.json`: each turn and part, what was screened and why, and the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from weighlock.cli.printable import printable
from weighlock.cli.request_file import Loaded
from weighlock.cli.request_rows import Row, rows_of
from weighlock.cli.table import Sheet, shortened
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import Weighed
from weighlock.report import Report
from weighlock.scales import Scales
from weighlock.screening_report import numbered

_MOST_PROBLEMS = 12
_AS_TEXT = "≈ at the ratio of prose; base64 takes more"


class RequestSheet(Sheet):
    """One request on one scale."""

    legend = "~ estimated, ≤ bound · [n] as in contents[n].parts[n]"

    def __init__(self, scales: Scales, loaded: Loaded, report: Report, *, narrow: bool) -> None:
        super().__init__(scales, as_one=True, narrow=narrow)
        self.loaded, self.report = loaded, report
        screening = report.screening
        self.findings = screening.findings if screening else ()
        self.problems = screening.problems if screening else ()
        self.errors = screening.errors if screening else ()
        self.converted = {
            report.parts[index].examined.label
            for one, index in (numbered(screening) if screening else ())
            if index is not None and one.decision.convert
        }
        if any(one.hidden for one in self.findings):
            self.legend = f"{self.legend} · {_AS_TEXT}"
        self.title = f"{printable(loaded.label)} · {loaded.form_in_words} · {self.title}"
        self.add(report)

    def empty_table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("turn", no_wrap=True)
        table.add_column("part", overflow="fold", min_width=10)
        if self.narrow:
            table.add_column("is", overflow="fold", min_width=10)
        else:
            table.add_column("is", overflow="fold", min_width=10)
            table.add_column("size", overflow="fold", min_width=10)
        table.add_column("tokens\nas sent", justify="right", no_wrap=True)
        table.add_column("done", overflow="fold", min_width=12, ratio=1)
        return table

    def rows(self, report: Report) -> Iterator[tuple[str | Text, ...]]:
        for row in rows_of(self.loaded.request, report):
            yield self._cells(row)

    def _cells(self, row: Row) -> tuple[str | Text, ...]:
        found = Text(row.found)
        if row.labelled:
            found.append(f"{chr(10) if row.found else ''}labelled {row.labelled}", style="yellow")
        done = Text(printable(row.done), style=row.tone)
        if not self.narrow:
            return row.turn, row.part, found, row.size, row.tokens, done
        if row.size:
            found.append(f"{chr(10) if found.plain else ''}{row.size}")
        return row.turn, row.part, found, row.tokens, done

    def remark(self, part: Weighed) -> None:
        """Beyond what its row says."""
        refused_by_screening = {error.message for error in self.errors}
        words = [part.error.message] if part.error and part.error.message not in refused_by_screening else []
        refused = () if part.examined.label in self.converted else part.refused
        for one in (*words, *refused, *(anomaly.detail for anomaly in part.examined.anomalies), *part.notes):
            self.said(part.examined.label, one)

    def head(self) -> str:
        turns, media = len(self.loaded.request.turns), sum(one.is_sent for one in self.findings)
        return f"One request of {turns:,} turn{'s' * (turns != 1)}, {media:,} {'medium' if media == 1 else 'media'}"

    def words(self, decisions: Counter[Decision]) -> list[tuple[str, str]]:
        if not self.errors:
            return super().words(decisions)
        over = [one for one in super().words(decisions) if decisions[Decision.REJECT]]
        return [*over, ("cannot be sent as it is", "bold red")]

    def below(self) -> list[Text]:
        problems = [Text(printable(f"cannot be sent: {error.message}"), style="red") for error in self.problems]
        return [*shortened(problems, _MOST_PROBLEMS), *super().below()]


def sheets_of(
    loaded: Loaded, reports: Sequence[Report], scales: Sequence[Scales], *, narrow: bool
) -> list[RequestSheet]:
    """One sheet a model."""
    return [RequestSheet(scale, loaded, one, narrow=narrow) for scale, one in zip(scales, reports, strict=True)]
