"""The works of a plan, done until they are done or the deadline is past; then the request with what came of them.

Past the deadline what is under way is broken off, and the plan is made again without work on bytes. A film whose copy
will not do is encoded again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

from weighlock import fitting
from weighlock.errors import Cancelled, InputError, MediaTooLarge, TransformFailed, UnsupportedMedia
from weighlock.fitted import Fitted, Late
from weighlock.media.work import AudioWork, ImageWork, Made, StripWork, VideoWork, Work
from weighlock.report import Report, knobs
from weighlock.request import MediaPart, Request
from weighlock.scales import Scales

_GRACE_S = 1.0
"""Past the deadline, for taking out metadata: it encodes nothing, and without it a request would have to be refused."""
Done = Mapping[int, tuple[bytes, Made]]


class Make(Protocol):
    """What a work makes of a medium, in the confined worker."""

    def __call__(
        self,
        part: MediaPart,
        work: Work,
        progress: Callable[[float], None] | None,
        cancelled: Callable[[], bool] | None,
        *,
        size_bytes: int | None,
    ) -> tuple[bytes, Made]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Doer:
    """One plan on its way."""

    fitted: Fitted
    scales: Scales
    make: Make
    weigh: Callable[[Request], Report]
    """Of a request whose media were made, probed again."""
    clock: Callable[[], float]
    progress: Callable[[int, float], None] | None = None
    cancelled: Callable[[], bool] | None = None

    def carry_out(self) -> Fitted:
        """The plan as it was done; without its work on bytes where the deadline was past before that was done.

        Raises:
            InputError: a medium cannot be worked on as planned, or not in time and not be sent without.
            Cancelled: `cancelled` said so.
        """
        until = self.clock() + self.scales.deadline_s
        done: dict[int, tuple[bytes, Made]] = {}
        try:
            for at, work in sorted(self.fitted.works.items(), key=self._can_wait):
                done[at] = self._done(at, work, until, done)
            return self._held(done, until)
        except Cancelled:
            if self._is_cancelled():
                raise
        return self._late(done)

    def _held(self, done: dict[int, tuple[bytes, Made]], until: float) -> Fitted:
        """The request as it was made; where copies break what the plan holds, the last of them encoded again.

        The last: what an earlier turn sent as a copy is to stay one.
        """
        fitted = self._with(self.fitted, done)
        copies = {at: work for at, work in self.fitted.works.items() if _is_copy(work)}
        for at, work in sorted(copies.items(), reverse=True):
            begins_s = done[at][1].actual_start_s
            if begins_s is None or (broken := self._broken(fitted)) is None:
                continue
            done[at] = self._encoded(at, work, f"copied from {begins_s:.4g} s on it breaks {broken}", until, done)
            fitted = self._with(self.fitted, done)
        return fitted

    def _broken(self, made: Fitted) -> str | None:
        """What the plan holds and the request as it was made does not."""
        planned = {check.name for check in self.fitted.verdict.over}
        if over := [check for check in made.verdict.over if check.name not in planned]:
            return knobs(over, made.after.scale)
        return "what the service takes" if made.after.refused and not self.fitted.after.refused else None

    def _encoded(self, at: int, work: VideoWork, why: str, until: float, done: Done) -> tuple[bytes, Made]:
        """The film of a copy cut exactly, within the bytes of the plan."""
        size_bytes = self.fitted.plan.parts[at].examined.size_bytes
        data, made = self._done(at, replace(work, exact=True, most_earlier_s=None, max_bytes=size_bytes), until, done)
        return data, replace(made, notes=(*made.notes, f"encoded again: {why}"))

    def _can_wait(self, work: tuple[int, Work]) -> tuple[bool, int]:
        """What the request cannot go without comes first: it counts past the deadline too."""
        return work[0] in self.fitted.plan.works, work[0]

    def _is_cancelled(self) -> bool:
        return self.cancelled is not None and self.cancelled()

    def _done(self, at: int, work: Work, until: float, done: Done) -> tuple[bytes, Made]:
        try:
            return self._made(at, work, until)
        except InputError as error:
            if _is_copy(work):
                return self._encoded(at, work, error.message.partition(";")[0], until, done)
            for milder in self._milder(at, work, error, done):
                with suppress(TransformFailed, MediaTooLarge):
                    return self._made(at, milder, until)
            raise type(error)(f"{self._label(at)}: {_what(error, work)}", **error.figures) from error

    def _made(self, at: int, work: Work, until: float) -> tuple[bytes, Made]:
        finding, size_bytes = self.fitted.shaped[at].finding, self.fitted.before.parts[at].examined.size_bytes
        tell = self.progress

        def is_over() -> bool:
            return self._is_cancelled() or self.clock() >= until

        data, made = self.make(
            finding.shaped or finding.part,
            work,
            (lambda share: tell(at, share)) if tell else None,
            is_over,
            size_bytes=size_bytes,
        )
        return data, replace(made, by=work)

    def _milder(self, at: int, work: Work, error: InputError, done: Done) -> Iterator[Work]:
        """The work with ever more bytes than planned, where they were too few and a limit has room for more.

        A plan halves them, and the next half may be what fits. By fixed steps, so that the next turn comes to the same.
        """
        planned, smallest = error.figures.get("max_bytes"), error.figures.get("smallest_bytes")
        if planned and smallest and isinstance(work, VideoWork | AudioWork | ImageWork):
            most = planned + self._room({other: one for other, one in done.items() if other != at})
            targets = (smallest, *(planned * eighths // 8 for eighths in range(9, 17)))
            yield from (replace(work, max_bytes=target) for target in targets if smallest <= target <= most)

    def _room(self, done: Done) -> float:
        """How many bytes may be made beyond what is planned, by what is made already."""
        limit = next((check for check in self.fitted.verdict.limits if check.name == "bytes"), None)
        if limit is None:
            return math.inf
        parts = self.fitted.plan.parts
        more = sum(made.size_bytes - (parts[at].examined.size_bytes or 0) for at, (_, made) in done.items())
        return float(limit.limit - limit.high - more)

    def _late(self, done: dict[int, tuple[bytes, Made]]) -> Fitted:
        """The plan without work on bytes, but for what is no lever's: what of it is not done has to be quick."""
        try:
            wire = fitting.wire_only(self.fitted, self.scales)
        except UnsupportedMedia as error:
            raise self._too_late(error.figures["part"], "whole: the model takes no clip of it") from None
        until = self.clock() + _GRACE_S
        for at, work in wire.works.items():
            if at in done and self.fitted.works[at] == work:
                continue
            if not isinstance(work, StripWork):
                raise self._too_late(self._label(at), "as it is")
            try:
                done[at] = self._done(at, work, until, done)
            except Cancelled:
                if self._is_cancelled():
                    raise
                raise self._too_late(self._label(at), "with its metadata in it (media.strip_metadata)") from None
        left_out = {at: work for at, work in self.fitted.works.items() if wire.works.get(at) != work}
        late = Late(deadline_s=self.scales.deadline_s, left_out=left_out)
        return replace(self._with(wire, {at: done[at] for at in wire.works}), late=late)

    def _too_late(self, label: str, how: str) -> TransformFailed:
        deadline_s = self.scales.deadline_s
        return TransformFailed(
            f"{label}: local work took longer than {deadline_s:g} s "
            f"(prepare_deadline_s of {self.scales.endpoint.name}), and it cannot be sent {how}",
            limit="prepare_deadline_s", deadline_s=deadline_s,
        )  # fmt: skip

    def _label(self, at: int) -> str:
        return self.fitted.before.parts[at].examined.label

    def _with(self, fitted: Fitted, done: Done) -> Fitted:
        """The request with the media that were made, weighed as they came out."""
        screening = fitted.before.screening
        if not done or screening is None:
            return fitted
        made = {at: told for at, (_, told) in done.items()}
        files = {at: data for at, (data, _) in done.items()}
        request = fitting.worked_on(fitted, screening, dict(self._parts(fitted, done)))
        after, to_upload = fitting.as_made(self.weigh(request), fitted, self.scales)
        return replace(fitted, request=request, after=after, to_upload=to_upload, works={}, made=made, files=files)

    def _parts(self, fitted: Fitted, done: Done) -> Iterator[tuple[int, MediaPart]]:
        for at, (data, made) in done.items():
            finding = fitted.shaped[at].finding
            yield at, replace(finding.shaped or finding.part, source=data, declared_mime=made.mime, region=None)


def _is_copy(work: Work) -> TypeGuard[VideoWork]:
    return isinstance(work, VideoWork) and not work.exact


def _what(error: InputError, work: Work) -> str:
    """What is wrong, and the setting that asked for the work where leaving it out is a way on."""
    if not isinstance(work, StripWork):
        return error.message
    return f"its metadata cannot be taken out: {error.message} (media.strip_metadata)"
