"""Packets that say themselves how much sound they hold."""

from __future__ import annotations

import io

import av
import pytest

import media
from weighlock.codecs.packets import HEAD_BYTES, flac_s, measure_of, opus_s

OPUS_MS = [10, 20, 40, 60] * 3 + [10, 20] * 2 + [2.5, 5, 10, 20] * 4
"""By configuration, as the table of RFC 6716 lists them."""


@pytest.mark.parametrize("config", range(32))
def test_an_opus_packet_of_every_configuration(config: int) -> None:
    one_s = OPUS_MS[config] / 1000

    assert opus_s(bytes([config << 3])) == one_s
    assert opus_s(bytes([config << 3 | 1])) == opus_s(bytes([config << 3 | 2])) == 2 * one_s
    assert opus_s(bytes([config << 3 | 3, 0x80 | 2])) == 2 * one_s


def test_an_opus_packet_never_lasts_longer_than_the_format_allows() -> None:
    assert opus_s(bytes([3 << 3 | 3, 63])) == 0.12


@pytest.mark.parametrize("head", [b"", b"\x03"])
def test_an_opus_packet_cut_short_says_nothing(head: bytes) -> None:
    assert opus_s(head) == 0.0


@pytest.mark.parametrize("codec", ["libopus", "flac", "alac", "pcm_s16le", "pcm_s24le", "pcm_f64le"])
@pytest.mark.parametrize("rate", [8000, 48000])
def test_packets_of_every_such_codec_add_up_to_the_sound(codec: str, rate: int) -> None:
    total = 0.0
    with av.open(io.BytesIO(media.sound(3.0, codec, "matroska", rate=rate, layout="stereo")), "r") as container:
        measure = measure_of(container.streams.audio[0])
        assert measure is not None
        for packet in container.demux():
            total += measure(bytes(packet)[:HEAD_BYTES], packet.size) if packet.size else 0.0

    assert total == pytest.approx(3.0, abs=4096 / rate)  # the last packet may be padded


@pytest.mark.parametrize("size", [192, 576, 1000, 200, 4096, 4608, 65535])
def test_a_flac_frame_of_every_kind_of_block_size(size: int) -> None:
    data = media.sound(2.0, "flac", "flac", options={"frame_size": str(size)} if size >= 1000 else None)
    with av.open(io.BytesIO(data), "r") as container:
        heads = [(bytes(packet)[:HEAD_BYTES], packet.duration or 0) for packet in container.demux() if packet.size]

    assert [flac_s(head, 44100) for head, _ in heads] == pytest.approx([lasts / 44100 for _, lasts in heads])


@pytest.mark.parametrize(
    ("code", "extra", "samples"),
    [(1, b"", 192), (2, b"", 576), (5, b"", 4608), (6, b"\xc7", 200), (7, b"\x03\xe7", 1000)],
)
def test_a_flac_block_size_by_its_code(code: int, extra: bytes, samples: int) -> None:
    head = b"\xff\xf8" + bytes([code << 4 | 9, 0x08, 0x05]) + extra

    assert flac_s(head + b"\0\0", 0) == pytest.approx(samples / 44100)


@pytest.mark.parametrize("head", [b"", b"fLaC\0\0\0\x22", b"\xff\xf8", b"\xff\xf8\xc0\x08\0\0\0"])
def test_what_is_no_flac_frame_of_known_rate_says_nothing(head: bytes) -> None:
    assert flac_s(head, 0) == 0.0
