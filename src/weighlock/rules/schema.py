"""A rule file's TOML → `Generation`, strictly: every mistake is found, named by its key, with the nearest valid one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

from weighlock.media.area import Area, Dearest, Flat, Grid, Shape, Tiles
from weighlock.media.counted import CountRule
from weighlock.media.rule import Rounding
from weighlock.media.text import TextRatios
from weighlock.media.tokens import Confidence
from weighlock.request import Backend, Carrier, MediaResolution, Modality, Placement
from weighlock.rules.entry import (
    Accepted,
    Entry,
    Figure,
    Generation,
    Honoured,
    Limit,
    PartResolution,
    Rate,
    RequestLimits,
    Sampling,
    Selectors,
    Sight,
    WireControl,
)
from weighlock.written import MOST_TOLD, is_line, listed, plain, quoted, told

Word = TypeVar("Word", bound=StrEnum)
Table = Mapping[str, Any]

_FILE_KEYS = ("generation", "title", "checked_on", "models", "inherits", "sources")
_SELECTOR_KEYS = ("backend", "placement", "carrier", "resolution", "models")
_ENTRY_KEYS = ("since", "checked_on", "source", "confidence", "billed_as", "note", "warning")
_MEDIA_SECTIONS = ("image", "video", "sound", "silent_sound", "audio", "document", "text")
_TILE_KEYS = ("tiles", "whole_px", "min_side_px", "max_side_px")
_MOST_CHOICES = 20
_MOST_COUNT, _MOST_RATIO = 10**12, 10**6
"""Far above every figure there is or will be; no arithmetic on them overflows."""
_LONGEST_NAME, _LONGEST_WORD = 60, 300
LIMITS = tuple(item.name for item in fields(RequestLimits))


class Mistakes(Exception):
    """Everything wrong with one file, a line each; becomes a `ConfigError` where the path is known."""

    def __init__(self, found: list[str]) -> None:
        self.found = told(plain(line, 1_000) for line in found)
        super().__init__("; ".join(self.found))


def read(document: Table) -> Generation:
    """The generation a parsed rule file describes.

    Raises:
        Mistakes: with every mistake in the file.
    """
    return _Reader().generation(document)


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, else what there is to choose from, else (too much to read) nothing."""
    from difflib import get_close_matches  # only a mistake pays for it

    choices = list(known)
    if close := get_close_matches(word, choices, n=1):
        return f"; did you mean {quoted(close[0])}?"
    return f"; there is {listed(choices)}" if len(choices) <= _MOST_CHOICES else ""


@dataclass
class _Reader:
    found: list[str] = field(default_factory=list)

    def generation(self, document: Table) -> Generation:
        self.keys(document, (*_FILE_KEYS, *_SECTIONS), "")
        checked_on = self.day(document, "checked_on", "checked_on")
        entries = [
            self.entry(section, table, f"{section}[{number}]", checked_on)
            for section in _SECTIONS
            for number, table in enumerate(self.tables(document, section), start=1)
        ]
        name = self.text(document, "generation", "generation", most=_LONGEST_NAME)
        result = Generation(
            name=name,
            title=self.text(document, "title", "title", default=name, most=_LONGEST_NAME),
            checked_on=checked_on,
            models=self.words(document, "models", "models") or (),
            inherits=self.text(document, "inherits", "inherits", default="", most=_LONGEST_NAME) or None,
            entries=tuple(entries),
            sources=self.sources(document),
        )
        if self.found:
            raise Mistakes(self.found)
        return result

    def entry(self, section: str, table: Table, where: str, checked_on: date) -> Entry:
        figure_keys, build = _SECTIONS[section]
        self.keys(table, (*_SELECTOR_KEYS, *_ENTRY_KEYS, *figure_keys), where)
        billed_as = None
        if "billed_as" in table:
            if section not in _MEDIA_SECTIONS:
                self.found.append(f"{where}.billed_as: means nothing here")
            billed_as = self.word(Modality, table["billed_as"], f"{where}.billed_as")
        return Entry(
            section=section,
            figure=build(self, table, where),
            since=self.day(table, "since", f"{where}.since"),
            checked_on=self.day(table, "checked_on", f"{where}.checked_on", default=checked_on),
            sources=self.words(table, "source", f"{where}.source") or self.missing(f"{where}.source", ()),
            confidence=self.word(Confidence, table.get("confidence"), f"{where}.confidence"),
            selectors=Selectors(
                backends=self.choice(Backend, table, "backend", where),
                placements=self.choice(Placement, table, "placement", where),
                carriers=self.choice(Carrier, table, "carrier", where),
                resolutions=self.choice(MediaResolution, table, "resolution", where),
                models=self.words(table, "models", f"{where}.models"),
            ),
            billed_as=billed_as,
            note=self.text(table, "note", f"{where}.note", default="") or None,
            warning=self.text(table, "warning", f"{where}.warning", default="") or None,
        )

    # --- figures ---

    def area(self, table: Table, where: str) -> Area:
        low, high = (
            self.shape(table[bound], f"{where}.{bound}") if bound in table else None for bound in ("low", "high")
        )
        return Area(likely=self.shape(table.get("likely"), f"{where}.likely"), low=low, high=high)

    def shape(self, value: object, where: str) -> Shape:
        if isinstance(value, Mapping) and set(value) == {"dearest"}:
            shapes = value["dearest"]
            if isinstance(shapes, list) and shapes:
                return Dearest(tuple(self.plain_shape(item, where) for item in shapes))
        return self.plain_shape(value, where)

    def plain_shape(self, value: object, where: str) -> Flat | Tiles | Grid:
        if isinstance(value, Mapping):
            if set(value) == {"flat"}:
                return Flat(self.count(value, "flat", where))
            if set(value) == {"grid"}:
                return Grid(self.count(value, "grid", where, least=1))
            if set(value) == set(_TILE_KEYS):
                tiles, whole, low, high = (self.count(value, key, where, least=1) for key in _TILE_KEYS)
                return Tiles(tokens=tiles, whole_px=whole, min_side_px=low, max_side_px=max(low, high))
        keys = ", ".join(_TILE_KEYS)
        self.found.append(f"{where}: expected {{flat = n}}, {{grid = n}}, {{{keys}}} or {{dearest = [...]}}")
        return Flat(0)

    def sampling(self, table: Table, where: str) -> Sampling:
        return Sampling(
            rounding=self.word(Rounding, table.get("rounding"), f"{where}.rounding"),
            default_fps=self.ratio(table, "default_fps", where, above=0),
            max_fps=self.ratio(table, "max_fps", where, above=0),
        )

    def rate(self, table: Table, where: str) -> Rate:
        low = self.count(table, "low_tokens_per_s", where) if "low_tokens_per_s" in table else None
        return Rate(
            tokens_per_s=self.count(table, "tokens_per_s", where, least=1),
            rounding=self.word(Rounding, table.get("rounding"), f"{where}.rounding"),
            whole_seconds=self.flag(table, "whole_seconds", where, default=False),
            low_tokens_per_s=low,
        )

    def sight(self, table: Table, where: str) -> Sight:
        return Sight(cell_px=self.count(table, "cell_px", where, least=1))

    def ratios(self, table: Table, where: str) -> TextRatios:
        return TextRatios(**{item.name: self.ratio(table, item.name, where) for item in fields(TextRatios)})

    def part_resolution(self, table: Table, where: str) -> PartResolution:
        return PartResolution(honoured=self.flag(table, "honoured", where))

    def honoured(self, table: Table, where: str) -> Honoured:
        named = self.words(table, "control", f"{where}.control") or self.missing(f"{where}.control", ())
        return Honoured(
            control=tuple(self.word(WireControl, name, f"{where}.control") for name in named),
            honoured=self.flag(table, "honoured", where),
        )

    def counts(self, table: Table, where: str) -> CountRule:
        def whole(key: str) -> int:
            return self.count(table, key, where) if key in table else 0

        return CountRule(
            modality=self.word(Modality, table.get("modality"), f"{where}.modality"),
            each=self.shape(table["each"], f"{where}.each") if "each" in table else None,
            plus=whole("plus"),
            tokens_per_s=whole("tokens_per_s"),
            one_more_every_s=whole("one_more_every_s") or None,
            bill_over=whole("bill_over"),
        )

    def accepted(self, table: Table, where: str) -> Accepted:
        named = self.words(table, "modality", f"{where}.modality")
        mimes = self.words(table, "mimes", f"{where}.mimes")
        return Accepted(
            modality=tuple(self.word(Modality, name, f"{where}.modality") for name in named)
            if named
            else self.missing(f"{where}.modality", ()),
            mimes=self.missing(f"{where}.mimes", ()) if mimes is None else mimes,
        )

    def limit(self, table: Table, where: str) -> Limit:
        name = self.text(table, "limit", f"{where}.limit")
        if name and name not in LIMITS:
            self.found.append(f"{where}.limit: unknown limit {quoted(name)}{nearest(name, LIMITS)}")
        return Limit(limit=name, value=self.count(table, "value", where))

    def sources(self, document: Table) -> Mapping[str, Table]:
        table = document.get("sources", {})
        if isinstance(table, Mapping) and all(map(_is_source, table.items())):
            return table
        self.found.append("sources: expected tables with a title, url and date, as in [sources.KEY]")
        return {}

    # --- values ---

    def keys(self, table: Table, known: tuple[str, ...], where: str) -> None:
        for key in islice((key for key in table if key not in known), MOST_TOLD + 1):
            self.found.append(f"{f'{where}.' if where else ''}{plain(key)}: unknown key{nearest(key, known)}")

    def tables(self, document: Table, section: str) -> list[Table]:
        value = document.get(section, [])
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            return value
        self.found.append(f"{section}: expected [[{section}]] entries")
        return []

    def missing(self, where: str, value: Any) -> Any:
        self.found.append(f"{where}: missing")
        return value

    def text(self, table: Table, key: str, where: str, default: str | None = None, most: int = 1_000) -> str:
        value = table.get(key, default)
        if value is None:
            self.found.append(f"{where}: missing")
        elif not is_line(value, most):
            self.found.append(f"{where}: expected {_sayable(most)}, not {quoted(value)}")
        return value if isinstance(value, str) else ""

    def words(self, table: Table, key: str, where: str) -> tuple[str, ...] | None:
        value = table.get(key)
        items = [value] if isinstance(value, str) else value
        if items is None:
            return None
        if isinstance(items, list) and all(item and is_line(item, _LONGEST_WORD) for item in items):
            return tuple(items)
        self.found.append(f"{where}: expected {_sayable(_LONGEST_WORD)} or a list of such, not {quoted(value)}")
        return ()

    def word(self, words: type[Word], value: object, where: str) -> Word:
        known = [str(item) for item in words]
        if isinstance(value, str) and value in known:
            return words(value)
        if value is None:
            self.found.append(f"{where}: missing")
        else:
            self.found.append(f"{where}: unknown value {quoted(value)}{nearest(str(value), known)}")
        return words(known[0])

    def choice(self, words: type[Word], table: Table, key: str, where: str) -> frozenset[Word] | None:
        items = self.words(table, key, f"{where}.{key}")
        return None if items is None else frozenset(self.word(words, item, f"{where}.{key}") for item in items)

    def day(self, table: Table, key: str, where: str, default: date | None = None) -> date:
        value = table.get(key, default)
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        self.found.append(
            f"{where}: expected a date as in 2026-11-30" + ("" if value is None else f", not {quoted(value)}")
        )
        return date.min

    def flag(self, table: Table, key: str, where: str, default: bool | None = None) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self.found.append(f"{where}.{key}: expected true or false")
        return bool(value)

    def count(self, table: Table, key: str, where: str, least: int = 0) -> int:
        value = table.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_COUNT:
            return value
        bounds = f"at least {least}" if not isinstance(value, int) or value < least else f"at most {_MOST_COUNT:,}"
        self.found.append(f"{where}.{key}: expected a whole number of {bounds}, not {quoted(value)}")
        return max(least, 1)

    def ratio(self, table: Table, key: str, where: str, above: float | None = None) -> float:
        value = table.get(key)
        valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_RATIO
        if valid and (above is None or value > above):  # type: ignore[operator]  # a number, by the line before
            return float(value)  # type: ignore[arg-type]
        bound = "at least 0" if above is None else f"above {above:g}"
        self.found.append(f"{where}.{key}: expected a number {bound}, at most {_MOST_RATIO:,}, not {quoted(value)}")
        return 1.0


def _sayable(most: int) -> str:
    return f"text of at most {most:,} characters, without control characters or keys"


def _is_source(item: tuple[str, object]) -> bool:
    key, source = item
    if not is_line(key, _LONGEST_NAME) or not isinstance(source, Mapping) or "title" not in source:
        return False
    return all(isinstance(said, date) or is_line(said, _LONGEST_WORD) for said in source.values())


def _names(
    figure: type[Sampling | Rate | Sight | TextRatios | PartResolution | Honoured | CountRule | Accepted | Limit],
) -> tuple[str, ...]:
    return tuple(item.name for item in fields(figure))


_AREA = (("likely", "low", "high"), _Reader.area)
_RATE = (_names(Rate), _Reader.rate)
_SECTIONS: Mapping[str, tuple[tuple[str, ...], Callable[[_Reader, Table, str], Figure]]] = {
    "image": _AREA,
    "video": _AREA,
    "sampling": (_names(Sampling), _Reader.sampling),
    "sound": _RATE,
    "silent_sound": _RATE,
    "audio": _RATE,
    "document": _AREA,
    "sight": (_names(Sight), _Reader.sight),
    "text": (_names(TextRatios), _Reader.ratios),
    "part_resolution": (_names(PartResolution), _Reader.part_resolution),
    "honours": (_names(Honoured), _Reader.honoured),
    "counts": (_names(CountRule), _Reader.counts),
    "accepts": (_names(Accepted), _Reader.accepted),
    "limits": (_names(Limit), _Reader.limit),
}
SECTIONS = tuple(_SECTIONS)
