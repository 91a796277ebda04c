"""Thousands of damaged media: an answer or a typed error each, in time, and nothing left behind."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path

import pytest

import media
from weighlock.codecs import Prober, probe_bytes
from weighlock.errors import InputError
from weighlock.media.facts import Probed
from weighlock.mime import Window, ends_early, image_size, sniff
from weighlock.request import Modality

pytestmark = pytest.mark.slow

PROBES, SNIFFS = 1_500, 60_000
_WORDS = (
    b"moov",
    b"ftyp",
    b"stsz",
    b"RIFF",
    b"OggS",
    b"ID3\x04",
    b"%PDF-",
    b"\xff\xfb",
    b"\x1aE\xdf\xa3",
    b"IHDR",
    b"Exif",
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same bytes with a few of them overwritten, cut, doubled or replaced by what parsers look for."""
    mutant = bytearray(data)
    for _ in range(chance.choice((1, 2, 4, 16))):
        at = chance.randrange(max(1, min(len(mutant), chance.choice((64, 1024, 1 << 20)))))
        match chance.randrange(5):
            case 0:
                mutant[at : at + 1] = chance.randbytes(1)
            case 1:
                mutant[at : at + 4] = chance.choice(
                    (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\1")
                )
            case 2:
                del mutant[at : at + chance.choice((1, 16, 1000))]
            case 3:
                mutant[at:at] = chance.choice(_WORDS)
            case _:
                mutant[at:at] = mutant[at : at + 64]
    return bytes(mutant)


def answered(prober: Prober, data: bytes, mime: str, modality: Modality) -> Probed | InputError:
    try:
        return probe_bytes(prober, data, mime=mime, modality=modality)
    except InputError as error:
        return error


def test_damaged_media_end_in_facts_or_a_typed_error() -> None:
    chance = random.Random(11)
    bag = [(data, mime, Modality(modality)) for data, mime, modality in media.mixed_bag().values()]
    descriptors = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest = 0.0

    with Prober() as prober:
        for _ in range(PROBES):
            data, mime, modality = chance.choice(bag)
            begin = time.monotonic()
            answer = answered(prober, damaged(data, chance), mime, modality)
            assert isinstance(answer, Probed) or answer.message
            slowest = max(slowest, time.monotonic() - begin)

    assert slowest < 12
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 64 * 1024
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 1  # noqa: PTH208


def test_damaged_heads_never_raise_in_the_host() -> None:
    chance = random.Random(12)
    heads = [data[:20_000] for data, _, _ in media.mixed_bag().values()]
    heads += [media.picture((64, 48), form) for form in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF", "TIFF")]

    for _ in range(SNIFFS):
        window = Window.of(damaged(chance.choice(heads), chance))
        mime = sniff(window).mime
        size = image_size(window, mime)
        ends_early(window, mime)
        assert size is None or min(size.displayed_px) >= 0
