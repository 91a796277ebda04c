"""One picture made smaller, against what Pillow itself offers for it."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageCms

from benchmarks.harness import Comparison, Operations, medians, timed
from weighlock.codecs import pillow_make
from weighlock.media.work import ImageWork

_MILLISECONDS = 1e3
_SIZE, _SMALL = (4000, 3000), (1155, 866)
_QUALITY = 90


def pictures(folder: Path, rounds: int) -> Iterator[Comparison]:
    """A 12 MP JPEG to 1 MP, decoded, scaled and written again, confinement apart.

    A profile is brought to sRGB by both; the time that takes is LittleCMS's.
    """
    kinds: dict[str, dict[str, object]] = {
        "": {}, ", turned by its EXIF": {"exif": _turned()}, ", with a profile": {"icc_profile": _profile()},
    }  # fmt: skip
    for name, options in kinds.items():
        data = _photo(**options)

        def ours(data: bytes = data) -> None:
            work = ImageWork(max_width_px=_SMALL[0], max_height_px=_SMALL[0])
            pillow_make.make(io.BytesIO(data), io.BytesIO(), work, mime="image/jpeg")

        def pillow(data: bytes = data) -> None:
            with Image.open(io.BytesIO(data)) as image:
                image.draft("RGB", _SMALL)
                image.thumbnail(_SMALL)
                if "icc_profile" in image.info:
                    _to_srgb(image)
                image.save(io.BytesIO(), "JPEG", quality=_QUALITY)

        operations: Operations = {"weighlock": ours, "Pillow draft + thumbnail": pillow}
        yield Comparison(
            task=f"12 MP JPEG to 1 MP{name}",
            unit="ms",
            baseline="Pillow draft + thumbnail",
            medians=medians(timed(operations, rounds=rounds * 3), scale=_MILLISECONDS),
            goals={"weighlock": 1.3},
        )


def _photo(**options: object) -> bytes:
    """Soft noise: about 4 MB, as a telephone would write."""
    seed = Image.frombytes("RGB", (500, 375), random.Random(12).randbytes(500 * 375 * 3))
    drawn = io.BytesIO()
    seed.resize(_SIZE, Image.Resampling.BICUBIC).save(drawn, "JPEG", quality=90, **options)
    return drawn.getvalue()


def _to_srgb(image: Image.Image) -> None:
    profile, srgb = io.BytesIO(image.info["icc_profile"]), ImageCms.createProfile("sRGB")
    ImageCms.profileToProfile(image, profile, srgb, inPlace=True)


def _profile() -> bytes:
    """Of a wide screen: sRGB's, its red and green swapped, so that every pixel has to be converted."""
    data = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return data.replace(b"rXYZ", b"_XYZ").replace(b"gXYZ", b"rXYZ").replace(b"_XYZ", b"gXYZ")


def _turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif
