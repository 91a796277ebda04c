"""The table of `weighlock fit`: what each part was and becomes, and under it the sums, the limits and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from weighlock.cli.printable import printable
from weighlock.cli.table import WIDE, confidence_of, console, figure, print_confinement, shortened, tokens_in_words
from weighlock.fitted import Fitted
from weighlock.media.work import StripWork
from weighlock.planning.admit import LimitCheck
from weighlock.planning.levers import Lever
from weighlock.planning.moves import Why, need
from weighlock.planning.steps import Step
from weighlock.report import Report, facts_in_words, settings_in_words
from weighlock.request import Modality

_MOST_ROWS, _MOST_LINES = 200, 24
_WHY = {
    Why.ALWAYS: "the endpoint always sends it so",
    Why.KEPT: "kept from an earlier turn",
    Why.TAKEN: "the service takes no more bytes inline",
}


def print_fitted(fitted: Fitted, label: str | None, *, explain: bool) -> None:
    out = console()
    narrow = out.width < WIDE
    scale = fitted.after.scale
    head = f"{label or 'files'} · {scale.model} on {scale.backend.value} · endpoint {scale.endpoint}"
    out.print(Text(printable(head), style="bold"))
    out.print(_table(fitted, narrow=narrow))
    for line in _below(fitted):
        out.print(line)
    if explain:
        for line in shortened(list(_explained(fitted)), _MOST_LINES):
            out.print(line)
    print_confinement(out, fitted.before.confinement)


def _table(fitted: Fitted, *, narrow: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("part", overflow="fold", min_width=12)
    table.add_column("before", justify="right", no_wrap=True)
    table.add_column("after", justify="right", no_wrap=True)
    table.add_column("saved", justify="right", no_wrap=True)
    table.add_column("what changes", overflow="fold", min_width=14)
    if not narrow:
        table.add_column("why", overflow="fold", min_width=14)
    rows = list(_rows(fitted))
    for *cells, changes, why in rows[:_MOST_ROWS]:
        if narrow:
            table.add_row(*cells, Text("\n").join(words for words in (changes, why) if words.plain))
        else:
            table.add_row(*cells, changes, why)
    if len(rows) > _MOST_ROWS:
        table.add_row(f"… and {len(rows) - _MOST_ROWS:,} more; --format json has them all")
    return table


def _rows(fitted: Fitted) -> Iterator[tuple[str, str, str, str, Text, Text]]:
    """A row a part; those in a row that say the same, as the screenshots of an agent do, are told together."""
    parts = fitted.before.parts
    rows = [
        (printable(part.examined.label), _row(fitted, at))
        for at, part in enumerate(parts)
        if part.total.high or part.error is not None
    ]
    for _, alike in groupby(rows, key=lambda one: (one[1][:4], one[1][4].plain, one[1][5].plain)):
        labels, (row, *_) = zip(*alike, strict=True)
        facts, before, after, saved, changes, why = row
        many = f"{len(labels)} × " if len(labels) > 1 else ""
        last = f"\n– {labels[-1]}" if many else ""
        name = f"{labels[0]}{last}{chr(10) if facts else ''}{facts}"
        now = f"{many}{after}" if after[:1].isdigit() or after[:1] in "~≤" else after
        yield name, f"{many}{before}", now, f"{many}{saved}" if saved else "", changes, why


def _row(fitted: Fitted, at: int) -> tuple[str, str, str, str, Text, Text]:
    before, after = fitted.before.parts[at], fitted.after.parts[at]
    steps = [step for step in fitted.plan.steps if at in step.parts]
    facts = printable(facts_in_words(before))
    saved = before.total.likely - after.total.likely
    share = f" ({saved / before.total.likely:.0%})" if saved and before.total.likely else ""
    last = {step.lever: _change(step) for step in steps}
    last = {Lever.HISTORY: last[Lever.HISTORY]} if Lever.HISTORY in last else last
    becomes = [*_made(fitted, at), *(["by the Files API"] if at in fitted.to_upload else [])]
    changes = Text("\n".join(map(printable, (*last.values(), *becomes))), style="yellow")
    if before.error is not None:
        changes = Text(printable(before.error.message.partition(": ")[2] or before.error.message), style="yellow")
    elif not steps and not becomes and (kept := settings_in_words(before)):
        changes = Text(f"asked for: {kept}", style="dim")
    now = tokens_in_words([after]) if steps or becomes else "as it is" if before.tokens else "-"
    by_reference = [one.reason] if (one := fitted.to_upload.get(at)) else []
    why = Text("\n".join(dict.fromkeys([*(_why(fitted, step, at) for step in steps), *by_reference])))
    if not why and fitted.plan.wishes[at].pinned:
        why = Text("pinned")
    return facts, tokens_in_words([before]), now, f"{saved:,}{share}" if saved else "", changes, why


def _made(fitted: Fitted, at: int) -> list[str]:
    """What was made of the bytes of a part."""
    made = fitted.made.get(at)
    if made is None:
        return []
    work = fitted.shaped[at].work
    if isinstance(work, StripWork):
        return [f"metadata taken out, {made.size_bytes:,} bytes", *made.notes]
    bare = ["metadata taken out"] if work and getattr(work, "strip_metadata", False) else []
    return [f"becomes {made.mime}, {made.size_bytes:,} bytes", *bare, *made.notes]


def _change(step: Step) -> str:
    words, _, _ = step.words.partition(":") if step.request_wide else (step.words, "", "")
    return f"{words}, by work on its bytes" if step.local else words


def _why(fitted: Fitted, step: Step, at: int) -> str:
    if step.why is not Why.NEEDED:
        return _WHY[step.why]
    before, after = fitted.before.parts[at], fitted.after.parts[at]
    over = [_short(one) for one in fitted.before.verdict.over if need(before, one) > need(after, one)]
    words = f"over: {', '.join(over)}" if over else "with the others"
    return f"{words}; breaks the cached prefix" if step.breaks_prefix else words


def _below(fitted: Fitted) -> Iterator[Text]:
    before, after = fitted.before, fitted.after
    sums = Text(f"{_sum(before)} → {_sum(after)} tokens{_dollars(before, after)} → ")
    sums.append(*_verdict(fitted))
    yield sums
    if checks := [_limit(check) for check in fitted.verdict.limits]:
        yield Text(f"Limits: {' · '.join(checks)}", style="dim")
    for step in fitted.plan.steps:
        if step.request_wide:
            yield Text(printable(f"{step.words[:1].upper()}{step.words[1:]}."), style="yellow")
    breaks = [at for step in fitted.plan.steps if step.breaks_prefix for at in step.parts]
    breaks += [at for at, one in fitted.to_upload.items() if one.breaks_prefix]
    if breaks:
        lost = sum(part.total.likely for part in after.parts[min(breaks) : -1])
        where = printable(before.parts[min(breaks)].examined.label)
        yield Text(f"Prompt cache: broken from {where} on; {lost:,} tokens of media are read anew this once.", "yellow")
    elif any(wish.earlier is not None for wish in fitted.plan.wishes):
        yield Text("Prompt cache: kept.", style="dim")
    for at, work in fitted.works.items():
        from weighlock.cli.fit import work_in_words

        label = before.parts[at].examined.label
        yield Text(printable(f"Local work on {label}: {work_in_words(work)}"), style="yellow")
    if fitted.plan.stays_inline:
        yield Text(printable(f"{fitted.plan.stays_inline}."), style="dim")
    for at in fitted.traced:
        kept = before.parts[at].examined
        words = f"{kept.label} keeps its metadata: that of {kept.mime} is not taken out here, or local_work is never"
        yield Text(printable(words), style="yellow")
    if not fitted.fits:
        yield Text(printable(fitted.exceeded().message), style="red")
    for words in (*_unsendable(fitted), *after.refused, *after.verdict.reasons):
        yield Text(printable(f"cannot be sent: {words}"), style="red")
    for part in after.parts:
        for words in part.refused:
            yield Text(printable(f"{part.examined.label}: {words}"), style="yellow")


def _unsendable(fitted: Fitted) -> Iterator[str]:
    """Why, by the names of files where they are files."""
    screening = fitted.before.screening
    if screening is None:
        return
    for one in screening.findings:
        if one.error is not None:
            words = one.error.message
            named = isinstance(one.part.source, Path)
            yield f"{one.part.label}: {words.partition(': ')[2]}" if named else words
    yield from (error.message for error in screening.problems)


def _verdict(fitted: Fitted) -> tuple[str, str]:
    if not fitted.fits or fitted.verdict.reasons:
        return "does not fit", "bold red"
    if not fitted.is_sendable:
        return "cannot be sent as it is", "yellow"
    touched = fitted.plan.steps or fitted.works or fitted.made or fitted.to_upload
    return "fits" if touched else "fits as it is", "green"


def _sum(report: Report) -> str:
    by_modality = " · ".join(
        f"{modality.lower()} {tally.likely:,}"
        for modality in Modality
        if (tally := report.tokens.get(modality)) and tally.high
    )
    return f"{by_modality} = {figure(report.total, confidence_of(report.parts))}" if by_modality else "nothing"


def _dollars(before: Report, after: Report) -> str:
    if before.cost is None or after.cost is None:
        return ""
    return f" · ${before.cost.likely:,.4f} → ${after.cost.likely:,.4f}"


def _limit(check: LimitCheck) -> str:
    if check.name == "cost_usd":
        return f"cost ${check.high:.4f} of ${check.limit:f}"
    return f"{_short(check)} {check.high:,} of {check.limit:,}"


def _short(check: LimitCheck) -> str:
    words = {"prompt_tokens": "prompt", "cost_usd": "cost", "media_parts": "parts"}
    return words.get(check.name, check.name.removeprefix("tokens."))


def _explained(fitted: Fitted) -> Iterator[Text]:
    labels = [printable(part.examined.label) for part in fitted.before.parts]
    for step in fitted.plan.passed:
        names = ", ".join(labels[at] for at in step.parts[:3]) + (" …" if len(step.parts) > 3 else "")
        saved = f"would save {step.saved.likely:,} by itself"
        yield Text(printable(f"Tried, not needed: {names} {_change(step)} ({saved})"), style="dim")
    for words in fitted.obstacles_in_words(fitted.obstacles):
        yield Text(printable(f"No further: {words}"), style="dim")
    if not fitted.plan.passed and not fitted.obstacles:
        yield Text("Nothing else was tried.", style="dim")
