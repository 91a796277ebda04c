"""Films cut by copying, from a key frame on: where that holds what was planned, and where they are encoded again."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import films
from unit.test_fit import preflight
from weighlock.cli.fit_rows import Rows
from weighlock.deeds import Doer
from weighlock.errors import MalformedMedia
from weighlock.fitted import Fitted
from weighlock.media.work import Made, VideoWork, Work
from weighlock.preflight import Preflight
from weighlock.request import MediaPart, Modality, Request, Turn
from weighlock.scales import Asked

TRIAGE = Asked(endpoint="triage")
COPY = "media: {video: {cut: copy}}"
SECONDS = 12
RATE = {"b": "400000", "maxrate": "400000", "bufsize": "100000", "x264-params": "nal-hrd=cbr"}
WINDOW = {"videoMetadata": {"startOffset": "5s", "endOffset": "9s"}}


@cache
def film() -> bytes:
    """A key frame every 2 s; filled up to 400 kbit/s, so that what a copy takes is known."""
    return films.film(SECONDS, fps=10, gop=20, options=RATE)


def request(*datas: bytes) -> Request:
    parts = (
        MediaPart(source=data, label=f"{at}.mp4", declared_mime="video/mp4", carried=WINDOW)
        for at, data in enumerate(datas)
    )
    return Request(turns=(Turn(role="user", parts=tuple(parts)),))


def done(line: Preflight, asked_for: Request) -> tuple[Fitted, Fitted]:
    planned = line.fit(asked_for, TRIAGE)
    planned.demand_fit()
    return planned, line.carry_out(planned, TRIAGE)


def told(fitted: Fitted) -> str:
    return Rows(fitted, of_files=True, narrow=False).row(0)[4].plain


def test_a_window_is_copied_from_the_key_frame_before_it_and_counted_as_it_came_out(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"{COPY}, limits: {{bytes: {len(film()) // 2}}}")

    planned, made = done(line, request(film()))

    assert planned.works == {0: VideoWork(start_s=5, end_s=9, exact=False, most_earlier_s=4)}
    assert told(planned) == "cut to 5–9 s, copied from the key frame at or before (by 4 s at most)"
    assert told(made).startswith("cut to 5–9 s, copied from the key frame at or before (by 4 s at most), ")
    assert "begins at 4 s" in told(made)
    assert made.fits
    assert made.as_dict()["made"][0]["actual_start_s"] == 4
    assert line.fit(made.request, TRIAGE).request is made.request
    assert films.pictures(made.files[0])[0] == (0, 40)
    assert [one.after.parts[0].of(Modality.VIDEO).likely for one in (planned, made)] == [240, 300]
    for was, now in zip(planned.after.parts[0].tokens, made.after.parts[0].tokens, strict=True):
        assert was.low <= now.likely <= now.high <= was.high


def test_a_copy_that_would_begin_far_before_its_window_is_encoded_again(tmp_path: Path) -> None:
    line, long = (
        preflight(tmp_path, f"{COPY}, limits: {{bytes: 400kB}}"),
        films.film(SECONDS, fps=10, gop=200, options=RATE),
    )

    planned, made = done(line, request(long))

    assert planned.works == {0: VideoWork(start_s=5, end_s=9, exact=False, most_earlier_s=4)}
    said = "its key frame is 5 s before the start, and a copy may begin 4 s before it"
    assert made.made[0].notes == (f"encoded again: {said}",)
    assert films.pictures(made.files[0])[0] == (0, 50)
    assert made.after.parts[0].of(Modality.VIDEO).likely == 240


def test_a_copy_that_might_break_a_limit_of_tokens_is_not_planned(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"{COPY}, limits: {{bytes: 300kB, tokens: {{video: 500}}}}")

    planned, made = done(line, request(film()))

    assert planned.works == {0: VideoWork(start_s=5, end_s=9, max_bytes=planned.plan.parts[0].examined.size_bytes)}
    made.demand_fit()


def test_a_copy_that_breaks_a_limit_is_encoded_again(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"{COPY}, limits: {{bytes: 225kB}}")

    planned, made = done(line, request(film()))

    made.demand_fit()
    assert made.made[0].notes == ("encoded again: copied from 4 s on it breaks limits.bytes of triage",)
    assert made.made[0].actual_start_s is None
    assert made.made[0].size_bytes <= (planned.plan.parts[0].examined.size_bytes or 0)
    assert films.pictures(made.files[0])[0] == (0, 50)
    assert told(made).startswith(f"cut to 5–9 s, {made.made[0].size_bytes:,} bytes")


def test_of_two_copies_only_the_later_is_encoded_again_where_that_is_enough(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"{COPY}, limits: {{bytes: 470kB}}")

    _, made = done(line, request(film(), film()))

    made.demand_fit()
    assert [one.actual_start_s for _, one in sorted(made.made.items())] == [4, None]


def test_a_copy_that_fails_is_encoded_again_within_the_bytes_of_the_plan_and_says_why(tmp_path: Path) -> None:
    line, asked_for = preflight(tmp_path, f"{COPY}, limits: {{bytes: {len(film()) // 2}}}"), request(film())
    planned, tried = line.fit(asked_for, TRIAGE), list[Work]()

    def no_copy(
        part: MediaPart, work: Work, progress: Any, cancelled: Any, *, size_bytes: int | None
    ) -> tuple[bytes, Made]:
        tried.append(work)
        if isinstance(work, VideoWork) and not work.exact:
            raise MalformedMedia("its pictures carry no times, so they cannot be copied; ask for an exact clip")
        return line.made(part, work)

    scales = line.scales(TRIAGE)
    made = Doer(
        fitted=planned, scales=scales, make=no_copy, weigh=lambda r: line.weigh_request(r, TRIAGE), clock=float
    ).carry_out()

    made.demand_fit()
    assert tried == [*planned.works.values(), VideoWork(start_s=5, end_s=9, max_bytes=-(-len(film()) // 3))]
    assert made.made[0].notes == ("encoded again: its pictures carry no times, so they cannot be copied",)


def test_a_window_the_model_honours_is_set_on_the_wire_and_nothing_is_copied(tmp_path: Path) -> None:
    film_wanted = "media: {video: {cut: copy, clip: 5-9, floor: {seconds: 2}}, levers: [clip]}"
    line = preflight(tmp_path, f"{film_wanted}, limits: {{prompt_tokens: 800}}")
    part = MediaPart(source=film(), label="it.mp4", declared_mime="video/mp4")

    found = line.fit(Request(turns=(Turn(role="user", parts=(part,)),)), TRIAGE)

    assert [step.words for step in found.plan.steps] == ["clip 5s-9s"]
    assert not found.works
