"""Where the sound of one file stands in another: by how loud it is when, whatever it was encoded with."""

from __future__ import annotations

import io
from array import array
from typing import Any

import av

_RATE = 8000
_BIN_S = 0.004
_FURTHEST_S = 0.2
_LONGEST_S = 4.0
_EVEN = 0.2
_LIKE, _CLEARLY = 0.5, 0.15
_NEAR_S = 0.04


def lag_s(source: bytes, out: bytes, start_s: float) -> float | None:
    """By how much what is heard in `out` comes later than in `source` from `start_s` on.

    Times of both count from where their files begin. `None` where the sound is too even, or too little, to tell.
    """
    before, after = loudness(source, start_s), loudness(out, 0.0)
    most = round(_FURTHEST_S / _BIN_S)
    if min(len(before), len(after)) < 3 * most or _spread(after) < _EVEN:
        return None
    likeness = {lag: _likeness(before, after, lag) for lag in range(-most, most + 1)}
    best = max(likeness, key=likeness.__getitem__)
    elsewhere = max(like for lag, like in likeness.items() if abs(lag - best) * _BIN_S > _NEAR_S)
    clear = likeness[best] >= _LIKE and likeness[best] - elsewhere >= _CLEARLY
    return best * _BIN_S if clear else None


def loudness(data: bytes, start_s: float) -> list[float]:
    """How loud it is in each bin of time from `start_s` after the start of the file, for a few seconds."""
    bins = [0.0] * round(_LONGEST_S / _BIN_S)
    reached = 0
    container: Any
    with av.open(io.BytesIO(data), metadata_errors="ignore") as container:
        streams = [s for s in container.streams if s.type in ("audio", "video") and s.start_time is not None]
        begin = max(0.0, min((float(s.start_time * s.time_base) for s in streams), default=0.0))
        default = av.stream.Disposition.default
        heard = [s for s in container.streams.audio if s.codec_context is not None]
        stream = next((s for s in heard if s.disposition & default), None) or next(iter(heard), None)
        if stream is None:  # no decoder knows it
            return []
        resampler = av.AudioResampler(format="s16", layout="mono", rate=_RATE)
        for frame in container.decode(stream):
            if frame.pts is None:
                continue
            at = float(frame.pts * frame.time_base) - begin - start_s
            if at > _LONGEST_S:
                break
            for ready in resampler.resample(frame):
                samples = array("h", bytes(ready.planes[0])[: 2 * ready.samples])
                for i, sample in enumerate(samples):
                    number = int((at + i / _RATE) / _BIN_S)
                    if 0 <= number < len(bins):
                        bins[number] += abs(sample)
                        reached = max(reached, number + 1)
                at += ready.samples / _RATE
    return bins[:reached]


def _spread(bins: list[float]) -> float:
    """The standard deviation, as a share of the mean."""
    mean = sum(bins) / len(bins)
    return (sum((b - mean) ** 2 for b in bins) / len(bins)) ** 0.5 / mean if mean else 0.0


def _likeness(before: list[float], after: list[float], lag: int) -> float:
    """The correlation of the two where they overlap, the second moved back by `lag` bins."""
    a = before[max(0, -lag) :]
    b = after[max(0, lag) :]
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    mean_a, mean_b = sum(a) / size, sum(b) / size
    shared = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    spread = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return float(shared / spread**0.5) if spread > 0 else 0.0
