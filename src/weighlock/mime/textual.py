"""Text: which encoding, and which of the flavours a model is told about."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from weighlock.mime import json_prefix
from weighlock.mime.sniffed import Flag, Sniffed, flagged, image, text
from weighlock.mime.window import Window

SECOND_LOOK_BYTES = 1 << 16
"""How far comments in front of a root element are read."""

_TEXT_BYTES = bytes({8, 9, 10, 11, 12, 13, 27} | set(range(0x20, 0x7F)) | set(range(0x80, 0x100)))
_PLAIN = text("text/plain")
_SVG = image("image/svg+xml", "svg")
_HTML, _XML = text("text/html"), text("text/xml")
_JSON, _JSON_LINES = text("application/json"), text("application/x-ndjson")
_CSV, _TSV = text("text/csv"), text("text/tab-separated-values")
_OPENINGS = (
    ("{\\rtf", text("text/rtf")),
    ("BEGIN:VCALENDAR", text("text/calendar")),
    ("BEGIN:VCARD", text("text/vcard")),
)
_VTT = text("text/vtt")

_BYTES_PER_CONTROL = 50
"""Scripts and logs hold a stray control character here and there; more than that, and they are no text."""

_BOMS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HTML_NAMES = frozenset(
    {"html", "head", "body", "title", "meta", "link", "script", "style", "div", "span", "p", "a", "table", "ul", "ol"}
    | {"li", "img", "br", "hr", "form", "nav", "main", "section", "article", "header", "footer", "center", "font"}
    | {"iframe", "b", "i", "em", "strong", "pre", "code", "button", "input", "template", "h1", "h2", "h3", "h4"}
)
_HTML_ROOTS = frozenset({"html", "head", "body"})
"""What announces itself as XML is HTML under these roots only: `<p>` or `<title>` may be anybody's element."""
_BLANKS = re.compile(r"\s+")
_ROOT = re.compile(r"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)(?=[\s/>]|$)")
_DOCTYPE = re.compile(r"<!doctype\s+([\w:.-]+)", re.IGNORECASE)


class Decoded(NamedTuple):
    text: str
    """Without its byte order mark; a character cut at the end is left out."""
    encoding: str
    is_guess: bool
    """No Unicode encoding fits: the encoding named is a stand-in that any bytes fit."""


def is_plain(head: bytes, n: int = 256) -> bool:
    """Whether the first bytes hold no control character, so that an ASCII magic number may be a word in a text."""
    return not head[:n].translate(None, _TEXT_BYTES)


def sniff(window: Window) -> Sniffed | None:
    """The flavour of text, or `None` when these bytes are none."""
    decoded = decode(window.head)
    if decoded is None:
        return None
    sniffed = _flavour(window, decoded)
    return flagged(sniffed, Flag.ENCODING_GUESSED) if decoded.is_guess else sniffed


def encoding_of(head: bytes) -> str | None:
    """The encoding the first bytes are text in, as a codec's name; `None` when they are no text."""
    decoded = decode(head)
    return decoded and decoded.encoding


def decode(head: bytes) -> Decoded | None:
    """The first bytes as text, or `None`. The end may cut a character."""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            decoded = _strict(head[len(bom) :], encoding)
            return decoded if decoded and _is_readable(decoded.text) else None
    if b"\0" in head:
        return _utf16_without_bom(head)
    controls = len(head.translate(None, _TEXT_BYTES))
    if controls * _BYTES_PER_CONTROL > len(head):
        return None
    return _strict(head, "utf-8") or (None if controls else _legacy(head))


def _strict(raw: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(codecs.getincrementaldecoder(encoding)("strict").decode(raw), encoding, False)
    except UnicodeDecodeError:
        return None


def _is_readable(content: str) -> bool:
    sample = content[:512]
    odd = sum(1 for char in sample if not (char.isprintable() or char in "\t\n\r\f\v\b\x1b\u2028\u2029\ufeff"))
    return odd * 20 <= len(sample) and "\0" not in content


def _utf16_without_bom(head: bytes) -> Decoded | None:
    """Latin script in UTF-16: nearly every other byte is zero, always the same one of the two."""
    pairs = len(head) // 2
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if pairs < 2 or max(even, odd) < 0.6 * pairs or min(even, odd) > 0.02 * pairs:
        return None
    decoded = _strict(head, "utf-16-le" if odd > even else "utf-16-be")
    return decoded if decoded and _is_readable(decoded.text) else None


def _legacy(head: bytes) -> Decoded | None:
    """cp1252, Shift-JIS and the like: no control characters, and either mostly ASCII or long enough to be no chance."""
    high = sum(head.count(byte) for byte in set(head) if byte >= 0x80)
    if high * 3 > len(head) and len(head) < 128:
        return None
    return Decoded(head.decode("latin-1"), "cp1252", True)


def _flavour(window: Window, decoded: Decoded) -> Sniffed:
    content = decoded.text.lstrip()
    first = content[:1]
    if first == "<":
        return _markup(window, decoded, content)
    if first in {"{", "["} and (found := json_prefix.scan(content)):
        sniffed = _JSON_LINES if found is json_prefix.Scan.LINES else _JSON
        cut = window.is_whole and found is json_prefix.Scan.CUT
        return flagged(sniffed, Flag.TRUNCATED) if cut else sniffed
    for opening, sniffed in _OPENINGS:
        if content.startswith(opening):
            return sniffed
    if content.startswith("WEBVTT") and content[6:7] in {"", " ", "\t", "\n", "\r"}:
        return _VTT
    return _table(content, window.is_whole) or _PLAIN


def _markup(window: Window, decoded: Decoded, content: str) -> Sniffed:
    root, has_prolog = _root(content)
    if root is None and not window.is_whole:
        longer = decode(window.up_to(SECOND_LOOK_BYTES))
        content = (longer or decoded).text.lstrip()
        root, has_prolog = _root(content)
    if root == "svg":
        return _SVG
    if root in _HTML_NAMES and (not has_prolog or root in _HTML_ROOTS):
        return _HTML
    closes = root is not None and ("</" in content or "/>" in content)
    return _XML if has_prolog or closes else _PLAIN


def _root(content: str) -> tuple[str | None, bool]:
    """The root element's local name, lower case, and whether an XML declaration or a doctype announces it."""
    at, has_prolog = 0, False
    while True:
        at += _blanks(content, at)
        if content.startswith("<!--", at):
            at = content.find("-->", at + 4) + 3
            if at < 3:
                return None, has_prolog
        elif content.startswith("<?", at):
            if not content.startswith("<?xml", at) and not has_prolog:
                return "?", False
            has_prolog = True
            at = content.find("?>", at + 2) + 2
            if at < 2:
                return None, True
        elif doctype := _DOCTYPE.match(content, at):
            name = doctype[1].rpartition(":")[2].lower()
            if name in {"svg", "html"}:
                return name, True
            has_prolog = True
            at = _end_of_doctype(content, at)
            if at < 0:
                return None, True
        else:
            root = _ROOT.match(content, at)
            return (root[2].lower() if root else None), has_prolog


def _blanks(content: str, at: int) -> int:
    found = _BLANKS.match(content, at)
    return found.end() - at if found else 0


def _end_of_doctype(content: str, at: int) -> int:
    close = content.find(">", at)
    subset = content.find("[", at)
    if 0 <= subset < close:
        close = content.find("]", subset)
        close = content.find(">", close) if close >= 0 else -1
    return close + 1 if close >= 0 else -1


_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_TABLE_LINES = 24


def _table(content: str, is_whole: bool) -> Sniffed | None:
    """Lines that all hold the same number of separators. Prose and code are kept out at the price of tiny tables."""
    lines = content.splitlines()[: _TABLE_LINES + 1]
    if not is_whole or len(lines) > _TABLE_LINES:
        lines = lines[:-1]
    lines = [_QUOTED.sub("", line) for line in lines if line]
    if len(lines) < 2:
        return None
    for separator, sniffed in (("\t", _TSV), (",", _CSV), (";", _CSV)):
        count = lines[0].count(separator)
        if count and all(line.count(separator) == count for line in lines):
            spaced = sum(line.count(separator + " ") for line in lines) * 2 > count * len(lines)
            enough = count * (len(lines) - 1) >= (2 if separator == "\t" else 4)
            ends = all(line.endswith(separator) for line in lines)
            if enough and not ends and not (spaced and separator != "\t"):
                return sniffed
    return None
