"""A region of a picture. By itself, so that the worker need not load what travels around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A region of a picture as displayed, in pixels; the right and lower edges are not in it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def size(self) -> tuple[int, int]:
        return self.right - self.left, self.bottom - self.top

    def __str__(self) -> str:
        return f"{self.left},{self.top},{self.right},{self.bottom}"
