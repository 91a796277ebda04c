"""Media hidden in a tool's text: what is found, where exactly, and what is left alone."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import textwrap
import time
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import media
from weighlock.encoded import Base64, encode
from weighlock.planning.embedded import LEAST_BARE_CHARS, Embedded, find, replaced
from weighlock.request import Json, MediaPart

SMALL = media.picture((8, 8))
NOISE = random.Random(7).randbytes(9000)


def png(size_bytes: int) -> bytes:
    """A picture of this very size."""
    empty = len(media.png_header((8, 8), media.png_chunk(b"teSt", b"")))
    return media.png_header((8, 8), media.png_chunk(b"teSt", NOISE[: size_bytes - empty]))


BIG = png(4201)
"""Its base64 ends in padding."""
UNPADDED = png(4200)
"""Its base64 does not."""


def bytes_of(one: Embedded) -> bytes:
    source = one.part.source
    return source.decode() if isinstance(source, Base64) else source  # type: ignore[return-value]


def the_one(response: Json) -> Embedded:
    (one,) = find(response)
    return one


# ---- what is found


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (media.picture((8, 8)), "image/png"),
        (media.picture((8, 8), "JPEG"), "image/jpeg"),
        (media.picture((8, 8), "WEBP"), "image/webp"),
        (media.picture((8, 8), "GIF"), "image/gif"),
        (media.picture((8, 8), "BMP"), "image/bmp"),
        (media.wav(0.1), "audio/wav"),
        (media.sound(0.3, "libmp3lame", "mp3"), "audio/mpeg"),
        (media.sound(0.3, "libopus", "ogg", rate=48000), "audio/ogg"),
        (media.video(0.5), "video/mp4"),
        (media.pdf(), "application/pdf"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("label", ["", "image/png", "application/octet-stream"])
def test_a_data_uri_of_any_length_is_a_medium_and_its_bytes_say_which(data: bytes, mime: str, label: str) -> None:
    one = the_one({"result": f"data:{label};base64,{encode(data)}"})

    assert (one.medium.mime, bytes_of(one), one.path) == (mime, data, ("result",))
    assert (one.start, one.end) == (0, one.chars)


@pytest.mark.parametrize("parameters", ["", ";charset=utf-8", ";name=a.png", ";a=b;c=d"])
def test_a_data_uri_may_have_parameters(parameters: str) -> None:
    one = the_one([f"data:image/png{parameters};base64,{encode(SMALL)}"])

    assert (bytes_of(one), one.part.declared_mime) == (SMALL, "image/png")


SHAPES: dict[str, Any] = {
    "mcp image": lambda b: {"content": [{"type": "image", "mimeType": "image/png", "data": b}]},
    "mcp resource": lambda b: {"resource": {"uri": "x://a", "mimeType": "image/png", "blob": b}},
    "anthropic": lambda b: [{"source": {"type": "base64", "media_type": "image/png", "data": b}, "type": "image"}],
    "langchain": lambda b: [{"type": "image", "base64": b, "mime_type": "image/png"}],
    "langchain media": lambda b: [{"type": "media", "data": b, "mime_type": "image/png"}],
    "openai": lambda b: [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b}"}}],
    "gemini": lambda b: {"result": {"inlineData": {"mimeType": "image/png", "data": b}}},
    "gemini snake": lambda b: {"result": {"inline_data": {"mime_type": "image/png", "data": b}}},
    "http": lambda b: {"content_type": "IMAGE/PNG; q=1", "body": b},
    "nested lists": lambda b: {"a": [[[{"mimeType": "image/png", "data": b}]], 3, None]},
    "label behind the data": lambda b: {"data": b, "mimeType": "image/png"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_labelled_medium_is_found_however_small(shape: str) -> None:
    response = SHAPES[shape](encode(SMALL))

    one = the_one(response)
    assert bytes_of(one) == SMALL
    assert encode(SMALL) not in json.dumps(replaced(response, [(one, "[gone]")]))


WRITTEN: dict[str, Any] = {
    "bare": encode,
    "url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "unpadded": lambda data: encode(data).rstrip("="),
    "url-safe unpadded": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "lines": lambda data: base64.encodebytes(data).decode(),
    "crlf": lambda data: base64.encodebytes(data).decode().replace("\n", "\r\n"),
    "one line end": lambda data: encode(data) + "\n",
    "json": lambda data: json.dumps({"d": encode(data)}),
    "json in json": lambda data: json.dumps({"d": json.dumps({"e": encode(data)})}),
    "lines in json": lambda data: json.dumps({"d": base64.encodebytes(data).decode()}),
    "escaped slashes": lambda data: json.dumps({"d": encode(data)}).replace("/", "\\/"),
    "markdown": lambda data: f"![shot](data:image/png;base64,{encode(data)}) and so on",
    "html": lambda data: f'<p>x</p><img src="data:image/png;base64,{encode(data)}">',
    "quoted": lambda data: f"'{encode(data)}', 'b'",
    "assigned": lambda data: f"image={encode(data)}&b=c",
    "behind words": lambda data: f"The picture: {encode(data)}",
    "lines within words": lambda data: f"The picture:\n\n{base64.encodebytes(data).decode()}\n\nwas taken.",
}


@pytest.mark.parametrize("data", [BIG, UNPADDED], ids=["padded", "whole"])
@pytest.mark.parametrize("written", WRITTEN)
def test_a_medium_of_4_kib_is_found_however_it_is_written(written: str, data: bytes) -> None:
    one = the_one({"result": WRITTEN[written](data)})

    assert bytes_of(one) == data
    assert not one.cut


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(lambda data: json.dumps({"d": encode(data)}).replace("+", "\\u002B"), id="json of .NET"),
        pytest.param(lambda data: textwrap.indent(base64.encodebytes(data).decode(), "  "), id="indented lines"),
    ],
)
def test_a_medium_is_found_in_rarer_writings_too(written: Any) -> None:
    assert bytes_of(the_one({"result": written(BIG)})) == BIG


def test_bare_base64_counts_from_4_kib_on() -> None:
    enough = png(LEAST_BARE_CHARS // 4 * 3)
    short = png(LEAST_BARE_CHARS // 4 * 3 - 3)

    assert len(encode(enough)) == LEAST_BARE_CHARS
    assert find({"result": encode(enough)})
    assert not find({"result": encode(short)})


def test_every_medium_is_found_in_the_order_of_the_text() -> None:
    uri = f"data:image/png;base64,{encode(SMALL)}"
    text = f"one {encode(BIG)} two {encode(media.wav(1))} three"

    found = find({"a": [uri, {"b": text}], "c": SMALL.hex(), "d": uri})

    assert [(one.path, one.medium.mime) for one in found] == [
        (("a", 0), "image/png"), (("a", 1, "b"), "image/png"), (("a", 1, "b"), "audio/wav"), (("d",), "image/png"),
    ]  # fmt: skip
    gone = replaced({"b": text}, [(one, f"[{n}]") for n, one in enumerate(find({"b": text}))])
    assert gone == {"b": "one [0] two [1] three"}


def test_a_raw_medium_is_found_where_a_python_tool_put_it() -> None:
    raw = MediaPart(source=SMALL, label="shot", declared_mime="image/png")
    response = {"a": [1, raw], "b": "text"}

    one = the_one(response)

    assert (one.part, one.raw, one.path) == (raw, True, ("a", 1))
    assert one.chars == len(encode(SMALL))
    assert replaced(response, [(one, "[gone]")]) == {"a": [1, "[gone]"], "b": "text"}
    assert replaced(raw, [(the_one(raw), "[gone]")]) == "[gone]"


def test_a_response_as_deep_as_json_goes_is_read() -> None:
    response: Json = {"mimeType": "image/png", "data": encode(SMALL)}
    for _ in range(5000):
        response = {"a": [response]}

    assert len(the_one(response).path) == 10_001


# ---- cut off


def cut(data: bytes) -> str:
    """Its base64, as a tool leaves it that shortens its output."""
    return encode(data)[: max(LEAST_BARE_CHARS, len(encode(data)) * 6 // 10) + 1]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(png(8000), id="png"),
        pytest.param(media.picture((900, 900), "JPEG", quality=100), id="jpeg"),
        pytest.param(media.pdf([(595, 842)] * 60), id="pdf"),
        pytest.param(media.animated_gif((8, 8), 900), id="gif"),
        pytest.param(media.picture((60, 60), "BMP"), id="bmp"),
        pytest.param(media.wav(1), id="wav"),
        pytest.param(media.video(2, size=(320, 240), sound_s=2.0), id="mp4"),
        pytest.param(media.sound(2, "aac", "ipod"), id="m4a"),
    ],
)
def test_a_medium_that_was_cut_off_is_said_to_be(data: bytes) -> None:
    one = the_one({"result": cut(data)})

    assert one.cut


@pytest.mark.parametrize("left", range(5))
def test_a_cut_anywhere_within_four_characters_is_seen_through(left: int) -> None:
    one = the_one({"result": encode(png(8000))[: 6000 + left]})

    assert (one.cut, one.start, one.end) == (True, 0, 6000 + left)


# ---- what is left alone


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        written.writestr("a.bin", NOISE)
    return packed.getvalue()


PEM = "\n".join(textwrap.wrap(encode(b"\x30\x82\x17\x70" + NOISE[:6000]), 64))
JAVASCRIPT = "function(a,b){var c=a.b(d),e=0;for(;e<c.length;e++){b[c[e]]=!0}return b}" * 90
LOOKALIKES = {
    "hex": NOISE.hex(),
    "hex of a picture": BIG.hex(),
    "random bytes": encode(NOISE),
    "random bytes, url-safe": base64.urlsafe_b64encode(NOISE).decode(),
    "zip": encode(archive()),
    "gzip": encode(gzip.compress(NOISE)),
    "plain text": encode(b"Nothing but words in here. " * 300),
    "json text": encode(json.dumps({"rows": list(range(2000))}).encode()),
    "utf-16 text": encode(("Wörter, " * 900).encode("utf-16")),
    "a program": encode(b"\x7fELF\2\1\1" + NOISE),
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.{encode(json.dumps({'a': 'b' * 5000}).encode()).rstrip('=')}.{'aB3-_' * 20}",
    "pem": f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----\n",
    "long hash": "sha512-" + "0123456789abcdef" * 400,
    "javascript": JAVASCRIPT,
    "one letter": "A" * 9000,
    "base64 alphabet": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" * 90,
    "dna": "ACGTTGCA" * 900,
    "a long path": "/usr/lib/python3/" * 400,
    "both alphabets": encode(BIG)[:3000] + "-_" + encode(BIG)[3000:],
    "a data uri of text": f"data:text/plain;base64,{encode(b'words and words ' * 400)}",
    "a data uri of svg, not in base64": "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg'/>" * 90,
    "no base64 behind its mark": "data:image/png;base64," + "not base64! " * 600,
}


@pytest.mark.parametrize("kind", LOOKALIKES)
@pytest.mark.parametrize("around", ["{}", "before {} behind", '{{"d": "{}"}}'])
def test_what_only_looks_like_a_medium_is_left_alone(kind: str, around: str) -> None:
    assert find({"result": around.format(LOOKALIKES[kind])}) == []


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"\xff\x0a", id="jxl"),
        pytest.param(b"\x1f\x07\x00", id="dv"),
        pytest.param(b"P6\n", id="netpbm"),
        pytest.param(b"MP+", id="musepack"),
        pytest.param(b"\xff\xfb\x90", id="mp3"),
        pytest.param(b"\xff\xd8\xff", id="jpeg"),
        pytest.param(b"BM", id="bmp"),
        pytest.param(b"GI", id="gif"),
        pytest.param(b"\0\0\1\0", id="ico"),
    ],
)
def test_random_bytes_that_begin_like_a_medium_are_left_alone(start: bytes) -> None:
    assert find({"result": encode(start + NOISE)}) == []


@pytest.mark.parametrize("label", ["text/plain", "application/json", "application/zip", "model/obj", ""])
def test_a_label_of_something_else_announces_nothing(label: str) -> None:
    assert find({"mimeType": label, "data": encode(SMALL)}) == []


@pytest.mark.parametrize("value", ["", "short", "iVBORw0KGgo=", "x" * 40, encode(b"words, just words, " * 3)])
def test_a_label_without_a_medium_behind_it_changes_nothing(value: str) -> None:
    assert find({"mimeType": "image/png", "data": value, "alt": "a picture", "size": 3}) == []


def test_runs_that_are_just_too_short_take_no_longer_than_words() -> None:
    def seconds(run: int) -> float:
        text = ("A" * run + " ") * (120_000 // run)
        began = time.perf_counter()
        assert find({"result": text}) == []
        return time.perf_counter() - began

    words = min(seconds(40) for _ in range(3))
    assert seconds(LEAST_BARE_CHARS - 1) < max(20 * words, 0.05)


# ---- where it ends


@pytest.mark.parametrize("behind", ["Done", "Done.", "Saved as\nshot"])
def test_a_word_right_behind_wrapped_lines_is_none_of_them(behind: str) -> None:
    text = f"shot:\n{base64.encodebytes(UNPADDED).decode()}{behind}"

    one = the_one({"result": text})
    assert (bytes_of(one), text[one.end :].strip()) == (UNPADDED, behind)


@pytest.mark.parametrize(
    ("between", "data"),
    [
        ("\n", BIG),
        (" ", BIG),
        ("\n", UNPADDED),
        (" ", UNPADDED),
    ],
)
def test_two_media_in_one_text_are_two(between: str, data: bytes) -> None:
    found = find({"result": f"{encode(data)}{between}{encode(data)}"})

    assert [bytes_of(one) for one in found] == [data, data]


@pytest.mark.parametrize("around", ["![shot]({}) and so on", "\n{}", '<img src="{}">', '{{"image": "{}"}}'])
def test_a_small_data_uri_within_a_text_is_found(around: str) -> None:
    text = around.format(f"data:image/png;base64,{encode(SMALL)}")

    assert bytes_of(the_one({"result": text})) == SMALL


def test_the_small_icons_of_a_page_stay_where_they_are() -> None:
    icon = f'<img src="data:image/png;base64,{encode(SMALL)}">'

    assert find({"result": icon * 5}) == []
    assert len(find({"result": icon * 4})) == 4


# ---- properties

_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="=\x00"), max_size=200)
_SEPARATOR = st.sampled_from([" ", "\n\n", ": ", " <", "(", '"', "|"])


@settings(max_examples=150, deadline=None)
@given(before=_WORDS, first=_SEPARATOR, behind=_WORDS, last=_SEPARATOR, written=st.sampled_from(["bare", "url-safe"]))
def test_everything_outside_a_medium_stays_as_it_was(
    before: str, first: str, behind: str, last: str, written: str
) -> None:
    text = f"{before}{first}{WRITTEN[written](BIG)}{last}{behind}"
    response = {"keep": before, "result": [text, behind]}

    one = the_one(response)
    changed = replaced(response, [(one, "[gone]")])

    assert bytes_of(one) == BIG
    assert changed == {"keep": before, "result": [f"{before}{first}[gone]{last}{behind}", behind]}
    assert response["result"] == [text, behind]


@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(min_size=8, max_size=300),
    times=st.integers(1, 60),
    form=st.sampled_from(["hex", "base64", "lines", "base85", "repr"]),
    label=st.sampled_from(["", "data:application/octet-stream;base64,"]),
)
def test_bytes_that_are_no_medium_are_left_alone_in_any_writing(data: bytes, times: int, form: str, label: str) -> None:
    data = b"\0\0\0\0" + data * times  # no format begins so
    written = {
        "hex": data.hex(),
        "base64": encode(data),
        "lines": base64.encodebytes(data).decode(),
        "base85": base64.b85encode(data).decode(),
        "repr": repr(data),
    }[form]
    response = {"result": label + written, "list": [written]}

    assert find(response) == []
    assert replaced(response, []) is response


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
        max_leaves=20,
    )
)
def test_json_without_media_is_left_alone(response: Json) -> None:
    assert find(response) == []


# ---- what an attack found


LINES = base64.encodebytes(BIG).decode()
WITHOUT = '{"a": "BEFORE", "d": "[X]\\n", "z": "AFTER"}'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"img: data:image/png;base64,{LINES}AFTER text that matters", "img: [X]\nAFTER text that matters"),
        (f"A data:image/png;base64,{LINES}B data:image/png;base64,{LINES}C", "A [X]\nB [X]\nC"),
        (json.dumps({"a": "BEFORE", "d": f"data:image/png;base64,{LINES}", "z": "AFTER"}), WITHOUT),
        (f"x/{encode(BIG)}", "x/[X]"),
        (f"base64-{encode(BIG)} end", "base64-[X] end"),
        (f"one {encode(BIG)} two\n{LINES}three", "one [X] two\n[X]\nthree"),
        (f"a path\\/to {LINES}end", "a path\\/to [X]\nend"),
        (f"data:image/png;base64, {encode(BIG)}", "[X]"),
    ],
)
def test_media_leave_a_text_and_nothing_else_does(text: str, left: str) -> None:
    found = find({"result": text})

    after = replaced({"result": text}, [(one, "[X]") for one in found])["result"]

    assert [bytes_of(one) for one in found] == [BIG] * after.count("[X]")
    assert after == left


@pytest.mark.parametrize("count", [40])
def test_many_media_take_time_by_their_number_only(count: int) -> None:
    text = " ".join([encode(BIG)] * count)
    found = find({"list": [text, *([f"data:image/png;base64,{encode(SMALL)}"] * count)]})

    after = replaced(
        {"list": [text, *([f"data:image/png;base64,{encode(SMALL)}"] * count)]}, [(one, "X") for one in found]
    )

    assert len(found) == 2 * count
    assert after == {"list": [" ".join(["X"] * count), *(["X"] * count)]}
