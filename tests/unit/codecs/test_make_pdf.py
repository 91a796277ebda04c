"""Pages taken out of a PDF: what stays, what has no way in, and that it is drawn as before."""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections.abc import Callable
from typing import Any

import pikepdf
import pypdfium2
import pytest
from pikepdf import Array, Dictionary, Name, OutlineItem, String

import media
from weighlock.codecs import pdf_make
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.work import DocumentWork

PICTURE_BYTES = 20_000


def taken(data: bytes, first: int, last: int, **options: Any) -> bytes:
    out = io.BytesIO()
    strip = options.pop("strip_metadata", False)
    work = DocumentWork(first_page=first, last_page=last, strip_metadata=strip)
    pdf_make.make(io.BytesIO(data), out, work, **options)
    return out.getvalue()


def book(pages: int = 10, more: Callable[[pikepdf.Pdf], None] | None = None) -> bytes:
    """Each page shows a noise picture of its own; all share one dictionary of resources."""
    chance = random.Random(9)
    document = pikepdf.new()
    shared = document.make_indirect(Dictionary(XObject=Dictionary()))
    for number in range(pages):
        picture = document.make_stream(chance.randbytes(PICTURE_BYTES))
        picture.update({"/Type": Name.XObject, "/Subtype": Name.Image, "/Width": 100, "/Height": 200})
        picture.update({"/ColorSpace": Name.DeviceGray, "/BitsPerComponent": 8})
        shared.XObject[f"/Im{number}"] = picture
        page = document.add_blank_page(page_size=(200, 300 + number))
        page.obj.Contents = document.make_stream(b"q 200 0 0 300 0 0 cm /Im%d Do Q" % number)
        page.obj.Resources = shared
    if more is not None:
        more(document)
    drawn = io.BytesIO()
    document.save(drawn)
    return drawn.getvalue()


def drawn(data: bytes) -> list[bytes]:
    """Each page as PDFium draws it."""
    with pypdfium2.PdfDocument(data) as document:
        return [page.render(scale=0.5).to_pil().tobytes() for page in document]


def everything_in(data: bytes) -> bytes:
    """All objects and unpacked streams as one text to search."""
    with pikepdf.open(io.BytesIO(data)) as document:
        unpacked = [found.read_bytes() for found in document.objects if isinstance(found, pikepdf.Stream)]
        return b"".join([*unpacked, *(repr(found).encode() for found in document.objects)])


def opened(data: bytes) -> pikepdf.Pdf:
    return pikepdf.open(io.BytesIO(data))


@pytest.mark.parametrize(("first", "last"), [(1, 1), (3, 5), (10, 10), (1, 10)])
def test_the_pages_asked_for_are_drawn_as_before(first: int, last: int) -> None:
    data = book()

    assert drawn(taken(data, first, last)) == drawn(data)[first - 1 : last]


def test_what_only_other_pages_use_stays_behind() -> None:
    data = book()

    assert len(taken(data, 4, 4)) < PICTURE_BYTES + 3_000
    assert len(taken(data, 4, 6)) < 3 * PICTURE_BYTES + 4_000


def test_same_input_and_pages_give_the_same_bytes() -> None:
    assert taken(book(), 2, 4) == taken(book(), 2, 4)


def test_what_a_page_inherits_comes_along() -> None:
    data = media.raw_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 2/MediaBox[0 0 400 500]/Rotate 90/Resources<</Font<</F1 6 0 R>>>>>>",
        b"<</Type/Pages/Parent 2 0 R/Kids[4 0 R 5 0 R]/Count 2/CropBox[0 0 200 100]>>",
        b"<</Type/Page/Parent 3 0 R>>",
        b"<</Type/Page/Parent 3 0 R/Rotate 0/Contents 7 0 R>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length 38>>stream\nBT /F1 24 Tf 10 10 Td (Hello) Tj ET    \nendstream",
    )

    with opened(taken(data, 1, 2)) as document:
        first, second = (page.obj for page in document.pages)
        assert [float(v) for v in first.MediaBox] == [0, 0, 400, 500]
        assert [int(page.Rotate) for page in (first, second)] == [90, 0]
        assert [float(v) for v in second.CropBox] == [0, 0, 200, 100]
        assert second.Resources.Font.F1.BaseFont == "/Helvetica"
    assert drawn(taken(data, 2, 2)) == drawn(data)[1:]


@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 4), (4, 4), (3, 2), (-1, 2)])
def test_pages_that_are_not_there_are_refused_with_their_number(first: int, last: int) -> None:
    with pytest.raises(UnsupportedMedia, match="it has 3") as caught:
        taken(media.pdf([(100, 100)] * 3), first, last)

    assert caught.value.figures["pages"] == 3


@pytest.mark.parametrize("lock", [{"password": "x" * 8}, {"owner_only": True}])
def test_an_encrypted_document_is_refused(lock: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedMedia, match="encrypted"):
        taken(media.pdf(**lock), 1, 1)


# -- bookmarks and links ----------------------------------------------------------------------------------------------


def _chapters(document: pikepdf.Pdf) -> None:
    with document.open_outline() as outline:
        for chapter in (0, 5):
            item = OutlineItem(f"chapter on {chapter + 1}", chapter)
            item.children += [OutlineItem(f"section on {page + 1}", page) for page in range(chapter + 1, chapter + 5)]
            outline.root.append(item)


def _titles(items: list[OutlineItem]) -> list[Any]:
    return [(item.title, _titles(item.children)) if item.children else item.title for item in items]


def test_bookmarks_that_lead_to_the_pages_stay_and_lead_there() -> None:
    data = taken(book(more=_chapters), 4, 7)

    with opened(data) as document, document.open_outline() as outline:
        titles = _titles(outline.root)
        assert titles == ["section on 4", "section on 5", ("chapter on 6", ["section on 7"])]
        destination = outline.root[2].children[0].destination
        assert isinstance(destination, Array)
        assert destination[0].objgen == document.pages[3].obj.objgen


def test_bookmarks_by_name_are_resolved_and_the_names_go() -> None:
    def named(document: pikepdf.Pdf) -> None:
        tree = pikepdf.NameTree.new(document)
        for page in range(10):
            tree[f"place {page + 1}"] = Array([document.pages[page].obj, Name.XYZ, 0, 100, 0])
        document.Root.Names = Dictionary(Dests=tree.obj)
        with document.open_outline() as outline:
            outline.root += [OutlineItem(f"to {n}", String(f"place {n}")) for n in (2, 5, 99)]

    with opened(taken(book(more=named), 4, 6)) as document, document.open_outline() as outline:
        assert _titles(outline.root) == ["to 5"]
        assert "/Names" not in document.Root


def _links(document: pikepdf.Pdf) -> None:
    def link(**values: Any) -> Any:
        return document.make_indirect(
            Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([0, 0, 9, 9]), **values)
        )

    target = [document.pages[n].obj for n in range(10)]
    document.pages[3].obj.Annots = Array(
        [
            link(Dest=Array([target[4], Name.Fit])),
            link(Dest=Array([target[9], Name.Fit])),
            link(A=Dictionary(S=Name.GoTo, D=Array([target[3], Name.XYZ, 0, 50, 0]))),
            link(A=Dictionary(S=Name.URI, URI=String("https://example.org/"))),
            link(A=Dictionary(S=Name.JavaScript, JS=String("app.alert('evil')"))),
            link(A=Dictionary(S=Name.Launch, F=String("evil.exe"))),
            link(A=Dictionary(S=Name.GoToR, F=String("other.pdf"), D=Array([0, Name.Fit]))),
        ]
    )


def test_links_within_the_pages_and_to_the_web_stay_and_others_go() -> None:
    data = taken(book(more=_links), 4, 5)

    with opened(data) as document:
        links = list(document.pages[0].obj.Annots)
        assert [link.Dest[0].objgen for link in links[:2]] == [page.obj.objgen for page in reversed(document.pages)]
        assert str(links[2].A.URI) == "https://example.org/"
        assert len(links) == 3
    assert len(data) < 2 * PICTURE_BYTES + 4_000
    assert b"evil" not in everything_in(data)


# -- what has no way in -----------------------------------------------------------------------------------------------


def _armed(document: pikepdf.Pdf) -> None:
    script = document.make_indirect(Dictionary(S=Name.JavaScript, JS=String("app.alert('evil')")))
    document.Root.OpenAction = script
    document.Root.AA = Dictionary(WC=script)
    document.Root.Names = Dictionary(JavaScript=Dictionary(Names=Array([String("evil"), script])))
    document.attachments["secret.txt"] = b"evil attachment"
    page = document.pages[0].obj
    page.AA = Dictionary(O=script)
    field = Dictionary(Type=Name.Annot, Subtype=Name.Widget, FT=Name.Tx, T=String("f"), Rect=Array([0, 0, 50, 20]))
    look = document.make_stream(b"0.5 g 0 0 50 20 re f")
    look.update({"/Type": Name.XObject, "/Subtype": Name.Form, "/BBox": Array([0, 0, 50, 20])})
    field.AP, field.A, field.AA = Dictionary(N=look), script, Dictionary(F=script)
    stowed = document.make_stream(b"evil attachment of a page")
    file = Dictionary(Type=Name.Filespec, F=String("x"), EF=Dictionary(F=stowed))
    clip = Dictionary(
        Type=Name.Annot, Subtype=Name.FileAttachment, Rect=Array([0, 0, 9, 9]), FS=file, AP=Dictionary(N=look)
    )
    page.Annots = Array([document.make_indirect(field), document.make_indirect(clip)])
    document.Root.AcroForm = Dictionary(Fields=Array([page.Annots[0]]), XFA=String("evil form"))
    with document.open_metadata() as meta:
        meta["dc:creator"] = ["Erika Mustermann evil"]
    document.docinfo["/Author"] = "Erika Mustermann evil"


def test_scripts_attachments_and_authors_are_not_carried_and_the_form_still_shows() -> None:
    armed = book(more=_armed)
    assert b"evil" in everything_in(armed)

    data = taken(armed, 1, 1)

    assert b"evil" not in everything_in(data)
    with opened(data) as document:
        assert set(document.Root.keys()) == {"/Type", "/Pages"}
        assert [str(annotation.Subtype) for annotation in document.pages[0].obj.Annots] == ["/Stamp"]
    with pypdfium2.PdfDocument(data) as document_drawn:
        assert document_drawn[0].render().to_pil().convert("L").getpixel((25, 290)) == 128


def test_a_hidden_layer_stays_hidden() -> None:
    def hide(document: pikepdf.Pdf) -> None:
        layer = document.make_indirect(Dictionary(Type=Name.OCG, Name=String("draft")))
        document.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=Dictionary(OFF=Array([layer])))
        page = document.pages[1].obj
        page.Resources = Dictionary(Properties=Dictionary(L=layer))
        page.Contents = document.make_stream(b"/OC /L BDC 0 g 0 0 200 300 re f EMC")

    data = book(more=hide)

    assert set(drawn(data)[1]) == {255}
    assert drawn(taken(data, 2, 2)) == drawn(data)[1:2]


def test_metadata_of_pictures_goes_when_asked() -> None:
    def described(document: pikepdf.Pdf) -> None:
        picture = document.pages[0].obj.Resources.XObject["/Im0"]
        picture.Metadata = document.make_stream(b"<x:xmpmeta>GPSLatitude 52.5</x:xmpmeta>")

    data = book(more=described)

    assert b"GPSLatitude" in everything_in(taken(data, 1, 1))
    assert b"GPSLatitude" not in everything_in(taken(data, 1, 1, strip_metadata=True))


# -- damaged and hostile ----------------------------------------------------------------------------------------------


def test_a_lost_cross_reference_table_is_rebuilt() -> None:
    data = book()
    cut = data[: data.rindex(b"startxref")]
    wrong = data.replace(b"startxref", b"startxerf")

    for damaged in (cut, wrong, bytes(900) + data):
        assert drawn(taken(damaged, 2, 3)) == drawn(data)[1:3]


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"<html></html>", media.pdf([])])
def test_what_has_no_pages_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMedia):
        taken(data, 1, 1)


@pytest.mark.parametrize("data", [media.cyclic_pdf(), media.fan_pdf()])
def test_a_page_tree_in_a_circle_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMedia):
        taken(data, 1, 1)


def test_pages_are_counted_by_leaf_and_bounded() -> None:
    with pytest.raises(MediaTooLarge, match="20"):
        taken(media.pdf_that_lies(30, 1), 1, 1, max_pages=20)
    with pytest.raises(UnsupportedMedia, match="it has 3"):
        taken(media.pdf_that_lies(3, 500), 4, 4)


def test_an_outline_in_a_circle_ends() -> None:
    def circle(document: pikepdf.Pdf) -> None:
        entry = document.make_indirect(Dictionary(Title=String("round"), Dest=Array([document.pages[0].obj, Name.Fit])))
        entry.Next, entry.First = entry, entry
        document.Root.Outlines = document.make_indirect(Dictionary(First=entry, Last=entry))

    with opened(taken(book(more=circle), 1, 2)) as document, document.open_outline() as outline:
        assert _titles(outline.root) == ["round"]


def test_a_range_of_a_thousand_pages_takes_no_time() -> None:
    data, begin = media.pdf([(100, 100)] * 1000), time.process_time()

    with opened(taken(data, 301, 700)) as document:
        assert len(document.pages) == 400
    assert time.process_time() - begin < 2


def test_mutants_end_in_a_document_or_a_typed_error() -> None:
    chance, seeds = random.Random(4), [book(3, _armed), book(10, _links), media.pdf([(9, 9)] * 2)]

    for _ in range(400):
        mutant = bytearray(chance.choice(seeds))
        for _ in range(chance.choice((1, 4, 30))):
            mutant[chance.randrange(len(mutant))] = chance.randrange(256)
        begin = time.process_time()
        with contextlib.suppress(InputError):
            assert taken(bytes(mutant[: chance.choice((len(mutant), chance.randrange(1, len(mutant))))]), 1, 1)
        assert time.process_time() - begin < 2
