"""What does not fit together in the raw values, whatever else is wrong with them.

Asked beside the schema, not after it, so that a mistyped key does not hide an account nobody defined. A value of the
wrong type is the schema's to tell, and what may stand under a misspelt key is not missed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from weighlock.settings.build_service import service_mistakes
from weighlock.settings.model import BUILT_IN_ACCOUNT, admits, suggest
from weighlock.settings.schema import EndpointSection, SettingsFile
from weighlock.settings.text import Document, KeyPath
from weighlock.written import MOST_TOLD, holds_key, is_file, listed, plain, quoted, without_keys

_OVERLAY = ("rules", "overlay")
_STATE_DIR = ("state", "dir")


def check_together(document: Document, cwd: Path) -> None:
    """Accounts, models and files that are named and not there land in `document.problems`."""
    _check_endpoints(document)
    for name, account in _mapping(document.values.get("accounts")).items():
        key_file = _mapping(account).get("api_key_file")
        if isinstance(key_file, str):
            at = ("accounts", name, "api_key_file")
            path = _placed(at, key_file, document, cwd)
            if without_keys(key_file) != key_file and not (path and is_file(path)):
                _wrong(document, at, "must be the path of a file; a key itself is never written here")
    _check_windows(document)
    endpoints = _mapping(document.values.get("endpoints"))
    for below, text in service_mistakes(_mapping(document.values.get("service")), endpoints):
        _wrong(document, ("service", *below), text)
    folder = _mapping(document.values.get("state")).get("dir")
    if isinstance(folder, str):
        _placed(_STATE_DIR, folder, document, cwd)
    log = _mapping(document.values.get("observe")).get("decision_log")
    if isinstance(log, str) and log not in ("off", "stdout"):
        _placed(("observe", "decision_log"), log, document, cwd)
    overlay = _mapping(document.values.get("rules")).get("overlay")
    if isinstance(overlay, str) and (path := _placed(_OVERLAY, overlay, document, cwd)) and not is_file(path):
        _wrong(document, _OVERLAY, f"no such file: {plain(path, 300)}")


def check_for_keys(document: Document) -> None:
    """A key pasted into the settings, wherever it is, lands in `document.problems`."""
    for path, text in _texts(document.values, ()):
        if holds_key(text):
            _wrong(document, path, "looks like an API key; a key is never written here, only where it is kept")


def overlay_file(document: Document, cwd: Path) -> Path | None:
    """The rule file laid over the shipped ones, where one is named and there."""
    overlay = _mapping(document.values.get("rules")).get("overlay")
    if not isinstance(overlay, str):
        return None
    try:
        path = beside(_OVERLAY, overlay, document, cwd)
    except RuntimeError:
        return None
    return path if is_file(path) else None


def beside(key: KeyPath, text: str, document: Document, cwd: Path) -> Path:
    """A path relative to the file that names it, or to the working directory where a variable does.

    Raises:
        RuntimeError: it begins with a `~` whose home directory is not known.
    """
    file, _, line = document.marks.get(key, "").rpartition(":")
    return (Path(file).parent if line.isdigit() else cwd) / Path(text).expanduser()


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield (*path, key), key
            yield from _texts(below, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, path)
    elif isinstance(value, str):
        yield path, value


def _check_endpoints(document: Document) -> None:
    values = document.values
    accounts = _accounts(document)
    default = _mapping(values.get("default"))
    # What an endpoint inherits is the default's mistake, and is told there: only its own words are held against it.
    if default or not (values.get("default") or _misspelt("default", values, SettingsFile)):
        _check_account(("default",), default, accounts, document)
        if default.get("model") is None and not _misspelt("model", default, EndpointSection):
            _wrong(document, ("default", "model"), "missing; name the model used when a request names none")
        _check_model(("default",), default, default, document)
    for name, own in _mapping(values.get("endpoints")).items():
        if len(document.problems) > MOST_TOLD:
            return
        at = ("endpoints", name)
        own_words = _mapping(own)
        if "account" in own_words:
            _check_account(at, own_words, accounts, document)
        if "model" in own_words and own_words["model"] is None:
            _wrong(document, (*at, "model"), "missing; name the model used when a request names none")
        _check_model(at, own_words, {**default, **own_words}, document)


def _check_windows(document: Document) -> None:
    """A rolling window begins at no hour of any place."""
    values = document.values
    named = ((section, name) for section in ("endpoints", "tenants") for name in _mapping(values.get(section)))
    for at in (("default",), ("overall",), *named):
        body: Any = values
        for key in at:
            body = _mapping(body).get(key)
        for name, window in _mapping(_mapping(body).get("windows")).items():
            if str(name).startswith("rolling") and _mapping(window).get("timezone") is not None:
                _wrong(document, (*at, "windows", name, "timezone"), "a rolling window has no time zone; remove it")


def _accounts(document: Document) -> Mapping[str, Any] | None:
    """The accounts by name; `None` where there may be more than could be read."""
    accounts = document.values.get("accounts")
    if document.partial or _misspelt("accounts", document.values, SettingsFile):
        return None
    if accounts is None:
        told = any(problem.key == "accounts" for problem in document.problems)
        return None if told else {BUILT_IN_ACCOUNT.name: None}
    return (accounts or {BUILT_IN_ACCOUNT.name: None}) if isinstance(accounts, Mapping) else None


def _check_account(at: KeyPath, own: Mapping[str, Any], accounts: Mapping[str, Any] | None, document: Document) -> None:
    if accounts is None or _misspelt("account", own, EndpointSection):
        return
    name = own.get("account")
    if name is None and len(accounts) > 1:
        _wrong(document, (*at, "account"), f"missing: name one of {listed(sorted(accounts))}")
    elif isinstance(name, str) and name not in accounts:
        _wrong(document, (*at, "account"), f"no account {quoted(name)}; {suggest(name, accounts)}")


def _check_model(at: KeyPath, own: Mapping[str, Any], values: Mapping[str, Any], document: Document) -> None:
    model, models = values.get("model"), values.get("models")
    if not isinstance(model, str) or not isinstance(models, list) or not all(isinstance(name, str) for name in models):
        return
    key = next((key for key in ("model", "models") if key in own), None)
    if key is not None and not admits(models, model):
        _wrong(document, (*at, key), f"{quoted(model)} is not among models; {suggest(model, models)}")


def _wrong(document: Document, key: KeyPath, text: str) -> None:
    if not document.told(key):
        document.wrong(key, text)


def _placed(key: KeyPath, text: str, document: Document, cwd: Path) -> Path | None:
    try:
        return beside(key, text, document, cwd)
    except RuntimeError:
        _wrong(document, key, f"no home directory is known for {quoted(text)}")
        return None


def _misspelt(key: str, values: Mapping[str, Any], section: type[BaseModel]) -> bool:
    """Whether a key nobody knows looks like the one that is not there."""
    unknown = [given for given in values if given not in section.model_fields]
    return key not in values and bool(difflib.get_close_matches(key, unknown, n=1))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
