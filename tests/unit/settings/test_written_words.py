"""What may be repeated of an operator's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.written import escaped, holds_key, listed, plain, quoted, told, without_keys

KEYS = [
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "AIZASYD-9TSRKE72POUQMNMX-A7EZSW0JKFMBWY",
    "AQ.Ab8RN6JmZ1x9k2Qw3Er4Ty5Ui6Op",
    "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2",
    "ya29.a0AfB_byC1d2E3f4G5h6I7j8K9",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "around", ["{}", "key={}", "WEIGHLOCK_{}", "'{}'", "/home/x/{}", "a {} b", "https://x/?key={}&y"]
)
def test_a_key_is_known_and_taken_out_wherever_it_stands(around: str, key: str) -> None:
    text = around.format(key)

    assert holds_key(text)
    assert key not in without_keys(text)
    assert key not in quoted(text)
    assert key not in plain(text)
    assert without_keys(without_keys(text)) == without_keys(text)


@pytest.mark.parametrize("key", ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "Zm9vYmFy-YmF6cXV4_MTIzNDU2Nzg5MA4"])
def test_a_long_word_nobody_would_make_up_is_taken_out_of_messages_and_not_refused(key: str) -> None:
    assert not holds_key(key)
    assert key not in without_keys(f"no such file: {key}")


@pytest.mark.parametrize(
    "text",
    [
        "gemini-2.5-flash-native-audio-preview-12-2025",
        "projects/acme-prod/locations/europe-west4/publishers/google/models/gemini-3.8-flash",
        "endpoints.meeting_notes_of_the_whole_company_2026.limits.prompt_tokens",
        "WEIGHLOCK_ENDPOINTS__BUG_TRIAGE_OF_TEAM_5__LIMITS__TOKENS__IMAGE",
        "task-force-europe-north-operations",
        "team-of-people-who-carry-very-long-names",
        "123456789012345678901234567890123456",
        "sk-bratislava-operations-team",
        "AIza",
    ],
)
def test_words_of_people_stay(text: str) -> None:
    assert without_keys(text) == text
    assert not holds_key(text)


@given(st.text())
def test_what_is_repeated_is_short_and_printable(text: str) -> None:
    assert plain(text).isprintable()
    assert quoted(text).isprintable()
    assert len(quoted(text[:2] + "x" * 100)) < 100
    assert escaped(text).isprintable()


def test_control_characters_are_spelled_out() -> None:
    assert plain("a\x1b[31m\n\u202e\udcff") == r"a\x1b[31m\n\u202e\udcff"


def test_long_lists_are_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(1_000))).endswith("19, …")
    assert told(["x"] * 100) == ["x"] * 100
    assert told(["x"] * 1_300)[100:] == ["and 1,200 more"]
