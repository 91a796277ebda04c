"""How what has to be encoded is encoded."""

from __future__ import annotations

from dataclasses import dataclass

TRIES = 3
"""How often a medium that came out with too many bytes is encoded again, in fewer bits."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What pictures may take: so many bits a second, and once so many more."""

    bits_per_s: int
    buffer_bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The defaults are what every service reads, and small for their time (`facts/performance.md` §4)."""

    codec: str = "libx264"
    """FFmpeg's name of an encoder whose pictures MP4 holds: `libx264`, `libx265`, `libsvtav1`, `mpeg4`."""
    preset: str = "veryfast"
    """Empty for an encoder that has none."""
    crf: int | None = 28
    """Constant quality; `None` leaves it to the encoder."""
    sound_bits_per_channel: int | None = None
    """Of what is not lossless; `None` is the format's own (AAC and MP3 64,000, Opus 48,000)."""

    def options(self, most: Rate | None = None) -> dict[str, str]:
        """For the encoder; under `most`, quality gives way where the pictures would take more."""
        chosen = {"preset": self.preset, "crf": "" if self.crf is None else str(self.crf)}
        if most is not None:
            chosen |= {"maxrate": str(most.bits_per_s), "bufsize": str(most.buffer_bits)}
        if self.codec == "libx264":
            # x264 (core 165) weighs B-frames by memory it never wrote: the same film came out in different bytes
            # (2026-11-30, seen with MALLOC_PERTURB_). Without them it is 8 % larger, and the same every time.
            chosen["bf"] = "0"
        return {name: value for name, value in chosen.items() if value}
