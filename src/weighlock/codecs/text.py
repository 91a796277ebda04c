"""Counting the characters of a text. Safe in the host: nothing is parsed, and memory does not grow with the file."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

from weighlock.errors import MalformedMedia
from weighlock.media.facts import TextFacts

_CHUNK = 256 * 1024
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def text_facts(fd: int, *, size_bytes: int, encoding: str | None = None) -> TextFacts:
    """Characters of the text behind `fd`, after decoding; a byte order mark is not one of them.

    `encoding` is a declared charset. Without one: a byte order mark decides, then UTF-16 if every other byte of the
    start is zero, then UTF-8, and Windows-1252 where that fails, which cannot: the five bytes it leaves undefined
    count as one character each.

    Raises:
        MalformedMedia: empty, or not text in the declared or marked encoding.
    """
    if size_bytes <= 0:
        raise MalformedMedia("the file is empty", size_bytes=size_bytes)
    head = os.pread(fd, 4096, 0)
    mark = next(((bom, name) for bom, name in _BOMS if head.startswith(bom)), None)
    if mark is not None:
        return _count(fd, size_bytes, mark[1], skip=len(mark[0]))
    if encoding is not None:
        return _count(fd, size_bytes, encoding)
    if wide := _utf16_without_mark(head):
        return _count(fd, size_bytes, wide)
    try:
        return _count(fd, size_bytes, "utf-8")
    except MalformedMedia:
        return _count(fd, size_bytes, "cp1252", errors="replace")


def _count(fd: int, size_bytes: int, encoding: str, *, skip: int = 0, errors: str = "strict") -> TextFacts:
    try:
        decoder = codecs.getincrementaldecoder(encoding)(errors)
    except LookupError:
        raise MalformedMedia(f"unknown text encoding {encoding[:40]!r}", encoding=encoding[:40]) from None
    chars = ascii_chars = 0
    try:
        for block in _blocks(fd, skip, size_bytes):
            text = decoder.decode(block)
            chars += len(text)
            ascii_chars += len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
        chars += len(decoder.decode(b"", True))
    except UnicodeError as error:
        raise MalformedMedia(
            f"not {encoding} text: {error.reason if isinstance(error, UnicodeDecodeError) else error}"
        ) from None
    return TextFacts(chars=chars, non_ascii_chars=chars - ascii_chars, encoding=encoding)


def _blocks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        block = os.pread(fd, min(_CHUNK, end - start), start)
        if not block:
            return
        yield block
        start += len(block)


def _utf16_without_mark(head: bytes) -> str | None:
    """UTF-16 as some Windows programs write it: mostly Latin letters, so every other byte is zero."""
    pairs = len(head) // 2
    if pairs < 2 or len(head) % 2:
        return None
    low_zero, high_zero = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if high_zero > 0.6 * pairs and low_zero < 0.05 * pairs:
        return "utf-16-le"
    if low_zero > 0.6 * pairs and high_zero < 0.05 * pairs:
        return "utf-16-be"
    return None
