"""Media hidden as base64 text in what a tool answered: where they are, and the text without them. Pure.

A model is billed for such text by the character and sees no picture in it. Found are a whole string or a run within one
(a data URI, JSON within JSON, bare base64), whose bytes are of a known media type for certain; everything else that
looks like base64 (keys, hashes, archives, minified code) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from weighlock import mime
from weighlock.encoded import Base64
from weighlock.errors import MalformedMedia
from weighlock.mime import Flag
from weighlock.planning.identify import Identified, identify, window_of
from weighlock.request import Json, MediaPart

LEAST_BARE_CHARS = 4096
"""Of base64 that nothing announces."""
_LEAST_ANNOUNCED_CHARS = 32
"""Of what a data URI or a MIME type beside it announces."""
_LEAST_ICON_CHARS, _MOST_SMALL = 1024, 4
"""More small data URIs than this in one text are the icons of a page, and each costs less as text than as a picture."""
_LABELS = ("mimeType", "mime_type", "mediaType", "media_type", "contentType", "content_type")
_MEDIA_LABEL = re.compile(r"(?:image|audio|video)/|application/(?:x-)?pdf", re.IGNORECASE)
_SUBTYPES = {
    "image": "png jpeg webp gif bmp heic heif avif tiff svg+xml",
    "audio": "wav mpeg mp4 ogg flac aac aiff amr x-ms-wma x-caf webm x-matroska 3gpp",
    "video": "mp4 quicktime webm x-matroska x-msvideo mpeg mp2t ogg 3gpp 3gpp2 x-ms-wmv x-ms-asf",
    "application": "pdf",
}
_KINDS = frozenset(f"{kind}/{name}" for kind, names in _SUBTYPES.items() for name in names.split())
"""What a tool may have meant to show. Rarer formats are known by two or three bytes, which random data has too."""
_WEAK_CONTAINERS = frozenset({"loas", "latm"})
_B64 = r"[A-Za-z0-9+/_-]"
_ALONE = rf"(?<!{_B64})"
"""Runs begin where base64 begins: trying every character of one would take time by the square of its length."""
_URI_HEAD = r"data:([^,;\s\"'\\]{0,100})(?:;[^,;\s\"'\\]{1,60}){0,4}?;base64, ?"
_DATA_URI = re.compile(rf"{_URI_HEAD}$", re.IGNORECASE)
_SMALL_URI = re.compile(
    rf"{_URI_HEAD}({_B64}{{{_LEAST_ANNOUNCED_CHARS},{_LEAST_ICON_CHARS - 1}}}+(?!{_B64})={{0,2}})", re.IGNORECASE
)
_LONGEST_PREFIX = 400
_ONE_RUN = re.compile(rf"{_ALONE}{_B64}{{{_LEAST_ICON_CHARS},}}={{0,2}}")
_SLASH = r"\\+/|\\+u002[BbFf]"
_ESCAPED_RUN = re.compile(rf"{_ALONE}(?:{_SLASH})?{_B64}++(?:(?:{_SLASH}){_B64}*+)+={{0,2}}")
"""As some JSON writers put it: `/` behind a backslash, `+` by its number."""
_BREAK = r"(?:\r?\n|\\+r\\+n|\\+n)[ \t]*"
_WRAPPED_RUN = re.compile(rf"{_ALONE}{_B64}{{40,1000}}+(?:{_BREAK}{_B64}{{1,1000}}+(?!{_B64}))+={{0,2}}")
"""As `base64` prints it: in lines no longer than some mail programs', also indented or within a JSON text."""
_LINE = re.compile(rf"({_B64}+)={{0,2}}(?:{_BREAK})?")
_WORD = re.compile(r"[A-Za-z]{1,20}")
_MAGIC = re.compile("iVBORw0KGgo|/9j/|UklGR|R0lGOD|JVBERi0|SUQz|AAAA.{3,5}0eX|GkXfo|T2dnU|ZkxhQ")
"""How the media most often met begin in base64."""
_GLUED_CHARS = 64
_PLAIN_START = re.compile(rf"{_B64}{{24}}")

Path = tuple[str | int, ...]
"""Keys and indexes from the response down to a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """One medium within a tool's response."""

    path: Path
    start: int = 0
    end: int = 0
    """The characters of the string at `path` that are it, `data:…;base64,` included."""
    part: MediaPart
    medium: Identified
    raw: bool = False
    """The value itself is a medium, as a Python tool returned it; there are no characters yet."""
    cut: bool = False
    """It ends before its end, as where a tool shortens its output: nothing could look at it."""

    @property
    def chars(self) -> int:
        """What it takes as text."""
        return -(-(self.medium.size_bytes or 0) // 3) * 4 if self.raw else self.end - self.start


def find(response: Json, identified: Callable[[MediaPart], Identified] = identify) -> list[Embedded]:
    """Every medium in a response, in the order of its text. `identified` tells what one is that was returned raw."""
    found: list[Embedded] = []
    waiting: list[tuple[Path, Json, str | None]] = [((), response, None)]
    while waiting:  # no recursion: a response may be nested as deep as JSON goes
        path, value, label = waiting.pop()
        if type(value) is str:
            if len(value) >= _LEAST_ANNOUNCED_CHARS:
                found += _in_text(value, path, label)
        elif isinstance(value, MediaPart):
            found.append(Embedded(path=path, part=value, medium=identified(value), raw=True))
        elif isinstance(value, dict):
            label = _label_of(value)
            waiting += [((*path, key), item, label) for key, item in reversed(value.items())]
        elif isinstance(value, list | tuple):
            waiting += [((*path, at), value[at], None) for at in range(len(value) - 1, -1, -1)]
    return found


def replaced(response: Json, values: Iterable[tuple[Embedded, Json]]) -> Json:
    """The response with each of these media replaced by a value; what holds none of them is the same object.

    One that is a part of a text is replaced by a text.
    """
    by_path: dict[Path, list[tuple[Embedded, Json]]] = {}
    for one, value in values:
        by_path.setdefault(one.path, []).append((one, value))
    copies: dict[Path, Json] = {}
    for path, here in by_path.items():
        response = _with(response, path, here, copies)
    return response


def _with(response: Json, path: Path, here: list[tuple[Embedded, Json]], copies: dict[Path, Json]) -> Json:
    """The response with what stands at a path replaced. Each holder on the way is copied once."""
    holder: Json = None
    value = response
    for depth, step in enumerate((*path, None)):
        at = path[:depth]
        if step is None:
            value = _spliced(value, here) if isinstance(value, str) else here[0][1]
        elif at not in copies:
            copies[at] = value = dict(value) if isinstance(value, dict) else list(value)
        if holder is None:
            response = value
        else:
            holder[path[depth - 1]] = value
        if step is not None:
            holder, value = value, value[step]
    return response


def _spliced(text: str, here: list[tuple[Embedded, Json]]) -> Json:
    if len(here) == 1 and here[0][0].start == 0 and here[0][0].end == len(text):
        return here[0][1]
    pieces, at = [], 0
    for one, value in sorted(here, key=lambda pair: pair[0].start):
        pieces += [text[at : one.start], str(value)]
        at = one.end
    return "".join((*pieces, text[at:]))


def _label_of(value: Mapping[str, Json]) -> str | None:
    """The media type an object names for its data: MCP's `mimeType`, Gemini's `mime_type`, Anthropic's `media_type`."""
    for key in _LABELS:
        if isinstance(label := value.get(key), str) and _MEDIA_LABEL.match(label):
            return label
    return None


def _in_text(text: str, path: Path, label: str | None) -> Iterator[Embedded]:
    whole = _whole(text, path, label)
    if whole is not None:
        yield whole
    else:
        for cluster in _clusters(text):
            yield from _media_of(text, path, cluster)


def _clusters(text: str) -> Iterator[list[tuple[int, int]]]:
    """Runs of base64, those that overlap together: one way of writing may see a piece of what another sees whole."""
    spans = sorted(_small_uris(text))
    if len(text) >= _LEAST_ICON_CHARS:
        spans = sorted((*spans, *_runs(text)))
    cluster: list[tuple[int, int]] = []
    end = -1
    for span in spans:
        if span[0] >= end and cluster:
            yield cluster
            cluster = []
        cluster.append(span)
        end = max(end, span[1])
    if cluster:
        yield cluster


def _media_of(text: str, path: Path, cluster: list[tuple[int, int]]) -> list[Embedded]:
    """The media of overlapping runs, the longest reading first."""
    found: list[Embedded] = []
    for start, end in sorted(set(cluster), key=lambda span: span[0] - span[1]):
        prefix = _DATA_URI.search(text, max(0, start - _LONGEST_PREFIX), start)
        if prefix is None and end - start < LEAST_BARE_CHARS:
            continue
        declared, begin = (prefix[1] or None, prefix.start()) if prefix else (None, start)
        if any(begin < other.end and other.start < end for other in found):
            continue
        if one := _medium(text[start:end], path, declared, begin, end):
            found.append(one)
    return sorted(found, key=lambda one: one.start)


def _small_uris(text: str) -> list[tuple[int, int]]:
    found = [uri.span(2) for uri in _SMALL_URI.finditer(text)] if ";base64," in text else []
    return found if len(found) <= _MOST_SMALL else []


def _whole(text: str, path: Path, label: str | None) -> Embedded | None:
    """A string that is base64 from end to end, announced or long."""
    begin = len(text) - len(text.lstrip())
    start = begin
    if text.startswith("data:", begin):
        start = text.find(";base64,", begin, begin + _LONGEST_PREFIX) + len(";base64,")
        start += text[start : start + 1] == " "
        prefix = _DATA_URI.search(text, begin, start)
        if prefix is None:
            return None
        label = prefix[1] or label or "application/octet-stream"
    if label is None and (len(text) < LEAST_BARE_CHARS or any(blank in text for blank in " \n")):
        return None  # lines and words are looked at one by one: two media may stand in one text
    if not _PLAIN_START.match(text, start):
        return None
    return _medium(text[start:], path, label, begin, len(text))


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Long runs, in every way of writing the text may use."""
    patterns = [_ONE_RUN]
    if "\\" in text:
        patterns.append(_ESCAPED_RUN)
    if "\n" in text or "\\" in text:
        patterns.append(_WRAPPED_RUN)
    for pattern in patterns:
        for run in pattern.finditer(text):
            end = run.end() if pattern is not _WRAPPED_RUN else run.start() + _lines_end(run[0])
            if end - run.start() >= _LEAST_ICON_CHARS:
                yield run.start(), end


def _lines_end(run: str) -> int:
    """Where wrapped base64 ends. All its lines but the last are equally long; the text goes on behind it."""
    lines = list(_LINE.finditer(run))
    width = len(lines[1][1]) if len(lines) > 2 else len(lines[0][1])
    for at, line in enumerate(lines[1:], 1):
        if len(line[1]) == width:
            continue
        before = lines[at - 1].end(1)
        if len(line[1]) > width:
            return before
        padded = line.end(1) < len(run) and run[line.end(1)] == "="
        if not padded and _WORD.fullmatch(line[1]):  # a word, or the last line? Whole without it, it is a word
            medium = _sniffed(run[:before])
            if medium is not None and not medium[2]:
                return before
        return line.end(1) + (len(run) - len(run.rstrip("=")) if at == len(lines) - 1 else 0)
    return len(run)


def _medium(run: str, path: Path, declared: str | None, start: int, end: int) -> Embedded | None:
    """The medium a run of base64 stands for; `None` where it stands for none."""
    found = _sniffed(run, declared)
    if found is None and declared is None and (glued := _MAGIC.search(run, 1, _GLUED_CHARS)):
        start += glued.start()  # a path or a word stood right before it
        found = _sniffed(run[glued.start() :])
    if found is None:
        return None
    part, medium, cut = found
    return Embedded(path=path, start=start, end=end, part=part, medium=medium, cut=cut)


def _sniffed(run: str, declared: str | None = None) -> tuple[MediaPart, Identified, bool] | None:
    """A run as a medium, and whether it is cut off; `None` where it is none."""
    source = Base64(_unwrapped(run))
    part = MediaPart(source=source, label="", declared_mime=mime.canonical(declared))
    try:
        if not _is_medium(mime.sniff(window_of(part)), source):
            return None
    except MalformedMedia:
        return None
    medium = identify(part)
    if medium.error is not None:  # it begins like one, but is no base64 throughout
        return None
    guessed = Flag.HEADER_ONLY_GUESS in medium.flags  # a film whose index was cut away
    cut = guessed or Flag.TRUNCATED in medium.flags or mime.stops_short(window_of(part), medium.mime or "")
    return part, medium, cut


def _is_medium(sniffed: mime.Sniffed, source: Base64) -> bool:
    if sniffed.mime not in _KINDS or sniffed.container in _WEAK_CONTAINERS:
        return False
    if Flag.HEADER_ONLY_GUESS in sniffed.flags:
        return source.read_at(4, 4) == b"ftyp"
    return sniffed.certain or Flag.POLYGLOT in sniffed.flags


def _unwrapped(run: str) -> str:
    if "\\" in run:
        run = re.sub(r"\\+u002[Bb]", "+", run)
        run = re.sub(r"\\+(?:/|u002[Ff])", "/", run)
        run = re.sub(r"\\+[rn]", "", run)
    if any(blank in run for blank in " \n\t\r"):
        run = "".join(run.split())
    # A tool that shortens its output cuts anywhere; what is left of the last byte says nothing.
    return run[:-1] if len(run) % 4 == 1 and not run.endswith("=") else run
