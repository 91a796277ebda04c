"""Files that two readers would take for two things."""

from __future__ import annotations

import io

import pikepdf
import pytest
from PIL import Image

from weighlock.mime import Flag, sniff
from weighlock.request import Modality


@pytest.fixture(scope="module")
def page() -> bytes:
    target = io.BytesIO()
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.save(target)
    return target.getvalue()


def test_a_pdf_is_a_document(page: bytes) -> None:
    sniffed = sniff(page)

    assert (sniffed.mime, sniffed.modality, sniffed.certain) == ("application/pdf", Modality.DOCUMENT, True)


@pytest.mark.parametrize(
    "junk", [b"\0" * 100, b"\x1b%-12345X@PJL\r\n", b"\x90\x91\x92\x93" * 200, b"Date: today\r\n\r\n"]
)
def test_a_pdf_behind_junk_is_a_pdf(page: bytes, junk: bytes) -> None:
    sniffed = sniff(junk + page)

    assert sniffed.mime == "application/pdf"
    assert Flag.LEADING_BYTES in sniffed.flags


def test_a_header_past_the_first_1024_bytes_is_none(page: bytes) -> None:
    junk = b"\x01\x90" * 512

    assert sniff(junk[:1019] + page).mime == "application/pdf"
    assert sniff(junk + page).modality is None


@pytest.mark.parametrize(
    "prose",
    [
        "Every PDF begins with %PDF-1.7 or so.\n",
        "A minimal file:\n\n    %PDF-1.4\n    1 0 obj\n    endobj\n\nand so on.\n",
        "%PDF-1.4 is what the first line says; the rest is up to you.\n",
        "```\n%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\nstartxref\n0\n%%EOF\n```\nThat was all.\n",
    ],
)
def test_text_about_pdf_is_text(prose: str) -> None:
    assert sniff(prose.encode()).mime == "text/plain"


def test_the_magic_number_of_a_jpeg_on_a_pdf_is_a_pdf_in_disguise(page: bytes) -> None:
    sniffed = sniff(b"\xff\xd8\xff\xe0" + page)

    assert (sniffed.mime, sniffed.certain) == ("application/pdf", False)
    assert Flag.POLYGLOT in sniffed.flags


def test_a_true_jpeg_with_a_pdf_in_its_comment_is_flagged(page: bytes) -> None:
    target = io.BytesIO()
    Image.new("RGB", (20, 20)).save(target, "JPEG", comment=page)

    sniffed = sniff(target.getvalue())

    assert (sniffed.mime, sniffed.certain) == ("image/jpeg", False)
    assert Flag.POLYGLOT in sniffed.flags


def test_webp_written_over_sound_is_neither() -> None:
    sniffed = sniff(b"RIFF\x24\0\0\0WEBPfmt \x10\0\0\0\1\0\1\0" + bytes(40))

    assert sniffed.modality is None
    assert Flag.CONTRADICTION in sniffed.flags


def test_an_empty_file_is_empty() -> None:
    sniffed = sniff(b"")

    assert (sniffed.mime, sniffed.modality, sniffed.flags) == ("application/x-empty", None, (Flag.EMPTY,))


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("word/document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("ppt/presentation.xml", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ("notes.txt", "application/zip"),
    ],
)
def test_an_office_file_is_named_and_no_document_for_a_model(name: str, mime: str) -> None:
    import zipfile

    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(name, "x")

    sniffed = sniff(target.getvalue())

    assert (sniffed.mime, sniffed.modality) == (mime, None)


def test_a_book_says_what_it_is_in_its_first_entry() -> None:
    import zipfile

    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")

    assert sniff(target.getvalue()).mime == "application/epub+zip"


@pytest.mark.parametrize(
    "program", [b"\x7fELF\2\1\1" + bytes(50), b"MZ\x90\0\3" + bytes(50), b"\0asm\1\0\0\0" + bytes(9)]
)
def test_a_program_is_no_medium(program: bytes) -> None:
    assert sniff(program).modality is None
