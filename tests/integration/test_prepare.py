"""The line in front of a request and after it, against the emulator: one table through both faces."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import films
import media
from emulated import Wire, called, inline, result, user
from prepared import Face, settings
from weighlock import context
from weighlock.budgets.hold import MICRO_USD, PROMPT_TOKENS
from weighlock.emulator import Emulator
from weighlock.errors import BudgetExceeded, InputError, WindowExhausted
from weighlock.prepared import Outcome
from weighlock.request import Modality
from weighlock.scales import Asked

pytestmark = pytest.mark.usefixtures("dialled")

MODEL = "gemini-3.5-flash"


@pytest.fixture(params=["blocking", "awaiting"])
def awaits(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "awaiting")


def body(*contents: Any, **fields: Any) -> bytes:
    return json.dumps({"contents": [user(one) if isinstance(one, str) else one for one in contents], **fields}).encode()


def ask(wire: Wire, sent: bytes, name: str = MODEL) -> dict[str, Any]:
    answer = wire.http.post(f"/v1beta/models/{name}:generateContent", content=sent)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


DAY = "default: {model: gemini-3.5-flash, windows: {day: {prompt_tokens: 10000, cost_usd: 1}}}\n"


def test_a_text_goes_as_it_came_and_pays_what_it_is_billed(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    sent = body("What is a weighlock?")
    with Face(settings(tmp_path, DAY), awaits=awaits) as face:
        ready = face.prepare(sent)
        assert ready.body == sent
        assert ready.receipt.outcome is Outcome.ADMITTED
        (held,) = face.held().values()
        assert held[PROMPT_TOKENS] == ready.receipt.fitted.after.total.high
        answer = ask(wire, ready.body)
        receipt = face.settle(ready, answer)
        assert receipt.billed is not None
        assert receipt.billed.usage.prompt == answer["usageMetadata"]["promptTokenCount"]
        assert face.held() == {}
        ((spent, _),) = face.counters().values()
        assert spent[PROMPT_TOKENS] == receipt.billed.usage.prompt
        assert spent["requests"] == 1
        assert spent[MICRO_USD] > 0
        again = face.settle(ready, answer)
        assert again.billed == receipt.billed
        assert face.counters() == {next(iter(face.counters())): (spent, {})}


def test_what_windows_have_no_room_for_is_refused_with_a_time(emulator: Emulator, awaits: bool, tmp_path: Path) -> None:
    with Face(
        settings(tmp_path, "default: {model: gemini-3.5-flash, windows: {day: {requests: 2}}}\n"), awaits=awaits
    ) as face:
        kept = [face.prepare(body("a")), face.prepare(body("b"))]
        with pytest.raises(WindowExhausted) as caught:
            face.prepare(body("c"))
        assert caught.value.figures["retry_after_s"] > 0
        assert "windows.day.requests" in caught.value.message
        face.release(kept[0])
        face.prepare(body("c"))


def test_a_window_with_less_room_makes_a_request_lighter(emulator: Emulator, awaits: bool, tmp_path: Path) -> None:
    yaml = "default: {model: gemini-3.5-flash, windows: {day: {prompt_tokens: 1500}}}\n"
    shot = media.picture((1920, 1080))
    with Face(settings(tmp_path, yaml), awaits=awaits) as face:
        first = face.prepare(body(user("look", inline(shot, "image/png"))))
        assert first.receipt.outcome is Outcome.ADMITTED
        second = face.prepare(body(user("look", inline(shot, "image/png"))))
        assert second.receipt.outcome is Outcome.SHAPED
        assert second.receipt.saved_tokens > 0
        ((_, held),) = face.counters().values()
        assert held[PROMPT_TOKENS] <= 1500
        with pytest.raises(WindowExhausted):
            face.prepare(body(user("look", inline(shot, "image/png"))))


def test_observing_tells_and_changes_nothing(emulator: Emulator, awaits: bool, tmp_path: Path) -> None:
    limits = "limits: {prompt_tokens: 600}, windows: {day: {prompt_tokens: 1500}}"
    yaml = f"default: {{model: {MODEL}, mode: observe, {limits}}}\n"
    sent = body(user("look", inline(media.picture((1920, 1080)), "image/png")))
    with Face(settings(tmp_path, yaml), awaits=awaits) as face:
        ready = face.prepare(sent, model=MODEL)
        assert ready.body == sent
        assert ready.receipt.outcome is Outcome.WOULD_SHAPE
        assert ready.receipt.wished.after.total.high <= 600 < ready.receipt.fitted.after.total.high
        over = face.prepare(sent, model=MODEL)
        assert over.receipt.outcome is Outcome.WOULD_REFUSE
        assert "day.prompt_tokens" in over.receipt.codes
        tight = settings(tmp_path, "default: {model: gemini-3.5-flash, mode: observe, limits: {prompt_tokens: 10}}\n")
    with Face(tight, awaits=awaits) as face:
        ready = face.prepare(sent, model=MODEL)
        assert ready.body == sent
        assert ready.receipt.outcome is Outcome.WOULD_REFUSE


def test_observing_repairs_what_would_be_a_certain_400(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    wav = media.wav(1.0)
    turns = [user("listen"), called("record"), user(result("record", inline(wav, "audio/wav")))]
    with Face(settings(tmp_path, "default: {model: gemini-3.5-flash, mode: observe}\n"), awaits=awaits) as face:
        ready = face.prepare(body(*turns, tools=[{"functionDeclarations": [{"name": "record"}]}]), model=MODEL)
        assert b"audio/wav" not in ready.body or b"media_note" in ready.body
        answer = ask(wire, ready.body)
        assert face.settle(ready, answer).billed is not None


def test_a_limit_is_held_by_levers_or_refused(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    sent = body(user("look", inline(media.picture((1920, 1080)), "image/png")))
    for limit, outcome in ((100_000, Outcome.ADMITTED), (600, Outcome.SHAPED), (10, None)):
        known = settings(tmp_path, f"default: {{model: {MODEL}, limits: {{prompt_tokens: {limit}}}}}\n")
        with Face(known, awaits=awaits) as face:
            if outcome is None:
                with pytest.raises(BudgetExceeded):
                    face.prepare(sent)
                continue
            ready = face.prepare(sent)
            assert ready.receipt.outcome is outcome
            billed = face.settle(ready, ask(wire, ready.body)).billed
            assert billed is not None
            assert (billed.usage.prompt or limit + 1) <= limit
            assert set(billed.underestimated) <= {MICRO_USD}  # of the answer, which nobody expected to be so long


@pytest.mark.parametrize("policy", ["reject", "warn"])
def test_without_shaping(emulator: Emulator, awaits: bool, tmp_path: Path, policy: str) -> None:
    known = settings(tmp_path, f"default: {{model: {MODEL}, on_exceed: {policy}, limits: {{prompt_tokens: 600}}}}\n")
    sent = body(user("look", inline(media.picture((1920, 1080)), "image/png")))
    with Face(known, awaits=awaits) as face:
        if policy == "reject":
            with pytest.raises(BudgetExceeded):
                face.prepare(sent)
        else:
            ready = face.prepare(sent)
            assert ready.body == sent
            assert ready.receipt.outcome is Outcome.WARNED
            assert ready.receipt.codes == ("limits.prompt_tokens",)


def test_what_is_too_large_goes_by_the_files_api_once(
    emulator: Emulator, wire: Wire, awaits: bool, tmp_path: Path
) -> None:
    film = films.film(4.0)
    yaml = f"default: {{model: {MODEL}}}\nuploads: {{inline_below: {{developer: 1KB}}}}\n"
    sent = body(user("look", inline(film, "video/mp4")))
    with Face(settings(tmp_path, yaml), awaits=awaits) as face:
        ready = face.prepare(sent)
        assert b"fileUri" in ready.body
        assert list(ready.receipt.uploads) == [0]
        assert not ready.receipt.uploads[0].reused
        billed = face.settle(ready, ask(wire, ready.body)).billed
        assert billed is not None
        again = face.prepare(sent)
        assert again.receipt.uploads[0].reused
        assert len([one for one in emulator.requests if one.path.startswith("/upload")]) <= 3


def test_a_file_of_ours_weighs_what_it_weighed_when_it_went_there(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    more = "uploads: {inline_below: {developer: 1KB}}\ntenants: {other: {}}\n"
    known = settings(tmp_path, f"default: {{model: {MODEL}, local_work: allowed}}\n{more}")
    with Face(known, awaits=awaits) as face:
        first = face.prepare(body(user("look", inline(films.film(4.0), "video/mp4"))))
        face.settle(first, ask(wire, first.body))
    with Face(known, awaits=awaits) as face:
        named = face.prepare(first.body)
        assert named.body == first.body
        assert named.receipt.fitted.after.tokens == first.receipt.fitted.after.tokens
        assert named.receipt.held == first.receipt.held
        assert face.settle(named, ask(wire, named.body)).drift == {
            Modality.TEXT: 0,
            Modality.VIDEO: 0,
            Modality.AUDIO: 0,
        }
        others = face.preflight.weigh_request(named.request, Asked(tenant="other"))
        assert Modality.VIDEO not in others.tokens


def test_a_file_of_ours_is_made_lighter_on_the_wire_alone(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    more = "uploads: {inline_below: {developer: 1KB}}\n"
    drawn = io.BytesIO()
    Image.effect_noise((600, 450), 90).convert("RGB").save(drawn, "PNG")
    sent = body(user("look", inline(drawn.getvalue(), "image/png")))
    policy = f"local_work: allowed, limits: {{bytes: {len(drawn.getvalue()) // 2}}}"
    with Face(settings(tmp_path, f"default: {{model: {MODEL}}}\n{more}"), awaits=awaits) as face:
        named = face.prepare(sent).body
    with Face(settings(tmp_path, f"default: {{model: {MODEL}, {policy}}}\n{more}"), awaits=awaits) as face:
        assert face.prepare(sent).receipt.outcome is Outcome.SHAPED  # its bytes are here
        with pytest.raises(BudgetExceeded):
            face.prepare(named)


@pytest.mark.parametrize(
    ("sent", "billed_for", "code"),
    [
        ({"low": True}, {"low": False}, "resolution_ignored"),
        ({"sound": True}, {"sound": False}, "sound_not_billed"),
        ({"low": True}, {"low": True}, None),
        ({"sound": True}, {"sound": True}, None),
    ],
)
def test_a_bill_that_contradicts_what_was_sent_is_found(
    wire: Wire, awaits: bool, tmp_path: Path, sent: dict[str, bool], billed_for: dict[str, bool], code: str | None
) -> None:
    def asked(low: bool = False, sound: bool | None = None) -> bytes:
        shot = inline(media.picture((640, 480)), "image/png")
        medium = shot if sound is None else inline(films.film(4.0, sound_codec="aac" if sound else None), "video/mp4")
        config = {"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}} if low else {}
        return body(user("look", medium), **config)

    with Face(settings(tmp_path, f"default: {{model: {MODEL}}}\n"), awaits=awaits) as face:
        receipt = face.settle(face.prepare(asked(**sent)), ask(wire, asked(**billed_for)))

    assert receipt.billed is not None
    assert [one.code for one in receipt.billed.usage.findings] == ([] if code is None else [code])
    assert [one["code"] for one in receipt.as_dict()["billed"]["findings"]] == ([] if code is None else [code])


def test_a_failed_call_is_charged_only_where_it_may_have_cost(emulator: Emulator, awaits: bool, tmp_path: Path) -> None:
    class Refused(Exception):
        code = 503

    with Face(settings(tmp_path, DAY), awaits=awaits) as face:
        face.settle(face.prepare(body("a")), error=Refused())
        assert face.counters() == {}
        ready = face.prepare(body("a"))
        receipt = face.settle(ready, error=TimeoutError())
        assert receipt.billed is not None
        assert receipt.billed.estimated
        ((spent, held),) = face.counters().values()
        assert held == {}
        assert spent[PROMPT_TOKENS] == ready.receipt.held[PROMPT_TOKENS]


def test_whose_request_it_is_may_be_said_around_it(awaits: bool, tmp_path: Path) -> None:
    yaml = "default: {model: gemini-3.5-flash}\nendpoints: {triage: {windows: {day: {requests: 5}}}}\n"
    with Face(settings(tmp_path, yaml), awaits=awaits) as face:
        with context.endpoint("triage"), context.tenant("acme"), context.session("run 7"):
            ready = face.prepare(body("a"))
        assert ready.receipt.fitted.after.scale.endpoint == "triage"
        assert (ready.asked.tenant, ready.asked.session) == ("acme", "run 7")
        assert face.prepare(body("a")).receipt.fitted.after.scale.endpoint == "default"


def test_what_cannot_be_sent_is_refused_and_holds_nothing(awaits: bool, tmp_path: Path) -> None:
    with Face(settings(tmp_path, DAY), awaits=awaits) as face:
        for broken in (
            body(user(inline(b"\x00\x01\x02\xff\xfe" * 9, "image/png"))),
            b"{",
            body(user({"inlineData": {"mimeType": "image/png", "data": "%%%"}})),
        ):
            with pytest.raises(InputError):
                face.prepare(broken)
        assert face.held() == {}


def test_an_unreadable_part_is_sent_again_sharper(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    yaml = f"default: {{model: {MODEL}, limits: {{prompt_tokens: 700}}, windows: {{day: {{requests: 9}}}}}}\n"
    sent = body(user("read this", inline(media.picture((1920, 1080)), "image/png")))
    with Face(settings(tmp_path, yaml), awaits=awaits) as face:
        ready = face.prepare(sent)
        face.settle(ready, ask(wire, ready.body))
        with pytest.raises(BudgetExceeded):
            face.escalate(ready, [0])
        roomy = settings(tmp_path, f"default: {{model: {MODEL}, media: {{image: {{resolution: low}}}}}}\n")
    with Face(roomy, awaits=awaits) as face:
        ready = face.prepare(sent)
        again = face.escalate(ready, [0])
        assert again.receipt.fitted.after.total.likely > ready.receipt.fitted.after.total.likely
        assert again.receipt.earlier is not None
        assert again.receipt.as_dict()["earlier"]["id"] == ready.receipt.id
        with pytest.raises(InputError, match="no such medium"):
            face.escalate(ready, ["nothing.png"])


def test_how_long_answers_are_is_learned(wire: Wire, awaits: bool, tmp_path: Path) -> None:
    with Face(settings(tmp_path, DAY), awaits=awaits) as face:
        usage = {"promptTokenCount": 3, "candidatesTokenCount": 70, "thoughtsTokenCount": 35}
        first = face.prepare(body("a"))
        face.settle(first, {"usageMetadata": usage})
        for _ in range(19):
            face.settle(face.prepare(body("a")), {"usageMetadata": usage})
        later = face.prepare(body("a"))
        assert later.scales.output_tokens == 110
        assert later.receipt.held[MICRO_USD] > first.receipt.held[MICRO_USD]


def test_a_model_nobody_prices_is_refused_where_dollars_are_counted(awaits: bool, tmp_path: Path) -> None:
    for policy, outcome in (("reject", None), ("ignore", Outcome.ADMITTED)):
        yaml = f"default: {{model: {MODEL}, on_unknown_price: {policy}, windows: {{day: {{cost_usd: 1}}}}}}\n"
        with Face(settings(tmp_path, yaml), awaits=awaits) as face:
            if outcome is None:
                with pytest.raises(BudgetExceeded, match=r"windows\.day\.cost_usd"):
                    face.prepare(body("a"), model="gemini-99-neon")
            else:
                assert face.prepare(body("a"), model="gemini-99-neon").receipt.outcome is outcome


def test_a_budget_past_its_mark_warns(awaits: bool, tmp_path: Path) -> None:
    yaml = f"default: {{model: {MODEL}, windows: {{day: {{requests: 2, warn_at: 0.9}}}}}}\n"
    with Face(settings(tmp_path, yaml), awaits=awaits) as face:
        assert face.prepare(body("a")).receipt.warnings == ()
        (warning,) = face.prepare(body("b")).receipt.warnings
        assert warning == "endpoint:default, day: requests at 100 % of 2"


def test_observing_lets_through_what_the_service_will_refuse_and_says_so(awaits: bool, tmp_path: Path) -> None:
    sent = body(user(inline(b"\x00\x01\x02\xff\xfe" * 9, "image/png")))
    with Face(settings(tmp_path, f"default: {{model: {MODEL}, mode: observe}}\n"), awaits=awaits) as face:
        ready = face.prepare(sent)
        assert ready.body == sent
        assert ready.receipt.outcome is Outcome.WOULD_REFUSE
        assert ready.receipt.codes == ("unknown_media_type",)
