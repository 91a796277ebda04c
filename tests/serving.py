"""The service from the outside: with the emulator behind it, and a plain HTTP client in front."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from prepared import settings
from weighlock.emulator import Emulator
from weighlock.events import Ended
from weighlock.service.keys import hash_of, new_key
from weighlock.service.running import ServiceThread
from weighlock.settings import Settings, load
from weighlock.settings.serving import Address

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading the machine's certificates takes 30 ms a client
MODEL = "gemini-3.5-flash"
GENERATE, STREAM, COUNT = (
    f"/v1beta/models/{MODEL}:{method}" for method in ("generateContent", "streamGenerateContent", "countTokens")
)
UPSTREAM_KEY = "upstream-key-0123456789"


@dataclass(slots=True, kw_only=True)
class Served:
    """A running service."""

    emulator: Emulator = field(repr=False)
    settings: Settings = field(repr=False)
    base_url: str
    admin_url: str
    service: ServiceThread
    http: httpx2.Client
    events: list[Ended] = field(default_factory=list, repr=False)
    """Of requests that have ended."""

    def ask(self, path: str, *parts: Any, **options: Any) -> httpx2.Response:
        """One request of one turn."""
        from emulated import user

        return self.http.post(path, json={"contents": [user(*parts)]}, **options)


def client_yaml(**endpoints: str) -> tuple[str, dict[str, str]]:
    """The `clients` section for these names, `endpoints` and `tenant` as given; and their keys."""
    keys = {name: new_key() for name in endpoints}
    lines = [f"{name}: {{key_sha256: {hash_of(keys[name])}, {rest}}}" for name, rest in endpoints.items()]
    return "{" + ", ".join(lines) + "}", keys


@contextmanager
def serving(folder: Path, emulator: Emulator, yaml: str = "") -> Iterator[Served]:
    """A service of these settings in front of an emulator. State is kept in the folder."""
    key = folder / "upstream.key"
    key.write_text(UPSTREAM_KEY)
    account = f"{{backend: developer, api_key_file: {key}, base_url: '{emulator.base_url}'}}"
    default = "" if "default:" in yaml else f"default: {{model: {MODEL}}}\n"
    accounts = "" if "accounts:" in yaml else f"accounts: {{developer: {account}}}\n"

    def read() -> Settings:
        found = load(folder / "weighlock.yaml", environ={}, cwd=folder)
        return replace(found, state=replace(found.state, dir=folder / "state"))

    known = settings(folder, accounts + default + yaml)
    anywhere = Address(host="127.0.0.1", port=0)
    known = replace(known, service=replace(known.service, listen=anywhere, admin=anywhere))
    events: list[Ended] = []
    with (
        ServiceThread(known, on_event=[events.append], read=read) as service,
        httpx2.Client(base_url=service.base_url, timeout=20, verify=NO_TLS) as http,
    ):
        yield Served(
            emulator=emulator,
            settings=known,
            base_url=service.base_url,
            admin_url=service.admin_url or "",
            http=http,
            events=events,
            service=service,
        )
