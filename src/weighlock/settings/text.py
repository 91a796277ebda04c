"""YAML text ⇄ plain values, with the line of each.

Read by YAML's 1.2 core rules: `off` and `on` are words, `1:30` is text, keys are text. Money stays exact: a number
with a point is a Decimal. A key given twice is a mistake, as is what a plain document does not need (tags, merge keys).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from weighlock.settings.amounts import parse_number
from weighlock.written import MOST_CHARACTERS, escaped, is_file, plain, read_text

KeyPath = tuple[str, ...]

_MOST_VALUES, _MOST_LEVELS = 50_000, 50

_SCALARS = (
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"^[-+]?[0-9][0-9_]*$"), list("-+0123456789")),
    ("float", re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"), list("-+.0123456789")),
)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, pattern, first_characters in _SCALARS:
        for character in first_characters:
            table.setdefault(character, []).append((f"tag:yaml.org,2002:{name}", pattern))
    return table


class _TooMuch(yaml.MarkedYAMLError):
    """A document past our bounds, however well it is written."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = _resolvers()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._open = 0
        self._extents: dict[yaml.Node, tuple[int, int]] = {}
        """Values and levels of every finished node, with all that its aliases stand for."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        """One node. An alias weighs as much as what it stands for, so that a few lines cannot come to billions."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's reader is untyped
        mark, is_alias = event.start_mark, isinstance(event, yaml.AliasEvent)
        self._open += 1
        if self._open > _MOST_LEVELS:
            raise _TooMuch(problem=f"nested more than {_MOST_LEVELS} levels deep", problem_mark=mark)
        node: yaml.Node = super().compose_node(parent, index)  # type: ignore[assignment]  # an event is there
        self._open -= 1
        if is_alias and node not in self._extents:
            raise _TooMuch(problem="an alias stands for what contains it", problem_mark=mark)
        values, levels = self._extents[node] = self._extent(node)
        if max(values, len(self._extents)) > _MOST_VALUES:
            problem = f"more than {_MOST_VALUES:,} values, those that aliases repeat included"
            raise _TooMuch(problem=problem, problem_mark=mark)
        if levels > _MOST_LEVELS:
            raise _TooMuch(problem=f"aliases nested more than {_MOST_LEVELS} levels deep", problem_mark=mark)
        return node

    def _extent(self, node: yaml.Node) -> tuple[int, int]:
        if node in self._extents:
            return self._extents[node]
        below = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        extents = [] if isinstance(node, yaml.ScalarNode) else [self._extents[one] for one in below]
        return 1 + sum(values for values, _ in extents), 1 + max((levels for _, levels in extents), default=0)


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = _resolvers()

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _decimal_node(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    text = f"{value:f}"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'int'}", text)


def _text_node(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # PyYAML writes U+0085 bare and reads it back as a space; in double quotes it escapes it.
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if value.isprintable() else '"')


_Dumper.add_representer(Decimal, _decimal_node)
_Dumper.add_representer(str, _text_node)


def dump_yaml(document: Mapping[str, Any]) -> str:
    """A document of plain values as block YAML that `read_yaml` reads back to the same."""
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    # What is not printable stands in double quotes by now, where PyYAML leaves some of it (bidi marks) as it is.
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, which key it is about, what is wrong and what would be right."""

    where: str
    key: str
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (_place(self.where), plain(self.key, 120), plain(self.text, 1_000)) if part)


@dataclass(slots=True)
class Document:
    """Raw values with the place of each, and the mistakes met while reading."""

    values: dict[str, Any] = field(default_factory=dict)
    marks: dict[KeyPath, str] = field(default_factory=dict)
    """Key path → `file:line`, or the variable's name."""
    problems: list[Problem] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    characters: int = 0
    """Length of what was read."""
    partial: bool = False
    """Whether a file that may hold more accounts and endpoints could not be read."""

    def place(self, path: KeyPath) -> str:
        """The place of a key, or of the nearest one around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.marks:
                return self.marks[path[:length]]
        return str(self.files[0]) if self.files else ""

    def wrong(self, path: KeyPath, text: str, *, where: str | None = None) -> None:
        self.problems.append(Problem(where or self.place(path), dotted(path), text))

    def told(self, path: KeyPath) -> bool:
        """Whether a mistake at this very key is known."""
        return any(problem.key == dotted(path) for problem in self.problems)

    def in_order(self) -> list[Problem]:
        """The mistakes by file, in the order of reading, and line; those of variables last."""
        files = {str(file): number for number, file in enumerate(self.files)}

        def position(problem: Problem) -> tuple[int, int]:
            file, _, line = problem.where.rpartition(":")
            if file in files and line.isdigit():
                return files[file], int(line)
            return files.get(problem.where, len(files)), 0

        return sorted(self.problems, key=position)


def _place(where: str) -> str:
    """A place as it is, but for keys that were taken for file names or variables."""
    file, _, line = where.rpartition(":")
    return escaped(where) if is_file(Path(file if line.isdigit() else where)) else plain(where, 200)


def dotted(path: KeyPath) -> str:
    return ".".join(path)


def read_yaml(path: Path, document: Document, most: int = MOST_CHARACTERS) -> None:
    """Read one file into an empty document. Whatever is wrong with it ends in `document.problems`."""
    document.files.append(path)
    try:
        text = read_text(path, most)
        document.characters = len(text)
        root = _Loader(text).get_single_node()
    except FileNotFoundError:
        document.problems.append(Problem(str(path), "", f"no such file{_nearest_file(path)}"))
    except UnicodeDecodeError:
        document.problems.append(Problem(str(path), "", "is not UTF-8 text"))
    except ValueError:
        document.problems.append(Problem(repr(str(path)), "", "is no file name"))
    except OSError as error:
        document.problems.append(Problem(str(path), "", f"cannot be read: {error.strerror}"))
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        text = f"{error.problem}" if isinstance(error, _TooMuch) else f"not YAML: {plain(error.problem, 120)}"
        document.problems.append(Problem(f"{path}{line}", "", text))
    except yaml.YAMLError as error:
        document.problems.append(Problem(str(path), "", f"not YAML: {' '.join(str(error).split())}"))
    else:
        _read_root(root, path, document)


def _read_root(root: yaml.Node | None, path: Path, document: Document) -> None:
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        document.problems.append(Problem(f"{path}:1", "", "must be a mapping of keys, such as `version: 1`"))
        return
    document.values = _Construction(str(path), document).mapping(root, ())


def _nearest_file(path: Path) -> str:
    try:
        siblings = [entry.name for entry in path.parent.iterdir() if entry.suffix in {".yaml", ".yml"}]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, siblings, n=1, cutoff=0.5)
    return f"; did you mean {plain(path.with_name(near[0]), 300)}?" if near else ""


@dataclass(frozen=True, slots=True)
class _Construction:
    """Nodes → plain values, marking where each stands."""

    file: str
    document: Document

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = f"{self.file}:{key_node.start_mark.line + 1}"
            if not isinstance(key_node, yaml.ScalarNode) or not _is_text(key_node.value):
                self.document.wrong(path, "a key must be a plain word", where=where)
                continue
            at = (*path, key_node.value)
            if key_node.value in values:
                self.document.wrong(at, f"given twice; first at {self.document.marks[at]}", where=where)
                continue
            self.document.marks[at] = where
            values[key_node.value] = self.value(value_node, at)
        return values

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.value(item, path) for item in node.value]
        try:
            return _scalar(node)
        except ValueError as error:
            self.document.wrong(path, str(error))
            return None


def _is_text(value: str) -> bool:
    """Whether it can be written down; `"\\uD800"` is half a character."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _scalar(node: yaml.Node) -> Any:
    match node.tag.removeprefix("tag:yaml.org,2002:") if isinstance(node, yaml.ScalarNode) else "":
        case "str" if _is_text(node.value):
            return node.value
        case "str":
            raise ValueError("is no text: half of a character stands alone")
        case "null":
            return None
        case "bool":
            return node.value.lower() == "true"
        case "int":
            return parse_number(node.value.replace("_", ""))
        case "float":
            return Decimal(parse_number(node.value))
        case _:
            raise ValueError(f"the tag {plain(node.tag)} is not read here; write a plain value")


def read_flow(text: str) -> Any:
    """A value written in one line, such as `[a, b]` or `{x: 1}`; the text itself where it is not YAML.

    Raises:
        ValueError: it is YAML of which something is not read here.
    """
    document = Document()
    try:
        node = _Loader(text).get_single_node()
        value = None if node is None else _Construction("", document).value(node, ())
    except _TooMuch as error:
        raise ValueError(error.problem) from None
    except yaml.YAMLError:
        return text
    if document.problems:
        raise ValueError("; ".join(": ".join(filter(None, (one.key, one.text))) for one in document.problems))
    return value


def leaves(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no mapping, with its key path. An empty mapping is a leaf too."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value
