"""`weighlock doctor`: what this machine can do, which limits hold, and how old the figures are."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from weighlock import __version__
from weighlock.cli.render import print_json
from weighlock.errors import WeighlockError
from weighlock.settings import Settings, load

_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For a program.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, config: Path | None) -> None:
    """Show versions, confinement, state folder, credentials found (never their values), and the age of the rules.

    Exit code 1 when something will not work: no confined worker, or settings that cannot be read.
    """
    findings = _examine(config)
    if as_json:
        print_json(findings)
    else:
        _print(findings)
    ctx.exit(1 if findings["problems"] else 0)


def _examine(config: Path | None) -> dict[str, Any]:
    problems: list[str] = []
    findings: dict[str, Any] = {
        "weighlock": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "problems": problems,
    }
    settings: Settings | None = None
    try:
        settings = load(config)
        findings["settings"] = ", ".join(map(str, settings.files))
    except WeighlockError as error:
        problems.append(f"settings: {error}")
    findings["codecs"], findings["confinement"] = _codecs(settings, problems)
    findings["state_dir"] = _state_dir(settings)
    findings["credentials"] = _credentials(settings)
    findings["rules"] = _rules(settings, problems)
    return findings


def _codecs(settings: Settings | None, problems: list[str]) -> tuple[dict[str, str], dict[str, Any]]:
    from weighlock.codecs import Prober, versions
    from weighlock.examiner import probe_limits

    try:
        with Prober(probe_limits(settings)) if settings else Prober() as prober:
            return versions(), prober.confinement().as_dict()
    except WeighlockError as error:
        problems.append(f"codecs: {error}")
        return {}, {}


def _state_dir(settings: Settings | None) -> dict[str, Any]:
    from weighlock.accounts import state_folder

    path = state_folder(settings)
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    return {"path": str(path), "exists": path.exists(), "writable": os.access(nearest, os.W_OK)}


def _credentials(settings: Settings | None) -> dict[str, str]:
    names = dict.fromkeys(_KEYS)
    files: dict[str, None] = {}
    for account in settings.accounts.values() if settings else ():
        if account.api_key_env:
            names[account.api_key_env] = None
        if account.api_key_file:
            files[str(account.api_key_file)] = None
    default = Path.home() / ".config" / "gcloud" / "application_default_credentials.json"
    found = {name: "set" if os.environ.get(name) else "not set" for name in names}
    found |= {path: "present" if Path(path).is_file() else "missing" for path in files}
    found["application default credentials"] = "present" if default.is_file() else "not found"
    return found


def _rules(settings: Settings | None, problems: list[str]) -> dict[str, Any]:
    from weighlock.rules.audit import STALE_AFTER_DAYS
    from weighlock.weigher import rule_book

    try:
        book = rule_book(settings) if settings else None
    except WeighlockError as error:
        problems.append(f"rules: {error}")
        return {}
    if book is None:
        from weighlock.rules import RuleBook

        book = RuleBook.packaged()
    checked_on = min(generation.checked_on for generation in book.generations())
    age = (datetime.now(UTC).date() - checked_on).days
    return {"checked_on": checked_on.isoformat(), "age_days": age, "stale": age > STALE_AFTER_DAYS}


def _print(findings: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from weighlock.cli.table import Trimmed

    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, show_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(findings):
        table.add_row(name, Text(value))
    console = Console(highlight=False)
    console.print(Trimmed(table), end="")
    for problem in findings["problems"]:
        console.print(Text(f"problem: {problem}", style="red"))
    sys.stdout.flush()


def _rows(findings: dict[str, Any]) -> list[tuple[str, str]]:
    held = findings["confinement"]
    state, rules = findings["state_dir"], findings["rules"]
    rows = [
        ("weighlock", f"{findings['weighlock']} · Python {findings['python']} · {findings['platform']}"),
        ("settings", findings.get("settings", "not readable")),
        ("codecs", " · ".join(f"{name} {version}" for name, version in findings["codecs"].items()) or "none"),
    ]
    if held:
        missing = f"; missing: {', '.join(held['missing'])}" if held["missing"] else ""
        rows.append(("confinement", f"{held['mechanism']}: {', '.join(held['held'])}{missing}"))
    state_words = "exists" if state["exists"] else "will be made when needed"
    rows.append(("state folder", f"{state['path']} ({state_words}{'' if state['writable'] else ', not writable'})"))
    rows += [("credentials", ", ".join(f"{name}: {found}" for name, found in findings["credentials"].items()))]
    if rules:
        stale = " - stale, look for a newer release" if rules["stale"] else ""
        days = "1 day" if rules["age_days"] == 1 else f"{rules['age_days']} days"
        rows.append(("rules", f"checked on {rules['checked_on']}, {days} ago{stale}"))
    return rows
