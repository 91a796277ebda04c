"""`weighlock emulator`: a Gemini API on loopback, without a key."""

from __future__ import annotations

import math
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighlock.errors import ConfigError, InputError
from weighlock.written import quoted

if TYPE_CHECKING:
    from weighlock.emulator import Emulator


def _finite(_: click.Context, __: click.Parameter, seconds: float) -> float:
    if math.isnan(seconds):  # it is neither below a bound nor above it
        raise click.BadParameter("nan is no number of seconds")
    return seconds


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; any free port when left out.")
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME[@RATE]", help="Such as return-503@0.1; may be repeated."
)
@click.option("--seed", type=int, default=0, help="Of the faults: the same seed strikes the same requests.")
@click.option(
    "--processing",
    "processing_s",
    type=click.FloatRange(0, 86_400),
    default=0.2,
    callback=_finite,
    help="Seconds a film is PROCESSING.",
)
@click.option("--rules", type=click.Path(path_type=Path), help="A rule file laid over what it bills by.")
@click.option("--drop-bytes", is_flag=True, help="Keep no uploaded bytes, only their size and hash.")
def emulator(
    port: int, faults: tuple[str, ...], seed: int, processing_s: float, rules: Path | None, drop_bytes: bool
) -> None:
    """Serve a Gemini API on 127.0.0.1: files, counting, generating, billed by the rule tables.

    Point a client to it by its base URL. It proves how a client behaves, never that a figure is right. What it
    reproduces, with sources: GET /emulator/behaviours.
    """
    try:
        from weighlock.emulator import Emulator
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the emulator needs {missing.name}: pip install 'weighlock[service]'") from missing
    from weighlock.rules import RuleBook

    book = RuleBook.packaged() if rules is None else RuleBook.packaged().with_overlay(rules)
    running = Emulator(port=port, rules=book, keep_bytes=not drop_bytes, processing_s=processing_s, seed=seed)
    for words in faults:
        _set_fault(running, words)
    _serve(running, port)


def _set_fault(running: Emulator, words: str) -> None:
    name, _, rate = words.partition("@")
    try:
        running.faults.set(name, rate=_rate(rate))
    except InputError as error:
        raise click.BadParameter(str(error), param_hint="--fault") from None


def _rate(words: str) -> float:
    try:
        return float(words or 1)
    except ValueError:
        raise InputError(f"a rate is between 0 and 1, not {quoted(words)}") from None


def _serve(running: Emulator, port: int) -> None:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        running.start()
        click.echo(f"Gemini emulator on {running.base_url} (stop it with Ctrl-C)")
        stopped.wait()
    except OSError as error:
        raise ConfigError(f"port {port}: {error.strerror}; choose another, or none") from error
    finally:
        running.stop()
