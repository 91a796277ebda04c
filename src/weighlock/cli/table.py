"""The table of `weighlock check`: what each file is and costs, the verdict, and under it the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weighlock.cli.render import Confinement, Outcome
from weighlock.media.tokens import Confidence
from weighlock.planning.admit import Decision, LimitCheck
from weighlock.planning.weigh import CostRange, Tally, Weighed
from weighlock.preflight import Scales
from weighlock.report import Report, Scale, facts_in_words
from weighlock.request import Modality

_STYLE = {Decision.ADMIT: "green", Decision.REJECT: "bold red", Decision.UNKNOWN: "yellow"}
_MOST_REASONS = 8
_WIDE = 120


class Tables:
    """One table a scale, printed when all requests are in."""

    def __init__(self, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement) -> None:
        self._scales = scales
        self._as_one = as_one
        self._confinement = confinement
        self._requests: list[Sequence[Report]] = []
        self._console = Console(highlight=False)

    def add(self, reports: Sequence[Report]) -> None:
        self._requests.append(reports)

    def close(self, outcome: Outcome) -> None:
        for at, weighing in enumerate(self._scales):
            reports = [request[at] for request in self._requests]
            self._console.print(_table(reports, as_one=self._as_one, narrow=self._console.width < _WIDE))
            for line in _below(reports, weighing.scale, as_one=self._as_one):
                self._console.print(line)
            if at + 1 < len(self._scales):
                self._console.print()
        if (limits := self._confinement()) and limits["missing"]:
            missing = ", ".join(limits["missing"])
            self._console.print(Text(f"Probed without: {missing} (see weighlock doctor)", style="yellow"))


def _table(reports: Sequence[Report], *, as_one: bool, narrow: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("file", overflow="fold", min_width=14)
    table.add_column("is", overflow="fold", min_width=11)
    table.add_column("facts", overflow="fold", min_width=9)
    table.add_column("tokens as sent", justify="right", no_wrap=True)
    table.add_column("$ per\n1,000", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for report in reports:
        for part, cost in zip(report.parts, report.costs, strict=True):
            table.add_row(
                _name(part.examined.label, narrow=narrow),
                _is(part),
                printable(facts_in_words(part)),
                _tokens(part),
                dollars_per_thousand(cost),
                _verdict(part, report, as_one=as_one),
            )
    return table


def _name(label: str, *, narrow: bool) -> str:
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


def _tokens(part: Weighed) -> str:
    if not part.tokens:
        return "-"
    if len(part.tokens) == 1:
        tokens = part.tokens[0]
        return figure(Tally(low=tokens.low, likely=tokens.likely, high=tokens.high), tokens.confidence)
    lines = [f"{tokens.modality.lower()} {figure(Tally() + tokens, tokens.confidence)}" for tokens in part.tokens]
    return "\n".join([*lines, f"= {part.total.likely:,}"])


def figure(tally: Tally, confidence: Confidence) -> str:
    """`1,100` measured and exact · `~532` estimated · `≤1,120` a bound where nothing was measured."""
    if confidence is Confidence.ASSUMED:
        return f"≤{tally.high:,}"
    exact = tally.low == tally.likely == tally.high and confidence is Confidence.MEASURED
    return f"{tally.likely:,}" if exact else f"~{tally.likely:,}"


def dollars_per_thousand(cost: CostRange | None) -> str:
    return f"{cost.likely * 1000:,.2f}" if cost else "-"


def _verdict(part: Weighed, report: Report, *, as_one: bool) -> Text:
    if part.error:
        return Text("unreadable", style="yellow")
    if report.verdict.decision is not Decision.REJECT:
        return Text(Decision.ADMIT.value, style=_STYLE[Decision.ADMIT])
    names = [_short(check) for check in report.verdict.over if _has_share(part, check.modality)]
    if as_one and not names:
        return Text("")
    return Text("\n".join(["over", *names]) if names else "reject", style=_STYLE[Decision.REJECT])


def _short(check: LimitCheck) -> str:
    """The limit in a word a narrow column holds: video, prompt, cost, parts, bytes."""
    return {"prompt_tokens": "prompt", "cost_usd": "cost", "media_parts": "parts"}.get(
        check.name, check.name.removeprefix("tokens.")
    )


def _has_share(part: Weighed, modality: Modality | None) -> bool:
    return modality is None or part.of(modality).high > 0


def _below(reports: Sequence[Report], scale: Scale, *, as_one: bool) -> list[Text]:
    lines = [_sum(reports, as_one=as_one), _scale(scale)]
    if scale.price_change:
        lines.append(Text(f"Price change ahead: {scale.price_change}", style="yellow"))
    if not scale.known_model:
        lines.append(Text(f"No rules for {scale.model}: the dearest known ones are used.", style="yellow"))
    return [*lines, *_shortened(_reasons(reports))]


def _reasons(reports: Sequence[Report]) -> list[Text]:
    refusals = [Text(report.refusal, style="red") for report in reports if report.refusal]
    errors = [_remark(part, part.error.message) for r in reports for part in r.parts if part.error]
    odd = [_remark(p, anomaly.detail) for r in reports for p in r.parts for anomaly in p.examined.anomalies]
    notes = [_remark(part, note) for r in reports for part in r.parts for note in part.notes]
    return [*refusals, *errors, *odd, *notes]


def _remark(part: Weighed, words: str) -> Text:
    return Text(f"{printable(part.examined.label)}: {words}", style="yellow")


def _shortened(lines: list[Text]) -> list[Text]:
    if len(lines) <= _MOST_REASONS:
        return lines
    return [*lines[:_MOST_REASONS], Text(f"… and {len(lines) - _MOST_REASONS} more; --format json has them all")]


def _sum(reports: Sequence[Report], *, as_one: bool) -> Text:
    tokens: dict[Modality, Tally] = {}
    for report in reports:
        for modality, tally in report.tokens.items():
            tokens[modality] = tokens.get(modality, Tally()) + tally
    files = sum(len(report.parts) for report in reports)
    by_modality = " · ".join(f"{m.lower()} {tokens[m].likely:,}" for m in Modality if m in tokens)
    total = Tally.of(tokens.values()).likely
    costs = [report.cost.likely for report in reports if report.cost]
    cost = f" · ${sum(costs, Decimal(0)):,.4f}" if costs else ""
    head = f"One request of {files} part{'s' * (files != 1)}" if as_one else f"{files} files, a request each"
    line = Text(f"{head}: {by_modality or 'nothing weighed'} = {total:,} tokens{cost} → ")
    found = {report.verdict.decision for report in reports}
    for decision in Decision:
        count = sum(report.verdict.decision is decision for report in reports)
        if count:
            line.append(decision.value if as_one else f"{count} {decision.value} ", style=_STYLE[decision])
    return line if found else Text("Nothing to weigh.")


def _scale(scale: Scale) -> Text:
    named = scale.model if scale.model == scale.resolved_model else f"{scale.model} ({scale.resolved_model})"
    price = scale.price_source or f"no price: {scale.unpriced_reason}"
    answer = f", {scale.output_tokens:,} output tokens" if scale.output_tokens else ", input only"
    return Text(
        f"{named} on {scale.backend.value} · endpoint {scale.endpoint} · rules of {scale.rule_date} · {price}{answer}"
        " · ~ estimated, ≤ bound",
        style="dim",
    )


def printable(words: str) -> str:
    """A name as a terminal may show it: no control characters, and bytes that are no UTF-8 replaced."""
    clean = words.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in clean)
