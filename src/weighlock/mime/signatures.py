"""Magic numbers, as a table: the bytes a file begins with, and what they mean or who takes a second look.

The first row that fits and does not decline wins. Rows are found by their first byte, so their number costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weighlock.mime import archives, asf, audio_frames, ebml, mpeg, ogg, pdf, riff, textual
from weighlock.mime.sniffed import Flag, Sniffed, audio, flagged, image, other, text, video
from weighlock.mime.window import Window

Verdict = Sniffed | Callable[[Window], Sniffed | None]


class Signature(NamedTuple):
    magic: bytes
    verdict: Verdict
    is_ascii: bool
    """A text may begin with these bytes too."""


_PNG = image("image/png", "png")
_JPEG = image("image/jpeg", "jpeg")
_GIF = image("image/gif", "gif")
_BMP = image("image/bmp", "bmp")
_ICO, _CUR = image("image/x-icon", "ico"), image("image/x-icon", "cur")
_BMP_HEADERS = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_PNG_END = b"IEND\xaeB`\x82"


def _png(window: Window) -> Sniffed:
    head = window.head
    if head[12:16] not in {b"IHDR", b"CgBI"}:
        return flagged(_PNG, Flag.HEADER_ONLY_GUESS)
    if window.is_whole and not head.rstrip(b"\0").endswith(_PNG_END):
        return flagged(_PNG, Flag.TRAILING_BYTES if _PNG_END in head else Flag.TRUNCATED)
    return _PNG


def _jpeg(window: Window) -> Sniffed:
    """A JPEG; a guess where the second marker does not stand where the first says, as some cameras have it."""
    head = window.head
    length = int.from_bytes(head[4:6])
    if head[3:4] >= b"\xc0" and length >= 2 and window.at(4 + length, 1) == b"\xff":
        return _JPEG
    return flagged(_JPEG, Flag.HEADER_ONLY_GUESS)


def _gif(window: Window) -> Sniffed:
    if len(window.head) < 13:
        return flagged(_GIF, Flag.TRUNCATED, Flag.HEADER_ONLY_GUESS)
    if window.is_whole and not window.head.rstrip(b"\0").endswith(b";"):
        return flagged(_GIF, Flag.TRAILING_BYTES if b"\0;" in window.head else Flag.TRUNCATED)
    return _GIF


def _bmp(window: Window) -> Sniffed | None:
    header_bytes = int.from_bytes(window.head[14:18], "little")
    return _BMP if header_bytes in _BMP_HEADERS else None


def _icon(window: Window) -> Sniffed | None:
    head = window.head
    if len(head) < 22 or head[5] or not head[4] or head[9]:
        return None
    return _ICO if head[2] == 1 else _CUR


def _flv(window: Window) -> Sniffed:
    tracks = window.head[4:5]
    if tracks and tracks[0] & 5 == 4:
        return audio("video/x-flv", "flv", Flag.NO_PICTURE)
    return video("video/x-flv", "flv")


def _amr(window: Window) -> Sniffed:
    return audio("audio/amr", "amr-wb" if window.head[5:8] == b"-WB" else "amr")


_NETPBM = {b"1": "bitmap", b"2": "graymap", b"3": "pixmap", b"4": "bitmap", b"5": "graymap", b"6": "pixmap"}


def _netpbm(window: Window) -> Sniffed | None:
    kind, blank = window.head[1:2], window.head[2:3]
    return image(f"image/x-portable-{_NETPBM[kind]}") if kind in _NETPBM and blank in b"\n\r\t #" else None


_DTS = audio("audio/vnd.dts", "dts")
_H264, _H265 = video("video/h264", "h264", Flag.HEADER_ONLY_GUESS), video("video/h265", "h265", Flag.HEADER_ONLY_GUESS)
_TIFF = image("image/tiff", "tiff")
_MACHO = other("application/x-mach-binary")

_ROWS: tuple[tuple[bytes, Verdict], ...] = (
    # Pictures
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8\xff", _jpeg),
    (b"GIF89a", _gif),
    (b"GIF87a", _gif),
    (b"BM", _bmp),
    (b"II*\0", _TIFF),
    (b"MM\0*", _TIFF),
    (b"II+\0\x08\0", _TIFF),
    (b"MM\0+\0\x08", _TIFF),
    (b"II\xbc\x01", image("image/jxr")),
    (b"8BPS\0", image("image/vnd.adobe.photoshop")),
    (b"\0\0\x01\0", _icon),
    (b"\0\0\x02\0", _icon),
    (b"\0\0\0\x0cjP  \r\n\x87\n", image("image/jp2", "jp2")),
    (b"\xff\x4f\xff\x51", image("image/jp2", "j2k")),
    (b"\0\0\0\x0cJXL \r\n\x87\n", image("image/jxl", "jxl")),
    (b"\xff\x0a", image("image/jxl", "jxl")),
    (b"\x8aMNG\r\n\x1a\n", video("video/x-mng")),
    (b"\x8bJNG\r\n\x1a\n", image("image/x-jng")),
    (b"qoif", image("image/qoi")),
    (b"DDS |", image("image/vnd.ms-dds")),
    (b"v/1\x01", image("image/x-exr")),
    (b"#?RADIANCE\n", image("image/vnd.radiance")),
    (b"icns", image("image/x-icns")),
    (b"BPG\xfb", image("image/bpg")),
    (b"SIMPLE  =", image("image/fits")),
    (b"gimp xcf", image("image/x-xcf")),
    (b"AT&TFORM", image("image/vnd.djvu")),
    (b"\xd7\xcd\xc6\x9a", image("image/wmf")),
    (b"\x01\0\0\0\x6c\0\0\0", image("image/emf")),
    (b"\x01\xda\0\x01", image("image/sgi")),
    (b"\x01\xda\x01\x01", image("image/sgi")),
    (b"farbfeld", image("image/x-farbfeld")),
    (b"\x59\xa6\x6a\x95", image("image/x-sun-raster")),
    (b"P", _netpbm),
    # Films and sound in containers
    (b"\x1aE\xdf\xa3", ebml.sniff),
    (b"OggS", ogg.sniff),
    (b"RIFF", riff.sniff),
    (b"RIFX", riff.sniff),
    (b"RF64", riff.sniff),
    (b"BW64", riff.sniff),
    (b"FORM", riff.sniff_iff),
    (b"riff\x2e\x91\xcf\x11", audio("audio/x-w64", "w64")),
    (asf.MAGIC, asf.sniff),
    (b"FLV\x01", _flv),
    (b"G", mpeg.sniff_ts),
    (b"\0\0\x01\xba", mpeg.sniff_ps),
    (b"\0\0\x01\xb3", video("video/mpeg", "mpegvideo")),
    (b"\0\0\x01\xb0", video("video/mp4v-es", "m4v")),
    (b"\0\0\0\x01\x67", _H264),
    (b"\0\0\0\x01\x27", _H264),
    (b"\0\0\0\x01\x09", _H264),
    (b"\0\0\x01\x67", _H264),
    (b"\0\0\0\x01\x40\x01", _H265),
    (b"\0\0\0\x01\x46\x01", _H265),
    (b".RMF", video("application/vnd.rn-realmedia", "rm")),
    (b"DKIF\0\0", video("video/x-ivf", "ivf")),
    (b"YUV4MPEG2 ", video("video/x-yuv4mpeg", "y4m")),
    (b"\x06\x0e\x2b\x34\x02\x05\x01\x01", video("application/mxf", "mxf")),
    (b"\x1f\x07\0", video("video/x-dv", "dv")),
    (b"nut/multimedia container\0", video("video/x-nut", "nut")),
    # Sound
    (b"fLaC", audio("audio/flac", "flac")),
    # The byte order mark of UTF-16 is also a sync word of MPEG audio.
    (b"\xff\xfe", textual.sniff),
    (b"\xff", audio_frames.sniff),
    (b"\x0bw", audio_frames.sniff),
    (b"\xac", audio_frames.sniff),
    (b"V", audio_frames.sniff),
    (b"ADIF", audio("audio/aac", "adif")),
    (b"#!AMR", _amr),
    (b"#!SILK_V3", audio("audio/silk")),
    (b"\x02#!SILK_V3", audio("audio/silk")),
    (b"MThd\0\0\0\x06", audio("audio/midi", "midi")),
    (b"wvpk", audio("audio/x-wavpack", "wv")),
    (b"MPCK", audio("audio/x-musepack", "mpc")),
    (b"MP+", audio("audio/x-musepack", "mpc")),
    (b".snd\0", audio("audio/basic", "au")),
    (b"caff\0\x01", audio("audio/x-caf", "caf")),
    (b"MAC ", audio("audio/x-ape", "ape")),
    (b"TTA1", audio("audio/x-tta", "tta")),
    (b"TTA2", audio("audio/x-tta", "tta")),
    (b"tBaK", audio("audio/x-tak", "tak")),
    (b"OFR ", audio("audio/x-ofr", "ofr")),
    (b"DSD \x1c\0\0\0", audio("audio/x-dsf", "dsf")),
    (b"FRM8", audio("audio/x-dff", "dff")),
    (b"qoaf", audio("audio/x-qoa", "qoa")),
    (b".ra\xfd", audio("audio/vnd.rn-realaudio", "ra")),
    (b"Creative Voice File\x1a", audio("audio/x-voc", "voc")),
    (b"\x7f\xfe\x80\x01", _DTS),
    (b"\xfe\x7f\x01\x80", _DTS),
    (b"\x1f\xff\xe8\0", _DTS),
    (b"\xff\x1f\0\xe8", _DTS),
    (b"dX %", _DTS),
    # Documents
    (b"%PDF-", pdf.sniff),
    (b"{\\rtf", text("text/rtf")),
    (b"%!PS", other("application/postscript")),
    (b"\xc5\xd0\xd3\xc6", other("application/postscript")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", other("application/x-ole-storage")),
    # Nothing a model takes: named, so that a refusal can name it
    (b"PK\3\4", archives.sniff_zip),
    (b"PK\5\6", other("application/zip", "zip")),
    (b"\x1f\x8b\x08", other("application/gzip")),
    (b"!<arch>\n", other("application/x-archive")),
    (b"BZh", other("application/x-bzip2")),
    (b"\xfd7zXZ\0", other("application/x-xz")),
    (b"7z\xbc\xaf\x27\x1c", other("application/x-7z-compressed")),
    (b"Rar!\x1a\x07", other("application/vnd.rar")),
    (b"\x28\xb5\x2f\xfd", other("application/zstd")),
    (b"\x04\x22\x4d\x18", other("application/x-lz4")),
    (b"\x7fELF", other("application/x-executable")),
    (b"MZ", other("application/vnd.microsoft.portable-executable")),
    (b"\xca\xfe\xba\xbe", other("application/java-vm")),
    (b"\xcf\xfa\xed\xfe", _MACHO),
    (b"\xce\xfa\xed\xfe", _MACHO),
    (b"\xfe\xed\xfa\xce", _MACHO),
    (b"\xfe\xed\xfa\xcf", _MACHO),
    (b"\0asm\x01\0\0\0", other("application/wasm")),
    (b"SQLite format 3\0", other("application/vnd.sqlite3")),
    (b"PAR1", other("application/vnd.apache.parquet")),
    (b"\x93NUMPY", other("application/x-npy")),
    (b"FWS", other("application/vnd.adobe.flash.movie")),
    (b"CWS", other("application/vnd.adobe.flash.movie")),
    (b"ZWS", other("application/vnd.adobe.flash.movie")),
    (b"\0\x01\0\0\0", other("font/ttf")),
    (b"OTTO\0", other("font/otf")),
    (b"wOFF", other("font/woff")),
    (b"wOF2", other("font/woff2")),
)


_TEXT_FORMATS = (b"%", b"#!", b"{")
"""Formats that are text themselves, or that no text begins like."""


def _indexed() -> tuple[tuple[Signature, ...], ...]:
    by_first: list[list[Signature]] = [[] for _ in range(256)]
    for magic, verdict in _ROWS:
        is_ascii = all(0x20 <= byte < 0x7F for byte in magic) and not magic.startswith(_TEXT_FORMATS)
        by_first[magic[0]].append(Signature(magic, verdict, is_ascii))
    return tuple(tuple(rows) for rows in by_first)


BY_FIRST_BYTE = _indexed()
"""The rows by the value of their first byte, in the table's order."""
