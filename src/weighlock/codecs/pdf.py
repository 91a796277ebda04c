"""PDF pages. The only file that imports `pypdfium2` and `pikepdf`; runs in the confined child.

The page tree is walked leaf by leaf with pikepdf, because `/Count` is a claim (PDFium believes it); PDFium opens what
pikepdf cannot, and says how many pages another reader sees.
"""

from __future__ import annotations

import io
import logging
import mmap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pikepdf
import pypdfium2
import pypdfium2.version

from weighlock.codecs.mapped import MappedFile
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.facts import Anomaly, DocumentFacts, FactSource, PageRun, Probed
from weighlock.modality import Modality

if TYPE_CHECKING:
    from weighlock.codecs.job import Bounds

_HEAD = 1024
"""`%PDF-` must stand within these first bytes; so say the service and the readers."""
_MAX_DEPTH = 64
_MAX_NODES_PER_PAGE = 16
_LETTER = (612.0, 792.0)
_INHERITED = ("/MediaBox", "/CropBox", "/Rotate", "/Resources")
_LARGEST_PT = 2_000_000.0

_SAMPLE = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)


def warm_up() -> None:
    """Open a plain and an encrypted document both ways: nothing is left to be imported, mapped or seeded."""
    logging.getLogger("pikepdf").disabled = True
    logging.getLogger("pypdfium2").disabled = True
    locked = io.BytesIO()
    with _open(_SAMPLE) as document:
        document.save(locked, encryption=pikepdf.Encryption(owner="owner"))
    for sample in (_SAMPLE, locked.getvalue()):
        with _open(sample) as document:
            list(_leaves(document, 8))
        _pdfium_sizes(MappedFile(sample), 8)


def versions() -> dict[str, str]:
    return {
        "pikepdf": pikepdf.__version__, "qpdf": pikepdf.__libqpdf_version__,
        "pypdfium2": str(pypdfium2.version.PYPDFIUM_INFO), "pdfium": str(pypdfium2.version.PDFIUM_INFO),
    }  # fmt: skip


def probe(view: mmap.mmap, *, mime: str, modality: Modality, bounds: Bounds) -> Probed:  # noqa: ARG001 - one shape for all doors
    """Pages and their displayed sizes. Raises what `Prober.probe` says."""
    if b"%PDF-" not in view[: _HEAD + 5]:
        raise MalformedMedia(f"no PDF header within its first {_HEAD:,} bytes")
    try:
        sizes, encrypted = _walked(view, bounds.max_pages)
    except InputError:
        raise
    except pikepdf.PasswordError as error:
        raise UnsupportedMedia(
            "encrypted with a password; remove the password and send it again", encrypted=True
        ) from error
    except (pikepdf.PdfError, ValueError, RuntimeError, TypeError, KeyError, OSError) as error:
        return _by_pdfium_alone(view, bounds, error)
    if not sizes:
        raise MalformedMedia("it has no pages", pages=0)
    seen_by_pdfium = _pdfium_count(MappedFile(view))
    anomalies = []
    if seen_by_pdfium is not None and seen_by_pdfium != len(sizes):
        detail = f"{len(sizes):,} pages in its page tree, {seen_by_pdfium:,} by the count another reader believes"
        anomalies.append(Anomaly(code="page_count_mismatch", detail=detail))
    return Probed(
        facts=_facts(
            sizes, pages_high=max(len(sizes), seen_by_pdfium or 0), encrypted=encrypted, source=FactSource.SCANNED
        ),
        anomalies=tuple(anomalies),
    )


def _facts(sizes: list[tuple[float, float]], *, pages_high: int, encrypted: bool, source: FactSource) -> DocumentFacts:
    runs = tuple(PageRun(pages=len(list(same)), width_pt=w, height_pt=h) for (w, h), same in groupby(sizes))
    return DocumentFacts(pages=len(sizes), pages_high=pages_high, runs=runs, encrypted=encrypted, pages_source=source)


# -- the page tree ----------------------------------------------------------------------------------------------------


def _walked(view: mmap.mmap, max_pages: int) -> tuple[list[tuple[float, float]], bool]:
    with _open(view) as document:
        return list(_leaves(document, max_pages)), bool(document.is_encrypted)


def _open(data: bytes | mmap.mmap) -> pikepdf.Pdf:
    return opened(cast("BinaryIO", MappedFile(data)))


def opened(source: BinaryIO) -> pikepdf.Pdf:
    """The document behind `source`, mended where pikepdf can; only what is asked of it is read."""
    return pikepdf.open(source, access_mode=pikepdf.AccessMode.stream, suppress_warnings=True)


def _leaves(document: pikepdf.Pdf, max_pages: int) -> Iterator[tuple[float, float]]:
    """Displayed size of each page in order."""
    return (_displayed(node, above) for node, above in page_leaves(document, max_pages))


def page_leaves(document: pikepdf.Pdf, max_pages: int) -> Iterator[tuple[pikepdf.Dictionary, dict[str, Any]]]:
    """Each leaf of the page tree in order, whatever its nodes claim to hold, and what it inherits.

    A node met twice is an error: the tree is a circle or a fan of circles.

    Raises:
        MalformedMedia: a circle, or deeper or wider than any honest tree.
        MediaTooLarge: more than `max_pages`.
    """
    root = document.Root.get("/Pages")
    if not isinstance(root, pikepdf.Dictionary):
        return
    stack: list[tuple[Any, dict[str, Any], int]] = [(root, {}, 0)]
    seen: set[tuple[int, int]] = set()
    nodes = pages = 0
    while stack:
        node, above, depth = stack.pop()
        nodes += 1
        if depth > _MAX_DEPTH or nodes > max_pages * _MAX_NODES_PER_PAGE:
            raise MalformedMedia(
                f"its page tree is deeper than {_MAX_DEPTH} or has {nodes:,} nodes for {pages:,} pages"
            )
        if not isinstance(node, pikepdf.Dictionary):
            continue
        kids = node.get("/Kids")
        if isinstance(kids, pikepdf.Array) and node.get("/Type") != "/Page":
            if node.objgen in seen and node.objgen != (0, 0):
                raise MalformedMedia("its page tree runs in a circle")
            seen.add(node.objgen)
            passed = {**above, **{name: node.get(name) for name in _INHERITED if name in node}}
            stack.extend((kid, passed, depth + 1) for kid in reversed(list(kids)))
            continue
        pages += 1
        if pages > max_pages:
            raise MediaTooLarge(f"more than {max_pages:,} pages (safety.max.pages)", max_pages=max_pages)
        yield node, above


def _displayed(page: pikepdf.Dictionary, above: dict[str, Any]) -> tuple[float, float]:
    """Width and height in points as a viewer shows the page: crop box within media box, turned, in its own unit."""
    found = {name: page.get(name, above.get(name)) for name in _INHERITED[:3]}
    media = _box(found["/MediaBox"]) or (0.0, 0.0, *_LETTER)
    crop = _box(found["/CropBox"]) or media
    both = (max(media[0], crop[0]), max(media[1], crop[1]), min(media[2], crop[2]), min(media[3], crop[3]))
    left, bottom, right, top = both if both[2] > both[0] and both[3] > both[1] else media
    unit = _number(page.get("/UserUnit"), 1.0)
    unit = unit if 0 < unit <= 75_000 else 1.0
    width, height = round(min((right - left) * unit, _LARGEST_PT), 2), round(min((top - bottom) * unit, _LARGEST_PT), 2)
    turned = round(_number(found["/Rotate"], 0.0) / 90) % 2 == 1
    return (height, width) if turned else (width, height)


def _box(value: Any) -> tuple[float, float, float, float] | None:
    if not isinstance(value, pikepdf.Array) or len(value) < 4:
        return None
    numbers = [_number(value[i], float("nan")) for i in range(4)]
    if any(not abs(n) <= _LARGEST_PT for n in numbers):
        return None
    (x0, x1), (y0, y1) = sorted((numbers[0], numbers[2])), sorted((numbers[1], numbers[3]))
    return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


def _number(value: Any, default: float) -> float:
    try:
        return float(value) if value is not None else default
    except (TypeError, ValueError, ArithmeticError):
        return default


# -- PDFium -----------------------------------------------------------------------------------------------------------


def _by_pdfium_alone(view: mmap.mmap, bounds: Bounds, reason: Exception) -> Probed:
    """For files whose structure only PDFium can mend. Its count cannot be checked there, and the facts say so."""
    try:
        sizes = _pdfium_sizes(MappedFile(view), bounds.max_pages)
    except pypdfium2.PdfiumError as error:
        raise MalformedMedia(f"no PDF reader opens it: {type(reason).__name__}, {type(error).__name__}") from error
    if not sizes:
        raise MalformedMedia("it has no pages", pages=0)
    note = Anomaly(code="page_tree_unverified", detail=f"only one of two readers opens it ({type(reason).__name__})")
    facts = _facts(sizes, pages_high=len(sizes), encrypted=False, source=FactSource.HEADER)
    return Probed(facts=facts, anomalies=(note,))


def _pdfium_count(window: MappedFile) -> int | None:
    try:
        document = pypdfium2.PdfDocument(window)
    except pypdfium2.PdfiumError:
        return None
    with document:
        return len(document)


def _pdfium_sizes(window: MappedFile, max_pages: int) -> list[tuple[float, float]]:
    with pypdfium2.PdfDocument(window) as document:
        if len(document) > max_pages:
            raise MediaTooLarge(
                f"{len(document):,} pages; at most {max_pages:,} (safety.max.pages)", max_pages=max_pages
            )
        sizes = [document.get_page_size(i) for i in range(len(document))]
    return [(round(w, 2), round(h, 2)) if w > 0 and h > 0 else _LETTER for w, h in sizes]
