"""Known traps of cost and budgets: bills that were added up wrongly, and budgets that did not hold."""

from __future__ import annotations

import json
import random
import threading
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import media
from emulated import Wire, inline, model, user
from fake_io import START, FakeClock, FakeSyncIo
from prepared import Face, settings
from weighlock.budgets.hold import MICRO_USD, PROMPT_TOKENS
from weighlock.budgets.ledger import Ledger
from weighlock.budgets.memory import MemoryStore
from weighlock.budgets.windows import Budget, Period, Window
from weighlock.cli.receipt_table import lines_of
from weighlock.cli.usage import grouped
from weighlock.errors import BudgetExceeded, InputError, WindowExhausted
from weighlock.gemini.usage import billed
from weighlock.holding import spent_of, usd_of
from weighlock.io import run
from weighlock.media.tokens import Confidence, TokenRange
from weighlock.observe.decision_log import Reading, read
from weighlock.planning.cost import Prices
from weighlock.pricing import prices_for
from weighlock.request import Backend, Modality

pytestmark = pytest.mark.usefixtures("dialled")

MODEL = "gemini-3.5-flash"
DAY = date(2026, 11, 30)


def face(tmp_path: Path, default: str, more: str = "") -> Face:
    return Face(settings(tmp_path, f"default: {{model: {MODEL}{default}}}\n{more}"), awaits=False)


def body(*contents: Any) -> bytes:
    return json.dumps({"contents": [user(one) if isinstance(one, str) else one for one in contents]}).encode()


def used(prompt: int, answer: int = 0, **beside: Any) -> dict[str, Any]:
    return {"usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": answer, **beside}}


def prices(name: str) -> Prices:
    found = prices_for(name, Backend.DEVELOPER, on=DAY)
    assert isinstance(found, Prices)
    return found


def sent(modality: Modality, count: int) -> TokenRange:
    bounds = {"low": count, "likely": count, "high": count}
    return TokenRange(**bounds, modality=modality, billed_as=modality, rule_id="drawn", confidence=Confidence.MEASURED)


# ---- BUD-002, BUD-004: budgets of people nobody has heard of


@pytest.mark.parametrize("tenant", ["somebody new", None])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_whoever_comes_first_is_held_to_the_budget_of_each(tmp_path: Path, tenant: str | None, limit: int) -> None:
    more = f"tenants: {{each: {{windows: {{day: {{requests: {limit}}}}}}}}}\n"
    with face(tmp_path, "", more) as known:
        admitted, gate = [], threading.Barrier(8)

        def ask() -> None:
            gate.wait()
            with suppress(WindowExhausted):
                admitted.append(known.preflight.prepare(body("hi"), tenant=tenant))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(admitted) == limit


# ---- BUD-003: the edge of a window


@pytest.mark.parametrize("period", [Period.MINUTE, Period.HOUR, Period.DAY, Period.MONTH])
def test_what_is_reserved_before_midnight_and_billed_after_counts_once_where_it_was_reserved(period: Period) -> None:
    clock = FakeClock()
    clock.passed_s = (datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC) - START).total_seconds()
    store = MemoryStore(clock.now)
    ledger = Ledger(FakeSyncIo(clock), store)
    budgets = [Budget(scope="endpoint:e", window=Window(period=period, prompt_tokens=100), of="e")]
    held = run(ledger.reserve("a", {PROMPT_TOKENS: 100}, budgets, lasts_s=60))
    clock.passed_s += 2
    run(ledger.commit(held, {PROMPT_TOKENS: 90}))
    (spent,) = [spent for spent, _ in store.counters().values() if spent]
    assert spent == {PROMPT_TOKENS: 90}
    (standing,) = run(ledger.standings(budgets))
    assert (standing.spent, standing.left) == (0, 100)  # the new window is whole: nothing stale refuses
    run(ledger.reserve("b", {PROMPT_TOKENS: 100}, budgets, lasts_s=60))


# ---- BUD-005, BUD-006: a loop that nobody stops


def test_a_loop_stops_before_the_call_that_crosses_the_budget(tmp_path: Path) -> None:
    document = "word " * 50_000
    with face(tmp_path, ", session: {prompt_tokens: 3000000}, limits: {}") as known:
        need = known.prepare(body(document)).receipt.held[PROMPT_TOKENS]
        spent = 0

        def loop() -> None:
            nonlocal spent
            for _ in range(400):
                ready = known.prepare(body(document), session="research")
                known.settle(ready, used(65_000))
                spent += 65_000

        with pytest.raises(WindowExhausted) as caught:
            loop()
    assert caught.value.figures["retry_after_s"] is None  # waiting does not help a run that has spent what it had
    assert spent + need > 3_000_000 >= spent


def test_what_is_under_way_counts_before_anybody_is_billed(tmp_path: Path) -> None:
    with face(tmp_path, ", windows: {day: {prompt_tokens: 10}}") as known:
        held: list[int] = []
        with suppress(WindowExhausted):
            while len(held) < 20:
                held.append(known.prepare(body("hi there")).receipt.held[PROMPT_TOKENS])
    assert len(held) < 20
    assert sum(held) <= 10


# ---- BUD-007: what the service is certain to refuse


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_prompt_past_the_context_never_leaves(wire: Wire, tmp_path: Path, mode: str) -> None:
    with face(tmp_path, f", mode: {mode}") as known:
        if mode == "enforce":
            with pytest.raises((InputError, BudgetExceeded)) as caught:
                known.prepare(body("word " * 1_500_000))
            assert "1,048,576" in caught.value.message
            assert known.held() == {}
        else:
            assert known.prepare(body("word " * 1_500_000)).receipt.outcome == "would_refuse"
    assert not list(wire.emulator.requests)


# ---- BUD-008: attempts and requests


def test_each_attempt_that_was_billed_is_paid_and_one_that_was_not_is_not(tmp_path: Path) -> None:
    class Unavailable(Exception):
        code = 503

    log = tmp_path / "log.jsonl"
    with face(tmp_path, ", windows: {day: {prompt_tokens: 1000}}", f"observe: {{decision_log: {log}}}\n") as known:
        known.settle(known.prepare(body("a")), error=Unavailable())
        known.settle(known.prepare(body("a")), used(40, 5))  # its JSON is broken, and it is asked again
        known.settle(known.prepare(body("a")), used(40, 6))
        ((spent, _),) = known.counters().values()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert spent[PROMPT_TOKENS] == 80
    assert spent["requests"] == 2
    assert [line["billed"] is not None for line in lines] == [False, True, True]
    assert lines[0]["codes"] == ["refused_by_service"]


# ---- TOK-031, TOK-032: modalities nobody thought of


@pytest.mark.parametrize(
    ("summed", "first", "is_long"),
    [(300_000, 100_000, False), (399_999, 199_999, False), (401_000, 199_999, True), (403_000, 201_000, True)],
)
def test_continuations_pay_by_the_most_one_of_their_prompts_can_have_held_not_by_the_sum(
    summed: int, first: int, is_long: bool
) -> None:
    rates = prices("gemini-3.1-pro-preview")
    said = {"promptTokenCount": summed, "initialPromptTokenCount": first, "candidatesTokenCount": 1000}
    assert rates.long is not None
    tier = rates.long if is_long else rates.base
    assert usd_of(billed([said], []), rates) == (tier.text * summed + (tier.output or 0) * 1000) / 1_000_000


def test_continuations_known_one_by_one_pay_by_the_longest() -> None:
    rates = prices("gemini-3.1-pro-preview")
    hops = [{"promptTokenCount": 150_000}, {"promptTokenCount": 160_000}]
    assert usd_of(billed(hops, []), rates) == rates.base.text * 310_000 / 1_000_000


def test_no_modality_is_dropped_and_one_nobody_knows_pays_what_text_does() -> None:
    details = [{"modality": "TEXT", "tokenCount": 9}, {"modality": "DOCUMENT", "tokenCount": 774}]
    usage = {"promptTokenCount": 783, "promptTokensDetails": details}
    found = billed([usage], [sent(Modality.DOCUMENT, 774)])
    assert sum(found.by_modality.values()) == found.prompt == 783
    odd = [*details, {"modality": "HOLOGRAM", "tokenCount": 50}]
    strange = billed([{"promptTokenCount": 833, "promptTokensDetails": odd}], [])
    assert (strange.prompt, strange.unattributed) == (833, 50)
    assert "unattributed" in [one.code for one in strange.findings]
    rates = prices(MODEL)
    plain, dearer = usd_of(found, rates), usd_of(strange, rates)
    assert plain is not None
    assert dearer is not None
    assert dearer - plain == rates.base.text * 50 / 1_000_000


@pytest.mark.parametrize("kind", [kind for kind in Modality if kind is not Modality.TEXT])
def test_cached_tokens_of_one_modality_leave_no_other_below_zero(kind: Modality) -> None:
    details = [{"modality": "TEXT", "tokenCount": 20}, {"modality": kind.value, "tokenCount": 500}]
    cached = [{"modality": kind.value, "tokenCount": 400}]
    usage = {"promptTokenCount": 520, "promptTokensDetails": details,
             "cachedContentTokenCount": 400, "cacheTokensDetails": cached}  # fmt: skip
    found = billed([usage], [sent(kind, 500)])
    assert found.uncached_by_modality == {Modality.TEXT: 20, kind: 100}
    assert spent_of(found, prices(MODEL))[f"tokens.{kind.value}"] == 500


# ---- TOK-035, TOK-036, TOK-037: what is part of what


def test_cached_tokens_are_part_of_the_prompt_and_thoughts_part_of_the_answer() -> None:
    usage = {"promptTokenCount": 11_125, "cachedContentTokenCount": 7_441, "candidatesTokenCount": 20,
             "thoughtsTokenCount": 409, "totalTokenCount": 11_554}  # fmt: skip
    found = billed([usage], [sent(Modality.TEXT, 11_125)])
    assert (found.prompt, found.cached, found.output) == (11_125, 7_441, 429)
    rates = prices(MODEL)
    assert rates.base.cached is not None
    assert rates.base.output is not None
    expected = rates.base.text * (11_125 - 7_441) + rates.base.cached * 7_441 + rates.base.output * 429
    assert usd_of(found, rates) == expected / 1_000_000
    assert spent_of(found, rates)[PROMPT_TOKENS] == 11_125


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"promptTokenCount": 41, "candidatesTokenCount": 5, "thoughtsTokenCount": 343, "totalTokenCount": 389}, 348),
        ({"promptTokenCount": 1, "candidatesTokenCount": None, "thoughtsTokenCount": 57}, 57),
        ({"promptTokenCount": 1, "thoughtsTokenCount": 98, "candidatesTokenCount": 1}, 99),
        ({"promptTokenCount": 1}, 0),
    ],
)
def test_an_answer_is_what_was_said_and_what_was_thought(usage: dict[str, Any], output: int, tmp_path: Path) -> None:
    assert billed([usage], []).output == output
    with face(tmp_path, ", windows: {day: {cost_usd: 1}}") as known:
        receipt = known.settle(known.prepare(body("a")), {"usageMetadata": usage})
        assert receipt.billed is not None
        rate = prices(MODEL).base.output
        assert rate is not None
        assert receipt.billed.spent[MICRO_USD] >= int(rate * output)


# ---- TOK-040, TOK-041, TOK-042: what history costs


def test_every_step_of_a_loop_pays_for_all_that_went_before(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with face(tmp_path, ", windows: {day: {prompt_tokens: 100000}}", f"observe: {{decision_log: {log}}}\n") as known:
        for prompt in (1000, 1800, 2600):
            known.settle(known.prepare(body("step"), session="run"), used(prompt))
        ((spent, _),) = known.counters().values()
    (session,) = grouped(read(log, None, Reading()), "session").values()

    assert spent[PROMPT_TOKENS] == 5400
    assert (session.prompt, str(session.amplification)) == (5400, "2.08")


@pytest.mark.parametrize("turns", [1, 5, 20])
def test_media_sent_again_are_counted_and_told_with_what_they_cost(tmp_path: Path, turns: int) -> None:
    shot = inline(media.picture((1024, 1024)), "image/png")
    contents: list[Any] = []
    for _ in range(turns):
        contents += [user(shot, "and now?"), model("a button")]
    with face(tmp_path, ", limits: {}") as known:
        receipt = known.prepare(body(*contents[:-1])).receipt
    told = receipt.as_dict()["resent"]
    rate = Decimal("0.0000015")  # of a token of gemini-3.5-flash
    assert (told["media"], told["tokens"]["likely"]) == (turns - 1, (turns - 1) * 1089)
    assert [Decimal(one["usd"]) for one in told["parts"]] == [1089 * rate] * (turns - 1)
    words = "\n".join(map(str, lines_of(receipt)))
    assert ("contents[0].parts[0]: 1,089" in words) == (turns > 1)


def test_bytes_are_held_to_the_whole_history_though_tokens_are_few(wire: Wire, tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(700_000)
    picture = media.picture((64, 48)) + noise  # a picture with so much behind its end
    contents: list[Any] = []
    for at in range(30):
        contents += [user(inline(picture + bytes([at]), "image/png")), model("seen")]
    contents.append(user("and so?"))
    with (
        face(tmp_path, ", limits: {bytes: 1000000}, on_exceed: reject") as known,
        pytest.raises(BudgetExceeded) as caught,
    ):
        known.prepare(body(*contents))
    assert "bytes" in caught.value.message
    with face(tmp_path, ", limits: {}", "uploads: {inline_below: {developer: 10MB}}\n") as known:
        ready = known.prepare(body(*contents))
        assert ready.receipt.uploads
        assert len(ready.body) <= 20_000_000


# ---- TOK-043, TOK-044, TOK-045: the tier above 200,000 tokens


@pytest.mark.parametrize("name", ["gemini-2.5-pro", "gemini-3.1-pro-preview"])
def test_past_200000_tokens_the_whole_prompt_pays_more_and_at_it_none(name: str) -> None:
    known = prices(name)
    assert known.long is not None
    for tokens, rates in ((200_000, known.base), (200_001, known.long), (300_000, known.long)):
        assert known.cost({Modality.TEXT: tokens}, output_tokens=10) == (
            (rates.text * tokens + (rates.output or Decimal(0)) * 10) / 1_000_000
        )
