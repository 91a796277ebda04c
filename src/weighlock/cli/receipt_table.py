"""Receipts for people: what was weighed, held and billed, of one request or of several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from weighlock.budgets.hold import MICRO_USD, PROMPT_TOKENS
from weighlock.cli.amounts import usd as dollars
from weighlock.cli.printable import printable
from weighlock.holding import usd
from weighlock.planning.weigh import Tally
from weighlock.prepared import Outcome, Receipt
from weighlock.request import Modality

_WORDS = {
    Outcome.ADMITTED: ("admitted", "green"),
    Outcome.SHAPED: ("admitted, made lighter", "green"),
    Outcome.WARNED: ("admitted, over its limits (on_exceed: warn)", "yellow"),
    Outcome.WOULD_SHAPE: ("admitted as it came; enforced, it would be made lighter (mode: observe)", "yellow"),
    Outcome.WOULD_REFUSE: ("admitted as it came; enforced, it would be refused (mode: observe)", "yellow"),
    Outcome.REFUSED: ("refused", "red"),
    Outcome.FAILED: ("cannot be sent", "red"),
}

_MOST_RESENT = 5
"""Of the media that come again, so many are named, the heaviest first."""


def in_words(receipt: Receipt) -> Text:
    """What became of it, in a line."""
    words, style = _WORDS[receipt.outcome]
    return Text(words, style=style)


def held_in_words(receipt: Receipt) -> str:
    """What was set aside: `held: 4,580 tokens, $0.0084 with an answer of 1,024`."""
    held, expected = receipt.held, receipt.fitted.after.scale.output_tokens
    words = f"held: {held.get(PROMPT_TOKENS, 0):,} tokens"
    if MICRO_USD in held:
        answer = f" with an answer of {expected:,} tokens" if expected else ""
        words += f", {dollars(usd(held[MICRO_USD]))}{answer}"
    return words + (" (the budgets could not be asked: admitted unverified)" if receipt.unverified else "")


def table_of(receipts: Mapping[str, Receipt]) -> Table:
    """Receipts beside each other, by what each is called: a row a modality, then the sum and what it cost."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("tokens")
    for name in receipts:
        for head in (f"{name}\nchecked", "\ncounted", "\nbilled"):
            table.add_column(Text(head), justify="right", no_wrap=head.startswith("\n"))
    for modality in (kind for kind in Modality if any(_occurs(kind, one) for one in receipts.values())):
        table.add_row(modality.lower(), *_cells(modality, receipts.values()))
    table.add_section()
    table.add_row("total", *_cells(None, receipts.values()), style="bold")
    table.add_row("USD", *(cell for one in receipts.values() for cell in _usd(one)))
    return table


def _occurs(modality: Modality, receipt: Receipt) -> bool:
    billed = receipt.billed.usage.by_modality if receipt.billed else {}
    return modality in receipt.fitted.after.tokens or modality in billed


def _cells(modality: Modality | None, receipts: Iterable[Receipt]) -> Iterator[str]:
    for one in receipts:
        after, billed = one.fitted.after, one.billed
        checked = after.total if modality is None else after.tokens.get(modality, Tally())
        yield _bounds(checked)
        count = after.counted.count if after.counted is not None else None
        counted = None if count is None else count.total if modality is None else count.by_modality.get(modality)
        yield "-" if counted is None else f"{counted:,}"
        told = (
            None
            if billed is None
            else billed.usage.prompt
            if modality is None
            else billed.usage.by_modality.get(modality)
        )
        yield "-" if told is None else f"{told:,}"


def _bounds(tally: Tally) -> str:
    return f"{tally.likely:,}" if tally.low == tally.high else f"{tally.likely:,} ≤ {tally.high:,}"


def _usd(receipt: Receipt) -> Iterator[str]:
    cost = receipt.fitted.after.cost
    yield "-" if cost is None else dollars(cost.likely)
    yield "-"
    spent = receipt.billed.spent if receipt.billed is not None else {}
    yield dollars(usd(spent[MICRO_USD])) if MICRO_USD in spent else "-"


def lines_of(receipt: Receipt) -> Iterator[Text]:
    """What else there is to say of one."""
    yield in_words(receipt)
    if receipt.held:
        yield Text(held_in_words(receipt), style="dim")
    media, tokens = receipt.resent
    if media:
        yield Text(f"{media} media sent in earlier turns come again: {tokens.likely:,} tokens", style="dim")
        told = sorted(receipt.resent_parts, key=lambda one: -one[1].likely)
        for label, each, cost in told[:_MOST_RESENT]:
            price = "" if cost is None else f", {dollars(cost.likely)} where no cache holds it"
            yield Text(printable(f"  {label}: {each.likely:,} tokens{price}"), style="dim")
    for at, one in receipt.uploads.items():
        label = receipt.fitted.after.parts[at].examined.label
        how = "known already" if one.reused else "uploaded"
        yield Text(printable(f"{label}: {how}, good until {one.expires_at:%Y-%m-%d %H:%M} UTC"), style="dim")
    for words in receipt.warnings:
        yield Text(printable(words), style="yellow")
    if receipt.billed is not None:
        if receipt.billed.estimated:
            yield Text("nobody said what it cost: what was held is charged", style="yellow")
        for finding in receipt.billed.usage.findings:
            yield Text(printable(f"{finding.code}: {finding.detail}"), style="yellow")
