"""The figures of `weighlock rules`, laid out so that they read well on 80 columns and on 200."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from weighlock.cli.table import Trimmed
from weighlock.rules.in_force import Difference, InForce
from weighlock.rules.wording import in_words, legend

_WIDEST = 120
_GROUPS: tuple[tuple[str, Callable[[InForce], bool]], ...] = (
    ("Tokens", lambda one: not one.inside_tools and " " not in one.name),
    ("What countTokens says, which is not the bill", lambda one: one.name.startswith("counts ")),
    ("Media types taken", lambda one: not one.inside_tools and one.name.startswith("accepts ")),
    ("Limits of the service", lambda one: not one.inside_tools and one.name.startswith("limits ")),
    ("Inside tool results, where it differs", lambda one: one.inside_tools),
)


def print_plain(*renderables: RenderableType) -> None:
    """Print for a person. Names come from users and files: their brackets and colons are not markup."""
    console = Console(markup=False, emoji=False, highlight=False)
    console.width = min(console.width, _WIDEST)
    for renderable in renderables:
        console.print(Trimmed(renderable), end="")


def print_figures(figures: Sequence[InForce]) -> None:
    """Figures by group, each with the ways it holds for; below it since when, how well founded and on whose word."""
    for title, belongs in _GROUPS:
        if group := [one for one in figures if belongs(one)]:
            print_plain("", Text(title, style="bold"), _listed(_rows(group)))
    print_plain("", Text("How to read them", style="bold"), _listed(legend(one.entry for one in figures)))


def print_differences(found: Sequence[Difference]) -> None:
    """Old (-) above new (+), for each figure that is not the same."""
    print_plain(_listed((one.name, _change(one)) for one in found))


def _listed(rows: Iterable[tuple[str, RenderableType]]) -> Padding:
    """Names in a column of their own, each said once; the rest of the line is for what is said of them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    above = ""
    for name, said in rows:
        table.add_row("" if name == above else name, said)
        above = name
    return Padding(table, (0, 0, 0, 2))


def _rows(group: Sequence[InForce]) -> Iterator[tuple[str, RenderableType]]:
    """A row a figure; what one entry says of several names, such as types taken of every modality, is said once."""
    for _, same in groupby(group, lambda one: (one.when, id(one.entry))):
        first, *others = same
        names = [one.name if one.inside_tools else one.name.rpartition(" ")[2] for one in (first, *others)]
        yield "\n".join(names), _body(first)


def _body(one: InForce) -> Group:
    entry, figure = one.entry, in_words(one.entry)
    rests_on = (f"since {entry.since}", str(entry.confidence), " ".join(entry.sources))
    lines: list[RenderableType] = [f"{one.when}: {figure}" if one.when else figure]
    lines.append(_indented(Text(" · ".join(filter(None, (*rests_on, entry.note))), style="dim")))
    if entry.warning:
        lines.append(_indented(Text(entry.warning, style="yellow")))
    return Group(*lines)


def _change(one: Difference) -> Group:
    signs = Table.grid(padding=(0, 1, 0, 0))
    signs.add_row("-", Text(one.old or "no rule", style="red"))
    signs.add_row("+", Text(one.new or "no rule", style="green"))
    return Group(f"{one.when}:", signs) if one.when else Group(signs)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2))
