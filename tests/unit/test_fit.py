"""A whole request made to fit: what is set on the wire, and what a conversation keeps from turn to turn."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import media
from unit.planning.drawn import examined, recording, screenshot
from weighlock.converters import rest_json
from weighlock.errors import BudgetExceeded
from weighlock.fitted import Fitted
from weighlock.fitting import referred
from weighlock.planning.moves import Why
from weighlock.planning.placement import InlineBelow
from weighlock.planning.plan import plan
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed
from weighlock.preflight import Preflight
from weighlock.request import MediaPart, Request, TextPart, Turn, Uri
from weighlock.scales import Asked
from weighlock.settings import Uploads, load

SHOT = base64.b64encode(media.picture((1280, 720))).decode()
TURNS = 20
CACHED = 0.1
"""What a token read from the cache costs, against one that is not."""


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


def fitted(line: Preflight, body: dict[str, Any]) -> tuple[Fitted, list[Any]]:
    parsed = rest_json.parse(json.dumps(body).encode())
    found = line.fit(parsed.request, Asked(endpoint="triage"))
    return found, rest_json.document(found.request, parsed)["contents"]


def billed(turns: Sequence[tuple[list[Any], Sequence[Weighed]]]) -> float:
    """What a conversation costs in tokens: what stands before the first change since the last turn comes from cache."""
    paid, last = 0.0, list[Any]()
    for contents, parts in turns:
        same = next((at for at, (a, b) in enumerate(zip(last, contents, strict=False)) if a != b), len(last))
        cached = sum(json.dumps(contents[:same]).count(key) for key in ("inlineData", "media_note"))
        for at, part in enumerate(parts[:-1]):
            paid += part.total.likely * (CACHED if at < cached else 1)
        last = contents
    return paid


@pytest.mark.parametrize(
    ("limit", "keep", "levers"),
    [
        (limit, keep, levers)
        for limit in (5_000, 8_000, 12_000)
        for keep in (3, 8)
        for levers in ("", "media: {levers: [history]},")
        # Where what has to stay fills most of the limit there is no room for a lower mark, and it breaks ever so often.
        if not levers or keep * 1_100 < limit / 2
    ],
)
def test_a_conversation_over_its_limit_changes_rarely_and_costs_no_more(
    tmp_path: Path, limit: int, keep: int, levers: str
) -> None:
    line = preflight(
        tmp_path, f"{levers} limits: {{prompt_tokens: {limit}}}, history: {{keep_media: {keep}, batch: 4}}"
    )
    naive = [screenshots(count)["contents"] for count in range(1, TURNS + 1)]

    made = [fitted(line, {"contents": contents}) for contents in naive]

    assert all(one.plan.fits for one, _ in made)
    assert made[-1][0].before.total.high > limit
    for (_, before), (now, after) in pairwise(made):
        assert after[: len(before)] == before or now.plan.breaks_prefix
    breaks = sum(one.plan.breaks_prefix for one, _ in made)
    assert 1 <= breaks <= TURNS / 2
    unshaped = billed([(contents, one.before.parts) for contents, (one, _) in zip(naive, made, strict=True)])
    assert billed([(contents, one.after.parts) for one, contents in made]) <= unshaped


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
