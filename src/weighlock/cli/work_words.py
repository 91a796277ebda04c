"""What is made of a medium, in the words of a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from weighlock.media.work import AudioWork, DocumentWork, ImageWork, StillsWork, StripWork, VideoWork, Work

_NAMES = {
    "image/jpeg": "a JPEG",
    "image/png": "a PNG",
    "image/webp": "a WebP",
    "video/mp4": "an MP4",
    "audio/flac": "a FLAC",
    "audio/mpeg": "an MP3",
    "audio/wav": "a WAV",
    "application/pdf": "a PDF",
}
_BARE = "metadata taken out"


def made_a(mime: str) -> str:
    return f"made {_NAMES.get(mime, mime)}"


def work_in_words(work: Work) -> str:
    """`cut to 180–240 s, without its sound`."""
    words = [*_in_words(work)]
    if not isinstance(work, StripWork | StillsWork) and work.strip_metadata:
        words.append(_BARE)
    return ", ".join(words)


def _in_words(work: Work) -> Iterator[str]:
    match work:
        case VideoWork():
            yield from _of_a_film(work)
        case StillsWork():
            yield f"{work.frames} frames as one JPEG of {work.columns} columns, {work.fps:g} a second"
            yield from _cut(work.start_s, work.end_s)
            yield f"each of {work.max_width_px}×{work.max_height_px} at most"
        case AudioWork():
            yield from _cut(work.start_s, work.end_s)
            if work.mime or (work.start_s is None and work.end_s is None):
                yield made_a(work.mime) if work.mime else "written anew"
            yield from _held(work.max_bytes)
        case ImageWork():
            yield from _of_a_picture(work)
        case DocumentWork(first_page=first, last_page=last):
            yield f"page {first} of it" if first == last else f"pages {first}–{last} of it"
        case StripWork():
            yield _BARE
        case _:
            assert_never(work)


def _of_a_film(work: VideoWork) -> Iterator[str]:
    yield from _cut(work.start_s, work.end_s)
    if not work.exact:
        most = "" if work.most_earlier_s is None else f" (by {work.most_earlier_s:g} s at most)"
        yield f"copied from the key frame at or before{most}"
    if work.fps is not None:
        yield f"{work.fps:g} frame{'' if work.fps == 1 else 's'} a second kept"
    if not work.keep_sound:
        yield "without its sound"
    yield from _scaled(work.max_width_px, work.max_height_px)
    yield from _held(work.max_bytes)
    if work == VideoWork(strip_metadata=work.strip_metadata):
        yield made_a("video/mp4")


def _of_a_picture(work: ImageWork) -> Iterator[str]:
    if work.frame:
        yield f"picture {work.frame + 1} of it"
    if (box := work.crop) is not None:
        yield f"cropped to {box.right - box.left}×{box.bottom - box.top} at {box.left}, {box.top}"
    yield from _scaled(work.max_width_px, work.max_height_px)
    if work.mime is not None:
        yield made_a(work.mime)
    yield from _held(work.max_bytes)
    if work == ImageWork(strip_metadata=work.strip_metadata):
        yield "written anew"


def _cut(start_s: float | None, end_s: float | None) -> Iterator[str]:
    if start_s is not None and end_s is not None:
        yield f"cut to {start_s:g}–{end_s:g} s"
    elif start_s is not None:
        yield f"cut from {start_s:g} s on"
    elif end_s is not None:
        yield f"cut at {end_s:g} s"


def _held(max_bytes: int | None) -> Iterator[str]:
    if max_bytes is not None:
        yield f"at most {max_bytes:,} bytes"


def _scaled(width_px: int | None, height_px: int | None) -> Iterator[str]:
    if width_px is not None and height_px is not None:
        yield f"scaled to {width_px}×{height_px}"
    elif width_px is not None or height_px is not None:
        yield f"scaled to {width_px or height_px} px {'wide' if width_px else 'high'}"
