"""What a transform makes of a picture, judged by pixels at known places."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import time
import warnings
import zlib
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageCms

import media
from weighlock.codecs import pillow_make
from weighlock.codecs.outcome import Outcome
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.image_sizes import made_size
from weighlock.media.work import ImageWork
from weighlock.mime import Window, image_size, sniff
from weighlock.request import Box

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
CORNERS = [RED, GREEN, BLUE, WHITE]
"""Of `quartered`: top left, top right, bottom left, bottom right."""
_UNTURNED = {
    1: [0, 1, 2, 3], 2: [1, 0, 3, 2], 3: [3, 2, 1, 0], 4: [2, 3, 0, 1],
    5: [0, 2, 1, 3], 6: [2, 0, 3, 1], 7: [3, 1, 2, 0], 8: [1, 3, 0, 2],
}  # fmt: skip
"""By EXIF orientation: which stored corner is displayed in each place."""


def quartered(size: tuple[int, int] = (80, 40)) -> Image.Image:
    """Four fields of one colour each."""
    image = Image.new("RGB", size)
    width, height = size[0] // 2, size[1] // 2
    for number, colour in enumerate(CORNERS):
        left, top = number % 2 * width, number // 2 * height
        image.paste(colour, (left, top, left + width, top + height))
    return image


def stored(image: Image.Image, form: str, **options: Any) -> bytes:
    drawn = io.BytesIO()
    image.save(drawn, form, **options)
    return drawn.getvalue()


def with_orientation(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "the camera of Erika Mustermann"
    return exif


def made(data: bytes, kind: str, *, max_pixels: int = 100_000_000, **work: Any) -> tuple[Image.Image, Outcome, bytes]:
    out = io.BytesIO()
    outcome = pillow_make.make(io.BytesIO(data), out, ImageWork(**work), mime=kind, max_pixels=max_pixels)
    image = Image.open(io.BytesIO(out.getvalue()))
    image.load()
    return image, outcome, out.getvalue()


def seen(raw: bytes) -> Window:
    return Window(head=raw[:4096], size=len(raw), read_at=lambda at, n: raw[at : at + n])


def near(image: Image.Image, at: tuple[int, int], colour: tuple[int, ...], within: int = 12) -> bool:
    found = image.convert("RGB").getpixel(at)
    assert isinstance(found, tuple)
    return all(abs(a - b) <= within for a, b in zip(found, colour, strict=False))


def corners(image: Image.Image) -> list[tuple[int, int, int]]:
    width, height = image.size
    places = [(2, 2), (width - 3, 2), (2, height - 3), (width - 3, height - 3)]
    return [next(c for c in CORNERS if near(image, place, c, 40)) for place in places]


# -- upright ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "AVIF", "TIFF"])
def test_every_orientation_comes_out_upright_and_without_its_tag(form: str, orientation: int) -> None:
    data = stored(quartered(), form, exif=with_orientation(orientation), **({"quality": 95} if form != "TIFF" else {}))

    image, outcome, raw = made(data, f"image/{form.lower()}", max_width_px=30)

    assert corners(image) == [CORNERS[place] for place in _UNTURNED[orientation]]
    assert image.size == ((30, 60) if orientation >= 5 else (30, 15))
    assert 0x0112 not in image.getexif()
    assert b"Mustermann" not in raw
    assert outcome.notes == ()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_crop_is_of_the_upright_picture(orientation: int) -> None:
    data = stored(quartered(), "PNG", exif=with_orientation(orientation))
    width, height = (40, 80) if orientation >= 5 else (80, 40)
    shown = CORNERS[_UNTURNED[orientation][1]]

    image, _, _ = made(data, "image/png", crop=Box(left=width // 2, top=0, right=width, bottom=height // 2))

    assert image.size == (width // 2, height // 2)
    assert image.convert("RGB").getcolors() == [(width * height // 4, shown)]


def test_a_crop_past_the_edge_ends_there_and_one_beside_the_picture_is_refused() -> None:
    data = stored(quartered(), "PNG")

    image, _, _ = made(data, "image/png", crop=Box(left=60, top=30, right=900, bottom=900))

    assert image.size == (20, 10)
    with pytest.raises(UnsupportedMedia, match="nothing to crop"):
        made(data, "image/png", crop=Box(left=80, top=0, right=90, bottom=10))


def test_what_lies_beside_a_crop_does_not_bleed_into_it() -> None:
    data = stored(quartered((800, 400)), "JPEG", quality=100, subsampling=0)

    image, _, _ = made(
        data, "image/jpeg", mime="image/png", crop=Box(left=0, top=0, right=400, bottom=200), max_width_px=40
    )

    difference = ImageChops.difference(image.convert("RGB"), Image.new("RGB", image.size, RED))
    assert max(difference.tobytes()) <= 2


@pytest.mark.parametrize(
    ("size", "bounds"),
    [((4000, 3000), (1155, 866)), ((1920, 1080), (768, None)), ((81, 39), (None, 13)), ((5, 900), (2, 100))],
)
def test_the_size_is_what_the_plan_says(size: tuple[int, int], bounds: tuple[int | None, int | None]) -> None:
    work = ImageWork(max_width_px=bounds[0], max_height_px=bounds[1])

    for form in ("JPEG", "PNG"):
        image, _, _ = made(
            stored(quartered(size), form), f"image/{form.lower()}", max_width_px=bounds[0], max_height_px=bounds[1]
        )
        assert image.size == made_size(size, work)


def test_nothing_is_ever_scaled_up() -> None:
    image, _, _ = made(stored(quartered(), "PNG"), "image/png", max_width_px=500, max_height_px=4000)

    assert image.size == (80, 40)


def test_a_scaled_jpeg_is_close_to_a_careful_one() -> None:
    chance = random.Random(3)
    photo = Image.frombytes("RGB", (100, 75), chance.randbytes(22_500)).resize((1600, 1200), Image.Resampling.BICUBIC)
    data = stored(photo, "JPEG", quality=95)
    careful = photo.resize((400, 300), Image.Resampling.LANCZOS)

    image, _, _ = made(data, "image/jpeg", mime="image/png", max_width_px=400)

    difference = ImageChops.difference(image.convert("RGB"), careful).convert("L").tobytes()
    assert sum(difference) / len(difference) < 3


# -- colours ----------------------------------------------------------------------------------------------------------

_SHOWN: dict[str, tuple[str, Any, tuple[int, int, int]]] = {
    "1": ("1", 1, (255, 255, 255)), "L": ("L", 90, (90, 90, 90)), "LA": ("LA", (90, 255), (90, 90, 90)),
    "RGB": ("RGB", (200, 100, 50), (200, 100, 50)), "RGBA": ("RGBA", (200, 100, 50, 255), (200, 100, 50)),
    "CMYK": ("CMYK", (0, 255, 255, 0), (255, 0, 0)), "YCbCr": ("YCbCr", (76, 85, 255), (254, 0, 0)),
    "I;16": ("I;16", 128 * 257, (128, 128, 128)), "I": ("I", 64 * 257, (64, 64, 64)), "F": ("F", 0.5, (128, 128, 128)),
    "LAB": ("LAB", (138, 209, 198), (255, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("target", ["image/jpeg", "image/png", "image/webp"])
@pytest.mark.parametrize("mode", _SHOWN)
def test_every_mode_becomes_every_format_with_its_colour(mode: str, target: str) -> None:
    _, value, shown = _SHOWN[mode]
    data = stored(Image.new(mode, (32, 16), value), "TIFF")

    image, outcome, _ = made(data, "image/tiff", mime=target, max_width_px=20)

    assert outcome.mime == target
    assert near(image, (10, 5), shown, 8)


@pytest.mark.parametrize("target", ["image/jpeg", "image/png", "image/webp"])
def test_a_palette_keeps_its_colours_and_its_gaps(target: str) -> None:
    image = quartered().quantize(4)
    gap = image.getpixel((2, 2))
    data = stored(image, "PNG", transparency=gap)

    turned, outcome, _ = made(data, "image/png", mime=target, max_width_px=40)

    assert near(turned, (37, 2), GREEN, 30)
    if target == "image/jpeg":
        assert near(turned, (2, 2), WHITE)
        assert outcome.notes == ("its transparency became white",)
    else:
        assert turned.convert("RGBA").getchannel("A").getpixel((2, 2)) == 0
        assert outcome.notes == ()


@pytest.mark.parametrize(("mode", "key"), [("L", 0), ("RGB", (0, 0, 0))])
def test_a_colour_that_is_declared_transparent_is(mode: str, key: Any) -> None:
    data = stored(Image.new(mode, (16, 16), key), "PNG", transparency=key)

    kept, _, _ = made(data, "image/png")
    flat, _, _ = made(data, "image/png", mime="image/jpeg")

    assert kept.convert("RGBA").getchannel("A").getextrema() == (0, 0)
    assert near(flat, (8, 8), WHITE)


def test_half_transparent_pixels_mix_with_white_and_keep_their_alpha_elsewhere() -> None:
    data = stored(Image.new("RGBA", (40, 20), (0, 0, 255, 128)), "PNG")

    flat, outcome, _ = made(data, "image/png", mime="image/jpeg")
    kept, silent, _ = made(data, "image/png", mime="image/webp", max_width_px=20)

    assert near(flat, (5, 5), (127, 127, 255))
    assert outcome.notes == ("its transparency became white",)
    assert kept.mode == "RGBA"
    assert kept.getpixel((5, 5))[3] == 128  # type: ignore[index]  # a tuple in this mode
    assert silent.notes == ()


def test_an_alpha_channel_that_hides_nothing_goes_without_a_word() -> None:
    image, outcome, _ = made(stored(quartered().convert("RGBA"), "PNG"), "image/png", mime="image/jpeg")

    assert image.mode == "RGB"
    assert outcome.notes == ()


def _deep_png(rows: bytes, colour_type: int, size: tuple[int, int]) -> bytes:
    head = media.png_chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 16, colour_type, 0, 0, 0))
    pixels = media.png_chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + pixels + media.png_chunk(b"IEND", b"")


@pytest.mark.parametrize("level", [0, 0x0101, 0x4000, 0x8000, 0xFFFF])
def test_sixteen_bits_are_scaled_not_clipped(level: int) -> None:
    grey = _deep_png((b"\0" + struct.pack(">4H", *[level] * 4)) * 4, 0, (4, 4))
    colour = _deep_png((b"\0" + struct.pack(">12H", *[level, 0, 0xFFFF] * 4)) * 4, 2, (4, 4))

    plain, _, _ = made(grey, "image/png")
    coloured, _, _ = made(colour, "image/png")

    assert near(plain, (1, 1), (level // 257,) * 3, 1)
    assert near(coloured, (1, 1), (level // 257, 0, 255), 1)


XYZ = tuple[float, float, float]


def _profile(red: XYZ, green: XYZ, blue: XYZ) -> bytes:
    """The sRGB profile with other colorants: by 3×3 from the primaries, adapted to D50."""
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    swap = {b"rXYZ": red, b"gXYZ": green, b"bXYZ": blue}
    for number in range(int.from_bytes(data[128:132], "big")):
        tag, offset, _ = struct.unpack_from(">4sII", data, 132 + 12 * number)
        if tag in swap:
            struct.pack_into(">3i", data, offset + 8, *(round(v * 65536) for v in swap[tag]))
    return bytes(data)


# Colorants as in any Display P3 profile, D50-adapted.
DISPLAY_P3 = _profile((0.51512, 0.2412, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
SWAPPED = _profile((0.38515, 0.71687, 0.09708), (0.43607, 0.22249, 0.01392), (0.14307, 0.06061, 0.71410))
"""sRGB whose red is green and whose green is red: nobody can overlook it."""


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_a_profile_is_used_and_gone(form: str) -> None:
    options = {"quality": 95} if form in {"JPEG", "WEBP", "AVIF"} else {}
    data = stored(quartered(), form, icc_profile=SWAPPED, **options)

    image, outcome, _ = made(data, f"image/{form.lower()}", mime="image/png")

    assert corners(image) == [GREEN, RED, BLUE, WHITE]
    assert "icc_profile" not in image.info
    assert outcome.notes == ()


def test_display_p3_comes_out_as_the_same_colour_in_srgb() -> None:
    """P3 (200, 100, 50) is sRGB (213, 95, 33) by the published matrices."""
    data = stored(Image.new("RGB", (16, 16), (200, 100, 50)), "PNG", icc_profile=DISPLAY_P3)

    image, _, _ = made(data, "image/png")

    assert near(image, (8, 8), (213, 95, 33), 2)


def test_an_srgb_profile_changes_no_pixel() -> None:
    chance = random.Random(1)
    noise = Image.frombytes("RGB", (64, 64), chance.randbytes(64 * 64 * 3))
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    image, _, _ = made(stored(noise, "PNG", icc_profile=srgb), "image/png")

    assert ImageChops.difference(image.convert("RGB"), noise).getbbox() is None


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA"])
def test_a_profile_meets_grey_and_alpha(mode: str) -> None:
    data = stored(quartered().convert(mode), "PNG", icc_profile=SWAPPED)

    image, outcome, _ = made(data, "image/png")

    assert outcome.notes == ()
    if mode == "RGBA":
        assert corners(image) == [GREEN, RED, BLUE, WHITE]


def _grey_profile() -> bytes:
    """Light in proportion to the number: the smallest profile there is."""
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    curve = b"curv\0\0\0\0" + struct.pack(">IHH", 1, 256, 0)
    tags = struct.pack(">I4sII4sII", 2, b"wtpt", 156, len(white), b"kTRC", 156 + len(white), len(curve))
    head = struct.pack(">I4sI4s4s4s", 156 + len(white) + len(curve), b"\0" * 4, 0x02100000, b"mntr", b"GRAY", b"XYZ ")
    head = (head.ljust(36, b"\0") + b"acsp").ljust(68, b"\0") + white[8:]
    return head.ljust(128, b"\0") + tags + white + curve


@pytest.mark.parametrize("mode", ["L", "LA"])
def test_a_grey_profile_is_used_and_the_picture_stays_grey(mode: str) -> None:
    """A fifth of the light (55 of 255) is 128 in sRGB."""
    shade = 55 if mode == "L" else (55, 77)
    data = stored(Image.new(mode, (16, 16), shade), "PNG", icc_profile=_grey_profile())

    image, outcome, _ = made(data, "image/png")

    assert image.mode == mode
    assert near(image, (8, 8), (128, 128, 128), 1)
    assert mode == "L" or image.getpixel((8, 8))[1] == 77  # type: ignore[index]  # a tuple in this mode
    assert outcome.notes == ()


@pytest.mark.parametrize("profile", [b"no profile at all", SWAPPED[:200], SWAPPED[:128] + bytes(400)])
def test_a_broken_profile_is_left_out_and_said(profile: bytes) -> None:
    image, outcome, _ = made(stored(quartered(), "PNG", icc_profile=profile), "image/png")

    assert corners(image) == CORNERS
    assert outcome.notes == ("its colour profile does not fit its pixels and was left out",)


def test_an_adobe_cmyk_jpeg_is_not_a_negative() -> None:
    ink = Image.new("CMYK", (64, 32), (0, 255, 255, 0))
    ink.paste((0, 0, 0, 0), (32, 0, 64, 32))
    data = stored(ink, "JPEG", quality=95)
    assert b"Adobe" in data

    image, _, _ = made(data, "image/jpeg", mime="image/png")

    assert near(image, (8, 16), RED, 8)
    assert near(image, (56, 16), WHITE, 8)


# -- one of several pictures ------------------------------------------------------------------------------------------


def _blinking(form: str) -> bytes:
    """Three frames: red all over, then only a green square is drawn, then only a blue one."""
    frames = [Image.new("RGB", (40, 40), RED) for _ in range(3)]
    for later in frames[1:]:
        later.paste(GREEN, (0, 0, 10, 10))
    frames[2].paste(BLUE, (30, 30, 40, 40))
    options = {"lossless": True} if form == "WEBP" else {}
    return stored(frames[0], form, save_all=True, append_images=frames[1:], duration=100, **options)


@pytest.mark.parametrize(
    ("form", "mime"), [("GIF", "image/gif"), ("PNG", "image/png"), ("WEBP", "image/webp"), ("AVIF", "image/avif")]
)
def test_the_chosen_frame_is_what_a_viewer_shows_then(form: str, mime: str) -> None:
    data = _blinking(form)

    shown = [made(data, mime, mime="image/png", frame=number) for number in range(3)]

    expected = [(RED, RED), (GREEN, RED), (GREEN, BLUE)]
    for (image, outcome, _), (first, last) in zip(shown, expected, strict=True):
        assert near(image, (5, 5), first, 30)
        assert near(image, (35, 35), last, 30)
        assert near(image, (20, 20), RED, 30)
        assert not getattr(image, "is_animated", False)
        assert "of the animation" in outcome.notes[0]


def test_a_gif_that_clears_its_frames_shows_only_the_chosen_one() -> None:
    first, second = (Image.new("P", (20, 20), 0) for _ in range(2))
    for frame, left in ((first, 0), (second, 10)):
        frame.putpalette([0, 0, 0, 255, 0, 0])
        frame.paste(1, (left, 0, left + 10, 20))
    data = stored(first, "GIF", save_all=True, append_images=[second], disposal=2, transparency=0, duration=50)

    image, _, _ = made(data, "image/gif", frame=1)

    alpha = image.convert("RGBA").getchannel("A")
    assert (alpha.getpixel((5, 5)), alpha.getpixel((15, 5))) == (0, 255)


@pytest.mark.parametrize(
    ("data", "mime"),
    [(_blinking("GIF"), "image/gif"), (_blinking("PNG"), "image/png"), (media.picture((8, 8), "JPEG"), "image/jpeg")],
)
def test_a_frame_that_is_not_there_is_refused(data: bytes, mime: str) -> None:
    with pytest.raises(UnsupportedMedia, match="no frame 7"):
        made(data, mime, frame=7)


def test_of_a_camera_s_double_picture_the_first_is_taken() -> None:
    data = media.multi_picture((64, 48))

    image, outcome, _ = made(data, "image/jpeg", max_width_px=32)

    assert (image.format, image.size) == ("JPEG", (32, 24))
    assert outcome.notes == ("the other pictures stored behind it were left out",)


# -- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "mime", "kept"),
    [
        ("JPEG", "image/jpeg", "image/jpeg"), ("PNG", "image/png", "image/png"), ("WEBP", "image/webp", "image/webp"),
        ("BMP", "image/bmp", "image/png"), ("GIF", "image/gif", "image/png"), ("AVIF", "image/avif", "image/webp"),
        ("ICO", "image/x-icon", "image/png"), ("JPEG2000", "image/jp2", "image/png"),
        ("TIFF", "image/tiff", "image/png"), ("MPO", "image/mpo", "image/jpeg"),
    ],
)  # fmt: skip
def test_what_can_be_written_keeps_its_format_and_the_rest_becomes_the_nearest(form: str, mime: str, kept: str) -> None:
    image, outcome, raw = made(stored(quartered((64, 64)), form), mime, max_width_px=32)

    assert outcome.mime == kept
    assert sniff(seen(raw)).mime == kept
    assert f"image/{(image.format or '').lower()}" == kept
    assert corners(image) == CORNERS


@pytest.mark.parametrize("mime", ["image/avif", "image/gif", "text/plain"])
def test_a_format_that_is_not_written_here_is_refused(mime: str) -> None:
    with pytest.raises(UnsupportedMedia, match="not written here"):
        made(media.picture((8, 8)), "image/png", mime=mime)


@pytest.mark.parametrize("mime", ["image/vnd.adobe.photoshop", "image/svg+xml", "image/fits"])
def test_a_format_that_is_not_read_here_is_refused(mime: str) -> None:
    with pytest.raises(UnsupportedMedia):
        made(media.picture((8, 8)), mime)


def test_a_screenshot_of_few_colours_stays_small_and_exact() -> None:
    shot = quartered((640, 400))

    image, _, raw = made(stored(shot, "PNG"), "image/png", crop=Box(left=10, top=10, right=630, bottom=390))

    assert image.mode == "P"
    assert ImageChops.difference(image.convert("RGB"), shot.crop((10, 10, 630, 390))).getbbox() is None
    assert len(raw) < 2_000


def test_same_input_and_work_give_the_same_bytes() -> None:
    for form, mime in (("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp")):
        data = stored(quartered(), form, icc_profile=DISPLAY_P3)
        assert made(data, mime, max_width_px=33)[2] == made(data, mime, max_width_px=33)[2]


# -- byte target ------------------------------------------------------------------------------------------------------


def _photo(size: tuple[int, int] = (640, 480)) -> Image.Image:
    chance = random.Random(5)
    return Image.frombytes("RGB", (160, 120), chance.randbytes(57_600)).resize(size, Image.Resampling.BICUBIC)


@pytest.mark.parametrize("target", ["image/jpeg", "image/png", "image/webp"])
def test_a_byte_target_is_met_by_quality_then_by_size_and_said(target: str) -> None:
    data, lost = stored(_photo(), "JPEG", quality=95), 0

    for most in (200_000, 60_000, 20_000, 5_000, 1_500):
        image, outcome, raw = made(data, "image/jpeg", mime=target, max_bytes=most)
        assert len(raw) <= most
        assert len(outcome.notes) >= lost, "a smaller target never costs less"
        lost = len(outcome.notes)
        assert abs(image.width / image.height - 4 / 3) < 0.06

    assert any("scaled to" in note for note in outcome.notes)


def test_a_byte_target_that_is_met_anyway_changes_nothing() -> None:
    data = stored(_photo(), "JPEG", quality=95)

    assert made(data, "image/jpeg", max_bytes=10_000_000)[1:] == made(data, "image/jpeg")[1:]


def test_a_byte_target_nothing_meets_says_the_least() -> None:
    with pytest.raises(MediaTooLarge, match="50 were asked for") as caught:
        made(stored(_photo(), "JPEG"), "image/jpeg", max_bytes=50)

    assert caught.value.figures["smallest_bytes"] > 50


# -- hostile ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "JPEG2000"])
def test_half_a_picture_is_malformed(form: str) -> None:
    """Headers are whole and pass `verify()`; only a full decode tells."""
    data = stored(_photo((600, 400)), form)

    with pytest.raises(MalformedMedia):
        made(data[: len(data) // 2], "image/jp2" if form == "JPEG2000" else f"image/{form.lower()}", mime="image/png")


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"<!DOCTYPE html><html></html>", media.png_header((8, 8))])
def test_what_is_no_png_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMedia):
        made(data, "image/png")


def test_a_wrong_checksum_is_malformed() -> None:
    data = bytearray(stored(_photo(), "PNG"))
    data[data.index(b"IDAT") + 40] ^= 0xFF

    with pytest.raises(MalformedMedia):
        made(bytes(data), "image/png")


def test_a_bomb_is_refused_by_its_header_at_the_bound_given() -> None:
    with pytest.raises(MediaTooLarge, match="more than 100,000,000 pixels"):
        made(media.png_header((20992, 10496)), "image/png")
    with pytest.raises(MediaTooLarge, match="3,000"):
        made(stored(quartered(), "PNG"), "image/png", max_pixels=3_000)


def test_a_bomb_inside_an_icon_is_refused_too() -> None:
    inner = stored(Image.new("1", (3000, 3000)), "PNG")
    data = struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(inner), 22) + inner

    with pytest.raises(MediaTooLarge):
        made(data, "image/x-icon", max_pixels=1_000_000)


def test_a_frame_that_is_larger_than_the_first_is_held_to_the_bound() -> None:
    data = stored(Image.new("1", (8, 8)), "TIFF", save_all=True, append_images=[Image.new("1", (4000, 4000))])

    with pytest.raises(MediaTooLarge):
        made(data, "image/tiff", frame=1, max_pixels=1_000_000)


def test_a_jpeg_of_more_scans_than_any_encoder_writes_is_refused_and_what_stands_behind_a_picture_is_none() -> None:
    bomb, begin = media.jpeg_of_many_scans((3000, 3000), 1000), time.process_time()

    with pytest.raises(MediaTooLarge, match="a JPEG of more than 100 scans"):
        made(bomb, "image/jpeg", max_width_px=64)
    assert time.process_time() - begin < 0.5

    picture, _, _ = made(media.jpeg_of_many_scans((64, 64), 80) + b"\xff\xda" * 500, "image/jpeg", max_width_px=32)
    assert picture.size == (32, 32)


def test_text_that_unpacks_to_much_is_not_unpacked() -> None:
    with pytest.raises(MalformedMedia):
        made(media.ztxt_bomb(1 << 26), "image/png")


def test_neither_warnings_nor_settings_of_the_library_get_out() -> None:
    before = Image.MAX_IMAGE_PIXELS
    data = stored(Image.new("1", (4000, 4000)), "PNG")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(data, "image/png", max_width_px=10)
        with pytest.raises(MediaTooLarge):
            made(data, "image/png", max_pixels=10_000_000)

    assert before == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("size", [(10_000, 1), (1, 10_000), (1, 1), (8_000, 100)])
def test_extreme_shapes_scale_to_at_least_a_pixel(size: tuple[int, int]) -> None:
    image, _, raw = made(media.picture(size), "image/png", max_width_px=100, max_height_px=100)

    assert min(image.size) >= 1
    assert max(image.size) <= 100
    assert image_size(seen(raw), "image/png") is not None


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF", "TIFF", "ICO", "JPEG2000"])
def test_mutants_end_in_a_picture_or_a_typed_error(form: str) -> None:
    chance, slowest = random.Random(form), 0.0
    mime = {"ICO": "image/x-icon", "JPEG2000": "image/jp2"}.get(form, f"image/{form.lower()}")
    options = {"exif": with_orientation(6), "icc_profile": SWAPPED} if form in {"JPEG", "PNG", "WEBP"} else {}
    data = stored(quartered((64, 48)), form, **options)

    for _ in range(120):
        mutant = bytearray(data)
        for _ in range(chance.choice((1, 3, 12))):
            mutant[chance.randrange(len(mutant))] = chance.randrange(256)
        cut = chance.choice((len(mutant), len(mutant), chance.randrange(1, len(mutant))))
        begin = time.process_time()
        with contextlib.suppress(InputError):
            made(bytes(mutant[:cut]), mime, mime="image/png", max_width_px=20, max_pixels=4_000_000)
        slowest = max(slowest, time.process_time() - begin)

    assert slowest < 2
