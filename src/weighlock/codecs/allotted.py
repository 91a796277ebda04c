"""How the bytes a film may take are shared out between its pictures and its sound. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from weighlock.codecs.encoding import Rate
from weighlock.errors import TransformFailed

_SOUND_SHARE = Fraction(1, 3)
_HEADER_BYTES = 4_096
_INDEX_BYTES = 24
"""Of one packet in the tables of the file."""
_SOUND_PACKETS_PER_S = 47
_STEADY, _AT_ONCE = Fraction(3, 4), Fraction(1, 5)
"""Of the bits for pictures: spread over their time, and where the encoder likes. What is left is for its errors."""


@dataclass(frozen=True, slots=True)
class Allotment:
    """Bits of a film of a known length that may have no more than some bytes."""

    max_bytes: int
    span_s: Fraction
    pictures: int

    @property
    def sound_bits_per_s(self) -> float:
        """What sound may take at most."""
        return float(self._free() * _SOUND_SHARE * 8 / self.span_s) - _SOUND_PACKETS_PER_S * _INDEX_BYTES * 8

    def rate(self, sound_bits_per_s: float) -> Rate:
        """What is left for the pictures beside sound of so many bits a second."""
        sound = Fraction(sound_bits_per_s) + (_SOUND_PACKETS_PER_S * _INDEX_BYTES * 8 if sound_bits_per_s else 0)
        bits = max(Fraction(8_000), self._free() * 8 - sound * self.span_s)
        return Rate(max(1_000, int(bits * _STEADY / self.span_s)), max(1_000, int(bits * _AT_ONCE)))

    def _free(self) -> Fraction:
        return Fraction(max(1, self.max_bytes - _HEADER_BYTES - _INDEX_BYTES * self.pictures))


def fewer(max_bytes: int, aimed_at: int, came: int) -> int:
    """What to aim at where `came` bytes came of the last aim, and no more than `max_bytes` may."""
    return max(1, int(aimed_at * max_bytes / came * 0.95))


def too_many(max_bytes: int, smallest: int) -> TransformFailed:
    """That no try came within `max_bytes`; how far one did is told."""
    return TransformFailed(
        f"it cannot be made to take at most {max_bytes:,} bytes; the least it came to is {smallest:,}",
        max_bytes=max_bytes, smallest_bytes=smallest,
    )  # fmt: skip
