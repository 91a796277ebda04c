"""A container's name is a hint; its tracks decide between film and sound."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from weighlock.mime import Flag, Window, sniff
from weighlock.request import Modality

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("container", "picture", "sound", "mime"),
    [
        ("mp4", "libx264", "aac", "video/mp4"),
        ("mp4", None, "aac", "audio/mp4"),
        ("ipod", None, "aac", "audio/mp4"),
        ("mov", "libx264", "aac", "video/quicktime"),
        ("mov", None, "aac", "audio/mp4"),
        ("3gp", "mpeg4", "aac", "video/3gpp"),
        ("3gp", None, "aac", "audio/3gpp"),
        ("3g2", "mpeg4", None, "video/3gpp2"),
        ("webm", "libvpx", None, "video/webm"),
        ("webm", None, "libopus", "audio/webm"),
        ("matroska", "libx264", "aac", "video/x-matroska"),
        ("matroska", None, "flac", "audio/x-matroska"),
        ("ogg", None, "libopus", "audio/ogg"),
        ("ogg", None, "flac", "audio/ogg"),
        ("avi", "mpeg4", "libmp3lame", "video/x-msvideo"),
        ("asf", "wmv2", None, "video/x-ms-wmv"),
        ("asf", None, "libmp3lame", "audio/x-ms-wma"),
        ("mpegts", "libx264", "aac", "video/mp2t"),
        ("mpegts", None, "aac", "audio/mp2t"),
        ("mpegts", None, "libopus", "audio/mp2t"),
        ("mpeg", "mpeg2video", "mp2", "video/mpeg"),
        ("flv", "flv", "aac", "video/x-flv"),
        ("wav", None, "pcm_s16le", "audio/wav"),
        ("w64", None, "pcm_s16le", "audio/x-w64"),
        ("aiff", None, "pcm_s16be", "audio/aiff"),
        ("au", None, "pcm_s16be", "audio/basic"),
        ("caf", None, "pcm_s16be", "audio/x-caf"),
        ("wv", None, "wavpack", "audio/x-wavpack"),
        ("tta", None, "tta", "audio/x-tta"),
    ],
)
def test_the_tracks_decide(
    mux: Callable[..., bytes], container: str, picture: str | None, sound: str | None, mime: str
) -> None:
    sniffed = sniff(mux(container, picture=picture, sound=sound))

    assert sniffed.mime == mime
    assert sniffed.modality is (Modality.VIDEO if mime.startswith("video/") else Modality.AUDIO)
    assert sniffed.certain


@pytest.mark.parametrize(("container", "sound"), [("avi", "libmp3lame"), ("flv", "aac"), ("mpeg", "mp2")])
def test_sound_in_a_container_named_for_films_is_sound(mux: Callable[..., bytes], container: str, sound: str) -> None:
    sniffed = sniff(mux(container, sound=sound))

    assert sniffed.modality is Modality.AUDIO
    assert Flag.NO_PICTURE in sniffed.flags


def test_blu_ray_packets_of_192_bytes_are_a_transport_stream(mux: Callable[..., bytes]) -> None:
    plain = mux("mpegts", picture="libx264")
    stamped = b"".join(bytes(4) + plain[at : at + 188] for at in range(0, len(plain), 188))

    assert sniff(stamped).mime == "video/mp2t"


def test_a_transport_stream_cut_inside_a_packet_is_still_one(mux: Callable[..., bytes]) -> None:
    sniffed = sniff(mux("mpegts", picture="libx264", sound="aac")[100:])

    assert sniffed.mime == "video/mp2t"
    assert Flag.LEADING_BYTES in sniffed.flags


def test_a_fragmented_recording_is_told_by_its_first_moov(mux: Callable[..., bytes]) -> None:
    fragmented = mux("mp4", sound="aac", movflags="frag_keyframe+empty_moov")

    assert sniff(fragmented).mime == "audio/mp4"


def test_a_moov_at_the_end_of_a_large_file_is_found_with_few_reads(mux: Callable[..., bytes]) -> None:
    small = mux("mp4", sound="aac")
    header, rest = small[: small.index(b"mdat") - 4], small[small.index(b"moov") - 4 :]
    filler = 3 << 30
    head = header + struct.pack(">I4sQ", 1, b"mdat", 16 + filler)
    reads: list[tuple[int, int]] = []

    def read_at(offset: int, n: int) -> bytes:
        reads.append((offset, n))
        start = offset - len(head) - filler
        return rest[start : start + n] if start >= 0 else bytes(n)

    sniffed = sniff(Window(head + bytes(4096 - len(head)), len(head) + filler + len(rest), read_at))

    assert sniffed.mime == "audio/mp4"
    assert len(reads) <= 2
    assert sum(n for _, n in reads) <= 8192


def box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return struct.pack(">I", len(body) + 8) + kind + body


def track(number: int, kind: bytes, *more: bytes) -> bytes:
    tkhd = box(b"tkhd", bytes(12), struct.pack(">I", number), bytes(68))
    return box(b"trak", tkhd, *more, box(b"mdia", box(b"hdlr", bytes(8), kind, bytes(13))))


def test_chapter_pictures_of_an_audiobook_are_no_film() -> None:
    chapters = box(b"tref", box(b"chap", struct.pack(">I", 2)))
    book = box(b"ftyp", b"M4B ", bytes(4)) + box(b"moov", track(1, b"soun", chapters), track(2, b"vide"))

    assert sniff(book).mime == "audio/mp4"


def test_an_old_quicktime_file_needs_no_brand() -> None:
    film = box(b"wide") + box(b"mdat", bytes(40)) + box(b"moov", track(1, b"vide"))

    assert sniff(film).mime == "video/quicktime"


@pytest.mark.parametrize(("brand", "mime"), [(b"M4A ", "audio/mp4"), (b"isom", "video/mp4"), (b"3gp4", "video/3gpp")])
def test_a_brand_without_tracks_is_a_guess(brand: bytes, mime: str) -> None:
    sniffed = sniff(box(b"ftyp", brand, bytes(4)))

    assert (sniffed.mime, sniffed.certain) == (mime, False)
    assert Flag.HEADER_ONLY_GUESS in sniffed.flags


def test_an_mp4_cut_inside_its_data_is_said_to_be_cut(mux: Callable[..., bytes]) -> None:
    whole = mux("mp4", picture="libx264", sound="aac")

    sniffed = sniff(whole[: whole.index(b"moov") - 100])

    assert sniffed.mime == "video/mp4"
    assert set(sniffed.flags) == {Flag.TRUNCATED, Flag.HEADER_ONLY_GUESS}


def test_a_live_webm_of_unknown_sizes_is_read(mux: Callable[..., bytes]) -> None:
    assert sniff(mux("webm", sound="libopus", live="1")).mime == "audio/webm"


def test_a_telegram_voice_note_is_audio_and_an_unknown_ogg_is_nothing(mux: Callable[..., bytes]) -> None:
    voice = mux("ogg", sound="libopus")
    unknown = voice.replace(b"OpusHead", b"NoBodyIs")

    assert sniff(voice).mime == "audio/ogg"
    assert (sniff(unknown).mime, sniff(unknown).modality) == ("application/ogg", None)


def ogg_page(packet: bytes, serial: int, first: bool = True) -> bytes:
    return struct.pack("<4sBBqIIIBB", b"OggS", 0, 2 if first else 0, 0, serial, 0, 0, 1, len(packet)) + packet


def test_a_picture_announced_on_the_second_page_makes_an_ogg_a_film() -> None:
    both = ogg_page(b"\x01vorbis" + bytes(23), 1) + ogg_page(b"\x80theora" + bytes(35), 2)

    assert sniff(both).mime == "video/ogg"


def test_a_theora_stream_that_is_not_announced_does_not_count() -> None:
    assert sniff(ogg_page(b"\x01vorbis" + bytes(23), 1) + ogg_page(b"\x80theora", 2, first=False)).mime == "audio/ogg"


@pytest.mark.parametrize("form", [b"RF64", b"BW64", b"RIFX"])
def test_large_and_big_endian_wav_files_are_wav(form: bytes) -> None:
    assert sniff(form + b"\xff\xff\xff\xffWAVEds64" + bytes(64)).mime == "audio/wav"
