"""`weighlock.Client`: google-genai's own client, with the line in front of every request it makes.

A real subclass, so that frameworks which ask for a `genai.Client` take it. Tested with google-genai 2.34 and 3.6.
"""

from __future__ import annotations

from typing import Any, get_args

from google import genai
from google.genai.client import AsyncClient as PlainAsyncClient

from weighlock.accounts import credential_of
from weighlock.errors import ConfigError
from weighlock.gemini.auth import ApiKey
from weighlock.integrations.genai_contract import CLIENT, demand_contract, uncovered
from weighlock.integrations.genai_gate import AwaitingFace, BlockingFace, Uncovered, Whose
from weighlock.integrations.genai_models import AsyncWeighedModels, WeighedModels
from weighlock.integrations.genai_stores import (
    AsyncWeighedBatches,
    AsyncWeighedCaches,
    WeighedBatches,
    WeighedCaches,
)
from weighlock.integrations.genai_uncovered import guard
from weighlock.preflight import Preflight
from weighlock.request import Backend
from weighlock.settings import Account

demand_contract()


class Client(genai.Client):
    """A `genai.Client` whose requests are prepared and settled.

    `models`, `chats` and their async sides, automatic function calling (each turn), continuations (each hop): prepared
    and settled. `count_tokens`: counted as it would be sent. `caches.create`, `batches.create` of inlined requests and
    `embed_content`: weighed and limited, not settled. All else that asks a model is `uncovered`.

    Args:
        preflight: The line; from the settings file when left out, and then closed with the client.
        endpoint: Of all its requests; else that of the block (`with weighlock.endpoint(…)`), else `default`. A block's
            word beats the client's.
        tenant: The same of the tenant.
        session: The same of the session.
        uncovered: Entry points that are not weighed: `refuse` raises `UncoveredCall`, `pass` lets them through and
            says so once. When left out, an endpoint that enforces refuses, and one that observes lets pass; the
            block's, where a block says one.
        genai_client_args: As `genai.Client` takes them. Where they name no key, credentials or backend, these and the
            base URL are the endpoint's account's.

    Raises:
        ConfigError: a wrong settings file, no such endpoint, no key where its account says it is.
    """

    def __init__(
        self,
        *,
        preflight: Preflight | None = None,
        endpoint: str | None = None,
        tenant: str | None = None,
        session: str | None = None,
        uncovered: Uncovered | None = None,
        **genai_client_args: Any,
    ) -> None:
        if uncovered not in (None, *get_args(Uncovered)):
            raise ConfigError(f"uncovered={uncovered!r} is not one of {', '.join(get_args(Uncovered))}")
        self._owns_preflight = preflight is None
        self.preflight = preflight or Preflight.from_config()
        """The line."""
        known = self.preflight.settings.endpoint(endpoint)
        super().__init__(**_arguments(known.account, genai_client_args))
        whose = Whose(
            endpoint=endpoint,
            tenant=tenant,
            session=session,
            backend=Backend.VERTEX if self.vertexai else Backend.DEVELOPER,
            uncovered=uncovered,
        )
        self._face = BlockingFace(self.preflight, whose)
        self._weighed = _over(self._api_client, self._face, WeighedModels, WeighedCaches, WeighedBatches)
        self._weighed_aio = AsyncClient(self._api_client, AwaitingFace(self.preflight, whose))

    @property
    def models(self) -> WeighedModels:
        models: WeighedModels = self._weighed["models"]
        return models

    @property
    def caches(self) -> WeighedCaches:
        caches: WeighedCaches = self._weighed["caches"]
        return caches

    @property
    def batches(self) -> WeighedBatches:
        batches: WeighedBatches = self._weighed["batches"]
        return batches

    @property
    def aio(self) -> AsyncClient:
        return self._weighed_aio

    def close(self) -> None:
        super().close()
        if getattr(self, "_owns_preflight", False):
            self.preflight.close()


class AsyncClient(PlainAsyncClient):
    """As `client.aio`."""

    def __init__(self, api_client: Any, face: AwaitingFace) -> None:
        super().__init__(api_client)
        self._face = face
        self._weighed = _over(api_client, face, AsyncWeighedModels, AsyncWeighedCaches, AsyncWeighedBatches)

    @property
    def models(self) -> AsyncWeighedModels:
        models: AsyncWeighedModels = self._weighed["models"]
        return models

    @property
    def caches(self) -> AsyncWeighedCaches:
        caches: AsyncWeighedCaches = self._weighed["caches"]
        return caches

    @property
    def batches(self) -> AsyncWeighedBatches:
        batches: AsyncWeighedBatches = self._weighed["batches"]
        return batches


def _over(api_client: Any, face: Any, models: Any, caches: Any, batches: Any) -> dict[str, Any]:
    made = {"models": models(api_client), "caches": caches(api_client), "batches": batches(api_client)}
    for one in made.values():
        one._face = face
    return made


def _arguments(account: Account, given: dict[str, Any]) -> dict[str, Any]:
    """What the SDK's client is made with: the account's, where the caller says nothing of whom to ask and how."""
    if any(given.get(name) is not None for name in ("api_key", "credentials", "vertexai", "enterprise", "project")):
        return given
    told = dict(given)
    if account.base_url is not None:
        told.setdefault("http_options", {"base_url": account.base_url})
    credential = credential_of(account)
    if isinstance(credential, ApiKey):
        told["api_key"] = credential.hidden()[0]
    if account.backend is Backend.DEVELOPER:
        return told | {"vertexai": False}  # left out, a variable of the environment would say
    told["vertexai"] = True
    if account.project is not None:
        told |= {"project": account.project, "location": account.location or "global"}
    return told


guard(Client, genai.Client, uncovered(genai.Client, CLIENT), "client.")
guard(AsyncClient, PlainAsyncClient, uncovered(PlainAsyncClient, CLIENT), "client.aio.")
