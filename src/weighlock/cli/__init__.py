"""The `weighlock` command. One file a command, loaded when it is asked for, so that none pays for another."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import io
import os
import signal
import sys

import click

from weighlock import __version__
from weighlock.cli.printable import printable
from weighlock.errors import ConfigError, WeighlockError

_COMMANDS = {
    "check": "what files are, what they would cost, and whether an endpoint admits them",
    "fit": "make a request fit its endpoint's limits, and say what it took",
    "prepare": "the whole line in front of one request: fitted, held against its budgets, uploaded",
    "preview": "the picture or the frames as small as the model sees them, with what they cost",
    "count": "what the service counts of a request, beside what it will bill",
    "convert": "write a request in another format, or put it right in its own",
    "budget": "how budgets over time stand, more for a while, and whether the books are right",
    "what-if": "what enforcing, or other settings, would have made of the requests of the past",
    "usage": "who spent what: by endpoint, modality, session, day, tenant or model",
    "upload": "bring files to the service once, and tell how to refer to them",
    "uploads": "what was uploaded: list it, show it, renew it, erase it",
    "demo": "the whole line on one bug report, offline: what it saves, and what it refuses",
    "serve": "a Gemini-compatible proxy with all of this in front of every request, for any language",
    "keys": "a key for a client of the proxy",
    "samples": "draw sample media to try it on",
    "rules": "the figures everything rests on, with their sources",
    "config": "check, show and begin a settings file",
    "emulator": "a Gemini API on this machine, without a key, to develop and test against",
    "doctor": "what this machine can do, and what is in force",
}
EXIT_USAGE = 2


class _Unheard(Exception):
    """Nobody reads what is told."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = cmd_name.replace("-", "")
        command: click.Command = getattr(importlib.import_module(f"weighlock.cli.{module}"), module)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would end it with 1
            raise _Unheard from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="weighlock")
def cli() -> None:
    """Weigh the media in a Gemini request before it is sent.

    Starts offline: no key, no network. Try: weighlock samples samples && weighlock check samples
    """


def main() -> None:
    """Runs the command; an error of ours is one line and exit code 2."""
    # Start-up makes tens of thousands of objects that all stay; looking through them for garbage costs a tenth of it.
    gc.set_threshold(50_000, 20, 20)
    # No plug-in has business with our settings, and looking for one among all installed packages takes 10 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  # for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot print `·` gets a question mark
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)  # else what is half-written would stay
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except (BrokenPipeError, _Unheard):
        # The reader of our output has gone (`| head`): nothing is wrong, and there is nobody left to tell.
        _forget_output()
        sys.exit(0)
    except OSError as error:
        _forget_output()
        _say(f"{error.filename}: {error.strerror}" if error.filename else _nameless(error))
        sys.exit(EXIT_USAGE)
    except WeighlockError as error:
        _say(f"{'configuration' if isinstance(error, ConfigError) else error.code}: {error}")
        sys.exit(EXIT_USAGE)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


def _nameless(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "the working directory is gone; change to one that exists"
    return error.strerror or str(error)


def _say(words: str) -> None:
    click.echo("\n".join(map(printable, f"weighlock: {words}".splitlines())), err=True)


def _forget_output() -> None:
    """What is still buffered has nowhere to go; without this the interpreter would try once more on its way out."""
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(null, sys.stdout.fileno())
    os.close(null)
