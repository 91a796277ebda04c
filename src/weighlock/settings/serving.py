"""What an operator says about the service, as plain frozen values."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[A-Za-z0-9.-]*):(?P<port>[0-9]{1,5})", re.ASCII)


class OnClientGone(StrEnum):
    """What becomes of an answer whose client has left."""

    DRAIN = "drain"
    """It is read to its end, and charged as the service bills it."""
    CANCEL = "cancel"
    """It is broken off, and charged by what was seen of it, or as it was held."""


class UnknownPaths(StrEnum):
    """What becomes of a call that nobody weighs: live, interactions, tuning, whatever comes next."""

    REFUSE = "refuse"
    PASS = "pass"  # noqa: S105
    """Sent on as it is, past every limit and budget; what it names at the service is not told apart by tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen."""

    host: str
    port: int
    """0 takes any free one."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """`127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`; without a host, every address of the machine.

    Raises:
        ValueError: anything else.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65_535:
        raise ValueError("must be host:port, such as 127.0.0.1:8080")
    return Address(host=found["host"].strip("[]") or "0.0.0.0", port=int(found["port"]))  # noqa: S104


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKey:
    """Who may ask, known by a key of which only the hash is written."""

    name: str
    key_sha256: str = field(repr=False)
    """In hex, lower case."""
    endpoints: tuple[str, ...] = ()
    """The only ones it may use; none is every one, `default` among them."""
    tenant: str | None = None
    """Whose requests they are; its own name where left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds a peer may take."""

    header_s: float = 10.0
    """From the first byte of a request, or the connection's begin, to the end of its headers."""
    idle_s: float = 30.0
    """Between two pieces of a body, in either direction."""
    first_byte_s: float = 600.0
    """Of the service, until its answer begins: a model may think for minutes."""
    drain_s: float = 30.0
    """For what is under way once the service is told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The proxy, its JSON API and the port of those who run it."""

    listen: Address = Address(host="127.0.0.1", port=8080)
    admin: Address | None = Address(host="127.0.0.1", port=9464)
    """Metrics, health, the operators' API and page; `None` serves none of them."""
    clients: Mapping[str, ClientKey] = field(default_factory=lambda: MappingProxyType({}))
    """Without any, everybody who reaches the address may use every endpoint; it has to be loopback then."""
    operators: Mapping[str, ClientKey] = field(default_factory=lambda: MappingProxyType({}))
    """Who may read the admin port beside metrics and health; the same holds without any."""
    hosts: tuple[str, ...] = ()
    """Names it answers to, beside the addresses it listens on and those of loopback."""
    uris: tuple[str, ...] = ()
    """Beginnings of addresses (`gs://acme-media/`) that a JSON API request may name."""
    on_client_gone: OnClientGone = OnClientGone.DRAIN
    unknown_paths: UnknownPaths = UnknownPaths.REFUSE
    max_body_bytes: int = 100_000_000
    """Of a request that has to be read; uploads are bounded by `safety.max.file`."""
    max_in_flight_bytes: int = 500_000_000
    """Of all such bodies together; what comes beyond waits, then is asked to come again."""
    deadlines: Deadlines = field(default_factory=Deadlines)

    @property
    def is_public(self) -> bool:
        return not self.listen.is_loopback
