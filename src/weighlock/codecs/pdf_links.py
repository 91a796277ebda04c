"""Links and bookmarks of a PDF that still lead somewhere when only some of its pages are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

_MAX_BOOKMARKS = 5000
_MAX_DEPTH = 32
_FITS = {"/XYZ", "/Fit", "/FitH", "/FitV", "/FitR", "/FitB", "/FitBH", "/FitBV"}
_BROKEN = (pikepdf.PdfError, ValueError, RuntimeError, TypeError, LookupError, AttributeError)


class Links:
    """Resolves destinations of `document` to the pages kept: `numbers` is the new place of each by its object."""

    def __init__(self, document: pikepdf.Pdf, numbers: dict[tuple[int, int], int]) -> None:
        self._document = document
        self._numbers = numbers
        self._names: Any = None

    def carry(self, source: Any, copied: Any, taken: pikepdf.Pdf) -> bool:
        """Give the copied link annotation where it leads; false where that is not within reach."""
        action = source.get("/A")
        if isinstance(action, Dictionary) and action.get("/S") == "/URI":
            address = action.get("/URI")
            if not isinstance(address, String):
                return False
            copied.A = Dictionary(S=Name.URI, URI=String(bytes(address)))
            return True
        place = self._place(source)
        if place is None:
            return False
        copied.Dest = self._destination(place, taken)
        return True

    def add_bookmarks(self, taken: pikepdf.Pdf) -> None:
        """The outline as far as it leads to kept pages; what is below a lost entry moves up to its place."""
        root = self._document.Root.get("/Outlines")
        if not isinstance(root, Dictionary):
            return
        kept: list[tuple[int, str, tuple[int, Any]]] = []
        for depth, entry in _entries(root):
            try:
                place = self._place(entry)
                if place is not None:
                    kept.append((depth, str(entry.get("/Title", "")), place))
            except _BROKEN:
                continue
        if not kept:
            return
        with taken.open_outline() as outline:
            above: list[tuple[int, list[pikepdf.OutlineItem]]] = [(-1, outline.root)]
            for depth, title, place in kept:
                while above[-1][0] >= depth:
                    above.pop()
                item = pikepdf.OutlineItem(title, destination=self._destination(place, taken))
                above[-1][1].append(item)
                above.append((depth, item.children))

    def _place(self, source: Any) -> tuple[int, Any] | None:
        """The kept page an entry or annotation leads to, and the destination array."""
        target, action = source.get("/Dest"), source.get("/A")
        if target is None and isinstance(action, Dictionary) and action.get("/S") == "/GoTo":
            target = action.get("/D")
        if isinstance(target, (Name, String)):
            target = self._named(target)
        if isinstance(target, Dictionary):
            target = target.get("/D")
        if not isinstance(target, Array) or not len(target) or not isinstance(target[0], Dictionary):
            return None
        number = self._numbers.get(target[0].objgen)
        return None if number is None else (number, target)

    def _named(self, name: Any) -> Any:
        try:
            if isinstance(name, Name):
                return self._document.Root.get("/Dests", Dictionary()).get(str(name))
            if self._names is None:
                self._names = pikepdf.NameTree(self._document.Root.Names.Dests, auto_repair=False)
            return self._names.get(str(name))
        except _BROKEN:
            return None

    def _destination(self, place: tuple[int, Any], taken: pikepdf.Pdf) -> Array:
        number, target = place
        rest = list(target)[1:6]
        if not rest or str(rest[0]) not in _FITS:
            rest = [Name.Fit]
        numbers = [value for value in rest[1:] if not isinstance(value, pikepdf.Object)]
        return Array([taken.pages[number].obj, Name(str(rest[0])), *numbers])


def _entries(root: Any) -> Iterator[tuple[int, Any]]:
    """Entries of an outline in reading order with their depth, each once, however it is tied together."""
    waiting = [(0, root.get("/First"))]
    seen: set[tuple[int, int]] = set()
    while waiting and len(seen) < _MAX_BOOKMARKS:
        depth, entry = waiting.pop()
        if not isinstance(entry, Dictionary) or depth > _MAX_DEPTH or entry.objgen in seen:
            continue
        seen.add(entry.objgen)
        yield depth, entry
        waiting.append((depth, entry.get("/Next")))
        waiting.append((depth + 1, entry.get("/First")))
