"""What the table of a request says, row by row: each turn and part, what it costs, what became of it and why.

Turns in which there is nothing to see are told together, so that the eye finds the media.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from weighlock.cli.amounts import confidence_of, figure, tokens_in_words
from weighlock.cli.printable import printable
from weighlock.media.facts import TextSizes
from weighlock.media.text import request_tokens
from weighlock.media.tokens import TokenRange
from weighlock.planning.carrying import Action
from weighlock.planning.rewrite import rewritten
from weighlock.planning.said import text_sizes
from weighlock.planning.screen import Change, Finding, Screening
from weighlock.planning.weigh import Weighed
from weighlock.report import Report, facts_in_words, settings_in_words
from weighlock.request import MediaPart, Modality, Part, Place, Request, TextPart, ToolCallPart, ToolResultPart, Turn
from weighlock.screening_report import as_text_tokens, change_in_words, done_in_words, is_untouched, numbered, seconds
from weighlock.written import plain

_LEAST_TEXTS, _MOST_QUIET = 3, 8
"""So many turns of text in a row, and more than so many with nothing to see, become one row."""
_MOST_ROWS, _LONGEST_NAME = 200, 40
_KINDS = {
    Modality.IMAGE: "image",
    Modality.VIDEO: "video",
    Modality.AUDIO: "audio",
    Modality.DOCUMENT: "document",
    Modality.TEXT: "text file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table; its words may hold line breaks."""

    turn: str = ""
    part: str
    found: str = ""
    """The type, by the bytes."""
    labelled: str | None = None
    """As what it came, where that is another type."""
    size: str = ""
    tokens: str = ""
    done: str = ""
    tone: str = ""
    """How it is coloured: `red` for what cannot be sent, `yellow` for what was changed."""


def rows_of(request: Request, report: Report) -> list[Row]:
    """The rows, as many as a person can look through."""
    rows: list[Row] = []
    left_out = 0
    for row in _Rows(request, report).all():
        if len(rows) < _MOST_ROWS:
            rows.append(row)
        else:
            left_out += 1
    if left_out:
        rows.append(Row(part=f"… and {left_out:,} more rows", done="--format json has every medium"))
    return rows


class _Rows:
    def __init__(self, request: Request, report: Report) -> None:
        screening = report.screening or Screening()
        self.request, self.parts, self.rule = request, report.parts, report.text_rule
        self.findings: dict[Place, list[tuple[Finding, int | None]]] = {}
        for finding, index in numbered(screening):
            self.findings.setdefault(finding.place._replace(medium=None), []).append((finding, index))
        self.changes: dict[Place, list[Change]] = {}
        for change in screening.changes:
            self.changes.setdefault(change.place, []).append(change)
        self.seen = {place.turn for place in (*self.findings, *self.changes)}
        self.sent = dict(zip(map(id, _results(request)), _results(rewritten(request, screening)), strict=True))
        """Tool results by the `id` of what they were; their number and order never change."""
        self.sent_media = sum(one.is_sent for one in screening.findings)
        self.continues = text_sizes(request).turn_continues

    def all(self) -> Iterator[Row]:
        system, tools = self.request.system_instruction, self.request.carried.get("tools")
        if system is not None:
            yield from self._turn(None, system)
        if tools:
            sizes = text_sizes(Request(turns=(), carried={"tools": tools}))
            size = _characters(sizes.tools_json_chars)
            yield Row(turn="tools", part="declarations", size=size, tokens=self._figure(sizes))
        turns, number = self.request.turns, 0
        while number < len(turns):
            end = self._end_of_run(number)
            if end - number == 1:
                yield from self._turn(number, turns[number])
            else:
                here = [part for turn in turns[number:end] for part in turn.parts]
                yield self._together(here, f"[{number}–{end - 1}]", "")
            number = end
        for added in self.parts[self.sent_media + 1 :]:
            yield Row(turn="--text", part="prompt text", size=facts_in_words(added), tokens=tokens_in_words([added]))

    def _end_of_run(self, start: int) -> int:
        """Behind the last turn that is told together with the one at `start`."""
        turns, texts, quiet = self.request.turns, start, start
        while quiet < len(turns) and quiet not in self.seen:
            if texts == quiet and all(isinstance(part, TextPart) for part in turns[quiet].parts):
                texts += 1
            quiet += 1
        if quiet - start > _MOST_QUIET:
            return quiet
        return texts if texts - start >= _LEAST_TEXTS else start + 1

    def _turn(self, number: int | None, turn: Turn) -> Iterator[Row]:
        head = "system" if number is None else f"[{number}] {printable(plain(turn.role or 'user', 12))}"
        index = 0
        while index < len(turn.parts):
            end = index
            while end < len(turn.parts) and Place(number, end) not in (self.findings | self.changes):
                end += 1
            if end - index > _MOST_QUIET:
                yield self._together(turn.parts[index:end], head, f"[{index}–{end - 1}] ")
                index = end
            else:
                name = f"[{index}] " if len(turn.parts) > 1 else ""
                for row in self._part(Place(number, index), turn.parts[index], name):
                    yield replace(row, turn=head)
                    head = ""
                index += 1
            head = ""

    def _together(self, parts: Sequence[Part], head: str, name: str) -> Row:
        """Parts with nothing to see, in one row."""
        kinds = Counter(map(_kind, parts))
        words = [kind if kind == "text" else f"{n:,} {kind}{'s' * (n != 1)}" for kind, n in kinds.items()]
        sizes = self._sizes(parts)
        size = _characters(sizes.content_chars)
        return Row(turn=head, part=f"{name}{', '.join(words)}", size=size, tokens=self._figure(sizes))

    def _part(self, place: Place, part: Part, name: str) -> Iterator[Row]:
        here, changes = self.findings.get(place, []), self.changes.get(place, [])
        if isinstance(part, MediaPart):
            for finding, index in here:
                yield self._medium(finding, index, name)
            return
        done = "; ".join(map(change_in_words, changes))
        sizes = self._sizes([self.sent.get(id(part), part)])
        yield Row(
            part=f"{name}{_in_words(part)}",
            size=_characters(sizes.content_chars) if sizes.content_chars else "",
            tokens=self._figure(sizes),
            done=done,
            tone="yellow" if done else "",
        )
        for finding, index in here:
            yield self._medium(finding, index, "· ")

    def _medium(self, finding: Finding, index: int | None, name: str) -> Row:
        medium, weighed = finding.medium, None if index is None else self.parts[index]
        kind = _KINDS[medium.modality] if medium.modality else "medium"
        found = medium.mime if weighed is None else weighed.examined.mime or medium.mime
        declared = finding.part.declared_mime
        error = None if weighed is None else weighed.error
        done = done_in_words(finding) + self._both_costs(finding, weighed)
        if error is not None and finding.error is None:
            done += "; could not be weighed"
        return Row(
            part=f"{name}{kind}{' in its text' if finding.hidden else ''}",
            found=printable(found or "unknown"),
            labelled=printable(plain(declared)) if declared and found and declared != found else None,
            size=" · ".join(self._size(finding, weighed)),
            tokens="-" if weighed is None else tokens_in_words([weighed]),
            done=done,
            tone="red" if finding.error else "" if is_untouched(finding) else "yellow",
        )

    def _size(self, finding: Finding, weighed: Weighed | None) -> Iterator[str]:
        medium = finding.medium
        if medium.size_bytes is not None:
            yield _bytes(medium.size_bytes)
        elif not medium.seen:
            yield "a reference"
        if weighed is not None:
            yield from filter(None, (facts_in_words(weighed), settings_in_words(weighed)))
        elif (played_s := seconds(finding, None)) is not None:
            yield f"{played_s:.3g} s"

    def _both_costs(self, finding: Finding, weighed: Weighed | None) -> str:
        """What base64 in a text costs as such, beside what the medium costs."""
        as_text = as_text_tokens(finding, self.rule)
        if as_text is None:
            return ""
        words = f"; as text ≈ {_rounded(as_text.likely)} tokens (high {_rounded(as_text.high)})"
        if weighed is None or not weighed.tokens or finding.decision.action is Action.REJECT:
            return words
        kind = _KINDS[finding.medium.modality] if finding.medium.modality else "medium"
        return f"{words}, as {kind} {figure(weighed.total, confidence_of([weighed]))}"

    def _sizes(self, parts: Sequence[Part]) -> TextSizes:
        sizes = text_sizes(Request(turns=(Turn(role="model", parts=tuple(parts)),)))
        return replace(sizes, turn_continues=self.continues)

    def _figure(self, sizes: TextSizes) -> str:
        """A share of the text's tokens. Without the spread, which is of the whole text and counted once."""
        if self.rule is None:
            return ""
        tokens: TokenRange = request_tokens(sizes, self.rule)
        return f"~{tokens.likely:,}" if tokens.likely else ""


def _results(request: Request) -> Iterator[ToolResultPart]:
    for turn in request.turns:
        yield from (part for part in turn.parts if isinstance(part, ToolResultPart))


def _kind(part: Part) -> str:
    match part:
        case TextPart():
            return "text"
        case ToolCallPart():
            return "call"
        case ToolResultPart():
            return "result"
        case _:
            return "other part"


def _in_words(part: Part) -> str:
    match part:
        case TextPart(carried=carried):
            return "thought" if carried.get("thought") else "text"
        case ToolCallPart(name=name) | ToolResultPart(name=name):
            return f"{_kind(part)} {printable(plain(name, _LONGEST_NAME))}"
        case _:
            kinds = sorted(key for key in part.wire if key != "thoughtSignature") if hasattr(part, "wire") else []
            return printable(plain(", ".join(kinds) or "empty part", _LONGEST_NAME))


def _characters(count: int) -> str:
    return f"{count:,} character{'s' * (count != 1)}"


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale * 0.9995:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B"


def _rounded(tokens: int) -> str:
    """To three digits: an estimate of text nobody should send has no more."""
    step = 10 ** max(0, len(str(tokens)) - 3)
    return f"{round(tokens / step) * step:,}"
