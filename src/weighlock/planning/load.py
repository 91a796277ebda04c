"""What a request comes to: the sums its limits are held against, kept up to date as its parts change. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from weighlock.planning.weigh import Tally, Weighed, by_modality
from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The sums over some parts."""

    tokens: Mapping[Modality, Tally]
    """By modality as sent."""
    parts: int
    weighed: int
    """Those of which tokens are known."""
    media: int
    """Those that are no text."""
    size_bytes: int
    """Of the media, as they are stored."""
    unknown: tuple[Weighed, ...] = ()
    """Those that could not be weighed."""

    @classmethod
    def of(cls, parts: Sequence[Weighed]) -> Self:
        """The sums of all parts of a request, or of some."""
        media = [part for part in parts if _is_medium(part)]
        return cls(
            tokens=by_modality(parts),
            parts=len(parts),
            weighed=sum(bool(part.tokens) for part in parts),
            media=len(media),
            size_bytes=_size(media),
            unknown=tuple(part for part in parts if part.error),
        )

    @property
    def total(self) -> Tally:
        return Tally.of(self.tokens.values())

    def changed(self, before: Iterable[Weighed], after: Iterable[Weighed]) -> Load:
        """The sums once these parts, all of which can be weighed, are in the place of those."""
        old, new = Load.of(tuple(before)), Load.of(tuple(after))
        tokens = {
            kind: self.tokens.get(kind, Tally()) - old.tokens.get(kind, Tally()) + new.tokens.get(kind, Tally())
            for kind in self.tokens.keys() | new.tokens.keys()
        }
        return Load(
            tokens={kind: tokens[kind] for kind in Modality if tokens.get(kind, Tally()) != Tally()},
            parts=self.parts - old.parts + new.parts,
            weighed=self.weighed - old.weighed + new.weighed,
            media=self.media - old.media + new.media,
            size_bytes=self.size_bytes - old.size_bytes + new.size_bytes,
            unknown=self.unknown,
        )


def _is_medium(part: Weighed) -> bool:
    return part.examined.modality is not Modality.TEXT


def _size(media: Iterable[Weighed]) -> int:
    return sum(part.examined.size_bytes or 0 for part in media)
