"""A file without mistakes → frozen settings: `default` merged in, gaps filled, every value traced to its origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weighlock.budgets.reservation import OnStoreFailure
from weighlock.budgets.windows import Period, Rolling, Session, Window
from weighlock.codecs.encoding import Encoding
from weighlock.mime import canonical
from weighlock.planning.cost import Contract, Override, Rates
from weighlock.planning.counting import CountPolicy
from weighlock.planning.levers import EVERY_LEVER, Floor
from weighlock.planning.limits import Limits
from weighlock.planning.placement import InlineBelow
from weighlock.request import MediaResolution, Modality
from weighlock.settings.amounts import parse_clip
from weighlock.settings.build_service import serving
from weighlock.settings.coherence import beside
from weighlock.settings.model import (
    BUILT_IN,
    BUILT_IN_ACCOUNT,
    EACH,
    INHERITED,
    Account,
    Endpoint,
    History,
    MediaSettings,
    Observe,
    OutputTokens,
    Safety,
    Settings,
    State,
    StoreKind,
    Uploads,
    Windows,
)
from weighlock.settings.schema import SettingsFile
from weighlock.settings.spelled import as_document
from weighlock.settings.text import Document, leaves
from weighlock.uploads.policy import UploadPolicy

_AS_WRITTEN = (
    "owner",
    "mode",
    "on_exceed",
    "on_unknown_model",
    "on_unknown_price",
    "mime_mismatch",
    "tool_media",
    "base64_in_tool_text",
    "local_work",
    "prepare_deadline_s",
)
"""Keys of an endpoint that need no building."""
_STARTING_POINTS = {"endpoints": (("default",), INHERITED), "tenants": (("tenants", EACH), f" ({EACH})")}
_KEPT = {"off": 0.0, "until_deleted": math.inf}


def build(file: SettingsFile, document: Document, cwd: Path) -> Settings:
    """Settings from a file whose keys and types are right, and whose parts fit together."""
    values = file.model_dump(exclude_unset=True)
    accounts = _accounts(values.get("accounts"), document, cwd)
    default_values = values.get("default") or {}
    default = _endpoint("default", default_values, accounts)
    endpoints = {
        name: _endpoint(name, merged(default_values, own or {}), accounts)
        for name, own in (values.get("endpoints") or {}).items()
    }
    tenants = values.get("tenants") or {}
    settings = Settings(
        accounts=MappingProxyType(accounts),
        default=default,
        endpoints=MappingProxyType(endpoints),
        uploads=_uploads(values.get("uploads") or {}),
        tenants=MappingProxyType(
            {name: _windows(_of_windows(merged(tenants.get(EACH) or {}, own or {}))) for name, own in tenants.items()}
        ),
        overall=_windows(_of_windows(values.get("overall"))),
        state=_state(values.get("state") or {}, document, cwd),
        observe=_observe(values.get("observe") or {}, document, cwd),
        safety=_safety(values.get("safety") or {}),
        pricing=_pricing(values.get("pricing") or {}),
        encoding=_encoding(values.get("encoding") or {}),
        service=serving(values.get("service") or {}),
        rules_overlay=_overlay(values.get("rules") or {}, document, cwd),
        files=tuple(document.files),
    )
    origin = _origins(as_document(settings), document)
    return Settings(
        **{name: getattr(settings, name) for name in settings.__slots__ if name != "origin"},
        origin=MappingProxyType(origin),
    )


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` laid over `base`: mappings merge key by key, everything else, null and lists included, replaces."""
    result = dict(base)
    for key, value in own.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def _accounts(values: Mapping[str, Any] | None, document: Document, cwd: Path) -> dict[str, Account]:
    if not values:
        return {BUILT_IN_ACCOUNT.name: BUILT_IN_ACCOUNT}
    accounts = {}
    for name, body in values.items():
        key_file = body.get("api_key_file")
        path = None if key_file is None else beside(("accounts", name, "api_key_file"), key_file, document, cwd)
        accounts[name] = Account(name=name, **{**body, "api_key_file": path})
    return accounts


def _endpoint(name: str, values: Mapping[str, Any], accounts: Mapping[str, Account]) -> Endpoint:
    plain = {key: values[key] for key in _AS_WRITTEN if values.get(key) is not None}
    account, models, media = values.get("account"), values.get("models"), dict(values.get("media") or {})
    levers, strip = media.pop("levers", None), media.pop("strip_metadata", None)
    return Endpoint(
        name=name,
        model=values["model"],
        account=next(iter(accounts.values())) if account is None else accounts[account],
        models=None if models is None else tuple(models),
        output_tokens=OutputTokens(expected=(values.get("output_tokens") or {}).get("expected")),
        count=CountPolicy(**{key: value for key, value in (values.get("count") or {}).items() if value is not None}),
        limits=_limits(values.get("limits") or {}),
        windows=_windows(_of_windows(values)),
        session=Session(**(values.get("session") or {})),
        media=_media(media),
        levers=EVERY_LEVER if levers is None else tuple(levers),
        strip_metadata=bool(strip),
        history=History(**{key: value for key, value in (values.get("history") or {}).items() if value is not None}),
        labels=MappingProxyType({k: v for k, v in (values.get("labels") or {}).items() if v is not None}),
        **plain,
    )


def _limits(values: Mapping[str, Any]) -> Limits:
    return Limits(**{**values, "tokens": _tokens(values.get("tokens"))})


def _tokens(values: Mapping[str, int | None] | None) -> Mapping[Modality, int]:
    given = {Modality(key.upper()): count for key, count in (values or {}).items() if count is not None}
    return MappingProxyType({modality: given[modality] for modality in Modality if modality in given})


def _of_windows(values: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (values or {}).get("windows") or {}


def _windows(values: Mapping[str, Any]) -> Windows:
    windows: dict[Period | Rolling, Window] = {}
    for name in sorted(values, key=_length):
        if (body := values[name]) is not None:
            given = {key: value for key, value in body.items() if value is not None}
            period = _period(name)
            windows[period] = Window(period=period, **{**given, "tokens": _tokens(body.get("tokens"))})
    return MappingProxyType(windows)


def _length(name: str) -> tuple[bool, int]:
    """The calendar's first, the shorter ones before the longer."""
    period = _period(name)
    return (True, period.seconds) if isinstance(period, Rolling) else (False, list(Period).index(period))


def _period(name: str) -> Period | Rolling:
    return Rolling(int(name.removeprefix("rolling ").removesuffix("s"))) if name.startswith("rolling") else Period(name)


def _media(values: Mapping[str, Any]) -> Mapping[Modality, MediaSettings]:
    media = {}
    for key, body in values.items():
        given = {name: value for name, value in (body or {}).items() if value is not None}
        always = given.pop("apply", None) == "always"
        if "clip" in given:
            given["clip"] = parse_clip(given["clip"])
        if "fps" in given:
            given["fps"] = float(given["fps"])
        if "resolution" in given:
            given["resolution"] = MediaResolution(given["resolution"])
        if "floor" in given:
            given["floor"] = _floor(given["floor"])
        if given:
            media[Modality(key.upper())] = MediaSettings(always=always, **given)
    return MappingProxyType({modality: media[modality] for modality in Modality if modality in media})


def _floor(value: str | Mapping[str, Any]) -> Floor:
    """Of a picture the resolution alone, as one word."""
    body: dict[str, Any] = {"resolution": value} if isinstance(value, str) else dict(value)
    body = {key: given for key, given in body.items() if given is not None}
    if "resolution" in body:
        body["resolution"] = MediaResolution(body["resolution"])
    if "fps" in body:
        body["fps"] = float(body["fps"])
    return Floor(**body)


_UPLOADS = (
    ("copies_cap", "copies_cap_bytes"),
    ("delete_remote", "delete_remote"),
    ("quota", "quota_bytes"),
    ("give_up_after", "give_up_after_s"),
)


def _uploads(values: Mapping[str, Any]) -> Uploads:
    below = {key: size for key, size in (values.get("inline_below") or {}).items() if size is not None}
    if "mime" in below:
        named = {canonical(name) or name: size for name, size in below["mime"].items() if size is not None}
        below["mime"] = MappingProxyType(named)
    policy = {name: values[key] for key, name in _UPLOADS if values.get(key) is not None}
    if (keep := values.get("keep_copies")) is not None:
        policy["keep_copies_s"] = _KEPT.get(keep, keep)
    return Uploads(inline_below=InlineBelow(**below), policy=UploadPolicy(**policy))


def _state(values: Mapping[str, Any], document: Document, cwd: Path) -> State:
    folder = values.get("dir")
    return State(
        dir=None if folder is None else beside(("state", "dir"), folder, document, cwd),
        store=values.get("store") or StoreKind.SQLITE,
        url_env=values.get("url_env"),
        on_failure=values.get("on_failure") or OnStoreFailure.REJECT,
    )


def _observe(values: Mapping[str, Any], document: Document, cwd: Path) -> Observe:
    where = values.get("decision_log")
    if where in (None, "off"):
        return Observe()
    if where == "stdout":
        return Observe(decision_log="stdout")
    return Observe(decision_log=beside(("observe", "decision_log"), where, document, cwd))


def _safety(values: Mapping[str, Any]) -> Safety:
    bounds = {key: value for key, value in (values.get("max") or {}).items() if value is not None}
    names = {"file": "max_file_bytes"}
    given = {names.get(key, f"max_{key}"): value for key, value in bounds.items()}
    given.update({key: values[key] for key in ("confinement", "workers") if values.get(key) is not None})
    return Safety(**given)


def _encoding(values: Mapping[str, Any]) -> Encoding:
    sound = (values.get("audio") or {}).get("bits_per_channel")
    video = {key: value for key, value in (values.get("video") or {}).items() if value is not None}
    return Encoding(**video, sound_bits_per_channel=sound)


def _pricing(values: Mapping[str, Any]) -> Contract:
    overrides = {}
    for model, body in (values.get("overrides") or {}).items():
        long = body.get("above_200k")
        overrides[model] = Override(base=_rates(body), long=None if long is None else _rates(long))
    return Contract(
        discount=Decimal(0) if values.get("discount") is None else values["discount"],
        overrides=MappingProxyType(overrides),
    )


def _rates(values: Mapping[str, Any]) -> Rates:
    return Rates.uniform(
        values["input"], audio=values.get("audio"), cached=values.get("cached"), output=values.get("output")
    )


def _overlay(values: Mapping[str, Any], document: Document, cwd: Path) -> Path | None:
    if values.get("overlay") is None:
        return None
    return beside(("rules", "overlay"), values["overlay"], document, cwd)


def _origins(values: Mapping[str, Any], document: Document) -> dict[str, str]:
    """Of every value of the merged settings: its place, the default's place, or that it is built in."""
    origins = {}
    for path, _ in leaves(values):
        place = document.marks.get(path)
        if place is None and path[0] in _STARTING_POINTS:
            start, told = _STARTING_POINTS[path[0]]
            inherited = document.marks.get((*start, *path[2:]))
            place = None if inherited is None else f"{inherited}{told}"
        origins[".".join(path)] = place or BUILT_IN
    return origins
