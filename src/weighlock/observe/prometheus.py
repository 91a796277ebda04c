"""Events → metrics. The one door to `prometheus_client`.

Of a label only what is known beforehand becomes a series: endpoints by the settings, models by the rules, and of the
rest so many and no more. Nothing a user wrote is among them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from weighlock.events import BilledRecord, Ended
from weighlock.observe import metrics as m
from weighlock.observe.sample import Sample

_MOST_REASONS = 200
_SENT = frozenset({"admitted", "shaped", "warned", "would_shape", "would_refuse"})


class Metrics:
    """Told of every request that has ended (`on_event`), it counts. Thread-safe.

    Args:
        registry: The host's own.
        endpoints: Those there are; of another name a request counts under `other`.
        models: By the names the rules have for them.
    """

    def __init__(self, registry: CollectorRegistry, *, endpoints: Iterable[str], models: Iterable[str]) -> None:
        """Raises `ValueError` where the registry holds them already."""
        self._families = {one.name: _family(one, registry) for one in m.COUNTED_UP}
        self._lock = threading.Lock()
        self._reasons: set[str] = set()
        self.know(endpoints, models)

    def know(self, endpoints: Iterable[str], models: Iterable[str]) -> None:
        """Other settings are in force. Series of endpoints that are gone stay, as Prometheus wants them."""
        self._endpoints, self._models = frozenset({*endpoints, "default"}), frozenset(models)

    def __call__(self, event: Ended) -> None:
        where = (self._endpoint(event), self._model(event))
        endpoint, _ = where
        self._add(m.REQUESTS, 1, *where, event.outcome)
        for code in dict.fromkeys(event.codes):
            self._add(m.REASONS, 1, endpoint, self._reason(code))
        for stage, ms in event.stages_ms.items():
            self._observe(m.STAGE, ms / 1000, stage)
        for modality, (_, likely, _) in event.before.items():
            self._observe(m.ASKED, likely, endpoint, modality)
        self._screened(event, endpoint)
        if event.outcome in _SENT and "not_held" not in event.codes:
            self._sent(event, where)

    def _screened(self, event: Ended, endpoint: str) -> None:
        for done, kinds in event.screened.items():
            for modality, count in kinds.items():
                self._add(m.PARTS, count, endpoint, modality, done)
        for modality, count in event.counted_tokens.items():
            self._add(m.COUNTED, count, endpoint, self._model(event), modality)

    def _sent(self, event: Ended, where: tuple[str, str]) -> None:
        endpoint, _ = where
        for part in event.parts:
            if part.mime is not None and part.modality is not None:
                self._add(m.PARTS, 1, endpoint, part.modality, "sent")
            if part.uploaded is not None:
                self._add(m.UPLOADS, 1, endpoint, "uploaded" if part.uploaded else "reused")
            for modality, (_, likely, _) in (part.after if part.resent else {}).items():
                self._add(m.RESENT, likely, *where, modality)
        for cause, count in event.reuploads.items():
            self._add(m.REUPLOADS, count, endpoint, cause)
        for modality, (_, likely, high) in event.after.items():
            self._add(m.ESTIMATED, likely, *where, modality)
            self._add(m.SAVED, event.before.get(modality, (0, 0, high))[2] - high, *where, modality)
        for step in event.steps:
            self._add(m.SAVED_BY, step.saved_tokens, endpoint, step.lever)
        if event.usd_after is not None:
            self._add(m.ESTIMATED_COST, float(event.usd_after), *where)
        if event.cache_lost:
            self._add(m.PREFIX_BREAKS, 1, endpoint)
            self._add(m.PREFIX_LOST, event.cache_lost, endpoint)
        if event.unverified:
            self._add(m.UNVERIFIED, 1, endpoint)
        billed = event.billed
        if billed is not None:
            self._cost(billed, where)
            self._billed(event, billed, where)
        likely = sum(likely for _, likely, _ in event.after.values())
        self._observe(m.PROMPT, likely if billed is None or billed.prompt is None else billed.prompt, endpoint)

    def _billed(self, event: Ended, billed: BilledRecord, where: tuple[str, str]) -> None:
        endpoint, _ = where
        for finding in billed.findings:
            self._add(m.FINDINGS, 1, endpoint, self._reason(finding))
        if billed.underestimated:
            self._add(m.UNDERESTIMATED, 1, endpoint)
        if billed.prompt is None:
            self._add(m.UNKNOWN_BILLS, 1, endpoint)
            for modality, tokens in _held(event.held).items():
                self._add(m.ASSUMED, tokens, *where, modality)
            return
        for modality, tokens in {**billed.by_modality, m.NO_MODALITY: billed.unattributed}.items():
            self._add(m.BILLED, tokens, *where, modality)
        for bucket, tokens in billed.buckets.items():
            self._add(m.BILLED_AS, tokens, *where, self._reason(bucket))
        for modality, (_, likely, _) in event.after.items():
            self._add(m.BILLED_ESTIMATE, likely * billed.hops, *where, modality)
        for modality, tokens in billed.cached_by_modality.items():
            self._add(m.CACHED, tokens, *where, modality)
        self._add(m.OUTPUT, billed.answer, *where, "answer")
        self._add(m.OUTPUT, billed.thoughts, *where, "thoughts")
        self._add(m.TOOL_USE, billed.tool_use, *where)

    def _cost(self, billed: BilledRecord, where: tuple[str, str]) -> None:
        if billed.usd is None:
            return
        shares = {one: Decimal(usd) for one, usd in billed.usd_by_modality.items()}
        rest = m.NO_MODALITY if billed.prompt is None else m.ANSWER
        for modality, usd in {**shares, rest: Decimal(billed.usd) - sum(shares.values(), Decimal(0))}.items():
            self._add(m.COST, float(usd), *where, modality)

    # ---- labels

    def _endpoint(self, event: Ended) -> str:
        return event.endpoint if event.endpoint in self._endpoints else m.OTHER

    def _model(self, event: Ended) -> str:
        return event.family if event.family in self._models else m.OTHER

    def _reason(self, code: str) -> str:
        with self._lock:
            if code in self._reasons or len(self._reasons) < _MOST_REASONS:
                self._reasons.add(code)
                return code
        return m.OTHER

    # ---- series

    def _add(self, metric: m.Metric, amount: float, *labels: str) -> None:
        if amount > 0:
            family = self._families[metric.name]
            (family.labels(*labels) if labels else family).inc(amount)

    def _observe(self, metric: m.Metric, amount: float, *labels: str) -> None:
        self._families[metric.name].labels(*labels).observe(amount)


class Gauges(Collector):
    """How things stand, asked anew at every scrape. What cannot be told now is left out; the rest is told.

    Args:
        ask: May block; each of what it gives is one line.
    """

    def __init__(self, ask: Callable[[], Iterable[Sample]]) -> None:
        self._ask = ask

    def describe(self) -> list[Family]:
        return []  # else the registry would ask, before anything is there to be told

    def collect(self) -> Iterator[Family]:
        found: dict[str, GaugeMetricFamily] = {}
        for one in self._ask():
            metric = one.metric
            if metric.name not in found:
                found[metric.name] = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            found[metric.name].add_metric([one.labels[name] for name in metric.labels], one.value)
        yield from found.values()


def new_registry() -> CollectorRegistry:
    """One of its own, for a program that serves nothing else."""
    return CollectorRegistry()


def rendered(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All of a registry as a scraper wants it, and of which type that is. Takes its time: not on an event loop."""
    render, kind = choose_encoder(accept)
    return render(registry), kind


def _held(amounts: Mapping[str, int]) -> dict[str, int]:
    """Tokens by modality of what was held."""
    return {name.partition(".")[2]: amount for name, amount in amounts.items() if name.startswith("tokens.")}


def _family(metric: m.Metric, registry: CollectorRegistry) -> Any:
    if metric.kind is m.Kind.HISTOGRAM:
        return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets)
    return Counter(metric.name.removesuffix("_total"), metric.help, metric.labels, registry=registry)
