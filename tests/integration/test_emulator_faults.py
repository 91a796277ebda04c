"""Faults by name, at a rate, and the same again from the same seed."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import httpx2
import pytest

from emulated import FLASH, GRANULE, Wire, proves, refusal
from weighlock.emulator import Emulator
from weighlock.errors import InputError

DATA = bytes(range(256)) * 4096
"""1 MiB."""


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    running.faults.seed, running.faults.stall_s = 0, 0.3
    return running


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator)
    yield wire
    wire.close()


def received(wire: Wire, url: str) -> int:
    return int(wire.command(url, "query").headers["x-goog-upload-size-received"])


@proves("return-status")
@pytest.mark.parametrize(("name", "status"), [("return-503", 503), ("return-408", 408), ("return-429", 429)])
def test_a_status_is_answered_so_often_and_no_more(emulator: Emulator, wire: Wire, name: str, status: int) -> None:
    emulator.faults.set(name, count=2)

    assert [wire.generate("hi").status_code for _ in range(3)] == [status, status, 200]


@proves("return-status")
def test_a_status_after_so_much_of_the_body_keeps_that_much(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("return-503-after-256K", on="upload.chunk")
    url = wire.begin(len(DATA))

    answer = wire.command(url, "upload", DATA, 0)

    assert (answer.status_code, "x-goog-upload-status" in answer.headers) == (503, False)
    assert received(wire, url) == GRANULE


@proves("return-reset-connection")
def test_a_reset_connection_is_reset_at_once_or_in_the_middle(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("return-reset-connection", count=1, on="files")
    emulator.faults.set("return-reset-connection-after-512K", count=1, on="upload")
    url, (host, port) = wire.begin(len(DATA)), emulator.base_url.removeprefix("http://").split(":")

    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b"GET /v1/files HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(ConnectionResetError):  # RST, which no orderly end is
            plain.recv(1)
    assert received(wire, url) == 0
    with pytest.raises(httpx2.TransportError):
        wire.command(url, "upload", DATA, 0)
    assert received(wire, url) == 2 * GRANULE
    assert wire.command(url, "upload, finalize", DATA[2 * GRANULE :], 2 * GRANULE).status_code == 200


@proves("return-broken-stream")
def test_a_broken_stream_ends_in_the_middle_of_the_answer(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("return-broken-stream")

    with pytest.raises(httpx2.TransportError):
        wire.generate("hi")
    came = b""

    def read() -> None:
        nonlocal came
        body = {"contents": [{"parts": [{"text": "hi"}]}]}
        with wire.http.stream("POST", f"/v1beta/models/{FLASH}:streamGenerateContent?alt=sse", json=body) as answer:
            for piece in answer.iter_bytes():
                came += piece

    with pytest.raises(httpx2.TransportError):
        read()
    assert came.startswith(b"data: {")
    assert not came.endswith(b"\r\n\r\n")


@proves("return-corrupted-data")
def test_corrupted_data_is_stored_wrong_or_answered_wrong(emulator: Emulator, wire: Wire) -> None:
    good = wire.upload(DATA)["sha256Hash"]
    emulator.faults.set("return-corrupted-data", on="upload.finalize generate")

    assert wire.upload(DATA)["sha256Hash"] != good
    with pytest.raises(ValueError, match=r"decode|Expecting"):
        wire.generate("hi").json()


@proves("stall")
def test_a_stall_takes_so_much_and_then_neither_reads_nor_answers(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("stall-at-256KiB", on="upload.chunk", count=1)
    emulator.faults.set("stall-always", on="count", count=1)
    url, began = wire.begin(len(DATA)), time.monotonic()

    with pytest.raises(httpx2.TransportError):
        wire.command(url, "upload", DATA, 0)
    with pytest.raises(httpx2.TransportError):
        wire.count("hi")

    assert time.monotonic() - began >= 0.6
    assert received(wire, url) == GRANULE


@proves("partial-commit")
def test_a_part_of_a_chunk_may_be_kept_and_called_a_success(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("partial-commit-after-256K", count=1)
    url = wire.begin(len(DATA))

    answer = wire.command(url, "upload", DATA, 0)

    assert (answer.status_code, answer.headers["x-goog-upload-status"]) == (200, "active")
    assert received(wire, url) == GRANULE


@proves("return-503-after-commit", "lose-response")
def test_what_is_done_may_be_called_a_failure_or_lost(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("return-503-after-commit", on="upload.chunk", count=1)
    emulator.faults.set("lose-response", on="upload.chunk", count=1)
    url = wire.begin(len(DATA))

    assert wire.command(url, "upload", DATA[:GRANULE], 0).status_code == 503
    with pytest.raises(httpx2.TransportError):
        wire.command(url, "upload", DATA[GRANULE : 2 * GRANULE], GRANULE)
    assert received(wire, url) == 2 * GRANULE


@proves("lose-final-response")
def test_a_lost_final_response_leaves_a_finished_file(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("lose-final-response", count=1)
    url = wire.begin(len(DATA), name="files/lost")

    assert wire.command(url, "upload", DATA[:GRANULE], 0).status_code == 200
    with pytest.raises(httpx2.TransportError):
        wire.command(url, "upload, finalize", DATA[GRANULE:], GRANULE)
    assert wire.command(url, "query").headers["x-goog-upload-status"] == "final"
    assert wire.http.get("/v1beta/files/lost").json()["sizeBytes"] == str(len(DATA))


@proves("session-gone")
def test_a_session_that_is_gone_is_404_for_good(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("session-gone", count=1, skip=1)
    url = wire.begin(len(DATA))

    assert wire.command(url, "upload", DATA[:GRANULE], 0).status_code == 200
    assert wire.command(url, "upload", DATA[GRANULE : 2 * GRANULE], GRANULE).status_code == 404
    assert wire.command(url, "query").status_code == 404


@proves("absurd-retry-delay")
def test_a_429_may_ask_for_an_absurd_delay(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("absurd-retry-delay")

    answer = wire.generate("hi")

    assert refusal(answer)[:2] == (429, "RESOURCE_EXHAUSTED")
    assert answer.headers["retry-after"] == "999999"
    assert answer.json()["error"]["details"][0]["retryDelay"] == "999999s"


@proves("empty-count")
def test_a_count_may_come_back_empty(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("empty-count")

    assert wire.count("hi").json() == {}
    assert wire.generate("hi").status_code == 200


@proves("error-mid-stream")
def test_an_error_may_stand_in_place_of_a_streams_second_event(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("error-mid-stream")
    body = {"contents": [{"parts": [{"text": "hi"}]}]}

    answer = wire.http.post(f"/v1beta/models/{FLASH}:streamGenerateContent?alt=sse", json=body)

    first, second = answer.content.strip().split(b"\r\n\r\n")
    assert json.loads(first.removeprefix(b"data: "))["candidates"]
    assert second.startswith(b'data: {"error":')


def test_the_same_seed_strikes_the_same_requests(emulator: Emulator, wire: Wire) -> None:
    def struck(seed: int) -> list[int]:
        emulator.faults.clear()
        emulator.faults.seed = seed
        emulator.faults.set("return-503", rate=0.4)
        return [wire.count("hi").status_code for _ in range(30)]

    first = struck(7)

    assert struck(7) == first
    assert struck(8) != first
    assert 3 < first.count(503) < 25


def test_a_random_place_is_the_seeds_own(emulator: Emulator, wire: Wire) -> None:
    def kept(seed: int) -> list[int]:
        emulator.faults.clear()
        emulator.faults.seed = seed
        emulator.faults.set("return-reset-connection", on="upload.chunk", after_bytes="random")
        sizes = []
        for _ in range(4):
            url = wire.begin(len(DATA))
            with pytest.raises(httpx2.TransportError):
                wire.command(url, "upload", DATA, 0)
            sizes.append(received(wire, url))
        return sizes

    assert kept(1) == kept(1)
    assert len(set(kept(1) + kept(2))) > 1
    assert all(size % GRANULE == 0 for size in kept(3))


@pytest.mark.parametrize("name", ["return-302", "reset", "stall", "stall-at-256", "return-503-after-256"])
def test_a_fault_nobody_knows_is_refused(emulator: Emulator, name: str) -> None:
    with pytest.raises(InputError, match="there is no fault"):
        emulator.faults.set(name)


def test_what_befell_a_request_is_recorded(emulator: Emulator, wire: Wire) -> None:
    emulator.faults.set("return-reset-connection", on="count", count=1)
    with pytest.raises(httpx2.TransportError):
        wire.count("hi")
    wire.count("hi")

    assert [(one.operation, one.fault, one.status) for one in emulator.requests] == [
        ("count", "return-reset-connection", None),
        ("count", None, 200),
    ]
