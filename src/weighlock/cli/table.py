"""The table of `weighlock check`: what each file is and costs, the verdict, and under it the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weighlock.cli.render import Confinement, Outcome
from weighlock.media.tokens import Confidence, TokenRange
from weighlock.planning.admit import Decision, LimitCheck
from weighlock.planning.weigh import CostRange, Tally, Weighed
from weighlock.report import Report, Scale, facts_in_words, settings_in_words
from weighlock.request import Modality
from weighlock.scales import Scales

_STYLE = {Decision.ADMIT: "green", Decision.REJECT: "bold red", Decision.UNKNOWN: "yellow"}
_WORD = {Decision.ADMIT: "admit", Decision.REJECT: "reject", Decision.UNKNOWN: "unreadable"}
_WIDE = 120
_MOST_REFUSALS, _MOST_REASONS, _MOST_NAMES = 5, 12, 3
_WORTH_TELLING, _WORTH_TELLING_TOKENS = 1.5, 100
"""From this ratio and difference on the high estimate, which decides, is shown beside the likely one."""


class Tables:
    """One table a scale, printed when all requests are in."""

    def __init__(self, scales: Sequence[Scales], *, as_one: bool, confinement: Confinement) -> None:
        self._scales = scales
        self._as_one = as_one
        self._confinement = confinement
        self._requests: list[Sequence[Report]] = []
        self._console = console()

    def add(self, reports: Sequence[Report]) -> None:
        self._requests.append(reports)

    def close(self, outcome: Outcome) -> None:
        for at, scales in enumerate(self._scales):
            reports = [request[at] for request in self._requests]
            if len(self._scales) > 1:
                self._console.print(Text(f"{scales.model} on {scales.backend.value}", style="bold"))
            self._console.print(_table(reports, as_one=self._as_one, narrow=self._console.width < _WIDE))
            for line in _below(reports, scales.scale, as_one=self._as_one):
                self._console.print(line)
            if at + 1 < len(self._scales):
                self._console.print()
        if (limits := self._confinement()) and limits["missing"]:
            missing = ", ".join(limits["missing"])
            self._console.print(Text(f"Probed without: {missing} (see weighlock doctor)", style="yellow"))


def console() -> Console:
    """Names are uploads' names: nothing in them is markup, and none of their characters may fail to print."""
    return Console(markup=False, emoji=False, highlight=False)


def _table(reports: Sequence[Report], *, as_one: bool, narrow: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("file", overflow="fold", min_width=14)
    table.add_column("is", overflow="fold", min_width=11)
    table.add_column("facts", overflow="fold", min_width=9)
    table.add_column("tokens as sent", justify="right", no_wrap=True)
    table.add_column("$ per\n1,000", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for report in reports:
        if as_one:
            for part, cost in zip(report.parts, report.costs, strict=True):
                tokens, dollars = _tokens([part]), dollars_per_thousand(cost, weakest([part]))
                table.add_row(*_about(part, narrow=narrow), tokens, dollars, _verdict(part, report, as_one=True))
        else:  # the row is the request: its prompt text and expected answer are in it
            tokens, dollars = _tokens(report.parts), dollars_per_thousand(report.cost, weakest(report.parts))
            part = report.parts[0]
            table.add_row(*_about(part, narrow=narrow), tokens, dollars, _verdict(part, report, as_one=False))
    return table


def _about(part: Weighed, *, narrow: bool) -> tuple[str, Text, str]:
    facts = (printable(words) for words in (facts_in_words(part), settings_in_words(part)) if words)
    return _name(part.examined.label, narrow=narrow), _is(part), "\n".join(facts)


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


def _tokens(parts: Sequence[Weighed]) -> str:
    marked = _by_modality(parts)
    if not marked:
        return "-"
    if len(marked) == 1:
        return figure(*marked[0][1:])
    lines = [f"{modality.lower()} {figure(tally, confidence)}" for modality, tally, confidence in marked]
    return "\n".join([*lines, f"= {figure(Tally.of(part.total for part in parts), weakest(parts))}"])


def _by_modality(parts: Iterable[Weighed]) -> list[tuple[Modality, Tally, Confidence]]:
    found: dict[Modality, list[TokenRange]] = {}
    for part in parts:
        for tokens in part.tokens:
            found.setdefault(tokens.modality, []).append(tokens)
    return [(m, Tally.of(found[m]), _weakest(t.confidence for t in found[m])) for m in Modality if m in found]


def weakest(parts: Iterable[Weighed]) -> Confidence:
    """The least founded figure in a sum decides how the sum is marked."""
    return _weakest(tokens.confidence for part in parts for tokens in part.tokens)


def _weakest(found: Iterable[Confidence]) -> Confidence:
    levels = set(found)
    return next((level for level in reversed(Confidence) if level in levels), Confidence.MEASURED)


def figure(tally: Tally, confidence: Confidence) -> str:
    """`1,100` measured and exact · `~532` estimated · `≤1,120` a bound where nothing was measured."""
    if confidence is Confidence.ASSUMED:
        return f"≤{tally.high:,}"
    if tally.low == tally.likely == tally.high and confidence is Confidence.MEASURED:
        return f"{tally.likely:,}"
    if tally.high > _WORTH_TELLING * tally.likely and tally.high - tally.likely > _WORTH_TELLING_TOKENS:
        return f"~{tally.likely:,} (≤{tally.high:,})"
    return f"~{tally.likely:,}"


def dollars_per_thousand(cost: CostRange | None, confidence: Confidence) -> str:
    """USD of a thousand such requests: of the likely tokens, or of the bound where nothing was measured."""
    if cost is None:
        return "-"
    return f"≤{cost.high * 1000:,.2f}" if confidence is Confidence.ASSUMED else f"{cost.likely * 1000:,.2f}"


def _verdict(part: Weighed, report: Report, *, as_one: bool) -> Text:
    if part.error:
        return Text("unreadable", style="yellow")
    if report.verdict.decision is not Decision.REJECT:
        return Text("not taken", style="yellow") if part.refused else Text("admit", style="green")
    names = [_short(check) for check in report.verdict.over if not as_one or _has_share(part, check)]
    if as_one and not names:
        return Text("")
    return Text("\n".join(["over", *names]) if names else "reject", style=_STYLE[Decision.REJECT])


def _short(check: LimitCheck) -> str:
    """The limit in a word a narrow column holds: video, prompt, cost, parts, bytes."""
    words = {"prompt_tokens": "prompt", "cost_usd": "cost", "media_parts": "parts"}
    return words.get(check.name, check.name.removeprefix("tokens."))


def _has_share(part: Weighed, check: LimitCheck) -> bool:
    return check.modality is None or part.of(check.modality).high > 0


def _below(reports: Sequence[Report], scale: Scale, *, as_one: bool) -> list[Text]:
    lines = [_sum(reports, as_one=as_one), _scale(scale)]
    lines += [Text(note, style="dim") for note in scale.price_notes]
    if scale.price_change:
        lines.append(Text(f"Price change ahead: {scale.price_change}", style="yellow"))
    if not scale.known_model:
        hint = (scale.model_hint or "").removeprefix("; ")
        words = f"No rules for {scale.model}: the dearest known ones are used. {hint[:1].upper()}{hint[1:]}"
        lines.append(Text(printable(words.rstrip()), style="yellow"))
    return [*lines, *_refusals(reports), *_reasons(reports)]


def _refusals(reports: Sequence[Report]) -> list[Text]:
    refused = list(dict.fromkeys(printable(report.refusal) for report in reports if report.refusal))
    lines = [Text(words, style="red") for words in refused[:_MOST_REFUSALS]]
    if len(refused) > _MOST_REFUSALS:
        lines.append(Text(f"… and {len(refused) - _MOST_REFUSALS} more refusals; --format json has them all"))
    return lines


def _reasons(reports: Sequence[Report]) -> list[Text]:
    """Each thing to say once, with the files it is about."""
    said: dict[str, list[str]] = {}
    for part in (part for report in reports for part in report.parts):
        words = [part.error.message] if part.error else []
        words += [*part.refused, *(anomaly.detail for anomaly in part.examined.anomalies), *part.notes]
        for one in words:
            said.setdefault(one, []).append(part.examined.label)
    lines = [Text(printable(f"{_names(labels)}: {words}"), style="yellow") for words, labels in said.items()]
    if len(lines) > _MOST_REASONS:
        more = len(lines) - _MOST_REASONS
        return [*lines[:_MOST_REASONS], Text(f"… and {more} more remarks; --format json has them all")]
    return lines


def _names(labels: Sequence[str]) -> str:
    unique = list(dict.fromkeys(labels))
    if len(unique) <= _MOST_NAMES:
        return ", ".join(unique)
    return f"{', '.join(unique[:_MOST_NAMES])} and {len(unique) - _MOST_NAMES} more"


def _sum(reports: Sequence[Report], *, as_one: bool) -> Text:
    parts = [part for report in reports for part in report.parts]
    by_modality = " · ".join(f"{m.lower()} {figure(tally, confidence)}" for m, tally, confidence in _by_modality(parts))
    total = figure(Tally.of(part.total for part in parts), weakest(parts))
    files = len(parts) if as_one else len(reports)
    head = (
        f"One request of {files} part{'s' * (files != 1)}"
        if as_one
        else f"{files} file{'s' * (files != 1)}, a request each"
    )
    line = Text(f"{head}: {by_modality or 'nothing weighed'} = {total} tokens{_dollars(reports, weakest(parts))} → ")
    counts = {decision: sum(r.verdict.decision is decision for r in reports) for decision in Decision}
    words = [
        (_WORD[decision] if as_one else f"{count} {_WORD[decision]}", _STYLE[decision])
        for decision, count in counts.items()
        if count
    ]
    not_taken = sum(1 for part in parts if part.refused)
    if not_taken:
        words.append((f"{not_taken} not taken by the service as it is", "yellow"))
    for at, (word, style) in enumerate(words):
        line.append(f"{' · ' if at else ''}{word}", style=style)
    return line if reports else Text("Nothing to weigh.")


def _dollars(reports: Sequence[Report], confidence: Confidence) -> str:
    costs = [report.cost for report in reports if report.cost]
    if not costs:
        return ""
    if confidence is Confidence.ASSUMED:
        return f" · ≤${sum((cost.high for cost in costs), Decimal(0)):,.4f}"
    return f" · ${sum((cost.likely for cost in costs), Decimal(0)):,.4f}"


def _scale(scale: Scale) -> Text:
    named = (
        scale.model
        if scale.model == scale.resolved_model or not scale.known_model
        else f"{scale.model} ({scale.resolved_model})"
    )
    answer = f"with {scale.output_tokens:,} output tokens" if scale.output_tokens else "input only"
    price = f"{scale.price_source}, {answer}" if scale.price_source else scale.unpriced_reason
    words = f"{named} on {scale.backend.value} · endpoint {scale.endpoint} · rules of {scale.rule_date} · {price}"
    return Text(f"{printable(words)} · ~ estimated, ≤ bound · $ per 1,000 requests", style="dim")


def printable(words: str) -> str:
    """Words as a terminal may show them: no control characters, and bytes that are no UTF-8 replaced."""
    clean = words.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in clean)
