"""Sizes come from headers alone, as stored and as displayed."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from typing import Any

import pytest
from PIL import Image, ImageOps

from weighlock.mime import ImageSize, Window, image_size, sniff

ORIENTATIONS = range(1, 9)


def saved(image_format: str, size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(target, image_format, **options)
    return target.getvalue()


def exif(orientation: int) -> bytes:
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


def measured(data: bytes) -> ImageSize:
    size = image_size(data, sniff(data).mime)
    assert size is not None
    return size


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF"])
@pytest.mark.parametrize("size", [(1, 1), (40, 30), (3, 700), (1000, 1), (641, 479)])
def test_the_stated_size_is_read(image_format: str, size: tuple[int, int]) -> None:
    found = measured(saved(image_format, size))

    assert (found.width_px, found.height_px) == found.displayed_px == size


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "WEBP"])
def test_exif_orientation_turns_the_displayed_size(image_format: str, orientation: int) -> None:
    data = saved(image_format, exif=exif(orientation))
    found = measured(data)
    with Image.open(io.BytesIO(data)) as picture:
        turned = ImageOps.exif_transpose(picture).size

    assert (found.width_px, found.height_px, found.orientation) == (40, 30, orientation)
    assert found.displayed_px == turned


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_turn_and_mirror_of_avif_amount_to_exif_orientation(orientation: int) -> None:
    found = measured(saved("AVIF", (64, 48), exif=exif(orientation)))

    assert found.orientation == orientation
    assert found.displayed_px == ((48, 64) if orientation >= 5 else (64, 48))


@pytest.mark.parametrize(
    "broken",
    [b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x2a\0\0"],
)
def test_broken_exif_turns_nothing(broken: bytes) -> None:
    data = saved("JPEG")
    segment = b"\xff\xe1" + struct.pack(">H", len(broken) + 2) + broken

    found = measured(data[:2] + segment + data[2:])

    assert (found.displayed_px, found.orientation) == ((40, 30), 1)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 100, "subsampling": 0}])
def test_baseline_and_progressive_jpeg(options: dict[str, object]) -> None:
    assert measured(saved("JPEG", (300, 200), **options)).displayed_px == (300, 200)


@pytest.mark.parametrize("junk", [b"\xff\xff\xff", b"\0" * 40, b"\xff\0\xff\0", b"some words"])
def test_junk_between_jpeg_markers_is_stepped_over(junk: bytes) -> None:
    data = saved("JPEG")
    at = data.index(b"\xff\xdb")

    assert measured(data[:at] + junk + data[at:]).displayed_px == (40, 30)


def test_a_thumbnail_inside_exif_is_not_the_picture() -> None:
    thumbnail = b"Exif\0\0" + bytes(20) + saved("JPEG", (16, 12))
    data = saved("JPEG", (400, 300))
    segment = b"\xff\xe1" + struct.pack(">H", len(thumbnail) + 2) + thumbnail

    assert measured(data[:2] + segment + data[2:]).displayed_px == (400, 300)


def test_large_segments_in_front_of_the_frame_are_hopped_over_not_read() -> None:
    data = saved("JPEG", (400, 300))
    profile = b"\xff\xe2" + struct.pack(">H", 65_000) + bytes(64_998)
    data = data[:2] + profile * 20 + data[2:]
    read_bytes: list[int] = []

    def read_at(offset: int, n: int) -> bytes:
        read_bytes.append(n)
        return data[offset : offset + n]

    found = image_size(Window(data[:4096], len(data), read_at), "image/jpeg")

    assert found is not None
    assert found.displayed_px == (400, 300)
    assert sum(read_bytes) < len(data) / 10


def test_the_first_picture_of_a_camera_file_counts() -> None:
    target = io.BytesIO()
    Image.new("RGB", (60, 40)).save(target, "MPO", save_all=True, append_images=[Image.new("RGB", (30, 20))])

    assert measured(target.getvalue()).displayed_px == (60, 40)


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(20_992, 10_496), (100_000, 100_000), (2**31 - 1, 2**31 - 1), (10_000, 1)])
def test_a_huge_picture_costs_nothing_and_warns_of_nothing(size: tuple[int, int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert measured(png(*size)).displayed_px == size


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (0, 0)])
def test_a_size_of_zero_is_no_size(size: tuple[int, int]) -> None:
    assert image_size(png(*size), "image/png") is None


@pytest.mark.parametrize("kind", ["VP8", "VP8L", "VP8X"])
def test_every_webp_header(kind: str) -> None:
    options: dict[str, dict[str, Any]] = {"VP8": {}, "VP8L": {"lossless": True}, "VP8X": {"exif": exif(6)}}
    data = saved("WEBP", (123, 77), **options[kind])

    assert data[12:16].rstrip() == kind.encode()
    assert (measured(data).width_px, measured(data).height_px) == (123, 77)


def animation(image_format: str) -> bytes:
    target = io.BytesIO()
    frames = [Image.new("RGB", (20, 10), shade) for shade in ("red", "blue", "green")]
    frames[0].save(target, image_format, save_all=True, append_images=frames[1:], duration=[100, 200, 300], loop=0)
    return target.getvalue()


@pytest.mark.parametrize("image_format", ["PNG", "GIF", "WEBP", "AVIF"])
def test_an_animation_says_so(image_format: str) -> None:
    found = measured(animation(image_format))

    assert (found.displayed_px, found.animated) == ((20, 10), True)
    assert found.frames in {3, None}


def test_a_still_says_so_too() -> None:
    assert [measured(saved(kind)).animated for kind in ("PNG", "JPEG", "WEBP", "AVIF", "BMP")] == [False] * 5


def test_a_frame_beyond_the_gif_canvas_widens_it() -> None:
    data = bytearray(saved("GIF", (100, 100)))
    data[6:10] = struct.pack("<HH", 50, 60)

    assert measured(bytes(data)).displayed_px == (100, 100)


def test_bitmaps_top_down_and_of_the_first_generation() -> None:
    info = struct.pack("<IiiHH", 40, 320, -200, 1, 4) + bytes(24)
    core = struct.pack("<IHHHH", 12, 320, 200, 1, 4)

    for header in (info, core):
        assert measured(b"BM" + bytes(8) + struct.pack("<I", 54) + header).displayed_px == (320, 200)


def box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return struct.pack(">I", len(body) + 8) + kind + body


def full_box(kind: bytes, *bodies: bytes) -> bytes:
    return box(kind, bytes(4), *bodies)


def ispe(width: int, height: int) -> bytes:
    return full_box(b"ispe", struct.pack(">II", width, height))


def clap(width: int, height: int) -> bytes:
    return box(b"clap", struct.pack(">8I", width, 1, height, 1, 0, 1, 0, 1))


def heic(properties: list[bytes], items: dict[int, list[int]], primary: int = 1) -> bytes:
    """The boxes of a HEIC file: `items` maps an item to the numbers (from 1) of the properties it has."""
    associations = b"".join(struct.pack(">HB", item, len(own)) + bytes(own) for item, own in items.items())
    meta = full_box(
        b"meta",
        full_box(b"hdlr", bytes(4), b"pict", bytes(13)),
        full_box(b"pitm", struct.pack(">H", primary)),
        box(
            b"iprp",
            box(b"ipco", *properties),
            full_box(b"ipma", struct.pack(">I", len(items)), associations),
        ),
    )
    return box(b"ftyp", b"heic", bytes(4), b"mif1heic") + meta


def irot(quarters: int) -> bytes:
    return box(b"irot", bytes([quarters]))


@pytest.mark.parametrize(
    ("quarters", "displayed"), [(0, (4000, 3000)), (1, (3000, 4000)), (2, (4000, 3000)), (3, (3000, 4000))]
)
def test_heic_rotation_turns_the_displayed_size(quarters: int, displayed: tuple[int, int]) -> None:
    found = measured(heic([ispe(4000, 3000), irot(quarters)], {1: [1, 2]}))

    assert (found.width_px, found.height_px) == (4000, 3000)
    assert found.displayed_px == displayed


def test_the_size_is_the_primary_items_not_a_tiles_or_a_thumbnails() -> None:
    photo = heic([ispe(512, 512), ispe(4032, 3024), ispe(320, 240)], {1: [1], 2: [1], 49: [2], 50: [3]}, primary=49)

    assert measured(photo).displayed_px == (4032, 3024)


def test_the_clean_aperture_crops_before_the_turn() -> None:
    found = measured(heic([ispe(64, 64), clap(64, 48), irot(1)], {1: [1, 2, 3]}))

    assert (found.width_px, found.height_px, found.crop_px) == (64, 64, (64, 48))
    assert found.displayed_px == (48, 64)


def test_a_property_of_another_item_does_not_turn_the_picture() -> None:
    assert measured(heic([ispe(40, 30), irot(1)], {1: [1], 2: [1, 2]})).displayed_px == (40, 30)


@pytest.mark.parametrize(
    "unsure",
    [
        heic([ispe(40, 30)], {1: [1]}, primary=7),
        heic([irot(1)], {1: [1]}),
        heic([ispe(40, 30)], {1: [9]}),
        heic([ispe(64, 64), box(b"clap", bytes(32))], {1: [1, 2]}),
        heic([ispe(64, 64), clap(0, 48)], {1: [1, 2]}),
        heic([ispe(64, 64), clap(64, 0)], {1: [1, 2]}),
        heic([ispe(64, 64), clap(65, 48)], {1: [1, 2]}),
        heic([ispe(40, 30)], {1: [1]})[:80],
    ],
)
def test_heic_that_does_not_say_is_left_to_the_decoder(unsure: bytes) -> None:
    assert image_size(unsure, "image/heic") is None


@pytest.mark.parametrize("mime", ["image/tiff", "image/svg+xml", "application/pdf", "application/octet-stream"])
def test_a_type_without_a_reader_has_no_size(mime: str) -> None:
    assert image_size(b"II*\0" + bytes(100), mime) is None


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/heic"])
@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 5000, bytes(5000)])
def test_bytes_that_are_no_image_have_no_size(mime: str, data: bytes) -> None:
    assert image_size(data, mime) is None
