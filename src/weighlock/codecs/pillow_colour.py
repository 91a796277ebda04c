"""Colours of any kind as eight bits of sRGB, grey or with alpha. Runs in the confined child."""

from __future__ import annotations

import io
from functools import cache
from typing import cast

from PIL import Image, ImageChops, ImageCms

_LARGEST_PROFILE = 8 * 2**20
_GREY, _COLOUR = {"L", "LA"}, {"RGB", "RGBA"}
_SPACES = {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK", "LAB": "Lab"}
_SAME = 2
"""Levels of 255 by which two profiles may differ and be called the same: what eight bits cost on the way."""


def warm_up() -> None:
    """Have LittleCMS and the target profile in memory."""
    picture = Image.new("RGB", (8, 8))
    picture.info["icc_profile"] = _srgb().tobytes()
    to_srgb(picture)
    eight_bits(Image.new("I;16", (8, 8)))


def eight_bits(image: Image.Image) -> Image.Image:
    """L, LA, RGB, RGBA, CMYK or LAB, whichever says what the picture said; the palette and its gaps resolved."""
    mode = image.mode
    if mode in {"RGB", "L"} and "transparency" in image.info:
        return image.convert("RGBA" if mode == "RGB" else "LA")
    if mode in {"L", "LA", "RGB", "RGBA", "CMYK", "LAB"}:
        return image
    if mode == "1":
        return eight_bits(_keeping(image, image.convert("L")))
    if mode in {"P", "PA"}:
        return image.convert("RGBA" if mode == "PA" or "transparency" in image.info else "RGB")
    if mode.startswith("I") or mode == "F":
        return _levels(image)
    return image.convert({"La": "LA", "RGBa": "RGBA"}.get(mode, "RGB"))


def to_srgb(picture: Image.Image) -> tuple[Image.Image, list[str]]:
    """The picture in sRGB (or grey), its profile used up; and what could not be done about it."""
    profile = picture.info.pop("icc_profile", None)
    notes: list[str] = []
    if profile is not None:
        converted = _by_profile(picture, profile)
        if converted is not None:
            return converted, notes
        notes.append("its colour profile does not fit its pixels and was left out")
    if picture.mode == "CMYK":
        return picture.convert("RGB"), notes
    if picture.mode == "LAB":
        lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))
        return _through(picture, lab, "LAB", "RGB"), notes
    return picture, notes


def for_target(picture: Image.Image, mime: str) -> tuple[Image.Image, list[str]]:
    """The picture as `mime` can hold it: transparency that shows nothing goes, JPEG gets white behind the rest."""
    if picture.mode not in {"LA", "RGBA"}:
        return picture, []
    alpha = picture.getchannel("A")
    opaque, plain = alpha.getextrema() == (255, 255), "L" if picture.mode == "LA" else "RGB"
    if opaque:
        return picture.convert(plain), []
    if mime != "image/jpeg":
        return picture, []
    white = Image.new(plain, picture.size, "white")
    white.paste(picture.convert(plain), mask=alpha)
    return white, ["its transparency became white"]


@cache
def _srgb() -> ImageCms.ImageCmsProfile:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))


def _by_profile(picture: Image.Image, data: bytes) -> Image.Image | None:
    if len(data) > _LARGEST_PROFILE:
        return None
    alpha = picture.getchannel("A") if picture.mode in {"LA", "RGBA"} else None
    plain = picture.convert(picture.mode[:-1]) if alpha is not None else picture
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(data))
        space = profile.profile.xcolor_space.strip()
        if space == "RGB" and plain.mode == "L":  # grey pixels under a profile of the screen they were seen on
            plain = plain.convert("RGB")
        if _SPACES.get(plain.mode) != space:
            return None
        converted = _through(plain, profile, plain.mode, "RGB")
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError, RuntimeError):
        return None
    if converted is plain:
        return picture
    if space == "GRAY":
        converted = converted.convert("L")
    if alpha is not None:
        converted.putalpha(alpha)
    return converted


def _through(
    picture: Image.Image, profile: ImageCms.ImageCmsProfile, mode: str, target: str
) -> Image.Image:  # fmt: skip
    transform = ImageCms.buildTransform(
        profile, _srgb(), mode, target, renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )  # fmt: skip
    if mode == target and _changes_nothing(transform):
        return picture
    converted = _applied(picture, transform)
    converted.info = {}
    return converted


def _applied(picture: Image.Image, transform: ImageCms.ImageCmsTransform) -> Image.Image:
    converted = ImageCms.applyTransform(picture, transform)
    return picture if converted is None else converted  # `None` only where it works in place


def _changes_nothing(transform: ImageCms.ImageCmsTransform) -> bool:
    """Whether a cube of colours comes out as it went in: sRGB under one of its many names."""
    cube = Image.new("RGB", (64, 8))
    steps = [round(step * 255 / 7) for step in range(8)]
    cube.putdata([(red, green, blue) for red in steps for green in steps for blue in steps])
    difference = ImageChops.difference(cube, _applied(cube, transform))
    return max(difference.tobytes()) <= _SAME


def _levels(image: Image.Image) -> Image.Image:
    """Deep grey as eight bits: 16 bits by their full range, other depths by the narrowest usual one that holds them."""
    if image.mode.startswith("I;16"):
        return image.convert("I").point(lambda level: level * (1 / 257) + 0.5).convert("L")
    low, high = (float(bound) for bound in cast("tuple[float, float]", image.getextrema()))
    if image.mode == "F":
        top = next((t for t in (1.0, 255.0, 65535.0) if high <= t), high)
    else:
        top = next((t for t in (255.0, 65535.0) if high <= t), high)
    floor = min(0.0, low)
    scale = 255 / max(top - floor, 1e-9)
    return image.convert("F").point(lambda level: level * scale + (0.5 - floor * scale)).convert("L")


def _keeping(image: Image.Image, converted: Image.Image) -> Image.Image:
    if "transparency" in image.info:
        converted.info["transparency"] = image.info["transparency"]
    return converted
