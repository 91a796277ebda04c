"""How what has to be encoded is encoded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The defaults are what every service reads, and small for their time (`facts/performance.md` §4)."""

    codec: str = "libx264"
    """FFmpeg's name of an encoder whose pictures MP4 holds: `libx264`, `libx265`, `libsvtav1`, `mpeg4`."""
    preset: str = "veryfast"
    """Empty for an encoder that has none."""
    crf: int | None = 28
    """Constant quality; `None` leaves it to the encoder."""
    sound_bits_per_channel: int = 64_000

    def options(self) -> dict[str, str]:
        chosen = {"preset": self.preset, "crf": "" if self.crf is None else str(self.crf)}
        return {name: value for name, value in chosen.items() if value}
