"""The table of `weighlock fit`: what each part was and becomes, and under it the sums, the limits and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from rich.text import Text

from weighlock.cli.amounts import dollars, marked_by_modality, sum_in_words, usd
from weighlock.cli.fit_rows import Rows, step_in_words, worst_of
from weighlock.cli.printable import printable
from weighlock.cli.table import (
    WIDE,
    Remarks,
    console,
    on_what,
    print_all,
    print_confinement,
    scale_lines,
    short,
    shortened,
)
from weighlock.fitted import Fitted
from weighlock.media.tokens import Confidence
from weighlock.planning.admit import LimitCheck
from weighlock.planning.cached import Cached
from weighlock.planning.screen import Finding
from weighlock.planning.weigh import Tally
from weighlock.report import Report
from weighlock.screening_report import change_in_words, done_in_words, is_untouched, numbered

_LEGEND = "~ estimated, ≤ bound"
_PLACES = " · [n][n] as in contents[n].parts[n]"
_MOST_LINES = 24


def print_fitted(fitted: Fitted, label: str | None, *, explain: bool) -> None:
    out = console()
    scale = fitted.after.scale
    head = f"{label or 'files'} · {on_what(scale)} · endpoint {scale.endpoint}"
    narrow = out.width < WIDE
    table = Rows(fitted, of_files=label is None, narrow=narrow).table()
    legend = _LEGEND + _PLACES * (narrow and label is not None and len(fitted.before.parts) > 1)
    print_all(out, [Text(printable(head), style="bold"), table, *_below(fitted, legend)])
    if explain:
        print_all(out, shortened(list(_explained(fitted)), _MOST_LINES))
    print_confinement(out, fitted.before.confinement)


def _below(fitted: Fitted, legend: str) -> Iterator[Text]:
    before, after = fitted.before, fitted.after
    yield _sums(fitted)
    if fitted.verdict.limits and before.total.high:
        yield _limits(fitted)
    yield from scale_lines(after.scale, "", legend)
    for step in fitted.plan.steps:
        if step.request_wide:
            yield Text(printable(f"{step.told[:1].upper()}{step.told[1:]}."), style="yellow")
    if fitted.cached is not None:
        yield _cache(fitted, fitted.cached)
    yield from shortened([*_put_right(fitted)], _MOST_LINES)
    if fitted.plan.stays_inline:
        yield Text(printable(f"{fitted.plan.stays_inline}."), style="dim")
    if fitted.late is not None:
        names = ", ".join(before.parts[at].examined.label for at in fitted.late.left_out)
        yield Text(printable(f"Left out: {fitted.late.words} on {names}."), style="yellow")
    for at in fitted.traced:
        kept = before.parts[at].examined
        words = f"{kept.label} keeps its metadata: that of {kept.mime} is not taken out here, or local_work is never"
        yield Text(printable(words), style="yellow")
    if fitted.refusal is not None:
        yield Text(printable(fitted.refusal), style="red")
    for words in dict.fromkeys((*_unsendable(fitted), *after.refused)):
        yield Text(printable(f"cannot be sent: {words}"), style="red")
    remarks = Remarks()
    for at, part in enumerate(after.parts):
        refused = () if at in fitted.works else part.refused
        for words in (*refused, *(anomaly.detail for anomaly in part.examined.anomalies), *part.notes):
            remarks.add(part.examined.label, words)
    yield from remarks.lines()


def _put_right(fitted: Fitted) -> Iterator[Text]:
    """What screening changed that no row tells of."""
    screening = fitted.before.screening
    if screening is None:
        return
    for one, at in numbered(screening):
        if at is None and one.error is None and not is_untouched(one):
            yield Text(printable(f"{one.place}: {done_in_words(one)}"), style="yellow")
    for change in screening.changes:
        yield Text(printable(f"{change.place}: {change_in_words(change)}"), style="yellow")


def _unsendable(fitted: Fitted) -> Iterator[str]:
    """Why, by the names of files where they are files; what the row of a part says is not said again."""
    screening = fitted.before.screening
    if screening is None:
        return
    for one, at in numbered(screening):
        if one.error is not None and (at is None or fitted.before.parts[at].error is None):
            words = one.error.message
            yield f"{one.part.label}: {words.partition(': ')[2]}" if _is_file(one) else words
    yield from (error.message for error in screening.problems)


def _is_file(finding: Finding) -> bool:
    return isinstance(finding.part.source, Path)


def _sums(fitted: Fitted) -> Text:
    before, after, worst = fitted.before, fitted.after, worst_of(fitted)
    if not before.total.high:
        media = before.parts[:-1]
        return Text("Nothing could be weighed → ").append(*_verdict(fitted)) if media else Text("Nothing to weigh.")
    was, now = (_sum(report, worst) for report in (before, after))
    words = f"{was} tokens" if was == now else f"{was} → {now} tokens"
    if before.cost is not None and after.cost is not None:
        was, now = (dollars(cost, worst) for cost in (before.cost, after.cost))
        words += f" · {was}" if was == now else f" · {was} → {now}"
    return Text(f"{words} → ").append(*_verdict(fitted))


def _sum(report: Report, worst: Confidence) -> str:
    bound = worst is Confidence.ASSUMED
    sums = [(kind, report.tokens[kind], worst if bound else own) for kind, _, own in marked_by_modality(report.parts)]
    return sum_in_words([one for one in sums if one[1].high])


def _verdict(fitted: Fitted) -> tuple[str, str]:
    if fitted.refusal is not None:
        return "does not fit", "bold red"
    if not fitted.fits or not fitted.is_sendable:
        return "cannot be sent as it is", "yellow"
    if fitted.works:
        return "fits, once that is made", "green"
    untouched = fitted.request is fitted.original and not fitted.to_upload
    return "fits as it is" if untouched else "fits", "green"


def _limits(fitted: Fitted) -> Text:
    """Each with what decides, which is the high estimate."""
    checks = fitted.verdict.limits
    line = Text(f"Limits{', by the high estimate' * any(one.likely < one.high for one in checks)}: ", style="dim")
    for nth, check in enumerate(checks):
        line.append(f"{' · ' if nth else ''}{_limit(check)}", style="red" if check.over else None)
    return line


def _limit(check: LimitCheck) -> str:
    if check.name == "cost_usd":
        return f"cost {usd(Decimal(check.high))} of ${check.limit:f}"
    return f"{short(check)} {check.high:,} of {check.limit:,}"


def _cache(fitted: Fitted, found: Cached) -> Text:
    """What history costs if the prompt cache holds it, and what a change of it costs. No limit counts on the cache."""
    kept, lost = (Tally.of(one.values()).likely for one in (found.kept, found.lost))
    priced = found.cost is not None and found.lost_cost is not None
    in_all = f"; {usd(found.cost.likely)} in all if it holds" if found.cost else "; no cached price is known"
    if found.broken_at is None:
        return Text(f"Prompt cache: kept, ~{kept:,} tokens of {fitted.after.total.likely:,}{in_all}.", style="dim")
    where = printable(fitted.before.parts[found.broken_at].examined.label)
    more = f", for {usd(found.lost_cost.likely)} more" if priced and found.lost_cost else ""
    words = f"Prompt cache: broken from {where} on; ~{lost:,} tokens are read anew this once{more}."
    return Text(f"{words} ~{kept:,} are kept{in_all}.", style="yellow")


def _explained(fitted: Fitted) -> Iterator[Text]:
    labels = [printable(part.examined.label) for part in fitted.before.parts]
    for step in fitted.plan.passed:
        names = ", ".join(labels[at] for at in step.parts[:3]) + (" …" if len(step.parts) > 3 else "")
        saved = f"would save {step.saved.likely:,} by itself"
        yield Text(printable(f"Tried, not needed: {names}: {step_in_words(step)} ({saved})"), style="dim")
    for words in fitted.obstacles_in_words(fitted.obstacles):
        yield Text(printable(f"No further: {words}"), style="dim")
    for words in fitted.obstacles_in_words([one for one in fitted.untaken if one.idle]):
        yield Text(printable(f"Not moved: {words}"), style="dim")
    if not fitted.plan.passed and not fitted.untaken:
        yield Text("Nothing else was tried.", style="dim")
