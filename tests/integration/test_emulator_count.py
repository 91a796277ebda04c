"""`countTokens` of the emulator: off the bill in the known ways, each form in its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import media
from emulated import FLASH, FLASH_25, Wire, inline, proves, refusal, user
from weighlock.emulator import Emulator

SHOT = media.picture((1920, 1080))
FILM = media.video(4.0, size=(1280, 720), fps=2, sound_s=4.0)
SONG = media.wav(3.0)
PDF = media.pdf([(595, 842)] * 2)
LOW = {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
HIGH = {"mediaResolution": "MEDIA_RESOLUTION_HIGH"}


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator)
    yield wire
    wire.close()


def wrapped(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"generateContentRequest": {"model": f"models/{FLASH}", "contents": [user(*parts)], **fields}}


@proves("count-audio", "count-video", "count-pdf", "count-image", "count-one-more")
def test_each_medium_is_off_in_its_known_way(wire: Wire) -> None:
    song, film = inline(SONG, "audio/wav"), inline(FILM, "video/mp4")
    pages, shot = inline(PDF, "application/pdf"), inline(SHOT, "image/png")

    assert wire.counted("hi") == {"TEXT": 1}
    assert wire.counted(user(song, "hi")) == {"TEXT": 2, "AUDIO": 96}
    assert wire.billed(user(song, "hi"))["AUDIO"] == 75
    assert wire.counted(user(film, "hi")) == {"TEXT": 2, "VIDEO": 4 * (66 + 5 + 32)}
    assert wire.counted(user(film, "hi"), name=FLASH_25) == {"TEXT": 2, "VIDEO": 400}
    assert wire.counted(user(pages, "hi")) == {"TEXT": 2, "IMAGE": 1120}
    assert wire.counted(user(pages, "hi"), name=FLASH_25) == {"TEXT": 2, "DOCUMENT": 516}
    assert wire.counted(user(shot, "hi"))["IMAGE"] == wire.billed(user(shot, "hi"))["IMAGE"]
    assert wire.counted(user(shot, "hi"), name="gemini-2.0-flash")["IMAGE"] == 258
    assert wire.billed(user(shot, "hi"), name="gemini-2.0-flash")["IMAGE"] > 258


@proves("count-ignores-fps", "count-ignores-resolution")
def test_fps_and_a_parts_resolution_change_no_count(wire: Wire) -> None:
    fast = inline(FILM, "video/mp4", videoMetadata={"fps": 5})
    low = inline(SHOT, "image/png", mediaResolution={"level": "MEDIA_RESOLUTION_LOW"})

    assert wire.counted(user(fast, "hi"))["VIDEO"] == 4 * 103
    assert wire.counted(user(low, "hi"))["IMAGE"] == 1100


@proves("count-wrapped-resolution")
def test_inside_a_whole_request_its_resolution_counts(wire: Wire) -> None:
    def counted(part: Any, **config: Any) -> int:
        answer = wire.count(**wrapped(part, "hi", generationConfig=config)).json()
        return int(answer["totalTokens"])

    assert counted(inline(SHOT, "image/png"), **LOW) < counted(inline(SHOT, "image/png")) == 1102
    assert counted(inline(FILM, "video/mp4"), **HIGH) == 1202
    assert counted(inline(PDF, "application/pdf"), **HIGH) == 2242
    assert wire.counted(user(inline(SHOT, "image/png"), "hi"), vertex=True, generationConfig=LOW)["IMAGE"] < 280


def test_what_it_counts_is_what_the_rules_say_of_counts(emulator: Emulator, wire: Wire) -> None:
    before = emulator.rules
    rule = 'modality = "AUDIO"\ntokens_per_s = 40\nsince = 2026-11-01\nsource = "ROK"\nconfidence = "assumed"'
    emulator.lay_over(f'generation = "gemini-3"\nchecked_on = 2026-11-30\n[[counts]]\n{rule}\n')
    try:
        counted = wire.counted(user(inline(SONG, "audio/wav"), "hi"))["AUDIO"]
    finally:
        emulator.rules = before

    assert counted == 120


@proves("count-wrapped-wins", "count-wrapped-needs-model", "count-developer-fields")
def test_each_form_takes_its_own_fields(wire: Wire) -> None:
    system = user("be kind to everybody")

    alone = wire.counted("hi")["TEXT"]
    assert wire.count("a long text " * 9, **wrapped("hi")).json()["totalTokens"] == alone
    assert wire.count(**wrapped("hi", systemInstruction=system)).json()["totalTokens"] > alone
    assert "model is not specified" in refusal(wire.count(generateContentRequest={"contents": [user("hi")]}))[2]
    assert 'Unknown name "systemInstruction"' in refusal(wire.count("hi", systemInstruction=system))[2]
    answer = wire.count("hi", systemInstruction=system, vertex=True).json()
    assert answer["totalTokens"] > alone
    assert answer["totalBillableCharacters"] == 2
