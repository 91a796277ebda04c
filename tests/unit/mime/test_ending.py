from __future__ import annotations

import io
import random

import pytest
from PIL import Image

from weighlock.mime import Window, ends_early, sniff


def noise(form: str, **options: object) -> bytes:
    """A picture too random to be small, so that a cut falls inside its pixels."""
    image = Image.frombytes("RGB", (200, 150), random.Random(7).randbytes(200 * 150 * 3))
    drawn = io.BytesIO()
    image.save(drawn, form, **options)
    return drawn.getvalue()


def early(data: bytes) -> bool:
    window = Window.of(data)
    return ends_early(window, sniff(window).mime)


WHOLE = {
    "PNG": noise("PNG"),
    "JPEG": noise("JPEG"),
    "progressive JPEG": noise("JPEG", progressive=True),
    "AVIF": noise("AVIF"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_picture_does_not_end_early(name: str) -> None:
    assert not early(WHOLE[name])


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.99])
def test_a_picture_cut_anywhere_in_its_pixels_ends_early(name: str, share: float) -> None:
    data = WHOLE[name]

    assert early(data[: int(len(data) * share)])


@pytest.mark.parametrize("name", ["PNG", "JPEG"])
def test_bytes_behind_the_end_are_no_cut(name: str) -> None:
    assert not early(WHOLE[name] + bytes(1_000))
    assert not early(WHOLE[name] + b"PK\x03\x04 an archive behind it")


def test_a_film_behind_a_photo_is_no_cut() -> None:
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><GCamera:MotionPhoto>1</GCamera:MotionPhoto></x:xmpmeta>'
    photo = noise("JPEG", xmp=xmp)

    assert not early(photo + random.Random(8).randbytes(200_000).replace(b"\xff\xd9", b"\0\0"))


def test_a_second_picture_behind_the_first_is_no_cut() -> None:
    first, second = (Image.new("RGB", (64, 48), colour) for colour in ("red", "blue"))
    drawn = io.BytesIO()
    first.save(drawn, "MPO", save_all=True, append_images=[second])

    assert not early(drawn.getvalue())


def test_where_the_length_is_unknown_nothing_is_claimed() -> None:
    half = WHOLE["PNG"][:4096]

    assert not ends_early(Window(half, None), "image/png")
