"""Drawing media for tests: honest files, lying files and bombs, all made on the spot from a recipe.

Everything returns bytes.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import av
import pikepdf
from PIL import Image

# -- pictures ---------------------------------------------------------------------------------------------------------


def picture(
    size: tuple[int, int], form: str = "PNG", *, orientation: int = 1, mode: str = "RGB", **options: Any
) -> bytes:
    """A plain picture in any format Pillow writes; `orientation` goes into its EXIF."""
    if orientation != 1:
        exif = Image.Exif()
        exif[0x0112] = orientation
        options["exif"] = exif
    drawn = io.BytesIO()
    Image.new(mode, size).save(drawn, form, **options)
    return drawn.getvalue()


def multi_picture(size: tuple[int, int]) -> bytes:
    """A JPEG with a second one behind it, as some cameras write."""
    drawn = io.BytesIO()
    Image.new("RGB", size).save(drawn, "MPO", save_all=True, append_images=[Image.new("RGB", (8, 8))])
    return drawn.getvalue()


def animated_gif(size: tuple[int, int], frames: int) -> bytes:
    """A GIF of `frames` one-colour frames, written frame by frame so that 100,000 of them take no time."""
    header = b"GIF89a" + struct.pack("<HHBBB", *size, 0x80, 0, 0) + bytes(3) + b"\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return header + frame * frames + b"\x3b"


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(size: tuple[int, int], *extra: bytes) -> bytes:
    """A PNG that is all header: any size in under a hundred bytes, with chunks of your choice before its pixels."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n" + head + b"".join(extra) + png_chunk(b"IDAT", zlib.compress(b"")) + png_chunk(b"IEND", b"")
    )


def ztxt_bomb(unpacked: int) -> bytes:
    return png_header((8, 8), png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(unpacked), 9)))


def jpeg_of_many_scans(size: tuple[int, int], scans: int) -> bytes:
    """A progressive JPEG whose last scan is repeated: cheap to open, ruinous to decode."""
    whole = picture(size, "JPEG", progressive=True)
    last = whole.rindex(b"\xff\xda")
    return whole[:last] + whole[last:-2] * scans + whole[-2:]


def film_of_pictures(picture: bytes, size: tuple[int, int], frames: int, form: str) -> bytes:
    """One JPEG shown again and again, for a second each."""
    written = io.BytesIO()
    with av.open(written, "w", format=form) as container:
        stream = container.add_stream("mjpeg", rate=1)
        stream.width, stream.height, stream.pix_fmt = *size, "yuvj420p"
        for number in range(frames):
            packet = av.Packet(picture)
            packet.pts = packet.dts = number
            packet.time_base, packet.stream = Fraction(1, 1), stream
            container.mux(packet)
    return written.getvalue()


# -- sound ------------------------------------------------------------------------------------------------------------

_SAMPLES = {
    "aac": "fltp",
    "libmp3lame": "fltp",
    "flac": "s16",
    "libopus": "flt",
    "pcm_s16le": "s16",
    "pcm_s16be": "s16",
    "mp2": "s16",
    "pcm_s24le": "s32",
    "pcm_f64le": "dbl",
    "pcm_u8": "u8",
    "pcm_alaw": "s16",
    "adpcm_ms": "s16",
    "adpcm_ima_wav": "s16p",
    "ac3": "fltp",
    "alac": "s16p",
}


def sound(
    seconds: float, codec: str = "aac", form: str = "mp4", *, rate: int = 44100, layout: str = "mono",
    bit_rate: int | None = None,
    options: dict[str, str] | None = None, container_options: dict[str, str] | None = None, tracks: int = 1,
) -> bytes:  # fmt: skip
    """Exactly `seconds` of a tone."""
    written = io.BytesIO()
    with av.open(written, "w", format=form, options=container_options or {}) as container:
        streams = [_sound_stream(container, codec, rate, layout, bit_rate, options) for _ in range(tracks)]
        for stream in streams:
            for packet in _tone(stream, seconds, rate, layout):
                container.mux(packet)
    return written.getvalue()


def _sound_stream(
    container: Any, codec: str, rate: int, layout: str, bit_rate: int | None, options: dict[str, str] | None
) -> Any:
    stream = container.add_stream(codec, rate=rate, options=options or {})
    stream.codec_context.layout = layout
    if bit_rate:
        stream.codec_context.bit_rate = bit_rate
    return stream


def _tone(stream: Any, seconds: float, rate: int, layout: str) -> Iterable[Any]:
    total, at = round(seconds * rate), 0
    resampler = av.AudioResampler(format=stream.codec_context.format or "s16", layout=layout, rate=rate)
    channels = {"mono": 1, "stereo": 2}[layout]
    wave = struct.pack("<441h", *(int(8000 * math.sin(2 * math.pi * i / 100)) for i in range(441)))
    block = b"".join(wave[i : i + 2] * channels for i in range(0, len(wave), 2)) * 8
    while at < total:
        count = min(len(block) // (2 * channels), total - at)
        frame = av.AudioFrame(format="s16", layout=layout, samples=count)
        frame.planes[0].update(block[: count * 2 * channels].ljust(frame.planes[0].buffer_size, b"\0"))
        frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
        for ready in resampler.resample(frame):
            yield from stream.encode(ready)
        at += count
    yield from stream.encode(None)


def wav(
    seconds: float, *, rate: int = 8000, data_size: int | None = None, tail: bytes = b"", rf64: bool = False
) -> bytes:
    """16-bit mono PCM; `data_size` overrides what the header claims, `tail` follows the samples."""
    samples = bytes(2 * round(seconds * rate))
    fmt = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
    if rf64:
        ds64 = b"ds64" + struct.pack("<IQQQI", 28, len(samples) + 80, len(samples), len(samples) // 2, 0)
        body = b"WAVE" + ds64 + fmt + b"data" + struct.pack("<I", 0xFFFFFFFF) + samples
        return b"RF64\xff\xff\xff\xff" + body
    body = (
        b"WAVE" + fmt + b"data" + struct.pack("<I", len(samples) if data_size is None else data_size) + samples + tail
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


_WAVE_FIELDS = {"tag": (8, "<H"), "channels": (10, "<H"), "rate": (12, "<I"), "byte_rate": (16, "<I")}
_WAVE_FIELDS |= {"block": (20, "<H"), "bits": (22, "<H")}


def with_wave_format(data: bytes, **fields: int) -> bytes:
    """A WAV whose first `fmt ` chunk says something else: `tag`, `channels`, `rate`, `byte_rate`, `block`, `bits`."""
    changed, start = bytearray(data), data.index(b"fmt ")
    for name, value in fields.items():
        at, kind = _WAVE_FIELDS[name]
        struct.pack_into(kind, changed, start + at, value)
    return bytes(changed)


# -- moving pictures --------------------------------------------------------------------------------------------------


def video(
    seconds: float = 2.0, form: str = "mp4", *, fps: int = 10, size: tuple[int, int] = (160, 120),
    codec: str = "libx264",
    sound_s: float | None = None, sound_codec: str = "aac", sound_tracks: int = 1, rotation: int = 0,
    pixel_shape: Fraction | None = None,
    times_ms: Sequence[int] | None = None, options: dict[str, str] | None = None, container_options: dict[str,
    str] | None = None,
    pixel_format: str = "yuv420p",
) -> bytes:  # fmt: skip
    """A grey film.

    `times_ms` gives each frame its own time instead of an even pace; `rotation` is clockwise, in the track header.
    """
    written = io.BytesIO()
    with av.open(written, "w", format=form, options=container_options or {}) as container:
        stream: Any = container.add_stream(codec, rate=fps, options=options or {})
        stream.width, stream.height = size
        stream.pix_fmt = pixel_format
        if times_ms is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if pixel_shape is not None:
            stream.codec_context.sample_aspect_ratio = pixel_shape
        if rotation:
            stream.set_display_rotation(-rotation)
        sounds = (
            [_sound_stream(container, sound_codec, 48000, "mono", None, None) for _ in range(sound_tracks)]
            if sound_s
            else []
        )
        times = times_ms if times_ms is not None else range(round(seconds * fps))
        base = Fraction(1, 1000) if times_ms is not None else Fraction(1, fps)
        packets = [packet for at in times for packet in stream.encode(_grey(size, pixel_format, at, base))]
        packets += stream.encode(None)
        packets += [packet for one in sounds for packet in _tone(one, sound_s or 0, 48000, "mono")]
        for packet in sorted(packets, key=lambda packet: packet.dts * packet.time_base):
            container.mux(packet)
    return written.getvalue()


def endless(seconds: float = 1200.0, form: str = "matroska", *, size: tuple[int, int] = (320, 240)) -> bytes:
    """A film that takes no time to draw and much to encode again: one picture over and over, thirty a second."""
    written = io.BytesIO()
    with av.open(written, "w", format=form) as container:
        stream: Any = container.add_stream("mjpeg", rate=30)
        stream.width, stream.height, stream.pix_fmt = *size, "yuvj420p"
        picture = bytes(stream.encode(_grey(size, "yuvj420p", 0, Fraction(1, 30)))[0])
        for at in range(round(seconds * 30)):
            packet = av.Packet(picture)
            packet.stream, packet.pts, packet.dts, packet.time_base = stream, at, at, Fraction(1, 30)
            packet.is_keyframe = True
            container.mux(packet)
    return written.getvalue()


def _grey(size: tuple[int, int], pixel_format: str, at: int, base: Fraction) -> Any:
    frame = av.VideoFrame(*size, pixel_format)
    for plane in frame.planes:
        plane.update(bytes([at % 200]) * plane.buffer_size)
    frame.pts, frame.time_base = at, base
    return frame


def sound_with_cover(seconds: float = 1.0) -> bytes:
    """Sound in MP3 with a picture in its ID3 tag."""
    jpeg = picture((64, 64), "JPEG")
    body = b"\0image/jpeg\0\x03\0" + jpeg
    frame = b"APIC" + struct.pack(">IH", len(body), 0) + body
    size = len(frame)
    safe = bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x03\0\0" + safe + frame + sound(seconds, "libmp3lame", "mp3", container_options={"id3v2_version": "0"})


# -- ISO boxes, for files no writer would produce ---------------------------------------------------------------------


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + kind + body


def full_box(kind: bytes, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


_MATRIX = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def movie(*tracks: bytes, timescale: int = 1000, duration: int = 1000, extra: bytes = b"", data: bytes = b"") -> bytes:
    mvhd = full_box(
        b"mvhd",
        struct.pack(">IIII", 0, 0, timescale, duration),
        bytes(12),
        bytes(12),
        _MATRIX,
        bytes(24),
        b"\0\0\0\x7f",
    )
    return box(b"ftyp", b"isom\0\0\0\0isom") + box(b"moov", mvhd, *tracks, extra) + box(b"mdat", data)


def track(
    number: int = 1,
    *,
    samples: int = 1,
    sample_bytes: int = 1,
    delta: int = 100,
    timescale: int = 1000,
    edits: Sequence[tuple[int, int]] = (),
) -> bytes:
    """One H.264 track by its tables alone; nothing says that its samples exist."""
    length = samples * delta & 0xFFFFFFFF
    tkhd = full_box(
        b"tkhd",
        struct.pack(">IIIII", 0, 0, number, 0, length),
        bytes(16),
        _MATRIX,
        struct.pack(">II", 160 << 16, 120 << 16),
    )
    mdhd = full_box(b"mdhd", struct.pack(">IIIIHH", 0, 0, timescale, length, 0x55C4, 0))
    hdlr = full_box(b"hdlr", bytes(4), b"vide", bytes(12), b"v\0")
    entry = box(
        b"avc1",
        bytes(6),
        b"\0\x01",
        bytes(16),
        struct.pack(">HHII", 160, 120, 0x480000, 0x480000),
        bytes(4),
        b"\0\x01",
        bytes(32),
        b"\0\x18\xff\xff",
    )
    stbl = box(
        b"stbl", full_box(b"stsd", struct.pack(">I", 1), entry), full_box(b"stts", struct.pack(">III", 1, samples,
        delta)),
        full_box(b"stsc", struct.pack(">IIII", 1, 1, samples, 1)), full_box(b"stsz", struct.pack(">II", sample_bytes,
        samples)),
        full_box(b"stco", struct.pack(">II", 1, 48)),
    )  # fmt: skip
    dinf = box(b"dinf", full_box(b"dref", struct.pack(">I", 1), full_box(b"url ", flags=1)))
    elst = box(
        b"edts",
        full_box(b"elst", struct.pack(">I", len(edits)), *(struct.pack(">IiI", d, m, 1 << 16) for d, m in edits)),
    )
    return box(
        b"trak",
        tkhd,
        elst if edits else b"",
        box(b"mdia", mdhd, hdlr, box(b"minf", full_box(b"vmhd", bytes(8), flags=1), dinf, stbl)),
    )


def stsz_bomb(tracks: int = 20, samples: int = 40_000_000) -> bytes:
    """A few KB of sample tables that a demuxer unpacks into gigabytes."""
    return movie(*(track(i + 1, samples=samples) for i in range(tracks)))


def elst_bomb(edits: int = 2000, samples: int = 50_000) -> bytes:
    return movie(track(samples=samples, edits=[(1000, 0)] * edits))


def cmov_bomb(unpacked: int = 500_000_000) -> bytes:
    packer = zlib.compressobj(9)
    zeros = bytes(1 << 20)
    packed = b"".join(packer.compress(zeros) for _ in range(unpacked >> 20)) + packer.flush()
    cmov = box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", struct.pack(">I", unpacked), packed))
    return box(b"ftyp", b"qt  \0\0\0\0qt  ") + box(b"moov", cmov) + box(b"mdat")


def many_tracks(count: int = 1000) -> bytes:
    return movie(*(track(i + 1) for i in range(count)))


def patched(data: bytes, kind: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The file with the content of every `kind` box changed, its length kept."""
    at = data.find(kind)
    while at >= 0:
        end = at - 4 + struct.unpack_from(">I", data, at - 4)[0]
        changed = change(data[at + 4 : end])
        assert len(changed) == end - at - 4
        data = data[: at + 4] + changed + data[end:]
        at = data.find(kind, end)
    return data


def header_first(data: bytes) -> bytes:
    """The same MP4 with its movie header before its samples, as for streaming."""
    at = data.index(b"moov") - 4
    moov, mdat = data[at:], data.index(b"mdat") - 4

    def moved(stco: bytes) -> bytes:
        count = struct.unpack_from(">I", stco, 4)[0]
        offsets = struct.unpack_from(f">{count}I", stco, 8)
        return stco[:8] + struct.pack(f">{count}I", *(offset + len(moov) for offset in offsets))

    return data[:mdat] + patched(moov, b"stco", moved) + data[mdat:at]


def with_fast_clock(data: bytes, factor: int = 1000) -> bytes:
    """An MP4 whose tracks' clocks run `factor` times faster than they should: a minute claims to be milliseconds."""

    def faster(mdhd: bytes) -> bytes:
        scale = struct.unpack_from(">I", mdhd, 12)[0]
        return mdhd[:12] + struct.pack(">I", scale * factor) + mdhd[16:]

    return patched(data, b"mdhd", faster)


def with_short_edit(data: bytes, ticks: int = 2) -> bytes:
    return patched(data, b"elst", lambda elst: elst[:8] + struct.pack(">I", ticks) + elst[12:])


# -- other lies -------------------------------------------------------------------------------------------------------


def with_xing_frames(data: bytes, frames: int) -> bytes:
    at = max(data.find(b"Xing"), data.find(b"Info"))
    return data[: at + 8] + struct.pack(">I", frames) + data[at + 12 :]


def without_xing(data: bytes) -> bytes:
    """The same MP3 without the frame that says how many there are."""
    start = data.index(b"\xff\xfb") if b"\xff\xfb" in data[:4096] else data.index(b"\xff\xf3")
    following = data.index(data[start : start + 2], start + 4)
    return data[following:]


def with_flac_samples(data: bytes, samples: int) -> bytes:
    packed = int.from_bytes(data[18:26], "big") >> 36 << 36 | samples
    return data[:18] + packed.to_bytes(8, "big") + data[26:]


def with_matroska_duration(data: bytes, ticks: float) -> bytes:
    at = data.index(b"\x44\x89")
    return data[: at + 3] + struct.pack(">d", ticks) + data[at + 11 :]


def as_live_recording(data: bytes) -> bytes:
    """The WebM a browser's recorder leaves: neither the file nor its clusters say how long they are."""
    for kind in (b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"):
        at = data.find(kind)
        while at >= 0:
            width = 9 - data[at + 4].bit_length()
            size = bytes([(1 << (9 - width)) - 1]) + b"\xff" * (width - 1)
            data = data[: at + 4] + size + data[at + 4 + width :]
            at = data.find(kind, at + 4)
    return with_matroska_duration(data, float("nan")) if b"\x44\x89" in data else data


def with_matroska_scale(data: bytes, nanoseconds: int) -> bytes:
    """A Matroska file whose every time stamp means another time."""
    at = data.index(b"\x2a\xd7\xb1")
    width = data[at + 3] & 0x7F
    return data[: at + 4] + nanoseconds.to_bytes(width, "big") + data[at + 4 + width :]


def with_cluster_times(data: bytes, change: Callable[[int, int], int]) -> bytes:
    """A Matroska file whose n-th cluster begins at `change(n, what it said)`."""
    changed, number, at = bytearray(data), 0, data.find(b"\x1f\x43\xb6\x75")
    while at >= 0:
        stamp = at + 4 + 9 - data[at + 4].bit_length()
        stamp += 6 if data[stamp] == 0xBF else 0  # a checksum, which readers do not check
        assert data[stamp] == 0xE7
        width = data[stamp + 1] & 0x7F
        said = int.from_bytes(data[stamp + 2 : stamp + 2 + width], "big")
        changed[stamp + 2 : stamp + 2 + width] = change(number, said).to_bytes(width, "big")
        number, at = number + 1, data.find(b"\x1f\x43\xb6\x75", stamp)
    return bytes(changed)


HLS = b"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttp://127.0.0.1:%d/seg.ts\n#EXT-X-ENDLIST\n"
CONCAT = b"ffconcat version 1.0\nfile '%s'\n"
SDP = b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video %d RTP/AVP 96\na=rtpmap:96 H264/90000\n"


# -- documents --------------------------------------------------------------------------------------------------------


def pdf(
    pages: Iterable[tuple[float, float]] = ((595.28, 841.89),), *, rotate: int = 0, user_unit: float = 1.0,
    crop: tuple[float, float, float, float] | None = None, password: str | None = None, owner_only: bool = False,
) -> bytes:  # fmt: skip
    """Empty pages of the given sizes in points; `password` locks them, with `owner_only` they still open."""
    document = pikepdf.Pdf.new()
    for size in pages:
        page = document.add_blank_page(page_size=size)
        if rotate:
            page.obj.Rotate = rotate
        if user_unit != 1.0:
            page.obj.UserUnit = user_unit
        if crop:
            page.obj.CropBox = pikepdf.Array(crop)
    drawn = io.BytesIO()
    lock: Any = pikepdf.Encryption(owner="o", user=password or "") if password or owner_only else False
    document.save(drawn, encryption=lock)
    return drawn.getvalue()


def raw_pdf(*objects: bytes, trailer: bytes = b"/Root 1 0 R") -> bytes:
    """A PDF from its objects, numbered from 1, with a sound cross-reference table."""
    out, offsets = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(
        b"%010d 00000 n \n" % o for o in offsets
    )
    return out + table + b"trailer\n<</Size %d %s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, len(out))


_PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>"


def pdf_that_lies(kids: int, count: int) -> bytes:
    """A page tree of `kids` leaves whose root claims `count`."""
    refs = b" ".join(b"%d 0 R" % (i + 3) for i in range(kids))
    return raw_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%s]/Count %d>>" % (refs, count), *([_PAGE] * kids)
    )


def cyclic_pdf() -> bytes:
    return raw_pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R 2 0 R]/Count 9>>", _PAGE)


def fan_pdf(levels: int = 9, width: int = 10) -> bytes:
    """`width` to the power of `levels` pages from a handful of shared nodes."""
    nodes = [
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join([b"%d 0 R" % (i + 3)] * width), width ** (levels - i))
        for i in range(levels)
    ]
    return raw_pdf(b"<</Type/Catalog/Pages 2 0 R>>", *nodes, b"<</Type/Page/MediaBox[0 0 612 792]>>")


def _deflated(head: bytes, block: bytes, times: int) -> bytes:
    """A zlib stream of the head and a block many times over, packed once and repeated."""
    packer = zlib.compressobj(9, wbits=-15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    check = zlib.adler32(head)
    for _ in range(times):
        check = zlib.adler32(block, check)
    return b"\x78\xda" + start + again * times + packer.flush() + struct.pack(">I", check)


def object_stream_bomb(unpacked: int = 1 << 30) -> bytes:
    """A document whose objects lie in a stream that unpacks to `unpacked` bytes."""
    first = b"1 0 2 31 3 76 "
    objects = b"<</Type/Catalog/Pages 2 0 R>>".ljust(31) + b"<</Type/Pages/Kids[3 0 R]/Count 1>>".ljust(45)
    objects += b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    packed = _deflated(first + objects, b" " * (1 << 20), unpacked >> 20)
    head = b"%PDF-1.5\n"
    stream = b"4 0 obj\n<</Type/ObjStm/N 3/First %d/Length %d/Filter/FlateDecode>>stream\n%s\nendstream\nendobj\n" % (
        len(first),
        len(packed),
        packed,
    )
    at = len(head) + len(stream)
    rows = [(0, 0, 65535), (2, 4, 0), (2, 4, 1), (2, 4, 2), (1, len(head), 0), (1, at, 0)]
    table = b"".join(struct.pack(">BIH", *row) for row in rows)
    xref = b"5 0 obj\n<</Type/XRef/Size 6/W[1 4 2]/Root 1 0 R/Length %d>>stream\n%s\nendstream\nendobj\n" % (
        len(table),
        table,
    )
    return head + stream + xref + b"startxref\n%d\n%%%%EOF\n" % at


def mixed_bag() -> dict[str, tuple[bytes, str, str]]:
    """A little of everything, honest and not, by file name: (bytes, MIME type, modality)."""
    return {
        "film.mp4": (video(2, sound_s=2.0), "video/mp4", "VIDEO"),
        "film.mkv": (video(2, "matroska", sound_s=2.0), "video/x-matroska", "VIDEO"),
        "film.webm": (video(2, "webm", codec="libvpx"), "video/webm", "VIDEO"),
        "film.ts": (video(2, "mpegts"), "video/mp2t", "VIDEO"),
        "film.avi": (video(2, "avi"), "video/avi", "VIDEO"),
        "song.mp3": (sound(2, "libmp3lame", "mp3"), "audio/mpeg", "AUDIO"),
        "cover.mp3": (sound_with_cover(2), "audio/mpeg", "AUDIO"),
        "song.flac": (sound(2, "flac", "flac"), "audio/flac", "AUDIO"),
        "song.opus": (sound(2, "libopus", "ogg", rate=48000), "audio/ogg", "AUDIO"),
        "song.wav": (wav(2), "audio/wav", "AUDIO"),
        "list.m3u8": (HLS % 9, "video/mp4", "VIDEO"),
        "list.webm": (CONCAT % b"film.mp4", "video/webm", "VIDEO"),
        "session.mp3": (SDP % 9, "audio/mpeg", "AUDIO"),
        "photo.jpeg": (picture((40, 30), "JPEG", orientation=6), "image/jpeg", "IMAGE"),
        "shot.png": (picture((40, 30)), "image/png", "IMAGE"),
        "photo.avif": (picture((40, 30), "AVIF"), "image/avif", "IMAGE"),
        "bomb.png": (ztxt_bomb(1 << 20), "image/png", "IMAGE"),
        "paper.pdf": (pdf(), "application/pdf", "DOCUMENT"),
        "locked.pdf": (pdf(password="x" * 8), "application/pdf", "DOCUMENT"),
        "circle.pdf": (cyclic_pdf(), "application/pdf", "DOCUMENT"),
    }
