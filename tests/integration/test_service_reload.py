"""Settings changed while requests go on: whole or not at all, and nobody notices but by what they say."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from emulated import user
from serving import GENERATE, MODEL, NO_TLS, Served, serving
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer

MEMORY = "state: {store: memory}\n"


def yaml(requests: int = 1000, more: str = "") -> str:
    return f"default: {{model: {MODEL}, mode: enforce, windows: {{day: {{requests: {requests}}}}}}}\n{more}"


def told(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{served.admin_url}/readyz", verify=NO_TLS).json()
    return found


def changed(served: Served, text: str) -> None:
    """Written in one go, as an editor or a mounted configuration does; and taken notice of."""
    before = told(served)
    file = served.settings.files[0]
    head = file.read_text().split("default:")[0]
    (file.parent / "new.yaml").write_text(head + text)
    (file.parent / "new.yaml").rename(file)
    until = time.monotonic() + 10
    while (now := told(served)) == before:
        assert time.monotonic() < until, now
        time.sleep(0.05)


@pytest.mark.parametrize("store", [pytest.param("", marks=pytest.mark.slow), MEMORY])
def test_other_limits_are_in_force_and_what_was_used_stays_used(tmp_path: Path, emulator: Emulator, store: str) -> None:
    with serving(tmp_path, emulator, yaml(more=store)) as served:
        assert [served.ask(GENERATE, "hi").status_code for _ in range(3)] == [200] * 3
        changed(served, yaml(4, store))
        assert [served.ask(GENERATE, "hi").status_code for _ in range(2)] == [200, 429]
        changed(served, yaml(1000, store))
        assert served.ask(GENERATE, "hi").status_code == 200
        metrics = httpx2.get(f"{served.admin_url}/metrics", verify=NO_TLS).text

    assert 'outcome="admitted"} 5.0' in metrics
    assert 'weighlock_budget_used{endpoint="default",unit="requests",window="day"} 5.0' in metrics
    assert "weighlock_config_reload_ok 1.0" in metrics


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", ["default: {", "default: {model: 7, mode: perhaps}\n", "default:\nrules: {overlay: none.toml}\n"]
)
def test_settings_that_are_wrong_change_nothing_and_are_told(tmp_path: Path, emulator: Emulator, wrong: str) -> None:
    with serving(tmp_path, emulator, yaml()) as served:
        changed(served, wrong)
        assert served.ask(GENERATE, "hi").status_code == 200
        problem = told(served)["reload_problem"]
        metrics = httpx2.get(f"{served.admin_url}/metrics", verify=NO_TLS).text
        changed(served, yaml(1))
        assert told(served)["reload_problem"] is None
        assert served.ask(GENERATE, "hi").status_code == 429

    assert "weighlock.yaml" in problem
    assert "weighlock_config_reload_ok 0.0" in metrics


@pytest.mark.slow
def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path, emulator: Emulator) -> None:
    """As Kubernetes swaps a mounted configuration."""
    with serving(tmp_path, emulator, yaml()) as served:
        file = served.settings.files[0]
        for name, limit in (("one", 1000), ("two", 1)):
            (tmp_path / name).mkdir()
            head = file.read_text().split("default:")[0]
            (tmp_path / name / "weighlock.yaml").write_text(head + yaml(limit))
        (tmp_path / "data").symlink_to("one")
        file.unlink()
        file.symlink_to("data/weighlock.yaml")
        assert served.ask(GENERATE, "hi").status_code == 200
        before = told(served)
        (tmp_path / "swap").symlink_to("two")
        (tmp_path / "swap").rename(tmp_path / "data")
        until = time.monotonic() + 10
        while told(served) == before or served.ask(GENERATE, "hi").status_code != 429:
            assert time.monotonic() < until
            time.sleep(0.1)
        shutil.rmtree(tmp_path / "one")


@pytest.mark.slow
def test_what_is_under_way_ends_by_the_settings_it_began_with(tmp_path: Path, emulator: Emulator) -> None:
    answers: list[Any] = []
    with serving(tmp_path, emulator, yaml()) as served:
        emulator.script.queue(Answer(text="slow", after_s=1.5))
        client = threading.Thread(target=lambda: answers.append(served.ask(GENERATE, "hi")), daemon=True)
        client.start()
        while not len(emulator.requests):
            time.sleep(0.01)
        changed(served, yaml(1))
        client.join(10)
        assert served.ask(GENERATE, "hi").status_code == 429

    assert answers[0].status_code == 200
    assert [event.billed is not None for event in served.events] == [True, False]


@pytest.mark.slow
def test_no_request_fails_while_settings_change_again_and_again(tmp_path: Path, emulator: Emulator) -> None:
    statuses: list[int] = []
    with serving(tmp_path, emulator, yaml(10**6)) as served:
        ended = threading.Event()

        def ask() -> None:
            with httpx2.Client(base_url=served.base_url, verify=NO_TLS, timeout=20) as http:
                while not ended.is_set():
                    statuses.append(http.post(GENERATE, json={"contents": [user("hi")]}).status_code)

        clients = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
        for client in clients:
            client.start()
        for number in range(6):
            changed(served, yaml(10**6 + number) if number % 3 else "default: {")
        ended.set()
        for client in clients:
            client.join(20)

    assert len(statuses) > 50
    assert set(statuses) == {200}
