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
_DATA_URI = re.compile(r"data:([^,;\s\"'\\]{0,100})(?:;[^,;\s\"'\\]{1,60}){0,4}?;base64,$", re.IGNORECASE)
_SMALL_URI = re.compile(
    rf"data:[^,;\s\"'\\]{{0,100}}(?:;[^,;\s\"'\\]{{1,60}}){{0,4}}?;base64,"
    rf"({_B64}{{{_LEAST_ANNOUNCED_CHARS},{_LEAST_ICON_CHARS - 1}}}+(?!{_B64})={{0,2}})",
    re.IGNORECASE,
)
_LONGEST_PREFIX = 400
_ONE_RUN = re.compile(rf"{_ALONE}{_B64}{{{_LEAST_ICON_CHARS},}}={{0,2}}")
_SLASH = r"\\/|\\u002[BbFf]"
_ESCAPED_RUN = re.compile(rf"{_ALONE}(?:{_SLASH})?{_B64}+(?:(?:{_SLASH}){_B64}*)*={{0,2}}")
"""As some JSON writers put it: `/` behind a backslash, `+` by its number."""
_BREAK = r"(?:\r?\n|\\r\\n|\\n)[ \t]*"
_WRAPPED_RUN = re.compile(rf"{_ALONE}{_B64}{{40,}}+(?:{_BREAK}{_B64}++)+={{0,2}}")
"""As `base64` prints it: in lines, also indented or within a JSON text."""
_LAST_LINE = re.compile(rf"{_BREAK}{_B64}+$")
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


def replaced(response: Json, texts: Mapping[Embedded, str] | Iterable[tuple[Embedded, str]]) -> Json:
    """The response with each of these media replaced by a text; what holds none of them is the same object."""
    pairs = texts.items() if isinstance(texts, Mapping) else texts
    by_path: dict[Path, list[tuple[Embedded, str]]] = {}
    for one, text in pairs:
        by_path.setdefault(one.path, []).append((one, text))
    for path, here in by_path.items():
        response = _with(response, path, here)
    return response


def _with(value: Json, path: Path, here: list[tuple[Embedded, str]]) -> Json:
    above: list[Json] = []
    for step in path:
        above.append(value)
        value = value[step]
    if isinstance(value, str):
        for one, text in sorted(here, key=lambda pair: pair[0].start, reverse=True):
            value = value[: one.start] + text + value[one.end :]
    else:
        value = here[0][1]
    for holder, step in zip(reversed(above), reversed(path), strict=True):
        copy: Json = dict(holder) if isinstance(holder, dict) else list(holder)
        copy[step] = value
        value = copy
    return value


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
        for start, end in sorted((*_small_uris(text), *(_runs(text) if len(text) >= _LEAST_ICON_CHARS else ()))):
            prefix = _DATA_URI.search(text, max(0, start - _LONGEST_PREFIX), start)
            if prefix is None and end - start < LEAST_BARE_CHARS:
                continue
            declared, begin = (prefix[1] or None, prefix.start()) if prefix else (None, start)
            if one := _medium(text[start:end], path, declared, begin, end):
                yield one


def _small_uris(text: str) -> list[tuple[int, int]]:
    found = [uri.span(1) for uri in _SMALL_URI.finditer(text)] if ";base64," in text else []
    return found if len(found) <= _MOST_SMALL else []


def _whole(text: str, path: Path, label: str | None) -> Embedded | None:
    """A string that is base64 from end to end, announced or long."""
    begin = len(text) - len(text.lstrip())
    start = begin
    if text.startswith("data:", begin):
        start = text.find(";base64,", begin, begin + _LONGEST_PREFIX) + len(";base64,")
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
    if "\\/" in text or "\\u002" in text:
        pattern = _ESCAPED_RUN
    elif _ONE_RUN.search(text):
        pattern = _ONE_RUN
    else:
        pattern = _WRAPPED_RUN
    for run in pattern.finditer(text):
        if run.end() - run.start() >= _LEAST_ICON_CHARS:
            yield run.start(), run.end() if pattern is not _WRAPPED_RUN else _end_of_lines(run[0], run.start())


def _end_of_lines(run: str, start: int) -> int:
    """Where wrapped base64 ends: a word on the line behind it may look like more of it."""
    last = _LAST_LINE.search(run, len(run) - 200 if len(run) > 200 else 0)
    if last is not None and run.count("\n") != 1:
        without = run[: last.start()]
        medium = _sniffed(without)
        if medium is not None and not medium[2]:
            return start + last.start()
    return start + len(run)


def _medium(run: str, path: Path, declared: str | None, start: int, end: int) -> Embedded | None:
    """The medium a run of base64 stands for; `None` where it stands for none."""
    found = _sniffed(run, declared)
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
        run = run.replace("\\/", "/").replace("\\r", "").replace("\\n", "")
        run = re.sub(r"\\u002[Bb]", "+", run)
        run = re.sub(r"\\u002[Ff]", "/", run)
    if any(blank in run for blank in " \n\t\r"):
        run = "".join(run.split())
    # A tool that shortens its output cuts anywhere; what is left of the last byte says nothing.
    return run[:-1] if len(run) % 4 == 1 and not run.endswith("=") else run
