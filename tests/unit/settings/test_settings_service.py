"""The `service` section: who may ask, where it listens, what does not fit together."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from weighlock.errors import ConfigError
from weighlock.settings import Settings, dump, load
from weighlock.settings.serving import Address, OnClientGone, Serving, UnknownPaths, parse_address

BASE = "version: 1\ndefault: {model: gemini-3.8-flash}\nendpoints: {bug_triage: {}, browser_agent: {}}\n"
ONE, OTHER = sha256(b"one").hexdigest(), sha256(b"other").hexdigest()


def read(folder: Path, service: str) -> Settings:
    (folder / "weighlock.yaml").write_text(f"{BASE}service: {service}\n")
    return load(folder / "weighlock.yaml", environ={})


def mistake(folder: Path, service: str) -> str:
    with pytest.raises(ConfigError) as raised:
        read(folder, service)
    return str(raised.value)


def test_left_out_it_is_loopback_for_everybody_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "weighlock.yaml").write_text(BASE)

    service = load(tmp_path / "weighlock.yaml", environ={}).service

    assert service == Serving()
    assert (str(service.listen), str(service.admin)) == ("127.0.0.1:8080", "127.0.0.1:9464")
    assert not service.is_public


def test_every_key_is_read_and_written_again(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        f"""
  listen: 0.0.0.0:80
  admin: "[::1]:9000"
  clients: {{app: {{key_sha256: {ONE}, endpoints: [bug_triage], tenant: acme}}}}
  operators: {{anna: {{key_sha256: {OTHER}}}}}
  hosts: [Weighlock.Internal]
  uris: ["gs://acme-media/"]
  on_client_gone: cancel
  unknown_paths: pass
  max: {{body: 20MB, in_flight: 1GB}}
  deadlines: {{header: 5s, idle: 1m, first_byte: 2m, drain: 10s}}""",
    )
    service = settings.service

    assert service.is_public
    assert service.admin == Address(host="::1", port=9000)
    assert service.clients["app"].endpoints == ("bug_triage",)
    assert service.hosts == ("weighlock.internal",)
    assert (service.on_client_gone, service.unknown_paths) == (OnClientGone.CANCEL, UnknownPaths.PASS)
    assert (service.max_body_bytes, service.max_in_flight_bytes) == (20_000_000, 10**9)
    assert service.deadlines.idle_s == 60
    (tmp_path / "again.yaml").write_text(dump(settings))
    assert load(tmp_path / "again.yaml", environ={}).service == service


def test_without_an_admin_port_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, "{admin: null}").service.admin is None


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ("{listen: here}", "host:port"),
        ("{listen: 127.0.0.1:99999}", "host:port"),
        ("{listen: 0.0.0.0:8080}", "name clients"),
        ("{listen: ':8080'}", "name clients"),
        ("{listen: weighlock.internal:8080}", "name clients"),
        ("{admin: '[::]:9464'}", "name operators"),
        ("{clients: {app: {key_sha256: secret}}}", "weighlock keys new"),
        (f"{{clients: {{app: {{key_sha256: {ONE.upper()}}}}}}}", "weighlock keys new"),
        (f"{{clients: {{app: {{key_sha256: {ONE}, endpoints: [bug_triag]}}}}}}", "did you mean 'bug_triage'"),
        (f"{{clients: {{app: {{key_sha256: {ONE}, endpoints: []}}}}}}", "leave it out"),
        (f"{{clients: {{a: {{key_sha256: {ONE}}}, b: {{key_sha256: {ONE}}}}}}}", "is the key of clients.a too"),
        (f"{{clients: {{a: {{key_sha256: {ONE}}}}}, operators: {{b: {{key_sha256: {ONE}}}}}}}", "clients.a too"),
        ("{hosts: ['https://weighlock']}", "host name"),
        ("{uris: ['gs://']}", "how an address begins"),
        ("{uris: ['https://cdn.acme']}", "its host whole"),
        ("{uris: ['file:///etc/']}", "how an address begins"),
        ("{on_client_gone: wait}", "drain, cancel"),
        ("{deadlines: {idle: 0s}}", "greater than 0"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path: Path, service: str, said: str) -> None:
    told = mistake(tmp_path, service)

    assert said in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("text", "host", "is_loopback"),
    [
        ("127.0.0.1:1", "127.0.0.1", True),
        ("127.9.9.9:1", "127.9.9.9", True),
        ("localhost:1", "localhost", True),
        ("[::1]:1", "::1", True),
        (":1", "0.0.0.0", False),  # noqa: S104
        ("10.0.0.1:1", "10.0.0.1", False),
    ],
)
def test_an_address_and_who_reaches_it(text: str, host: str, *, is_loopback: bool) -> None:
    found = parse_address(text)

    assert (found.host, found.port, found.is_loopback) == (host, 1, is_loopback)
