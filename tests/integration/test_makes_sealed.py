"""Transforms of pictures, pages and metadata in a process that can open no file and start no program."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from typing import Any

import pytest
from PIL import Image, ImageCms

import media
from weighlock.codecs import seccomp

pytestmark = pytest.mark.skipif(not seccomp.supported(), reason="no system call filter here")

_SCRIPT = """
import io, pickle, sys
sys.path[:0] = {paths!r}
from weighlock.codecs import confine, pdf_make, pillow_make, strip
from weighlock.errors import InputError
from weighlock.media.work import DocumentWork, ImageWork, StripWork

jobs = pickle.load(sys.stdin.buffer)
for door in (pillow_make, pdf_make, strip):
    door.warm_up()
assert confine.seal()
for name, data, mime, more in jobs:
    out = io.BytesIO()
    try:
        if more is None:
            strip.make(io.BytesIO(data), out, StripWork(), mime)
        elif mime == "application/pdf":
            pdf_make.make(io.BytesIO(data), out, DocumentWork(**more))
        else:
            pillow_make.make(io.BytesIO(data), out, ImageWork(**more), mime=mime)
        print(name, "made", len(out.getvalue()))
    except InputError as error:
        print(name, type(error).__name__, error.message, error.figures)
    sys.stdout.flush()
"""


def _drawn(form: str, mode: str = "RGB", **options: Any) -> bytes:
    drawn = io.BytesIO()
    Image.effect_noise((64, 64), 60).convert(mode).save(drawn, form, **options)
    return drawn.getvalue()


def _jobs() -> list[tuple[str, bytes, str, dict[str, Any] | None]]:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures = {
        "image/jpeg": _drawn("JPEG", icc_profile=profile, exif=exif), "image/png": _drawn("PNG", "RGBA", exif=exif),
        "image/webp": _drawn("WEBP", exif=exif), "image/gif": _drawn("GIF", "P"), "image/bmp": _drawn("BMP"),
        "image/avif": _drawn("AVIF", exif=exif), "image/tiff": _drawn("TIFF", compression="tiff_lzw"),
        "image/x-icon": _drawn("ICO"), "image/jp2": _drawn("JPEG2000"), "image/mpo": media.multi_picture((64, 64)),
    }  # fmt: skip
    made: list[tuple[str, bytes, str, dict[str, Any] | None]] = []
    for kind, data in pictures.items():
        for target in ("image/jpeg", "image/png", "image/webp"):
            made.append((f"{kind}>{target}", data, kind, {"mime": target, "max_width_px": 40, "max_bytes": 1500}))
    made.append(("cmyk", _drawn("JPEG", "CMYK"), "image/jpeg", {"mime": "image/png"}))
    made.append(("pages", media.pdf([(9, 9)] * 3), "application/pdf", {"first_page": 2, "last_page": 3}))
    told = {
        **{kind: pictures[kind] for kind in ("image/jpeg", "image/png", "image/webp", "image/gif", "image/avif")},
        "audio/mpeg": media.sound_with_cover(1), "audio/flac": media.sound(1, "flac", "flac"),
        "audio/wav": media.wav(1), "video/mp4": media.video(1), "application/pdf": media.pdf(),
    }  # fmt: skip
    return [*made, *((f"strip {kind}", data, kind, None) for kind, data in told.items())]


def test_every_transform_works_with_nothing_but_its_input_and_output() -> None:
    jobs = _jobs()

    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(paths=sys.path)],
        input=pickle.dumps(jobs),
        capture_output=True,
        check=False,
    )

    lines = run.stdout.decode().splitlines()
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    assert [line.rsplit(" ", 2)[0] for line in lines] == [name for name, *_ in jobs]
    assert all(" made " in line for line in lines)
