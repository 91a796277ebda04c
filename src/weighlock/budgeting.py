"""The settings → the budgets a request has to fit in, and what keeps them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from weighlock.accounts import state_folder
from weighlock.budgets.hold import Store
from weighlock.budgets.memory import MemoryStore
from weighlock.budgets.sqlite import FILE, SqliteStore
from weighlock.budgets.windows import Budget
from weighlock.errors import ConfigError
from weighlock.settings import Settings
from weighlock.settings.model import EACH, StoreKind


def budgets_for(
    settings: Settings, endpoint: str | None, tenant: str | None = None, session_hash: str | None = None
) -> tuple[Budget, ...]:
    """All that a request counts in: its endpoint's windows, its tenant's, those of all together, its session.

    A session is one run of an agent, whatever endpoints it uses: those that limit sessions count together. Two tenants
    have two sessions, though their hashes be the same.

    Raises:
        ConfigError: no such endpoint.
    """
    return tuple(_budgets(settings, endpoint, tenant, session_hash))


def _budgets(settings: Settings, name: str | None, tenant: str | None, session_hash: str | None) -> Iterator[Budget]:
    endpoint = settings.endpoint(name)
    for window in endpoint.windows.values():
        yield Budget(scope=f"endpoint:{endpoint.name}", window=window, of=endpoint.name, owner=endpoint.owner)
    if tenant is not None:
        of = f"tenants.{tenant if tenant in settings.tenants else EACH}"
        for window in settings.tenant(tenant).values():
            yield Budget(scope=f"tenant:{tenant}", window=window, of=of)
    for window in settings.overall.values():
        yield Budget(scope="overall", window=window, of="overall")
    if session_hash is not None and endpoint.session.limits:
        scope = f"session:{session_hash}" if tenant is None else f"session:{tenant}:{session_hash}"
        yield Budget(scope=scope, window=endpoint.session, of=endpoint.name, owner=endpoint.owner)


def store_of(settings: Settings, environ: Mapping[str, str] | None = None) -> Store:
    """The store the settings name; the caller closes it.

    Raises:
        ConfigError: the address of a shared one is not where it should be, or its extra is not installed.
    """
    match settings.state.store:
        case StoreKind.MEMORY:
            return MemoryStore()
        case StoreKind.SQLITE:
            return SqliteStore(state_folder(settings) / FILE)
        case StoreKind.REDIS:
            return _shared(settings.state.url_env or "", os.environ if environ is None else environ)


def _shared(variable: str, environ: Mapping[str, str]) -> Store:
    if not (url := environ.get(variable)):
        raise ConfigError(f"state.url_env: {variable} is not set; it holds the address of the store of budgets")
    try:
        from weighlock.budgets.redis import RedisStore
    except ModuleNotFoundError as error:
        raise ConfigError("state.store: redis is an extra: pip install 'weighlock[redis]'") from error
    return RedisStore(url)
