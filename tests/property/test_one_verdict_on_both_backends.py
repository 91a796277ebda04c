"""A limit by modality as sent means the same on both backends, whatever bucket Google bills a part in.

The verdict itself can be the same only where both backends bill the same figures: from Gemini 3 on. On 2.5 one and the
same image is 258 tokens here and 1,806 there, so that only what is counted as what can be compared.
"""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from unit.planning.drawn import examined, paper, recording, screenshot, song
from weighlock.media.facts import Facts
from weighlock.planning.admit import Verdict, admit
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.weigh import weigh
from weighlock.request import Backend, Modality
from weighlock.rules import Controls, RuleBook

BOOK = RuleBook.packaged()
DAY = date(2026, 11, 30)
SIZES = st.integers(1, 5_000)
MEDIA = st.one_of(
    st.builds(screenshot, SIZES, SIZES),
    st.builds(recording, st.floats(2, 7_200), sound=st.booleans()),
    st.builds(song, st.floats(2, 7_200)),
    st.builds(paper, st.integers(1, 1_000)),
)
LIMITS = st.dictionaries(st.sampled_from(list(Modality)), st.integers(0, 2_000_000), max_size=5)


def verdict(model: str, backend: Backend, media: list[Facts], limits: Limits) -> Verdict:
    rules = BOOK.for_model(model, backend, DAY)
    return admit(Load.of([weigh(examined(facts), Controls(), rules) for facts in media]), limits, None)


@given(media=st.lists(MEDIA, min_size=1, max_size=4), tokens=LIMITS)
def test_one_configuration_gives_one_verdict_on_both_backends(media: list[Facts], tokens: dict[Modality, int]) -> None:
    limits = Limits(tokens=tokens)

    for model in ("gemini-3.8-flash", "gemini-3.5-flash-lite", "gemini-4-argon"):
        developer = verdict(model, Backend.DEVELOPER, media, limits)
        vertex = verdict(model, Backend.VERTEX, media, limits)

        assert developer.decision is vertex.decision
        assert [check.name for check in developer.over] == [check.name for check in vertex.over]


@given(media=st.lists(MEDIA, min_size=1, max_size=4))
def test_the_modalities_as_sent_are_the_same_on_every_backend_and_generation(media: list[Facts]) -> None:
    limits = Limits(tokens=dict.fromkeys(Modality, 0))
    found = {
        (model, backend): {check.name for check in verdict(model, backend, media, limits).limits if check.likely}
        for model in ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash")
        for backend in Backend
    }

    assert len({frozenset(names) for names in found.values()}) == 1
