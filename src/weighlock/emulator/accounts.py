"""Whose request it is: keys, the projects they belong to, and what those may use up."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from weighlock.emulator import errors
from weighlock.emulator.behaviours import figure, reproduces
from weighlock.emulator.clock import Clock

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


@dataclass(slots=True, kw_only=True)
class Project:
    """One project: files belong to it, quotas are drawn on it. Change it while the emulator runs."""

    name: str
    paid: bool = True
    """False: every use of a file is refused, in the words for a file that is not there."""
    storage_bytes: int = 20_000_000_000
    input_tokens_per_minute: int | None = None
    """Of one model; `None` is no bound."""
    requests_per_day: int | None = None
    """Of one model, `generateContent` and its stream only."""
    _spent: dict[str, deque[tuple[datetime, int]]] = field(default_factory=dict, repr=False)

    @reproduces("quota", "too-long-still-spends", "count-draws-no-requests")
    def spend(self, model: str, tokens: int, clock: Clock) -> None:
        """Books one request.

        Raises:
            ApiError: 429, out of requests for the day or of tokens for the minute.
        """
        now, spent = clock.now(), self._spent.setdefault(model, deque())
        while spent and spent[0][0] <= now - _DAY:
            spent.popleft()
        if self.requests_per_day is not None and len(spent) >= self.requests_per_day:
            until_s = (spent[0][0] + _DAY - now).total_seconds()
            quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
            raise errors.quota_exceeded(quota, self.requests_per_day, model, round(until_s))
        most = self.input_tokens_per_minute
        if most is not None and sum(count for at, count in spent if at > now - _MINUTE) + tokens > most:
            quota = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
            raise errors.quota_exceeded(quota, most, model, figure("quota", "retry_s"))
        spent.append((now, tokens))


class Accounts:
    """Keys → projects. Without a list every key is good, and has a project of its own."""

    def __init__(self, keys: Mapping[str, Project] | None = None) -> None:
        self._listed = keys is not None
        self._projects: dict[str, Project] = dict(keys or {})

    @reproduces("projects-own-files", "no-key", "wrong-key", "key-in-three-places")
    def of_key(self, key: str | None) -> Project:
        """The project a key belongs to.

        Raises:
            ApiError: no key, or one that is not on the list.
        """
        if not key:
            raise errors.no_key()
        if key not in self._projects:
            if self._listed:
                raise errors.wrong_key()
            digest = hashlib.sha256(key.encode()).hexdigest()[:8]  # a key is repeated nowhere
            self._projects[key] = Project(name=f"project-{digest}")
        return self._projects[key]
