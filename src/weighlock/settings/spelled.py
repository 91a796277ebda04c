"""Settings → the file's own words, every value spelled out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

from weighlock.budgets.windows import Rolling, Session, Window
from weighlock.codecs.encoding import Encoding
from weighlock.planning.cost import Contract, Rates
from weighlock.planning.levers import Floor
from weighlock.request import Modality
from weighlock.settings.build_service import service_document
from weighlock.settings.model import (
    EACH,
    Account,
    Endpoint,
    History,
    MediaSettings,
    Safety,
    Settings,
    State,
    Uploads,
    Windows,
)


def as_document(settings: Settings) -> dict[str, Any]:
    """The settings in the file's own words, every value spelled out; loading it gives the same settings.

    What an endpoint takes back from the default is written as null.
    """
    default = endpoint_document(settings.default)
    document: dict[str, Any] = {
        "version": 1,
        "accounts": {name: _plain(_account_document(account)) for name, account in settings.accounts.items()},
        "default": _plain(default),
        "endpoints": {
            name: _plain(_with_removals(default, endpoint_document(endpoint)))
            for name, endpoint in settings.endpoints.items()
        },
        "rules": {"overlay": None if settings.rules_overlay is None else str(settings.rules_overlay)},
        "uploads": _plain(_uploads_document(settings.uploads)),
        "tenants": _plain(_tenants_document(settings.tenants)),
        "overall": {"windows": _plain(_windows_document(settings.overall))},
        "state": _plain(_state_document(settings.state)),
        "observe": {"decision_log": "off" if (log := settings.observe.decision_log) is None else str(log)},
        "safety": _plain(_safety_document(settings.safety)),
        "pricing": _plain(_pricing_document(settings.pricing)),
        "encoding": _encoding_document(settings.encoding),
        "service": _plain(service_document(settings.service)),
    }
    return document


def endpoint_document(endpoint: Endpoint) -> dict[str, Any]:
    """One merged endpoint in the file's own words."""
    limits = endpoint.limits
    return {
        "account": endpoint.account.name,
        "owner": endpoint.owner,
        "model": endpoint.model,
        "models": None if endpoint.models is None else list(endpoint.models),
        "mode": endpoint.mode,
        "on_exceed": endpoint.on_exceed,
        "on_unknown_model": endpoint.on_unknown_model,
        "on_unknown_price": endpoint.on_unknown_price,
        "mime_mismatch": endpoint.mime_mismatch,
        "tool_media": endpoint.tool_media,
        "base64_in_tool_text": endpoint.base64_in_tool_text,
        "output_tokens": {"expected": endpoint.output_tokens.expected},
        "count": {
            "when": endpoint.count.when,
            "timeout_s": Decimal(repr(endpoint.count.timeout_s)),
            "on_failure": endpoint.count.on_failure,
        },
        "limits": {
            "prompt_tokens": limits.prompt_tokens,
            "cost_usd": limits.cost_usd,
            "media_parts": limits.media_parts,
            "bytes": limits.bytes,
            "tokens": _tokens_document(limits.tokens),
        },
        "windows": _windows_document(endpoint.windows),
        "session": _session_document(endpoint.session),
        "media": {
            **{modality.value.lower(): _media_document(modality, media) for modality, media in endpoint.media.items()},
            "levers": list(endpoint.levers),
            "strip_metadata": endpoint.strip_metadata,
        },
        "local_work": endpoint.local_work,
        "prepare_deadline_s": Decimal(repr(endpoint.prepare_deadline_s)),
        "history": _history_document(endpoint.history),
        "labels": dict(endpoint.labels),
    }


def _history_document(history: History) -> dict[str, Any]:
    return {
        "keep_media": history.keep_media,
        "per_tool": history.per_tool,
        "older": history.older,
        "batch": history.batch,
    }


def _account_document(account: Account) -> dict[str, Any]:
    names = ("backend", "api_key_env", "api_key_file", "project", "location", "base_url")
    return {name: value for name in names if (value := getattr(account, name)) is not None}


def _tokens_document(tokens: Mapping[Modality, int]) -> dict[str, int]:
    return {modality.value.lower(): count for modality, count in tokens.items()}


def _windows_document(windows: Windows) -> dict[str, Any]:
    return {window.name: _window_document(window) for window in windows.values()}


def _window_document(window: Window) -> dict[str, Any]:
    return {
        "cost_usd": window.cost_usd,
        "prompt_tokens": window.prompt_tokens,
        "tokens": _tokens_document(window.tokens),
        "requests": window.requests,
        **({} if isinstance(window.period, Rolling) else {"timezone": window.timezone}),
        "warn_at": window.warn_at,
    }


def _session_document(session: Session) -> dict[str, Any]:
    return {"cost_usd": session.cost_usd, "prompt_tokens": session.prompt_tokens, "warn_at": session.warn_at}


def _tenants_document(tenants: Mapping[str, Windows]) -> dict[str, Any]:
    each = {"windows": _windows_document(tenants.get(EACH, {}))}
    named = {name: {"windows": _windows_document(windows)} for name, windows in tenants.items()}
    return {name: own if name == EACH else _with_removals(each, own) for name, own in named.items()}


def _state_document(state: State) -> dict[str, Any]:
    return {"store": state.store, "url_env": state.url_env, "on_failure": state.on_failure, "dir": state.dir}


def _media_document(modality: Modality, media: MediaSettings) -> dict[str, Any]:
    values = {
        "apply": "always" if media.always else None,
        "resolution": media.resolution,
        "clip": None if media.clip is None else str(media.clip),
        "fps": None if media.fps is None else Decimal(repr(media.fps)),
        "content": media.content,
        "cut": media.cut,
        "floor": None if media.floor is None else _floor_document(modality, media.floor),
    }
    return {key: value for key, value in values.items() if value is not None}


def _floor_document(modality: Modality, floor: Floor) -> Any:
    numbers = {"fps": Decimal(repr(floor.fps)), "seconds": Decimal(repr(floor.seconds))}
    match modality:
        case Modality.VIDEO:
            return {**numbers, "resolution": floor.resolution}
        case Modality.AUDIO:
            return {"seconds": numbers["seconds"]}
        case _:
            return floor.resolution


def _uploads_document(uploads: Uploads) -> dict[str, Any]:
    policy, below = uploads.policy, uploads.inline_below
    kept = {0.0: "off", math.inf: "until_deleted"}.get(policy.keep_copies_s)
    return {
        "inline_below": {
            "developer": below.developer,
            "vertex": below.vertex,
            "pdf": below.pdf,
            **({"mime": {**below.mime}} if below.mime else {}),
        },
        "keep_copies": kept or Decimal(repr(policy.keep_copies_s)),
        "copies_cap": policy.copies_cap_bytes,
        "delete_remote": policy.delete_remote,
        "quota": policy.quota_bytes,
        "give_up_after": Decimal(repr(policy.give_up_after_s)),
    }


def _safety_document(safety: Safety) -> dict[str, Any]:
    return {
        "confinement": safety.confinement,
        "workers": safety.workers,
        "max": {
            "file": safety.max_file_bytes,
            "pixels": safety.max_pixels,
            "duration_s": Decimal(repr(safety.max_duration_s)),
            "pages": safety.max_pages,
            "frames": safety.max_frames,
        },
    }


def _encoding_document(encoding: Encoding) -> dict[str, Any]:
    return {
        "video": {"preset": encoding.preset, "crf": encoding.crf},
        "audio": {"bits_per_channel": encoding.sound_bits_per_channel},
    }


def _pricing_document(pricing: Contract) -> dict[str, Any]:
    overrides = {}
    for model, override in pricing.overrides.items():
        overrides[model] = _rates_document(override.base)
        if override.long is not None:
            overrides[model]["above_200k"] = _rates_document(override.long)
    return {"discount": pricing.discount, "overrides": overrides}


def _rates_document(rates: Rates) -> dict[str, Any]:
    values = {"input": rates.text, "audio": rates.audio, "cached": rates.cached, "output": rates.output}
    return {key: value for key, value in values.items() if value is not None}


def _with_removals(default: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` with a null for every key it would otherwise inherit."""
    result = dict(own)
    for key, value in default.items():
        if key not in own:
            result[key] = None
        elif isinstance(value, Mapping) and isinstance(own[key], Mapping):
            result[key] = _with_removals(value, own[key])
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value
