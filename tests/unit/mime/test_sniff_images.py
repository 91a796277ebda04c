"""Pictures are told by their bytes, under whatever name they travel."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from PIL import Image

from weighlock.mime import Flag, sniff
from weighlock.request import Modality


def drawn(image_format: str, **options: Any) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(target, image_format, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("image_format", "mime"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("WEBP", "image/webp"),
        ("GIF", "image/gif"),
        ("BMP", "image/bmp"),
        ("AVIF", "image/avif"),
        ("TIFF", "image/tiff"),
        ("ICO", "image/x-icon"),
        ("PPM", "image/x-portable-pixmap"),
        ("JPEG2000", "image/jp2"),
    ],
)
def test_a_picture_is_known_by_its_bytes(image_format: str, mime: str) -> None:
    sniffed = sniff(drawn(image_format))

    assert (sniffed.mime, sniffed.modality, sniffed.certain) == (mime, Modality.IMAGE, True)


@pytest.mark.parametrize("options", [{"lossless": True}, {"lossless": False}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}])
def test_every_kind_of_webp_is_webp(options: dict[str, object]) -> None:
    assert sniff(drawn("WEBP", **options)).mime == "image/webp"


def test_an_animated_webp_is_an_image() -> None:
    target = io.BytesIO()
    frames = [Image.new("RGB", (20, 10), shade) for shade in ("red", "blue")]
    frames[0].save(target, "WEBP", save_all=True, append_images=frames[1:])

    assert sniff(target.getvalue()).modality is Modality.IMAGE


def test_a_camera_file_of_two_jpegs_is_one_jpeg() -> None:
    target = io.BytesIO()
    Image.new("RGB", (60, 40)).save(target, "MPO", save_all=True, append_images=[Image.new("RGB", (30, 20))])

    sniffed = sniff(target.getvalue())

    assert sniffed.mime == "image/jpeg"
    assert Flag.TRAILING_BYTES not in sniffed.flags


def ftyp(*brands: bytes) -> bytes:
    return box(b"ftyp", brands[0], bytes(4), *brands[1:])


def box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return struct.pack(">I", len(body) + 8) + kind + body


def full_box(kind: bytes, *bodies: bytes) -> bytes:
    return box(kind, bytes(4), *bodies)


def hdlr(kind: bytes) -> bytes:
    return full_box(b"hdlr", bytes(4), kind, bytes(13))


def track(kind: bytes) -> bytes:
    return box(b"trak", full_box(b"tkhd", bytes(80)), box(b"mdia", hdlr(kind)))


@pytest.mark.parametrize(
    ("brands", "mime"),
    [
        ((b"heic", b"mif1", b"heic"), "image/heic"),
        ((b"heix", b"mif1"), "image/heic"),
        ((b"mif1", b"heic"), "image/heic"),
        ((b"mif1", b"mif1", b"avif"), "image/avif"),
        ((b"avif", b"mif1", b"miaf"), "image/avif"),
        ((b"avis", b"msf1", b"avif"), "image/avif"),
        ((b"mif1", b"mif1"), "image/heif"),
    ],
)
def test_the_compatible_brands_tell_heic_from_avif(brands: tuple[bytes, ...], mime: str) -> None:
    assert sniff(ftyp(*brands) + full_box(b"meta", hdlr(b"pict"))).mime == mime


def test_a_brand_that_names_no_codec_leaves_it_to_the_items() -> None:
    items = full_box(b"iinf", struct.pack(">H", 1), full_box(b"infe", b"\0\1\0\0av01\0"))

    assert sniff(ftyp(b"mif1") + full_box(b"meta", hdlr(b"pict"), items)).mime == "image/avif"


def test_a_film_that_calls_itself_heic_is_a_film() -> None:
    sniffed = sniff(ftyp(b"heic", b"mif1") + box(b"moov", track(b"vide")))

    assert (sniffed.mime, sniffed.modality) == ("video/mp4", Modality.VIDEO)
    assert sniffed.flags == (Flag.CONTRADICTION,)


def test_a_live_photo_is_an_image_though_a_film_follows() -> None:
    photo = ftyp(b"heic", b"mif1") + full_box(b"meta", hdlr(b"pict")) + box(b"moov", track(b"vide"))

    assert sniff(photo).mime == "image/heic"


def test_an_image_sequence_is_an_image() -> None:
    assert sniff(ftyp(b"hevc", b"msf1") + box(b"moov", track(b"pict"))).mime == "image/heic"


def test_a_png_with_an_archive_behind_it_is_flagged() -> None:
    sniffed = sniff(drawn("PNG") + b"PK\3\4" + bytes(60))

    assert (sniffed.mime, sniffed.flags) == ("image/png", (Flag.TRAILING_BYTES,))


@pytest.mark.parametrize("tail", [b"<html><script>alert(1)</script></html>", b"#EXTM3U\n#EXTINF:1,\nhttp://x/s.ts\n"])
def test_a_gif_with_text_behind_it_is_flagged(tail: bytes) -> None:
    sniffed = sniff(drawn("GIF") + tail)

    assert (sniffed.mime, sniffed.flags) == ("image/gif", (Flag.TRAILING_BYTES,))


@pytest.mark.parametrize("image_format", ["PNG", "GIF"])
def test_zeros_behind_a_picture_hide_nothing(image_format: str) -> None:
    assert sniff(drawn(image_format) + bytes(9)).flags == ()


def test_a_cut_png_is_said_to_be_cut() -> None:
    sniffed = sniff(drawn("PNG")[:-20])

    assert (sniffed.mime, sniffed.certain, sniffed.flags) == ("image/png", True, (Flag.TRUNCATED,))


@pytest.mark.parametrize("head", [b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x10\0\0\0WEBP"])
def test_a_magic_number_alone_is_a_guess(head: bytes) -> None:
    sniffed = sniff(head)

    assert (sniffed.modality, sniffed.certain) == (Modality.IMAGE, False)


def test_a_webp_longer_or_shorter_than_it_says_is_flagged() -> None:
    whole = drawn("WEBP")

    assert sniff(whole).flags == ()
    assert sniff(whole + b"more").flags == (Flag.TRAILING_BYTES,)
    assert sniff(whole[:-9]).flags == (Flag.TRUNCATED,)


@pytest.mark.parametrize("prolog", ["", '<?xml version="1.0"?>\n', "<!-- " + "long " * 2000 + "-->\n"])
def test_an_svg_is_an_image_not_text(prolog: str) -> None:
    sniffed = sniff((prolog + '<svg xmlns="http://www.w3.org/2000/svg"><rect/></svg>').encode())

    assert (sniffed.mime, sniffed.modality) == ("image/svg+xml", Modality.IMAGE)


def test_a_packed_svg_is_no_image() -> None:
    import gzip

    sniffed = sniff(gzip.compress(b"<svg/>"))

    assert (sniffed.mime, sniffed.modality) == ("application/gzip", None)
