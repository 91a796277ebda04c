"""Deed by deed: what one tenant does leaves another's file, copy and row as they were, and shows him none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulated import FLASH, at, user
from fake_io import FACES
from integration.test_repair import generate, parsed, uris
from referenced import KEY, PNG, Bench, medium
from weighlock.emulator import Emulator
from weighlock.errors import FileProcessingFailed, ReferenceUnrecoverable, ServiceRefused, StorageFull
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.errors import refusal
from weighlock.planning.counting import Form
from weighlock.request import Request
from weighlock.uploads.copies import Copies
from weighlock.uploads.policy import DeleteRemote, UploadPolicy
from weighlock.uploads.references import Reference
from weighlock.uploads.repair import freshened, mended, repaired
from weighlock.uploads.upkeep import Chosen, purge

BYTES = b"a film of one tenant" * 50
MINE, OTHERS = "a", "b"


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture(params=FACES, ids=["sync", "async"])
def bench(request: pytest.FixtureRequest, running: Emulator, tmp_path: Path) -> Iterator[Bench]:
    running.reset()
    running.accounts.of_key(KEY).storage_bytes = 20_000_000_000
    made = Bench(face=request.param, emulator=running, folder=tmp_path)
    yield made
    made.registry.close()


@pytest.fixture
def mine(bench: Bench) -> Reference:
    """One tenant's file, not used for an hour."""
    found: Reference = bench.ensure(medium(BYTES), tenant=MINE)
    bench.advance(3600)
    return found


def naming(mine: Reference) -> Request:
    return parsed(user("what is it?", at(mine.uri, PNG)))


# ---- what another tenant may do


def uploads_the_same(bench: Bench, mine: Reference) -> str:
    return f"{bench.ensure(medium(BYTES), tenant=OTHERS)}"


def renews_his_own(bench: Bench, mine: Reference) -> str:
    bench.ensure(medium(BYTES), tenant=OTHERS)
    (own,) = bench.registry.entries(bench.clock.now(), tenant=OTHERS)
    return f"{bench.run(lambda references: references.renewed(own, beyond=1))}"


def sends_what_cannot_be_read(bench: Bench, mine: Reference) -> str:
    bench.emulator.files.processing_s, bench.emulator.files.fail_next = 0.0, "no video track"
    with pytest.raises(FileProcessingFailed) as failed:
        bench.ensure(medium(BYTES), tenant=OTHERS, mime="video/mp4")
    return f"{failed.value}"


def deletes_after_a_request(bench: Bench, mine: Reference) -> str:
    bench.policy = UploadPolicy(delete_remote=DeleteRemote.AFTER_REQUEST)
    own = bench.ensure(medium(BYTES), tenant=OTHERS)
    bench.run(lambda references: references.release([own]))
    return f"{own}"


def fills_the_quota(bench: Bench, mine: Reference) -> str:
    bench.policy = UploadPolicy(quota_bytes=len(BYTES) + 10)
    with pytest.raises(StorageFull) as full:
        bench.ensure(medium(BYTES), tenant=OTHERS)
    return f"{full.value}"


def fills_the_project(bench: Bench, mine: Reference) -> str:
    bench.emulator.accounts.of_key(KEY).storage_bytes = len(BYTES) + 10
    with pytest.raises(StorageFull) as full:
        bench.ensure(medium(BYTES), tenant=OTHERS)
    return f"{full.value}"


def fills_the_copies(bench: Bench, mine: Reference) -> str:
    bench.policy = UploadPolicy(copies_cap_bytes=len(BYTES) + 10)
    return f"{bench.ensure(medium(BYTES[::-1]), tenant=OTHERS)}"


def purges_his_own(bench: Bench, mine: Reference) -> str:
    bench.ensure(medium(BYTES), tenant=OTHERS)
    now, copies = bench.clock.now(), Copies(bench.folder / "copies", bench.registry, bench.policy)
    (own,) = Chosen(sha256=mine.key.sha256, tenant=OTHERS).of(bench.registry.entries(now), now)
    bench.run(lambda references: purge(bench.registry, copies, own, now, references, remote=True))
    assert bench.registry.entries(now, tenant=OTHERS) == []
    return ""


def names_it(bench: Bench, mine: Reference, send: Callable[..., Any] | None = None, **how: Any) -> str:
    asked = len(bench.emulator.requests)
    with pytest.raises(ReferenceUnrecoverable) as refused:
        bench.run(
            lambda references: repaired(
                references, OTHERS, naming(mine), send or (lambda sent: generate(references, bench, sent)), **how
            )
        )
    assert len(bench.emulator.requests) == asked
    return f"{refused.value}"


def names_it_and_has_the_bytes(bench: Bench, mine: Reference) -> str:
    return names_it(bench, mine, known={mine.name: medium(BYTES)})


def counts_it(bench: Bench, mine: Reference) -> str:
    async def count(sent: Request) -> Any:
        raise AssertionError("it is asked about")

    return names_it(bench, mine, count)


def freshens_it(bench: Bench, mine: Reference) -> str:
    with pytest.raises(ReferenceUnrecoverable) as refused:
        bench.run(lambda references: freshened(references, OTHERS, naming(mine)))
    return f"{refused.value}"


def has_it_refused(bench: Bench, mine: Reference) -> str:
    words = (
        b'{"error": {"message": "access the File %s or it may not exist"}}' % mine.name.removeprefix("files/").encode()
    )
    refused = refusal(403, {}, words, bench.clock.now())
    with pytest.raises((ReferenceUnrecoverable, ServiceRefused)) as told:
        bench.run(lambda references: mended(references, OTHERS, naming(mine), refused))
    return f"{told.value}"


DEEDS = (
    uploads_the_same, renews_his_own, sends_what_cannot_be_read, deletes_after_a_request, fills_the_quota,
    fills_the_project, fills_the_copies, purges_his_own, names_it, names_it_and_has_the_bytes, counts_it, freshens_it,
    has_it_refused,
)  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_what_another_tenant_does_leaves_it_alone_and_unseen(
    bench: Bench, mine: Reference, deed: Callable[[Bench, Reference], str]
) -> None:
    def known() -> Any:
        (entry,) = bench.registry.entries(bench.clock.now(), tenant=MINE)
        return replace(entry, ahead_s=0.0)

    copy = Copies(bench.folder / "copies", bench.registry, bench.policy).path(mine.key)
    before = known()

    told = deed(bench, mine)

    assert known() == before
    assert copy.read_bytes() == BYTES
    assert mine.name in {f"files/{file.name}" for file in bench.emulator.files}
    if deed.__name__ not in ("names_it", "names_it_and_has_the_bytes", "counts_it", "freshens_it", "has_it_refused"):
        assert mine.name not in told  # else he said it himself
    with suppress(StorageFull):
        assert bench.ensure(medium(BYTES), tenant=OTHERS).uri != mine.uri


def test_counting_what_another_tenant_counted_is_asked_anew(bench: Bench, mine: Reference) -> None:
    async def flow(references: Any) -> None:
        counter = TokenCounter(bench.service(references.io))
        for tenant in (MINE, OTHERS, MINE):
            await counter.count(naming(mine), FLASH, Form.WHOLE, tenant=tenant, timeout_s=10)

    bench.run(flow)

    assert len(bench.emulator.requests.of("count")) == 2
    assert uris(naming(mine)) == [mine.uri]
