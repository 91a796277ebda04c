"""The environment over the file: `WEIGHLOCK_SECTION__KEY=value`, one value a variable.

Exploded by pydantic-settings' own source, which is loaded only where such a variable is set. What that source lets pass
in silence is told here: a variable that is no setting, one below a single value, and one that would create an account
or endpoint by a typo. Lists and mappings are read as the file's are, within the same bounds, and not as JSON.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from weighlock.settings.model import suggest
from weighlock.settings.text import Document, KeyPath, Problem, dotted, leaves, read_flow
from weighlock.written import MOST_CHARACTERS, listed, quoted

PREFIX = "WEIGHLOCK_"
NESTING = "__"
CONFIG_VARIABLE = "WEIGHLOCK_CONFIG"
NOT_SETTINGS = frozenset({CONFIG_VARIABLE, "WEIGHLOCK_CORPUS", "WEIGHLOCK_VENV"})
"""Variables of ours that are no key: where the file is, and what our own tests and scripts go by."""
_NAMED = ("accounts", "endpoints", "tenants")
_ROLLING = re.compile(r"rolling_(\d+s)")
_FILE_ONLY = frozenset({"version", "include"})


def apply_environment(document: Document, environ: Mapping[str, str]) -> None:
    """Lay the variables over the document.

    Names under `accounts` and `endpoints` must exist: a variable that would create one is a typo. A value in brackets
    or braces is read as YAML, `null` is null, the rest is text for the schema to judge. Variables that the
    configuration itself names as a key's home are left alone.
    """
    homes = _named_by(document)
    ours = {name: text for name, text in environ.items() if name.startswith(PREFIX)}
    variables = {name: text for name, text in ours.items() if name not in NOT_SETTINGS and name not in homes}
    if not variables:
        return
    known = _settable()
    for name in sorted(variables):
        path = tuple(name.removeprefix(PREFIX).lower().split(NESTING))
        if complaint := _complaint(path, document, known) or _unreadable(name, variables):
            document.problems.append(Problem(name, dotted(path) if path[0] in known else "", complaint))
            del variables[name]
    for path, value in leaves(_exploded(variables)):
        variable = f"{PREFIX}{NESTING.join(path).upper()}"
        _set(document, tuple(_ROLLING.sub(r"rolling \1", key) for key in path), variable, _read(value))


def _settable() -> list[str]:
    from weighlock.settings.schema import SettingsFile

    return [key for key in SettingsFile.model_fields if key not in _FILE_ONLY]


def _exploded(variables: Mapping[str, str]) -> dict[str, Any]:
    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

    from weighlock.settings.schema import SettingsFile

    class Variables(SettingsFile, BaseSettings):
        model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=NESTING)

    class Source(EnvSettingsSource):
        def _load_env_vars(self) -> Mapping[str, str | None]:
            return {name.lower(): text for name, text in variables.items()}

        def decode_complex_value(self, field_name: str, field: FieldInfo | None, value: Any) -> Any:
            return _read(value)

    source = Source(Variables)
    exploded: dict[str, Any] = {}
    for name, field in Variables.model_fields.items():
        whole = source.env_vars.get(f"{PREFIX}{name}".lower())
        value = source.explode_env_vars(name, field, source.env_vars) or whole
        if value is not None:
            exploded[name] = value
    return exploded


def _complaint(path: KeyPath, document: Document, known: list[str]) -> str | None:
    if path[0] not in known:
        return f"no such setting; {_nearest(f'{PREFIX}{path[0].upper()}', [f'{PREFIX}{key.upper()}' for key in known])}"
    if path[0] not in _NAMED:
        return None
    section = document.values.get(path[0])
    names = section if isinstance(section, dict) else {}
    if len(path) < 3:
        return f"names no single value; write {PREFIX}{path[0].upper()}{NESTING}NAME{NESTING}KEY"
    return None if path[1] in names else f"no {path[0][:-1]} {quoted(path[1])} in the files; {suggest(path[1], names)}"


def _unreadable(name: str, variables: Mapping[str, str]) -> str | None:
    """What is wrong with a variable before anything is known of its key."""
    text = variables[name]
    if len(text) > MOST_CHARACTERS:
        return f"more than {MOST_CHARACTERS:,} characters"
    try:
        f"{name}{text}".encode()
    except UnicodeEncodeError:
        return "is not UTF-8 text"
    steps = name.split(NESTING)
    for above in (NESTING.join(steps[:length]) for length in range(1, len(steps))):
        if above in variables and not isinstance(_read(variables[above]), dict):
            return f"lies below {above}, which is set to a single value"
    try:
        _read(text)
    except ValueError as error:
        return str(error)
    return None


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known: {listed(sorted(known))}"


def _named_by(document: Document) -> set[str]:
    accounts = document.values.get("accounts")
    bodies = accounts.values() if isinstance(accounts, dict) else ()
    homes = (body.get("api_key_env") for body in bodies if isinstance(body, dict))
    state = document.values.get("state")
    store = state.get("url_env") if isinstance(state, dict) else None
    return {home for home in (*homes, store) if isinstance(home, str)}


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    stripped = value.strip()
    if stripped in {"null", "~"}:
        return None
    return read_flow(stripped) if stripped[:1] in {"[", "{"} else value


def _set(document: Document, path: KeyPath, variable: str, value: Any) -> None:
    from weighlock.settings.check import keys_may_follow

    into = document.values
    for at, key in enumerate(path[:-1]):
        above = path[: at + 1]
        below = into.get(key)
        if not keys_may_follow(above):
            document.problems.append(Problem(variable, dotted(path), f"{dotted(above)} is a single value"))
            return
        if below is None:
            below = into[key] = {}
        if not isinstance(below, dict):
            return  # the file's own mistake at this key is told; laying a value over it would hide that
        into = below
    into[path[-1]] = value
    document.marks[path] = variable
    for below_it in [mark for mark in document.marks if mark[: len(path)] == path and mark != path]:
        document.marks[below_it] = variable
