"""One call to the service's REST interface: where it goes, who asks, how often it is tried."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from weighlock.errors import ConfigError, InputError, ServiceRefused, ServiceUnreachable
from weighlock.gemini.auth import Credential
from weighlock.gemini.errors import Cause, no_answer, refusal
from weighlock.io import HttpRequest, Io
from weighlock.request import Backend
from weighlock.written import quoted

_DEVELOPER = "https://generativelanguage.googleapis.com"
_MULTI_REGIONS = ("us", "eu")
_RESOURCE = re.compile(r"[A-Za-z0-9][\w.@-]{0,127}(?:/[A-Za-z0-9][\w.@-]{0,127}){0,7}", re.ASCII)
_PLACE = re.compile(r"[a-z0-9][a-z0-9:.-]{0,62}", re.ASCII)
_MOST_ANSWER_BYTES = 16_000_000
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which service, and under which address."""

    backend: Backend = Backend.DEVELOPER
    base_url: str | None = None
    """A gateway or an emulator; Google's own where left out. Its path is kept."""
    api_version: str | None = None
    """`v1beta`, on Vertex `v1beta1`, where left out: what part-level fields are documented for."""
    project: str | None = None
    """Vertex; `None` is express mode, where the key names it."""
    location: str | None = None
    """Vertex; `None` is `global`."""

    def __post_init__(self) -> None:
        """Raises `ConfigError` where an address cannot be made of it, or would carry a secret."""
        for name, value in (("project", self.project), ("location", self.location), ("api_version", self.api_version)):
            if value is not None and not _PLACE.fullmatch(value):
                raise ConfigError(f"{name}: {quoted(value)} is no name of one")
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
                raise ConfigError("base_url: expected https://host or https://host/path, without a query")
            if parts.username is not None:
                raise ConfigError("base_url: a login does not belong there")

    @property
    def root(self) -> str:
        """Scheme, host and path, without a slash at its end."""
        if self.base_url is not None:
            return self.base_url.rstrip("/")
        if self.backend is Backend.DEVELOPER:
            return _DEVELOPER
        if self.location in (None, "global"):
            return "https://aiplatform.googleapis.com"
        if self.location in _MULTI_REGIONS:
            return f"https://aiplatform.{self.location}.rep.googleapis.com"
        return f"https://{self.location}-aiplatform.googleapis.com"

    @property
    def version(self) -> str:
        return self.api_version or ("v1beta" if self.backend is Backend.DEVELOPER else "v1beta1")

    def model_url(self, model: str, method: str) -> str:
        """The address of a model's method.

        Raises:
            InputError: that is no model's name.
        """
        return f"{self.root}/{self.version}/{self.model_path(model)}:{method}"

    def model_path(self, model: str) -> str:
        """The model's resource name, as `generateContentRequest.model` wants it too."""
        if not _RESOURCE.fullmatch(model):
            raise InputError(f"{quoted(model)} is no name of a model", model=quoted(model))
        if self.backend is Backend.DEVELOPER:
            return model if "/" in model else f"models/{model}"
        if model.startswith("projects/"):
            return model
        bare = model.removeprefix("models/")
        published = bare if bare.startswith("publishers/") else f"publishers/google/models/{bare}"
        if self.project is None:
            return published
        return f"projects/{self.project}/locations/{self.location or 'global'}/{published}"

    def files_url(self, name: str = "files") -> str:
        """The address of the files, or of one (`files/abc`)."""
        return f"{self.root}/{self.version}/{name}"

    def upload_url(self) -> str:
        """Where an upload starts."""
        return f"{self.root}/upload/{self.version}/files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often, and after how long, a call is tried again. Waits are drawn evenly below a doubling bound."""

    attempts: int = 4
    first_s: float = 0.5
    longest_s: float = 32.0
    longest_asked_s: float = 60.0
    """The service may ask for a longer wait than ours, but for none beyond this."""

    def wait_s(self, failed: int, chance: float, asked_s: float | None) -> float:
        """How long to wait after so many failures."""
        own = chance * min(self.longest_s, self.first_s * 2.0 ** min(failed - 1, 30))
        return max(own, min(asked_s or 0.0, self.longest_asked_s))


ONCE = Retry(attempts=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A 2xx answer."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case. May hold an upload's address."""
    json: Mapping[str, Any] = field(repr=False)
    """Empty where there is no body."""

    @property
    def served_at(self) -> datetime | None:
        """The service's own clock."""
        try:
            return parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError, TypeError):
            return None


class Service:
    """The REST interface of one target, asked by one credential."""

    def __init__(self, io: Io, target: Target, credential: Credential | None, retry: Retry | None = None) -> None:
        """No `credential`: a gateway that adds its own, or an emulator."""
        self.io = io
        self.target = target
        self._credential = credential
        self._retry = retry or Retry()

    def __repr__(self) -> str:
        return f"Service({self.target.backend}, {self._credential!r})"

    async def credentials(self, *, fresh: bool = False) -> Mapping[str, str]:
        """The headers that say who asks; with `fresh`, by another token than the last one. Raises as `Credential`."""
        return {} if self._credential is None else await self._credential.headers(self.io, fresh=fresh)

    @property
    def refreshable(self) -> bool:
        """Whether asking again with fresh credentials may help after a 401."""
        return self._credential is not None and self._credential.refreshable

    def hidden(self) -> tuple[str, ...]:
        """The secrets it has given out, to be taken out of whatever the service says."""
        return () if self._credential is None else self._credential.hidden()

    async def call(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        within_s: float | None = None,
        retry: Retry | None = None,
        repeatable: bool = True,
        keyless: bool = False,
    ) -> Answer:
        """The answer of one call, tried again where that can help.

        Args:
            method: Of HTTP.
            url: One of the target's, or an upload's.
            body: A JSON object, or bytes as they are.
            headers: Beside the usual ones.
            timeout_s: Of one attempt.
            within_s: For all attempts and the waits between them; no attempt is begun that cannot end within it.
            retry: The service's own where left out.
            repeatable: Whether doing it twice is the same as once. If not, it is only tried again where it surely was
                not done.
            keyless: For an upload's address, which is the key.

        Raises:
            ServiceRefused: the answer is an error, or none we can read.
            ServiceUnreachable: no answer came.
            ConfigError: no usable key or login.
        """
        retry = retry or self._retry
        until = None if within_s is None else self.io.monotonic() + within_s
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        fresh = False
        failed = 0
        while True:
            left_s = timeout_s if until is None else min(timeout_s, until - self.io.monotonic())
            given = await self._headers(headers, content, isinstance(body, Mapping), keyless=keyless, fresh=fresh)
            request = HttpRequest(method=method, url=url, headers=given, body=content, timeout_s=max(left_s, 0.001))
            try:
                return await self._once(request)
            except (ServiceRefused, ServiceUnreachable) as error:
                if self._is_stale(error) and not fresh and not keyless:
                    fresh = True
                    continue
                failed += 1
                if failed >= retry.attempts or not may_pass(error, repeatable=repeatable):
                    raise
                wait_s = retry.wait_s(failed, self.io.random(), error.figures.get("retry_after_s"))
                if until is not None and self.io.monotonic() + wait_s >= until:
                    raise
            await self.io.sleep(wait_s)

    async def _headers(
        self, more: Mapping[str, str] | None, content: bytes, is_json: bool, *, keyless: bool, fresh: bool
    ) -> dict[str, str]:
        # Answers are small: compression would only let one of them unfold into much.
        headers = {"user-agent": "weighlock", "accept-encoding": "identity"}
        if is_json:
            headers["content-type"] = "application/json"
        if not content and not is_json:
            headers["content-length"] = "0"
        headers.update(more or {})
        if not keyless:
            headers.update(await self.credentials(fresh=fresh))
        return headers

    def _is_stale(self, error: ServiceRefused | ServiceUnreachable) -> bool:
        return self.refreshable and error.figures.get("service_status") == 401

    async def _once(self, request: HttpRequest) -> Answer:
        async with self.io.send(request) as response:
            status, headers = response.status, response.headers
            body = await response.read(_MOST_ANSWER_BYTES + 1)
        if not 200 <= status < 300:
            keys = self.hidden()
            query = urlsplit(request.url).query  # the key to an upload
            raise refusal(status, headers, body, self.io.now(), (*keys, query) if query else keys)
        return Answer(status=status, headers=headers, json=_document(status, body))


def _document(status: int, body: bytes) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    if len(body) > _MOST_ANSWER_BYTES:
        raise no_answer(status, f"and more than {_MOST_ANSWER_BYTES:,} bytes")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise no_answer(status, "but not in JSON: cut short, or something else answers at that address") from None
    if not isinstance(document, dict):
        raise no_answer(status, "but no object")
    return document


def may_pass(error: ServiceRefused | ServiceUnreachable, *, repeatable: bool = True) -> bool:
    """Whether the same call may succeed a little later, and can do no harm."""
    if isinstance(error, ServiceUnreachable):
        return repeatable or bool(error.figures["unsent"])
    status, cause = error.figures["service_status"], error.figures["cause"]
    if cause in (Cause.DAILY_QUOTA, Cause.STORAGE_FULL):
        return False
    return status in _PASSING if repeatable else status == 429
