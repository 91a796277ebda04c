"""What one tenant uploads, no other uses, sees or deletes, whatever happens to both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulated import Wire, at, user
from fake_io import FACES
from integration.test_repair import called_with, parsed
from referenced import KEY, PNG, Bench, medium
from weighlock.emulator import Emulator
from weighlock.errors import ReferenceUnrecoverable, StorageFull
from weighlock.uploads.policy import DeleteRemote, UploadPolicy
from weighlock.uploads.references import Reference

TENANTS = ("a", "b", "c")
CONTENTS = tuple(bytes([at]) * 1000 for at in range(3))
deeds = st.one_of(
    st.tuples(st.just("ensure"), st.sampled_from(TENANTS), st.integers(0, len(CONTENTS) - 1)),
    st.tuples(st.just("call"), st.sampled_from(TENANTS), st.integers(0, 9)),
    st.tuples(st.just("release"), st.sampled_from(TENANTS), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.just(""), st.sampled_from([1, 3600, 100_000, 200_000])),
    st.tuples(st.just("room"), st.just(""), st.sampled_from([3_500, 5_500, 10_000])),
)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


class House:
    """Three tenants of one account, and a file that was there before any of them."""

    def __init__(self, emulator: Emulator, folder: Path, policy: UploadPolicy) -> None:
        emulator.reset()
        self.project = emulator.accounts.of_key(KEY)
        self.project.storage_bytes = 10_000
        self.bench = Bench(face=FACES[0], emulator=emulator, folder=folder, policy=policy)
        wire = Wire(emulator, KEY)
        self.strangers = wire.upload(b"s" * 1000)["name"]
        wire.close()
        self.owners: dict[str, tuple[str, int]] = {}
        self.given: list[tuple[str, Reference]] = []

    def run(self, deed: str, tenant: str, number: int) -> None:
        before = len(self.bench.emulator.requests.of("files.delete"))
        getattr(self, deed)(tenant, number)
        for one in self.bench.emulator.requests.of("files.delete")[before:]:
            assert self.owners[one.path.partition("/v1beta/")[2]][0] == tenant

    def ensure(self, tenant: str, number: int) -> None:
        try:
            found = self.bench.ensure(medium(CONTENTS[number]), tenant=tenant)
        except StorageFull:
            return
        assert found.reused is (found.name in self.owners)
        assert self.owners.setdefault(found.name, (tenant, number)) == (tenant, number)
        self.given.append((tenant, found))

    def call(self, tenant: str, number: int) -> None:
        """A request that refers to what anybody was given."""
        if not self.given:
            return
        owner, reference = self.given[number % len(self.given)]
        before = len(self.bench.emulator.requests)
        request = parsed(user("look", at(reference.uri, PNG)))
        try:
            sent = called_with(self.bench, request, tenant)
        except (ReferenceUnrecoverable, StorageFull) as error:
            asked, told = len(self.bench.emulator.requests) - before, f"{error} {error.figures}"
            assert owner == tenant or not (asked or reference.key.sha256 in told)  # others are no error
            return
        assert owner == tenant
        for name in (one.source.text.rpartition("/v1beta/")[2] for _, one, _ in sent.media()):  # type: ignore[union-attr]
            assert self.owners.setdefault(name, self.owners[reference.name]) == self.owners[reference.name]

    def release(self, tenant: str, number: int) -> None:
        own = [one for owner, one in self.given if owner == tenant]
        if own:
            self.bench.run(lambda references: references.release([own[number % len(own)]]))

    def wait(self, _: str, seconds: float) -> None:
        self.bench.advance(seconds)

    def room(self, _: str, size: int) -> None:
        self.project.storage_bytes = size


@pytest.mark.parametrize("delete", DeleteRemote)
@given(done=st.lists(deeds, max_size=14))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_tenants_do_each_keeps_to_his_own(
    emulator: Emulator, delete: DeleteRemote, done: list[tuple[str, str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        house = House(emulator, Path(folder), UploadPolicy(delete_remote=delete, quota_bytes=6_000))
        for deed in done:
            house.run(*deed)

        now = house.bench.clock.now()
        for tenant in TENANTS:
            assert {one.key.tenant for one in house.bench.registry.entries(now, tenant=tenant)} <= {tenant}
        shelf = {f"files/{one.name}" for one in emulator.files}
        assert house.strangers in shelf or house.bench.clock.passed_s >= 2 * 86_400
        house.bench.registry.close()
