"""`weighlock serve`: the Gemini-compatible proxy, and beside it who runs it can see what it does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighlock.errors import ConfigError

if TYPE_CHECKING:
    from weighlock.service.running import Service
    from weighlock.settings import Settings

_EMULATOR, _GOOGLE = "emulator", "service"
_KEY_VARIABLE = "WEIGHLOCK_EMULATOR_KEY"


@click.command()
@click.option(
    "--upstream",
    default=_GOOGLE,
    metavar="service|emulator|URL",
    help="Whom it asks: the accounts' own services, an emulator it starts itself, or a gateway.",
)
@click.option("--listen", metavar="HOST:PORT", help="In the place of service.listen.")
@click.option("--config", type=click.Path(path_type=Path), help="The settings file.")
def serve(upstream: str, listen: str | None, config: Path | None) -> None:
    """Serve the Gemini API with the line in front of every request.

    Point any Gemini client to it by its base URL. Stop it with Ctrl-C: what is under way ends first.
    """
    try:
        from weighlock.service.running import Service, url_of
        from weighlock.service.server import listening
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the service needs {missing.name}: pip install 'weighlock[service]'") from missing
    from weighlock.settings import load
    from weighlock.settings.serving import parse_address

    settings = load(config)
    if listen is not None:
        try:
            address = parse_address(listen)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--listen") from None
        settings = replace(settings, service=replace(settings.service, listen=address))
    service = settings.service
    if service.is_public and not service.clients:
        raise ConfigError(f"{service.listen} is open to others: name clients first (`weighlock keys new NAME`)")
    with ExitStack() as stack:
        changed = _behind(upstream, stack)
        settings = changed(settings)
        try:
            clients = stack.enter_context(listening(address := service.listen))
            admin = stack.enter_context(listening(address := service.admin)) if service.admin is not None else None
        except OSError as error:
            raise ConfigError(f"{address}: {error.strerror}; set service.listen or service.admin") from error
        told = [f"weighlock on {url_of(clients)}, in front of {_words(upstream, settings)} (stop it with Ctrl-C)"]
        if admin is not None:
            told.append(f"for operators: {url_of(admin)}/metrics, /readyz")
        served = Service(settings, clients=clients, admin=admin, read=lambda: changed(load(config)))
        asyncio.run(_until_stopped(served, told))


async def _until_stopped(service: Service, told: list[str]) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, service.reload)
    await service.run(stopped, lambda: click.echo("\n".join(told)))


def _behind(upstream: str, stack: ExitStack) -> Callable[[Settings], Settings]:
    """Settings, with every account asking whom the command line names."""
    if upstream == _GOOGLE:
        return lambda settings: settings
    if upstream == _EMULATOR:
        from weighlock.emulator import Emulator

        os.environ[_KEY_VARIABLE] = "emulator"
        url = stack.enter_context(Emulator()).base_url
        return lambda settings: settings.asking(url, _KEY_VARIABLE)
    from pydantic import TypeAdapter, ValidationError

    from weighlock.settings.fields import BaseUrl

    try:
        address = TypeAdapter(BaseUrl).validate_python(upstream)
    except ValidationError:
        raise click.BadParameter("service, emulator or https://host", param_hint="--upstream") from None
    return lambda settings: settings.asking(address)


def _words(upstream: str, settings: Settings) -> str:
    if upstream == _EMULATOR:
        return f"an emulator on {settings.default.account.base_url}"
    return "Google's service" if upstream == _GOOGLE else "a gateway"
