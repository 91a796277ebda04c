"""Media type from the bytes, and only from the bytes."""

from __future__ import annotations

from weighlock.mime import audio_frames, isobmff, mpeg, pdf, textual
from weighlock.mime.signatures import BY_FIRST_BYTE
from weighlock.mime.sniffed import EMPTY, UNKNOWN, Flag, Sniffed, audio, document, flagged, other
from weighlock.mime.window import Window
from weighlock.request import Modality

_TAR = other("application/x-tar")
_TEXT_SAMPLE_BYTES = 16


def sniff(source: Window | bytes | bytearray | memoryview) -> Sniffed:
    """What the bytes are: MIME type, modality, and what was odd about them.

    Never raises, whatever the bytes; only what a window's `read_at` raises passes through. Takes microseconds where
    the first bytes settle it; a container costs a few short reads more, bounded as `Window` says.
    """
    window = source if isinstance(source, Window) else Window.of(source)
    head = window.head
    if not head:
        if not window.at(0, 1):
            return EMPTY
        return sniff(window.shifted(0))
    found = _by_signature(window)
    if found is not None:
        return _unless_pdf_too(found) if pdf.offset(head) > 0 else found
    if audio_frames.is_tag(head):
        return _behind_id3(window)
    found = textual.sniff(window)
    if found is not None:
        return pdf.search(window, is_text=True) or found if pdf.offset(head) >= 0 else found
    return pdf.search(window, is_text=False) or _by_structure(window) or UNKNOWN


def _by_signature(window: Window) -> Sniffed | None:
    head = window.head
    if not head:
        return None
    for magic, verdict, is_ascii in BY_FIRST_BYTE[head[0]]:
        if head.startswith(magic):
            if is_ascii and len(head) >= _TEXT_SAMPLE_BYTES and textual.is_plain(head):
                continue
            found = verdict if isinstance(verdict, Sniffed) else verdict(window)
            if found is not None:
                return found
    if head[4:8] in isobmff.TOP_LEVEL_BOXES and not textual.is_plain(head):
        return isobmff.sniff(window)
    return None


def _unless_pdf_too(found: Sniffed) -> Sniffed:
    """`%PDF-` within the first bytes of something else: PDF readers would open it.

    Where the other format has only its magic number to show, it is the PDF.
    """
    if found.modality is None or found.modality is Modality.DOCUMENT:
        return found
    if found.modality is Modality.TEXT or Flag.HEADER_ONLY_GUESS not in found.flags:
        return flagged(found, Flag.POLYGLOT)
    return document("application/pdf", "pdf", Flag.LEADING_BYTES, Flag.POLYGLOT)


def _behind_id3(window: Window) -> Sniffed:
    """What an ID3 tag stands in front of: MP3 mostly, but FLAC and AAC too."""
    rest = audio_frames.behind_id3(window)
    inner = _by_signature(rest)
    if inner is None and rest.head.startswith(b"\0"):
        rest = audio_frames.behind_zeros(rest)
        inner = _by_signature(rest)
    inner = inner or audio_frames.search(rest)
    if inner is None and (not rest.head or textual.sniff(rest) is None):
        # The tag is the only witness: cut inside it, or frames of a free bit rate.
        return audio("audio/mpeg", "mp3", Flag.HEADER_ONLY_GUESS)
    if inner is not None and inner.modality is Modality.AUDIO:
        return inner
    return flagged(UNKNOWN, Flag.CONTRADICTION)


def _by_structure(window: Window) -> Sniffed | None:
    """Formats that do not say what they are in their first bytes, or stand behind junk."""
    head = window.head
    if head[257:262] == b"ustar":
        return _TAR
    return mpeg.sniff_ts(window) or mpeg.search_ts(window) or audio_frames.search(window)
