"""The port of those who run it, and how the service ends."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from emulated import user
from serving import GENERATE, MODEL, NO_TLS, STREAM, Served, client_yaml, serving
from weighlock.budgeting import store_of
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer
from weighlock.service.keys import hash_of

YAML = f"default: {{model: {MODEL}, windows: {{day: {{prompt_tokens: 1000000}}}}}}\n"


def get(served: Served, path: str, **options: Any) -> httpx2.Response:
    return httpx2.get(f"{served.admin_url}{path}", verify=NO_TLS, timeout=10, **options)


def test_health_readiness_and_metrics(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, YAML) as served:
        served.ask(GENERATE, "hi")
        assert get(served, "/healthz").json() == {"alive": True}
        assert get(served, "/readyz").json()["ready"] is True
        text = get(served, "/metrics").text
        assert served.http.get("/metrics").status_code == 404  # not on the clients' port

    assert f'weighlock_requests_total{{endpoint="default",model="{MODEL}",outcome="admitted"}} 1.0' in text
    assert 'weighlock_budget_limit{endpoint="default",unit="prompt_tokens",window="day"} 1e+06' in text
    assert "# HELP weighlock_billed_tokens_total" in text


def test_metrics_are_for_operators_where_some_are_named(tmp_path: Path, emulator: Emulator) -> None:
    yaml, keys = client_yaml(app="tenant: acme")
    operators = f"{{anna: {{key_sha256: {hash_of('anna-key')}}}}}"
    with serving(tmp_path, emulator, f"{YAML}service: {{clients: {yaml}, operators: {operators}}}\n") as served:
        bearer = {"authorization": "Bearer anna-key"}
        assert get(served, "/metrics").status_code == 403
        assert get(served, "/metrics", headers={"authorization": f"Bearer {keys['app']}"}).status_code == 403
        many = "/metrics?key=x&" + "&".join(map(str, range(60)))
        assert get(served, many, headers=bearer).status_code == 403
        assert get(served, "/metrics", headers=bearer).status_code == 200
        assert get(served, "/readyz").status_code == 200
        assert get(served, "/healthz", headers={"host": "evil.example"}).status_code == 421


def test_it_is_not_ready_while_its_budgets_cannot_be_asked(tmp_path: Path, emulator: Emulator) -> None:
    with serving(tmp_path, emulator, YAML) as served:
        assert served.settings.state.dir is not None
        (served.settings.state.dir).mkdir(exist_ok=True)
        (served.settings.state.dir / "budgets.db").write_bytes(b"no database at all" * 100)
        answer = get(served, "/readyz")
        assert get(served, "/healthz").status_code == 200

    assert answer.status_code == 503
    assert "budgets" in answer.json()["why"][0]


@pytest.mark.parametrize("path", [GENERATE, STREAM + "?alt=sse"])
def test_what_is_under_way_ends_before_the_service_does(tmp_path: Path, emulator: Emulator, path: str) -> None:
    told: list[Any] = []
    with serving(tmp_path, emulator, YAML) as served:
        emulator.script.queue(Answer(text="word " * 30, after_s=0.4, pause_s=0.2))
        client = threading.Thread(
            target=lambda: told.append(served.http.post(path, json={"contents": [user("hi")]})), daemon=True
        )
        client.start()
        while not len(emulator.requests):
            time.sleep(0.01)
        served.service.stop()
        client.join(10)
        store = store_of(served.settings)
        ((spent, held),) = store.counters().values()
        store.close()

    (answer,) = told
    assert answer.status_code == 200
    assert answer.text.count("word ") == 30
    assert spent["prompt_tokens"] > 0
    assert not any(held.values())


def test_what_does_not_end_in_time_is_charged_as_it_was_held(tmp_path: Path, emulator: Emulator) -> None:
    yaml = f"{YAML}service: {{deadlines: {{drain: 0.3s}}}}\n"
    with serving(tmp_path, emulator, yaml) as served:
        emulator.script.queue(Answer(text="word", after_s=30))
        client = threading.Thread(target=lambda: _asked(served), daemon=True)
        client.start()
        while not len(emulator.requests):
            time.sleep(0.01)
        begun = time.monotonic()
        served.service.stop()
        took = time.monotonic() - begun
        store = store_of(served.settings)
        ((spent, held),) = store.counters().values()
        store.close()

    assert took < 5
    assert spent["prompt_tokens"] > 0
    assert not any(held.values())


def _asked(served: Served) -> None:
    with suppress(httpx2.HTTPError):
        served.ask(GENERATE, "hi")
