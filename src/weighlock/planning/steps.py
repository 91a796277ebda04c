"""What a plan says: its steps, and what came of them. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighlock.media.work import Work
from weighlock.planning.admit import Decision, Verdict
from weighlock.planning.levers import Lever, Target
from weighlock.planning.moves import Move, Why
from weighlock.planning.placement import INLINE_ALL, Placements
from weighlock.planning.weigh import Tally, Weighed


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What holds for one part beside the endpoint's policy."""

    pinned: bool = False
    """The caller wants it as it is."""
    target: Target = field(default_factory=Target)
    earlier: int | None = None
    """Which medium of the conversation it is, from 0, where it was sent in an earlier turn already."""
    removable: bool = False
    """One the history lever may move: of an earlier turn, and not among the newest the endpoint keeps."""
    tool: str | None = None
    """Which one returned it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One lever moved: on one part, on a batch of earlier ones, or (`parts` are all it lowers) on the whole request."""

    lever: Lever
    parts: tuple[int, ...]
    request_wide: bool
    words: str
    """What is done, without a name of any medium: it is logged."""
    before: Tally
    """Of the parts it touches."""
    after: Tally
    local: bool
    """Whether bytes have to be worked on."""
    why: Why = Why.NEEDED
    breaks_prefix: bool = False
    """Whether it changes what an earlier turn sent, so that the prompt cache no longer matches from there on."""
    saved_bytes: int = 0
    """What it takes off the stored size of the media; below zero where it may come to more."""
    beside: str = ""
    """Of the whole request: which media it lowers, by name. For whoever reads the receipt."""

    @property
    def told(self) -> str:
        """In full, names included."""
        return f"{self.words}: {self.beside}" if self.beside else self.words

    @property
    def saved(self) -> Tally:
        """What it takes off the prompt."""
        return self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be sent, and how it came to that."""

    parts: tuple[Weighed, ...]
    """Every part as it would be sent; one that became a note is a text."""
    steps: tuple[Step, ...]
    removed: frozenset[int]
    """Parts of earlier turns that become notes."""
    verdict: Verdict
    works: Mapping[int, Work] = field(default_factory=dict)
    """What is to be done to the bytes of parts; all else are fields of the wire."""
    passed: tuple[Step, ...] = ()
    """Steps that were tried and are not needed."""
    wishes: tuple[Wish, ...] = ()
    """What it held to, a part each."""
    moves: tuple[Move, ...] = ()
    """The steps again, as they are put on the parts."""
    placements: Placements = field(default_factory=lambda: INLINE_ALL)
    """What goes by the Files API, and why."""
    stays_inline: str | None = None
    """Why more goes inline than `uploads.inline_below` says, where it does."""

    @property
    def fits(self) -> bool:
        """Whether every limit is known to hold. Where one does not, the plan is the lightest there is."""
        return self.verdict.decision is Decision.ADMIT

    @property
    def breaks_prefix(self) -> bool:
        moved = any(one.breaks_prefix for one in self.placements.values())
        return moved or any(step.breaks_prefix for step in self.steps)
