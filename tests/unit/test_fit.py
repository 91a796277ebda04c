"""A whole request made to fit: what is set on the wire, and what a conversation keeps from turn to turn."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import media
from unit.planning.drawn import examined, recording, screenshot
from weighlock.converters import rest_json
from weighlock.errors import BudgetExceeded, InputError
from weighlock.fitted import Fitted
from weighlock.fitting import referred
from weighlock.planning.cost import Contract, Override, Prices, Rates
from weighlock.planning.moves import Why
from weighlock.planning.placement import InlineBelow
from weighlock.planning.plan import filled_after, plan
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed
from weighlock.preflight import Preflight
from weighlock.pricing import prices_for
from weighlock.request import Backend, MediaPart, Modality, Request, TextPart, Turn, Uri
from weighlock.scales import Asked
from weighlock.settings import Uploads, load

SHOT = base64.b64encode(media.picture((1280, 720))).decode()
TURNS = 20
DAY = date(2026, 11, 30)


def preflight(tmp_path: Path, default: str) -> Preflight:
    path = tmp_path / "weighlock.yaml"
    account = "accounts: {developer: {backend: developer, api_key_env: X}}"
    path.write_text(
        f"version: 1\n{account}\ndefault: {{account: developer, model: gemini-3.8-flash, {default}}}\n"
        "endpoints: {triage: {owner: team-support}}\n"
    )
    return Preflight(load(path, environ={}))


def screenshots(count: int, *, level: str | None = None) -> dict[str, Any]:
    """An agent's run: a task, then a call and a screenshot a turn."""
    image: dict[str, Any] = {"inlineData": {"mimeType": "image/png", "data": SHOT}}
    if level is not None:
        image["mediaResolution"] = {"level": level}
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "find the button that does nothing"}]}]
    for number in range(count):
        call = {"functionCall": {"name": "look", "args": {"page": number}}}
        contents.append({"role": "model", "parts": [call]})
        answer = {"name": "look", "response": {"ok": True}, "parts": [image]}
        contents.append({"role": "user", "parts": [{"functionResponse": answer}]})
    return {"contents": contents}


def fitted(line: Preflight, body: dict[str, Any], *, model: str | None = None) -> tuple[Fitted, list[Any]]:
    found, document = sent(line, body, model)
    return found, document["contents"]


def sent(line: Preflight, body: dict[str, Any], model: str | None) -> tuple[Fitted, dict[str, Any]]:
    parsed = rest_json.parse(json.dumps(body).encode())
    found = line.fit(parsed.request, Asked(endpoint="triage", model=model, on=DAY))
    return found, rest_json.document(found.request, parsed)


def billed(line: Preflight, model: str, bodies: Sequence[dict[str, Any]]) -> Decimal:
    """USD of a conversation, text and media: what stands before the first change since the last turn is cached."""
    prices = prices_for(model, Backend.DEVELOPER, on=DAY)
    assert isinstance(prices, Prices)
    paid, last = Decimal(0), dict[str, Any]()
    for body in bodies:
        whole, before = body["contents"], last.get("contents", [])
        same = next((at for at, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), len(before))
        if body.get("generationConfig") != last.get("generationConfig"):  # every picture is read otherwise
            same = min(same, 2)
        held = weighed(line, {**body, "contents": whole[:same]}, model) if same else {}
        paid += prices.input_cost(weighed(line, body, model), cached_tokens=held)
        last = body
    return paid


@cache
def unshaped(model: str) -> Decimal:
    with Preflight(load(None, environ={}, cwd=Path(__file__).parent)) as line:
        return billed(line, model, [screenshots(count) for count in range(1, TURNS + 1)])


def weighed(line: Preflight, body: dict[str, Any], model: str) -> dict[Modality, int]:
    parsed = rest_json.parse(json.dumps(body).encode())
    report = line.weigh_request(parsed.request, Asked(model=model, on=DAY))
    return {kind: tally.likely for kind, tally in report.tokens.items()}


HISTORY = "media: {levers: [history]},"
CONVERSATIONS = [
    ("gemini-3.8-flash", limit, keep, levers, "older: note")
    for limit in (5_000, 8_000, 12_000)
    for keep in (3, 8)
    for levers in ("", HISTORY)
    if not levers or keep * 1_100 < limit / 2  # else what has to stay fills more than a break leaves
]
CONVERSATIONS += [
    ("gemini-2.5-flash", 3_500, 3, "", "older: note"),
    ("gemini-2.5-flash", 4_500, 3, HISTORY, "older: note"),
    # Where cached input costs a twentieth a break has to go deeper to pay for itself.
    *(("gemini-4-neon", limit, 3, "", "older: note") for limit in (5_000, 8_000, 12_000)),
    *(("gemini-4-neon", 12_000, keep, "", kept) for keep, kept in ((8, "older: note"), (3, "older: low"))),
    ("gemini-4-neon", 12_000, 3, HISTORY, "older: note"),
    *(("gemini-3.8-flash", limit, 3, HISTORY, "older: low") for limit in (12_000, 16_000)),
    ("gemini-3.8-flash", 12_000, 3, HISTORY, "per_tool: true"),
    ("gemini-3.8-flash", 12_000, 3, "", "older: low, per_tool: true"),
]


@pytest.mark.parametrize(("model", "limit", "keep", "levers", "kept"), CONVERSATIONS)
def test_a_conversation_over_its_limit_changes_rarely_and_costs_no_more(
    tmp_path: Path, model: str, limit: int, keep: int, levers: str, kept: str
) -> None:
    line = preflight(
        tmp_path, f"{levers} limits: {{prompt_tokens: {limit}}}, history: {{keep_media: {keep}, batch: 4, {kept}}}"
    )
    naive = [screenshots(count) for count in range(1, TURNS + 1)]

    made = [sent(line, body, model) for body in naive]

    assert all(one.plan.fits for one, _ in made)
    assert made[-1][0].before.total.high > limit
    for (_, before), (now, after) in pairwise(made):
        told = before["contents"]
        assert after["contents"][: len(told)] == told or now.plan.breaks_prefix
    breaks = sum(one.plan.breaks_prefix for one, _ in made)
    assert 1 <= breaks <= TURNS / 2
    paid = billed(line, model, [body for _, body in made])
    assert paid <= unshaped(model)
    promised = [one.cached.cost.likely for one, _ in made if one.cached and one.cached.cost]
    assert len(promised) == TURNS
    assert float(sum(promised)) == pytest.approx(float(paid), rel=0.1)  # a note is planned as one of 200 characters


@pytest.mark.parametrize(
    ("model", "limit", "keep", "kept"),
    [
        ("gemini-4-neon", 12_000, 8, "older: note"),
        ("gemini-4-neon", 12_000, 3, "older: low"),
        ("gemini-3.8-flash", 12_000, 8, "older: note"),
        ("gemini-2.0-flash", 5_000, 8, "older: note"),
    ],
)
def test_it_costs_more_only_where_what_has_to_stay_fills_more_than_a_break_leaves(
    tmp_path: Path, model: str, limit: int, keep: int, kept: str
) -> None:
    line = preflight(
        tmp_path, f"{HISTORY} limits: {{prompt_tokens: {limit}}}, history: {{keep_media: {keep}, batch: 4, {kept}}}"
    )
    made = [sent(line, screenshots(count), model) for count in range(1, TURNS + 1)]
    prices = prices_for(model, Backend.DEVELOPER, on=DAY)
    assert isinstance(prices, Prices)
    mark = filled_after(prices.base.cached_share)

    def is_held(parts: Sequence[Weighed]) -> bool:
        *media, text = (part.total.high for part in parts)
        return sum(media) <= (limit - text) * mark

    assert billed(line, model, [body for _, body in made]) > unshaped(model)
    assert not all(is_held(one.plan.parts) for one, _ in made if one.plan.breaks_prefix)


def test_a_receipt_says_what_a_request_costs_if_the_cache_holds_what_was_sent(tmp_path: Path) -> None:
    found, _ = fitted(preflight(tmp_path, "limits: {prompt_tokens: 50000}"), screenshots(3))

    told = found.as_dict()

    kept = told["cache"]["kept_tokens"]["likely"]
    assert 2 * 1_100 < kept < 2 * 1_100 + found.after.tokens[Modality.TEXT].likely
    assert told["cache"]["broken_at"] is None
    assert told["cache"]["lost_tokens"]["high"] == 0
    saved = Decimal(told["after"]["cost_usd"]["likely"]) - Decimal(told["cost_cached"]["likely"])
    assert saved == kept * Decimal("0.675") / 1_000_000


def test_where_the_prefix_breaks_the_receipt_says_from_where_on_and_what_that_costs(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 6000}, history: {keep_media: 2, batch: 2}")
    found = next(one for n in range(4, 12) if (one := fitted(line, screenshots(n))[0]).plan.breaks_prefix)

    told = found.as_dict()

    first = min(at for step in found.plan.steps if step.breaks_prefix for at in step.parts)
    assert told["cache"]["broken_at"] == {"part": first, "source": found.before.parts[first].examined.label}
    lost = told["cache"]["lost_tokens"]["likely"]
    sent_media = found.after.parts[first:-2]  # the newest is new, and behind it stands the text
    assert lost > sum(part.total.likely for part in sent_media) > 0
    assert Decimal(told["cache"]["lost_usd"]["likely"]) == lost * Decimal("0.675") / 1_000_000


def test_the_text_of_earlier_turns_is_cached_too_and_a_first_request_has_no_cache(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 6000}")
    first = {"contents": [{"role": "user", "parts": [{"text": "what is this about? " * 50}]}]}
    turns = [{"role": "model", "parts": [{"text": "a lock"}]}, {"role": "user", "parts": [{"text": "which?"}]}]

    asked, _ = fitted(line, first)
    again, _ = fitted(line, {"contents": [*first["contents"], *turns]})

    assert asked.cached is None
    assert asked.as_dict()["cache"] is None
    assert again.cached is not None
    assert again.cached.kept == {Modality.TEXT: asked.after.total}


def test_a_model_without_a_cached_price_promises_none(tmp_path: Path) -> None:
    line = preflight(tmp_path, "mode: enforce")
    line = Preflight(
        replace(
            line.settings, pricing=Contract(overrides={"gemini-3.8-flash": Override(base=Rates.uniform(Decimal(1)))})
        )
    )

    found, _ = fitted(line, screenshots(3))

    told = found.as_dict()
    assert told["cost_cached"] is None
    assert told["cache"]["lost_usd"] is None
    assert told["cache"]["kept_tokens"]["likely"] > 2 * 1_100


def test_calls_ids_and_order_stay_whatever_becomes_a_note(tmp_path: Path) -> None:
    line = preflight(tmp_path, "media: {levers: [history]}, limits: {prompt_tokens: 5000}, history: {keep_media: 2}")
    body = screenshots(8)

    found, contents = fitted(line, body)

    assert found.plan.removed
    for before, after in zip(body["contents"], contents, strict=True):
        assert after["role"] == before["role"]
        assert len(after["parts"]) == len(before["parts"])
        if "functionCall" in before["parts"][0]:
            assert after == before
    first = contents[2]["parts"][0]["functionResponse"]
    assert first["response"]["ok"] is True
    assert "from tool look in turn 3: no longer sent" in first["response"]["media_note"]
    assert "image/png" in first["response"]["media_note"]


def test_older_media_may_stay_at_their_lowest_resolution_instead(tmp_path: Path) -> None:
    line = preflight(
        tmp_path,
        "media: {levers: [history], image: {floor: medium}}, limits: {prompt_tokens: 8000}, "
        "history: {keep_media: 2, older: low}",
    )

    found, contents = fitted(line, screenshots(9))

    levels = [turn["parts"][0]["functionResponse"]["parts"][0].get("mediaResolution") for turn in contents[2::2]]
    assert found.plan.fits
    assert not found.plan.removed
    assert levels[0] == {"level": "MEDIA_RESOLUTION_MEDIUM"}
    assert levels[-2:] == [None, None]


def test_the_newest_of_each_tool_stay(tmp_path: Path) -> None:
    line = preflight(
        tmp_path,
        "media: {levers: [history]}, limits: {prompt_tokens: 6000}, history: {keep_media: 1, per_tool: true, batch: 1}",
    )
    body = screenshots(9)
    body["contents"][1]["parts"][0]["functionCall"]["name"] = "draw"
    body["contents"][2]["parts"][0]["functionResponse"]["name"] = "draw"

    found, _ = fitted(line, body)

    assert found.plan.removed
    assert not found.plan.removed & {0, 8}


def test_what_has_no_resolution_of_its_own_stands_in_the_way_of_lowering_it(tmp_path: Path) -> None:
    line = preflight(
        tmp_path,
        "media: {levers: [history]}, limits: {prompt_tokens: 600}, history: {keep_media: 1, older: low}",
    )
    parsed = rest_json.parse(json.dumps(screenshots(4)).encode())

    found = line.fit(parsed.request, Asked(endpoint="triage", model="gemini-2.5-flash"))

    assert not found.fits
    assert "gemini-2.5-flash knows no resolution of a part (history.older)" in found.exceeded().message


def test_a_request_that_fits_comes_back_as_it_was(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 50000}")
    parsed = rest_json.parse(json.dumps(screenshots(3)).encode())

    found = line.fit(parsed.request, Asked(endpoint="triage"))

    assert found.request is parsed.request
    found.demand_fit()


def test_what_was_fitted_once_is_left_alone(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 6000}, history: {keep_media: 2}")
    _, once = fitted(line, screenshots(9))

    again, twice = fitted(line, {"contents": once})

    assert twice == once
    assert not again.plan.steps


def test_what_an_endpoint_sets_always_is_written_where_the_caller_is_silent(tmp_path: Path) -> None:
    line = preflight(tmp_path, "media: {image: {apply: always, resolution: medium}}")

    silent, contents = fitted(line, screenshots(1))
    _, asked = fitted(line, screenshots(1, level="MEDIA_RESOLUTION_HIGH"))

    image = contents[2]["parts"][0]["functionResponse"]["parts"][0]
    assert image["mediaResolution"] == {"level": "MEDIA_RESOLUTION_MEDIUM"}
    assert [step.why for step in silent.plan.steps] == [Why.ALWAYS]
    assert silent.before.total.likely > silent.after.total.likely
    image = asked[2]["parts"][0]["functionResponse"]["parts"][0]
    assert image["mediaResolution"] == {"level": "MEDIA_RESOLUTION_HIGH"}


def test_a_pinned_part_stays_and_stands_in_the_way(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 600}")
    part = MediaPart(source=media.picture((1920, 1080)), label="error.png", declared_mime="image/png", pinned=True)
    request = Request(turns=(Turn(role="user", parts=(TextPart(text="what is wrong?"), part)),))

    found = line.fit(request, Asked(endpoint="triage"))

    assert found.request is request
    with pytest.raises(BudgetExceeded) as caught:
        found.demand_fit()
    assert "pinned" in caught.value.message
    assert "team-support" in caught.value.message
    assert caught.value.figures["lowest_reachable_tokens"] == found.after.total.high


def test_what_moved_out_of_a_tool_result_keeps_its_name_when_something_else_is_made(tmp_path: Path) -> None:
    line = preflight(tmp_path, "tool_media: relocate")
    body = screenshots(1)
    sound, picture = (base64.b64encode(data).decode() for data in (media.wav(2), media.picture((64, 48), "GIF")))
    body["contents"][2]["parts"][0]["functionResponse"]["parts"] = [
        {"inlineData": {"mimeType": "audio/wav", "data": sound}},
        {"inlineData": {"mimeType": "image/gif", "data": picture}},
    ]
    parsed = rest_json.parse(json.dumps(body).encode())
    asked = Asked(endpoint="triage")

    with line:
        done = line.carry_out(line.fit(parsed.request, asked), asked)

    assert done.made[1].mime == "image/png"
    before, after = ([(p.examined.label, p.examined.modality) for p in r.parts] for r in (done.before, done.after))
    assert before == after


def test_a_part_that_could_not_be_weighed_does_not_fit(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 600}")
    part = MediaPart(source=tmp_path / "none.png", label="none.png")

    found = line.fit(Request(turns=(Turn(role="user", parts=(part,)),)), Asked(endpoint="triage"))

    assert not found.fits
    with pytest.raises(InputError, match="no such file"):
        found.demand_fit()


def test_the_lowest_reachable_total_names_the_floor_in_the_way(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 400}, media: {image: {floor: medium}}")

    found, _ = fitted(line, screenshots(1))

    with pytest.raises(BudgetExceeded) as caught:
        found.demand_fit()
    assert f"Lowest reachable total {found.after.total.high:,} tokens" in caught.value.message
    assert caught.value.figures["in_the_way"] == ["media.image.floor"]
    assert "Raise limits.prompt_tokens of triage" in caught.value.message


def test_a_level_of_the_whole_request_is_written_once(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 250}")
    part = MediaPart(source=media.picture((1920, 1080)), label="error.png", declared_mime="image/png")
    request = Request(turns=(Turn(role="user", parts=(part,)),))

    found = line.fit(request, Asked(endpoint="triage", model="gemini-2.5-flash"))

    assert found.plan.fits
    assert found.request.carried["generationConfig"] == {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert found.request.turns[0].parts[0] is part


def test_a_receipt_is_json(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {prompt_tokens: 6000}, history: {keep_media: 2}")
    found, _ = fitted(line, screenshots(9))

    told = json.loads(json.dumps(found.as_dict()))

    assert told["fits"] is True
    assert told["breaks_prefix"] is True
    assert sum(step["saved"]["high"] for step in told["steps"]) == told["saved"]["tokens_high"]


@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-2.5-flash"])
def test_the_shipped_endpoint_keeps_the_screenshot_and_loses_nothing_as_its_budget_grows(
    model: str, tmp_path: Path
) -> None:
    line = Preflight(load(None, environ={}, cwd=tmp_path))

    def planned(budget: int) -> Plan:
        scales = line.scales(Asked(endpoint="bug_triage", model=model, max_tokens=budget))
        parts = scales.parts([examined(screenshot()), examined(recording(240))], standing=False)
        wishes = [Wish(target=scales.target(part.examined)) for part in parts]
        return plan(parts, scales.rules, scales.shaping, scales.judge, wishes)

    plans = [planned(budget) for budget in range(500, 24_000, 470)]

    assert {one.fits for one in plans} == {False, True}
    for tighter, wider in pairwise(plans):
        assert all(a.total.high <= b.total.high for a, b in zip(tighter.parts, wider.parts, strict=True))
    assert all(one.parts[0].controls.part_resolution is None for one in plans)


def film_body(turns: int, size: int) -> dict[str, Any]:
    """A user's pictures of so many bytes, one a turn."""
    picture = base64.b64encode(media.picture((64, 64)) + bytes(size)).decode()
    contents: list[dict[str, Any]] = []
    for number in range(turns):
        if number:
            contents.append({"role": "model", "parts": [{"text": "go on"}]})
        contents.append({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": picture}}]})
    return {"contents": contents}


def test_what_went_inline_in_an_earlier_turn_stays_and_only_newer_media_are_uploaded(tmp_path: Path) -> None:
    with preflight(tmp_path, "mode: enforce") as other:
        below = Uploads(inline_below=InlineBelow(developer=300_000))
    with Preflight(replace(other.settings, uploads=below)) as line:
        placed = [list(fitted(line, film_body(turns, 100_000))[0].to_upload) for turns in (1, 2, 3, 4)]

    assert placed == [[], [], [2], [2, 3]]


def test_a_request_names_what_was_uploaded_and_needs_no_upload_any_more(tmp_path: Path) -> None:
    with preflight(tmp_path, "mode: enforce") as line:
        body = film_body(1, 20_000_000)
        found, _ = fitted(line, body)

        done = referred(found, {0: "https://generativelanguage.googleapis.com/v1beta/files/abc"})

        assert found.is_sendable
        assert found.to_upload[0].reason == "26.7 MB in base64, over inline_below 15MB"
        assert not done.to_upload
        (part,) = done.request.turns[0].parts
        assert isinstance(part, MediaPart)
        assert part.source == Uri("https://generativelanguage.googleapis.com/v1beta/files/abc")
        assert referred(found, {}) is found
        assert fitted(line, body)[0].as_dict() == found.as_dict()
