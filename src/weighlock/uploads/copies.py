"""Copies of bytes we would not see again, so that a file can be uploaded anew once it has expired.

None of what came from a file: that is read again. For their owner's eyes only, below a cap, for a time; a copy's name
tells nothing. A tenant's copies make room for its own only.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from weighlock.errors import StateUnavailable, UnreadableSource
from weighlock.uploads.entries import Key, columns
from weighlock.uploads.policy import UploadPolicy
from weighlock.uploads.registry import Registry
from weighlock.uploads.source import UploadSource
from weighlock.written import plain

_PIECE_BYTES = 1 << 20
_ABANDONED_S = 3600.0
_COUNTED = "SELECT ifnull(sum(size_bytes), 0) FROM contents WHERE copied_at IS NOT NULL"


class Copies:
    """The copies of one registry, in a folder of their own."""

    def __init__(self, folder: Path, registry: Registry, policy: UploadPolicy) -> None:
        self._folder, self._registry, self._policy = folder, registry, policy

    def keep(self, key: Key, source: UploadSource, now: datetime) -> bool:
        """Whether there is a copy now.

        There is none where it would not fit below the cap, the disk has no room, or the source has changed meanwhile.
        """
        try:
            self.tidy(now)
            if self._policy.keep_copies_s == 0 or not self._fits(key, source.size_bytes):
                return False
            self._write(self.path(key), source)
        except (OSError, StateUnavailable, UnreadableSource):  # a copy is a convenience; what was uploaded is
            return False
        with self._registry.file.writing() as sql:
            return bool(
                sql.execute(
                    "UPDATE contents SET copied_at = ? WHERE account = ? AND tenant = ? AND sha256 = ? AND mime = ?",
                    (now.timestamp(), *columns(key)),
                ).rowcount
            )

    def path(self, key: Key) -> Path:
        """Where a content's copy is, if there is one."""
        said = "\0".join(("copy", *columns(key))).encode()
        return self._folder / hmac.new(self._registry.secret, said, hashlib.sha256).hexdigest()

    def drop(self, key: Key) -> bool:
        """Whether there was a copy to erase.

        Raises:
            StateUnavailable: it cannot be erased.
        """
        there = True
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            there = False
        except OSError as error:
            raise StateUnavailable(f"{plain(self._folder, 300)}: a copy stays there: {error.strerror}") from error
        with self._registry.file.writing() as sql:
            sql.execute(
                "UPDATE contents SET copied_at = NULL WHERE account = ? AND tenant = ? AND sha256 = ? AND mime = ?",
                columns(key),
            )
        return there

    def tidy(self, now: datetime) -> None:
        """Erases what was not used for longer than copies are kept, and what a process left half-written."""
        if math.isfinite(self._policy.keep_copies_s):
            oldest = now.timestamp() - self._policy.keep_copies_s
            for key in self._keys("AND max(used_at, copied_at) <= ?", oldest):
                self.drop(key)
        for left in self._folder.glob(".new-*"):
            with suppress(OSError):
                if left.stat().st_mtime < now.timestamp() - _ABANDONED_S:
                    left.unlink()

    def _fits(self, key: Key, size_bytes: int) -> bool:
        """Makes room from what the same tenant has not used for longest."""
        with self._registry.file.reading() as sql:
            (used,) = sql.execute(_COUNTED).fetchone()
        over = used + size_bytes - self._policy.copies_cap_bytes
        for old in self._keys("AND account = ? AND tenant = ? ORDER BY used_at", key.account, key.tenant):
            if over <= 0:
                break
            with suppress(OSError):
                over -= self.path(old).stat().st_size
            self.drop(old)
        return bool(over <= 0)

    def _keys(self, where: str, *values: object) -> list[Key]:
        with self._registry.file.reading() as sql:
            rows = sql.execute(
                f"SELECT account, tenant, sha256, mime FROM contents WHERE copied_at IS NOT NULL {where}",  # noqa: S608
                values,
            ).fetchall()
        return [Key(**dict(row)) for row in rows]

    def _write(self, path: Path, source: UploadSource) -> None:
        """Whole or not at all, mode 0600."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                offset = 0
                while piece := source.read_at(offset, _PIECE_BYTES):
                    file.write(piece)
                    offset += len(piece)
            source.demand_unchanged()
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
