"""Whatever the bytes: no exception, few reads, the same answer from memory and from a file."""

from __future__ import annotations

import io
import struct
import zlib
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import av
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from weighlock.mime import (
    Sniffed,
    Window,
    agrees,
    canonical,
    declared_from_name,
    image_size,
    refine_text,
    sniff,
    spelling,
)
from weighlock.mime.image_size import _READERS
from weighlock.mime.signatures import _ROWS
from weighlock.mime.window import HEAD_BYTES, MAX_READ_BYTES, MAX_READS

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def specimens() -> tuple[bytes, ...]:
    """One small file of each kind that gets a second look."""
    pictures = [_picture(kind) for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF", "TIFF", "MPO")]
    sounds = [
        _sound(*pair)
        for pair in (
            ("mp4", "aac"),
            ("webm", "libopus"),
            ("ogg", "flac"),
            ("avi", "libmp3lame"),
            ("asf", "libmp3lame"),
            ("mpegts", "aac"),
            ("mpeg", "mp2"),
            ("flv", "aac"),
            ("mp3", "libmp3lame"),
            ("adts", "aac"),
            ("flac", "flac"),
            ("wav", "pcm_s16le"),
            ("aiff", "pcm_s16be"),
            ("eac3", "eac3"),
        )
    ]
    texts = [
        b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "b">]><!-- c --><svg/>',
        b'[{"a": [1, 2.5, "x\\n"]}, null]\n',
        "a,ü\n1,2\n".encode("utf-16"),
        b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\nstartxref\n0\n%%EOF\n",
    ]
    return (*pictures, *sounds, *texts, b"ID3\4\0\0\0\0\2\0" + bytes(256) + sounds[10], _heic())


def _picture(kind: str) -> bytes:
    target = io.BytesIO()
    block = Image.Exif()
    block[0x0112] = 6
    exif = {"exif": block.tobytes()} if kind in {"PNG", "JPEG", "WEBP", "AVIF"} else {}
    Image.new("RGB", (40, 30), (1, 2, 3)).save(target, kind, **exif)
    return target.getvalue()


def _sound(container: str, codec: str) -> bytes:
    target = io.BytesIO()
    with av.open(target, "w", format=container) as output:
        stream = output.add_stream(codec, rate=48000 if "opus" in codec else 44100)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame("s16", "mono", 9600)
        frame.sample_rate, frame.pts, frame.time_base = stream.rate, 0, Fraction(1, stream.rate)
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return target.getvalue()


def _heic() -> bytes:
    def box(kind: bytes, *bodies: bytes) -> bytes:
        body = b"".join(bodies)
        return struct.pack(">I", len(body) + 8) + kind + body

    ispe = box(b"ispe", bytes(4), struct.pack(">II", 40, 30))
    properties = box(b"ipco", ispe, box(b"irot", b"\1"), box(b"clap", struct.pack(">8I", 30, 1, 20, 1, 0, 1, 0, 1)))
    belongs = box(b"ipma", bytes(4), struct.pack(">IHB", 1, 1, 3), b"\1\3\2")
    handler = box(b"hdlr", bytes(8), b"pict", bytes(13))
    meta = box(b"meta", bytes(4), handler, box(b"pitm", bytes(4), b"\0\1"), box(b"iprp", properties, belongs))
    return box(b"ftyp", b"heic", bytes(4), b"mif1") + meta + box(b"mdat", bytes(20))


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A real file with some bytes changed, a stretch repeated or dropped, or its end cut."""
    data = bytearray(draw(st.sampled_from(specimens())))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, min(len(data), 2048) - 1)) if data else 0
        patch = draw(
            st.sampled_from([b"\0", b"\xff", b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff"]) | st.binary(max_size=8)
        )
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + len(patch)] = patch
            case 1:
                data[at:at] = patch
            case 2:
                del data[at : at + draw(st.integers(1, 64))]
            case _:
                data[at:at] = data[at : at + draw(st.integers(1, 512))]
    return bytes(data[: draw(st.none() | st.integers(0, len(data)))])


starts = st.sampled_from([magic for magic, _ in _ROWS] + [b"\0\0\0\x18ftyp", b"\0\0\0\x08moov", b"ID3\3\0\0\0\0\0\x20"])
headed = st.tuples(starts, st.binary(max_size=400)).map(b"".join)
anything = st.binary(max_size=3000) | headed | mutants()
thorough = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def watched(data: bytes, known_size: bool) -> tuple[Window, list[int]]:
    reads: list[int] = []

    def read_at(offset: int, n: int) -> bytes:
        reads.append(n)
        return data[offset : offset + n]

    return Window(data[:HEAD_BYTES], len(data) if known_size else None, read_at), reads


@thorough
@given(data=anything)
def test_sniffing_any_bytes_gives_an_answer(data: bytes) -> None:
    sniffed = sniff(data)

    assert isinstance(sniffed, Sniffed)
    assert canonical(sniffed.mime) in {sniffed.mime, None}
    assert sniff(bytearray(data)) == sniffed


@thorough
@given(data=anything, known_size=st.booleans())
def test_a_file_is_sniffed_as_its_bytes_are_within_few_reads(data: bytes, known_size: bool) -> None:
    window, reads = watched(data, known_size)

    sniffed = sniff(window)
    image_size(window, sniffed.mime)

    if known_size:
        assert sniffed == sniff(data)
    assert len(reads) <= MAX_READS
    assert sum(reads) <= MAX_READ_BYTES


@thorough
@given(data=anything, mime=st.sampled_from(sorted(_READERS)))
def test_a_size_is_positive_or_unknown_whatever_the_bytes(data: bytes, mime: str) -> None:
    size = image_size(data, mime)

    if size is not None:
        assert min(size.width_px, size.height_px) >= 1
        assert 1 <= size.orientation <= 8
        assert sorted(size.displayed_px) == sorted(size.crop_px or (size.width_px, size.height_px))


@thorough
@given(width=st.integers(1, 2**31 - 1), height=st.integers(1, 2**31 - 1))
def test_a_png_states_any_size_at_no_cost(width: int, height: int) -> None:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d" + header + struct.pack(">I", zlib.crc32(header))

    size = image_size(png, "image/png")

    assert size is not None
    assert size.displayed_px == (width, height)


@thorough
@given(content=st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co"]), min_size=1, max_size=3000))
def test_utf8_text_is_never_binary(content: str) -> None:
    sniffed = sniff(content.encode())

    assert sniffed.mime.startswith(("text/", "application/json", "application/x-ndjson", "image/svg+xml"))


@thorough
@given(declared=st.text(max_size=40) | st.sampled_from(["image/jpg", "PNG", "audio/webm;codecs=opus"]))
def test_any_declared_type_is_understood_or_none(declared: str) -> None:
    name = canonical(declared)

    assert name is None or canonical(name) == name
    assert name is None or agrees(declared, name)
    assert name is None or spelling(declared, (name,)) == name
    assert refine_text("image/png", declared) == "image/png"
    declared_from_name(declared)


def box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return struct.pack(">I", len(body) + 8) + kind + body


def nested(levels: int) -> bytes:
    body = b""
    for _ in range(levels):
        body = box(b"meta", body)
    return body


@pytest.mark.parametrize(
    "hostile",
    [
        lambda: box(b"ftyp", b"heic", bytes(4)) + box(b"free") * 500_000,
        lambda: box(b"ftyp", b"isom", bytes(4)) + box(b"moov", box(b"trak", box(b"mdia", box(b"free") * 200)) * 3000),
        lambda: box(b"ftyp", b"isom", bytes(4)) + nested(2000),
        lambda: box(b"ftyp", b"isom" * 100_000),
        lambda: bytes.fromhex("1a45dfa38842827765626d") + bytes.fromhex("18538067ff") + b"\xec\x80" * 1_000_000,
        lambda: b"OggS\0\2" + bytes(20) + b"\0" + (b"OggS\0\2" + bytes(20) + b"\0") * 100_000,
        lambda: (b"ID3\4\0\0\0\0\0\0") * 100_000,
        lambda: b"\xff\xd8" + b"\xff\xe0\0\2" * 1_000_000,
        lambda: b"\xff\xd8\xff" + b"\xff" * 5_000_000,
        lambda: b"GIF89a\1\0\1\0\0\0\0" + b"\x21\xfe\1x\0" * 1_000_000,
        lambda: b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1" + bytes(9) + b"\0\0\0\0tEXt\0\0\0\0" * 500_000,
        lambda: b"<" + b"!---->" * 1_000_000,
        lambda: b"<!---->" * 1_000_000,
        lambda: b" " * 5_000_000 + b"<svg/>",
        lambda: b"[" * 5_000_000,
        lambda: b'{"a":' * 1_000_000,
        lambda: b"," * 5_000_000,
        lambda: (b"1 0 obj " * 100 + b"%PDF-") * 1000,
        lambda: b"G" + (bytes(187) + b"G") * 50_000,
        lambda: b"\xff\xfb\x90\0" * 1_000_000,
        lambda: b"\1" + b"\xff\xfb" * 1_000_000,
        lambda: (
            bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
            + b"\xff" * 14
            + (bytes(16) + b"\x18" + bytes(7)) * 100_000
        ),
        lambda: b"PK\3\4" + bytes(26) + (b"PK\3\4" + bytes(26)) * 100_000,
        lambda: b"RIFF\xff\xff\xff\xffAVI " + b"strh" * 1_000_000,
        lambda: b"\0\0\1\xba" + b"\0\0\1" * 1_000_000,
    ],
)
def test_files_built_to_keep_us_busy_do_not(hostile: Callable[[], bytes]) -> None:
    import time

    window, reads = watched(hostile(), known_size=True)
    started = time.process_time()

    sniffed = sniff(window)
    image_size(window, sniffed.mime)

    assert time.process_time() - started < 0.25
    assert len(reads) <= MAX_READS
