"""Metadata taken out: it is gone from the raw bytes, and what is decoded is what was decoded before."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import time
import zlib
from collections.abc import Callable
from typing import Any

import av
import pikepdf
import pypdfium2
import pytest
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

import media
from making import make_here
from weighlock.codecs import strip
from weighlock.codecs.outcome import Outcome
from weighlock.errors import InputError, MalformedMedia, UnsupportedMedia
from weighlock.media.work import AudioWork, StripWork

SECRETS = (b"Mustermann", b"+52.52", b"SecretCam", b"GPSLatitude")
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><exif:GPSLatitude>52,31N Mustermann</exif:GPSLatitude></x:xmpmeta>"
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def stripped(data: bytes, mime: str) -> tuple[bytes, Outcome]:
    out = io.BytesIO()
    outcome = strip.make(io.BytesIO(data), out, StripWork(), mime)
    return out.getvalue(), outcome


def telling_exif(orientation: int = 1) -> bytes:
    """Camera, author, place and a preview."""
    exif = Image.Exif()
    exif[0x010F], exif[0x013B] = "SecretCam", "Erika Mustermann"
    if orientation != 1:
        exif[0x0112] = orientation
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 18.0)})
    return exif.tobytes()


def noise(size: tuple[int, int] = (64, 48), mode: str = "RGB") -> Image.Image:
    return Image.frombytes(mode, size, random.Random(2).randbytes(size[0] * size[1] * len(mode)))


def pixels(data: bytes) -> list[bytes]:
    """Every frame as decoded, not turned."""
    with Image.open(io.BytesIO(data)) as image:
        frames = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            frames.append(image.convert("RGBA").tobytes())
        return frames


def orientation(data: bytes) -> int:
    with Image.open(io.BytesIO(data)) as image:
        return int(image.getexif().get(0x0112, 1))


def heard(data: bytes) -> tuple[bytes, int]:
    """All samples as decoded, and their rate."""
    with av.open(io.BytesIO(data), "r") as container:
        stream = container.streams.audio[0]
        return b"".join(bytes(p) for frame in container.decode(stream) for p in frame.planes), stream.rate or 0


def seen(data: bytes) -> list[tuple[int | None, bytes]]:
    with av.open(io.BytesIO(data), "r") as container:
        return [(frame.pts, bytes(frame.planes[0])) for frame in container.decode(video=0)]


def assert_clean(data: bytes) -> None:
    assert not [secret for secret in SECRETS if secret in data]


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


# -- JPEG -------------------------------------------------------------------------------------------------------------


def telling_jpeg(turned: int = 1, **options: Any) -> bytes:
    drawn = io.BytesIO()
    noise().save(drawn, "JPEG", exif=telling_exif(turned), icc_profile=SRGB, comment=b"by Mustermann", **options)
    data, tell = drawn.getvalue(), b""
    tell += segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP)
    tell += segment(0xED, b"Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x0f\x1c\x02\x50\0\x0aMustermann\0")
    tell += segment(0xE0, b"JFXX\0\x10 preview of Mustermann") + segment(0xEC, b"Ducky Mustermann")
    return data[:2] + tell + data[2:]


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 2}, {"optimize": True}])
@pytest.mark.parametrize("turned", range(1, 9))
def test_a_jpeg_keeps_its_pixels_profile_and_orientation_only(turned: int, options: dict[str, Any]) -> None:
    data = telling_jpeg(turned, **options)
    assert all(secret in data for secret in (b"Mustermann", b"SecretCam", b"GPSLatitude"))

    clean, outcome = stripped(data, "image/jpeg")

    assert_clean(clean)
    assert clean[clean.index(b"\xff\xda") :] == data[data.index(b"\xff\xda") :], "compressed data as they were"
    assert pixels(clean) == pixels(data)
    assert orientation(clean) == turned
    with Image.open(io.BytesIO(clean)) as image:
        assert image.info["icc_profile"] == SRGB
        assert dict(image.getexif()) == ({} if turned == 1 else {0x0112: turned})
        assert "jfif" in image.info
        assert "comment" not in image.info
    assert outcome.notes == ()


def test_an_adobe_jpeg_keeps_the_segment_its_colours_need() -> None:
    drawn = io.BytesIO()
    noise(mode="CMYK").save(drawn, "JPEG", exif=telling_exif())

    clean, _ = stripped(drawn.getvalue(), "image/jpeg")

    assert b"Adobe" in clean
    assert pixels(clean) == pixels(drawn.getvalue())


def test_a_picture_hidden_behind_a_jpeg_goes_with_its_place() -> None:
    second = io.BytesIO()
    noise().save(second, "JPEG", exif=telling_exif())
    data = media.multi_picture((64, 48)) + second.getvalue()

    clean, outcome = stripped(data, "image/jpeg")

    assert_clean(clean)
    assert clean.count(b"\xff\xd8\xff") == 1
    assert "behind the picture were left out" in outcome.notes[0]
    with Image.open(io.BytesIO(clean)) as image:
        assert image.format == "JPEG"


def test_a_comment_between_two_scans_goes_too() -> None:
    data = telling_jpeg(progressive=True)
    second = data.index(b"\xff\xc4", data.index(b"\xff\xda"))
    data = data[:second] + segment(0xFE, b"Mustermann") + data[second:]

    clean, _ = stripped(data, "image/jpeg")

    assert_clean(clean)
    assert pixels(clean) == pixels(data)


def test_half_a_jpeg_keeps_what_there_is_and_says_so() -> None:
    data = telling_jpeg(6)
    half = data[: len(data) - 1500]

    clean, outcome = stripped(half, "image/jpeg")

    assert_clean(clean)
    assert outcome.notes == ("it is cut off; what there is of the picture stayed",)
    assert clean.endswith(half[half.index(b"\xff\xda") :])


# -- PNG, WebP, GIF ---------------------------------------------------------------------------------------------------


def telling_png(turned: int = 1, **options: Any) -> bytes:
    words = PngInfo()
    words.add_text("Author", "Mustermann")
    words.add_text("Comment", "Mustermann " * 9, zip=True)
    words.add_itxt("XML:com.adobe.xmp", XMP.decode())
    drawn = io.BytesIO()
    noise().save(drawn, "PNG", pnginfo=words, exif=telling_exif(turned), icc_profile=SRGB, dpi=(144, 144), **options)
    data = drawn.getvalue()
    return data[:33] + media.png_chunk(b"tIME", bytes(7)) + media.png_chunk(b"caBX", b"Mustermann") + data[33:] + XMP


@pytest.mark.parametrize("turned", range(1, 9))
def test_a_png_keeps_its_pixels_profile_and_orientation_only(turned: int) -> None:
    data = telling_png(turned)

    clean, outcome = stripped(data, "image/png")

    assert_clean(clean)
    assert not [kind for kind in (b"tEXt", b"zTXt", b"iTXt", b"tIME", b"caBX") if kind in clean]
    assert pixels(clean) == pixels(data)
    assert orientation(clean) == turned
    with Image.open(io.BytesIO(clean)) as image:
        assert image.info["icc_profile"] == SRGB
        assert image.info["dpi"] == pytest.approx((144, 144), abs=0.1)
    assert "behind the picture" in outcome.notes[0]


def test_an_animated_png_keeps_its_frames() -> None:
    data = telling_png(save_all=True, append_images=[noise().rotate(90), noise().rotate(180)], duration=70)

    assert pixels(stripped(data, "image/png")[0]) == pixels(data)
    assert len(pixels(data)) == 3


@pytest.mark.parametrize("turned", [1, 6])
@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"icc_profile": SRGB}, {"animated": True}])
def test_a_webp_keeps_its_pixels_profile_and_orientation_only(options: dict[str, Any], turned: int) -> None:
    more = {"save_all": True, "append_images": [noise().rotate(90)]} if options.get("animated") else options
    drawn = io.BytesIO()
    noise().save(drawn, "WEBP", exif=telling_exif(turned), xmp=XMP, **more)
    data = drawn.getvalue()

    clean, _ = stripped(data, "image/webp")

    assert_clean(clean)
    assert int.from_bytes(clean[4:8], "little") == len(clean) - 8
    assert clean[20] & 0x0C == (0x08 if turned != 1 else 0)
    assert pixels(clean) == pixels(data)
    assert orientation(clean) == turned
    with Image.open(io.BytesIO(clean)) as image:
        assert ("icc_profile" in image.info) == ("icc_profile" in options)
        assert "xmp" not in image.info


def test_a_gif_keeps_its_frames_and_rounds_only() -> None:
    drawn = io.BytesIO()
    frames = [noise().quantize(16), noise().rotate(90).quantize(16)]
    frames[0].save(
        drawn, "GIF", save_all=True, append_images=frames[1:], loop=3, duration=[50, 90], comment=b"Mustermann"
    )
    xmp = b"\x21\xff\x0bXMP DataXMP" + XMP + b"\1" + bytes(range(255, -1, -1)) + b"\0"
    data = drawn.getvalue()
    at = data.index(b"\x21\xff\x0bNETSCAPE")
    data = data[:at] + xmp + data[at:]

    clean, _ = stripped(data, "image/gif")

    assert_clean(clean)
    assert pixels(clean) == pixels(data)
    with Image.open(io.BytesIO(clean)) as image:
        assert (image.info["loop"], image.info["duration"]) == (3, 50)


@pytest.mark.parametrize("turned", range(1, 9))
def test_an_avif_keeps_its_pixels_profile_and_how_it_is_turned(turned: int) -> None:
    """As HEIC, which nothing here writes: the same boxes, and the picture is turned by one of them."""
    data = _saved("AVIF", exif=telling_exif(turned), xmp=XMP, icc_profile=SRGB)
    assert all(secret in data for secret in (b"Mustermann", b"SecretCam", b"GPSLatitude"))

    clean, _ = stripped(data, "image/avif")

    assert_clean(clean)
    assert len(clean) == len(data)
    assert pixels(clean) == pixels(data)
    assert orientation(clean) == turned
    with Image.open(io.BytesIO(clean)) as image:
        assert set(image.getexif()) <= {0x0112}
        assert image.info["icc_profile"] == SRGB


def test_an_animated_avif_keeps_its_frames() -> None:
    """Without EXIF: Pillow 13.0 crashes when it writes both."""
    data = _saved("AVIF", xmp=XMP, save_all=True, append_images=[noise().rotate(90)])

    clean, _ = stripped(data, "image/avif")

    assert_clean(clean)
    assert pixels(clean) == pixels(data)
    assert len(pixels(data)) == 2


# -- sound ------------------------------------------------------------------------------------------------------------


def _id3v1() -> bytes:
    return (b"TAG" + b"a song".ljust(30, b"\0") + b"Mustermann".ljust(30, b"\0")).ljust(128, b"\0")


def _ape() -> bytes:
    item = struct.pack("<II", 10, 0) + b"Artist\0" + b"Mustermann"
    fields = struct.pack("<III", 2000, 32 + len(item), 1)
    head = b"APETAGEX" + fields + struct.pack("<I", 0xA0000000) + bytes(8)
    return head + item + b"APETAGEX" + fields + struct.pack("<I", 0x80000000) + bytes(8)


def _lyrics() -> bytes:
    body = b"LYRICSBEGININD0000200EAR00010Mustermann"
    return body + b"%06d" % len(body) + b"LYRICS200"


@pytest.mark.parametrize(
    "tail", [b"", _id3v1(), _ape(), _ape() + _id3v1(), _lyrics() + _id3v1(), _ape() + _lyrics() + _id3v1()]
)
def test_an_mp3_keeps_its_frames_only(tail: bytes) -> None:
    bare = media.sound(1, "libmp3lame", "mp3", container_options={"id3v2_version": "0"})
    body = b"\0image/jpeg\0\x03\0" + telling_jpeg()
    frame = b"APIC" + struct.pack(">IH", len(body), 0) + body
    size = bytes(len(frame) >> shift & 0x7F for shift in (21, 14, 7, 0))
    data = b"ID3\x03\0\0" + size + frame + bare + tail

    clean, _ = stripped(data, "audio/mpeg")

    assert clean == bare
    assert_clean(clean)


def test_a_flac_keeps_its_stream_only() -> None:
    bare = media.sound(1, "flac", "flac")
    words = struct.pack("<I", 4) + b"test" + struct.pack("<II", 1, 17) + b"ARTIST=Mustermann"
    cover = telling_jpeg()
    picture = struct.pack(">II", 3, 10) + b"image/jpeg" + struct.pack(">6I", 0, 64, 48, 24, 0, len(cover)) + cover
    blocks = b"".join(bytes([kind]) + len(body).to_bytes(3, "big") + body for kind, body in ((4, words), (6, picture)))
    data = bare[:4] + bytes([bare[4] & 0x7F]) + bare[5:42] + blocks + bare[42:] + _id3v1()

    clean, _ = stripped(data, "audio/flac")

    assert_clean(clean)
    assert clean[:4] == b"fLaC"
    assert clean[8:42] == bare[8:42]
    assert heard(clean) == heard(bare)


@pytest.mark.parametrize("long", [False, True])
def test_a_wav_keeps_its_samples_only(long: bool) -> None:
    info = b"INFOIART" + struct.pack("<I", 10) + b"Mustermann"
    bext = b"SecretCam".ljust(602, b"\0")
    tail = b"LIST" + struct.pack("<I", len(info)) + info + b"bext" + struct.pack("<I", len(bext)) + bext
    tail += b"id3 " + struct.pack("<I", 20) + b"ID3\x03\0\0\0\0\0\x0aMustermann"
    data = media.wav(1.0, rf64=long)
    data = data + tail if long else media.wav(1.0, tail=tail)

    clean, outcome = stripped(data, "audio/wav")

    assert_clean(clean)
    assert heard(clean) == heard(data)
    assert outcome.notes == ()
    said = struct.unpack_from("<Q", clean, 20)[0] if long else struct.unpack_from("<I", clean, 4)[0]
    assert said == len(clean) - 8


def test_a_wav_that_was_never_finished_keeps_all_that_follows_and_says_so() -> None:
    data = media.wav(1.0, data_size=0xFFFFFFFF)

    clean, outcome = stripped(data, "audio/wav")

    assert heard(clean) == heard(data)
    assert "does not say where the samples end" in outcome.notes[0]


# -- films ------------------------------------------------------------------------------------------------------------


def telling_film(form: str = "mp4", **options: str) -> bytes:
    """A film with sound that says where and by whom it was made, in the movie header and in a track."""
    bare = media.video(1, form, sound_s=1.0)
    out = io.BytesIO()
    with av.open(io.BytesIO(bare), "r") as source, av.open(out, "w", format=form, options=options) as copy:
        copy.metadata.update({"location": "+52.5200+013.4050/", "artist": "Mustermann", "comment": "Mustermann"})
        copy.metadata["creation_time"] = "2026-01-02T03:04:05Z"
        pairs = {stream: copy.add_stream_from_template(stream) for stream in source.streams}
        for stream in pairs.values():
            stream.metadata["title"] = "by Mustermann"
        for packet in source.demux():
            if packet.dts is not None:
                stream = pairs[packet.stream]
                packet.stream = stream
                copy.mux(packet)
    return out.getvalue()


@pytest.mark.parametrize(
    ("form", "mime", "options"),
    [
        ("mp4", "video/mp4", {}), ("mov", "video/quicktime", {}),
        ("mp4", "video/mp4", {"movflags": "use_metadata_tags"}),
        ("mp4", "video/mp4", {"movflags": "frag_keyframe+empty_moov"}),
        ("3gp", "video/3gpp", {}),
    ],
)  # fmt: skip
def test_a_film_keeps_every_sample_where_it_was(form: str, mime: str, options: dict[str, str]) -> None:
    data = telling_film(form, **options)
    assert b"Mustermann" in data

    clean, outcome = stripped(data, mime)

    assert_clean(clean)
    assert len(clean) == len(data)
    assert seen(clean) == seen(data)
    assert heard(clean) == heard(data)
    assert outcome.notes == ()
    with av.open(io.BytesIO(clean)) as container:
        assert not {"location", "artist", "comment", "creation_time"} & set(container.metadata)


def test_a_film_whose_header_comes_first_keeps_its_offsets() -> None:
    data = media.header_first(telling_film())

    clean, _ = stripped(data, "video/mp4")

    assert_clean(clean)
    assert seen(clean) == seen(data)


def test_metadata_in_boxes_of_their_own_is_blanked_wherever_it_is() -> None:
    uuid = media.box(b"uuid", bytes.fromhex("be7acfcb97a942e89c71999491e3afac"), XMP)
    place = media.box(b"udta", media.box(b"\xa9xyz", b"\0\x12\x15\xc7+52.5200+013.4050/"))
    track = media.track()
    with_udta = media.box(b"trak", track[8:], place, media.full_box(b"meta", XMP))
    data = media.movie(with_udta, extra=place + uuid) + uuid + media.full_box(b"meta", XMP)

    clean, _ = stripped(data, "video/mp4")

    assert_clean(clean)
    assert len(clean) == len(data)
    assert clean.count(b"free") == 6


def test_readings_beside_the_picture_are_blanked_with_their_samples() -> None:
    """As an action camera writes them: a place for every second."""
    readings = b"+52.5201+52.5202+52.5203"
    picture = b"\1\2\3\4\5\6\7\x08" * 4
    head = media.movie(media.track(1), media.track(2), data=b"")
    start = len(head)
    track = media.track(2, samples=3, sample_bytes=8).replace(b"vide", b"meta")
    track = track.replace(struct.pack(">II", 1, 48), struct.pack(">II", 1, start + len(picture)))
    data = media.movie(media.track(1), track, data=picture + readings)
    assert data[start + len(picture) :] == readings

    clean, outcome = stripped(data, "video/mp4")

    assert_clean(clean)
    assert len(clean) == len(data)
    assert clean[start : start + len(picture)] == picture
    assert outcome.notes == ("tracks of readings beside picture and sound were blanked: 1",)
    assert clean.count(b"trak") == 1


# -- PDF --------------------------------------------------------------------------------------------------------------


def test_a_pdf_keeps_its_pages_only() -> None:
    photo = io.BytesIO()
    noise().save(photo, "JPEG", exif=telling_exif(6))
    document = pikepdf.new()
    page = document.add_blank_page(page_size=(200, 150))
    picture = document.make_stream(photo.getvalue(), Type=pikepdf.Name.XObject, Subtype=pikepdf.Name.Image, Width=64,
                                   Height=48, ColorSpace=pikepdf.Name.DeviceRGB, BitsPerComponent=8,
                                   Filter=pikepdf.Name.DCTDecode)  # fmt: skip
    picture.Metadata = document.make_stream(XMP)
    page.obj.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(I=picture))
    page.obj.Contents = document.make_stream(b"200 0 0 150 0 0 cm /I Do")
    page.obj.PieceInfo = pikepdf.Dictionary(App=pikepdf.Dictionary(Private=pikepdf.String("Mustermann")))
    document.docinfo["/Author"] = "Mustermann"
    document.Root.Metadata = document.make_stream(XMP)
    drawn = io.BytesIO()
    document.save(drawn, object_stream_mode=pikepdf.ObjectStreamMode.disable, compress_streams=False)
    assert all(secret in drawn.getvalue() for secret in (b"Mustermann", b"SecretCam", b"GPSLatitude"))

    clean, _ = stripped(drawn.getvalue(), "application/pdf")

    with pikepdf.open(io.BytesIO(clean)) as read:
        assert_clean(clean + b"".join(repr(found).encode() for found in read.objects))
        assert "/Info" not in read.trailer
    assert shown(clean) == shown(drawn.getvalue())
    assert clean == stripped(drawn.getvalue(), "application/pdf")[0]


def shown(data: bytes) -> list[bytes]:
    with pypdfium2.PdfDocument(data) as document:
        return [page.render().to_pil().tobytes() for page in document]


@pytest.mark.parametrize("lock", [{"password": "x" * 8}, {"owner_only": True}])
def test_an_encrypted_pdf_is_refused(lock: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedMedia, match="encrypted"):
        stripped(media.pdf(**lock), "application/pdf")


# -- all of them ------------------------------------------------------------------------------------------------------

SEEDS: dict[str, Callable[[], bytes]] = {
    "image/jpeg": lambda: telling_jpeg(6, progressive=True),
    "image/png": lambda: telling_png(6),
    "image/webp": lambda: _saved("WEBP", exif=telling_exif(6), xmp=XMP),
    "image/gif": lambda: _saved("GIF", comment=b"Mustermann"),
    "image/avif": lambda: _saved("AVIF", exif=telling_exif(6), xmp=XMP),
    "audio/mpeg": lambda: media.sound_with_cover(1) + _ape() + _lyrics() + _id3v1(),
    "audio/flac": lambda: media.sound(1, "flac", "flac"),
    "audio/wav": lambda: media.wav(1, tail=b"LIST\x04\0\0\0INFO"),
    "video/mp4": telling_film,
    "application/pdf": lambda: media.pdf([(9, 9)] * 3),
}


def _saved(form: str, **options: Any) -> bytes:
    drawn = io.BytesIO()
    noise().save(drawn, form, **options)
    return drawn.getvalue()


@pytest.mark.parametrize("mime", SEEDS)
def test_what_is_clean_stays_as_it_is(mime: str) -> None:
    clean, _ = stripped(SEEDS[mime](), mime)

    assert stripped(clean, mime)[0] == clean


@pytest.mark.parametrize("mime", ["image/jxl", "image/tiff", "audio/ogg", "video/x-matroska", "text/plain", ""])
def test_formats_that_are_not_known_well_enough_are_refused(mime: str) -> None:
    with pytest.raises(UnsupportedMedia):
        stripped(b"anything", mime)


@pytest.mark.parametrize("mime", SEEDS)
@pytest.mark.parametrize(
    "data", [b"", b"x", b"\0" * 5000, b"\xff" * 5000, b"RIFF\xff\xff\xff\xffWAVEdata\xff\xff\xff\xff"]
)
def test_what_is_something_else_ends_in_a_typed_error_or_a_file(mime: str, data: bytes) -> None:
    try:
        clean, _ = stripped(data, mime)
    except MalformedMedia:
        return
    assert len(clean) <= len(data)


@pytest.mark.parametrize("mime", SEEDS)
def test_mutants_end_in_a_typed_error_or_a_file_no_longer_than_before(mime: str) -> None:
    chance, seed = random.Random(mime), SEEDS[mime]()
    words = (
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\1",
        b"\x7f\xff\xff\xff",
        b"moov",
        b"trak",
        b"APETAGEX",
        b"\xff\xda",
    )
    slowest = 0.0

    for _ in range(400):
        mutant = bytearray(seed)
        for _ in range(chance.choice((1, 3, 12))):
            at = chance.randrange(min(len(mutant), chance.choice((256, 4096, 1 << 20))))
            at = at if chance.random() < 0.7 else max(0, len(mutant) - at - 1)
            word = chance.choice((chance.randbytes(1), chance.randbytes(4), chance.choice(words)))
            mutant[at : at + len(word)] = word
        begin = time.process_time()
        clean = b""
        with contextlib.suppress(InputError):
            clean, _ = stripped(bytes(mutant[: chance.choice((len(mutant), chance.randrange(1, len(mutant))))]), mime)
        assert mime == "application/pdf" or len(clean) <= len(mutant) + 64
        slowest = max(slowest, time.process_time() - begin)

    assert slowest < 1


@pytest.mark.parametrize(
    "data", [media.stsz_bomb(), media.elst_bomb(), media.cmov_bomb(1 << 22), media.many_tracks(2000)]
)
def test_bombs_of_tables_cost_nothing(data: bytes) -> None:
    begin = time.process_time()

    assert len(stripped(data, "video/mp4")[0]) == len(data)

    assert time.process_time() - begin < 1


def test_a_text_bomb_is_cut_out_packed() -> None:
    clean, _ = stripped(media.ztxt_bomb(1 << 26), "image/png")

    assert b"zTXt" not in clean
    assert zlib.crc32(clean[-8:-4]) == int.from_bytes(clean[-4:], "big")


def test_a_box_within_itself_ends() -> None:
    nested = b""
    for _ in range(5000):
        nested = struct.pack(">I4s", len(nested) + 8, b"moov") + nested

    assert len(stripped(nested, "video/mp4")[0]) == len(nested)


def test_a_film_made_here_without_tags_leaves_as_it_is() -> None:
    made = media.video(0.5, container_options={"fflags": "+bitexact"})
    assert b"udta" in made
    assert stripped(made, "video/mp4")[0] == made


def test_words_of_the_length_of_no_words_are_taken_out() -> None:
    made = media.video(0.5, container_options={"fflags": "+bitexact"})
    named = made.replace(b"mdirappl" + bytes(9), b"mdirapplOtto-Maxi")
    assert named != made
    assert b"Otto" not in stripped(named, "video/mp4")[0]


def test_an_mp3_that_was_made_without_metadata_has_nothing_to_strip() -> None:
    made, _ = make_here(
        media.sound(1.0, "pcm_s16le", "wav"), "audio/wav", AudioWork(mime="audio/mpeg", strip_metadata=True)
    )

    assert stripped(made, "audio/mpeg")[0] == made
