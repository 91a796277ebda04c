"""What the caller may set on a medium, in the words of the wire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from weighlock.errors import InputError
from weighlock.request import Carrier, MediaResolution, Placement

_KINDS: dict[str, type[StrEnum]] = {
    "media_resolution": MediaResolution,
    "part_resolution": MediaResolution,
    "placement": Placement,
    "carrier": Carrier,
}


def _of_kind(name: str, kind: type[StrEnum], value: StrEnum | str | None) -> StrEnum | None:
    """The member a caller means by its value, such as `low`."""
    if value is None or type(value) is kind:
        return value
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"{name} is one of {', '.join(kind)}, not {value!r}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The settings that decide what one medium costs; a setting that does not concern its modality is ignored.

    Enumerations may be given by value (`"low"`).

    Raises:
        InputError: an unknown value, an `fps` that is not positive, a negative or empty clip, or `ULTRA_HIGH` for a
            whole request.
    """

    media_resolution: MediaResolution = MediaResolution.UNSPECIFIED
    """Request-wide (`generationConfig.mediaResolution`)."""
    part_resolution: MediaResolution | None = None
    """On the part itself; beats the request's where the model knows it (Gemini 3 and later)."""
    fps: float | None = None
    """Frames sampled a second; `None` is the service's default."""
    start_offset_s: float | None = None
    end_offset_s: float | None = None
    drop_sound: bool = False
    """A film's frames alone (`contentLayers` without AUDIO)."""
    first_page: int | None = None
    """Of a PDF, from 1."""
    last_page: int | None = None
    """Included."""
    placement: Placement = Placement.INLINE
    carrier: Carrier = Carrier.USER

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, _of_kind(name, kind, getattr(self, name)))
        if self.media_resolution is MediaResolution.ULTRA_HIGH:
            raise InputError("ultra_high can be asked for on a part only; the highest for a whole request is high")
        if self.fps is not None and not 0 < self.fps < float("inf"):
            raise InputError(f"fps must be above 0, not {self.fps:g}", fps=self.fps)
        start_s, end_s = self.start_offset_s or 0.0, self.end_offset_s
        if not 0 <= start_s < float("inf") or (end_s is not None and not end_s > start_s):
            raise InputError(
                f"a clip from {start_s:g} s to {'the end' if end_s is None else f'{end_s:g} s'} is empty",
                start_offset_s=start_s,
                end_offset_s=end_s,
            )

        first, last = self.first_page or 1, self.last_page
        if first < 1 or (last is not None and last < first):
            raise InputError(f"pages {first} to {'the last' if last is None else last} are none")

    @property
    def clipped(self) -> bool:
        """Whether they name a beginning or an end."""
        return self.start_offset_s is not None or self.end_offset_s is not None

    def or_else(self, other: Controls) -> Controls:
        """These controls and, where they ask for nothing, the other's. Placement and carrier are facts, and stay."""
        unset = self.media_resolution is MediaResolution.UNSPECIFIED
        return replace(
            self,
            media_resolution=other.media_resolution if unset else self.media_resolution,
            part_resolution=self.part_resolution or other.part_resolution,
            fps=self.fps or other.fps,
            start_offset_s=self.start_offset_s if self.clipped else other.start_offset_s,
            end_offset_s=self.end_offset_s if self.clipped else other.end_offset_s,
            drop_sound=self.drop_sound or other.drop_sound,
            first_page=self.first_page or other.first_page,
            last_page=self.last_page or other.last_page,
        )

    def span_s(self, duration_s: float) -> float:
        """Seconds left of `duration_s` inside the clip; 0 when the clip begins after the end."""
        end_s = duration_s if self.end_offset_s is None else min(self.end_offset_s, duration_s)
        return max(0.0, end_s - (self.start_offset_s or 0.0))
