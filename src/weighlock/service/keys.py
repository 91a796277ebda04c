"""Who asks: a key of ours → the client it belongs to, and what it may use. Decided before a body is read."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from weighlock.settings.serving import ClientKey

ENDPOINT_HEADER, SESSION_HEADER = "x-weighlock-endpoint", "x-weighlock-session"
_PREFIX = "wlk-"
_SESSION = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
MOST_FIELDS = 50
"""Of a query."""
_DEFAULT = "default"
_TENANT_OF_NOBODY = "default"
EVERYBODY = ClientKey(name="everybody", key_sha256="", tenant=_TENANT_OF_NOBODY)
"""Where no clients are named: whoever reaches the address, which is loopback then."""

Headers = Sequence[tuple[bytes, bytes]]


class Forbidden(Exception):
    """It may not. The message tells no more than whoever asks knows already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and for which endpoint."""

    client: str
    tenant: str
    endpoint: str | None
    """`None` is the `default` section."""
    session: str | None = None


def new_key() -> str:
    """A key of 256 bits, such as a client sends."""
    return f"{_PREFIX}{secrets.token_urlsafe(32)}"


def hash_of(key: str) -> str:
    """What of a key is written into the settings."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class Keys:
    """The keys of the settings."""

    def __init__(self, known: Mapping[str, ClientKey]) -> None:
        self._known = tuple(known.values())

    def client(self, headers: Headers, query: bytes) -> ClientKey:
        """Whose key a request carries: `x-goog-api-key`, a bearer token, or `?key=`.

        Raises:
            Forbidden: none, or one nobody has, or those of two clients.
        """
        if not self._known:
            return EVERYBODY
        found = {id(one): one for secret in _secrets(headers, query) if (one := self._of(secret)) is not None}
        if len(found) != 1:
            raise Forbidden(
                "weighlock knows no such key: give one of this service's, as x-goog-api-key, a bearer token or ?key="
            )
        return next(iter(found.values()))

    def still(self, who: Caller, known: Iterable[str]) -> bool:
        """Whether who was let in once would be let in now, for the same."""
        everybody = {} if self._known else {EVERYBODY.name: EVERYBODY}
        client = next((one for one in self._known if one.name == who.client), everybody.get(who.client))
        if client is None or (client.tenant or client.name) != who.tenant:
            return False
        return (who.endpoint or _DEFAULT) in (client.endpoints or {*known, _DEFAULT})

    def is_others(self, headers: Headers, query: bytes, tenant: str) -> bool:
        """Whether a request carries the key of another tenant. One without a key of ours does not."""
        shown = (self._of(secret) for secret in _secrets(headers, query))
        return any(one is not None and (one.tenant or one.name) != tenant for one in shown)

    def _of(self, secret: str) -> ClientKey | None:
        digest = hash_of(secret)
        matching = [one for one in self._known if hmac.compare_digest(one.key_sha256, digest)]
        return matching[0] if matching else None


def caller(client: ClientKey, headers: Headers, *, named: str | None, known: Iterable[str]) -> Caller:
    """Who asks for what. The endpoint is the path's (`named`), else the header's, else the key's only one.

    Raises:
        Forbidden: it may not use that endpoint, whether there is one or not; or it has to name one.
    """
    said = named or _one(headers, ENDPOINT_HEADER)
    allowed = client.endpoints
    if said is None and len(allowed) > 1:
        raise Forbidden(f"name an endpoint, by {ENDPOINT_HEADER} or /endpoints/NAME: {', '.join(allowed)}")
    endpoint = said or (allowed[0] if allowed else None)
    if endpoint is not None and endpoint not in (allowed or {*known, _DEFAULT}):
        raise Forbidden("this key may not use that endpoint")
    session = _one(headers, SESSION_HEADER)
    if session is not None and not _SESSION.fullmatch(session):
        raise Forbidden(f"{SESSION_HEADER} is 1 to 200 visible ASCII characters")
    return Caller(
        client=client.name,
        tenant=client.tenant or client.name,
        endpoint=None if endpoint == _DEFAULT else endpoint,
        session=session,
    )


def fields(query: bytes) -> list[tuple[str, str]]:
    """What a query says. Raises `Forbidden`: more than `MOST_FIELDS` of them."""
    if query.count(b"&") >= MOST_FIELDS:
        raise Forbidden(f"a query of more than {MOST_FIELDS} fields")
    return parse_qsl(query.decode("latin-1"))


def _secrets(headers: Headers, query: bytes) -> Iterator[str]:
    for name, value in headers:
        text = value.decode("latin-1").strip()
        if name == b"x-goog-api-key":
            yield text
        elif name == b"authorization" and text[:7].lower() == "bearer ":
            yield text[7:].strip()
    if b"key=" in query:
        yield from (text for key, text in fields(query) if key == "key")


def _one(headers: Headers, name: str) -> str | None:
    wanted = name.encode()
    found = [value for key, value in headers if key == wanted]
    if len(found) > 1:
        raise Forbidden(f"{name} is there twice")
    return found[0].decode("latin-1").strip() or None if found else None
