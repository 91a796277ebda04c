"""PDF: its header may stand anywhere in the first 1,024 bytes, and text may well mention it."""

from __future__ import annotations

import re

from weighlock.mime.sniffed import Flag, Sniffed, document, flagged
from weighlock.mime.window import Window

HEADER_BYTES = 1024
_MAGIC = b"%PDF-"
_TAIL_BYTES = 1024
_PDF = document("application/pdf", "pdf")
_OBJECT = re.compile(rb"\d\s+\d+\s+obj\b|\bxref\b")
_VERSION_LINE = re.compile(rb"%PDF-\d\.\d\s*(?:[\r\n%]|\d+\s+\d+\s+obj\b|$)")


def offset(head: bytes) -> int:
    """Where `%PDF-` stands within the first `HEADER_BYTES`, or -1."""
    return head.find(_MAGIC, 0, HEADER_BYTES + len(_MAGIC) - 1)


def sniff(window: Window) -> Sniffed | None:
    """A file that begins with `%PDF-`; `None` when it is prose about one."""
    head = window.head
    if _OBJECT.search(head, 0, HEADER_BYTES) or not head.isascii():
        return _PDF
    if _OBJECT.search(head) or _ends_as_pdf(window):
        return _PDF
    return flagged(_PDF, Flag.HEADER_ONLY_GUESS) if _VERSION_LINE.match(head) else None


def search(window: Window, is_text: bool) -> Sniffed | None:
    """A PDF behind other bytes.

    Readers of PDF skip what stands before the header, so junk is no objection. A text that quotes a whole PDF is
    told from one by how it ends.
    """
    at = offset(window.head)
    if at < 0:
        return None
    if not _VERSION_LINE.match(window.head, at) or not _OBJECT.search(window.head, at):
        return None if is_text else flagged(_PDF, Flag.LEADING_BYTES, Flag.HEADER_ONLY_GUESS)
    if is_text and not _ends_as_pdf(window):
        return None
    return flagged(_PDF, Flag.LEADING_BYTES)


def _ends_as_pdf(window: Window) -> bool:
    if window.size is None:
        return False
    tail = window.at(max(window.size - _TAIL_BYTES, 0), _TAIL_BYTES).rstrip(b"\0 \t\r\n")
    return tail.endswith(b"%%EOF") and b"startxref" in tail
