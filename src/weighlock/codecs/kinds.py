"""Which media types are opened at all, and by which of a library's readers. The allow-list of the doors."""

from __future__ import annotations

from weighlock.errors import UnsupportedMedia
from weighlock.modality import Modality

MOV = "mov,mp4,m4a,3gp,3g2,mj2"
_MPEG = "mpeg,mpegvideo,mpegts"
_DEMUXERS = {
    "video/mp4": MOV, "video/quicktime": MOV, "video/3gpp": MOV, "video/3gpp2": MOV, "video/x-m4v": MOV,
    "video/mj2": MOV,
    "audio/mp4": MOV, "audio/m4a": MOV, "audio/x-m4a": MOV, "audio/3gpp": MOV, "audio/3gpp2": MOV,
    "video/webm": "matroska,webm", "audio/webm": "matroska,webm",
    "video/x-matroska": "matroska,webm", "audio/x-matroska": "matroska,webm",
    "audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/aac": "aac", "audio/wav": "wav,w64", "audio/flac": "flac",
    "audio/aiff": "aiff",
    "audio/ogg": "ogg", "video/ogg": "ogg", "application/ogg": "ogg", "audio/opus": "ogg",
    "audio/amr": "amr", "audio/amr-wb": "amr", "audio/ac3": "ac3", "audio/eac3": "eac3", "audio/x-caf": "caf",
    "audio/x-wavpack": "wv", "audio/x-musepack": "mpc,mpc8",
    "video/mpeg": _MPEG, "video/mpg": _MPEG, "video/mpegps": _MPEG, "video/mp2t": "mpegts", "audio/mp2t": "mpegts",
    "video/avi": "avi", "video/x-msvideo": "avi", "video/x-flv": "flv", "video/flv": "flv",
    "video/x-ms-wmv": "asf", "video/wmv": "asf", "audio/x-ms-wma": "asf", "video/x-ms-asf": "asf",
}  # fmt: skip
_PICTURES = {
    "image/png": ("PNG",), "image/apng": ("PNG",), "image/jpeg": ("JPEG",), "image/webp": ("WEBP",),
    "image/gif": ("GIF",),
    "image/bmp": ("BMP",), "image/heic": ("HEIF",), "image/heif": ("HEIF",), "image/heic-sequence": ("HEIF",),
    "image/heif-sequence": ("HEIF",), "image/avif": ("AVIF",), "image/avif-sequence": ("AVIF",),
}  # fmt: skip


def refuse_unknown(mime: str, modality: Modality) -> None:
    """Raises what the door of this modality would, before a child is spent on it."""
    if modality is Modality.IMAGE:
        picture_formats(mime)
    elif modality in (Modality.AUDIO, Modality.VIDEO):
        demuxers(mime)


def picture_formats(mime: str) -> tuple[str, ...]:
    """Pillow's names of the formats that may open a picture of this type.

    Raises:
        UnsupportedMedia: none may.
    """
    if mime not in _PICTURES:
        text = ", or send its source as text" if mime == "image/svg+xml" else ""
        raise UnsupportedMedia(f"{mime} is opened neither here nor by Gemini; convert it to image/png{text}", mime=mime)
    return _PICTURES[mime]


def demuxers(mime: str) -> str:
    """FFmpeg's names of the demuxers that may open sound or video of this type, parted by commas.

    Raises:
        UnsupportedMedia: none may.
    """
    if mime not in _DEMUXERS:
        target = "audio/mpeg" if mime.startswith("audio/") else "video/mp4"
        raise UnsupportedMedia(f"{mime} is opened neither here nor by Gemini; convert it to {target}", mime=mime)
    return _DEMUXERS[mime]
