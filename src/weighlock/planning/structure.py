"""What the service refuses in a request as a whole, whatever its media are. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from weighlock.errors import InputError, MalformedRequest, MediaTooLarge, UnsupportedMedia
from weighlock.planning.identify import Identified
from weighlock.request import (
    Carrier,
    Json,
    Modality,
    Place,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from weighlock.rules import ModelRules
from weighlock.written import quoted

Sent = Sequence[tuple[Place, Identified]]
"""The media of a request that will be sent; one hidden in a tool's text stands at the tool result's place."""


def problems(request: Request, sent: Sent, rules: ModelRules, *, without_chars: int = 0) -> Iterator[InputError]:
    """Everything the service would answer with a 400, each with its place.

    `without_chars` of the tools' text are media that leave it.
    """
    yield from unanswered(request)
    if sent:  # of text alone, the service's context runs out long before the bytes do
        yield from _sizes(sent, rules)
        yield from _counts(sent, rules)
        yield from _media_alone(request, rules)
        yield from _bytes_inline(request, sent, rules, without_chars)


# ---- calls and results


def unanswered(request: Request) -> Iterator[MalformedRequest]:
    """Calls and results that do not match: the results of all calls of a turn follow it directly, one each."""
    calls: list[ToolCallPart] = []
    results: list[tuple[Place, ToolResultPart]] = []
    called_at = run_at = last = -1
    for number, turn in request.beyond_text():
        if number is None:
            continue
        answers = [(Place(number, at), part) for at, part in enumerate(turn.parts) if isinstance(part, ToolResultPart)]
        if results and (not answers or last + 1 < number):
            yield from _matched(calls, results, called_at, run_at)
            calls, results = [], []
        elif calls and not results and _interrupted(request, last, number, answered=bool(answers)):
            yield from _matched(calls, results, called_at, called_at)
            calls = []
        if answers:
            run_at = run_at if results else number
            results += answers
        if made := [part for part in turn.parts if isinstance(part, ToolCallPart)]:
            calls += made
            called_at = number
        last = number
    if results or (calls and _interrupted(request, last, len(request.turns), answered=True)):
        # Calls a request ends with are what a count looks like.
        yield from _matched(calls, results, called_at, run_at if results else called_at)


def answered_calls(request: Request) -> dict[Place, str]:
    """Where each tool result stands → the id of the call it answers: its own, else the first open call of its name."""
    found: dict[Place, str] = {}
    opened: dict[str, deque[ToolCallPart]] = {}
    for number, turn in request.beyond_text():
        if number is None:
            continue
        if made := [part for part in turn.parts if isinstance(part, ToolCallPart)]:
            opened = {}
            for call in made:
                opened.setdefault(call.name, deque()).append(call)
        for index, part in enumerate(turn.parts):
            if not isinstance(part, ToolResultPart):
                continue
            queue = opened.get(part.name)
            call_id = part.call_id or (queue.popleft().call_id if queue else None)
            if call_id:
                found[Place(number, index)] = call_id
    return found


def _interrupted(request: Request, called_at: int, number: int, *, answered: bool) -> bool:
    """Whether anybody but the model speaks after the calls, before their results are due in turn `number`."""
    if not answered and request.turns[number].role != "model":
        return True
    return any(request.turns[between].role != "model" for between in range(called_at + 1, number))


def _matched(
    calls: list[ToolCallPart], results: list[tuple[Place, ToolResultPart]], called_at: int, run_at: int
) -> Iterator[MalformedRequest]:
    if any("willContinue" in result.carried.get("functionResponse", {}) for _, result in results):
        return  # a tool that answers in instalments
    place = Place(run_at)
    if not calls:
        yield _malformed(place, f"{_number(len(results), 'function response')}, and no function call before")
        return
    if len(calls) != len(results):
        yield _malformed(
            place,
            f"{_number(len(results), 'function response')} to the {_number(len(calls), 'function call')} "
            f"of {Place(called_at)}",
        )
        return
    told = all(call.call_id for call in calls) and all(_sent_id(result) for _, result in results)
    open_calls = Counter(str(call.call_id if told else call.name) for call in calls)
    for at, result in results:
        answered = str(_sent_id(result) if told else result.name)
        if not open_calls[answered]:
            what = "has the id" if told else "is named"
            yield _malformed(at, f"a function response {what} {quoted(answered)}, which no call has")
            return
        open_calls[answered] -= 1


def _sent_id(result: ToolResultPart) -> str | None:
    """The id that travels with a result; some formats know one and send none."""
    return None if "id" in result.carried.get("functionResponse", {}) else result.call_id


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


# ---- how many, how large


def _sizes(sent: Sent, rules: ModelRules) -> Iterator[InputError]:
    """Of each medium that travels inline."""
    limits = rules.limits
    most = {
        Modality.IMAGE: (limits.inline_image_bytes, "an image", "send it smaller, or name it by gs://"),
        Modality.DOCUMENT: (limits.pdf_bytes, "a PDF", "split it"),
        Modality.TEXT: (limits.text_bytes, "a text", "split it"),
    }
    for place, medium in sent:
        limit, what, remedy = most.get(medium.modality or Modality.AUDIO, (None, "", ""))
        if limit is not None and medium.seen and (size := medium.size_bytes or 0) > limit:
            words = f"{what} of {size:,} bytes inline; {rules.model} takes {limit:,}: {remedy}"
            yield MediaTooLarge(f"{place}: {words}", place=str(place), size_bytes=size, limit=limit)


def _counts(sent: Sent, rules: ModelRules) -> Iterator[InputError]:
    limits = rules.limits
    for modality, limit, what in (
        (Modality.IMAGE, limits.images, "images"),
        (Modality.VIDEO, limits.videos, "videos"),
        (Modality.AUDIO, limits.audio_files, "audio files"),
    ):
        ones = [place for place, medium in sent if medium.modality is modality]
        if limit is not None and len(ones) > limit:
            words = f"{len(ones):,} {what} in one request; {rules.model} takes {limit:,}: send fewer"
            place = str(ones[limit])
            yield UnsupportedMedia(f"{place}: {words}", place=place, count=len(ones), limit=limit)


def _bytes_inline(request: Request, sent: Sent, rules: ModelRules, without_chars: int) -> Iterator[InputError]:
    """Of the whole request, base64 and text counted."""
    limit = rules.limits.inline_request_bytes
    if limit is None:
        return
    sizes = [(_base64_chars(medium), place) for place, medium in sent]
    total = sum(size for size, _ in sizes) + _text_chars(request) - without_chars
    if total > limit:
        size, place = max(sizes, key=lambda one: one[0])
        words = f"{total:,} bytes inline, base64 and text counted; the service takes {limit:,}: send less of it inline"
        largest = f"{place}: the largest part ({size:,}) of " if size else ""
        yield MediaTooLarge(f"{largest}{words}", place=str(place), size_bytes=total, limit=limit, together=True)


def _base64_chars(medium: Identified) -> int:
    return -(-(medium.size_bytes or 0) // 3) * 4 if medium.seen else 0


def _text_chars(request: Request) -> int:
    # Characters for bytes: what other scripts need beyond that matters near the limit only, and the service tells.
    count = 0
    for _, turn in request.placed_turns():
        for part in turn.parts:
            if isinstance(part, TextPart):
                count += len(part.text)
            elif isinstance(part, ToolResultPart):
                count += sum(map(len, strings_of(part.response)))
    return count


def strings_of(value: Json) -> Iterator[str]:
    """Everything a JSON value says: its texts, the keys, and numbers as they are written."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from value
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, bool | int | float):
            yield str(value)


def _media_alone(request: Request, rules: ModelRules) -> Iterator[InputError]:
    least = rules.limits.least_text_parts
    spoken = next((place for place, _, carrier in request.media() if carrier is Carrier.USER), None)
    if not least or spoken is None:
        return
    said = sum(bool(p.text.strip()) for turn in request.turns for p in turn.parts if isinstance(p, TextPart))
    if said < least:
        yield _malformed(spoken, "a message of media alone; this backend wants a text part beside them")


def _malformed(place: Place, what: str) -> MalformedRequest:
    return MalformedRequest(f"{place}: {what}", place=str(place))
