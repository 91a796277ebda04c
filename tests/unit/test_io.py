"""One table of behaviour, through both faces."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from fake_io import FACES, Face, FakeClock
from weighlock.errors import FileNotReady, ServiceUnreachable, UnreadableSource
from weighlock.io import HttpRequest, Io, Pieces, SyncIo, run

CANARY = "canary-4711"
each_face = pytest.mark.parametrize("face", FACES)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path.startswith("/slow"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(20):
                time.sleep(0.05)
                self.wfile.write(b"x")
                self.wfile.flush()
        elif self.path.startswith("/moved"):
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.startswith("/gone"):
            self.close_connection = True
        else:
            self.send_response(200)
            self.send_header("X-Secret", CANARY)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.daemon_threads = True
    threading.Thread(target=service.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{service.server_address[1]}"
    service.shutdown()
    service.server_close()


def post(url: str, body: bytes | Pieces = b"", timeout_s: float = 5.0) -> HttpRequest:
    length = {"content-length": str(body.size_bytes)} if isinstance(body, Pieces) else {}
    return HttpRequest(method="POST", url=url, headers={"x-key": CANARY, **length}, body=body, timeout_s=timeout_s)


@each_face
def test_an_answer_is_its_status_headers_and_as_much_of_the_body_as_is_wanted(face: Face, server: str) -> None:
    async def flow(io: Io) -> tuple[int, str, bytes, bytes]:
        async with io.send(post(server, b"a" * 200_000)) as answer:
            whole = b"".join([piece async for piece in answer.chunks()])
        async with io.send(post(server, b"abcdef")) as answer:
            return answer.status, answer.headers["x-secret"], whole, await answer.read(4)

    assert face(flow, FakeClock()) == (200, CANARY, b"a" * 200_000, b"abcd")


@each_face
def test_a_body_is_read_piece_by_piece_while_it_is_sent(face: Face, server: str) -> None:
    whole, read = bytes(range(256)) * 8_000, list[int]()

    def read_at(offset: int, length: int) -> bytes:
        read.append(length)
        return whole[offset : offset + length]

    async def flow(io: Io) -> bytes:
        async with io.send(post(server, Pieces(size_bytes=len(whole), read_at=read_at))) as answer:
            return await answer.read(len(whole) + 1)

    assert face(flow, FakeClock()) == whole
    assert sum(read) == len(whole)
    assert max(read) <= 512 * 1024


@each_face
def test_what_goes_wrong_with_reading_a_body_is_told_as_it_is(face: Face, server: str) -> None:
    def read_at(offset: int, length: int) -> bytes:
        raise UnreadableSource("the file changed while it was read")

    async def flow(io: Io) -> None:
        async with io.send(post(server, Pieces(size_bytes=4, read_at=read_at))):
            pass

    with pytest.raises(UnreadableSource, match="changed"):
        face(flow, FakeClock())


@each_face
def test_a_redirect_is_an_answer(face: Face, server: str) -> None:
    async def flow(io: Io) -> int:
        async with io.send(post(f"{server}/moved")) as answer:
            return answer.status

    assert face(flow, FakeClock()) == 307


@each_face
@pytest.mark.parametrize("path", ["/slow", "/gone"])
def test_an_answer_that_trickles_or_breaks_off_is_unreachable_and_names_no_secret(
    face: Face, server: str, path: str
) -> None:
    async def flow(io: Io) -> bytes:
        async with io.send(post(f"{server}{path}?key={CANARY}", timeout_s=0.2)) as answer:
            return await answer.read(10_000)

    with pytest.raises(ServiceUnreachable) as caught:
        face(flow, FakeClock())

    assert caught.value.figures == {"timed_out": path == "/slow", "unsent": False}
    assert CANARY not in f"{caught.value} {caught.value.as_problem()} {caught.value.__cause__}"


@each_face
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "nowhere://x", "http://[bad/"])
def test_what_never_left_says_so(face: Face, url: str) -> None:
    async def flow(io: Io) -> None:
        async with io.send(post(url)):
            pass

    with pytest.raises(ServiceUnreachable) as caught:
        face(flow, FakeClock())

    assert caught.value.figures["unsent"] is (":1/" in url or "[" in url)


@each_face
def test_our_requests_are_logged_by_nobody_and_others_still_are(
    face: Face, server: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def flow(io: Io) -> None:
        async with io.send(post(f"{server}/?upload_id={CANARY}")) as answer:
            await answer.read(100)

    with caplog.at_level(logging.DEBUG):
        face(flow, FakeClock())
        ours = [record for record in caplog.records if record.name.startswith("http") and "close" not in record.message]
        httpx2.post(server)

    assert ours == []
    assert [record for record in caplog.records if record.name == "httpx2"]


@each_face
def test_results_are_gathered_in_order_and_the_first_error_waits_for_the_others(face: Face) -> None:
    ended: list[int] = []

    async def one(io: Io, number: int) -> int:
        await io.call(time.sleep, 0.002 * (5 - number))
        ended.append(number)
        if number == 1:
            raise ValueError(number)
        return number

    async def gathered(io: Io, numbers: list[int]) -> list[int]:
        return await io.gather([one(io, number) for number in numbers], at_most=3)

    assert face(lambda io: gathered(io, [0, 2, 3, 4]), FakeClock()) == [0, 2, 3, 4]
    ended.clear()
    with pytest.raises(ValueError, match="1"):
        face(lambda io: gathered(io, [0, 1, 2, 3]), FakeClock())
    assert sorted(ended) == [0, 1, 2, 3]


def test_blocking_flows_overlap_when_gathered() -> None:
    together = threading.Barrier(4, timeout=5)

    async def flow(io: Io) -> list[int]:
        async def one() -> int:
            return await io.call(together.wait)

        return await io.gather([one() for _ in range(4)])

    with SyncIo() as io:
        assert sorted(run(flow(io))) == [0, 1, 2, 3]


def test_a_flow_that_waits_cannot_be_run_without_a_loop() -> None:
    async def flow() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="SyncIo"):
        run(flow())


def test_one_async_io_serves_loop_after_loop(server: str) -> None:
    from weighlock.io import AsyncIo

    io = AsyncIo()

    async def flow() -> int:
        async with io, io.send(post(server)) as answer:
            return answer.status

    assert [asyncio.run(flow()), asyncio.run(flow())] == [200, 200]


def test_a_request_shows_neither_address_nor_key() -> None:
    assert CANARY not in repr(post(f"http://x/?key={CANARY}", CANARY.encode()))


def test_a_file_that_is_not_ready_is_a_timeout() -> None:
    error = FileNotReady("still PROCESSING", waited_s=3)

    assert isinstance(error, TimeoutError)
    assert (str(error), error.figures) == ("still PROCESSING", {"waited_s": 3})
