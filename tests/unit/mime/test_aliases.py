"""Declared types: what they mean, whether they agree with the bytes, and how a backend wants them spelt."""

from __future__ import annotations

import pytest

from weighlock.mime import agrees, canonical, declared_from_name, spelling
from weighlock.mime.aliases import _ALIASES
from weighlock.mime.file_names import _CLAIMS
from weighlock.mime.signatures import BY_FIRST_BYTE
from weighlock.mime.sniffed import Sniffed

DEVELOPER_AUDIO = tuple(
    f"audio/{name}"
    for name in "wav mp3 aiff aac ogg flac mpeg m4a l16 opus alaw mulaw webm".split()  # noqa: SIM905
)
VERTEX_AUDIO = tuple(
    f"audio/{name}"
    for name in "x-aac flac mp3 m4a mpeg mpga mp4 ogg pcm wav webm".split()  # noqa: SIM905
)
DEVELOPER_VIDEO = ("video/mp4", "video/mpeg", "video/mov", "video/avi", "video/x-flv", "video/mpg", "video/webm")
VERTEX_VIDEO = ("video/x-flv", "video/quicktime", "video/mpeg", "video/mpegs", "video/mp4", "video/webm", "video/wmv")
TEXTS = ("text/plain", "text/html", "text/csv")


@pytest.mark.parametrize(
    "declared",
    ["png", "PNG", ".png", "image/png", "image/png; charset=binary", " IMAGE/PNG ", "Image/X-PNG", "image/apng"],
)
def test_every_way_to_say_png(declared: str) -> None:
    assert canonical(declared) == "image/png"


@pytest.mark.parametrize(
    ("declared", "mime"),
    [
        ("image/jpg", "image/jpeg"),
        ("image/pjpeg", "image/jpeg"),
        ("image/mpo", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        (".pdf", "application/pdf"),
        ("application/x-pdf", "application/pdf"),
        ("audio/x-wav", "audio/wav"),
        ("audio/wave", "audio/wav"),
        ("audio/vnd.wave", "audio/wav"),
        ("audio/x-m4a", "audio/mp4"),
        ("audio/m4a", "audio/mp4"),
        ("audio/mp3", "audio/mpeg"),
        ("video/x-m4v", "video/mp4"),
        ("video/mov", "video/quicktime"),
        ("video/avi", "video/x-msvideo"),
        ("application/csv", "text/csv"),
        ("application/xml", "text/xml"),
        ("application/x-javascript", "text/javascript"),
        ("audio/webm;codecs=opus", "audio/webm"),
        ("audio/mp4;codecs=mp4a.40.2", "audio/mp4"),
        ("audio/ogg; codecs=opus", "audio/ogg"),
        ("video/webm;codecs=vp9,opus", "video/webm"),
        ("application/json; charset=utf-8", "application/json"),
        ("application/ogg", "application/ogg"),
        ("application/x-nobody-knows", "application/x-nobody-knows"),
        ("audio/acc", "audio/acc"),
    ],
)
def test_aliases_parameters_and_bare_extensions_are_seen_through(declared: str, mime: str) -> None:
    assert canonical(declared) == mime


@pytest.mark.parametrize(
    "nothing", [None, "", " ", "application/octet-stream", "binary/octet-stream", "no type", "a/b/c", "ts", "/", "x/"]
)
def test_what_declares_nothing_is_none(nothing: str | None) -> None:
    assert canonical(nothing) is None


def test_every_name_we_give_is_canonical() -> None:
    table = {row.verdict.mime for rows in BY_FIRST_BYTE for row in rows if isinstance(row.verdict, Sniffed)}

    for mime in table | set(_ALIASES.values()) | set(_CLAIMS.values()):
        assert canonical(mime) == mime


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("photo.JPG", "image/jpeg"),
        ("a.b.heic", "image/heic"),
        ("dir.png/file.mp3", "audio/mpeg"),
        ("C:\\media\\talk.m4a", "audio/mp4"),
        ("gs://x/a.mp4", "video/mp4"),
        ("clip.mov", "video/quicktime"),
        ("logo.svgz", "application/gzip"),
        ("voice", None),
        (".png", None),
        ("dir.png/file", None),
        ("", None),
    ],
)
def test_a_file_name_claims_what_its_extension_says(name: str, mime: str | None) -> None:
    assert declared_from_name(name) == mime


@pytest.mark.parametrize("extension", ["ts", "mts", "mod", "m", "adp", "cu", "xyz"])
def test_extensions_of_several_meanings_claim_nothing(extension: str) -> None:
    assert declared_from_name(f"file.{extension}") is None


@pytest.mark.parametrize(
    ("declared", "detected"),
    [
        ("audio/mp3", "audio/mpeg"),
        ("audio/m4a", "audio/mp4"),
        ("video/mov", "video/quicktime"),
        ("image/jpg", "image/jpeg"),
        ("image/mpo", "image/jpeg"),
        ("image/heif", "image/heic"),
        ("image/heic", "image/heif"),
        ("text/plain", "text/csv"),
        ("text/markdown", "text/plain"),
        ("text/x-python", "text/plain"),
        ("application/json", "text/plain"),
        ("application/ogg", "audio/ogg"),
        ("audio/ogg", "application/ogg"),
        ("audio/opus", "audio/ogg"),
        ("video/x-ms-asf", "audio/x-ms-wma"),
        (None, "image/png"),
        ("application/octet-stream", "video/mp4"),
    ],
)
def test_names_that_agree(declared: str | None, detected: str) -> None:
    assert agrees(declared, detected)


@pytest.mark.parametrize(
    ("declared", "detected"),
    [
        ("image/png", "image/jpeg"),
        ("audio/mp3", "audio/ogg"),
        ("video/webm", "audio/webm"),
        ("video/mp4", "audio/mp4"),
        ("video/ogg", "audio/ogg"),
        ("image/png", "text/html"),
        ("text/xml", "image/svg+xml"),
        ("video/webm", "video/x-matroska"),
        ("image/avif", "image/heic"),
        ("text/plain", "application/pdf"),
        ("image/png", "application/octet-stream"),
        ("image/heic", "image/avif"),
    ],
)
def test_names_that_differ(declared: str, detected: str) -> None:
    assert not agrees(declared, detected)


@pytest.mark.parametrize(
    ("mime", "accepted", "name"),
    [
        ("video/quicktime", DEVELOPER_VIDEO, "video/mov"),
        ("video/quicktime", VERTEX_VIDEO, "video/quicktime"),
        ("video/x-msvideo", DEVELOPER_VIDEO, "video/avi"),
        ("video/x-ms-wmv", VERTEX_VIDEO, "video/wmv"),
        ("video/x-matroska", DEVELOPER_VIDEO, None),
        ("audio/aac", DEVELOPER_AUDIO, "audio/aac"),
        ("audio/aac", VERTEX_AUDIO, "audio/x-aac"),
        ("audio/mp4", DEVELOPER_AUDIO, "audio/m4a"),
        ("audio/mp4", VERTEX_AUDIO, "audio/mp4"),
        ("audio/x-m4a", VERTEX_AUDIO, "audio/mp4"),
        ("audio/mpeg", ("audio/mp3",), "audio/mp3"),
        ("audio/aiff", VERTEX_AUDIO, None),
        ("image/svg+xml", ("image/png", "text/plain"), None),
        ("image/tiff", ("image/png",), None),
        ("text/csv", TEXTS, "text/csv"),
        ("application/csv", TEXTS, "text/csv"),
        ("text/markdown", TEXTS, "text/plain"),
        ("text/x-python", TEXTS, "text/plain"),
        ("application/x-javascript", TEXTS, "text/plain"),
        ("application/json", TEXTS, "text/plain"),
        ("text/plain", ("text/html",), None),
        ("application/octet-stream", TEXTS, None),
    ],
)
def test_each_backend_gets_its_own_spelling(mime: str, accepted: tuple[str, ...], name: str | None) -> None:
    assert spelling(mime, accepted) == name
    assert spelling(mime, frozenset(accepted)) == name


@pytest.mark.parametrize("name", [*DEVELOPER_AUDIO, *VERTEX_AUDIO, *DEVELOPER_VIDEO, *VERTEX_VIDEO])
def test_an_accepted_name_is_spelt_as_itself(name: str) -> None:
    assert spelling(name, (name,)) == name
    assert canonical(name) is not None
