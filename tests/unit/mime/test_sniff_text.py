"""Text is told from binary, decoded, and given the flavour its bytes show."""

from __future__ import annotations

import codecs
import json
import random

import pytest

from weighlock.mime import Flag, Window, refine_text, sniff
from weighlock.mime.textual import decode
from weighlock.request import Modality

PROSE = "Ein Bär, zwei Bären; drei größere Bären gingen spazieren.\nDann kam der Regen.\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "cp1252"]
)
def test_prose_is_text_in_any_encoding(encoding: str) -> None:
    raw = PROSE.encode(encoding)
    if encoding == "utf-32-be":
        raw = codecs.BOM_UTF32_BE + raw

    sniffed = sniff(raw)

    assert (sniffed.mime, sniffed.modality) == ("text/plain", Modality.TEXT)
    assert sniffed.certain is (encoding != "cp1252")


@pytest.mark.parametrize("encoding", ["shift_jis", "gbk", "koi8-r", "big5"])
def test_legacy_scripts_are_text_of_a_guessed_encoding(encoding: str) -> None:
    sample = {"shift_jis": "こんにちは、世界。", "gbk": "你好，世界。", "koi8-r": "Привет, мир. ", "big5": "你好世界"}
    sniffed = sniff((sample[encoding] * 20).encode(encoding))

    assert sniffed.modality is Modality.TEXT
    assert Flag.ENCODING_GUESSED in sniffed.flags


@pytest.mark.parametrize("shift", range(4))
def test_a_character_cut_at_the_end_of_the_window_is_no_error(shift: int) -> None:
    raw = b"x" * shift + "€".encode() * 4000

    sniffed = sniff(Window(raw[:8192], len(raw)))

    assert (sniffed.mime, sniffed.certain) == ("text/plain", True)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_spreadsheet_export_is_a_table_in_its_own_encoding(encoding: str) -> None:
    assert sniff("Größe;Höhe;Länge\r\n1;2;3\r\n4;5;6\r\n".encode(encoding)).mime == "text/csv"


def test_a_zero_byte_makes_binary() -> None:
    assert sniff(b"some text\0and more text\n" * 20).modality is None


def test_a_stray_control_character_does_not_make_binary_of_a_log() -> None:
    assert sniff(b"a long line of words, and then \x01 a mark\n" * 20).modality is None
    assert sniff(b"a long line of words without any mark, and then another\n" * 20 + b"\x01\n").mime == "text/plain"


@pytest.mark.parametrize("size", [40, 400, 4096, 100_000])
def test_noise_is_nothing(size: int) -> None:
    sniffed = sniff(random.Random(size).randbytes(size))

    assert (sniffed.mime, sniffed.modality, sniffed.certain) == ("application/octet-stream", None, False)


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        [1, -2.5e3, True, None, 'a "quoted" \\ word'],
        {"a": {"b": [[], {}, [{}]]}, "ü": "→"},
        [{"name": f"row {n}", "values": list(range(n % 7))} for n in range(500)],
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_told_even_from_its_first_part(value: object, indent: int | None) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=False).encode()

    assert sniff(raw).mime == "application/json"
    assert sniff(Window(raw[:4096], len(raw))).mime == "application/json"


@pytest.mark.parametrize("cut", range(20, 60))
def test_json_cut_anywhere_is_json_and_said_to_be_cut(cut: int) -> None:
    raw = json.dumps({"key": 'a \\ " string', "list": [1, 2.5, True, None], "more": {"x": "y"}}).encode()

    sniffed = sniff(raw[:cut])

    assert (sniffed.mime, sniffed.flags) == ("application/json", (Flag.TRUNCATED,))


@pytest.mark.parametrize(
    "not_json",
    [
        "[section]\nkey = value\n",
        "{ color: red; }\n",
        "{foo: 1}\n",
        "[1] A reference\n[2] Another\n",
        "{{ template }}\n",
        '{"a": 1,}\n',
        "{\\foo bar}\n",
        "[link](https://example.org)\n",
        '{"a" 1}\n',
        "{]\n",
    ],
)
def test_what_only_begins_like_json_is_plain_text(not_json: str) -> None:
    assert sniff(not_json.encode()).mime == "text/plain"


def test_long_json_is_not_taken_for_cut_json() -> None:
    assert sniff(json.dumps(list(range(700))).encode()).flags == ()


def test_very_deep_json_is_told_without_recursion() -> None:
    assert sniff(b"[" * 5000 + b"]" * 5000).mime == "application/json"


def test_one_value_a_line_is_json_lines() -> None:
    assert sniff(b'{"a": 1}\n{"a": 2}\n').mime == "application/x-ndjson"


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        ("<!DOCTYPE html>\n<html><body>x</body></html>", "text/html"),
        ("<!-- a note --><HTML><head></head></HTML>", "text/html"),
        ("<p>Hello <b>you</b></p>", "text/html"),
        ('<?xml version="1.0"?><note><to>you</to></note>', "text/xml"),
        ('<?xml version="1.0"?><!DOCTYPE note [<!ENTITY a "b">]><note/>', "text/xml"),
        ("<note><to>you</to></note>", "text/xml"),
        ("<?php echo 1; ?>", "text/plain"),
        ("<john@example.org> wrote:\n", "text/plain"),
        ("<3 this\n", "text/plain"),
        ("a,b,c\n1,2,3\n4,5,6\n", "text/csv"),
        ('name;"a;b";x\n1;2;3\n4;5;6\n', "text/csv"),
        ("a\tb\n1\t2\n3\t4\n", "text/tab-separated-values"),
        ("Well, yes.\nNo, no.\nSo, so.\nOh, my.\nAh, well.\n", "text/plain"),
        ("int a;\nint b;\nint c;\nint d;\nint e;\n", "text/plain"),
        ("WEBVTT\n\n00:00.000 --> 00:01.000\nHi\n", "text/vtt"),
        ("WEBVTTX\n", "text/plain"),
        ("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n", "text/calendar"),
        ("{\\rtf1\\ansi hello}", "text/rtf"),
        ("# Title\n\nSome *text*.\n", "text/plain"),
        ("#include <stdio.h>\nint main(void) { return 0; }\n", "text/plain"),
        ("const x: number = 1;\nexport default x;\n", "text/plain"),
        ("#EXTM3U\n#EXTINF:10,\nhttp://example.org/a.ts\n", "text/plain"),
        ("ffconcat version 1.0\nfile 'other.mp4'\n", "text/plain"),
        ("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\n", "text/plain"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_flavours_of_text(content: str, mime: str, encoding: str) -> None:
    assert sniff(content.encode(encoding)).mime == mime


@pytest.mark.parametrize(
    "words",
    [
        "BM is short for something, and so is MZ.",
        "GIF89a is the name of an image format.",
        "RIFF and OggS are containers, FORM another.",
        "PK was the nickname of Phil Katz, they say.",
        "II* is no Roman number, MM is.",
        "The moov atom is found at the end of files.",
        "P1 is the first of several priorities here.",
        "MAC addresses are written in hexadecimal.",
        "G is a letter; Gee is how it is pronounced.",
        "fLaC fLaC fLaC, said the duck to the drake.",
        "ID3 tags were invented by Eric Kemp in 1996.",
        "V is for vendetta, or so the story goes on.",
    ],
)
def test_a_word_that_looks_like_a_magic_number_is_a_word(words: str) -> None:
    assert sniff(words.encode()).mime == "text/plain"


@pytest.mark.parametrize(
    ("file_name", "content", "mime"),
    [
        ("notes.md", "# Title\n\ntext\n", "text/markdown"),
        ("NOTES.MD", "# Title\n\ntext\n", "text/markdown"),
        ("list.csv", "only one column\n", "text/csv"),
        ("page.html", "Just a fragment\n", "text/html"),
        ("log.jsonl", '{"a": 1}\n', "application/x-ndjson"),
        ("a.py", "import os\n", "text/plain"),
        ("a.js", "let x = 1;\n", "text/plain"),
        ("a.yaml", "a: 1\n", "text/plain"),
        ("a.toml", "a = 1\n", "text/plain"),
        ("a.srt", "1\n00:00:00,000 --> 00:00:01,000\nHi\n", "text/plain"),
        ("example.cu", "__global__ void f(int *x) { }\n", "text/plain"),
        ("a.ts", "const x: number = 1;\n", "text/plain"),
        ("a.mp4", "this is no film\n", "text/plain"),
        ("test.adp", '<?xml version="1.0"?><x/>', "text/xml"),
        ("x.png", "<html><body>404</body></html>", "text/html"),
        ("README", "read me\n", "text/plain"),
    ],
)
def test_a_file_name_may_refine_text_and_nothing_else(file_name: str, content: str, mime: str) -> None:
    assert refine_text(sniff(content.encode()).mime, file_name) == mime


def test_a_file_name_never_makes_text_of_binary() -> None:
    assert refine_text("image/png", "picture.md") == "image/png"
    assert refine_text("application/octet-stream", "data.csv") == "application/octet-stream"


def test_the_encoding_is_told_with_the_text() -> None:
    utf16 = decode("a,ü\n".encode("utf-16"))
    legacy = decode("caf\xe9 au lait, caf\xe9 noir".encode("cp1252"))

    assert utf16 is not None
    assert (utf16.text, utf16.encoding, utf16.is_guess) == ("a,ü\n", "utf-16-le", False)
    assert legacy is not None
    assert (legacy.encoding, legacy.is_guess) == ("cp1252", True)
