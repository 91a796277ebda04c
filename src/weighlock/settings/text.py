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
from pathlib import Path
from typing import Any

import yaml

KeyPath = tuple[str, ...]

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


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = _resolvers()


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
    return text


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, which key it is about, what is wrong and what would be right."""

    where: str
    key: str
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.key, self.text) if part)


@dataclass(slots=True)
class Document:
    """Raw values with the place of each, and the mistakes met while reading."""

    values: dict[str, Any] = field(default_factory=dict)
    marks: dict[KeyPath, str] = field(default_factory=dict)
    """Key path → `file:line`, or the variable's name."""
    problems: list[Problem] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
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


def dotted(path: KeyPath) -> str:
    return ".".join(path)


def read_yaml(path: Path, document: Document) -> None:
    """Read one file into an empty document. Whatever is wrong with it ends in `document.problems`."""
    document.files.append(path)
    try:
        text = path.read_text(encoding="utf-8")
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
        document.problems.append(Problem(f"{path}{line}", "", f"not YAML: {error.problem}"))
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
    try:
        document.values = _Construction(str(path), document).mapping(root, ())
    except RecursionError:
        document.problems.append(Problem(str(path), "", "nested too deeply, or an alias that contains itself"))


def _nearest_file(path: Path) -> str:
    try:
        siblings = [entry.name for entry in path.parent.iterdir() if entry.suffix in {".yaml", ".yml"}]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, siblings, n=1, cutoff=0.5)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


@dataclass(frozen=True, slots=True)
class _Construction:
    """Nodes → plain values, marking where each stands."""

    file: str
    document: Document

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = f"{self.file}:{key_node.start_mark.line + 1}"
            if not isinstance(key_node, yaml.ScalarNode):
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
        if isinstance(node, yaml.ScalarNode) and (scalar := _scalar(node)) is not _UNKNOWN:
            return scalar
        self.document.wrong(path, f"the tag {node.tag} is not read here; write a plain value")
        return None


_UNKNOWN = object()


def _scalar(node: yaml.ScalarNode) -> Any:
    match node.tag.removeprefix("tag:yaml.org,2002:"):
        case "str":
            return node.value
        case "null":
            return None
        case "bool":
            return node.value.lower() == "true"
        case "int":
            return int(node.value.replace("_", ""))
        case "float":
            return Decimal(node.value)
        case _:
            return _UNKNOWN


def read_flow(text: str) -> Any:
    """A value written in one line, such as `[a, b]` or `{x: 1}`; the text itself where it is not YAML."""
    try:
        node = _Loader(text).get_single_node()
    except yaml.YAMLError:
        return text
    return None if node is None else _Construction("", Document()).value(node, ())


def leaves(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no mapping, with its key path. An empty mapping is a leaf too."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value
