"""Server-sent events, cut anywhere, ended in any way: what they say of usage, and the same as a JSON array."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.service.events import Listed, Stream

CHUNKS = [
    {"candidates": [{"content": {"parts": [{"text": "a\u2028b"}]}}], "usageMetadata": {"promptTokenCount": 7}},
    {"candidates": [{"content": {"parts": [{"text": "é"}]}}]},
    {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}},
]


def stream(end: str = "\r\n", *, ascii_only: bool = False) -> bytes:
    return "".join(f"data: {json.dumps(one, ensure_ascii=ascii_only)}{end}{end}" for one in CHUNKS).encode()


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(one % (len(data) + 1) for one in at)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(st.lists(st.integers(0, 10_000), max_size=30), st.sampled_from(["\r\n", "\n", "\r"]))
def test_wherever_it_is_cut_the_same_is_sent_on_in_whole_events(at: list[int], end: str) -> None:
    passing, whole = Stream(), stream(end)

    told = [passing.feed(piece) for piece in cut(whole, at)]

    assert b"".join(told) + passing.end() == whole
    assert all(not piece or (piece.startswith(b"data:") and piece.endswith(2 * end.encode())) for piece in told)
    assert passing.usage == {"promptTokenCount": 7, "candidatesTokenCount": 3}


def test_of_what_does_not_end_the_rest_is_sent_on_at_the_end() -> None:
    passing = Stream()

    assert passing.feed(b"data: {}\n\ndata: {") == b"data: {}\n\n"
    assert passing.end() == b"data: {"


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_as_an_array(at: list[int]) -> None:
    listed = Listed()

    told = b"".join(listed.feed(piece) for piece in cut(stream(), at)) + listed.end()

    assert json.loads(told) == CHUNKS


def test_an_empty_stream_is_an_empty_array() -> None:
    assert json.loads(Listed().end()) == []


def test_our_own_events_read_like_the_services_also_in_the_middle_of_one() -> None:
    error, listed, passing = b'{"error":{"code":502}}', Listed(), Stream()

    told = passing.feed(stream() + b"data: {half") + passing.item(error)
    passing.forget()

    assert told + passing.end() == stream() + b"data: " + error + b"\r\n\r\n"
    assert json.loads(listed.feed(stream()) + listed.item(error) + listed.end())[-1] == {"error": {"code": 502}}


@pytest.mark.parametrize(
    "piece",
    [
        b": a comment\n\n",
        b"event: ping\n\n",
        b"data: not json usageMetadata\n\n",
        b'data: ["usageMetadata"]\n\n',
        b'data: {"usageMetadata": 7}\n\n',
        b'data: {"usageMetadata": {"promptTokenCount": "NaN"}}\n\n',
        b"data: " + b"[" * 100_000 + b"usageMetadata\n\n",
        b"\xff\xfe\n\n",
    ],
)
def test_what_is_no_usage_is_passed_over(piece: bytes) -> None:
    passing = Stream()

    assert passing.feed(piece) + passing.feed(stream()) == piece + stream()
    assert passing.usage["promptTokenCount"] == 7


def test_a_long_event_is_sent_on_as_it_comes_and_its_usage_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighlock.service.events._MOST_WAITED_FOR", 1_000)
    whole = b'data: {"text": "' + b"x" * 5_000 + b'", "usageMetadata": {"promptTokenCount": 9}}\r\n\r\n'
    passing = Stream()

    told = [passing.feed(piece) for piece in (whole[:900], whole[900:2_000], whole[2_000:4_000], whole[4_000:])]

    assert b"".join(told) == whole
    assert [bool(one) for one in told] == [False, True, True, True]
    assert passing.usage == {"promptTokenCount": 9}
    assert Stream().item(b"1") == b"data: 1\r\n\r\n"
    broken = Stream()
    assert broken.feed(whole[:2_000]) + broken.item(b"1") == whole[:2_000] + b"\r\n\r\ndata: 1\r\n\r\n"


@pytest.mark.parametrize("kind", [Stream, Listed])
def test_an_event_without_end_is_not_held_forever(monkeypatch: pytest.MonkeyPatch, kind: type[Stream]) -> None:
    monkeypatch.setattr("weighlock.service.events._MOST_HELD", 1_000)
    monkeypatch.setattr("weighlock.service.events._MOST_WAITED_FOR", 100)
    passing, pieces = kind(), [b"data: " + b"x" * 300] * 100

    told = b""
    for piece in pieces:
        told += passing.feed(piece)
        assert len(passing._held) <= 1_300
    told += passing.feed(b"\n\ndata: 1\n\n")

    assert told == (b"".join(pieces) + b"\n\ndata: 1\n\n" if kind is Stream else b"[1")
