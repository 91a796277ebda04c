"""YAML and environment → plain frozen values. The only reader of either.

`load()` finds one file – the one named, `WEIGHLOCK_CONFIG`, `./weighlock.yaml`, `./config/weighlock.yaml`, else the one
shipped inside the package – merges what it includes, lays `WEIGHLOCK_SECTION__KEY` variables over it, merges `default`
into every endpoint, and gives a `Settings`. All mistakes are told at once, each with its file and line, its key and the
nearest valid one.

A key this version does not act on is refused rather than accepted in silence; see `schema`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighlock.budgets.windows import Period, Window
from weighlock.errors import ConfigError
from weighlock.request import Clip
from weighlock.settings.model import (
    Account,
    Confinement,
    Endpoint,
    MediaSettings,
    Mode,
    OnExceed,
    OnMimeMismatch,
    OnUnknownModel,
    OnUnknownPrice,
    OutputTokens,
    Safety,
    Settings,
    Uploads,
)

__all__ = [
    "PACKAGED",
    "Account",
    "Clip",
    "Confinement",
    "Endpoint",
    "MediaSettings",
    "Mode",
    "OnExceed",
    "OnMimeMismatch",
    "OnUnknownModel",
    "OnUnknownPrice",
    "OutputTokens",
    "Period",
    "Reading",
    "Safety",
    "Settings",
    "Uploads",
    "Window",
    "dump",
    "find",
    "json_schema",
    "load",
    "read",
]

PACKAGED = Path(__file__).parent.parent / "weighlock.yaml"
"""The default configuration, as shipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came of reading the settings: either the settings, or everything that is wrong with them."""

    settings: Settings | None
    problems: tuple[str, ...] = ()
    """One line a mistake, by file and line; those of variables last."""
    rules_overlay: Path | None = None
    """The rule file that is named and there, even where the settings are wrong."""


def find(path: Path | None = None, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Path:
    """The file that would be read. One that was asked for by name is returned even where it does not exist."""
    from weighlock.settings.environment import CONFIG_VARIABLE

    variables = os.environ if environ is None else environ
    folder = Path.cwd() if cwd is None else cwd
    if path is not None:
        return folder / path
    if named := variables.get(CONFIG_VARIABLE):
        return folder / named
    for candidate in (folder / "weighlock.yaml", folder / "config" / "weighlock.yaml"):
        if candidate.is_file():
            return candidate
    return PACKAGED


def load(path: Path | None = None, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """The settings in force.

    Args:
        path: The file to read; found as the module says when `None`. Relative to `cwd`.
        environ: Variables laid over it; the process's own when `None`.
        cwd: Where relative paths start; the working directory when `None`.

    Raises:
        ConfigError: every mistake found, `figures["problems"]` one a line.
    """
    reading = read(path, environ=environ, cwd=cwd)
    if reading.settings is None:
        raise _error(list(reading.problems))
    return reading.settings


def read(path: Path | None = None, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Reading:
    """The settings in force, or what is wrong with them. Arguments as for `load`."""
    from weighlock.settings.build import build
    from weighlock.settings.check import validate
    from weighlock.settings.coherence import check_for_keys, check_together, overlay_file
    from weighlock.settings.environment import apply_environment
    from weighlock.settings.sources import read_files
    from weighlock.written import told

    variables = os.environ if environ is None else environ
    folder = Path.cwd() if cwd is None else cwd
    document = read_files(find(path, environ=variables, cwd=cwd))
    if document.values or not document.problems:
        # An unreadable file has told its mistake; judging the emptiness it left would only bury that.
        apply_environment(document, variables)
        check_for_keys(document)
        file = validate(document)
        check_together(document, folder)
        if file is not None and not document.problems:
            settings = build(file, document, folder)
            return Reading(settings=settings, rules_overlay=settings.rules_overlay)
    problems = told(str(problem) for problem in document.in_order())
    return Reading(settings=None, problems=tuple(problems), rules_overlay=overlay_file(document, folder))


def _error(problems: list[str]) -> ConfigError:
    if len(problems) == 1:
        return ConfigError(problems[0], problems=problems)
    lines = "\n".join(f"  {problem}" for problem in problems)
    return ConfigError(f"{len(problems)} mistakes in the settings:\n{lines}", problems=problems)


def dump(settings: Settings) -> str:
    """The settings as YAML, every value spelled out; loading it gives the same settings."""
    from weighlock.settings.spelled import as_document
    from weighlock.settings.text import dump_yaml

    return dump_yaml(as_document(settings))


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file, for editors."""
    from weighlock.settings.schema import SettingsFile

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **SettingsFile.model_json_schema(),
        "title": "weighlock settings",
    }
