"""An account of the settings → the service it names, with its key or login, and the files it has there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from weighlock.errors import ConfigError
from weighlock.gemini.auth import ApiKey, Credential, GoogleLogin
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.http import Service, Target
from weighlock.io import Io
from weighlock.locks import Lock
from weighlock.request import Backend
from weighlock.settings import Account, Settings
from weighlock.uploads.copies import Copies
from weighlock.uploads.references import References
from weighlock.uploads.registry import Registry
from weighlock.written import read_text

_LONGEST_KEY = 4_000
_BASE_URLS = {Backend.DEVELOPER: "GOOGLE_GEMINI_BASE_URL", Backend.VERTEX: "GOOGLE_VERTEX_BASE_URL"}
"""Where the SDK looks for a gateway's address."""


def service_of(account: Account, io: Io, *, base_url: str | None = None) -> Service:
    """The account's service. `base_url` leads to a gateway; else the account's own, the SDK's variable, Google.

    Raises:
        ConfigError: no key where the account says it is, or an address that is none.
    """
    return Service(io, target_of(account, base_url), credential_of(account))


def target_of(account: Account, base_url: str | None = None) -> Target:
    """Where its service is. Raises `ConfigError` where an address cannot be made of it."""
    return Target(
        backend=account.backend,
        base_url=base_url or account.base_url or os.environ.get(_BASE_URLS[account.backend]) or None,
        project=account.project,
        location=account.location,
    )


def credential_of(account: Account) -> Credential:
    """The account's key; on Vertex, the Google login of this machine where the account names no key.

    Raises:
        ConfigError: it is not where the account says. Nothing of it is repeated.
    """
    if account.api_key_file is not None:
        try:
            return ApiKey(read_text(account.api_key_file, _LONGEST_KEY))
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or "holds no key"
            raise ConfigError(f"account {account.name}: api_key_file {account.api_key_file}: {why}") from None
    if account.api_key_env is not None:
        if key := os.environ.get(account.api_key_env):
            try:
                return ApiKey(key)
            except ConfigError as error:
                raise ConfigError(f"account {account.name}: {account.api_key_env}: {error.message}") from None
        raise ConfigError(f"account {account.name}: {account.api_key_env} is not set; it holds the API key")
    if account.backend is Backend.VERTEX:
        return GoogleLogin()
    raise ConfigError(f"account {account.name} names no key; write api_key_env or api_key_file")


# ---- its files


def state_folder(settings: Settings | None) -> Path:
    """Where what is remembered on this machine is kept."""
    if settings is not None and settings.state.dir is not None:
        return settings.state.dir
    from platformdirs import user_state_path

    return user_state_path("weighlock")


def registry_of(settings: Settings) -> Registry:
    """The registry of references on this machine; the caller closes it. Raises what it does."""
    return Registry(registry_file(settings))


def registry_file(settings: Settings | None) -> Path:
    return state_folder(settings) / "uploads.db"


def copies_of(settings: Settings, registry: Registry) -> Copies:
    """The copies that belong to it."""
    return Copies(state_folder(settings) / "copies", registry, settings.uploads.policy)


def references_of(settings: Settings, registry: Registry, name: str, service: Service) -> References:
    """The files an account has at its service. The same name at another address is another account."""
    return References(
        service.io,
        service,
        registry,
        account=account_id(name, service.target),
        policy=settings.uploads.policy,
        copies=copies_of(settings, registry),
        max_bytes=settings.safety.max_file_bytes,
    )


def account_id(name: str, target: Target) -> str:
    """Whose files they are, in the registry."""
    return f"{name}@{target.root.partition('://')[2]}"


class Accounts:
    """The accounts of the settings over one `Io`: what each needs is made when it is first asked. Thread-safe."""

    def __init__(self, settings: Settings, io: Io, registry: Callable[[], Registry]) -> None:
        self.io = io
        self._settings, self._registry = settings, registry
        self._counters: dict[str, TokenCounter] = {}
        self._references: dict[str, References] = {}
        self._lock = Lock()

    def counter(self, account: Account) -> TokenCounter:
        """What it was told, it remembers. Raises what `service_of` does."""
        with self._lock:
            if account.name not in self._counters:
                self._counters[account.name] = TokenCounter(service_of(account, self.io))
            return self._counters[account.name]

    def references(self, account: Account) -> References:
        """The account's files.

        Raises:
            ConfigError: on Vertex, which has none; as `service_of`; or where the registry may not be.
            StateUnavailable: the registry cannot be read.
        """
        with self._lock:
            if account.name not in self._references:
                service = service_of(account, self.io)
                self._references[account.name] = references_of(self._settings, self._registry(), account.name, service)
            return self._references[account.name]
