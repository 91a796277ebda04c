"""Takes pages out of a PDF without drawing them again. Runs in the confined child.

A new document is built from what a page needs, rather than the old one cut down: what is not asked for (scripts,
attachments, forms' actions, other pages) has no way in.
"""

from __future__ import annotations

import io
import re
from typing import Any, BinaryIO

import pikepdf
from pikepdf import Array, Dictionary, Name

from weighlock.codecs import pdf_strip
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pdf import opened, page_leaves
from weighlock.codecs.pdf_links import Links
from weighlock.codecs.pdf_strip import MIME, clear, refuse_encrypted, save, typed
from weighlock.errors import MalformedMedia, UnsupportedMedia
from weighlock.media.work import DocumentWork

_KEPT = (
    "/Resources", "/MediaBox", "/CropBox", "/BleedBox", "/TrimBox", "/ArtBox", "/Rotate", "/UserUnit", "/Contents",
    "/Group",
)  # fmt: skip
_ANNOTATION_KEPT = (
    "/Type", "/Subtype", "/Rect", "/AP", "/AS", "/F", "/Contents", "/C", "/CA", "/Border", "/BS", "/QuadPoints",
    "/InkList", "/L", "/LE", "/Vertices", "/IC", "/DA", "/Q", "/OC",
)  # fmt: skip
_ANNOTATION_DROPPED = {"/FileAttachment", "/Movie", "/Sound", "/Screen", "/RichMedia", "/3D", "/Popup", "/TrapNet"}
_MAX_ANNOTATIONS = 5000
_VERSION = re.compile(r"[12]\.\d")


def warm_up() -> None:
    """Take a page out of a drawn document, marked and layered, so that nothing is left to be imported or mapped."""
    pdf_strip.warm_up()
    with pikepdf.new() as document:
        page = document.add_blank_page(page_size=(9, 9))
        page.obj.Contents = document.make_stream(b"q Q")
        with document.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem("here", 0))
        drawn = io.BytesIO()
        document.save(drawn)
    make(drawn, io.BytesIO(), DocumentWork(first_page=1, last_page=1, strip_metadata=True))


def make(source: BinaryIO, out: BinaryIO, work: DocumentWork, *, max_pages: int = 1000) -> Outcome:
    """Writes pages `first_page` to `last_page` of `source` to `out`. Same input and work, same bytes.

    Fonts and pictures are copied as they are; those of other pages stay behind. Annotations and fields of forms keep
    how they look; links within the range and to the web keep working, other actions go.

    Raises:
        UnsupportedMedia: encrypted, or a page that is not there.
        MalformedMedia: no page can be read.
        MediaTooLarge: more than `max_pages`.
    """
    with typed(), opened(source) as document:
        refuse_encrypted(document)
        leaves = list(page_leaves(document, max_pages))
        _refuse_missing(len(leaves), work)
        with pikepdf.new() as taken:
            _take(document, taken, leaves[work.first_page - 1 : work.last_page])
            taken.remove_unreferenced_resources()
            if work.strip_metadata:
                clear(taken)
            version = str(document.pdf_version)
            save(taken, out, min_version=version if _VERSION.fullmatch(version) else "")
    return Outcome(mime=MIME)


def _refuse_missing(pages: int, work: DocumentWork) -> None:
    if not pages:
        raise MalformedMedia("it has no pages", pages=0)
    if not 1 <= work.first_page <= work.last_page <= pages:
        raise UnsupportedMedia(
            f"pages {work.first_page} to {work.last_page} are asked for, it has {pages:,}",
            pages=pages, first_page=work.first_page, last_page=work.last_page,
        )  # fmt: skip


def _take(document: pikepdf.Pdf, taken: pikepdf.Pdf, chosen: list[tuple[Any, dict[str, Any]]]) -> None:
    numbers = {leaf.objgen: index for index, (leaf, _) in enumerate(chosen) if leaf.objgen != (0, 0)}
    links = Links(document, numbers)
    for leaf, above in chosen:
        values = {name: leaf.get(name, above.get(name)) for name in _KEPT}
        copied = _copied(document, taken, {name: value for name, value in values.items() if value is not None})
        copied.Type = Name.Page
        if "/MediaBox" not in copied:
            copied.MediaBox = Array([0, 0, 612, 792])
        taken.pages.append(pikepdf.Page(copied))
    for page, (leaf, _) in zip(taken.pages, chosen, strict=True):
        if annotations := list(_annotations(document, taken, leaf, links)):
            page.obj.Annots = Array(annotations)
    _keep_layers(document, taken)
    links.add_bookmarks(taken)


def _copied(document: pikepdf.Pdf, taken: pikepdf.Pdf, values: dict[str, Any]) -> Any:
    """These values in the new document, with all they refer to; a page they refer to is left out."""
    return taken.copy_foreign(document.make_indirect(Dictionary(values)))


def _annotations(document: pikepdf.Pdf, taken: pikepdf.Pdf, leaf: Any, links: Links) -> Any:
    found = leaf.get("/Annots")
    for index in range(min(len(found), _MAX_ANNOTATIONS) if isinstance(found, Array) else 0):
        source = found[index]
        if not isinstance(source, Dictionary) or str(source.get("/Subtype")) in _ANNOTATION_DROPPED:
            continue
        is_link = source.get("/Subtype") == "/Link"
        if not is_link and "/AP" not in source:
            continue
        values = {name: source[name] for name in _ANNOTATION_KEPT if name in source}
        if source.get("/Subtype") == "/Widget":  # without its form it is only a picture of what was filled in
            values["/Subtype"] = Name.Stamp
        copied = _copied(document, taken, values)
        if not is_link or links.carry(source, copied, taken):
            yield copied


def _keep_layers(document: pikepdf.Pdf, taken: pikepdf.Pdf) -> None:
    """Which optional layers are off: without it, a layer the author hid would be drawn."""
    layers = document.Root.get("/OCProperties")
    if not isinstance(layers, Dictionary) or not isinstance(layers.get("/D"), Dictionary):
        return
    shown = {name: layers.D[name] for name in ("/BaseState", "/ON", "/OFF", "/AS", "/Order") if name in layers.D}
    groups = layers.get("/OCGs")
    if isinstance(groups, Array):
        values = {"/OCGs": groups, "/D": Dictionary(shown)}
        taken.Root.OCProperties = _copied(document, taken, values)
