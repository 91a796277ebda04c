"""Price lists: what a model costs on a backend on a day, handed to the pure rooms as a value.

First the `genai-prices` package and the data bundled in it (its updater is never called: no network), then
`prices.toml` beside this file for what the package lacks. Where both know a model, the package wins unless it says when
it was checked and the file was checked later. Vertex's regional uplift and the factors of service tiers are dated rules
in the same file.

genai-prices is imported on first use, and without the HTTP client of its updater. No price is `Unpriced` with a
reason, never zero.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from weighlock.media.tokens import Confidence
from weighlock.planning.cost import LONG_PROMPT_TOKENS, Contract, PriceChange, Prices, Rates, ServiceTier, Unpriced
from weighlock.request import Backend

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

LOOK_AHEAD_DAYS = 60
_OPTIONAL = ("cached", "output", "audio")
_SUFFIX = re.compile(r"^(?:-(?:preview|latest|exp|experimental|customtools|thinking|\d{2,8}))*$")
"""What may follow a model's id and still be that model: a stage or a date, never another product's name."""
_CHECKED = re.compile(r"(?:verified|checked) (?:on )?(\d{4}-\d{2}-\d{2})", re.IGNORECASE)
_CONTEXT = MappingProxyType(
    {
        ServiceTier.STANDARD: {},
        ServiceTier.BATCH: {"processing": "batch"},
        ServiceTier.FLEX: {"service_tier": "flex"},
        ServiceTier.PRIORITY: {"service_tier": "priority"},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """One price list for one model, before uplift and discount."""

    model: str
    base: Rates
    long: Rates | None = None
    long_above: int = LONG_PROMPT_TOKENS
    source: str
    since: date | None
    checked_on: date | None
    confidence: Confidence
    notes: tuple[str, ...] = ()


def prices_for(
    model: str,
    backend: Backend,
    *,
    on: date,
    location: str | None = None,
    tier: ServiceTier = ServiceTier.STANDARD,
    pricing: Contract | None = None,
) -> Prices | Unpriced:
    """What `model` costs on `on`, a UTC day.

    Args:
        model: A model's name, with or without its resource path and `@version`.
        backend: Base prices are the same on both; only Vertex has regional uplift.
        on: The day of the request.
        location: Vertex location; `None` is the global endpoint.
        tier: Service tier. Where no list names the tier, the standard rates times a dated factor, with a note.
        pricing: The operator's discount and final prices. An override is used on every tier as it stands.
    """
    contract = pricing or Contract()
    name = _bare(model)
    if (override := contract.overrides.get(model) or contract.overrides.get(name)) is not None:
        return Prices(
            model=name,
            backend=backend,
            tier=tier,
            base=override.base,
            long=override.long,
            source="pricing.overrides",
            confidence=Confidence.DOCUMENTED,
        )
    if (listed := _listed(name, on, tier)) is None:
        return Unpriced(model=name, reason=f"no price is known for {name or 'an unnamed model'} on {on.isoformat()}")
    uplift, source, note = _uplift(listed.model, backend, location, on)
    return Prices(
        model=listed.model,
        backend=backend,
        tier=tier,
        base=listed.base,
        long=listed.long,
        long_above=listed.long_above,
        uplift=uplift,
        uplift_source=source,
        discount=contract.discount,
        source=listed.source,
        since=listed.since,
        checked_on=listed.checked_on,
        confidence=listed.confidence,
        notes=(*listed.notes, *note),
    )


def upcoming_change(
    model: str, backend: Backend, *, on: date, pricing: Contract | None = None, days: int = LOOK_AHEAD_DAYS
) -> PriceChange | None:
    """The first dated change of the list price after `on` and at most `days` later; `None` where an override holds."""
    now = prices_for(model, backend, on=on, pricing=pricing)
    if isinstance(now, Unpriced) or now.source == "pricing.overrides":
        return None
    last = on + timedelta(days=days)
    for day in sorted({start for start in _starts(_bare(model)) if on < start <= last}):
        then = prices_for(model, backend, on=day)
        if isinstance(then, Prices) and (then.base, then.long) != (now.base, now.long):
            return PriceChange(model=now.model, on=day, before=now.base, after=then.base, source=then.source)
    return None


def _bare(model: str) -> str:
    return model.strip().lower().rpartition("/")[2].partition("@")[0]


def _listed(name: str, on: date, tier: ServiceTier) -> _Listed | None:
    theirs, ours = _from_package(name, on, tier), _from_file(name, on)
    if theirs is None:
        return None if ours is None else _at_tier(ours, tier)
    if ours is not None and theirs.checked_on is not None and (ours.checked_on or date.min) > theirs.checked_on:
        return _at_tier(ours, tier)
    return theirs


def _from_package(name: str, on: date, tier: ServiceTier) -> _Listed | None:
    if (info := _package_model(name)) is None:
        return None
    moment = datetime.combine(on, time(), tzinfo=UTC)
    standard = info.get_prices(moment)
    context = _CONTEXT[tier]
    at_tier = info.get_prices(moment, context) if context else standard
    base, long, long_above = _rates(at_tier)
    if base is None:
        return None
    checked = [date.fromisoformat(day) for day in _CHECKED.findall(info.price_comments or "")]
    listed = _Listed(
        model=info.id,
        base=base,
        long=long,
        long_above=long_above,
        source=f"genai-prices {_package_version()}",
        since=max((start for start in _package_starts(info) if start <= on), default=None),
        checked_on=max(checked, default=None),
        confidence=Confidence.DOCUMENTED,
    )
    return listed if at_tier != standard else _at_tier(listed, tier)


def _rates(price: ModelPrice) -> tuple[Rates | None, Rates | None, int]:
    """Base and long-prompt rates, and the threshold, from the package's price keys."""
    above = sorted({tier.start for value in price.__dict__.values() for tier in getattr(value, "tiers", ())})
    base = _rates_at(price, 0)
    return base, _rates_at(price, above[0] + 1) if above else None, above[0] if above else LONG_PROMPT_TOKENS


def _rates_at(price: ModelPrice, prompt_tokens: int) -> Rates | None:
    def rate(key: str) -> Decimal | None:
        value: Decimal | TieredPrices | None = price.__dict__.get(key)
        if value is None or isinstance(value, Decimal):
            return value
        reached = [tier.price for tier in value.tiers if prompt_tokens > tier.start]
        return reached[-1] if reached else value.base

    text = rate("input_mtok")
    if text is None:
        return None
    image, video, audio = (rate(f"input_{kind}_mtok") for kind in ("image", "video", "audio"))
    image = text if image is None else image
    return Rates(
        text=text,
        image=image,
        video=text if video is None else video,
        audio=text if audio is None else audio,
        # A page is billed as IMAGE by Gemini 3 and as DOCUMENT, at the text rate, before it: the dearer of the two.
        document=max(text, image),
        cached=rate("cache_read_mtok"),
        cached_audio=rate("cache_audio_read_mtok"),
        output=rate("output_mtok"),
    )


def _package_model(name: str) -> ModelInfo | None:
    """The package's entry for exactly this model.

    Its own matching is by prefix, so that `gemini-3.7-flash-lite` would be sold as `gemini-3.7-flash`.
    """
    info = _google().find_model(name) if name.startswith("gemini") else None
    if info is None or not name.startswith(info.id):
        return info
    return info if _SUFFIX.match(name.removeprefix(info.id)) else None


def load_price_list() -> None:
    """Load the package now rather than on the first price."""
    _google()


@cache
def _google() -> Any:
    with _deferred("asyncio"), _deferred("httpx2"):
        from genai_prices.data import providers

    return next(provider for provider in providers if provider.id == "google")


@contextmanager
def _deferred(name: str) -> Iterator[None]:
    """Inside, `import name` costs nothing: the module loads when something is first asked of it.

    The package's updater imports an event loop and an HTTP client at its top, which cost more than all the rest and are
    never used here.
    """
    if name in sys.modules:
        yield
        return
    stand_in = sys.modules[name] = _Deferred(name)
    try:
        yield
    finally:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]


class _Deferred(ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), attribute)


@cache
def _package_version() -> str:
    from genai_prices import __version__

    return __version__


def _package_starts(info: ModelInfo) -> Iterator[date]:
    for conditional in info.prices if isinstance(info.prices, list) else ():
        if (start := getattr(conditional.constraint, "start_date", None)) is not None:
            yield start


def _starts(name: str) -> Iterator[date]:
    """Every day on which a list of this model changes."""
    if (info := _package_model(name)) is not None:
        yield from _package_starts(info)
    yield from (entry["since"] for entry in _entries(name))


@cache
def _file() -> Mapping[str, Any]:
    text = Path(__file__).with_name("prices.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


def _entries(name: str) -> Iterator[Mapping[str, Any]]:
    for entry in _file()["price"]:
        if name.startswith(entry["model"]) and _SUFFIX.match(name.removeprefix(entry["model"])):
            yield entry


def _from_file(name: str, on: date) -> _Listed | None:
    """The last entry that has begun; standard tier."""
    begun = [entry for entry in _entries(name) if entry["since"] <= on]
    if not begun:
        return None
    entry = max(begun, key=lambda one: one["since"])
    cached, output, audio = (None if (rate := entry.get(key)) is None else Decimal(rate) for key in _OPTIONAL)
    return _Listed(
        model=entry["model"],
        base=Rates.uniform(Decimal(entry["input"]), audio=audio, cached=cached, output=output),
        source=f"prices.toml: {entry['source']}",
        since=entry["since"],
        checked_on=entry["checked_on"],
        confidence=Confidence(entry["confidence"]),
    )


def _at_tier(listed: _Listed, tier: ServiceTier) -> _Listed:
    """Standard rates brought to a tier no list names."""
    if tier is ServiceTier.STANDARD:
        return listed
    rule = next(rule for rule in _file()["tier"] if rule["tier"] == tier.value)
    factor, cached = Decimal(rule["factor"]), Decimal(rule["cached_factor"])
    note = f"{tier.value}: standard × {factor:f} ({rule['confidence']}, {rule['source']}, {rule['checked_on']})"
    return _Listed(
        model=listed.model,
        base=listed.base.scaled(factor, cached=cached),
        long=None if listed.long is None else listed.long.scaled(factor, cached=cached),
        long_above=listed.long_above,
        source=listed.source,
        since=listed.since,
        checked_on=listed.checked_on,
        confidence=Confidence.ASSUMED if rule["confidence"] == "assumed" else listed.confidence,
        notes=(*listed.notes, note),
    )


def _uplift(name: str, backend: Backend, location: str | None, on: date) -> tuple[Decimal, str | None, tuple[str, ...]]:
    """Factor, source and note of a Vertex location; 1 on the global endpoint and before the first rule."""
    if backend is not Backend.VERTEX or location is None or location.lower() == "global":
        return Decimal(1), None, ()
    for rule in _file()["regional"]:
        if on >= rule["since"] and any(name.startswith(prefix) for prefix in rule["models"]):
            factor = Decimal(rule["factor"])
            note = f"{location}: × {factor:f} since {rule['since']} ({rule['confidence']}, {rule['source']})"
            return factor, rule["source"], (note,) if factor != 1 else ()
    return Decimal(1), None, ()
