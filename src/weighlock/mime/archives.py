"""Zip and OLE files: nothing a model takes, but a refusal should name an office file as what it is."""

from __future__ import annotations

from weighlock.mime.sniffed import Sniffed, other
from weighlock.mime.window import Window

_OFFICE = "application/vnd.openxmlformats-officedocument."
_ZIP = other("application/zip", "zip")
_PARTS = (
    (b"word/", other(_OFFICE + "wordprocessingml.document", "zip")),
    (b"xl/", other(_OFFICE + "spreadsheetml.sheet", "zip")),
    (b"ppt/", other(_OFFICE + "presentationml.presentation", "zip")),
    (b"AndroidManifest.xml", other("application/vnd.android.package-archive", "zip")),
    (b"META-INF/MANIFEST.MF", other("application/java-archive", "zip")),
)
_NAMED = {
    name: other(name.decode(), "zip")
    for name in (
        b"application/epub+zip",
        b"application/vnd.oasis.opendocument.text",
        b"application/vnd.oasis.opendocument.spreadsheet",
        b"application/vnd.oasis.opendocument.presentation",
        b"application/vnd.oasis.opendocument.graphics",
    )
}


def sniff_zip(window: Window) -> Sniffed:
    head = window.head
    if head[30:38] == b"mimetype":
        return _NAMED.get(head[38 : 38 + int.from_bytes(head[18:22], "little")], _ZIP)
    at = 0
    for _ in range(32):
        entry = head[at : at + 30]
        if len(entry) < 30 or entry[:4] != b"PK\3\4":
            break
        name_bytes, extra_bytes = int.from_bytes(entry[26:28], "little"), int.from_bytes(entry[28:30], "little")
        name = head[at + 30 : at + 30 + name_bytes]
        for prefix, sniffed in _PARTS:
            if name.startswith(prefix):
                return sniffed
        # Bit 3: the sizes follow the data, so the next entry has to be searched.
        streamed = entry[6] & 8
        body = at + 30 + name_bytes + extra_bytes
        at = head.find(b"PK\3\4", body) if streamed else body + int.from_bytes(entry[18:22], "little")
        if at < 0:
            break
    return _ZIP
