"""Every medium × carrier × model × backend × policy, held against a table a person can read (screening_matrix.txt)."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import media
from weighlock.encoded import Base64, encode
from weighlock.planning.carrying import Action, Base64InToolText, Code, ToolMedia
from weighlock.planning.rewrite import rewritten
from weighlock.planning.screen import Finding, Policy, screen
from weighlock.request import (
    Backend,
    Carrier,
    Json,
    MediaPart,
    Part,
    Placement,
    Request,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)
from weighlock.rules import ModelRules, RuleBook

TABLE = Path(__file__).with_name("screening_matrix.txt")
DAY = date(2026, 11, 30)
MODELS = {
    "2.0": "gemini-2.0-flash",
    "2.5": "gemini-2.5-flash",
    "3": "gemini-3.8-flash",
    "4": "gemini-4-argon",
    "unknown": "my-tuned-model",
}
POLICIES = (ToolMedia.FILTER, ToolMedia.RELOCATE, ToolMedia.REJECT)
FILES = "https://generativelanguage.googleapis.com/v1beta/files/abc-123"


class Medium(NamedTuple):
    declared: str | None
    """What the sender calls it."""
    draw: Callable[[], Source]
    label: str = "file"


def _ogg_page(packet: bytes) -> bytes:
    return b"OggS\0\x02" + bytes(8) + struct.pack("<IIIBB", 1, 0, 0, 1, len(packet)) + packet


def _heif(*brands: bytes) -> bytes:
    meta = media.full_box(b"meta", media.full_box(b"hdlr", bytes(4), b"pict", bytes(13)))
    return media.box(b"ftyp", brands[0], bytes(4), *brands[1:]) + meta


def _zip(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "<x/>" * 40)
    return packed.getvalue()


def _samples() -> bytes:
    wave = (int(9000 * math.sin(at / 7) + 700 * math.sin(at * at)) for at in range(4000))
    return struct.pack("<4000h", *wave)


TABLE_ROWS = "name,amount,city\n" + "".join(f"row {n},{n * 7},Köln\n" for n in range(40))
HTML = b"<!doctype html><html><head><title>t</title></head><body><p>hello</p></body></html>"

MEDIA: dict[str, Medium] = {
    "png": Medium("image/png", lambda: media.picture((8, 8))),
    "jpeg": Medium("image/jpeg", lambda: media.picture((8, 8), "JPEG")),
    "webp": Medium("image/webp", lambda: media.picture((8, 8), "WEBP")),
    "heic": Medium("image/heic", lambda: _heif(b"heic", b"mif1", b"heic")),
    "heif": Medium("image/heif", lambda: _heif(b"mif1", b"mif1")),
    "gif": Medium("image/gif", lambda: media.animated_gif((8, 8), 3)),
    "bmp": Medium("image/bmp", lambda: media.picture((8, 8), "BMP")),
    "avif": Medium("image/avif", lambda: media.picture((8, 8), "AVIF")),
    "tiff": Medium("image/tiff", lambda: media.picture((8, 8), "TIFF")),
    "svg": Medium("image/svg+xml", lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="4"/></svg>'),
    "jpeg-as-png": Medium("image/png", lambda: media.picture((8, 8), "JPEG")),
    "wav": Medium("audio/wav", lambda: media.wav(0.5)),
    "mp3": Medium("audio/mpeg", lambda: media.sound(0.3, "libmp3lame", "mp3")),
    "flac": Medium("audio/flac", lambda: media.sound(0.3, "flac", "flac")),
    "ogg": Medium("audio/ogg", lambda: media.sound(0.3, "libopus", "ogg", rate=48000)),
    "m4a": Medium("audio/mp4", lambda: media.sound(0.3, "aac", "ipod")),
    "aac": Medium("audio/aac", lambda: media.sound(0.3, "aac", "adts")),
    "aiff": Medium("audio/aiff", lambda: media.sound(0.3, "pcm_s16be", "aiff")),
    "wma": Medium("audio/x-ms-wma", lambda: media.sound(0.3, "wmav2", "asf", bit_rate=64000)),
    "caf": Medium("audio/x-caf", lambda: media.sound(0.3, "pcm_s16be", "caf")),
    "l16": Medium("audio/l16", _samples),
    "mp4": Medium("video/mp4", lambda: media.video(0.5)),
    "mov": Medium("video/quicktime", lambda: media.video(0.5, "mov")),
    "webm": Medium("video/webm", lambda: media.video(0.5, "webm", codec="libvpx")),
    "mkv": Medium("video/x-matroska", lambda: media.video(0.5, "matroska")),
    "avi": Medium("video/x-msvideo", lambda: media.video(0.5, "avi")),
    "mpeg": Medium("video/mpeg", lambda: media.video(0.5, "mpeg", fps=25, codec="mpeg2video")),
    "ts": Medium("video/mp2t", lambda: media.video(0.5, "mpegts")),
    "ogv": Medium("video/ogg", lambda: _ogg_page(b"\x80theora" + bytes(35))),
    "3gp": Medium("video/3gpp", lambda: media.video(0.5, "3gp")),
    "wmv": Medium("video/x-ms-wmv", lambda: media.video(0.5, "asf", codec="wmv2")),
    "flv": Medium("video/x-flv", lambda: media.video(0.5, "flv", codec="flv")),
    "pdf": Medium("application/pdf", media.pdf),
    "docx": Medium(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        lambda: _zip("[Content_Types].xml", "word/document.xml"),
    ),
    "xlsx": Medium(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        lambda: _zip("[Content_Types].xml", "xl/workbook.xml"),
    ),
    "zip": Medium("application/zip", lambda: _zip("a.txt", "b.txt")),
    "txt": Medium("text/plain", lambda: b"The quick brown fox jumps over the lazy dog. " * 4),
    "csv": Medium("text/csv", TABLE_ROWS.encode),
    "json": Medium("application/json", lambda: b'{"a": [1, 2, 3], "b": null}'),
    "md": Medium("text/markdown", lambda: b"# Title\n\nSome *words*, and a list:\n\n* one\n* two\n", "notes.md"),
    "html": Medium("text/html", lambda: HTML),
    "xml": Medium("text/xml", lambda: b'<?xml version="1.0"?><rows><row n="1"/></rows>'),
    "javascript": Medium("text/javascript", lambda: b"export function f(a) {\n  return a + 1;\n}\n", "a.js"),
    "utf16": Medium("text/plain", lambda: "grün und blau, in zwei Bytes je Zeichen".encode("utf-16")),
    "cp1252": Medium("text/plain", lambda: ("Fünf Äpfel für Zoë – und noch mehr Text. " * 8).encode("cp1252")),
    "noise": Medium("application/octet-stream", lambda: bytes((at * at * 31 + at // 3) % 256 for at in range(999))),
    "empty": Medium("image/png", lambda: b""),
    "bad-base64": Medium("image/png", lambda: Base64("iVBORw0KGgo*" * 20)),
    "gs-mp4": Medium("video/mp4", lambda: Uri("gs://bucket/a.mp4")),
    "gs-mp4-untyped": Medium(None, lambda: Uri("gs://bucket/a.mp4")),
    "gs-mov": Medium("video/quicktime", lambda: Uri("gs://bucket/a.mov")),
    "gs-pdf": Medium("application/pdf", lambda: Uri("gs://bucket/a.pdf")),
    "https-png": Medium("image/png", lambda: Uri("https://example.com/a.png")),
    "https-bmp": Medium("image/bmp", lambda: Uri("https://example.com/a.bmp")),
    "https-svg": Medium("image/svg+xml", lambda: Uri("https://example.com/a.svg")),
    "files-png": Medium("image/png", lambda: Uri(FILES)),
    "files-untyped": Medium(None, lambda: Uri(FILES)),
    "youtube": Medium(None, lambda: Uri("https://www.youtube.com/watch?v=abc")),
}
HIDDEN = {
    ("png", "bare"), ("png", "data-uri"), ("png", "mcp"), ("jpeg", "mislabelled"), ("pdf", "inline_data"),
    ("wav", "bare"), ("mp4", "bare"), ("gif", "data-uri"), ("tiff", "data-uri"), ("heic", "data-uri"), ("png", "cut"),
    ("zip", "bare"), ("txt", "bare"), ("png", "hex"),
}  # fmt: skip


# ---- the table


@dataclass(frozen=True, kw_only=True)
class Row:
    line: int
    cells: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.cells[:4]

    def __str__(self) -> str:
        return f"{'-'.join(self.key)}-line{self.line}"


def rows(first: str) -> Iterator[Row]:
    """The rows below every head whose first column is `first`."""
    head = ""
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = tuple(re.split(r" {2,}", line.strip()))
        if cells[0] in ("medium", "hidden"):
            head = cells[0]
        elif head == first:
            yield Row(line=number, cells=cells)


ROWS = list(rows("medium"))
HIDDEN_ROWS = list(rows("hidden"))


def params(listed: list[Row]) -> list[Any]:
    return [pytest.param(row, id=str(row)) for row in listed]


def test_the_table_has_one_row_for_every_cell() -> None:
    wanted = set(product(MEDIA, Carrier, MODELS, Backend))

    keys = [row.key for row in ROWS]
    assert len(keys) == len(set(keys))
    assert set(keys) == wanted
    assert {len(row.cells) for row in ROWS} == {8}


def test_the_table_has_one_row_for_every_way_of_hiding() -> None:
    wanted = {(*way, model, backend) for way, model, backend in product(HIDDEN, MODELS, Backend)}

    keys = [row.key for row in HIDDEN_ROWS]
    assert len(keys) == len(set(keys))
    assert set(keys) == wanted
    assert {len(row.cells) for row in HIDDEN_ROWS} == {7}


# ---- what is asked


@cache
def rules_of(model: str, backend: str) -> ModelRules:
    return RuleBook.packaged().for_model(MODELS[model], Backend(backend), DAY)


@cache
def part(name: str) -> MediaPart:
    medium = MEDIA[name]
    return MediaPart(source=medium.draw(), label=medium.label, declared_mime=medium.declared)


def asked(carrier: str, medium: Part | None, response: Json = None) -> Request:
    """A request with one medium in one place; text goes with it, and a tool result answers its call."""
    said = Turn(role="user", parts=(TextPart(text="look"),))
    wire = {"functionCall": {"name": "shoot", "args": {}}}
    call = Turn(role="model", parts=(ToolCallPart(name="shoot", call_id=None, wire=wire),))
    held = () if medium is None else (medium,)
    match carrier:
        case Carrier.USER:
            return Request(turns=(Turn(role="user", parts=(TextPart(text="look"), *held)),))
        case Carrier.MODEL:
            return Request(turns=(said, Turn(role="model", parts=held), said))
        case _:
            nested = tuple(one for one in held if isinstance(one, MediaPart))
            result = ToolResultPart(name="shoot", response=response or {"result": "ok"}, media=nested)
            return Request(turns=(said, call, Turn(role="user", parts=(result,))))


def in_words(finding: Finding) -> str:
    """The decision as the table says it."""
    decision, error = finding.decision, finding.error
    if error is not None:
        return f"reject {error.code}"
    extra = ""
    if decision.convert:
        extra = f"convert {decision.send_as}"
    elif finding.medium.utf8 is not None:
        extra = f"recode {decision.send_as}"
    elif decision.send_as != finding.part.declared_mime:
        extra = f"relabel {decision.send_as}"
    match decision.action:
        case Action.RELOCATE:
            return f"relocate+{extra}" if extra else "relocate"
        case Action.KEEP | Action.REMOVE:
            return decision.action.value
        case _:
            return extra


def hidden_in_words(finding: Finding) -> str:
    words = in_words(finding)
    if finding.decision.code is Code.BASE64_TEXT:
        return "text" if finding.decision.action is Action.KEEP else "remove"
    if words.startswith("convert"):
        return f"attach+{words}"
    return words if words.startswith(("reloc", "remove", "reject")) else f"attach {finding.decision.send_as}"


@pytest.mark.parametrize("row", params(ROWS))
def test_a_cell_of_the_matrix(row: Row) -> None:
    name, carrier, model, backend, placement, *expected = row.cells
    request, rules = asked(carrier, part(name)), rules_of(model, backend)

    found = []
    for policy in POLICIES:
        screening = screen(request, rules, Policy(tool_media=policy))
        (finding,) = screening.findings
        assert (finding.carrier, finding.medium.placement) == (Carrier(carrier), Placement(placement))
        found.append(in_words(finding))
        assert screening.problems == ()

    assert found == expected, f"{TABLE.name}:{row.line}"


@pytest.mark.parametrize("name", MEDIA)
def test_what_a_cell_says_holds_when_it_was_carried_out(name: str) -> None:
    for carrier, model, backend, policy in product(Carrier, MODELS, Backend, POLICIES):
        request, rules = asked(carrier, part(name)), rules_of(model, backend)
        once = rewritten(request, screening := screen(request, rules, Policy(tool_media=policy)))
        if screening.errors or screening.pending:
            continue
        again = screen(once, rules, Policy(tool_media=policy))

        assert {one.decision.action for one in again.findings} <= {Action.KEEP}
        assert rewritten(once, again) is once


# ---- media hidden in a tool's text


def hide(name: str, how: str) -> Json:
    """A tool's response with the medium in its text, larger than 4 KiB where nothing announces it."""
    source = part(name).source
    assert isinstance(source, bytes)
    kinds = {"png": "image/png", "jpeg": "image/jpeg", "pdf": "application/pdf", "gif": "image/gif"}
    kinds |= {"tiff": "image/tiff", "heic": "image/heic"}
    kind = kinds.get(name, "")
    match how:
        case "bare":
            return {"result": encode(_of_size(name))}
        case "data-uri":
            return {"result": f"data:{kind};base64,{encode(source)}"}
        case "mcp":
            return {"content": [{"type": "image", "mimeType": kind, "data": encode(source)}]}
        case "mislabelled":
            return {"content": [{"type": "image", "mimeType": "image/png", "data": encode(source)}]}
        case "inline_data":
            return {"result": {"inline_data": {"mime_type": kind, "data": encode(source)}}}
        case "cut":
            return {"result": encode(_of_size(name))[:5000]}
        case _:
            return {"result": _of_size(name).hex()}


@cache
def _of_size(name: str) -> bytes:
    """The medium with more than 4 KiB of content."""
    match name:
        case "png":
            noise = bytes(at * at * 7919 % 251 for at in range(16000))
            return media.png_header((8, 8), media.png_chunk(b"teSt", noise))
        case "wav":
            return media.wav(1)
        case "mp4":
            return media.video(2, size=(320, 240), sound_s=2.0)
        case "zip":
            return _zip(*(f"{n}.txt" for n in range(60)))
        case _:
            return b"The quick brown fox jumps over the lazy dog. " * 200


@pytest.mark.parametrize("row", params(HIDDEN_ROWS))
def test_a_medium_hidden_in_a_tool_s_text(row: Row) -> None:
    name, how, model, backend, *expected = row.cells
    request = asked(Carrier.TOOL_RESULT, None, hide(name, how))

    found = []
    for policy in (Base64InToolText.LIFT, Base64InToolText.NOTE, Base64InToolText.KEEP):
        screening = screen(request, rules_of(model, backend), Policy(base64_in_tool_text=policy))
        found.append("+".join(map(hidden_in_words, screening.findings)) or "untouched")
        assert screening.errors == ()

    assert found == expected, f"{TABLE.name}:{row.line}"
