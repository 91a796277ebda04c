"""`weighlock fit` where pictures are encoded again, and where metadata stays at home."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

import media
from unit.codecs.test_strip import assert_clean, telling_jpeg
from weighlock.cli import cli

Run = Callable[..., Result]
SETTINGS = """
version: 1
accounts:
  developer: {backend: developer, api_key_env: GEMINI_API_KEY}
  vertex: {backend: vertex, project: some-project}
default: {account: developer, model: gemini-3.8-flash}
endpoints:
  tiles:
    account: vertex
    model: gemini-2.5-flash
    local_work: allowed
    limits: {prompt_tokens: 1400}
    media: {image: {floor: medium}}
  careful: {account: vertex, model: gemini-2.5-flash, limits: {prompt_tokens: 1400}, media: {image: {floor: medium}}}
  small: {limits: {bytes: 2MB}}
  quiet: {media: {strip_metadata: true}}
  hands_off: {media: {strip_metadata: true}, local_work: never}
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)
    Path("weighlock.yaml").write_text(SETTINGS)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(cli, ["fit", *words])

    return invoke


def noise(width: int, height: int, mode: str = "RGB") -> bytes:
    """As a PNG, which nothing can pack."""
    drawn = io.BytesIO()
    seen = random.Random(7).randbytes(width * height * len(mode))
    Image.frombytes(mode, (width, height), seen).save(drawn, "PNG", compress_level=1)
    return drawn.getvalue()


def sent() -> dict[str, Any]:
    """The first medium of the body that was written."""
    part: dict[str, Any] = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"][0]["inlineData"]
    return part


def bytes_sent() -> bytes:
    return base64.b64decode(sent()["data"])


def test_a_screenshot_is_scaled_to_where_it_takes_fewer_tiles(run: Run) -> None:
    Path("shot.png").write_bytes(media.picture((1920, 1080)))

    words = ("shot.png", "-e", "tiles", "--text", "what is wrong?")

    planned = run(*words, "--dry-run")
    done = run(*words, "--out", "made", "--format", "json")

    assert planned.exit_code == 0, planned.output
    assert "scaled to 512×288" in planned.stdout
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["before"]["parts"][0]["tokens"] != told["after"]["parts"][0]["tokens"]
    assert [step["lever"] for step in told["steps"]] == ["reencode"]
    with Image.open(io.BytesIO(bytes_sent())) as image:
        assert (image.format, image.size) == ("PNG", (512, 288))


def test_without_leave_the_pixels_stay_and_the_setting_is_named(run: Run) -> None:
    Path("shot.png").write_bytes(media.picture((1920, 1080)))

    result = run("shot.png", "-e", "careful", "--explain")

    assert result.exit_code == 3
    assert "shot.png: reencode: local_work is bytes_only (local_work)" in result.stdout


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_noisy_picture_comes_within_its_bytes_and_keeps_its_transparency(run: Run, mode: str) -> None:
    Path("noise.png").write_bytes(data := noise(2_000, 1_750 if mode == "RGB" else 1_400, mode))
    assert len(data) > 10_000_000

    done = run("noise.png", "-e", "small", "--out", "made", "--format", "json")

    assert done.exit_code == 0, done.output
    (step,) = json.loads(done.stdout)["steps"]
    target = len(data) - step["saved_bytes"]
    assert step["words"] == f"at most {target:,} bytes"
    assert len(bytes_sent()) <= target <= 2_000_000
    assert sent()["mimeType"] == "image/webp"
    with Image.open(io.BytesIO(bytes_sent())) as image:
        assert image.mode == mode


def test_gps_and_author_do_not_travel(run: Run) -> None:
    Path("photo.jpg").write_bytes(data := telling_jpeg(6))

    done = run("photo.jpg", "-e", "quiet", "--out", "made")

    assert done.exit_code == 0, done.output
    (told,) = (one for one in run("photo.jpg", "-e", "quiet", "--dry-run").stdout.splitlines() if "photo.jpg" in one)
    assert "metadata taken out" in told
    assert "media.strip_metadata" in told
    assert_clean(bytes_sent())
    assert bytes_sent()[-500:] == data[-500:], "compressed data as they were"
    assert_clean(Path("made/photo.jpg").read_bytes())


def test_a_medium_of_a_request_is_stripped_where_it_stands(run: Run) -> None:
    part = {"inlineData": {"mimeType": "image/jpeg", "data": base64.b64encode(telling_jpeg()).decode()}}
    Path("body.json").write_text(json.dumps({"contents": [{"role": "user", "parts": [part, {"text": "where?"}]}]}))

    done = run("body.json", "-e", "quiet", "--out", "made")

    assert done.exit_code == 0, done.output
    assert_clean(bytes_sent())


@pytest.mark.parametrize(("endpoint", "name"), [("quiet", "scan.webm"), ("hands_off", "photo.jpg")])
def test_what_keeps_its_metadata_is_told(run: Run, endpoint: str, name: str) -> None:
    Path("photo.jpg").write_bytes(telling_jpeg())
    Path("scan.webm").write_bytes(media.video(1, form="webm", codec="libvpx"))

    done = run(name, "-e", endpoint, "--out", "made")

    assert done.exit_code == 0, done.output
    assert f"{name} keeps its metadata" in done.stdout
    assert bytes_sent() == Path(name).read_bytes()
    assert json.loads(run(name, "-e", endpoint, "--format", "json").stdout)["keep_metadata"] == [0]


def test_a_pinned_picture_is_stripped_too_and_nothing_else_is_done_to_it(run: Run) -> None:
    Path("photo.jpg").write_bytes(telling_jpeg())

    done = run("photo.jpg", "-e", "quiet", "--pin", "photo.jpg", "--out", "made", "--format", "json")

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["steps"] == []
    assert_clean(bytes_sent())


def test_a_stripped_file_too_large_to_go_inline_is_named_as_it_was_written(run: Run) -> None:
    """Never the one that still has its metadata."""
    Path("photo.jpg").write_bytes(telling_jpeg())
    Path("more.jpg").write_bytes(telling_jpeg(3))
    Path("weighlock.yaml").write_text(f"{SETTINGS}\nuploads: {{inline_below: {{developer: 0}}}}\n")

    done = run("photo.jpg", "more.jpg", "-e", "quiet", "--model", "gemini-9-unknown", "--out", "made")

    assert done.exit_code == 0, done.output
    parts = json.loads(Path("made/request.json").read_bytes())["contents"][0]["parts"]
    assert [part["fileData"]["fileUri"] for part in parts] == ["file:photo.jpg", "file:more.jpg"]
    for name in ("made/photo.jpg", "made/more.jpg"):
        assert_clean(Path(name).read_bytes())


def test_a_picture_of_more_bytes_than_the_service_takes_inline_is_made_one_it_takes(run: Run) -> None:
    Path("noise.png").write_bytes(noise(2_000, 1_500))

    done = run("noise.png", "-e", "careful", "--max-tokens", "9000", "--text", "what is it?", "--out", "made")

    assert done.exit_code == 0, done.output
    assert "the service takes no more bytes inline" in done.stdout
    assert len(bytes_sent()) <= 7_000_000


def test_a_picture_is_cropped_to_what_the_caller_says_matters(run: Run) -> None:
    seen = Image.new("RGB", (1920, 1080), "white")
    seen.paste("red", (600, 300, 1000, 600))
    seen.save("shot.png")

    asked = ("shot.png", "-e", "careful", "--crop", "shot.png=600,300,1000,600", "--text", "what is wrong?")
    done = run(*asked, "--out", "made", "--format", "json")

    assert done.exit_code == 0, done.output
    with Image.open(io.BytesIO(bytes_sent())) as picture:
        assert picture.size == (400, 300)
        assert picture.convert("RGB").getcolors() == [(400 * 300, (255, 0, 0))]
    told = json.loads(done.stdout)
    assert [step["words"] for step in told["steps"]] == ["cropped to 400×300"]
    assert told["after"]["parts"][0]["tokens"]["high"] == 1_290


@pytest.mark.parametrize(
    ("crop", "said"),
    [
        ("shot.png=0,0,1921,1080", "the region 0,0,1921,1080 is not within its 1920×1080 pixels"),
        ("shot.png=9,9,9,20", "is not within"),
        ("song.wav=0,0,9,9", "song.wav: a crop is of pictures; this is audio/wav"),
        ("shot.png=a,0,9,9", "LEFT,TOP,RIGHT,BOTTOM"),
        ("0,0,9,9", "LEFT,TOP,RIGHT,BOTTOM"),
    ],
)
def test_a_region_that_is_none_is_refused(run: Run, crop: str, said: str) -> None:
    Path("shot.png").write_bytes(media.picture((1920, 1080)))
    Path("song.wav").write_bytes(media.wav(seconds=1))

    result = run("shot.png", "song.wav", "-e", "careful", "--crop", crop)

    assert said in (result.stderr if result.exit_code == 2 else str(result.exception))


def test_no_local_work_no_crop(run: Run) -> None:
    Path("shot.png").write_bytes(media.picture((1920, 1080)))

    result = run(
        "shot.png", "-e", "hands_off", "--max-tokens", "300", "-m", "gemini-2.5-flash", "--crop", "shot.png=0,0,9,9"
    )

    assert "cropped" not in result.stdout
