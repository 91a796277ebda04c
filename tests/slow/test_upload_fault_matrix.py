"""500 uploads, each struck by faults from a seed: ours, and the very same ones through the SDK's own `files.upload`."""

from __future__ import annotations

import hashlib
import io
import itertools
import random
from collections import Counter
from collections.abc import Iterator

import httpx2
import pytest
from google import genai
from google.genai import _api_client, errors, types

from fake_io import FACES
from integration.test_resumable_upload import GRANULE, Memory, cargo, noise, stored, uploaded
from weighlock.emulator import Emulator

pytestmark = pytest.mark.slow

RUNS = 500
ANYWHERE = ["return-503", "return-408", "return-reset-connection", "return-503-after-commit", "lose-response"]
SOMEWHERE = ["partial-commit", "lose-final-response", "session-gone", "return-corrupted-data"]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


def struck(emulator: Emulator, seed: int) -> bytes:
    """Puts a seed's faults in force, all of which pass; and what is to be uploaded through them."""
    emulator.reset()
    chance = random.Random(seed)
    emulator.faults.seed = seed
    for fault in chance.sample(ANYWHERE, 2):
        emulator.faults.set(fault, on="upload", rate=0.3, count=6, after_bytes=chance.choice([None, "random"]))
    fault = chance.choice(SOMEWHERE)
    where = "upload.chunk" if fault == "return-corrupted-data" else ""
    emulator.faults.set(fault, on=where, rate=0.3, count=1)
    return noise(chance.randint(1, 8 * GRANULE), seed)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


BEGINS_AGAIN = ("session-gone", "return-corrupted-data")
"""What the service forgot, or has otherwise than it was sent, is sent from its first byte."""


def happened(emulator: Emulator, *names: str) -> int:
    return sum(fault.happened for fault in emulator.faults if not names or fault.name in names)


class Sent:
    """What was read to be sent, upload by upload."""

    def __init__(self, emulator: Emulator, size: int) -> None:
        self.emulator, self.size = emulator, size
        self.chunks: dict[int, list[range]] = {}

    def __call__(self, offset: int) -> None:
        begun = sum(one.status == 200 for one in self.emulator.requests.of("upload.start"))
        end = min(offset - offset % GRANULE + GRANULE, self.size)
        self.chunks.setdefault(begun, []).append(range(offset, end))

    @property
    def total(self) -> int:
        return sum(map(len, itertools.chain(*self.chunks.values())))

    @property
    def again(self) -> int:
        """Bytes that had been sent before in the same upload: each begins at 0 and leaves no hole."""
        return self.total - sum(max(one.stop for one in chunks) for chunks in self.chunks.values())


def test_every_run_of_ours_ends_whole_and_sends_no_more_again_than_a_chunk_a_fault(emulator: Emulator) -> None:
    sent_again = begun_again = met = 0
    for seed in range(RUNS):
        data = struck(emulator, seed)
        sent = Sent(emulator, len(data))

        file = uploaded(FACES[seed % 2], emulator, cargo(data, Memory(data, sent)), chunk_bytes=GRANULE)

        assert file.sha256 == sha256(data), seed
        assert stored(emulator) == [file.sha256], seed
        bodies = [one for name in ("chunk", "finalize") for one in emulator.requests.of(f"upload.{name}")]
        assert sent.again <= GRANULE * sum(one.fault is not None for one in bodies), seed
        assert len(sent.chunks) <= 1 + happened(emulator, *BEGINS_AGAIN), seed
        assert sum(one.body_bytes for one in bodies) <= sent.total, seed  # nothing below us sends anything again
        sent_again += sent.again
        begun_again += len(sent.chunks) - 1
        met += happened(emulator)
    print(
        f"\nweighlock: {RUNS} of {RUNS} uploads whole; {met} faults, {sent_again / GRANULE:,.0f} chunks of 256 KiB "
        f"sent again, {begun_again} uploads from their beginning; none lost, doubled or corrupt"
    )


def test_the_same_runs_through_the_sdk_beside_it(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told, not held against it: its chunks are made as small as ours, its waits nothing, its start is tried again."""
    monkeypatch.setattr(_api_client, "CHUNK_SIZE", GRANULE)
    monkeypatch.setattr(_api_client, "INITIAL_RETRY_DELAY", 0)
    retries = types.HttpRetryOptions(attempts=8, initial_delay=0.001, max_delay=0.001)
    options = types.HttpOptions(base_url=emulator.base_url, retry_options=retries)
    client = genai.Client(api_key="k", http_options=options)
    ended: Counter[str] = Counter()
    for seed in range(RUNS):
        ended[_through_the_sdk(client, emulator, options, struck(emulator, seed))] += 1
    client.close()

    shares = ", ".join(f"{count} {how} ({count / RUNS:.0%})" for how, count in ended.most_common())
    print(f"\ngoogle-genai {genai.__version__} files.upload, the same {RUNS} runs: {shares}")
    assert sum(ended.values()) == RUNS


def _through_the_sdk(client: genai.Client, emulator: Emulator, options: types.HttpOptions, data: bytes) -> str:
    config = types.UploadFileConfig(mime_type="application/pdf", http_options=options)
    told = "told as done"
    try:
        client.files.upload(file=io.BytesIO(data), config=config)
    except (errors.APIError, httpx2.HTTPError, ValueError, KeyError):
        told = "raised"
    there = stored(emulator)
    if there == [sha256(data)]:
        return f"whole and {told}"
    return f"{'corrupt or doubled' if there else 'lost'} and {told}"
