"""The `service` section of the settings file as its keys are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from weighlock.settings.fields import Name, Seconds, Section, Size, TenantName
from weighlock.settings.serving import OnClientGone, UnknownPaths, parse_address

_SHA256 = re.compile(r"[0-9a-f]{64}")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?", re.ASCII)
_URI = re.compile(r"(?:gs|https)://[^\s?#*]{1,500}")


def _address(value: str) -> str:
    return str(parse_address(value))


def _hash(value: Any) -> Any:
    # What is no hash may be the key itself, and must not be repeated.
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError("must be the SHA-256 of a key, 64 hex digits; `weighlock keys new NAME` prints the line")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value.lower()):
        raise ValueError("must be a host name such as weighlock.internal, without a scheme, port or path")
    return value.lower()


def _uri(value: str) -> str:
    if not _URI.fullmatch(value) or value.count("/") < 3:
        raise ValueError("must be how an address begins, its host whole: gs://bucket/ or https://host/path")
    return value


AddressText = Annotated[str, AfterValidator(_address)]
KeyHash = Annotated[str, BeforeValidator(_hash)]
Positive = Annotated[Seconds, Field(gt=0)]


class KeySection(Section):
    key_sha256: KeyHash = Field(description="As `weighlock keys new NAME` prints it.")


class ClientSection(KeySection):
    endpoints: list[Name] | None = Field(None, description="The only ones it may use; left out, every one.")
    tenant: TenantName | None = Field(None, description="Whose requests they are; left out, the client's own name.")


class ServiceMaxSection(Section):
    body: Size | None = Field(None, description="Of a request that has to be read.")
    in_flight: Size | None = Field(None, description="Of all such bodies together.")


class DeadlinesSection(Section):
    header: Positive | None = Field(None, description="For the headers of a request.")
    idle: Positive | None = Field(None, description="Between two pieces of a body, in either direction.")
    first_byte: Positive | None = Field(None, description="Until the service's answer begins.")
    drain: Positive | None = Field(None, description="For what is under way once it is told to stop.")


class ServiceSection(Section):
    listen: AddressText | None = Field(None, description="The proxy and its JSON API.")
    admin: AddressText | None = Field(None, description="Metrics, health, the operators' API; null: none.")
    clients: Mapping[Name, ClientSection] | None = Field(None, description="Who may ask, and for what.")
    operators: Mapping[Name, KeySection] | None = Field(None, description="Who may read the admin port.")
    hosts: list[Annotated[str, AfterValidator(_host)]] | None = Field(None, description="Names it answers to.")
    uris: list[Annotated[str, AfterValidator(_uri)]] | None = Field(None, description="What the JSON API may name.")
    on_client_gone: OnClientGone | None = None
    unknown_paths: UnknownPaths | None = None
    max: ServiceMaxSection | None = None
    deadlines: DeadlinesSection | None = None
