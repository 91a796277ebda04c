"""Published bills against the rules. Rows are facts of other people's recordings; each names its source.

What a row calls the cost of a medium is compared with `likely`, exactly but for a rounding the row itself states.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from weighlock.media.facts import AudioFacts, DocumentFacts, Facts, FactSource, ImageFacts, PageRun, VideoFacts
from weighlock.request import Backend, Carrier, MediaResolution, Modality, Placement
from weighlock.rules import Controls, ModelRules, RuleBook, estimate

HERE = Path(__file__).parent
AS_OF = date(2026, 11, 30)
BOOK = RuleBook.packaged()
Row = Mapping[str, Any]
Bill = dict[Modality, int]

ROWS: dict[str, Row] = {
    row["id"]: row for row in map(json.loads, (HERE / "measured_counts.jsonl").read_text(encoding="utf-8").splitlines())
}
STRONG = [
    row for row in ROWS.values()
    if row["kind"] == "usage_metadata" and row["confidence"] == "strong" and row["modality"] != "text"
]  # fmt: skip

# Not published with the row, but implied by the grid, the tiles or the rate it states.
STATED: dict[str, tuple[Facts, str]] = {
    "m001": (ImageFacts(width_px=1500, height_px=1000), "3:2, from the 40 × 27 grid"),
    "m004": (ImageFacts(width_px=1280, height_px=720), "16:9, from the 11 × 6 grid"),
    "m005": (ImageFacts(width_px=1280, height_px=720), "16:9, from the 11 × 6 grid"),
    "m007": (ImageFacts(width_px=595, height_px=842), "A4, from the 14 × 19 grid"),
    "m009": (ImageFacts(width_px=595, height_px=842), "A4, from the 28 × 39 grid"),
    "m038": (ImageFacts(width_px=3008, height_px=2000), "12 tiles and an overview"),
    "m061": (ImageFacts(width_px=640, height_px=480), "4:3, from the 9 × 7 grid"),
    "m063": (ImageFacts(width_px=640, height_px=480), "4:3, from the 9 × 7 grid"),
    "m131": (ImageFacts(width_px=1280, height_px=720), "any size: the frame is flat"),
    "m132": (ImageFacts(width_px=1280, height_px=720), "any size: the frame is flat"),
    "m133": (ImageFacts(width_px=1280, height_px=720), "any size: the frame is flat"),
    "m136": (
        AudioFacts(duration_s=6.0, duration_high_s=6.0, duration_source=FactSource.ASSUMED), "6 s, from 25 a second",
    ),
    "m137": (ImageFacts(width_px=612, height_px=792), "any size: the page is flat"),
    "m138": (ImageFacts(width_px=2000, height_px=2000), "9 tiles and an overview"),
}  # fmt: skip

USER, TOOL = Carrier.USER, Carrier.TOOL_RESULT
INLINE, FILES, URI = Placement.INLINE, Placement.FILES, Placement.URI
WAYS: dict[str, tuple[tuple[Placement, Carrier], ...]] = {
    "inline part": ((INLINE, USER),),
    "inline/Files part": ((INLINE, USER), (FILES, USER)),
    "inline part / Files uri part": ((INLINE, USER), (FILES, USER)),
    "inline part / https uri part": ((INLINE, USER), (URI, USER)),
    "inline part or gs:// part": ((INLINE, USER), (URI, USER)),
    "inline part or https uri part": ((INLINE, USER), (URI, USER)),
    "ordinary inline/Files/gs part": ((INLINE, USER), (FILES, USER), (URI, USER)),
    "ordinary inline/https part": ((INLINE, USER), (URI, USER)),
    "inline part, Files/gs uri part, or functionResponse.parts inlineData": (
        (INLINE, USER), (FILES, USER), (URI, USER), (INLINE, TOOL),
    ),
    "Files API uri part": ((FILES, USER),),
    "https/gs uri": ((URI, USER),),
    "YouTube fileData": ((URI, USER),),
    "YouTube fileData, videoMetadata.fps=0.2": ((URI, USER),),
    "functionResponse.parts inlineData": ((INLINE, TOOL),),
    "functionResponse.parts inlineData or fileData gs://": ((INLINE, TOOL), (URI, TOOL)),
    "functionResponse.parts inlineData or fileData https": ((INLINE, TOOL), (URI, TOOL)),
    "functionResponse.parts fileData (Files API uri)": ((FILES, TOOL),),
    "functionResponse.parts fileData gs://": ((URI, TOOL),),
}  # fmt: skip

# Both rows say of themselves that one token less than the rate is within their reading (encoder delay, or floor).
OWN_ROUNDING = {"m099": 1, "m105": 1}


@dataclass(frozen=True)
class Answer:
    """What the rules say to one row."""

    likely: Bill
    high: Bill


def backend(row: Row) -> Backend:
    return Backend.VERTEX if row["api"].startswith("vertex") else Backend.DEVELOPER


def rules(row: Row) -> ModelRules:
    found = BOOK.for_model(row["model"], backend(row), AS_OF)
    assert found.known, row["model"]
    return found


def controls(row: Row) -> list[Controls]:
    via = row["input"].get("via")
    ways = WAYS[via] if via else (((URI if "uri" in row["input"] else INLINE), USER),)
    asked = row["media_resolution"] or "default"
    level = MediaResolution(asked.split()[0].lower()) if not asked.startswith("default") else None
    part = level if "per-part" in asked else None
    whole = level if "global" in asked and level else MediaResolution.UNSPECIFIED
    return [
        Controls(media_resolution=whole, part_resolution=part, fps=row["fps"], placement=placement, carrier=carrier)
        for placement, carrier in ways
    ]


def seconds(row: Row) -> float:
    return float(str(row["input"]["duration_s"]).split()[0])


def media(row: Row) -> list[Facts]:
    given, kind = row["input"], row["modality"].split("+")[0]
    stated = STATED[row["id"]][0] if row["id"] in STATED else None
    width, height = given.get("page_pt") or (given.get("width"), given.get("height"))
    if isinstance(stated, ImageFacts):
        width, height = stated.width_px, stated.height_px
    match kind:
        case "image":
            return [ImageFacts(width_px=width, height_px=height)]
        case "images":
            sizes = [item.split()[0].split("x") for item in given["images"]]
            return [ImageFacts(width_px=int(size[0]), height_px=int(size[1])) for size in sizes]
        case "audio":
            if isinstance(stated, AudioFacts):
                return [stated]
            s = seconds(row)
            return [AudioFacts(duration_s=s, duration_high_s=s, duration_source=FactSource.SCANNED)]
        case "pdf":
            if "US Letter" in given.get("page_size", ""):
                width, height = 612, 792
            run = PageRun(pages=given["pages"], width_pt=width, height_pt=height)
            return [DocumentFacts(pages=run.pages, pages_high=run.pages, runs=(run,))]
        case "video":
            s = seconds(row)
            shown = given["frames"] / given["src_fps"] if "frames" in given else s
            sound = s if given["audio"] else None
            return [
                VideoFacts(
                    width_px=width, height_px=height, duration_s=s, duration_high_s=max(s, shown),
                    duration_source=FactSource.SCANNED, audio_tracks=int(given["audio"]),
                    audio_duration_s=sound, audio_duration_high_s=sound,
                )
            ]  # fmt: skip
    raise AssertionError(f"{row['id']}: no facts for {kind}")


def billed(row: Row) -> Bill:
    """The row's own figures, without its text."""
    bill: Bill = {}
    for name, figure in row["by_modality"].items():
        word = name.removesuffix("(derived)").replace("PAGES(IMAGE|DOCUMENT)", "DOCUMENT")
        if word != "TEXT" and figure:
            bill[Modality(word)] = figure
    return bill


def answer(row: Row, way: Controls) -> Answer:
    """The rules' figures under the names the row uses: Google's buckets, or as sent where the row derived them."""
    as_sent = any("(" in name for name in row["by_modality"])
    likely: Counter[Modality] = Counter()
    high: Counter[Modality] = Counter()
    for facts in media(row):
        for tokens in estimate(facts, way, rules(row)).tokens:
            name = tokens.modality if as_sent else tokens.billed_as
            likely[name] += tokens.likely
            high[name] += tokens.high
    return Answer(likely={name: figure for name, figure in likely.items() if figure}, high=dict(high))


def explained(row: Row) -> bool:
    """Is every figure of the row the likely one, however the row says the medium was sent?"""
    slack, bill = OWN_ROUNDING.get(row["id"], 0), billed(row)
    return all(
        found.likely.keys() == bill.keys() and all(abs(found.likely[name] - bill[name]) <= slack for name in bill)
        for found in (answer(row, way) for way in controls(row))
    )


def test_at_least_nine_tenths_of_the_strong_bills_are_explained_exactly() -> None:
    exact = [row["id"] for row in STRONG if explained(row)]

    assert len(STRONG) >= 50
    assert len(exact) >= math.ceil(0.9 * len(STRONG)), sorted({row["id"] for row in STRONG} - set(exact))


@pytest.mark.parametrize("row", STRONG, ids=lambda row: row["id"])
def test_no_strong_bill_lies_above_high(row: Row) -> None:
    for way in controls(row):
        high = answer(row, way).high

        assert all(figure <= high.get(name, 0) for name, figure in billed(row).items()), (billed(row), high)


def test_the_table_of_unexplained_bills_lists_exactly_those() -> None:
    table = (HERE / "unexplained.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| m")]

    def words(bill: Bill, names: Bill) -> str:
        return ", ".join(f"{name} {bill.get(name, 0)}" for name in names)

    missed = [row for row in STRONG if not explained(row)]
    found = [(row, billed(row), answer(row, controls(row)[0])) for row in missed]
    expected = [[row["id"], words(bill, bill), words(a.likely, bill), words(a.high, bill)] for row, bill, a in found]

    assert [line[:4] for line in lines] == expected
    assert all(line[4] for line in lines)


def test_a_row_without_a_published_size_is_checked_from_what_it_states_and_says_so() -> None:
    unsized = {
        row["id"]
        for row in STRONG
        if not any(row["input"].get(key) for key in ("width", "page_pt", "images"))
        and not (row["modality"].startswith("audio") and "duration_s" in row["input"])
        and "US Letter" not in row["input"].get("page_size", "")
    }

    assert unsized == STATED.keys()
    assert all(reason for _, reason in STATED.values())


@pytest.mark.parametrize("row_id", ["m049", "m050", "m052", "m053"])
def test_small_and_large_images_count_alike_on_gemini_3(row_id: str) -> None:
    row = ROWS[row_id]

    assert answer(row, Controls()).likely == {Modality.IMAGE: row["expected_total"]}


def test_an_image_model_takes_half_the_budget() -> None:
    row = ROWS["m081"]  # size unpublished; 16:9 from its 31 × 17 grid
    tokens = estimate(ImageFacts(width_px=1600, height_px=900), Controls(), rules(row)).tokens

    assert [item.likely for item in tokens] == [row["by_modality"]["IMAGE(derived)"]]
