"""Tokens of a PDF: each page as a picture. Its text adds nothing to the bill."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weighlock.media.area import Area
from weighlock.media.facts import DocumentFacts, PageRun
from weighlock.media.rule import Provenance
from weighlock.media.tokens import TokenRange
from weighlock.request import Modality

# A4, for pages whose size nothing states; thousandths of a point make whole numbers of every page size in use.
_A4 = PageRun(pages=1, width_pt=595.276, height_pt=841.89)
_PER_POINT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRule:
    """What one page costs at one resolution."""

    page: Area
    provenance: Provenance


def pages_of(facts: DocumentFacts, first: int | None, last: int | None) -> DocumentFacts:
    """The document's pages from `first` to `last`, both from 1 and included; all of it where neither is given.

    A range that begins behind the end leaves no page.
    """
    if first is None and last is None:
        return facts
    skip, stop = (first or 1) - 1, facts.pages_high if last is None else last
    runs, at = [], 0
    for run in facts.runs:
        pages = min(at + run.pages, stop) - max(at, skip)
        at += run.pages
        if pages > 0:
            runs.append(replace(run, pages=pages))
    left, left_high = (max(0, min(pages, stop) - skip) for pages in (facts.pages, facts.pages_high))
    return replace(facts, pages=left, pages_high=left_high, runs=tuple(runs))


def tokens(facts: DocumentFacts, rule: DocumentRule) -> TokenRange:
    """Prompt tokens of one PDF.

    Pages beyond the listed runs count as the dearest page of the file (A4 if none is listed; `high` never less).
    """
    counts = [(run.pages, _page(run, rule.page)) for run in facts.runs]
    low, likely, high = (sum(pages * count[bound] for pages, count in counts) for bound in range(3))
    listed = sum(run.pages for run in facts.runs)
    a4 = _page(_A4, rule.page)
    each = [count for _, count in counts] or [a4]
    unlisted, doubtful = max(0, facts.pages - listed), max(0, facts.pages_high - max(facts.pages, listed))
    return rule.provenance.range(
        Modality.DOCUMENT,
        low + unlisted * min(count[0] for count in each),
        likely + unlisted * max(count[1] for count in each),
        high + (unlisted + doubtful) * max(count[2] for count in (*each, a4)),
    )


def _page(run: PageRun, page: Area) -> tuple[int, int, int]:
    width, height = (max(1, round(side * _PER_POINT)) for side in (run.width_pt, run.height_pt))
    return page.count(width, height)
