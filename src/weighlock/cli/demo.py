"""`weighlock demo`: a support team's bug report, with and without the line, against the emulator on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from weighlock.cli.printable import printable
from weighlock.cli.receipt_table import lines_of, table_of
from weighlock.cli.table import console, print_all
from weighlock.errors import BudgetExceeded, ConfigError

if TYPE_CHECKING:
    from weighlock import Client, Receipt

_MODEL = "gemini-3.8-flash"
_PROMPT = (
    "A customer reports that an order cannot be saved. The screenshot shows the error, and the recording what they did "
    "before. What went wrong, and what should they do? Name in `unreadable` whatever you could not read."
)
_SETTINGS = """\
version: 1
accounts: {emulator: {backend: developer, api_key_env: WEIGHLOCK_DEMO_KEY}}
default: {account: emulator, model: gemini-3.8-flash, count: {when: always}, output_tokens: {expected: 256}}
endpoints:
  naive: {owner: nobody}
  bug_triage:
    owner: team-support
    mode: enforce
    limits: {prompt_tokens: 12000, cost_usd: 0.02, tokens: {video: 8500, audio: 1600, image: 2300}}
    media:
      image: {floor: high}
      video: {apply: always, clip: last 60s, fps: 0.5, resolution: low}
    windows: {day: {cost_usd: 50}}
  thumbnails: {owner: team-web, mode: enforce, limits: {prompt_tokens: 500}, media: {image: {floor: high}}}
"""
_SCHEMA = {
    "type": "object",
    "properties": {"diagnosis": {"type": "string"}, "unreadable": {"type": "array", "items": {"type": "string"}}},
    "required": ["diagnosis", "unreadable"],
}


@click.command()
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Folder for the media it draws.")
def demo(keep: Path | None) -> None:
    """Show the whole line on one bug report: offline, without a key, in under half a minute.

    Starts the emulator, draws a screenshot and a 4-minute recording, and sends them twice: as they are, and as the
    endpoint `bug_triage` wants them. Then once more, sharper, for what could not be read; and once where no setting
    makes them fit. What the emulator bills are our own rules' figures: it shows how the line works, not what Google
    charges.
    """
    out = console()
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weighlock-demo-")))
        naive, shaped, strict, script = stack.enter_context(_clients(folder))
        out.print("Drawing a 1920×1080 screenshot and 240 s of 720p screen recording …", style="dim")
        contents = _contents(folder)
        receipts = {"as it came": _asked(naive, contents, script, unreadable=[])}
        response = _answered(shaped, contents, script, unreadable=["recording.mp4"])
        from weighlock import receipt

        receipts["bug_triage"] = receipt(response)
        _print_side_by_side(out, receipts)
        _print_saved(out, *receipts.values())
        out.print()
        out.print("The answer says it could not read recording.mp4. Once more, as sharp as the budget allows:")
        script(unreadable=[])
        again = receipt(shaped.models.escalate(response, ["recording.mp4"]))
        _print_side_by_side(out, {"first pass": receipts["bug_triage"], "sharper": again})
        out.print()
        out.print("And where nothing makes it fit:")
        try:
            _answered(strict, contents, script, unreadable=[])
        except BudgetExceeded as refusal:
            print_all(out, [Text(printable(refusal.message), style="red")])


@contextmanager
def _clients(folder: Path) -> Iterator[tuple[Client, Client, Client, Any]]:
    """A client for each endpoint, and what scripts the emulator's next answer."""
    try:
        from weighlock.emulator import Emulator
        from weighlock.emulator.script import Answer
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the emulator needs {missing.name}: pip install 'weighlock[service]'") from missing
    from weighlock import Client, Preflight, load

    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory(prefix="weighlock-demo-"))
        file = Path(state) / "weighlock.yaml"
        file.write_text(f"{_SETTINGS}state: {{dir: {state}}}\n", encoding="utf-8")
        emulator = stack.enter_context(Emulator(processing_s=0.0))
        stack.enter_context(_environment(WEIGHLOCK_DEMO_KEY="demo", GOOGLE_GEMINI_BASE_URL=emulator.base_url))
        preflight = stack.enter_context(Preflight(load(file, environ={})))

        def script(unreadable: list[str]) -> None:
            answer = {"diagnosis": "The connection was reset (0x80072EFF): check the proxy.", "unreadable": unreadable}
            emulator.script.queue(Answer(json=answer))

        names = ("naive", "bug_triage", "thumbnails")
        clients = [Client(preflight=preflight, endpoint=name) for name in names]
        for client in clients:
            stack.callback(client.close)
        yield clients[0], clients[1], clients[2], script


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _contents(folder: Path) -> list[Any]:
    from weighlock.codecs.samples import draw_samples
    from weighlock.integrations.media import media

    return [*map(media, draw_samples(folder, "screenshot.png", "recording.mp4")), _PROMPT]


def _answered(client: Client, contents: list[Any], script: Any, *, unreadable: list[str]) -> Any:
    script(unreadable=unreadable)
    config: Any = {"response_mime_type": "application/json", "response_schema": _SCHEMA}
    return client.models.generate_content(model=_MODEL, contents=contents, config=config)


def _asked(client: Client, contents: list[Any], script: Any, *, unreadable: list[str]) -> Receipt:
    from weighlock import receipt

    return receipt(_answered(client, contents, script, unreadable=unreadable))


def _print_side_by_side(out: Console, receipts: dict[str, Receipt]) -> None:
    out.print(table_of(receipts))
    legend = "≤ is the bound that decides · counted: by countTokens, all but the media · billed: by the emulator"
    out.print(legend, style="dim")
    for name, one in receipts.items():
        for line in lines_of(one):
            print_all(out, [Text(f"{name}: ").append(line)])


def _print_saved(out: Console, before: Receipt, after: Receipt) -> None:
    if before.billed is None or after.billed is None or before.billed.usd is None or after.billed.usd is None:
        return
    tokens = (before.billed.usage.prompt or 0) - (after.billed.usage.prompt or 0)
    whole = float(before.billed.usd)
    dollars = whole - float(after.billed.usd)
    out.print(f"Saved: {tokens:,} tokens, ${dollars:.4f} a request ({dollars / whole:.0%}).", style="bold")
