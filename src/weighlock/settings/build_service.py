"""The `service` section without mistakes ⇄ `Serving`, and what does not fit together in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from weighlock.settings.model import suggest
from weighlock.settings.serving import (
    ClientKey,
    Deadlines,
    OnClientGone,
    Serving,
    UnknownPaths,
    parse_address,
)
from weighlock.settings.text import KeyPath
from weighlock.written import quoted

_DEADLINES = {"header": "header_s", "idle": "idle_s", "first_byte": "first_byte_s", "drain": "drain_s"}
_MAX = {"body": "max_body_bytes", "in_flight": "max_in_flight_bytes"}
_DEFAULT = Serving()


def serving(values: Mapping[str, Any]) -> Serving:
    """Of values whose keys and types are right, and that fit together."""
    deadlines = _named(values.get("deadlines"), _DEADLINES)
    admin = values.get("admin", str(_DEFAULT.admin))
    return Serving(
        listen=parse_address(values.get("listen") or str(_DEFAULT.listen)),
        admin=None if admin is None else parse_address(admin),
        clients=MappingProxyType({name: _key(name, body) for name, body in (values.get("clients") or {}).items()}),
        operators=MappingProxyType({name: _key(name, body) for name, body in (values.get("operators") or {}).items()}),
        hosts=tuple(values.get("hosts") or ()),
        uris=tuple(values.get("uris") or ()),
        on_client_gone=values.get("on_client_gone") or OnClientGone.DRAIN,
        unknown_paths=values.get("unknown_paths") or UnknownPaths.REFUSE,
        deadlines=Deadlines(**deadlines),
        **_named(values.get("max"), _MAX),
    )


def service_document(service: Serving) -> dict[str, Any]:
    """In the file's own words, every value spelled out."""
    return {
        "listen": str(service.listen),
        "admin": None if service.admin is None else str(service.admin),
        "clients": {name: _spelled(key, is_client=True) for name, key in service.clients.items()},
        "operators": {name: _spelled(key, is_client=False) for name, key in service.operators.items()},
        "hosts": list(service.hosts),
        "uris": list(service.uris),
        "on_client_gone": service.on_client_gone,
        "unknown_paths": service.unknown_paths,
        "max": {key: getattr(service, name) for key, name in _MAX.items()},
        "deadlines": {key: Decimal(repr(getattr(service.deadlines, name))) for key, name in _DEADLINES.items()},
    }


def service_mistakes(values: Mapping[str, Any], endpoints: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """What does not fit together in the raw values of the section, by its place below `service`."""
    clients, operators = _mapping(values.get("clients")), _mapping(values.get("operators"))
    yield from _open_doors("listen", "clients", values.get("listen"), clients)
    yield from _open_doors("admin", "operators", values.get("admin"), operators)
    for name, body in clients.items():
        named = _mapping(body).get("endpoints")
        for one in named if isinstance(named, list) else ():
            if isinstance(one, str) and one not in endpoints and one != "default":
                yield ("clients", name, "endpoints"), f"no endpoint {quoted(one)}; {suggest(one, endpoints)}"
        if named == []:
            yield ("clients", name, "endpoints"), "names none; leave it out to allow every endpoint"
    yield from _shared_keys(clients, operators)


def _open_doors(key: str, who: str, address: Any, known: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(address, str) or known:
        return
    try:
        is_open = not parse_address(address).is_loopback
    except ValueError:
        return  # the schema's to tell
    if is_open:
        yield (
            (key,),
            f"is open to others, and anybody could use it: name {who} (`weighlock keys new NAME`), or loopback",
        )


def _shared_keys(*sections: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    seen: dict[str, str] = {}
    for section, bodies in zip(("clients", "operators"), sections, strict=True):
        for name, body in bodies.items():
            digest = _mapping(body).get("key_sha256")
            if isinstance(digest, str) and seen.setdefault(digest, f"{section}.{name}") != f"{section}.{name}":
                yield (section, name, "key_sha256"), f"is the key of {seen[digest]} too; each has one of its own"


def _key(name: str, body: Mapping[str, Any]) -> ClientKey:
    return ClientKey(
        name=name,
        key_sha256=body["key_sha256"],
        endpoints=tuple(body.get("endpoints") or ()),
        tenant=body.get("tenant"),
    )


def _spelled(key: ClientKey, *, is_client: bool) -> dict[str, Any]:
    own = {"endpoints": list(key.endpoints) or None, "tenant": key.tenant} if is_client else {}
    return {"key_sha256": key.key_sha256, **{name: value for name, value in own.items() if value is not None}}


def _named(values: Mapping[str, Any] | None, names: Mapping[str, str]) -> dict[str, Any]:
    return {names[key]: value for key, value in (values or {}).items() if value is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
