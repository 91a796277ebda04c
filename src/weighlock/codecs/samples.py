"""Draws the sample media of `weighlock samples`: a screenshot, a screen recording, a page and a song.

Draws only and opens nothing foreign, so it runs in the host process, outside the confined worker.
"""

from __future__ import annotations

import base64
import io
import json
import math
import wave
from array import array
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av import AudioFrame
    from PIL import Image, ImageDraw

RECORDING_S = 240
SONG_S = 30
_REQUEST_SOUND_S = 3
_RECORDING_FPS = 5
_RATE_HZ = 48_000
_INK, _PAPER, _PANEL, _ALERT = (28, 32, 38), (246, 247, 249), (226, 230, 235), (190, 38, 46)


def draw_samples(folder: Path, *names: str) -> list[Path]:
    """Writes the four samples, or those that are named, into `folder`, which is made if need be; returns their paths.

    A 1920×1080 PNG screenshot with an error dialog; 240 s of 1280×720 H.264 screen recording with AAC sound;
    one A4 page of PDF; 30 s of MP3. About 3 MB together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipes: dict[str, Callable[[Path], None]] = {
        "screenshot.png": _screenshot,
        "recording.mp4": _recording,
        "report.pdf": _report,
        "song.mp3": _song,
    }
    paths = []
    for name in names or recipes:
        draw = recipes[name]
        path = folder / name
        draw(path)
        paths.append(path)
    return paths


def draw_request(path: Path, screenshot: Path) -> None:
    """Writes a REST body in which tools answered with media as base64 text: `screenshot`, and 3 s of WAV."""
    picture = base64.b64encode(screenshot.read_bytes()).decode()
    sound = base64.b64encode(_wav(_REQUEST_SOUND_S)).decode()
    calls = [("call-1", "take_screenshot", {}), ("call-2", "record_sound", {"seconds": _REQUEST_SOUND_S})]
    answers = [
        {"content": [{"type": "image", "data": picture, "mimeType": "image/png"}]},
        {"output": f"data:audio/wav;base64,{sound}"},
    ]
    question = "Saving an order fails, and the page beeps. What does the dialog say?"
    contents = [
        {"role": "user", "parts": [{"text": question}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"id": call_id, "name": name, "args": args}} for call_id, name, args in calls],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": call_id, "name": name, "response": answer}}
                for (call_id, name, _), answer in zip(calls, answers, strict=True)
            ],
        },
    ]
    path.write_text(json.dumps({"contents": contents}, indent=1), encoding="utf-8")


def _wav(seconds: int) -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE_HZ)
        for second in range(seconds):
            file.writeframes(_wave(second))
    return written.getvalue()


def _screenshot(path: Path) -> None:
    image = _desktop(1920, 1080)
    _dialog(image, elapsed_s=None)
    image.save(path, optimize=True)


def _desktop(width: int, height: int) -> Image.Image:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width, height // 18), fill=_INK)
    _write(draw, (width // 60, height // 80), "Orders - staging", height // 36, (255, 255, 255))
    for row in range(12):
        top = height // 9 + row * height // 14
        draw.rectangle((width // 40, top, width - width // 40, top + height // 17), fill=_PANEL)
        _write(draw, (width // 30, top + height // 80), f"order {48200 + row * 7}   pending", height // 45, _INK)
    return image


def _dialog(image: Image.Image, elapsed_s: int | None) -> None:
    from PIL import ImageDraw

    width, height = image.size
    draw = ImageDraw.Draw(image)
    left, top, right, bottom = width // 3, height // 3, width * 2 // 3, height * 3 // 5
    draw.rectangle((left, top, right, bottom), fill=(255, 255, 255), outline=_INK, width=3)
    draw.rectangle((left, top, right, top + height // 20), fill=_ALERT)
    _write(draw, (left + 20, top + height // 100), "Cannot save order", height // 36, (255, 255, 255))
    _write(draw, (left + 20, top + height // 10), "ERR_CONN_RESET (0x80072EFF)", height // 40, _INK)
    if elapsed_s is not None:
        _write(draw, (left + 20, top + height // 6), f"retrying for {elapsed_s} s", height // 40, _INK)


def _write(
    draw: ImageDraw.ImageDraw, at: tuple[int, int], text: str, size: int, colour: tuple[int, int, int] | int
) -> None:
    from PIL import ImageFont

    draw.text(at, text, font=ImageFont.load_default(size), fill=colour)


def _recording(path: Path) -> None:
    import av

    width, height = 1280, 720
    desktop = _desktop(width, height)
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=_RECORDING_FPS, options={"preset": "ultrafast", "crf": "30"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        sound = container.add_stream("aac", rate=_RATE_HZ, layout="mono")
        for second in range(RECORDING_S):
            screen = desktop.copy()
            _dialog(screen, elapsed_s=second)
            picture = av.VideoFrame.from_image(screen).reformat(format="yuv420p")  # type: ignore[no-untyped-call]  # untyped in PyAV
            for frame in range(_RECORDING_FPS):
                picture.pts, picture.time_base = second * _RECORDING_FPS + frame, Fraction(1, _RECORDING_FPS)
                container.mux(video.encode(picture))
            container.mux(sound.encode(_note(second)))
        container.mux(video.encode(None))
        container.mux(sound.encode(None))


def _song(path: Path) -> None:
    import av

    with av.open(str(path), "w") as container:
        sound = container.add_stream("libmp3lame", rate=_RATE_HZ, layout="mono")
        for second in range(SONG_S):
            container.mux(sound.encode(_note(second)))
        container.mux(sound.encode(None))


def _note(second: int) -> AudioFrame:
    """One quiet second of a rising scale."""
    import av

    frame = av.AudioFrame(format="s16", layout="mono", samples=_RATE_HZ)
    frame.planes[0].update(_wave(second % 12))
    frame.sample_rate, frame.pts, frame.time_base = _RATE_HZ, second * _RATE_HZ, Fraction(1, _RATE_HZ)
    return frame


@cache
def _wave(semitone: int) -> bytes:
    step = 2 * math.pi * 220 * 2 ** (semitone / 12) / _RATE_HZ
    return array("h", (int(4000 * math.sin(step * n)) for n in range(_RATE_HZ))).tobytes()


def _report(path: Path) -> None:
    from PIL import Image, ImageDraw

    a4_at_150_dpi = (1240, 1754)
    page = Image.new("L", a4_at_150_dpi, 255)
    draw = ImageDraw.Draw(page)
    _write(draw, (120, 120), "Incident report", 56, 0)
    for line in range(30):
        _write(draw, (120, 260 + line * 44), f"{line + 1:2}. The client retried order {48200 + line}.", 28, 0)
    page.save(path, "PDF", resolution=150.0)
