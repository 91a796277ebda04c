"""Real files that nobody here made: what they are, and how large."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import corpus
from corpus import CORPUS
from weighlock.mime import HEAD_BYTES, ImageSize, Sniffed, Window, canonical, image_size, refine_text, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.external


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return corpus.needed()


@pytest.fixture(scope="module")
def sound_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if not row.get("degenerate")]


def opened(path: Path) -> Iterator[Window]:
    with path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        head = os.read(descriptor, HEAD_BYTES)
        yield Window(head, path.stat().st_size, lambda offset, n: os.pread(descriptor, n, offset))


def look(path: Path) -> tuple[Sniffed, ImageSize | None]:
    window = next(windows := opened(path))
    sniffed = sniff(window)
    size = image_size(window, sniffed.mime)
    windows.close()  # type: ignore[attr-defined]
    return sniffed, size


def test_the_modality_of_every_sound_file_is_right(sound_rows: list[dict[str, Any]]) -> None:
    wrong = []
    for row in sound_rows:
        modality = look(CORPUS / row["file"])[0].modality
        if (modality.lower() if modality else "unknown") != row["modality"]:
            wrong.append(f"{row['file']}: {modality}, stated {row['modality']}")

    assert wrong == []


def test_the_type_of_98_in_100_sound_files_is_exact(sound_rows: list[dict[str, Any]]) -> None:
    wrong = []
    for row in sound_rows:
        mime = refine_text(look(CORPUS / row["file"])[0].mime, row["file"])
        if mime != row["mime"]:
            wrong.append(f"{row['file']}: {mime}, stated {row['mime']}")

    assert len(wrong) <= 0.02 * len(sound_rows), wrong


def test_broken_files_get_an_answer_too(rows: list[dict[str, Any]]) -> None:
    broken = [row for row in rows if row.get("degenerate")]
    answers = {row["file"]: look(CORPUS / row["file"])[0] for row in broken}

    # Whatever is recognised at all is recognised as what it was meant to be, save the empty file.
    for row in broken:
        answer = answers[row["file"]]
        assert answer.mime == row["mime"] or answer.mime == "application/x-empty"
    assert len(answers) == len(broken) > 0


def test_memory_and_file_give_one_answer(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        path = CORPUS / row["file"]
        assert look(path)[0] == sniff(path.read_bytes())


def test_every_cut_of_every_file_gets_an_answer(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        data = (CORPUS / row["file"]).read_bytes()
        for cut in (1, 2, 3, 4, 7, 11, 15, 23, 40, 100, 257, 1000, 4095, 4097, len(data) - 1):
            sniffed = sniff(data[:cut])
            size = image_size(data[:cut], sniffed.mime)

            assert "/" in sniffed.mime
            assert size is None or sniffed.mime.startswith("image/")


def test_stated_image_sizes_are_read(sound_rows: list[dict[str, Any]]) -> None:
    stated = [row for row in sound_rows if row["modality"] == "image" and row.get("width_px")]
    wrong = []
    for row in stated:
        size = look(CORPUS / row["file"])[1]
        if size is None or (size.width_px, size.height_px) != (row["width_px"], row["height_px"]):
            wrong.append(row["file"])

    assert len(stated) > 40
    assert len(wrong) <= 0.01 * len(stated), wrong


DECODER_DIFFERS = {"pillow_heif/invalid_id.heic": "its grid cannot be decoded; the library shows the thumbnail instead"}


def test_displayed_sizes_are_the_decoders(sound_rows: list[dict[str, Any]]) -> None:
    import pi_heif
    from PIL import Image, ImageOps

    pi_heif.register_heif_opener()
    compared, wrong = 0, []
    for row in sound_rows:
        size = look(CORPUS / row["file"])[1]
        if size is None or row["file"] in DECODER_DIFFERS:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Image.open(CORPUS / row["file"]) as picture:
                    displayed = ImageOps.exif_transpose(picture).size
        except (OSError, ValueError, SyntaxError, RuntimeError):
            continue
        compared += 1
        if displayed != size.displayed_px:
            wrong.append(f"{row['file']}: {size.displayed_px}, decoded {displayed}")

    assert compared > 60
    assert wrong == []


def test_we_are_more_often_right_than_libmagic(sound_rows: list[dict[str, Any]]) -> None:
    magic = pytest.importorskip("magic", reason="python-magic is not installed")
    guess = magic.Magic(mime=True)
    ours = sum(look(CORPUS / row["file"])[0].mime == row["mime"] for row in sound_rows)
    theirs = sum(canonical(guess.from_file(str(CORPUS / row["file"]))) == row["mime"] for row in sound_rows)

    assert ours > theirs
