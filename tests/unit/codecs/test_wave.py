"""A WAV is as long as the most anything in its header makes of its bytes."""

from __future__ import annotations

import mmap
import struct

import pytest

import media
from weighlock.codecs import descriptor_of
from weighlock.codecs.streams import Evidence, mismatch
from weighlock.codecs.wave import check_packed, wave
from weighlock.errors import MalformedMedia

TWENTY = media.wav(20)
"""20 s at 8 kHz, 16 bits, one channel: 320,000 bytes."""


def read(data: bytes) -> Evidence | None:
    with descriptor_of(data) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        return wave(view)


def read_plain(data: bytes) -> Evidence:
    found = read(data)
    assert found is not None
    return found


@pytest.mark.parametrize("block", [1, 3, 4, 200, 1000, 65535])
def test_a_wrong_block_size_never_shortens_a_wave(block: int) -> None:
    found = read_plain(media.with_wave_format(TWENTY, block=block))

    assert found.span_s == 20.0
    assert found.high_s == max(20.0, 40.0 / block)
    assert mismatch(found.span_s, found.claims)


def test_a_block_size_of_nothing_says_nothing() -> None:
    found = read_plain(media.with_wave_format(TWENTY, block=0))

    assert (found.span_s, found.high_s) == (20.0, 20.0)


@pytest.mark.parametrize(
    ("fields", "decoded_s"),
    [({"bits": 8}, 40.0), ({"bits": 32}, 10.0), ({"tag": 6}, 40.0), ({"tag": 7}, 40.0), ({"channels": 100}, 0.2)],
    ids=str,
)
def test_a_sample_s_width_is_what_a_decoder_goes_by(fields: dict[str, int], decoded_s: float) -> None:
    found = read_plain(media.with_wave_format(TWENTY, **fields))

    assert found.span_s == pytest.approx(decoded_s)
    assert found.high_s == max(20.0, decoded_s)
    assert mismatch(found.span_s, found.claims)


@pytest.mark.parametrize("byte_rate", [8_000, 1_600, 160_000, 0xFFFFFFFF])
def test_a_wrong_byte_rate_is_told_and_never_shortens(byte_rate: int) -> None:
    found = read_plain(media.with_wave_format(TWENTY, byte_rate=byte_rate))

    assert found.high_s == max(20.0, 320_000 / byte_rate)
    assert mismatch(found.span_s, found.claims)


@pytest.mark.parametrize("byte_rate", [0, 1, 999])
def test_less_than_a_bit_a_sample_is_no_byte_rate(byte_rate: int) -> None:
    assert read_plain(media.with_wave_format(TWENTY, byte_rate=byte_rate)).high_s == 20.0


def test_a_rate_no_converter_has_is_refused_rather_than_believed() -> None:
    with pytest.raises(MalformedMedia, match="320,000 bytes") as caught:
        read(media.with_wave_format(TWENTY, rate=0x7FFFFFFF, byte_rate=0xFFFFFFFF))

    assert caught.value.figures["payload_bytes"] == 320_000


@pytest.mark.parametrize("fields", [{"tag": 2}, {"tag": 0x11}, {"tag": 0x55}, {"bits": 0}, {"channels": 0}], ids=str)
def test_samples_of_unknown_width_are_left_to_the_packets(fields: dict[str, int]) -> None:
    assert read(media.with_wave_format(TWENTY, **fields)) is None


def test_packets_of_a_compressed_wave_are_held_against_its_byte_rate() -> None:
    found = Evidence(end_s=0.026)
    data = media.with_wave_format(TWENTY, tag=0x55)
    with descriptor_of(data) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        check_packed(view, found)

    assert found.high_s == 20.0


def test_every_data_chunk_is_sound() -> None:
    more = b"LIST" + struct.pack("<I", 4) + b"INFO" + b"data" + struct.pack("<I", 160_000) + bytes(160_000)

    assert read_plain(media.wav(1, tail=more)).span_s == 11.0


def test_a_second_format_is_a_claim() -> None:
    other = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 2, 192_000, 768_000, 4, 16)
    at = TWENTY.index(b"fmt ")

    assert read_plain(TWENTY[:at] + other + TWENTY[at:]).high_s == 20.0


@pytest.mark.parametrize("behind", [bytes(304_000), b"\xff\x7f" * 152_000, b"abcd" * 76_000], ids=["0", "loud", "text"])
def test_whatever_lies_behind_a_short_data_chunk_is_a_claim_unless_it_is_a_chunk(behind: bytes) -> None:
    found = read_plain(media.wav(1, tail=behind))

    assert (found.span_s, found.high_s) == (1.0, 20.0)


@pytest.mark.parametrize("size", [16, 18, 40])
def test_an_extensible_format_is_what_its_extension_says(size: int) -> None:
    inner = struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16000, 2, 16) + struct.pack("<HHIH", 22, 16, 4, 6) + bytes(14)
    data = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", size) + inner[:size]
    data += b"data" + struct.pack("<I", 160_000) + bytes(160_000)

    assert read_plain(data).span_s == (20.0 if size == 40 else 10.0)  # A-law, by its extension; else plain integers
