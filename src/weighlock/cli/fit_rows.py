"""What `weighlock fit` did to each part of a request, a row a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from rich import box
from rich.table import Table
from rich.text import Text

from weighlock.cli.amounts import confidence_of, tokens_in_words
from weighlock.cli.printable import printable
from weighlock.cli.table import file_name, short
from weighlock.cli.work_words import made_a, work_in_words
from weighlock.fitted import Fitted
from weighlock.media.tokens import Confidence
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, StripWork, VideoWork, Work
from weighlock.planning.carrying import Action
from weighlock.planning.levers import Lever
from weighlock.planning.moves import Why, need
from weighlock.planning.steps import Step
from weighlock.planning.weigh import Tally
from weighlock.report import facts_in_words, settings_in_words
from weighlock.screening_report import done_in_words, is_untouched, numbered

_MOST_ROWS = 200
_WHY = {
    Why.ASKED: "as you asked",
    Why.ALWAYS: "the endpoint always sends it so",
    Why.KEPT: "kept from an earlier turn",
    Why.TAKEN: "the service takes no more bytes inline",
}


class Rows:
    """What happened to each part."""

    def __init__(self, fitted: Fitted, *, of_files: bool, narrow: bool) -> None:
        self.fitted, self.of_files, self.narrow = fitted, of_files, narrow
        self.worst = worst_of(fitted)
        screening = fitted.before.screening
        self.findings = {at: one for one, at in numbered(screening) if at is not None} if screening else {}

    def table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("part", overflow="fold", min_width=12)
        table.add_column("before", justify="right", no_wrap=True)
        table.add_column("after", justify="right", no_wrap=True)
        table.add_column("saved", justify="right", no_wrap=True)
        table.add_column("what changes", overflow="fold", min_width=14)
        if not self.narrow:
            table.add_column("why", overflow="fold", min_width=14)
        rows = list(self.together())
        for *cells, changes, why in rows[:_MOST_ROWS]:
            if self.narrow:
                table.add_row(*cells, Text("\n").join(words for words in (changes, why) if words.plain))
            else:
                table.add_row(*cells, changes, why)
        if len(rows) > _MOST_ROWS:
            table.add_row(f"… and {len(rows) - _MOST_ROWS:,} more; --format json has them all")
        return table

    def together(self) -> Iterator[tuple[str, str, str, str, Text, Text]]:
        """A row a part; those in a row that say the same, as the screenshots of an agent do, are told together."""
        rows = [
            (self.name(part.examined.label), self.row(at))
            for at, part in enumerate(self.fitted.before.parts)
            if part.total.high or part.error is not None
        ]
        for _, alike in groupby(rows, key=lambda one: (one[1][:4], one[1][4].plain, one[1][5].plain)):
            labels, (row, *_) = zip(*alike, strict=True)
            facts, before, after, saved, changes, why = row
            many = f"{len(labels)} × " if len(labels) > 1 else ""
            last = f"\n– {labels[-1]}" if many else ""
            name = f"{labels[0]}{last}{chr(10) if facts else ''}{facts}"
            now = f"{many}{after}" if after[:1].isdigit() or after[:1] in "~≤" else after
            yield name, f"{many}{before}", now, f"{many}{saved}" if saved else "", changes, why

    def name(self, label: str) -> str:
        """A place in a request as `[10][0] result[0]` where there is little room for it."""
        if self.of_files:
            return file_name(label, narrow=self.narrow)
        words = printable(label)
        if self.narrow:
            for name, shorter in ((".parts[", "["), (".functionResponse", " result"), ("contents[", "[")):
                words = words.replace(name, shorter)
        return words

    def row(self, at: int) -> tuple[str, str, str, str, Text, Text]:
        fitted = self.fitted
        before, after = fitted.before.parts[at], fitted.after.parts[at]
        facts = printable(facts_in_words(before))
        if before.error is not None:
            words = before.error.message.removeprefix(f"{fitted.shaped[at].finding.place}: ")
            return facts, "-", "unreadable", "", Text(), Text(printable(words), style="yellow")
        steps = [step for step in fitted.plan.steps if at in step.parts]
        saved, share = self.saved(before.total, after.total)
        done = [*self.screened(at), *self.changes(steps, at)]
        changes = Text("\n".join(map(printable, done)), style="yellow")
        if not done and (kept := settings_in_words(before)):
            changes = Text(f"asked for: {kept}", style="dim")
        was, now = (tokens_in_words([part], self.worst) for part in (before, after))
        why = Text("\n".join(dict.fromkeys(self.why(steps, at))))
        return facts, was, now if done else "as it is", f"{saved:,}{share}" if saved else "", changes, why

    def saved(self, before: Tally, after: Tally) -> tuple[int, str]:
        """Of the figures that are shown."""
        was, now = (one.high if self.worst is Confidence.ASSUMED else one.likely for one in (before, after))
        return was - now, f" ({(was - now) * 100 // was}%)" if was else ""

    def screened(self, at: int) -> Iterator[str]:
        """What was put right before anything was planned."""
        finding = self.findings.get(at)
        if finding is not None and not is_untouched(finding) and finding.decision.action is not Action.CONVERT:
            yield done_in_words(finding)

    def changes(self, steps: list[Step], at: int) -> Iterator[str]:
        """What is set in the request, and what is made of the bytes."""
        work = self.fitted.shaped[at].work if at < len(self.fitted.shaped) else None
        last = {step.lever: step_in_words(step) for step in steps if not (step.local and work)}
        yield from [last[Lever.HISTORY]] if at in self.fitted.plan.removed else last.values()
        if work is not None:
            yield from self.made(work, at)
        if at in self.fitted.to_upload:
            yield "by the Files API"

    def made(self, work: Work, at: int) -> Iterator[str]:
        """What is to be made of the bytes, or what came of that."""
        mime, made = self.fitted.before.parts[at].examined.mime, self.fitted.made.get(at)
        if isinstance(work, AudioWork | ImageWork) and work.mime == mime:
            work = replace(work, mime=None)
        if isinstance(work, VideoWork) and made is not None and made.actual_start_s is None:
            work = replace(work, exact=True)  # be it that a copy would not do
        words = work_in_words(work)
        if made is None:
            guess = self.fitted.plan.parts[at].examined.size_bytes if isinstance(work, DocumentWork) else None
            yield words if guess is None else f"{words}, about {guess:,} bytes"
            return
        words = words.partition(", at most ")[0]  # how many came is told
        if made.mime != mime and "made a" not in words:
            words += f", {made_a(made.mime)}"
        yield f"{words}, {made.size_bytes:,} bytes"
        if made.actual_start_s is not None:
            yield f"begins at {made.actual_start_s:.4g} s"
        yield from made.notes

    def why(self, steps: list[Step], at: int) -> Iterator[str]:
        fitted, finding = self.fitted, self.findings.get(at)
        yield from (_why(fitted, step, at) for step in steps)
        if at in fitted.to_upload:
            yield fitted.to_upload[at].reason
        elif not steps and fitted.plan.wishes[at].pinned:
            yield "pinned"
        if finding is not None and finding.decision.action is Action.CONVERT:
            yield printable(finding.decision.reason.partition("; ")[0])
        work = fitted.shaped[at].work if at < len(fitted.shaped) else None
        if isinstance(work, StripWork) or (work and getattr(work, "strip_metadata", False)):
            yield "media.strip_metadata"


def worst_of(fitted: Fitted) -> Confidence:
    """Where one figure is only a bound all are told as bounds, so that they add up."""
    return confidence_of([*fitted.before.parts, *fitted.after.parts])


def step_in_words(step: Step) -> str:
    """`fps 0.5`; of a level of the whole request without what it lowers beside."""
    return f"{step.words}, by work on its bytes" if step.local else step.words


def _why(fitted: Fitted, step: Step, at: int) -> str:
    if step.why is not Why.NEEDED:
        return _WHY[step.why]
    before, after = fitted.before.parts[at], fitted.after.parts[at]
    over = [short(one) for one in fitted.before.verdict.over if need(before, one) > need(after, one)]
    words = f"over: {', '.join(over)}" if over else "with the others"
    return f"{words}; breaks the cached prefix" if step.breaks_prefix else words
