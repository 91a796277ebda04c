"""Where settings come from: a YAML file and the files it includes. Read, merged and marked; not judged.

pydantic-settings has a YAML source too, but it lets a missing file and a doubled key pass in silence and cannot say
which line a value came from; that is most of what this module is for.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from weighlock.settings.text import Document, read_yaml
from weighlock.written import MOST_CHARACTERS, plain, quoted

INCLUDABLE = ("accounts", "endpoints")
"""What an included file may hold: named things. Safety, prices and the default stay with whoever owns the main file."""


_MOST_FILES, _MOST_WILDCARDS, _MOST_FOLDERS = 100, 2, 20


def read_files(main: Path) -> Document:
    """The main file and everything it includes, as one document."""
    document = Document()
    read_yaml(main, document)
    patterns = document.values.get("include")
    if isinstance(patterns, list):
        for pattern in patterns:
            if isinstance(pattern, str):
                _include(pattern, main, document)
    return document


def _include(pattern: str, main: Path, document: Document) -> None:
    """Merge the files a pattern names. A wildcard may match nothing; a plain name may not."""
    folder = main.parent
    try:
        files = _named(pattern, folder)
    except (ValueError, NotImplementedError) as error:
        document.wrong(("include",), f"{quoted(pattern)} is no pattern to include by: {plain(error, 120)}")
        document.partial = True
        return
    for file in files:
        if file in document.files:
            continue
        part = Document()
        read_yaml(file, part, MOST_CHARACTERS - document.characters)
        document.characters += part.characters
        document.files.append(file)
        document.problems.extend(part.problems)
        document.partial |= bool(part.problems and not part.values)
        for key, value in part.values.items():
            if key in INCLUDABLE:
                _include_named(key, value, part, document)
            elif key != "version" or value != document.values.get("version"):
                allowed = f"an included file holds {' and '.join(INCLUDABLE)} only; write this in {plain(main, 300)}"
                document.wrong((key,), allowed, where=part.place((key,)))


def _named(pattern: str, folder: Path) -> list[Path]:
    """The files a pattern stands for. No pattern may walk a whole disk.

    Raises:
        ValueError: it asks for too much, or is none.
        NotImplementedError: it is not relative.
    """
    steps = Path(pattern).parts
    wild = [step for step in steps if any(character in step for character in "*?[")]
    if not wild:
        return [folder / pattern]
    if len(wild) > _MOST_WILDCARDS or "**" in wild or len(steps) > _MOST_FOLDERS:
        raise ValueError(f"at most {_MOST_FOLDERS} names, {_MOST_WILDCARDS} of them with a wildcard, and no `**`")
    files = list(islice(folder.glob(pattern), _MOST_FILES + 1))
    if len(files) > _MOST_FILES:
        raise ValueError(f"it stands for more than {_MOST_FILES} files")
    return sorted(files)


def _include_named(section: str, value: Any, part: Document, document: Document) -> None:
    into = document.values.setdefault(section, {})
    if not isinstance(value, dict) or not isinstance(into, dict):
        if not isinstance(value, dict):
            document.wrong((section,), "must be a mapping of names", where=part.place((section,)))
        return
    for name, body in value.items():
        path = (section, name)
        if name in into:
            document.wrong(path, f"defined twice; first at {document.place(path)}", where=part.place(path))
            continue
        into[name] = body
        document.marks.update({at: where for at, where in part.marks.items() if at[:2] == path})
