"""Films, sound and documents whose own bytes are cut: to what is sent of them, and to fewer bytes a second.

Pure: says what is to be made, and what it will weigh. Of films and sound the bytes are a promise the encoder has to
keep (`max_bytes`); of a PDF they are an estimate, for what its pages share no count of pages tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from weighlock.media.document import pages_of
from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, VideoFacts
from weighlock.media.image_sizes import fitted
from weighlock.media.video import fps_of
from weighlock.media.work import COPIED, AudioWork, DocumentWork, VideoWork, Work
from weighlock.planning.carrying import converted
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Placement
from weighlock.rules import Controls, ModelRules, WireControl

_HEADER_BYTES = 4_096
_HALVINGS = 12
_NEAR, _WORTH = 1.5, 0.9
"""What is this near the least becomes the least; what takes away less than a tenth is no step."""
_DOUBT_S = 0.2
"""How far a file may seem to go on behind its end: the last packet of its sound, and what is put before the first."""
_MOST_EARLIER_S = 10.0
"""How much earlier than its window a copy may begin, and by no more than it is long: it is billed for that too. Films
of phones have a key frame a second, those of encoders left to themselves one in ten seconds at most."""
_CELL_PX = 48
_PAPER_BYTES = 2_000
"""Of a PDF besides its pages."""
_WRITTEN, _OTHER_CODEC = ("h264", "mp3"), 2
"""What comes out here, and how many times the bytes of another codec it may need to look and sound the same."""

_DROPPED_SOUND = 4_000
"""Bytes a second a film is made to lose with its sound, whatever the sound took."""
_LEAST_SOUND, _GOOD_SOUND = 3_000, 6_000
"""Bytes a second of a film's sound: no worse than what the service hears of it (16 Kbps, one channel), and ample."""
_LEAST_PICTURES = 1_000
"""Bytes a second, at the film's own pace."""
_LEAST_A_PIXEL, _GOOD_A_PIXEL = 0.02, 0.03
"""Bytes of a picture a second from the last: what any can be held to (noise was), and more than screens came to."""
_SPARED_PIXELS = 4
"""Times those the model has to go by: fewer may show."""
_VOICES = (8_100, 4_100, 2_100)
"""Bytes a second of MP3 at 64, 32 and 16 Kbps, one channel."""
_GOOD_VOICES = 2
_SHALLOW = ("pcm_s16le", "pcm_s16be", "pcm_u8", "pcm_mulaw", "pcm_alaw")
_DEEPEST_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What is done to the bytes of a film, a sound or a document, so that they hold what its controls say."""

    span: bool = False
    sound: bool = False
    pages: bool = False
    thinned: int | None = None
    """How many steps towards fewer bytes a second; 0 is cut to all that its controls say, as every further one is."""


NO_CUT = Cut()


def may_be_cut(part: Weighed) -> bool:
    """Whether it has bytes, and they are ours to work on."""
    facts, ours = part.examined.facts, part.examined.here and part.controls.placement is not Placement.URI
    known = isinstance(facts, VideoFacts | AudioFacts) or (isinstance(facts, DocumentFacts) and not facts.encrypted)
    return known and ours and part.error is None and bool(part.examined.size_bytes)


def becomes(part: Weighed, rules: ModelRules) -> str | None:
    """The format a film or a sound has to become anyway, where the service takes none such."""
    accepted = rules.accepted(part.controls.carrier, part.controls.placement)
    if part.send_as is not None or accepted is None or not may_be_cut(part):
        return None
    recording = isinstance(part.examined.facts, VideoFacts | AudioFacts)
    return converted(part.examined.mime or "", accepted) if recording else None


def thinnings(part: Weighed, rules: ModelRules) -> Iterator[int]:
    """Steps towards fewer bytes a second, mild to harsh. Not each of them saves something."""
    match part.examined.facts:
        case VideoFacts():
            yield from range(_HALVINGS + 1)
        case AudioFacts():
            taken = rules.accepts("audio/mpeg", part.controls.carrier, part.controls.placement)
            yield from range(len(_VOICES) + 1 if taken else 1)
        case _:
            yield 0


def spares(part: Weighed, thinned: int, rules: ModelRules) -> bool:
    """Whether a step leaves the service what it would have sampled anyway."""
    match part.examined.facts:
        case VideoFacts() as facts if thinned:
            film = _Film(part, facts, part.controls, Cut(thinned=thinned), rules)
            pixels = min(facts.width_px * facts.height_px, _SPARED_PIXELS * film.least_px)
            return film.size_bytes() >= film.at(_GOOD_A_PIXEL, pixels, _GOOD_SOUND)
        case AudioFacts():
            return thinned <= _GOOD_VOICES
        case _:
            return True


def in_words(part: Weighed, thinned: int, rules: ModelRules) -> str:
    if thinned == 0:
        return "its file cut to what is sent of it"
    if isinstance(part.examined.facts, VideoFacts):
        return f"its file at {sampled_fps(part.controls, rules):g} fps"
    return f"as MP3 of {_VOICES[thinned - 1] // 1000 * 8} kbit/s"


def sampled_fps(controls: Controls, rules: ModelRules) -> float:
    """Frames the service takes a second. Where nobody knows whether it does as it is asked, the most it may take."""
    asked = fps_of(controls, rules.video(controls))
    if rules.honours(WireControl.VIDEO_FPS):
        return asked
    return max(asked, fps_of(replace(controls, fps=None), rules.video(controls)))


def weigh_cut(part: Weighed, controls: Controls, cut: Cut, rules: ModelRules) -> Weighed:
    """What a part will weigh under `controls` once its bytes are cut; what they hold then, is asked for no more."""
    examined, facts = part.examined, part.examined.facts
    made: Facts
    mime: str | None = "video/mp4"
    match facts:
        case VideoFacts():
            film = _Film(part, facts, controls, cut, rules)
            made, size = film.facts(), film.size_bytes()
            controls = film.sampled_controls()
        case AudioFacts():
            made, kept = _heard(facts, controls, cut), becomes(part, rules) or examined.mime
            mime = "audio/mpeg" if cut.thinned else kept
            size = _sound_bytes(part, facts, controls, cut, rules)
        case DocumentFacts():
            made, mime = pages_of(facts, controls.first_page, controls.last_page), examined.mime
            size = _pages_bytes(examined.size_bytes or 0, made.pages / max(1, facts.pages))
            controls = replace(controls, first_page=None, last_page=None)
        case _:
            return weigh(examined, controls, rules)
    if _cuts_span(cut):
        controls = replace(controls, start_offset_s=None, end_offset_s=None)
    if cut.sound:
        controls = replace(controls, drop_sound=part.controls.drop_sound)
    declared = examined.declared_mime if mime == examined.mime else mime
    return weigh(replace(examined, facts=made, mime=mime, declared_mime=declared, size_bytes=size), controls, rules)


def work_of(part: Weighed, controls: Controls, cut: Cut, rules: ModelRules) -> Work | None:
    """What is to be done to the bytes of a part that is sent under `controls`."""
    match part.examined.facts:
        case VideoFacts() as facts:
            return _Film(part, facts, controls, cut, rules).work()
        case AudioFacts() as facts:
            start_s, end_s = _window(facts, controls, cut)
            held = _sound_bytes(part, facts, controls, cut, rules) if cut.thinned or not _lossless(facts) else None
            return AudioWork(start_s=start_s, end_s=end_s, mime="audio/mpeg" if cut.thinned else None, max_bytes=held)
        case DocumentFacts(pages=pages):
            return DocumentWork(first_page=controls.first_page or 1, last_page=min(controls.last_page or pages, pages))
        case _:
            return None


def copy_of(part: Weighed, work: VideoWork, rules: ModelRules) -> tuple[VideoWork, Weighed] | None:
    """The same window copied from a key frame on, and the most it may weigh; `None` where that would not do, or more is
    asked for than a window.

    A copy promises no bytes: they lie in the source as they lie, and what came out decides.
    """
    facts = part.examined.facts
    if not isinstance(facts, VideoFacts) or facts.codec not in COPIED or work.start_s is None:
        return None
    cut = Cut(span=True, sound=True)
    span = replace(part.controls, start_offset_s=work.start_s, end_offset_s=work.end_s, drop_sound=not work.keep_sound)
    film = _Film(part, facts, span, cut, rules)
    if work != film.work():
        return None
    earlier_s = min(_MOST_EARLIER_S, film.facts().duration_s)
    longest = replace(span, start_offset_s=max(0.0, work.start_s - earlier_s))
    copy = replace(work, exact=False, max_bytes=None, most_earlier_s=earlier_s)
    return copy, weigh_cut(part, longest, cut, rules)


def _may_take(part: Weighed, codec: str | None, rules: ModelRules) -> int:
    """Bytes of the whole, at its own pace: those it has, and where another codec has to hold as much some more."""
    more = becomes(part, rules) and codec not in _WRITTEN
    return (part.examined.size_bytes or 0) * (_OTHER_CODEC if more else 1)


def _pages_bytes(size_bytes: int, share: float) -> int:
    return min(size_bytes, _PAPER_BYTES + math.ceil(size_bytes * share))


# ---- where it begins and ends


def _cuts_span(cut: Cut) -> bool:
    return cut.span or cut.thinned is not None


def _window(facts: VideoFacts | AudioFacts, controls: Controls, cut: Cut) -> tuple[float | None, float | None]:
    """Seconds of the source. An encoder's last packet goes beyond the end of a file, unless that end is asked for."""
    sure = facts.duration_high_s <= facts.duration_s + _DOUBT_S
    if not _cuts_span(cut) or not (controls.clipped or (cut.thinned and sure)):
        return None, None
    end_s = facts.duration_s if controls.end_offset_s is None else min(controls.end_offset_s, facts.duration_s)
    return controls.start_offset_s or 0.0, end_s if sure else controls.end_offset_s


def _within(window: tuple[float | None, float | None], lasts_s: float) -> float:
    start_s, end_s = window
    return max(0.0, (lasts_s if end_s is None else min(end_s, lasts_s)) - (start_s or 0.0))


# ---- sound


def _heard(facts: AudioFacts, controls: Controls, cut: Cut) -> AudioFacts:
    window = _window(facts, controls, cut)
    return replace(
        facts,
        duration_s=_within(window, facts.duration_s),
        duration_high_s=_within(window, facts.duration_high_s),
        codec="mp3" if cut.thinned else facts.codec,
        tracks=1,
    )


def _lossless(facts: AudioFacts) -> bool:
    """Whether no rate says what it takes."""
    return facts.codec is None or facts.codec in ("flac", "alac") or facts.codec.startswith("pcm_")


def _sound_bytes(part: Weighed, facts: AudioFacts, controls: Controls, cut: Cut, rules: ModelRules) -> int:
    size, lasts_s = _may_take(part, facts.codec, rules), _heard(facts, controls, cut).duration_s
    share = max(size * lasts_s / max(facts.duration_s, 0.1), _HEADER_BYTES + lasts_s * _VOICES[-1])
    if _lossless(facts):
        depth = 2 if facts.codec in _SHALLOW else _DEEPEST_BYTES
        a_second = (facts.sample_rate_hz or 0) * (facts.channels or 0) * depth
        share = _HEADER_BYTES + lasts_s * a_second if a_second else size
    took = min(size, math.ceil(share))
    thin = math.ceil(_HEADER_BYTES + lasts_s * _VOICES[cut.thinned - 1]) if cut.thinned else took
    return thin if thin < took * _WORTH else took


# ---- films


@dataclass(frozen=True, slots=True)
class _Film:
    """One film that is cut."""

    part: Weighed
    source: VideoFacts
    controls: Controls
    cut: Cut
    rules: ModelRules

    def work(self) -> VideoWork:
        start_s, end_s = _window(self.source, self.controls, self.cut)
        size = (self.source.width_px, self.source.height_px)
        width, height = self._size()
        scaled = (width, height) != _even(*size)
        return VideoWork(
            start_s=start_s,
            end_s=end_s,
            fps=self._fps if self._thins_out else None,
            keep_sound=not self._drops_sound,
            max_width_px=width if scaled else None,
            max_height_px=height if scaled else None,
            max_bytes=self.size_bytes(),
        )

    def facts(self) -> VideoFacts:
        source, window = self.source, _window(self.source, self.controls, self.cut)
        width, height = self._size()
        silent, heard_s, heard_high_s = self._drops_sound, source.audio_duration_s, source.audio_duration_high_s
        return replace(
            source,
            width_px=width,
            height_px=height,
            duration_s=_within(window, source.duration_s),
            duration_high_s=_within(window, source.duration_high_s),
            frames=None,
            average_fps=self._fps if self._thins_out else source.average_fps,
            audio_tracks=0 if silent else min(1, source.audio_tracks),
            audio_duration_s=None if silent or heard_s is None else _within(window, heard_s),
            audio_duration_high_s=None if silent or heard_high_s is None else _within(window, heard_high_s),
        )

    def sampled_controls(self) -> Controls:
        """Fewer frames never go without their rate on the wire, lest the service takes more than there are."""
        says_so = self._thins_out and self.rules.honours(WireControl.VIDEO_FPS)
        return replace(self.controls, fps=self._fps) if says_so else self.controls

    def size_bytes(self) -> int:
        """Half of a half of what its length takes of the source, as often as it is thinned; never below the least."""
        size, source = _may_take(self.part, self.source.codec, self.rules), self.source
        share = size * self._lasts_s / max(source.duration_s, 0.1)
        if self._drops_sound:
            share = max(share / 2, share - _DROPPED_SOUND * self._lasts_s)
        took = min(size, max(share, _HEADER_BYTES + self._lasts_s * _LEAST_PICTURES + self._heard_s * _LEAST_SOUND))
        least = self.at(_LEAST_A_PIXEL, self.least_px, _LEAST_SOUND)
        for _ in range(self.cut.thinned or 0):
            thin = took / 2 if took / 2 > _NEAR * least else least
            if thin > took * _WORTH:
                break
            took = thin
        return math.ceil(took)

    def at(self, bytes_a_pixel: float, pixels: int, sound: int) -> float:
        """Bytes at so many a pixel of what is sampled; pictures close to each other need less each."""
        return _HEADER_BYTES + self._pictures * pixels * bytes_a_pixel + self._heard_s * sound

    @property
    def _lasts_s(self) -> float:
        return _within(_window(self.source, self.controls, self.cut), self.source.duration_s)

    @property
    def _heard_s(self) -> float:
        if self._drops_sound or not self.source.audio_tracks:
            return 0.0
        heard_s = self.source.audio_duration_s
        return self._lasts_s if heard_s is None else min(heard_s, self._lasts_s)

    @property
    def _drops_sound(self) -> bool:
        asked = self.controls.drop_sound and (self.cut.sound or self.cut.thinned is not None)
        return asked and self.source.audio_tracks > 0

    @property
    def _fps(self) -> float:
        return sampled_fps(self.controls, self.rules)

    @property
    def _thins_out(self) -> bool:
        """Whether the file has more pictures than are sampled of it."""
        pace = self.source.average_fps
        return bool(self.cut.thinned) and (pace is None or pace > self._fps * 1.01)

    @property
    def _pictures(self) -> float:
        pace = self._fps if self._thins_out else min(self.source.average_fps or self._fps, self._fps)
        return max(1.0, self._lasts_s * pace) / max(1.0, math.sqrt(pace))

    @property
    def least_px(self) -> int:
        """Pixels the model has to go by, of one picture."""
        source = self.source
        _, _, tokens = self.rules.video(self.controls).frame.count(source.width_px, source.height_px)
        return min(source.width_px * source.height_px, tokens * (self.rules.cell_px or _CELL_PX) ** 2)

    def _size(self) -> tuple[int, int]:
        """Fewer pixels where the bytes are few: they change no token of a film, and look better than coarse ones."""
        width, height = self.source.width_px, self.source.height_px
        if not self.cut.thinned:
            return _even(width, height) if _cuts_span(self.cut) else (width, height)
        left = self.size_bytes() - _HEADER_BYTES - self._heard_s * _LEAST_SOUND
        pixels = max(self.least_px, left / (self._pictures * _LEAST_A_PIXEL))
        scale = min(1.0, math.sqrt(pixels / (width * height)))
        return _even(*fitted((width, height), math.ceil(width * scale), math.ceil(height * scale)))


def _even(width: int, height: int) -> tuple[int, int]:
    """As an encoder has it."""
    return max(2, width & ~1), max(2, height & ~1)
