"""`weighlock preview` as a user meets it: the page, the lines on the terminal, how it ends."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

import films
import media
from weighlock.cli import cli

Run = Callable[..., Result]
SETTINGS = """
version: 1
accounts: {developer: {backend: developer, api_key_env: GEMINI_API_KEY}}
default: {account: developer, model: gemini-3.8-flash}
endpoints:
  tight: {mode: enforce, limits: {prompt_tokens: 100}}
  standing: {media: {video: {fps: 0.5, resolution: high, clip: last 4s, apply: always}}}
"""
VOID = {"meta", "img"}


class Page(HTMLParser):
    """What a browser would make of it; every tag has to be closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def picture(self) -> Image.Image:
        found = re.findall(r"data:image/(?:png|jpeg);base64,([A-Za-z0-9+/=]+)", self.source)
        assert len(found) == 1
        return Image.open(io.BytesIO(base64.b64decode(found[0])))

    def row(self, name: str) -> list[str]:
        line = re.search(rf'<tr><th scope="row">{name}</th>(.*?)</tr>', self.source)
        assert line is not None, name
        return re.findall(r"<td>(.*?)</td>", line[1])


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("WEIGHLOCK_CONFIG", raising=False)
    Path("weighlock.yaml").write_text(SETTINGS)
    Path("shot.png").write_bytes(media.picture((1920, 1080)))
    Path("film.mp4").write_bytes(films.film(6, size=(640, 384)))

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(cli, ["preview", *words])

    return invoke


def checked(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CliRunner().invoke(cli, ["check", *words, "--format", "json"]).stdout)
    return found


def bounds(tokens: dict[str, int]) -> list[str]:
    return [f"{tokens[bound]:,}" for bound in ("low", "likely", "high")]


def is_self_contained(page: Page) -> bool:
    outside = [(tag, name) for tag, attrs in page.tags for name in attrs if name in ("href", "srcset", "action")]
    sources = [attrs["src"] or "" for _, attrs in page.tags if "src" in attrs]
    urls = re.findall(r"url\((.{0,16})|@import", page.source)
    return (
        not outside
        and all(source.startswith("data:image/") for source in sources)
        and all(url.startswith("data:image/") for url in urls)
        and not any(tag in ("script", "link", "iframe", "object") for tag, _ in page.tags)
        and "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", page.source)
    )


def test_a_picture_is_shown_as_small_as_it_is_seen(run: Run) -> None:
    result = run("shot.png", "--resolution", "low")

    assert result.exit_code == 0, result.output
    page = Page(Path("shot.png.preview.html"))
    assert is_self_contained(page)
    assert page.picture().size == (1024, 576)  # 22 × 12 tokens of 48 px are 1056 × 576
    assert ("img", "1024", "576") in [(tag, a.get("width"), a.get("height")) for tag, a in page.tags]
    assert page.row("the picture") == ["264", "264", "280"]
    assert "Can you still read the error code?" in page.text
    assert "1920×1080" in page.text
    assert "resolution low" in page.text
    assert "seen at 1024×576 px" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "wrote shot.png.preview.html" in result.stderr


def test_a_film_is_shown_frame_by_frame_with_the_tokens_of_check(run: Run) -> None:
    result = run("film.mp4", "--fps", "0.5", "--clip", "2-6", "--out", "page.html")

    assert result.exit_code == 0, result.output
    page = Page(Path("page.html"))
    assert is_self_contained(page)
    frames = [attrs for _, attrs in page.tags if attrs.get("class") == "frame"]
    assert [attrs["aria-label"] for attrs in frames] == ["frame at 0:02", "frame at 0:04"]
    assert frames[1]["style"] == "background-position: -480px 0px"
    assert page.picture().size == (960, 288)  # 10 × 6 tokens of 48 px hold 480 × 288 of 640 × 384
    report = checked("film.mp4", "--fps", "0.5", "--clip", "2-6")
    (part,) = report["parts"]
    of = part["tokens"]["by_modality"]
    assert page.row("frames") == bounds(of["VIDEO"])
    assert page.row("sound") == bounds(of["AUDIO"])
    assert page.row("in all, tokens") == bounds(part["tokens"])
    assert float(page.row("USD")[1].lstrip("$")) == pytest.approx(float(part["cost_usd"]["likely"]), rel=0.01)


def test_of_many_frames_sixty_are_shown_evenly_and_that_is_said(run: Run) -> None:
    result = run("film.mp4", "--fps", "20")

    page = Page(Path("film.mp4.preview.html"))
    assert "120 frames are sampled at 20 fps; 60 of them are shown, evenly spread" in result.stdout
    assert "60 of them are shown" in page.text
    assert sum(attrs.get("class") == "frame" for _, attrs in page.tags) == 60
    assert ("0:05.9") in page.text


def test_the_settings_of_the_endpoint_hold(run: Run) -> None:
    result = run("film.mp4", "-e", "standing")

    assert result.exit_code == 0, result.output
    assert "fps 0.5 · resolution high · 2-6 s" in result.stdout
    assert "2 frames are sampled at 0.5 fps; all are shown" in result.stdout
    assert "seen at 640×384 px" in result.stdout


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-2.0-flash", "gemini-4-neon", "nobody-knows-1"])
def test_every_model_has_a_size_that_is_marked_assumed(run: Run, model: str) -> None:
    for name in ("shot.png", "film.mp4"):
        result = run(name, "-m", model, "--resolution", "low")

        assert result.exit_code == 0, result.output
        assert "(assumed: a token is 48 × 48 px)" in result.stdout


def test_over_a_limit_is_exit_code_3_and_the_page_says_why(run: Run) -> None:
    result = run("shot.png", "-e", "tight")

    assert result.exit_code == 3
    assert "tight refuses" in result.stderr
    assert "tight refuses" in Page(Path("shot.png.preview.html")).text


def test_a_hostile_name_stays_a_name(run: Run) -> None:
    name = "<script>alert(1)<\x1b[31m\"onload='x'&amp;.png"
    Path(name.replace("/", "_")).write_bytes(media.picture((64, 48)))

    result = run(name, "--out", "page.html")

    assert result.exit_code == 0, result.output
    page = Page(Path("page.html"))
    assert is_self_contained(page)
    assert name.replace("\x1b", "\N{REPLACEMENT CHARACTER}") in page.text
    assert "\x1b" not in result.output + page.source


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", 2, "malformed_media"),
        (b"\x00\x01\x02" * 99, 2, "unknown_media_type"),
        (films.film(2)[:900], 2, "malformed_media"),
        (media.picture((640, 480))[:400], 4, "malformed_media"),  # its header says what it would cost
    ],
)
def test_broken_media_end_in_a_typed_error_and_no_page(run: Run, data: bytes, code: int, words: str) -> None:
    Path("broken").write_bytes(data)

    result = run("broken")

    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert not list(Path().glob("*.html"))


def test_what_cannot_be_seen_is_a_usage_error(run: Run) -> None:
    Path("song.wav").write_bytes(media.wav(1))

    assert run("song.wav").exit_code == 2
    assert "a preview is of a picture or a film" in run("song.wav").stderr
    assert run(".").exit_code == 2
    assert run("shot.png", "--out", "shot.png").exit_code == 2
    assert Path("shot.png").read_bytes().startswith(b"\x89PNG")


def test_a_clip_behind_the_end_shows_nothing(run: Run) -> None:
    result = run("film.mp4", "--clip", "20-30")

    assert result.exit_code == 4
    assert "nothing lies between" in result.stderr
    assert not Path("film.mp4.preview.html").exists()


def test_a_film_too_short_for_a_frame_shows_one_and_says_it_is_not_taken(run: Run) -> None:
    result = run("film.mp4", "--fps", "0.1")

    assert result.exit_code == 4
    assert "No frames to extract" in Page(Path("film.mp4.preview.html")).text
    assert "1 frame is sampled" in result.stdout
