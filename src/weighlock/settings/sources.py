"""Where settings come from: a YAML file, the files it includes, the environment. Read, merged and marked; not judged.

pydantic-settings has sources for all three, but lets a missing file, a doubled key and a mistyped variable pass in
silence and cannot say which line a value came from; that is most of what this module is for.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weighlock.settings.model import suggest
from weighlock.settings.text import Document, KeyPath, Problem, dotted, read_flow, read_yaml

PREFIX = "WEIGHLOCK_"
NESTING = "__"
CONFIG_VARIABLE = "WEIGHLOCK_CONFIG"
NOT_SETTINGS = frozenset({CONFIG_VARIABLE, "WEIGHLOCK_CORPUS"})
"""Variables of ours that are no key: where the file is, and where the test corpus is."""
INCLUDABLE = ("accounts", "endpoints")
"""What an included file may hold: named things. Safety, prices and the default stay with whoever owns the main file."""


def read_files(main: Path) -> Document:
    """The main file and everything it includes, as one document."""
    document = Document()
    read_yaml(main, document)
    patterns = document.values.get("include")
    if isinstance(patterns, list):
        for pattern in patterns:
            if isinstance(pattern, str):
                _include(pattern, main, document)
    return document


def _include(pattern: str, main: Path, document: Document) -> None:
    """Merge the files a pattern names. A wildcard may match nothing; a plain name may not."""
    folder = main.parent
    is_glob = any(character in pattern for character in "*?[")
    try:
        files = sorted(folder.glob(pattern)) if is_glob else [folder / pattern]
    except (ValueError, NotImplementedError) as error:
        document.wrong(("include",), f"{pattern!r} is no pattern relative to {folder}: {error}")
        return
    for file in files:
        if file in document.files:
            continue
        part = Document()
        read_yaml(file, part)
        document.files.append(file)
        document.problems.extend(part.problems)
        for key, value in part.values.items():
            if key in INCLUDABLE:
                _include_named(key, value, part, document)
            elif key != "version" or value != document.values.get("version"):
                allowed = f"an included file holds {' and '.join(INCLUDABLE)} only; write this in {main}"
                document.wrong((key,), allowed, where=part.place((key,)))


def _include_named(section: str, value: Any, part: Document, document: Document) -> None:
    into = document.values.setdefault(section, {})
    if not isinstance(value, dict) or not isinstance(into, dict):
        if not isinstance(value, dict):
            document.wrong((section,), "must be a mapping of names", where=part.place((section,)))
        return
    for name, body in value.items():
        path = (section, name)
        if name in into:
            document.wrong(path, f"defined twice; first at {document.place(path)}", where=part.place(path))
            continue
        into[name] = body
        document.marks.update({at: where for at, where in part.marks.items() if at[:2] == path})


def apply_environment(document: Document, environ: Mapping[str, str], top_level: tuple[str, ...]) -> None:
    """Lay `WEIGHLOCK_SECTION__KEY=value` over the document, one value a variable.

    Names under `accounts` and `endpoints` must exist: a variable that would create one is a typo. A value in brackets
    or braces is read as YAML, `null` is null, the rest is text for the schema to judge. Variables that the
    configuration itself names as a key's home are left alone.
    """
    for variable, text in sorted(environ.items()):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or variable in _named_by(document):
            continue
        path = tuple(variable.removeprefix(PREFIX).lower().split(NESTING))
        if path[0] not in top_level or path[0] in {"version", "include"}:
            known = [f"{PREFIX}{key.upper()}" for key in top_level if key not in {"version", "include"}]
            head = f"{PREFIX}{path[0].upper()}"
            document.problems.append(Problem(variable, "", f"no such setting; {suggest_variable(head, known)}"))
        elif path[0] in INCLUDABLE and (complaint := _unknown_name(path, document)):
            document.problems.append(Problem(variable, dotted(path), complaint))
        else:
            _set(document, path, variable, _from_variable(text))


def suggest_variable(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"


def _named_by(document: Document) -> set[Any]:
    accounts = document.values.get("accounts")
    bodies = accounts.values() if isinstance(accounts, dict) else ()
    return {body.get("api_key_env") for body in bodies if isinstance(body, dict)}


def _unknown_name(path: KeyPath, document: Document) -> str | None:
    section = document.values.get(path[0])
    names = section if isinstance(section, dict) else {}
    if len(path) < 3:
        return f"names no single value; write {PREFIX}{path[0].upper()}{NESTING}NAME{NESTING}KEY"
    return None if path[1] in names else f"no {path[0][:-1]} {path[1]!r} in the files; {suggest(path[1], names)}"


def _from_variable(text: str) -> Any:
    stripped = text.strip()
    if stripped in {"null", "~"}:
        return None
    if stripped[:1] in {"[", "{"}:
        return read_flow(stripped)
    return text


def _set(document: Document, path: KeyPath, variable: str, value: Any) -> None:
    into = document.values
    for key in path[:-1]:
        below = into.get(key)
        if below is None:
            below = into[key] = {}
        if not isinstance(below, dict):
            return  # the file's own mistake at this key is told; laying a value over it would hide that
        into = below
    into[path[-1]] = value
    document.marks[path] = variable
    for at in [at for at in document.marks if at[: len(path)] == path and at != path]:
        document.marks[at] = variable
