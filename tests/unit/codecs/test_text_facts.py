"""Counting characters: encodings told apart, memory bounded."""

from __future__ import annotations

import codecs
import os
import tracemalloc

import pytest

from weighlock.codecs import descriptor_of, text_facts
from weighlock.errors import MalformedMedia
from weighlock.media.facts import TextFacts


def facts_of(data: bytes, encoding: str | None = None) -> TextFacts:
    with descriptor_of(data) as fd:
        return text_facts(fd, size_bytes=len(data), encoding=encoding)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"abc", ("utf-8", 3, 0)),
        ("naïve €".encode(), ("utf-8", 7, 2)),
        ("😀".encode(), ("utf-8", 1, 1)),
        (codecs.BOM_UTF8 + b"abc", ("utf-8", 3, 0)),
        (codecs.BOM_UTF16_LE + "añb".encode("utf-16-le"), ("utf-16-le", 3, 1)),
        (codecs.BOM_UTF16_BE + "ab😀".encode("utf-16-be"), ("utf-16-be", 3, 1)),
        (codecs.BOM_UTF32_LE + "ab".encode("utf-32-le"), ("utf-32-le", 2, 0)),
        ("plain words".encode("utf-16-le"), ("utf-16-le", 11, 0)),
        ("plain words".encode("utf-16-be"), ("utf-16-be", 11, 0)),
        ("caf\xe9 \x93x\x94".encode("latin-1"), ("cp1252", 8, 3)),
    ],
)
def test_the_encoding_is_found_and_code_points_are_counted(data: bytes, expected: tuple[str, int, int]) -> None:
    facts = facts_of(data)

    assert (facts.encoding, facts.chars, facts.non_ascii_chars) == expected


def test_a_character_split_between_two_reads_counts_once() -> None:
    data = b"a" * (256 * 1024 - 1) + "€".encode() + b"b"

    assert facts_of(data).chars == 256 * 1024 + 1


def test_a_declared_encoding_is_used_and_refused_when_the_bytes_are_not_in_it() -> None:
    assert facts_of("данные".encode("koi8-r"), "koi8-r").chars == 6
    with pytest.raises(MalformedMedia, match="not utf-8 text"):
        facts_of(b"\xff\xfa", "utf-8")
    with pytest.raises(MalformedMedia, match="unknown text encoding"):
        facts_of(b"abc", "klingon")


def test_utf16_that_ends_in_half_a_character_is_malformed() -> None:
    with pytest.raises(MalformedMedia):
        facts_of(codecs.BOM_UTF16_LE + b"a\0b")


def test_an_empty_text_is_malformed() -> None:
    with pytest.raises(MalformedMedia, match="empty"):
        facts_of(b"")


def test_the_reading_position_is_left_alone() -> None:
    with descriptor_of(b"abcdef") as fd:
        os.lseek(fd, 2, os.SEEK_SET)
        text_facts(fd, size_bytes=6)

        assert os.lseek(fd, 0, os.SEEK_CUR) == 2


def test_memory_does_not_grow_with_the_text() -> None:
    with descriptor_of("é".encode() * 8_000_000) as fd:
        tracemalloc.start()
        facts = text_facts(fd, size_bytes=16_000_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert facts.chars == facts.non_ascii_chars == 8_000_000
    assert peak < 4_000_000
