"""Who asks, by which key, and what that key may use."""

from __future__ import annotations

import pytest

from weighlock.service.keys import Forbidden, Keys, caller, hash_of, new_key
from weighlock.settings.serving import ClientKey

ONE, TWO = "wlk-one-0123456789", "wlk-two-0123456789"
APP = ClientKey(name="app", key_sha256=hash_of(ONE), endpoints=("bug_triage",), tenant="acme")
AGENT = ClientKey(name="agent", key_sha256=hash_of(TWO), endpoints=("bug_triage", "browser_agent"))
KEYS = Keys({"app": APP, "agent": AGENT})
KNOWN = ("bug_triage", "browser_agent")
Headers = list[tuple[bytes, bytes]]


def header(key: str, name: bytes = b"x-goog-api-key") -> Headers:
    return [(name, key.encode())]


def test_keys_differ_and_only_their_hash_is_kept() -> None:
    one, other = new_key(), new_key()

    assert one != other
    assert len(one) > 40
    assert ONE not in repr(KEYS.__dict__)


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        (header(ONE), b""),
        (header(f"Bearer {ONE}", b"authorization"), b""),
        (header(f"bearer  {ONE} ", b"authorization"), b""),
        ([], f"alt=sse&key={ONE}".encode()),
        (header("proxy-injected") + header(ONE), b""),
        (header(ONE) + header(f"Bearer {ONE}", b"authorization"), b""),
    ],
)
def test_a_key_is_known_wherever_clients_put_one(headers: Headers, query: bytes) -> None:
    assert KEYS.client(headers, query) is APP


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([], b""),
        (header(""), b""),
        (header("x"), b""),
        (header(hash_of(ONE)), b""),
        (header(f"Basic {ONE}", b"authorization"), b""),
        (header(ONE) + header(TWO), b""),
        (header(ONE), f"key={TWO}".encode()),
        (header("\xff\xfe"), b"key=%ff"),
    ],
)
def test_no_key_a_wrong_one_and_those_of_two_are_refused_alike(headers: Headers, query: bytes) -> None:
    with pytest.raises(Forbidden, match="knows no such key"):
        KEYS.client(headers, query)


def test_where_no_clients_are_named_anybody_may_ask_for_anything() -> None:
    client = Keys({}).client([], b"")

    assert caller(client, [], named="bug_triage", known=KNOWN).tenant == "default"
    assert caller(client, [], named=None, known=KNOWN).endpoint is None


def test_the_endpoint_is_the_paths_then_the_headers_then_the_keys_only_one() -> None:
    named: Headers = [(b"x-weighlock-endpoint", b"browser_agent")]

    assert caller(APP, [], named=None, known=KNOWN).endpoint == "bug_triage"
    assert caller(AGENT, named, named=None, known=KNOWN).endpoint == "browser_agent"
    assert caller(AGENT, named, named="bug_triage", known=KNOWN).endpoint == "bug_triage"
    assert caller(APP, [], named=None, known=KNOWN).tenant == "acme"
    assert caller(AGENT, named, named=None, known=KNOWN).tenant == "agent"


@pytest.mark.parametrize("named", ["browser_agent", "default", "nowhere", "bug_triage2"])
def test_another_endpoint_is_refused_whether_there_is_one_or_not(named: str) -> None:
    with pytest.raises(Forbidden, match="this key may not use that endpoint"):
        caller(APP, [], named=named, known=KNOWN)


def test_who_may_use_several_names_one() -> None:
    with pytest.raises(Forbidden, match="name an endpoint"):
        caller(AGENT, [], named=None, known=KNOWN)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"x-weighlock-session", b"a b")],
        [(b"x-weighlock-session", b"a" * 201)],
        [(b"x-weighlock-session", "ä".encode())],
        [(b"x-weighlock-session", b"a"), (b"x-weighlock-session", b"b")],
        [(b"x-weighlock-endpoint", b"bug_triage"), (b"x-weighlock-endpoint", b"bug_triage")],
    ],
)
def test_headers_of_ours_are_there_once_and_plain(headers: Headers) -> None:
    with pytest.raises(Forbidden):
        caller(APP, headers, named=None, known=KNOWN)


def test_a_session_is_carried() -> None:
    assert caller(APP, [(b"x-weighlock-session", b"run-7")], named=None, known=KNOWN).session == "run-7"
