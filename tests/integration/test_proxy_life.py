"""What can go wrong between a client, the proxy and the service: whatever happens, the books are right afterwards."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import media
from emulated import at, inline, user
from serving import GENERATE, MODEL, STREAM, Served, serving
from weighlock.budgeting import store_of
from weighlock.budgets.hold import PROMPT_TOKENS
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer

DAY = f"default: {{model: {MODEL}, windows: {{day: {{prompt_tokens: 1000000}}}}, output_tokens: {{expected: 50}}}}\n"
CANCEL, DRAIN = (f"{DAY}service: {{on_client_gone: {word}}}\n" for word in ("cancel", "drain"))


def books(served: Served) -> tuple[int, int]:
    """Prompt tokens spent and held of the day."""
    with closing(store_of(served.settings)) as store:
        counters = [*store.counters().values()]
    return tuple(sum(one[at].get(PROMPT_TOKENS, 0) for one in counters) for at in (0, 1))  # type: ignore[return-value]


def until(what: Callable[[], Any]) -> Any:
    end = time.monotonic() + 10
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


class Raw:
    """A client that leaves when it wants to."""

    def __init__(self, served: Served, path: str, text: str = "tell") -> None:
        parts = urlsplit(served.base_url)
        body = json.dumps({"contents": [user(text)]}).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 0))
        self.socket.sendall(head.encode() + body)

    def read_until(self, word: bytes) -> bytes:
        read = b""
        while word not in read:
            piece = self.socket.recv(4096)
            assert piece, read
            read += piece
        return read

    def leave(self) -> None:
        self.socket.close()


def slow(seconds: float = 0.3) -> Answer:
    return Answer(text="word " * 50, after_s=seconds)


@pytest.mark.parametrize("path", [GENERATE, STREAM + "?alt=sse"])
def test_who_leaves_is_charged_what_the_service_bills_for_the_answer_nobody_read(
    tmp_path: Path, emulator: Emulator, path: str
) -> None:
    with serving(tmp_path, emulator, DRAIN) as served:
        emulator.script.queue(slow())
        client = Raw(served, path)
        until(lambda: len(emulator.requests))
        client.leave()
        (event,) = until(lambda: served.events)

        assert event.billed is not None
        assert not event.billed.estimated
        assert books(served) == (event.billed.prompt, 0)


@pytest.mark.parametrize("path", [GENERATE, STREAM + "?alt=sse"])
def test_what_is_broken_off_for_who_left_is_charged_as_it_was_held(
    tmp_path: Path, emulator: Emulator, path: str
) -> None:
    with serving(tmp_path, emulator, CANCEL) as served:
        emulator.script.queue(slow(5))
        client = Raw(served, path)
        until(lambda: len(emulator.requests))
        client.leave()
        (event,) = until(lambda: served.events)

        assert event.billed is not None
        assert event.billed.estimated
        spent, held = books(served)
        assert spent > 0
        assert held == 0


def test_who_leaves_in_the_middle_of_a_stream_that_is_broken_off(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, CANCEL) as served:
        emulator.script.queue(Answer(text="word " * 400, pause_s=5))
        client = Raw(served, STREAM + "?alt=sse")
        client.read_until(b"data: ")
        client.leave()
        (event,) = until(lambda: served.events)

        assert event.billed is not None
        assert books(served)[0] > 0
        assert books(served)[1] == 0


@pytest.mark.parametrize("fault", ["return-reset-connection", "return-broken-stream"])
def test_a_service_that_breaks_off_may_have_billed(tmp_path: Path, emulator: Emulator, fault: str) -> None:
    with serving(tmp_path, emulator, DAY) as served:
        emulator.faults.set(fault, on="generate")
        answer = served.ask(GENERATE, "hi")

        assert answer.status_code == 502
        assert answer.json()["error"]["details"][0]["reason"] == "SERVICE_UNREACHABLE"
        (event,) = served.events
        assert event.billed is not None
        assert event.billed.estimated
        assert books(served)[1] == 0


def test_a_stream_that_breaks_off_ends_with_an_error_its_readers_understand(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, DAY) as served:
        emulator.script.queue("word " * 4_000)
        emulator.faults.set("return-broken-stream-after-4K", on="stream")
        with served.http.stream("POST", STREAM + "?alt=sse", json={"contents": [user("hi")]}) as answer:
            events = [one for one in b"".join(answer.iter_bytes()).split(b"\r\n\r\n") if one]

        assert events[-1].startswith(b'data: {"error":')
        assert json.loads(events[-1][6:])["error"]["code"] == 502
        until(lambda: served.events)
        assert books(served)[0] > 0
        assert books(served)[1] == 0


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_the_service_refuses_costs_nothing_and_passes_as_it_is(
    tmp_path: Path, emulator: Emulator, status: int
) -> None:
    with serving(tmp_path, emulator, DAY) as served:
        emulator.faults.set(f"return-{status}", on="generate")
        answer = served.ask(GENERATE, "hi")

        assert answer.status_code == status
        assert answer.json()["error"]["code"] == status
        assert answer.headers["x-weighlock-decision"] == served.events[0].id
        assert books(served) == (0, 0)


def test_a_service_nobody_finds_is_told_and_costs_nothing(tmp_path: Path, emulator: Emulator) -> None:
    with serving(
        tmp_path,
        emulator,
        DAY.replace(
            "default",
            "accounts: {a: {backend: developer, api_key_file: upstream.key, base_url: 'http://127.0.0.1:9'}}\ndefault",
            1,
        ),
    ) as served:
        answer = served.ask(GENERATE, "hi")

        assert answer.status_code == 502
        assert books(served) == (0, 0)


def test_a_file_the_line_uploaded_is_uploaded_again_when_it_is_gone(tmp_path: Path, emulator: Emulator) -> None:
    yaml = DAY + "uploads: {inline_below: {developer: 1KB}}\n"
    with serving(tmp_path, emulator, yaml) as served:
        shot = inline(media.picture((640, 480)), "image/png")
        assert served.ask(GENERATE, "first", shot).status_code == 200
        emulator.clock.advance(72 * 3600)
        answer = served.ask(GENERATE, "again", shot)

        assert answer.status_code == 200, answer.text
        assert "image=" in answer.headers["x-weighlock-billed"]


def test_a_file_of_somebody_else_that_is_gone_passes_as_the_service_says_it(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, DAY) as served:
        uri = "https://generativelanguage.googleapis.com/v1beta/files/gone123"
        answer = served.ask(GENERATE, "see", at(uri, "video/mp4"))

        assert answer.status_code == 403
        assert books(served)[1] == 0


def test_a_client_that_reads_nothing_is_left_and_its_answer_charged(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, f"{DAY}service: {{deadlines: {{idle: 1s}}}}\n") as served:
        emulator.script.queue("word " * 2_000_000)
        client = Raw(served, STREAM + "?alt=sse")
        (event,) = until(lambda: served.events)
        client.leave()

        assert event.billed is not None
        assert not event.billed.estimated
        assert books(served)[1] == 0
