"""What `weighlock fit` writes: the request's body, and the media that stand beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from weighlock.cli.files import replace_file
from weighlock.cli.printable import printable
from weighlock.cli.request_file import Loaded
from weighlock.encoded import Base64
from weighlock.fitted import Fitted
from weighlock.fitting import referred
from weighlock.request import MediaPart, Request

_EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "application/pdf": ".pdf",
}


def demand_place(folder: Path, fitted: Fitted, paths: Sequence[str]) -> None:
    """Ends the command, before anything is worked on, where nothing could be written or what is there is not ours."""
    given = {*_given(fitted), *(_file_of(Path(path)) for path in paths)}
    if (body := _file_of(folder / "request.json")) and body in given:
        raise click.UsageError("--out would overwrite request.json itself; name another folder")
    there = next((path for path in (folder, *folder.absolute().parents) if path.exists()), folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise click.UsageError(f"--out: nothing can be written to {printable(str(there))}")


def write(folder: Path, fitted: Fitted, loaded: Loaded | None, given: Request) -> list[Path]:
    """The request's body in the format it came in, and of files a REST body; and the media that go beside it.

    Raises:
        InputError: it cannot be written in that format.
    """
    from weighlock.converters import json_text, messages, rest_json

    path = folder / "request.json"
    beside = dict(_beside(folder, path, fitted, alone=loaded is None))
    request = referred(fitted, _to_upload(fitted, beside)).request
    if loaded is None:
        data = rest_json.emit(request)
    elif request is given:
        data = loaded.body
    elif isinstance(loaded.parsed, rest_json.Parsed):
        data = rest_json.emit(request, loaded.parsed)
    else:
        data = json_text.dumps(messages.emit(request, loaded.parsed))
    folder.mkdir(parents=True, exist_ok=True)
    for at, name in beside.items():
        replace_file(name, fitted.files[at] if at in fitted.files else _bytes_of(fitted.shaped[at].finding.part))
    replace_file(path, data)
    return [path, *beside.values()]


def _beside(folder: Path, body: Path, fitted: Fitted, *, alone: bool) -> Iterator[tuple[int, Path]]:
    """Where media are written: of files what was made, and what is to be uploaded and is no file yet."""
    made = fitted.files if alone else ()
    taken = [body]
    given = _given(fitted)
    for at in sorted({*made, *(at for at in fitted.to_upload if at in fitted.files or _own_file(fitted, at) is None)}):
        taken.append(_name(folder, fitted, at, taken, given))
        yield at, taken[-1]


def _given(fitted: Fitted) -> set[tuple[int, int]]:
    """The files that were named to be fitted."""
    return {known for _, part, _ in fitted.original.media() if (known := _file_of(part.source))}


def _file_of(path: object) -> tuple[int, int] | None:
    """What the system knows a file by, whatever name leads to it."""
    try:
        status = path.stat() if isinstance(path, Path) else None
    except OSError:
        return None
    return None if status is None else (status.st_dev, status.st_ino)


def _name(folder: Path, fitted: Fitted, at: int, taken: list[Path], given: set[tuple[int, int]]) -> Path:
    """That of what a medium was made of, or of its place, with the ending of what it is now; no file that is given."""
    label, part = fitted.before.parts[at].examined.label, fitted.plan.parts[at].examined
    mime = fitted.made[at].mime if at in fitted.made else part.mime or ""
    named = Path(label) if isinstance(fitted.shaped[at].finding.part.source, Path) else Path(_plain(label))
    stem, ending = named.stem or "medium", _EXTENSIONS.get(mime, named.suffix)
    path, nth = folder / f"{stem}{ending}", 1
    while path in taken or _file_of(path) in given:
        nth += 1
        path = folder / f"{stem}-{nth}{ending}"
    return path


def _plain(place: str) -> str:
    """`contents-0-parts-1` of `contents[0].parts[1]`."""
    return re.sub(r"\W+", "-", place).strip("-")


def _own_file(fitted: Fitted, at: int) -> Path | None:
    """The caller's file a part comes from; `None` where it came in a request, or on standard input."""
    part = fitted.shaped[at].finding.part
    return Path(part.label) if isinstance(part.source, Path) and part.source == Path(part.label) else None


def _bytes_of(part: MediaPart) -> bytes:
    match part.source:
        case Base64() as text:
            return text.decode()
        case Path() as path:
            return path.read_bytes()
        case source:
            return bytes(source)  # type: ignore[arg-type]  # nothing else stands in a request read from a file


def _to_upload(fitted: Fitted, beside: Mapping[int, Path]) -> dict[int, str]:
    """What stands in the request for media that somebody has to upload first; standard error says so."""
    uris: dict[int, str] = {}
    for at in fitted.to_upload:
        file = beside.get(at) or Path(fitted.before.parts[at].examined.label)
        uris[at] = f"file:{file.name if at in beside else file}"
        words = f"{file} is too large to go inline: upload it, and put its URI in place of {uris[at]}"
        click.echo(printable(f"weighlock: {words}"), err=True)
    return uris
