"""Metrics of the line: what they add up to, what becomes a label and what never does."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import films
import media
from emulated import Wire, called, inline, result, user
from prepared import settings
from weighlock.budgets.hold import MICRO_USD
from weighlock.errors import BudgetExceeded
from weighlock.events import Ended
from weighlock.observe import metrics as m
from weighlock.observe.prometheus import Metrics
from weighlock.preflight import Preflight

pytestmark = pytest.mark.usefixtures("dialled")

MODEL = "gemini-3.5-flash"
YAML = f"""
default: {{model: {MODEL}}}
endpoints:
  bug_triage:
    owner: team-support
    mode: enforce
    limits: {{prompt_tokens: 3000}}
    windows: {{day: {{cost_usd: 5, prompt_tokens: 1000000, tokens: {{video: 500000}}}}}}
"""


def samples(registry: CollectorRegistry) -> dict[str, dict[tuple[str, ...], float]]:
    """Name → label values in the order of their names → value."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in registry.collect():
        for one in family.samples:
            labels = tuple(value for _, value in sorted(one.labels.items()))
            found.setdefault(one.name, {})[labels] = one.value
    return found


def test_metrics_add_up_to_the_books_and_to_what_was_billed(wire: Wire, tmp_path: Path) -> None:
    registry, billed = CollectorRegistry(), Counter[str]()
    shot, film = inline(media.picture((640, 480)), "image/png"), inline(films.film(6.0), "video/mp4")
    sound = result("listen", inline(media.wav(0.5), "audio/wav"))
    turns = [[user("look", shot)], [user("see", film)], [user("hear"), called("listen"), user(sound)]]
    with Preflight(settings(tmp_path, YAML), preload=False, registry=registry) as preflight:
        for contents in turns:
            ready = preflight.prepare(json.dumps({"contents": contents}).encode(), endpoint="bug_triage")
            answer: Any = wire.http.post(f"/v1beta/models/{MODEL}:generateContent", content=ready.body).json()
            receipt = preflight.settle(ready, answer)
            assert receipt.billed is not None
            billed.update({kind.value: tokens for kind, tokens in receipt.billed.usage.by_modality.items()})
        preflight.settle(preflight.prepare(json.dumps({"contents": [user("lost")]}).encode(), endpoint="bug_triage"))
        with pytest.raises(BudgetExceeded):
            preflight.prepare(json.dumps({"contents": [user("x" * 90_000)]}).encode(), endpoint="bug_triage")
        found = samples(registry)
        ((spent, held),) = preflight.store.counters().values()

    of = {"bug_triage": "team-support"}
    tokens = {labels[1]: value for labels, value in found[m.BILLED.name].items()}
    assert tokens == {kind: count for kind, count in billed.items() if count}
    charged = Counter(tokens)
    charged.update({labels[1]: value for labels, value in found[m.ASSUMED.name].items()})
    assert {f"tokens.{kind}": count for kind, count in charged.items()} == {
        name: amount for name, amount in spent.items() if name.startswith("tokens.") and amount
    }
    assert sum(found[m.COST.name].values()) == pytest.approx(spent[MICRO_USD] / 1e6, abs=1e-9)
    assert found[m.REQUESTS.name][("bug_triage", MODEL, "admitted")] == 4
    assert found[m.REQUESTS.name][("bug_triage", MODEL, "refused")] == 1
    assert found[m.REASONS.name][("bug_triage", "budget_exceeded")] == 1
    assert found[m.PARTS.name][("removed", "bug_triage", "AUDIO")] == 1
    assert found[m.PARTS.name][("sent", "bug_triage", "VIDEO")] == 1
    assert found["weighlock_request_prompt_tokens_count"][("bug_triage",)] == 4
    assert found["weighlock_request_asked_tokens_count"][("bug_triage", "VIDEO")] == 1
    assert found[m.UNKNOWN_BILLS.name][("bug_triage",)] == 1
    assert not any(held.values())
    assert found[m.BUDGET_USED.name][("bug_triage", "prompt_tokens", "day")] == spent["prompt_tokens"]
    assert found[m.BUDGET_LIMIT.name][("bug_triage", "usd", "day")] == 5
    assert found[m.ENDPOINT.name][("bug_triage", "enforce", of["bug_triage"])] == 1
    assert found[m.STORE.name][("host", "sqlite")] == 1
    assert found[m.RULES_CHECKED.name][()] > 1.7e9


def test_every_metric_has_the_labels_of_its_table_and_no_other(wire: Wire, tmp_path: Path) -> None:
    registry = CollectorRegistry()
    with Preflight(settings(tmp_path, YAML), preload=False, registry=registry) as preflight:
        preflight.release(preflight.prepare(b'{"contents": [{"parts": [{"text": "a"}]}]}'))
        text = generate_latest(registry).decode()
        families = {family.name: family for family in registry.collect()}

    known = {one.name.removesuffix("_total"): one for one in m.EVERY}
    assert set(families) <= set(known)
    assert {one.name.removesuffix("_total") for one in m.COUNTED_UP} <= set(families)
    for name, family in families.items():
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(known[name].labels), name
    assert "weighlock_requests_total{" in text


def test_labels_are_bounded_whatever_is_asked(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, endpoints=["bug_triage"], models=[MODEL])
    events: list[Ended] = []
    with Preflight(settings(tmp_path, YAML), preload=False, on_event=[events.append]) as preflight:
        preflight.release(preflight.prepare(b'{"contents": [{"parts": [{"text": "a"}]}]}'))
    for at in range(10_000):
        word = f"secret-{at}"
        metrics(replace(events[0], endpoint=word, model=word, family=word, tenant=word, codes=(word,), id=word))

    found = samples(registry)
    assert found[m.REQUESTS.name] == {("other", "other", "admitted"): 10_000}
    assert sum(len(one) for one in found.values()) < 600
    assert sum("secret" in label for labels in found[m.REASONS.name] for label in labels) <= 200


def test_a_store_that_cannot_be_asked_leaves_the_rest_to_be_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    known = settings(tmp_path, YAML)
    with Preflight(known, preload=False, registry=registry):
        assert known.state.dir is not None
        known.state.dir.mkdir(exist_ok=True)
        (known.state.dir / "budgets.db").write_bytes(b"no database at all" * 100)
        found = samples(registry)
        samples(registry)

    assert m.BUDGET_USED.name not in found
    assert m.RULES_CHECKED.name in found
    assert caplog.text.count("metrics leave out") == 1
