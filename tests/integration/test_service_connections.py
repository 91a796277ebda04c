"""Connections as nobody honest makes them: what could be read in two ways is refused, and ends the connection."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from emulated import user
from serving import GENERATE, MODEL, Served, client_yaml, serving
from weighlock.emulator import Emulator

BODY = json.dumps({"contents": [user("hi")]}).encode()
SMUGGLED = (
    b"POST /v1beta/models/gemini-2.5-pro:generateContent HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yaml = f"default: {{model: {MODEL}}}\nservice: {{deadlines: {{header: 1s, idle: 1s}}}}\n"
    with Emulator(processing_s=0) as emulator, serving(tmp_path_factory.mktemp("served"), emulator, yaml) as one:
        yield one


class Raw:
    """A connection, byte for byte."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 0))
        self.socket.settimeout(8)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        with suppress(ConnectionError):  # it may be over already
            self.socket.sendall(data)

    def rest(self) -> bytes:
        """Until the other side closes."""
        read = b""
        with suppress(ConnectionError):
            while piece := self.socket.recv(65_536):
                read += piece
        return read


def head(*lines: bytes, target: str = GENERATE, host: bytes = b"host: localhost") -> bytes:
    return b"\r\n".join([b"POST " + target.encode() + b" HTTP/1.1", host, *lines, b"", b""])


def length(data: bytes) -> bytes:
    return b"content-length: %d" % len(data)


def asked(served: Served) -> int:
    return len([*served.emulator.requests])


VECTORS: dict[str, tuple[int, bytes]] = {
    "both lengths": (400, head(length(BODY), b"transfer-encoding: chunked") + b"0\r\n\r\n" + SMUGGLED),
    "chunked in disguise": (400, head(b"transfer-encoding: xchunked") + BODY + SMUGGLED),
    "chunked twice": (400, head(b"transfer-encoding: chunked", b"transfer-encoding: identity") + BODY + SMUGGLED),
    "chunked and more": (400, head(b"transfer-encoding: gzip, chunked") + b"0\r\n\r\n" + SMUGGLED),
    "a blank before the colon": (400, head(b"content-length : 5", length(BODY)) + BODY + SMUGGLED),
    "two lengths": (400, head(length(BODY), b"content-length: 0") + BODY + SMUGGLED),
    "the same length twice": (400, head(length(BODY), length(BODY)) + BODY + SMUGGLED),
    "a signed length": (400, head(b"content-length: +5") + BODY + SMUGGLED),
    "lengths in a list": (400, head(b"content-length: 5, 5") + BODY + SMUGGLED),
    "a length in hex": (400, head(b"content-length: 0x5") + BODY + SMUGGLED),
    "a folded header": (400, head(b"x-a: b\r\n content-length: 0", length(BODY)) + BODY),
    "a bare line feed": (400, head(length(BODY)).replace(b"\r\n", b"\n") + BODY),
    "a null in a header": (400, head(b"x-a: b\x00c", length(BODY)) + BODY),
    "no host": (400, head(length(BODY), host=b"x-a: b") + BODY),
    "two hosts": (400, head(b"host: evil.example", length(BODY)) + BODY),
    "an empty host": (400, head(length(BODY), host=b"host:") + BODY),
    "a host with a path": (400, head(length(BODY), host=b"host: localhost/evil") + BODY),
    "another host": (421, head(length(BODY), host=b"host: evil.example") + BODY),
    "an absolute target": (400, head(length(BODY), target=f"http://localhost{GENERATE}") + BODY),
    "a target of stars": (400, head(length(BODY), target="*") + BODY),
    "a broken chunk": (400, head(b"transfer-encoding: chunked") + b"zz\r\n" + BODY),
    "an endless chunk size": (400, head(b"transfer-encoding: chunked") + b"f" * 40 + b"\r\n"),
    "an upgrade": (501, head(b"connection: upgrade", b"upgrade: websocket", b"content-length: 0")),
    "an older version": (505, head(length(BODY)).replace(b"HTTP/1.1", b"HTTP/1.0") + BODY),
    "no version": (400, b"GET /\r\n\r\n"),
    "the preface of another one": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "tls": (400, bytes.fromhex("1603010200010001fc0303") + bytes(300)),
    "many headers": (431, head(*[b"x-%d: y" % at for at in range(200)], length(BODY)) + BODY),
    "one long header": (431, head(b"x-a: " + b"y" * 200_000, length(BODY)) + BODY),
    "a long target": (400, head(length(BODY), target=GENERATE + "?" + "x" * 9_000) + BODY),
}


@pytest.mark.parametrize("vector", VECTORS)
def test_what_could_be_read_in_two_ways_is_refused_with_its_connection(served: Served, vector: str) -> None:
    status, sent = VECTORS[vector]
    before = asked(served)
    with Raw(served.base_url) as raw:
        raw.send(sent)
        told = raw.rest()

    assert told.startswith(b"HTTP/1.1 %d " % status), told[:200]
    assert told.count(b"HTTP/1.1") == 1
    assert b'"domain":"weighlock"' in told
    assert asked(served) == before


def test_two_requests_in_one_go_are_answered_in_order_and_no_third(served: Served) -> None:
    one = head(length(BODY)) + BODY
    before = asked(served)
    with Raw(served.base_url) as raw:
        raw.send(one + one + b"GARBAGE\r\n\r\n")
        told = raw.rest()

    assert b"Refused" not in told  # what came before the garbage may be broken off with it, and nothing is mixed in
    assert asked(served) <= before + 2


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"POST ", head(length(BODY))[:-2]], ids=["nothing", "a word", "no end"])
def test_a_head_that_comes_too_slowly_ends_its_connection(served: Served, sent: bytes) -> None:
    begun = time.monotonic()
    with Raw(served.base_url) as raw:
        raw.send(sent)
        told = raw.rest()

    assert 0.5 < time.monotonic() - begun < 5
    assert told.startswith(b"HTTP/1.1 408") or (not told and not sent)


@pytest.mark.slow
def test_a_head_a_byte_at_a_time_has_no_more_time(served: Served) -> None:
    begun = time.monotonic()
    with Raw(served.base_url) as raw:
        for byte in head(length(BODY)):
            raw.send(bytes([byte]))
            time.sleep(0.02)
            if time.monotonic() - begun > 2:
                break
        assert raw.rest().startswith((b"HTTP/1.1 408", b""))

    assert time.monotonic() - begun < 6


@pytest.mark.slow
def test_a_body_that_stops_ends_its_connection(served: Served) -> None:
    begun = time.monotonic()
    with Raw(served.base_url) as raw:
        raw.send(head(length(BODY)) + BODY[:5])
        told = raw.rest()

    assert told.startswith(b"HTTP/1.1 408")
    assert b"BODY_TOO_SLOW" in told
    assert time.monotonic() - begun < 7


def test_behind_a_refusal_the_rest_of_its_body_is_no_request(tmp_path: Path, served: Served) -> None:
    yaml, keys = client_yaml(app="tenant: acme")
    with serving(tmp_path, served.emulator, f"default: {{model: {MODEL}}}\nservice: {{clients: {yaml}}}\n") as closed:
        before = asked(served)
        key = b"x-goog-api-key: " + keys["app"].encode()
        within = head(key, length(BODY)) + BODY
        with Raw(closed.base_url) as raw:
            raw.send(head(length(within)) + within + head(key, length(BODY), b"connection: close") + BODY)
            told = raw.rest()

    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"403", b"200"]
    assert asked(served) == before + 1


def test_a_body_that_is_too_large_is_refused_by_what_it_declares(served: Served) -> None:
    with Raw(served.base_url) as raw:
        raw.send(head(b"content-length: 999999999999") + BODY)
        told = raw.socket.recv(4096)

    assert told.startswith(b"HTTP/1.1 413")


def test_a_chunked_body_is_read_and_bounded(tmp_path: Path, served: Served) -> None:
    yaml = f"default: {{model: {MODEL}}}\nservice: {{max: {{body: 10KB}}}}\n"
    whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    with serving(tmp_path, served.emulator, yaml) as small:
        with Raw(small.base_url) as raw:
            raw.send(head(b"transfer-encoding: chunked", b"connection: close") + whole)
            assert raw.rest().startswith(b"HTTP/1.1 200")
        with Raw(small.base_url) as raw:
            raw.send(head(b"transfer-encoding: chunked", b"connection: close"))
            for _ in range(20):
                raw.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
            assert raw.socket.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_key_nobody_has_is_refused_before_the_body_is_read(tmp_path: Path, served: Served) -> None:
    yaml, _ = client_yaml(app="tenant: acme")
    with serving(tmp_path, served.emulator, f"default: {{model: {MODEL}}}\nservice: {{clients: {yaml}}}\n") as closed:
        with Raw(closed.base_url) as raw:
            raw.send(head(b"content-length: 50000000", b"expect: 100-continue"))
            told = raw.socket.recv(4096)
        assert told.startswith(b"HTTP/1.1 403")
        with Raw(closed.base_url) as raw:
            raw.send(head(b"content-length: 50000000"))
            told = raw.socket.recv(4096)
            for _ in range(200):  # what comes on all the same is not taken in forever
                raw.send(bytes(65_536))
        assert told.startswith(b"HTTP/1.1 403")


def test_a_key_that_is_good_is_told_to_go_on(tmp_path: Path, served: Served) -> None:
    with Raw(served.base_url) as raw:
        raw.send(head(length(BODY), b"expect: 100-continue", b"connection: close"))
        assert raw.socket.recv(4096).startswith(b"HTTP/1.1 100")
        raw.send(BODY)
        assert raw.rest().startswith(b"HTTP/1.1 200")


def test_every_connection_sends_at_once(served: Served) -> None:
    """Without TCP_NODELAY a call would take 40 ms."""
    took = []
    for _ in range(20):
        begun = time.perf_counter()
        served.ask(GENERATE, "hi")
        took.append(time.perf_counter() - begun)

    assert sorted(took)[10] < 0.035


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8080"])
def test_names_of_this_machine_are_answered_to(served: Served, name: str) -> None:
    with Raw(served.base_url) as raw:
        raw.send(head(length(BODY), b"connection: close", host=b"host: " + name.encode()) + BODY)
        assert raw.rest().startswith(b"HTTP/1.1 200")


def test_named_hosts_are_answered_to(tmp_path: Path, served: Served) -> None:
    yaml = f"default: {{model: {MODEL}}}\nservice: {{hosts: [weighlock.internal, '*.acme.example']}}\n"
    with serving(tmp_path, served.emulator, yaml) as one:
        for name, status in {
            "weighlock.internal": 200,
            "a.acme.example": 200,
            "acme.example": 421,
            "evil": 421,
        }.items():
            assert one.ask(GENERATE, "hi", headers={"host": name}).status_code == status
