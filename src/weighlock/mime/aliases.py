"""The many names of one media type: what callers declare, what we call it, and what a backend takes."""

from __future__ import annotations

import re
from collections.abc import Collection

from weighlock.mime.file_names import claim_of

_ALIASES: dict[str, str] = {
    alias: mime
    for mime, aliases in {
        "image/jpeg": "image/jpg image/pjpeg image/mpo image/x-citrix-jpeg image/jfif",
        "image/png": "image/x-png image/apng image/vnd.mozilla.apng image/x-citrix-png",
        "image/bmp": "image/x-bmp image/x-ms-bmp",
        "image/heic": "image/heic-sequence image/x-heic",
        "image/heif": "image/heif-sequence image/x-heif",
        "image/avif": "image/avif-sequence image/x-avif",
        "image/tiff": "image/tif image/x-tiff image/x-tif",
        "image/svg+xml": "image/svg image/svg-xml application/svg+xml",
        "image/x-icon": "image/vnd.microsoft.icon image/ico",
        "image/jp2": "image/jpeg2000 image/jpeg2000-image image/x-jp2",
        "image/vnd.adobe.photoshop": "image/psd image/x-psd image/x-photoshop application/x-photoshop",
        "audio/mpeg": "audio/mp3 audio/x-mp3 audio/x-mpeg audio/mpeg3 audio/x-mpeg-3 audio/mpg audio/mpga audio/mp2",
        "audio/mp4": "audio/m4a audio/x-m4a audio/x-m4b audio/mp4a audio/mp4a-latm",
        "audio/wav": "audio/wave audio/x-wav audio/vnd.wave audio/x-pn-wav",
        "audio/ogg": "audio/opus audio/vorbis audio/x-ogg audio/x-opus+ogg audio/x-vorbis+ogg audio/speex",
        "audio/flac": "audio/x-flac",
        "audio/aac": "audio/x-aac audio/aacp audio/x-hx-aac-adts audio/vnd.dlna.adts audio/adts",
        "audio/aiff": "audio/x-aiff audio/aif audio/x-aif audio/aifc",
        "audio/amr": "audio/amr-nb audio/amr-wb audio/x-amr",
        "audio/midi": "audio/x-midi audio/mid",
        "audio/basic": "audio/au audio/x-au",
        "audio/x-ms-wma": "audio/wma audio/x-wma",
        "audio/x-matroska": "audio/matroska",
        "audio/l16": "audio/pcm",
        "video/mp4": "video/x-m4v video/m4v video/x-mp4 application/mp4",
        "video/quicktime": "video/mov video/x-quicktime",
        "video/x-msvideo": "video/avi video/msvideo video/vnd.avi",
        "video/mpeg": "video/mpg video/mpegs video/x-mpeg video/mp2p video/mpeg2 video/x-mpeg2",
        "video/x-ms-wmv": "video/wmv",
        "video/x-ms-asf": "application/vnd.ms-asf video/asf",
        "video/x-flv": "video/flv video/x-f4v",
        "video/3gpp": "video/3gp",
        "video/3gpp2": "video/3g2",
        "video/x-matroska": "video/matroska video/mkv video/x-mkv",
        "video/mp2t": "video/ts video/m2ts",
        "application/pdf": "application/x-pdf application/acrobat application/vnd.pdf text/pdf text/x-pdf",
        "application/json": "text/json application/x-json",
        "application/x-ndjson": "application/jsonl application/x-jsonlines application/jsonlines",
        "text/plain": "text/txt",
        "text/csv": "application/csv text/x-csv application/x-csv text/comma-separated-values",
        "text/xml": "application/xml",
        "text/html": "application/xhtml+xml",
        "text/markdown": "text/x-markdown text/md",
        "text/javascript": "application/javascript application/x-javascript text/x-javascript",
        "text/rtf": "application/rtf application/x-rtf",
        "text/calendar": "application/ics",
    }.items()
    for alias in aliases.split()
}
_CLAIMS_NOTHING = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/unknown", "application/x-unknown", "*/*"}
)
_NAME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_READ_AS_TEXT = frozenset({"application/json", "application/x-ndjson", "application/yaml", "application/x-yaml"})
_SAME_KIND = (
    # A generic name and the finer ones it covers.
    ("image/heif", {"image/heic"}),
    ("application/ogg", {"audio/ogg", "video/ogg"}),
    ("video/x-ms-asf", {"audio/x-ms-wma", "video/x-ms-wmv"}),
)


def canonical(declared: str | None) -> str | None:
    """The one name we use for a declared type; `None` where it declares nothing.

    Case, parameters (`;codecs=opus`), surrounding blanks, aliases (`image/jpg`) and bare extensions (`png`, `.pdf`)
    are seen through. A well-formed type nobody has heard of is returned as it is.
    """
    if not declared:
        return None
    known = _ALIASES.get(declared)
    if known:
        return known
    name = declared.partition(";")[0].strip().lower()
    if name in _CLAIMS_NOTHING:
        return None
    if "/" not in name:
        return claim_of(name.removeprefix("."))
    return _ALIASES.get(name) or (name if _NAME.fullmatch(name) else None)


def is_text(mime: str) -> bool:
    """Whether a model reads a type as text."""
    return mime.startswith("text/") or mime in _READ_AS_TEXT


def agrees(declared: str | None, detected: str) -> bool:
    """Whether a declared type says nothing else than the bytes do.

    Aliases agree, any flavour of text agrees with any other, a generic name with its finer ones (`application/ogg`
    with `audio/ogg`); nothing declared agrees with everything. `video/webm` over sound alone does not.
    """
    claim, found = canonical(declared), canonical(detected)
    if claim is None or claim == found:
        return True
    if found is None:
        return False
    if is_text(claim) and is_text(found):
        return True
    return any({claim, found} <= {generic, *finer} and generic in {claim, found} for generic, finer in _SAME_KIND)


def spelling(mime: str, accepted: Collection[str]) -> str | None:
    """The name under which a backend takes `mime`, out of those it accepts; `None` when it takes none.

    `video/quicktime` is `video/mov` on one list and itself on another. Text that has no name of its own on the list
    goes as `text/plain`.
    """
    if mime in accepted:
        return mime
    wanted = canonical(mime)
    if wanted is None:
        return None
    if wanted in accepted:
        return wanted
    equal = sorted(name for name in accepted if canonical(name) == wanted)
    if equal:
        return equal[0]
    return "text/plain" if is_text(wanted) and "text/plain" in accepted else None
