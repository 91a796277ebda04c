"""A SQLite file of ours: where it may be, which version of it, one writer at a time. The one door to `sqlite3`."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from weighlock.errors import ConfigError, StateUnavailable
from weighlock.written import plain

_APPLICATION_ID = 0x776C6B31
_MOUNTS = Path("/proc/self/mounts")
_OCTAL = re.compile(r"\\([0-7]{3})")
_OVER_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs"}
    | {"smb3", "smbfs"}
    | {f"fuse.{name}" for name in ("ceph", "davfs2", "gcsfuse", "glusterfs", "goofys", "rclone", "s3fs", "sshfs")}
)
"""File systems on which the write-ahead log's shared memory is shared by nobody: sqlite.org/wal.html."""
_PAUSE_S = 0.02


class Damaged(Exception):
    """What a row says makes no sense: nobody of ours wrote it."""


class StateFile:
    """One database for all threads and processes of a host. Every use is a transaction of its own.

    Args:
        path: Made where it is not there, for its owner only.
        migrations: SQL that leads from each version to the next; how many there are is the version.
        busy_s: How long a transaction waits for another one.
        without: What becomes of things when the file is moved away, for a message.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        *,
        busy_s: float = 5.0,
        without: str = "what it knew is uploaded again",
    ) -> None:
        """Opens it at once.

        Raises:
            ConfigError: the folder is on a network, or not ours to write; the file is another program's, or of a newer
                version.
            StateUnavailable: it is damaged, or locked for longer than `busy_s`.
        """
        self.path = path
        self._migrations = migrations
        self._busy_s = busy_s
        self._without = without
        self._sqlite: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        _make_folder(path)
        if kind := network_file_system(path.parent):
            raise ConfigError(
                f"{_told(path.parent)} is on {kind}, where processes cannot share a database; "
                "set state.dir to a folder on a local disk"
            )
        with self._connection():
            _every.add(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """What was committed last."""
        with self._connection() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction in which nobody else writes: all of it happens, or nothing."""
        with self._connection() as connection, _transaction(connection):
            yield connection

    def close(self) -> None:
        """Until it is used again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._sqlite is not None:
            self._sqlite.close()
            self._sqlite = None

    # ---- opening

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._sqlite is None:
                    self._sqlite = self._opened()
                yield self._sqlite
            except (sqlite3.DatabaseError, Damaged) as error:
                raise self._unavailable(error) from error

    # A connection must not live through a fork, in either process: sqlite.org/howtocorrupt.html, 2.6.

    def before_fork(self) -> None:
        self._lock.acquire()
        self._close()

    def after_fork(self) -> None:
        self._lock.release()

    def _opened(self) -> sqlite3.Connection:
        """Processes that begin together may be in each other's way, where SQLite itself does not wait."""
        until = time.monotonic() + self._busy_s
        while True:
            connection = sqlite3.connect(self.path, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            try:
                self._prepare(connection)
            except sqlite3.OperationalError as error:
                connection.close()
                if not _is_busy(error) or time.monotonic() > until:
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                return connection
            time.sleep(_PAUSE_S)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._demand_ours(connection)
        if _pragma(connection, "journal_mode") != "wal" and _pragma(connection, "journal_mode=wal") != "wal":
            raise ConfigError(f"{_told(self.path)}: the file system cannot keep a write-ahead log; set state.dir")
        # FULL would cost fourteen times as much. After a power cut the last rows may be missing, never half there:
        # what they knew is found again at the service, by its name.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
        version = _pragma(connection, "user_version")
        if version < len(self._migrations):
            if version:
                self._keep_copy(connection, version)
            self._migrate(connection)

    def _demand_ours(self, connection: sqlite3.Connection) -> None:
        # In this order: another process may be making it right now.
        empty = not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        version, known = _pragma(connection, "user_version"), len(self._migrations)
        if version > known:
            raise ConfigError(
                f"{_told(self.path)} is of version {version}, and this weighlock knows {known}: install the newer one "
                f"again, or go back to what it kept when it changed the file ({self.path.name}.v{known}, if it is "
                f"there), or move the file away: {self._without}",
                version=version,
                known=known,
            )
        if empty:
            return
        if _pragma(connection, "application_id") != _APPLICATION_ID:
            raise ConfigError(f"{_told(self.path)} is a database of another program; set state.dir")
        if version < 1:
            raise Damaged(f"it holds tables and says it is of version {version}")

    def _migrate(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection):
            # Another process may have done it meanwhile.
            for step in self._migrations[_pragma(connection, "user_version") :]:
                for statement in filter(str.strip, step.split(";")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version={len(self._migrations)}")
            connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")

    def _keep_copy(self, connection: sqlite3.Connection, version: int) -> None:
        copy = self.path.with_name(f"{self.path.name}.v{version}")
        if not copy.exists():
            os.close(os.open(copy, os.O_CREAT | os.O_WRONLY, 0o600))  # VACUUM takes an empty file, and its mode
            connection.execute("VACUUM INTO ?", (str(copy),))

    def _unavailable(self, error: Exception) -> StateUnavailable:
        if not isinstance(error, sqlite3.OperationalError) or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            # Not a database, a row that is damaged, or a table or column of ours that is not there.
            return StateUnavailable(f"{_told(self.path)}: {error}; move it away: {self._without}")
        why = f"locked for longer than {self._busy_s:g} s" if _is_busy(error) else str(error)
        return StateUnavailable(f"{_told(self.path)}: {why}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


_every: WeakSet[StateFile] = WeakSet()
_forking: list[StateFile] = []


def _before_fork() -> None:
    _forking.extend(_every)
    for file in _forking:
        file.before_fork()


def _after_fork() -> None:
    while _forking:
        _forking.pop().after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _pragma(connection: sqlite3.Connection, words: str) -> Any:
    return connection.execute(f"PRAGMA {words}").fetchone()[0]


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigError(f"state.dir {_told(path.parent)}: {error.strerror or error}") from error
    if not os.access(path.parent, os.W_OK):  # the write-ahead log stands beside it
        raise ConfigError(f"state.dir {_told(path.parent)}: not ours to write")


def _told(path: Path) -> str:
    return plain(path, 300)


# ---- where it may be


def network_file_system(folder: Path, mounts: str | None = None) -> str | None:
    """The kind of the network file system a folder is on; `None` on a local one, or where nobody can tell.

    `mounts` is the text of `/proc/self/mounts`.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    here, longest, kind = folder.resolve(), -1, None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mounted = Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[1]))
        if here.is_relative_to(mounted) and len(mounted.parts) >= longest:  # the last one mounted there hides others
            longest, kind = len(mounted.parts), fields[2]
    return kind if kind in _OVER_NETWORK else None
