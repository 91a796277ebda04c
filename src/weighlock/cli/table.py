"""The table of `weighlock check`: what each file is and costs, the verdict, and under it the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from weighlock.cli.amounts import (
    confidence_of,
    dollars,
    dollars_per_thousand,
    marked_by_modality,
    sum_in_words,
    tokens_in_words,
)
from weighlock.cli.printable import printable
from weighlock.cli.render import Confinement, Outcome
from weighlock.errors import MimeMismatch
from weighlock.media.tokens import Confidence, weakest
from weighlock.planning.admit import Decision, LimitCheck
from weighlock.planning.weigh import CostRange, Tally, Weighed
from weighlock.report import Report, Scale, facts_in_words, settings_in_words
from weighlock.request import Modality
from weighlock.scales import Scales

_STYLE = {Decision.ADMIT: "green", Decision.REJECT: "bold red", Decision.UNKNOWN: "yellow"}
_WORD = {Decision.ADMIT: "admit", Decision.REJECT: "reject", Decision.UNKNOWN: "unreadable"}
WIDE = 120
_MOST_REFUSALS, _MOST_REMARKS, _MOST_NAMES = 5, 12, 3


class Tables:
    """One table a scale, printed when all requests are in. Keeps the lines to print and the sums, not the reports."""

    def __init__(self, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement) -> None:
        self._console = console()
        narrow = self._console.width < WIDE
        self._sheets = [Sheet(one, as_one=as_one, narrow=narrow) for one in scales]
        self._confinement = confinement

    def add(self, reports: Sequence[Report]) -> None:
        for sheet, report in zip(self._sheets, reports, strict=True):
            sheet.add(report)

    def close(self, outcome: Outcome) -> None:
        for at, sheet in enumerate(self._sheets):
            if len(self._sheets) > 1:
                self._console.print(Text(f"{'' if at == 0 else chr(10)}{printable(sheet.title)}", style="bold"))
            print_sheet(self._console, sheet)
        print_confinement(self._console, self._confinement())


class Trimmed:
    """What is printed, without the blanks that fill its lines up."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._inner, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                text, style, control = line.pop()
                yield from (*line, Segment(text.rstrip(), style, control))
            yield Segment.line()


def print_all(out: Console, renderables: Iterable[RenderableType]) -> None:
    for one in renderables:
        out.print(Trimmed(one), end="")


def print_sheet(out: Console, sheet: Sheet) -> None:
    print_all(out, [sheet.table, *sheet.below()])


def print_confinement(out: Console, limits: Mapping[str, Any] | None) -> None:
    """Which limits did not hold while a codec looked at the media."""
    if limits and limits["missing"]:
        missing = ", ".join(limits["missing"])
        print_all(out, [Text(f"Probed without: {missing} (see weighlock doctor)", style="yellow")])


class Remarks:
    """Each thing to say once, with the first few files it is about."""

    def __init__(self) -> None:
        self._labels: dict[str, dict[str, None]] = {}

    def add(self, label: str, words: str) -> None:
        self._labels.setdefault(words, {})[label] = None

    def lines(self) -> list[Text]:
        told = [
            Text(printable(f"{self._of(labels)}: {words}"), style="yellow") for words, labels in self._labels.items()
        ]
        return shortened(told, _MOST_REMARKS)

    @staticmethod
    def _of(labels: Mapping[str, None]) -> str:
        more = len(labels) - _MOST_NAMES
        return f"{', '.join([*labels][:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''}"


class Sheet:
    """A table in the making, and what stands under it."""

    legend = "~ estimated, ≤ bound · $ per 1,000 requests"

    def __init__(self, scales: Scales, *, as_one: bool, narrow: bool) -> None:
        self.scale = scales.scale
        self._as_one = as_one
        self.narrow = narrow
        self.title = f"{scales.model} on {scales.backend.value}"
        self.table = self.empty_table()
        self._sums: dict[Modality, tuple[Tally, Confidence]] = {}
        self._dollars: CostRange | None = None
        self._decisions: Counter[Decision] = Counter()
        self._files = self._not_taken = 0
        self._refusals: dict[str, None] = {}
        self._remarks = Remarks()

    def empty_table(self) -> Table:
        return _empty_table()

    def add(self, report: Report) -> None:
        for row in self.rows(report):
            self.table.add_row(*row)
        for modality, tally, confidence in marked_by_modality(report.parts):
            before, weakest_before = self._sums.get(modality, (Tally(), Confidence.MEASURED))
            self._sums[modality] = (before + tally, weakest((weakest_before, confidence)))
        if report.cost is not None:
            self._dollars = report.cost if self._dollars is None else self._dollars + report.cost
        self._decisions[report.verdict.decision] += 1
        self._files += len(report.parts) if self._as_one else 1
        self._not_taken += sum(1 for part in report.parts if part.refused) or bool(report.refused)
        if refusal := report.refusal:
            self._refusals[printable(refusal)] = None
        for part in report.parts:
            self.remark(part)
        for words in report.refused:
            self.said("the request" if self._as_one else report.parts[0].examined.label, words)

    def rows(self, report: Report) -> Iterator[tuple[str | Text, ...]]:
        if not self._as_one:  # the row is the request: its prompt text and expected answer are in it
            figures = tokens_in_words(report.parts), dollars_per_thousand(report.cost, confidence_of(report.parts))
            part = report.parts[0]
            yield (*_about(part, narrow=self.narrow), *figures, _verdict(part, report, as_one=False))
            return
        worst = confidence_of(report.parts)
        for part, cost in zip(report.parts, report.costs, strict=True):
            figures = tokens_in_words([part], worst), dollars_per_thousand(cost, worst)
            yield (*_about(part, narrow=self.narrow), *figures, _verdict(part, report, as_one=True))

    def remark(self, part: Weighed) -> None:
        words = [part.error.message] if part.error else []
        for one in (*words, *part.refused, *(anomaly.detail for anomaly in part.examined.anomalies), *part.notes):
            self.said(part.examined.label, one)

    def said(self, label: str, remark: str) -> None:
        self._remarks.add(label, remark)

    def below(self) -> list[Text]:
        """The sum, what it rests on, and the reasons."""
        scale = self.scale
        lines = [self._sum(), *scale_lines(scale, f"{on_what(scale)} · endpoint {scale.endpoint}", self.legend)]
        refusals = [Text(words, style="red") for words in self._refusals]
        return [*lines, *shortened(refusals, _MOST_REFUSALS), *self._remarks.lines()]

    def head(self) -> str:
        """What was weighed."""
        s = "s" * (self._files != 1)
        return f"One request of {self._files} part{s}" if self._as_one else f"{self._files} file{s}, a request each"

    def words(self, decisions: Counter[Decision]) -> list[tuple[str, str]]:
        """What the endpoint says, each with its colour."""
        return [
            (_WORD[decision] if self._as_one else f"{decisions[decision]} {_WORD[decision]}", _STYLE[decision])
            for decision in Decision
            if decisions[decision]
        ]

    def _sum(self) -> Text:
        if not self._decisions:
            return Text("Nothing to weigh.")
        sums = [(modality, *self._sums[modality]) for modality in Modality if modality in self._sums]
        worst = weakest(confidence for _, _, confidence in sums)
        cost = "" if self._dollars is None else f" · {dollars(self._dollars, worst)}"
        figures = f"{sum_in_words(sums)} tokens{cost}" if sums else "nothing weighed"
        line = Text(f"{self.head()}: {figures} → ")
        words = self.words(self._decisions)
        if self._not_taken:
            words.append((f"{self._not_taken} not taken by the service as it is", "yellow"))
        for at, (word, style) in enumerate(words):
            line.append(f"{' · ' if at else ''}{word}", style=style)
        return line


def shortened(lines: list[Text], most: int) -> list[Text]:
    if len(lines) <= most:
        return lines
    return [*lines[:most], Text(f"… and {len(lines) - most} more; --format json has them all")]


def console() -> Console:
    """Names are uploads' names: nothing in them is markup, and none of their characters may fail to print."""
    return Console(markup=False, emoji=False, highlight=False)


def _empty_table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("file", overflow="fold", min_width=14)
    table.add_column("is", overflow="fold", min_width=11)
    table.add_column("facts", overflow="fold", min_width=9)
    table.add_column("tokens as sent", justify="right", no_wrap=True)
    table.add_column("$ per\n1,000", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    return table


def _about(part: Weighed, *, narrow: bool) -> tuple[str, Text, str]:
    facts = (printable(words) for words in (facts_in_words(part), settings_in_words(part)) if words)
    return file_name(part.examined.label, narrow=narrow), _is(part), "\n".join(facts)


def file_name(label: str, *, narrow: bool) -> str:
    """The file's name; on a narrow terminal its folder stands on a line above it."""
    words = printable(label)
    folder, slash, name = words.rpartition("/")
    return f"{folder}/\n{name}" if narrow and slash else words


def _is(part: Weighed) -> Text:
    examined = part.examined
    text = Text(examined.mime or "-")
    if examined.mislabelled:
        text.append(f"\nlabelled {examined.declared_mime}", style="yellow")
    return text


def _verdict(part: Weighed, report: Report, *, as_one: bool) -> Text:
    if part.error and not isinstance(part.error, MimeMismatch):
        return Text("unreadable", style="yellow")
    if report.verdict.decision is not Decision.REJECT:
        refused = part.refused or report.refused
        return Text("not taken", style="yellow") if refused else Text("admit", style="green")
    if part.error:
        return Text("reject", style=_STYLE[Decision.REJECT])
    names = [short(check) for check in report.verdict.over if not as_one or _has_share(part, check)]
    if as_one and not names:
        return Text("")
    return Text("\n".join(["over", *names]) if names else "reject", style=_STYLE[Decision.REJECT])


def short(check: LimitCheck) -> str:
    """The limit in a word a narrow column holds: video, prompt, cost, parts, bytes."""
    words = {"prompt_tokens": "prompt", "cost_usd": "cost", "media_parts": "parts"}
    return words.get(check.name, check.name.removeprefix("tokens."))


def _has_share(part: Weighed, check: LimitCheck) -> bool:
    return check.modality is None or part.of(check.modality).high > 0


def on_what(scale: Scale) -> str:
    """`gemini-flash-latest (gemini-3.8-flash) on developer`."""
    resolved = scale.known_model and scale.model != scale.resolved_model
    return f"{scale.model}{f' ({scale.resolved_model})' if resolved else ''} on {scale.backend.value}"


def scale_lines(scale: Scale, head: str, legend: str) -> Iterator[Text]:
    """What the figures rest on, and what there is to know about it."""
    answer = f"with {scale.output_tokens:,} output tokens" if scale.output_tokens else "input only"
    price = f"{scale.price_source}, {answer}" if scale.price_source else scale.unpriced_reason
    words = " · ".join(filter(None, [head, f"rules of {scale.rule_date}", price, legend]))
    yield Text(printable(f"{words[:1].upper()}{words[1:]}" if not head else words), style="dim")
    notes = [scale.model_note] if scale.known_model and scale.model_note else []
    for note in (*notes, *scale.price_notes):
        yield Text(printable(note), style="dim")
    if scale.price_change:
        yield Text(f"Price change ahead: {scale.price_change}", style="yellow")
    if not scale.known_model:
        hint = (scale.model_hint or "").removeprefix("; ")
        words = f"No rules for {scale.model}: the dearest known ones are used. {hint[:1].upper()}{hint[1:]}"
        yield Text(printable(words.rstrip()), style="yellow")
