"""What goes wrong with media types in other programs (tests/golden/known_traps.md), each with all of its kind.

A REST body comes in, is screened, and the JSON that leaves is looked at.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from google.genai import types
from PIL import Image

import media
from weighlock import Preflight
from weighlock.converters import rest_json
from weighlock.errors import InputError, MimeMismatch, UnknownMediaType, UnsupportedMedia
from weighlock.mime import agrees, canonical, sniff, spelling
from weighlock.mime.aliases import _ALIASES
from weighlock.planning.carrying import Action, ToolMedia
from weighlock.planning.rewrite import rewritten
from weighlock.planning.screen import Policy, Screening, screen
from weighlock.request import Backend, Carrier, Placement
from weighlock.rules import RuleBook
from weighlock.scales import Asked
from weighlock.settings import load

BOOK, DAY = RuleBook.packaged(), date(2026, 11, 30)
NEW, OLD = "gemini-3.8-flash", "gemini-2.5-flash"
MODELS = ["gemini-2.0-flash", OLD, NEW, "gemini-4-argon"]
BACKENDS = list(Backend)
Json = dict[str, Any]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def inline(data: bytes, mime: str | None) -> Json:
    named = {} if mime is None else {"mimeType": mime}
    return {"inlineData": {**named, "data": b64(data)}}


def spoken(*parts: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "look"}, *parts]}]}


def answered(*parts: Json) -> Json:
    """The same parts as media of a tool result."""
    answer = {"functionResponse": {"name": "shoot", "response": {"result": "ok"}, "parts": list(parts)}}
    call = {"role": "model", "parts": [{"functionCall": {"name": "shoot", "args": {}}}]}
    return {"contents": [*spoken()["contents"], call, {"role": "user", "parts": [answer]}]}


def screened(
    request: Json, model: str = NEW, backend: Backend = Backend.DEVELOPER, policy: Policy | None = None
) -> tuple[list[Json], Screening]:
    """The media that leave, in order, and what was found."""
    parsed = rest_json.parse(json.dumps(request).encode())
    screening = screen(parsed.request, BOOK.for_model(model, backend, DAY), policy or Policy())
    sent = json.loads(rest_json.emit(rewritten(parsed.request, screening), parsed))
    return list(_media_of(sent)), screening


def _media_of(value: Any) -> list[Json]:
    if isinstance(value, list):
        return [one for item in value for one in _media_of(item)]
    if isinstance(value, dict):
        found = [value[kind] for kind in ("inlineData", "fileData") if kind in value]
        return found + [one for item in value.values() for one in _media_of(item)]
    return []


def sent_type(request: Json, model: str = NEW, backend: Backend = Backend.DEVELOPER) -> str:
    (one,) = screened(request, model, backend)[0]
    mime: str = one["mimeType"]
    return mime


def refusal(request: Json, model: str = NEW, backend: Backend = Backend.DEVELOPER) -> InputError:
    (error,) = screened(request, model, backend)[1].errors
    return error


def preflight(folder: Path) -> Preflight:
    settings = folder / "weighlock.yaml"
    settings.write_text(f"version: 1\ndefault: {{model: {OLD}}}\n")
    return Preflight(load(settings))


PNG, JPEG, WEBP = (media.picture((8, 8), form) for form in ("PNG", "JPEG", "WEBP"))
GIF, BMP, TIFF = (media.picture((8, 8), form) for form in ("GIF", "BMP", "TIFF"))
DRAWN: dict[str, bytes] = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/webp": WEBP,
    "audio/wav": media.wav(0.3),
    "audio/mpeg": media.sound(0.3, "libmp3lame", "mp3"),
    "audio/ogg": media.sound(0.3, "libopus", "ogg", rate=48000),
    "audio/flac": media.sound(0.3, "flac", "flac"),
    "audio/mp4": media.sound(0.3, "aac", "ipod"),
    "audio/aac": media.sound(0.3, "aac", "adts"),
    "video/mp4": media.video(0.5),
    "video/quicktime": media.video(0.5, "mov"),
    "video/webm": media.video(0.5, "webm", codec="libvpx"),
    "video/mpeg": media.video(0.5, "mpeg", fps=25, codec="mpeg2video"),
    "video/x-flv": media.video(0.5, "flv", codec="flv"),
    "video/3gpp": media.video(0.5, "3gp"),
    "video/x-ms-wmv": media.video(0.5, "asf", codec="wmv2"),
    "application/pdf": media.pdf(),
}
NOISE = bytes((at * at * 31 + at // 3) % 256 for at in range(4001))


# ---- FIL-003: text or not


@pytest.mark.parametrize("char", ["é", "€", "語", "🙂"])
@pytest.mark.parametrize("shift", range(5))
@pytest.mark.parametrize("edge", [4096, 8192, 65536])
def test_a_character_across_the_edge_of_any_window_leaves_text_text(char: str, shift: int, edge: int) -> None:
    data = ("a" * (edge - shift) + char * 2000).encode()

    assert screened(spoken(inline(data, "text/plain")))[0] == [inline(data, "text/plain")["inlineData"]]


TABLE = "name;city;amount\n" + "".join(f"Zoë {n};Köln;{n}\n" for n in range(30))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "utf-8-sig"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("put", [spoken, answered])
def test_text_of_another_encoding_is_sent_as_utf_8_with_the_same_characters(
    encoding: str, backend: Backend, put: Any
) -> None:
    (one,) = screened(put(inline(TABLE.encode(encoding), "text/csv")), NEW, backend)[0]

    assert base64.b64decode(one["data"]).decode("utf-8-sig") == TABLE
    assert one["mimeType"] in {"text/csv", "text/plain"}


@pytest.mark.parametrize("data", [NOISE, b"\0" * 50 + b"words and words", b"words\0\0\0\1\2\3" * 20 + b"\xff\xfe\xfd"])
@pytest.mark.parametrize("declared", ["text/plain", "text/csv", None])
def test_binary_is_never_text_whatever_it_is_called(data: bytes, declared: str | None) -> None:
    assert isinstance(refusal(spoken(inline(data, declared))), UnknownMediaType)


# ---- FIL-020, MIM-020: application/octet-stream


@pytest.mark.parametrize("mime", DRAWN)
@pytest.mark.parametrize("nothing", ["application/octet-stream", "binary/octet-stream", "", None])
def test_a_medium_is_never_sent_as_octets(mime: str, nothing: str | None) -> None:
    for model in MODELS:
        for backend in BACKENDS:
            media_sent, screening = screened(spoken(inline(DRAWN[mime], nothing)), model, backend)
            if screening.pending:
                continue
            assert screening.errors == ()
            assert canonical(media_sent[0]["mimeType"]) == mime
            assert BOOK.for_model(model, backend, DAY).accepts(media_sent[0]["mimeType"])


@pytest.mark.parametrize("mime", ["image/png", "video/mp4"])
def test_a_medium_is_never_sent_as_octets_to_an_unknown_model_either(mime: str) -> None:
    assert sent_type(spoken(inline(DRAWN[mime], "application/octet-stream")), "my-tuned-model") == mime


@pytest.mark.parametrize("alias", ["audio/x-wav", "audio/wave", "audio/vnd.wave"])
def test_wave_by_any_name_is_audio_wav(alias: str) -> None:
    for backend in BACKENDS:
        assert sent_type(spoken(inline(DRAWN["audio/wav"], alias)), NEW, backend) == "audio/wav"


# ---- MIM-001, MIM-002: SVG

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
SVGS = {
    "bare": SVG.encode(),
    "prolog": f'<?xml version="1.0" encoding="UTF-8"?>\n{SVG}'.encode(),
    "doctype": f'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg11.dtd">\n{SVG}'.encode(),
    "comment": f"<!-- made by hand -->\n{SVG}".encode(),
    "bom": b"\xef\xbb\xbf" + SVG.encode(),
    "utf-16": SVG.encode("utf-16"),
    "prefixed": b'<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:rect/></s:svg>',
    "svgz": gzip.compress(SVG.encode()),
}


@pytest.mark.parametrize("kind", SVGS)
@pytest.mark.parametrize("declared", ["image/svg+xml", "image/svg", "image/png", "image/svg+xml; charset=utf-8", None])
@pytest.mark.parametrize("model", [OLD, NEW])
def test_svg_is_refused_with_what_to_send_instead_whatever_it_is_called(
    kind: str, declared: str | None, model: str
) -> None:
    error = refusal(spoken(inline(SVGS[kind], declared)), model)

    assert isinstance(error, UnsupportedMedia)
    assert error.figures["place"] == "contents[0].parts[1]"
    assert ("render it to PNG" in error.message) is (kind != "svgz")


@pytest.mark.parametrize("kind", SVGS)
def test_svg_from_a_tool_leaves_a_note(kind: str) -> None:
    media_sent, screening = screened(answered(inline(SVGS[kind], "image/svg+xml")))

    assert media_sent == []
    assert screening.errors == ()


# ---- MIM-003: which one it was


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize(
    "culprit",
    [
        pytest.param(TIFF, id="tiff"),
        pytest.param(b"8BPS\0\1" + bytes(40), id="psd"),
        pytest.param(b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(40), id="jxl"),
        pytest.param(b"PK\5\6" + bytes(18), id="zip"),
        pytest.param(NOISE, id="unknown"),
    ],
)
def test_of_several_files_the_one_at_fault_is_named_with_its_type(at: int, culprit: bytes) -> None:
    parts = [inline(PNG, "image/png"), inline(media.pdf(), "application/pdf"), inline(JPEG, "image/jpeg")]
    parts.insert(at, inline(culprit, "image/tiff"))

    error = refusal(spoken(*parts))

    assert error.figures["place"] == f"contents[0].parts[{at + 1}]"
    assert error.message.startswith(f"contents[0].parts[{at + 1}]: ")
    if culprit is not NOISE:
        assert sniff(culprit).mime in error.message


def test_every_file_at_fault_is_named() -> None:
    _, screening = screened(spoken(inline(TIFF, "image/tiff"), inline(PNG, "image/png"), inline(NOISE, None)))

    assert [error.figures["place"] for error in screening.errors] == ["contents[0].parts[1]", "contents[0].parts[3]"]


# ---- MIM-004, MIM-007, MIM-008: pictures that become others


def animated(form: str) -> bytes:
    drawn = io.BytesIO()
    frames = [Image.new("RGB", (20, 10), shade) for shade in ("red", "blue", "green")]
    frames[0].save(drawn, form, save_all=True, append_images=frames[1:], duration=[100, 400, 50])
    return drawn.getvalue()


CONVERTIBLE = {
    **{f"bmp {mode}": media.picture((320, 200), "BMP", mode=mode) for mode in ("1", "L", "P", "RGB")},
    "gif": GIF,
    "gif of ten frames": media.animated_gif((8, 8), 10),
    "gif of uneven frames": animated("GIF"),
    "gif87": b"GIF87a" + GIF[6:],
    "avif": media.picture((8, 8), "AVIF"),
    "ico": media.picture((16, 16), "ICO"),
    "jpeg 2000": media.picture((8, 8), "JPEG2000"),
}


@pytest.mark.parametrize("kind", CONVERTIBLE)
@pytest.mark.parametrize("declared", ["own", "image/png", "image/gif", None])
@pytest.mark.parametrize("put", [spoken, answered])
def test_a_picture_that_can_become_another_is_to_be_converted_and_the_rest_goes_on(
    kind: str, declared: str | None, put: Any
) -> None:
    data = CONVERTIBLE[kind]
    label = sniff(data).mime if declared == "own" else declared

    media_sent, screening = screened(put(inline(PNG, "image/png"), inline(data, label), inline(JPEG, "image/jpeg")))

    (pending,) = screening.pending
    assert screening.errors == ()
    assert (pending.decision.action, pending.decision.convert) == (Action.CONVERT, True)
    assert pending.decision.send_as in {"image/png", "image/webp"}
    assert [one.get("mimeType") for one in media_sent][::2] == ["image/png", "image/jpeg"]


@pytest.mark.parametrize("kind", CONVERTIBLE)
@pytest.mark.parametrize("model", [OLD, NEW])
def test_what_waits_for_its_conversion_never_bears_the_name_of_what_it_will_be(kind: str, model: str) -> None:
    data = CONVERTIBLE[kind]

    for put in (spoken, answered):
        (one,) = screened(put(inline(data, sniff(data).mime)), model)[0]
        assert one["mimeType"] == sniff(base64.b64decode(one["data"])).mime


def test_a_bitmap_is_weighed_as_the_picture_it_becomes(tmp_path: Path) -> None:
    bitmap, png = media.picture((320, 200), "BMP", mode="P"), media.picture((320, 200))

    with preflight(tmp_path) as weigher:
        reports = [
            weigher.weigh_request(rest_json.parse(spoken(inline(data, "image/bmp"))).request, Asked(on=DAY))
            for data in (bitmap, png)
        ]

    assert [report.parts[0].total.likely for report in reports] == [258, 258]


@pytest.mark.parametrize("data", [TIFF, SVGS["bare"], NOISE, b""])
def test_what_cannot_be_sent_is_a_permanent_error_of_the_caller(data: bytes) -> None:
    assert 400 <= refusal(spoken(inline(data, "image/png"))).http_status < 500


# ---- MIM-005, MIM-006: names


@pytest.mark.parametrize("mime", [mime for mime in DRAWN if mime not in ("video/mpeg", "video/x-ms-wmv")])
def test_a_bare_extension_and_odd_spellings_are_put_right(mime: str) -> None:
    extension = {"image/jpeg": "jpg", "audio/mpeg": "mp3", "audio/mp4": "m4a", "video/quicktime": "mov"}
    extension |= {"video/x-flv": "flv", "video/3gpp": "3gp"}
    bare = extension.get(mime, mime.partition("/")[2])

    for backend in BACKENDS:
        for declared in (bare, bare.upper(), f".{bare}", f" {mime.upper()} ", f"{mime}; charset=binary"):
            sent = sent_type(spoken(inline(DRAWN[mime], declared)), NEW, backend)
            assert canonical(sent) == mime
            assert sent in (BOOK.for_model(NEW, backend, DAY).accepted() or ())


ALIASES = sorted((alias, mime) for alias, mime in _ALIASES.items() if mime in DRAWN)


@pytest.mark.parametrize(("alias", "mime"), ALIASES)
def test_every_alias_is_sent_by_a_name_the_backend_has(alias: str, mime: str) -> None:
    for model in MODELS:
        for backend in BACKENDS:
            accepted = BOOK.for_model(model, backend, DAY).accepted() or frozenset()
            sent = sent_type(spoken(inline(DRAWN[mime], alias)), model, backend)
            assert sent in accepted
            assert canonical(sent) == mime
            assert sent == alias or alias not in accepted


# ---- MIM-009, MIM-010: WebP and HEIC under other names

WEBPS = {
    "lossy": media.picture((20, 20), "WEBP", lossless=False),
    "lossless": media.picture((20, 20), "WEBP", lossless=True),
    "with alpha": media.picture((20, 20), "WEBP", mode="RGBA"),
    "with exif": media.picture((20, 20), "WEBP", orientation=6),
    "animated": animated("WEBP"),
}


def heic(*brands: bytes) -> bytes:
    meta = media.full_box(b"meta", media.full_box(b"hdlr", bytes(4), b"pict", bytes(13)))
    return media.box(b"ftyp", brands[0], bytes(4), *brands[1:]) + meta


HEICS = {
    **{f"heic {b.decode()}": heic(b, b"mif1") for b in (b"heic", b"heix", b"heim", b"heis")},
    "heic by a compatible brand": heic(b"mif1", b"heic"),
    "heic with many brands": heic(b"heic", b"mif1", b"MiHE", b"miaf", b"tmap"),
}
WRONG = ["application/octet-stream", None, "image/jpeg", "image/jpg", "image/png", "video/mp4"]


@pytest.mark.parametrize("kind", [*WEBPS, *HEICS])
@pytest.mark.parametrize("declared", WRONG)
def test_webp_and_heic_are_known_by_their_bytes(kind: str, declared: str | None) -> None:
    data = {**WEBPS, **HEICS}[kind]

    for backend in BACKENDS:
        sent = sent_type(spoken(inline(data, declared)), NEW, backend)
        assert sent == ("image/webp" if kind in WEBPS else "image/heic")


# ---- MIM-011, MIM-012: a wrong label

PAIRS = [(mime, other) for mime in DRAWN for other in (*DRAWN, "image/gif", "text/plain") if not agrees(other, mime)]


@pytest.mark.parametrize("mime", DRAWN)
def test_every_wrong_label_is_put_right_and_told(mime: str) -> None:
    for other in (other for one, other in PAIRS if one == mime):
        media_sent, screening = screened(spoken(inline(DRAWN[mime], other)))

        assert canonical(media_sent[0]["mimeType"]) == mime
        (found,) = screening.findings
        assert (found.decision.action, found.decision.code) == (Action.RELABEL, "mislabelled")
        assert canonical(other) is not None
        assert f"labelled {canonical(other)}; the bytes are {mime}" in found.decision.reason


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp", "application/pdf"])
@pytest.mark.parametrize("label", ["image/png", "image/jpeg", "image/gif", "application/pdf", "audio/mpeg"])
def test_a_data_uri_with_a_wrong_label_is_put_right(mime: str, label: str) -> None:
    request = answered()
    request["contents"][2]["parts"][0]["functionResponse"]["response"] = {
        "url": f"data:{label};base64,{b64(DRAWN[mime])}"
    }

    assert sent_type(request) == mime


@pytest.mark.parametrize("mime", DRAWN)
def test_an_endpoint_may_refuse_a_wrong_label(mime: str) -> None:
    label = "image/gif" if mime != "image/gif" else "image/png"

    _, screening = screened(spoken(inline(DRAWN[mime], label)), policy=Policy(refuse_mislabelled=True))

    assert [type(error) for error in screening.errors] == [MimeMismatch]


TYPESCRIPT = b"export interface A {\n  b: string;\n}\nexport const c: A = { b: 'd' };\n"
XML = b'<?xml version="1.0"?>\n<page xmlns="http://x"><title>a</title><p>b</p></page>\n'


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (XML, "audio/adpcm"),
        (XML, "audio/x-adp"),
        (TYPESCRIPT, "video/mp2t"),
        (TYPESCRIPT, "text/vnd.trolltech.linguist"),
        (TYPESCRIPT, "video/vnd.dlna.mpeg-tts"),
        (b"MODULE a;\nBEGIN\n  x := 1;\nEND a.\n", "audio/x-mod"),
        (b"function y = f(x)\n  y = x + 1;\nend\n", "application/vnd.mathworks"),
        (b"#include <stdio.h>\nint main() { return 0; }\n", "application/cu-seeme"),
    ],
)
def test_text_whose_extension_means_something_else_is_sent_as_text(data: bytes, declared: str) -> None:
    for backend in BACKENDS:
        for put in (spoken, answered):
            assert sent_type(put(inline(data, declared)), NEW, backend).startswith("text/")


@pytest.mark.parametrize("declared", ["text/plain", "text/x-typescript", "text/vnd.trolltech.linguist", None])
def test_a_transport_stream_whose_extension_means_text_is_a_film(declared: str | None) -> None:
    (pending,) = screened(spoken(inline(media.video(0.5, "mpegts"), declared)))[1].pending

    assert pending.decision.send_as == "video/mp4"


# ---- MIM-017: the lists

LISTS = [
    (model, backend, carrier, placement)
    for model in MODELS
    for backend in BACKENDS
    for carrier in Carrier
    for placement in Placement
]


@pytest.mark.parametrize(("model", "backend", "carrier", "placement"), LISTS)
def test_every_type_on_a_list_is_a_type_and_is_sent_as_itself(
    model: str, backend: Backend, carrier: Carrier, placement: Placement
) -> None:
    accepted = BOOK.for_model(model, backend, DAY).accepted(carrier, placement)

    assert accepted is not None
    for mime in accepted:
        assert re.fullmatch(r"(image|audio|video|text|application)/[a-z0-9][a-z0-9.+-]*", mime)
        assert spelling(mime, accepted) == mime
        assert canonical(mime) is not None
    assert "audio/acc" not in accepted


def test_the_lists_of_the_backends_are_not_the_same() -> None:
    developer, vertex = (BOOK.for_model(NEW, backend, DAY).accepted() or frozenset() for backend in BACKENDS)

    assert {"audio/aiff", "video/avi", "text/csv"} <= developer - vertex
    assert {"audio/x-aac", "audio/mp4", "video/quicktime"} <= vertex - developer


# ---- MIM-018: an error page instead of a medium

PAGES = {
    "html": b"<!DOCTYPE html><html><head><title>404</title></head><body>Not Found</body></html>",
    "html without doctype": b"<html><body><h1>403 Forbidden</h1></body></html>",
    "json": b'{"error": {"code": 404, "message": "not found"}}',
    "xml": b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>',
    "words": b"upstream connect error or disconnect/reset before headers",
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("label", ["image/png", "image/jpeg", "audio/mpeg", "video/mp4", "application/pdf"])
def test_an_error_page_is_never_sent_as_the_medium_it_is_called(page: str, label: str) -> None:
    for backend in BACKENDS:
        for put in (spoken, answered):
            sent = sent_type(put(inline(PAGES[page], label)), NEW, backend)
            assert sent.startswith("text/") or sent == "application/json"

    _, screening = screened(spoken(inline(PAGES[page], label)), policy=Policy(refuse_mislabelled=True))
    (error,) = screening.errors
    assert isinstance(error, MimeMismatch)
    assert label in error.message


def test_an_error_page_behind_a_picture_s_magic_number_is_broken_when_weighed(tmp_path: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n" + PAGES["html"]

    with preflight(tmp_path) as weigher:
        report = weigher.weigh_request(rest_json.parse(spoken(inline(data, "image/png"))).request, Asked(on=DAY))

    assert report.parts[0].error is not None
    assert report.parts[0].error.code == "malformed_media"


# ---- MIM-019, MIM-024, TUL-014: text by other names

TEXTS = {
    "text/markdown": b"# Title\n\nSome *words*.\n\n- one\n- two\n",
    "text/x-markdown": b"Title\n=====\n\nwords\n",
    "application/yaml": b"a: 1\nb:\n  - c\n",
    "text/yaml": b"---\na: 1\n",
    "application/toml": b'[a]\nb = "c"\n',
    "application/x-subrip": b"1\n00:00:01,000 --> 00:00:02,000\nHello\n",
    "text/vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n",
    "application/x-javascript": b"var a = 1;\nfunction b() { return a; }\n",
    "text/x-python": b"import os\n\n\ndef f(a):\n    return a + 1\n",
    "application/x-python": b"import os\nprint(os.name)\n",
    "text/x-java-source": b"class A { public static void main(String[] a) {} }\n",
    "application/x-sh": b"#!/bin/sh\nset -e\necho a\n",
    "application/typescript": TYPESCRIPT,
    "application/sql": b"select a from b where c = 1;\n",
    "application/x-ndjson": b'{"a": 1}\n{"a": 2}\n',
    "text/x-log": b"2026-11-30 12:00:00 INFO started\n",
}


@pytest.mark.parametrize("declared", TEXTS)
@pytest.mark.parametrize("model", MODELS)
def test_text_of_any_kind_is_sent_as_a_text_the_backend_takes(declared: str, model: str) -> None:
    for backend in BACKENDS:
        accepted = BOOK.for_model(model, backend, DAY).accepted() or frozenset()
        (one,) = screened(spoken(inline(TEXTS[declared], declared)), model, backend)[0]
        assert one["mimeType"] in accepted
        assert one["mimeType"] == "text/plain" or backend is Backend.DEVELOPER
        assert base64.b64decode(one["data"]) == TEXTS[declared]


@pytest.mark.parametrize("declared", ["application/csv", "text/csv", "text/x-csv", "application/vnd.ms-excel"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_table_is_text_with_the_same_characters(declared: str, encoding: str) -> None:
    for model in MODELS:
        for backend in BACKENDS:
            for put in (spoken, answered):
                (one,) = screened(put(inline(TABLE.encode(encoding), declared)), model, backend)[0]
                assert one["mimeType"] in {"text/csv", "text/plain"}
                assert base64.b64decode(one["data"]).decode() == TABLE


# ---- MIM-021: the shape of what leaves


@pytest.mark.parametrize("model", [OLD, NEW])
@pytest.mark.parametrize("tool_media", [ToolMedia.FILTER, ToolMedia.RELOCATE])
def test_what_leaves_is_what_the_sdk_reads(model: str, tool_media: ToolMedia) -> None:
    request = answered(inline(DRAWN["audio/wav"], "audio/x-wav"), inline(PNG, "png"), inline(JPEG, "image/png"))
    request["contents"][2]["parts"] += [{"text": "beside"}, inline(WEBP, None)]
    request["contents"] += [
        {"role": "model", "parts": [{"text": "so", "thoughtSignature": "YWJj"}, {"thought": True, "text": "hm"}]},
        {
            "role": "user",
            "parts": [
                {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/a.mp4"}, "videoMetadata": {"fps": 0.5}},
                {"executableCode": {"language": "PYTHON", "code": "1"}},
            ],
        },
    ]
    parsed = rest_json.parse(request)
    screening = screen(parsed.request, BOOK.for_model(model, Backend.DEVELOPER, DAY), Policy(tool_media=tool_media))

    sent = json.loads(rest_json.emit(rewritten(parsed.request, screening), parsed))

    read = [types.Content.model_validate(content) for content in sent["contents"]]
    assert [content.role for content in read] == [content["role"] for content in sent["contents"]]


# ---- MIM-023: the type of a reference

REFERENCES = {
    "a.mp4": "video/mp4",
    "a.MOV": "video/mov",
    "a.webm": "video/webm",
    "a.png": "image/png",
    "a.jpeg": "image/jpeg",
    "a.heic": "image/heic",
    "a.pdf": "application/pdf",
    "a.mp3": "audio/mp3",
    "a.wav": "audio/wav",
    "a.flac": "audio/flac",
    "b/c.d/a.txt": "text/plain",
}


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("declared", [None, "", "application/octet-stream", "own"])
def test_a_reference_without_a_type_gets_the_one_its_name_says(name: str, declared: str | None) -> None:
    label = REFERENCES[name] if declared == "own" else declared
    named = {} if label is None else {"mimeType": label}
    request = spoken({"fileData": {**named, "fileUri": f"gs://bucket/{name}"}})

    sent = sent_type(request, OLD)

    assert canonical(sent) == canonical(REFERENCES[name])
    assert sent in (BOOK.for_model(OLD, Backend.DEVELOPER, DAY).accepted() or ())


def test_a_reference_whose_name_says_nothing_is_left_as_it_is() -> None:
    for uri in ("gs://bucket/abc", "https://generativelanguage.googleapis.com/v1beta/files/abc-1"):
        request = spoken({"fileData": {"fileUri": uri}})

        assert screened(request)[0] == [{"fileUri": uri}]
