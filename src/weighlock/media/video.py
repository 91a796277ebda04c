"""Tokens of a film: sampled frames (VIDEO) and, where it has sound, its track (AUDIO)."""

from __future__ import annotations

from dataclasses import dataclass

from weighlock.media.area import Area
from weighlock.media.audio import AudioRule
from weighlock.media.controls import Controls
from weighlock.media.facts import VideoFacts
from weighlock.media.rule import Provenance, Rounding
from weighlock.media.tokens import TokenRange
from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRule:
    """What a frame costs, how many are taken, and what the sound costs."""

    frame: Area
    rounding: Rounding
    """Of seconds × fps. At least one frame is counted."""
    default_fps: float
    max_fps: float
    sound: AudioRule
    silent_sound: AudioRule | None
    """Set where the service was seen to bill sound for a film without any; it widens `high` and nothing else."""
    provenance: Provenance


def tokens(facts: VideoFacts, controls: Controls, rule: VideoRule) -> tuple[TokenRange, ...]:
    """Prompt tokens of one film, frames first. The pixel size matters only as far as the frame rule says."""
    frames = _frames(facts, controls, rule)
    sound = None if controls.drop_sound else _sound(facts, controls, rule)
    return (frames,) if sound is None else (frames, sound)


def remarks(facts: VideoFacts, controls: Controls, rule: VideoRule) -> tuple[str, ...]:
    """What the service will refuse about these settings, each as one line that names the setting to change."""
    fps = fps_of(controls, rule)
    span_s = controls.span_s(facts.duration_s)
    found = []
    if fps > rule.max_fps:
        found.append(f"fps {fps:g} is above what the service takes; the most is {rule.max_fps:g}")
    if span_s == 0 < facts.duration_s:
        found.append(
            f"the clip begins at {controls.start_offset_s:g} s, after the film's end at {facts.duration_s:.2f} s; "
            "the service answers 400 'No frames to extract'"
        )
    elif Rounding.FLOOR.whole(span_s * fps) < 1:
        enough = f"an fps of {1 / span_s:.2g} or more" if span_s * rule.max_fps >= 1 else "a longer film"
        found.append(
            f"{span_s:.2f} s is shorter than one sampling interval at {fps:g} fps; "
            f"the service answers 400 'No frames to extract'. It takes {enough}"
        )
    return tuple(found)


def sampled(facts: VideoFacts, controls: Controls, rule: VideoRule) -> int:
    """Frames the service is expected to take, at least one."""
    return max(1, rule.rounding.whole(controls.span_s(facts.duration_s) * fps_of(controls, rule)))


def fps_of(controls: Controls, rule: VideoRule) -> float:
    """Frames taken a second."""
    return rule.default_fps if controls.fps is None else controls.fps


def _frames(facts: VideoFacts, controls: Controls, rule: VideoRule) -> TokenRange:
    fps = fps_of(controls, rule)
    expected = controls.span_s(facts.duration_s) * fps
    most = controls.span_s(facts.duration_high_s) * fps
    low, likely, high = rule.frame.count(facts.width_px, facts.height_px)
    return rule.provenance.range(
        Modality.VIDEO,
        low * max(1, Rounding.FLOOR.whole(expected)),
        likely * sampled(facts, controls, rule),
        high * max(1, Rounding.CEIL.whole(most)),
    )


def _sound(facts: VideoFacts, controls: Controls, rule: VideoRule) -> TokenRange | None:
    if facts.audio_tracks or facts.audio_duration_s is not None:
        track_s = facts.duration_s if facts.audio_duration_s is None else facts.audio_duration_s
        track_high_s = facts.duration_high_s if facts.audio_duration_high_s is None else facts.audio_duration_high_s
        return rule.sound.weigh(controls.span_s(track_s), controls.span_s(track_high_s))
    if rule.silent_sound is None:
        return None
    high = rule.silent_sound.count(controls.span_s(facts.duration_high_s), Rounding.CEIL)
    return rule.silent_sound.provenance.range(Modality.AUDIO, 0, 0, high)
