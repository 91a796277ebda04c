"""Where a count is not the bill (tests/golden/known_traps_service.md), each trap with all of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import media
from emulated import Wire, inline, user
from fake_io import FACES, Face, FakeClock
from traps import preflight
from unit.planning.drawn import recording, song
from weighlock import Preflight
from weighlock.converters import rest_json
from weighlock.emulator import Answer, Emulator
from weighlock.errors import CountFailed, ServiceRefused
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.errors import Cause
from weighlock.gemini.http import Service, Target
from weighlock.gemini.usage import billed
from weighlock.io import Io
from weighlock.media.facts import TextSizes
from weighlock.media.tokens import TokenRange
from weighlock.planning.counting import Count, Form
from weighlock.planning.recount import corrected, text_counted
from weighlock.planning.weigh import Tally
from weighlock.report import Report
from weighlock.request import Backend, MediaResolution, Modality
from weighlock.rules import Controls, ModelRules, RuleBook, estimate
from weighlock.scales import Asked

NEW, OLD, OLDER = "gemini-3.8-flash", "gemini-2.5-flash", "gemini-2.0-flash"
DEVELOPER, VERTEX = Backend.DEVELOPER, Backend.VERTEX
IMAGE, TEXT, VIDEO, AUDIO = Modality.IMAGE, Modality.TEXT, Modality.VIDEO, Modality.AUDIO
SHORT_CONTEXT = """
generation = "gemini-3"
checked_on = 2026-11-30
[[limits]]
limit = "context_tokens"
value = 9_000
since = 2026-01-01
source = "https://example.com"
confidence = "measured"
"""
TOOLS = [{"functionDeclarations": [{"name": "look_up", "description": "Looks a word up in all dictionaries."}]}]
SYSTEM = {"parts": [{"text": "You answer in one short sentence, and never guess."}]}
BOOK = RuleBook.packaged()
RULES = BOOK.for_model(NEW, DEVELOPER, date(2026, 11, 30))
each_face = pytest.mark.parametrize("face", FACES)
each_backend = pytest.mark.parametrize("backend", Backend)


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        emulator.faults.stall_s = 0.05
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    running.rules = BOOK
    return running


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator)
    yield wire
    wire.close()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Backend, Preflight]]:
    lines = {one: preflight(tmp_path_factory.mktemp(one), backend=one.value) for one in Backend}
    yield lines
    for line in lines.values():
        line.close()


def body(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"contents": [user(*parts)], **fields}


def service(emulator: Emulator, io: Io, backend: Backend = DEVELOPER) -> Service:
    return Service(io, Target(backend=backend, base_url=emulator.base_url, project="p"), ApiKey("k"))


def counted(
    emulator: Emulator, document: dict[str, Any], model: str, backend: Backend, form: Form, face: Face = FACES[0]
) -> Count:
    async def flow(io: Io) -> Count:
        counter = TokenCounter(service(emulator, io, backend))
        return await counter.count(rest_json.parse(document).request, model, form)

    return face(flow, FakeClock())


def put_right(
    emulator: Emulator, line: Preflight, document: dict[str, Any], model: str, backend: Backend
) -> tuple[Report, ModelRules, tuple[TokenRange, ...]]:
    """A request as it is checked, and its tokens once it was counted in both forms."""
    asked = Asked(model=model)
    report, rules = line.weigh_request(rest_json.parse(document).request, asked), line.scales(asked).rules
    text, whole = (counted(emulator, document, model, backend, form) for form in (Form.TEXT, Form.WHOLE))
    right = corrected(report.parts, text, whole, rules)
    return report, rules, tuple(tokens for part in right for tokens in part.tokens)


# ---- TOK-002: a count knows nothing of the resolution


@each_backend
@pytest.mark.parametrize("model", [NEW, OLD])
def test_a_count_of_a_whole_request_is_asked_at_the_request_s_resolution(
    emulator: Emulator, backend: Backend, model: str
) -> None:
    shot = inline(media.picture((64, 48)), "image/png")
    for level in ("LOW", "MEDIUM", "HIGH"):
        config = {"mediaResolution": f"MEDIA_RESOLUTION_{level}"}

        counted(emulator, body(shot, "hi", generationConfig=config), model, backend, Form.WHOLE)

        asked = emulator.requests[-1].json
        asked = asked["generateContentRequest"] if backend is DEVELOPER else asked
        assert asked["generationConfig"]["mediaResolution"] == f"MEDIA_RESOLUTION_{level}"


def test_what_is_estimated_follows_the_resolution_where_a_count_does_not(
    emulator: Emulator, lines: dict[Backend, Preflight]
) -> None:
    shot = media.picture((1920, 1080))
    low = inline(shot, "image/png", mediaResolution={"level": "MEDIA_RESOLUTION_LOW"})

    counts = [
        counted(emulator, body(one, "hi"), NEW, DEVELOPER, Form.WHOLE) for one in (low, inline(shot, "image/png"))
    ]
    _, _, ranges = put_right(emulator, lines[DEVELOPER], body(low, "hi"), NEW, DEVELOPER)

    assert counts[0].by_modality == counts[1].by_modality
    assert Tally.of(one for one in ranges if one.modality is IMAGE).high < counts[0].by_modality["IMAGE"] / 3


def test_a_film_of_the_old_models_weighs_a_quarter_at_low(lines: dict[Backend, Preflight]) -> None:
    rules = lines[DEVELOPER].scales(Asked(model=OLD)).rules

    def frames(level: MediaResolution) -> int:
        tokens = estimate(recording(60), Controls(media_resolution=level), rules).tokens
        return sum(one.likely for one in tokens if one.modality is VIDEO)

    assert 3.5 < frames(MediaResolution.HIGH) / frames(MediaResolution.LOW) < 4.1
    assert frames(MediaResolution.MEDIUM) == frames(MediaResolution.HIGH)


# ---- TOK-003, TOK-021: the bill is a multiple of the count, or of the other backend's


@pytest.mark.parametrize(("model", "backend"), [(OLDER, DEVELOPER), (OLDER, VERTEX), (OLD, VERTEX), (NEW, DEVELOPER)])
@pytest.mark.parametrize("sizes", [[(700, 1003)], [(1024, 768), (3000, 2000)], [(200, 200)]])
def test_a_picture_s_bill_is_expected_and_not_its_count(
    emulator: Emulator, wire: Wire, lines: dict[Backend, Preflight], model: str, backend: Backend, sizes: list[Any]
) -> None:
    document = body(*(inline(media.picture(size), "image/png") for size in sizes), "hi")

    report, _, ranges = put_right(emulator, lines[backend], document, model, backend)
    bill = wire.billed(*document["contents"], name=model, vertex=backend is VERTEX)

    assert Tally.of(one for one in ranges if one.modality is IMAGE).likely == bill["IMAGE"]
    assert report.tokens[IMAGE].high >= bill["IMAGE"]


def test_one_picture_passes_on_one_backend_and_breaks_the_same_limit_on_the_other(
    wire: Wire, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shot = inline(media.picture((700, 1003)), "image/png")
    costs, admitted = {}, {}
    for backend in Backend:
        default = f"model: {OLD}, limits: {{tokens: {{image: 1000}}}}"
        with preflight(tmp_path_factory.mktemp(backend), default, backend.value) as line:
            report = line.weigh_request(rest_json.parse(body(shot, "hi")).request)
        costs[backend], admitted[backend] = report.tokens[IMAGE].likely, not report.refusal
        assert wire.billed(user(shot, "hi"), name=OLD, vertex=backend is VERTEX)["IMAGE"] == costs[backend]

    assert costs == {DEVELOPER: 258, VERTEX: 1806}
    assert admitted == {DEVELOPER: True, VERTEX: False}


# ---- TOK-013, TOK-028: figures that cannot be


@pytest.mark.parametrize(
    ("hops", "impossible"),
    [([22_000_000], True), ([1_048_577], True), ([1_048_576], False), ([900_000] * 3, False), ([1_200_000] * 2, True)],
)
def test_a_bill_beyond_what_the_model_holds_is_found(hops: list[int], impossible: bool) -> None:
    bill = billed([{"promptTokenCount": one} for one in hops], [], context_tokens=1_048_576)

    assert ("beyond_context" in [one.code for one in bill.findings]) is impossible
    assert bill.prompt == sum(hops)


def test_a_medium_s_base64_is_never_weighed_by_its_characters(lines: dict[Backend, Preflight]) -> None:
    noise = media.picture((1200, 1200), "BMP")
    document = body(inline(noise, "image/bmp"), inline(media.wav(20.0), "audio/wav"), "hi")

    report = lines[DEVELOPER].weigh_request(rest_json.parse(document).request, Asked(model=NEW))

    assert sum(len(part["inlineData"]["data"]) for part in document["contents"][0]["parts"][:2]) > 5_000_000
    assert report.tokens[TEXT].high < 20
    assert report.total.high < 2_000


@each_face
def test_the_service_s_own_word_on_a_prompt_that_is_too_long_is_kept_and_not_asked_for_again(
    face: Face, emulator: Emulator, wire: Wire, lines: dict[Backend, Preflight]
) -> None:
    pages = inline(media.pdf([(595, 842)] * 30), "application/pdf")
    document = body(pages, "hi")
    count = counted(emulator, document, OLD, DEVELOPER, Form.WHOLE)
    true = sum(wire.billed(*document["contents"], name=NEW).values())
    emulator.lay_over(SHORT_CONTEXT)
    emulator.requests.clear()

    async def flow(io: Io) -> None:
        asked = service(emulator, io)
        await asked.call("POST", asked.target.model_url(NEW, "generateContent"), document)

    with pytest.raises(ServiceRefused) as caught:
        face(flow, FakeClock())

    figures = caught.value.figures
    assert (figures["cause"], figures["counted"], figures["limit"]) == (Cause.PROMPT_TOO_LONG, true, 9_000)
    assert len(emulator.requests) == 1
    report = lines[DEVELOPER].weigh_request(rest_json.parse(document).request, Asked(model=NEW))
    assert report.total.low <= true <= report.total.high
    assert count.total < true


# ---- TOK-014, TOK-015, TOK-016: system instruction, tools and configuration


@each_face
@each_backend
@pytest.mark.parametrize("form", Form)
def test_all_that_is_billed_beside_the_contents_is_counted_in_the_form_the_backend_takes(
    face: Face, emulator: Emulator, backend: Backend, form: Form
) -> None:
    more = {"systemInstruction": SYSTEM, "tools": TOOLS, "generationConfig": {"temperature": 0.5}}
    shot = inline(media.picture((64, 48)), "image/png")

    totals = []
    for chosen in [(), ("systemInstruction",), ("tools",), ("generationConfig",), tuple(more)]:
        document = body(shot, "hi", **{name: more[name] for name in chosen})
        totals.append(counted(emulator, document, NEW, backend, form, face).total)

    alone, system, tools, config, everything = totals
    assert alone == config < min(system, tools)
    assert max(system, tools) < everything


@each_face
@each_backend
@pytest.mark.parametrize(
    "fault",
    ["empty-count", "return-400", "return-403", "return-404", "return-500", "return-501", "return-503",
     "return-corrupted-data", "return-broken-stream", "return-reset-connection", "stall-always", "absurd-retry-delay"],
)  # fmt: skip
def test_whatever_keeps_the_service_from_counting_the_estimate_stands_and_is_never_zero(
    face: Face, emulator: Emulator, lines: dict[Backend, Preflight], backend: Backend, fault: str
) -> None:
    document = body(inline(media.picture((64, 48)), "image/png"), "hello", tools=TOOLS)
    request = rest_json.parse(document).request
    emulator.faults.set(fault, on="count")

    async def flow(io: Io) -> Count | CountFailed:
        try:
            return await TokenCounter(service(emulator, io, backend)).count(request, NEW, Form.TEXT)
        except CountFailed as error:
            return error

    answer = face(flow, FakeClock())

    assert isinstance(answer, CountFailed)
    asked = Asked(model=NEW)
    report = lines[backend].weigh_request(request, asked)
    estimated = corrected(report.parts, None, None, lines[backend].scales(asked).rules)
    assert Tally.of(part.total for part in estimated) == report.total
    assert report.tokens[TEXT].likely > 0


# ---- TOK-046, TOK-047: a little more, and always the same much more


@given(told=st.integers(3, 5_000), off=st.integers(-2, 2))
def test_a_bill_of_text_a_token_or_two_off_its_count_is_no_finding(told: int, off: int) -> None:
    (estimated,) = estimate(TextSizes(content_chars=4 * told), Controls(), RULES).tokens
    count = Count(total=told, covers=Form.TEXT, model=NEW)
    usage = {"promptTokenCount": told + off, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": told + off}]}

    bill = billed([usage], [text_counted(count, estimated, RULES)])

    assert bill.findings == ()


@given(more=st.integers(0, 3_000), named=st.booleans())
def test_what_a_mode_adds_to_every_prompt_is_no_sound(more: int, named: bool) -> None:
    sound = estimate(song(30), Controls(), RULES).tokens
    heard, words = sound[0].likely, 1 + more * named
    details = [{"modality": "TEXT", "tokenCount": words}, {"modality": "AUDIO", "tokenCount": heard}]

    bill = billed([{"promptTokenCount": heard + 1 + more, "promptTokensDetails": details}], sound)

    assert bill.by_modality == {TEXT: words, AUDIO: heard}
    assert bill.unattributed == more * (not named)


def test_a_scripted_bill_of_that_kind_is_read_alike(emulator: Emulator, wire: Wire) -> None:
    hidden = {"promptTokenCount": 509, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 509}]}
    emulator.script.queue(Answer(text="hi", usage=hidden))

    usage = wire.generate("Hi", name=NEW).json()["usageMetadata"]

    assert billed([usage], estimate(TextSizes(content_chars=2), Controls(), RULES).tokens).by_modality == {TEXT: 509}
