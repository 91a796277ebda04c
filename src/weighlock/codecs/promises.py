"""What a piece of work promises of its result, and whether the result keeps it. Pure."""

from __future__ import annotations

from weighlock.errors import TransformFailed
from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, Probed, VideoFacts
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, Made, StillsWork, VideoWork, Work

_SLACK_S = 0.05
_CODEC_FRAME_S = 0.15
"""The last frame of sound counted whole, and what its decoder needs to settle."""
_COPIED_FRAMES = 5
"""Frames a copy may hold past the end: those that earlier ones lean on."""


def window(work: Work, duration_s: float) -> tuple[float, float]:
    """(start, end) in seconds of what a source of this length gives to the work."""
    if not isinstance(work, VideoWork | StillsWork | AudioWork):
        return 0.0, duration_s
    start_s = max(0.0, work.start_s or 0.0)
    end_s = duration_s if work.end_s is None else min(duration_s, work.end_s)
    return start_s, max(start_s, end_s)


def refuse_impossible(work: Work, source: Probed) -> None:
    """Raises what no transform of this source can do.

    Raises:
        TransformFailed: an empty clip, pages or sound that are not there, a rate of nothing.
    """
    facts = source.facts
    if isinstance(work, VideoWork | StillsWork | AudioWork) and isinstance(facts, VideoFacts | AudioFacts):
        start_s, end_s = window(work, facts.duration_high_s)
        if end_s <= start_s:
            raise TransformFailed(
                f"nothing lies between {start_s:g} s and {work.end_s or end_s:g} s; it lasts {facts.duration_s:,.3f} s",
                duration_s=facts.duration_s,
            )
    if isinstance(work, VideoWork | StillsWork) and work.fps is not None and work.fps <= 0:
        raise TransformFailed(f"{work.fps:g} frames a second are no video", fps=work.fps)
    if isinstance(work, VideoWork | StillsWork) and not isinstance(facts, VideoFacts):
        raise TransformFailed("it holds no moving pictures")
    if isinstance(work, AudioWork) and isinstance(facts, VideoFacts) and not facts.audio_tracks:
        raise TransformFailed("it holds no sound")
    if isinstance(work, DocumentWork) and isinstance(facts, DocumentFacts):
        _refuse_pages(work, facts.pages)


def _refuse_pages(work: DocumentWork, pages: int) -> None:
    if not 1 <= work.first_page <= work.last_page or work.first_page > pages:
        raise TransformFailed(f"pages {work.first_page}-{work.last_page} of {pages:,}", pages=pages)


def refuse_unkept(work: Work, source: Probed, made: Made) -> None:
    """Compares what came out with what was asked for.

    Raises:
        TransformFailed: they differ, and no note says why.
    """
    problem = _broken_promise(work, source, made) or _too_many_bytes(work, made)
    if problem is not None:
        raise TransformFailed(f"what came out is not what was asked for: {problem}", mime=made.mime)


def _broken_promise(work: Work, source: Probed, made: Made) -> str | None:
    facts = made.probed.facts
    match work:
        case VideoWork():
            if not isinstance(facts, VideoFacts):
                return "no moving pictures"
            return _of_video(work, source, facts, made)
        case StillsWork():
            return _of_stills(work, facts) if isinstance(facts, ImageFacts) else "no picture"
        case AudioWork():
            return _of_sound(work, source, facts, made) if isinstance(facts, AudioFacts) else "no sound"
        case ImageWork():
            return _of_image(work, facts, made) if isinstance(facts, ImageFacts) else "no picture"
        case DocumentWork():
            return _of_pages(work, source, facts)
        case _:
            return None if type(facts) is type(source.facts) else "another kind of medium"


def _too_many_bytes(work: Work, made: Made) -> str | None:
    most = work.max_bytes if isinstance(work, VideoWork | AudioWork | ImageWork) else None
    if most is None or made.size_bytes <= most or (isinstance(work, ImageWork) and made.notes):
        return None
    return f"{made.size_bytes:,} bytes instead of at most {most:,}"


def _of_video(work: VideoWork, source: Probed, facts: VideoFacts, made: Made) -> str | None:
    if facts.audio_tracks > (1 if work.keep_sound else 0):
        return f"{facts.audio_tracks} tracks of sound"
    most = (work.max_width_px, work.max_height_px)
    for size, bound in zip((facts.width_px, facts.height_px), most, strict=True):
        if bound is not None and size > max(2, bound):
            return f"{facts.width_px}×{facts.height_px} pixels"
    frame_s = 1 / (work.fps or facts.average_fps or 1.0)
    slack_s = max(_SLACK_S, frame_s) + _CODEC_FRAME_S + (0.0 if work.exact else _COPIED_FRAMES * frame_s)
    return _of_length(work, source, facts, made, slack_s)


def _of_stills(work: StillsWork, facts: ImageFacts) -> str | None:
    columns, rows = work.columns, work.rows
    widest, highest = columns * max(2, work.max_width_px), rows * max(2, work.max_height_px)
    fits = facts.width_px <= widest and facts.height_px <= highest
    if fits and facts.width_px % columns == 0 and facts.height_px % rows == 0:
        return None
    return f"{facts.width_px}×{facts.height_px} pixels for {columns} × {rows} frames"


def _of_sound(work: AudioWork, source: Probed, facts: AudioFacts, made: Made) -> str | None:
    if work.mime is not None and made.mime != work.mime:
        return f"{made.mime} instead of {work.mime}"
    return _of_length(work, source, facts, made, _SLACK_S + _CODEC_FRAME_S)


def _of_length(
    work: VideoWork | AudioWork, source: Probed, facts: VideoFacts | AudioFacts, made: Made, slack_s: float
) -> str | None:
    """Too long is never right. Too short is, where a note says so or the source contradicts itself."""
    before = source.facts
    if not isinstance(before, VideoFacts | AudioFacts):
        return "made of another kind of medium"
    start_s, end_s = window(work, before.duration_high_s)
    if made.actual_start_s is not None:
        start_s = min(start_s, made.actual_start_s)
    longest_s = end_s - start_s + slack_s
    if facts.duration_s > longest_s:
        return f"{facts.duration_s:.3f} s instead of at most {longest_s:.3f} s"
    start_s, end_s = window(work, _surely_s(work, before))
    if made.actual_start_s is not None:
        start_s = min(end_s, made.actual_start_s)
    if facts.duration_s < end_s - start_s - slack_s and not (made.notes or source.anomalies):
        return f"{facts.duration_s:.3f} s instead of {end_s - start_s:.3f} s"
    return None


def _surely_s(work: VideoWork | AudioWork, before: VideoFacts | AudioFacts) -> float:
    """How far what is worked on reaches at least: of a film, one of its two kinds of stream may end early."""
    if isinstance(before, AudioFacts) or before.audio_duration_s is None:
        return before.duration_s
    if isinstance(work, AudioWork):
        return min(before.duration_s, before.audio_duration_s)
    lasts_longer = before.audio_duration_s >= before.duration_s - _SLACK_S
    return 0.0 if not work.keep_sound and lasts_longer else before.duration_s


def _of_image(work: ImageWork, facts: ImageFacts, made: Made) -> str | None:
    if work.mime is not None and made.mime != work.mime:
        return f"{made.mime} instead of {work.mime}"
    for size, bound in ((facts.width_px, work.max_width_px), (facts.height_px, work.max_height_px)):
        if bound is not None and size > bound:
            return f"{facts.width_px}×{facts.height_px} pixels"
    return None


def _of_pages(work: DocumentWork, source: Probed, facts: object) -> str | None:
    before = source.facts
    if not isinstance(facts, DocumentFacts) or not isinstance(before, DocumentFacts):
        return "no pages"
    asked = min(work.last_page, before.pages) - work.first_page + 1
    return None if facts.pages == asked else f"{facts.pages:,} pages instead of {asked:,}"
