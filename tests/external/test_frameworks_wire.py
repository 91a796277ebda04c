"""What real agent frameworks send when a tool returns media, and what screening makes of it."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import media
import wire_oracle
from external.capture import Call, Capture, Captured, Script
from external.venvs import venv
from unit.converters.test_wire_fixtures import screened
from weighlock.converters import rest_json
from weighlock.preflight import Preflight
from weighlock.request import Backend
from weighlock.scales import Asked

pytestmark = pytest.mark.external

DRIVERS = Path(__file__).parent / "frameworks"
MODELS = ("gemini-3.5-flash", "gemini-2.5-flash")
REQUIREMENTS = {
    "adk": ("google-adk==2.13.0", "google-genai==2.34.0"),
    "pydantic_ai": ("pydantic-ai-slim[google]==2.68.0", "google-genai==2.34.0"),
    "langchain": ("langchain-google-genai==4.4.3", "langchain==1.5.2", "langgraph==1.2.24", "google-genai==3.6.1"),
    "litellm": ("litellm==1.110.2",),
}

WIRE = """
adk          as_part          nested nested nested nested | nested nested nested nested
adk          as_part_in_dict  nested nested nested nested | nested nested nested nested
adk          as_dict          text   text   text   text   | text   text   text   text
adk          as_mcp           text   text   text   text   | text   text   text   text
adk          load_artifacts   turn   turn   turn   turn   | turn   turn   turn   turn
pydantic_ai  as_binary        turn   turn   nested nested | turn   turn   turn   turn
pydantic_ai  as_list          turn   turn   nested nested | turn   turn   turn   turn
pydantic_ai  as_tool_return   turn   turn   turn   turn   | turn   turn   turn   turn
pydantic_ai  as_dict          text   text   text   text   | text   text   text   text
langchain    as_block         text   text   beside beside | text   text   beside beside
langchain    as_media         text   text   text   text   | text   text   text   text
langchain    as_image_url     beside beside beside beside | beside beside beside beside
langchain    as_artifact      text   text   beside beside | text   text   beside beside
langchain    as_dict          text   text   text   text   | text   text   text   text
litellm      as_image_url     nested nested nested nested | beside beside beside beside
litellm      as_input_audio   nested -      -      -      | beside -      -      -
litellm      as_file          nested nested nested nested | beside beside beside beside
litellm      as_text          text   text   text   text   | text   text   text   text
litellm      as_data_uri      text   text   nested text   | text   text   beside text
"""
"""Where each framework puts what a tool returns in which form: WAV, MP4, PNG, PDF on each of `MODELS`.

`nested` in the function response, `beside` it in one content, a `turn` of its own, base64 in the response's `text`.
"""

FILES = ("tone.wav", "clip.mp4", "shot.png", "page.pdf")
SCENES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "wav": (("tone.wav",),),
    "mp4": (("clip.mp4",),),
    "png": (("shot.png",),),
    "pdf": (("page.pdf",),),
    "wav-and-png": (("tone.wav", "shot.png"),),
    "mp4-then-pdf": (("clip.mp4",), ("page.pdf",)),
    "wav-and-mp3": (("tone.wav", "chime.mp3"),),
}
"""The files the model asks for, turn by turn; in one turn they are asked for in parallel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation; `places` say where its files are expected on the wire."""

    framework: str
    form: str
    model: str
    scene: str
    places: Mapping[str, str]

    @property
    def label(self) -> str:
        return f"{self.framework}.{self.form}.{self.model}.{self.scene}"

    @property
    def files(self) -> list[str]:
        return [file for turn in SCENES[self.scene] for file in turn]

    @property
    def script(self) -> Script:
        return tuple(tuple(self._call(file) for file in turn) for turn in SCENES[self.scene])

    @property
    def job(self) -> dict[str, Any]:
        """A film is asked for in a stream; after a sound the user goes on, with the sound in the history."""
        more = ["And what else?"] if self.scene == "wav" else []
        prompts = [f"[{self.label}] Look at it.", *more]
        return {"label": self.label, "model": self.model, "prompts": prompts, "stream": self.scene == "mp4"}

    def _call(self, file: str) -> Call:
        args = {"artifact_names": [file]} if self.form == "load_artifacts" else {"file": file}
        return Call(name=self.form, args=args)


def cases() -> Iterator[Case]:
    for line in WIRE.strip().splitlines():
        framework, form, *cells = line.replace("|", "").split()
        for model, row in zip(MODELS, (cells[:4], cells[4:]), strict=True):
            places = dict(zip((*FILES, "chime.mp3"), (*row, row[0]), strict=True))
            for scene in ("wav", "wav-and-mp3") if "-" in row else SCENES.keys() - {"wav-and-mp3"}:
                yield Case(framework=framework, form=form, model=model, scene=scene, places=places)


CASES = sorted(cases(), key=lambda case: case.label)


@dataclass(frozen=True, slots=True)
class Wire:
    """What went over the wire."""

    files: Mapping[str, bytes]
    capture: Capture
    runs: Mapping[str, Future[None]]

    def of(self, case: Case) -> list[Captured]:
        """The requests of one conversation, once its framework is done."""
        self.runs[case.framework].result()
        return self.capture.of(case.label)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    folder, home = tmp_path_factory.mktemp("media"), tmp_path_factory.mktemp("home")
    files = drawn()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with Capture({case.label: case.script for case in CASES}) as capture, ThreadPoolExecutor(4) as pool:
        runs = {name: pool.submit(converse, name, capture.url, folder, home) for name in REQUIREMENTS}
        yield Wire(files, capture, runs)


def drawn() -> dict[str, bytes]:
    """Each a little over 4 KiB, so that its base64 is worth lifting."""
    noise = io.BytesIO()
    Image.frombytes("RGB", (38, 38), random.Random(3).randbytes(38 * 38 * 3)).save(noise, "PNG")
    return {
        "tone.wav": media.wav(0.27),
        "chime.mp3": media.sound(0.55, "libmp3lame", "mp3"),
        "clip.mp4": media.video(1.0, size=(96, 64), sound_s=0.2),
        "shot.png": noise.getvalue(),
        "page.pdf": media.pdf([(595.0, 842.0)] * 18),
    }


def converse(framework: str, url: str, folder: Path, home: Path) -> None:
    """Has a framework hold all its conversations, in an environment and a process of its own."""
    python = venv(framework, *REQUIREMENTS[framework])
    jobs = [case.job for case in CASES if case.framework == framework]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}
    run = subprocess.run(
        [str(python), str(DRIVERS / f"{framework}_driver.py"), url, str(folder)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=env | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    assert run.returncode == 0, run.stderr[-3000:]


def by_label(case: Case) -> str:
    return case.label


@pytest.mark.parametrize("case", CASES, ids=by_label)
def test_each_framework_sends_media_where_we_know(case: Case, wire: Wire) -> None:
    requests = wire.of(case)
    with_results = [json.loads(request.body) for request in requests[1:]]

    seen = {file: [wire_oracle.places(body, wire.files[file]) for body in with_results] for file in case.files}
    assert len(requests) == len(case.script) + len(case.job["prompts"])
    assert {request.model for request in requests} == {case.model}
    assert all(("stream" in request.method) == case.job["stream"] for request in requests)
    # ADK shows an artifact once, in the request that follows its call; everything else stays in the history.
    assert all({case.places[file]} in places for file, places in seen.items())
    assert all(places <= {case.places[file]} for file, found in seen.items() for places in found)


def test_frameworks_call_what_the_service_has(wire: Wire) -> None:
    for run in wire.runs.values():
        run.result()

    assert wire.capture.refused == []
    assert all(request.label for request in wire.capture.captured)


@pytest.mark.parametrize("case", CASES, ids=by_label)
def test_requests_read_and_written_are_the_same_to_the_byte(case: Case, wire: Wire) -> None:
    for request in wire.of(case):
        parsed = rest_json.parse(request.body)

        assert rest_json.emit(parsed.request, parsed) == request.body


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("case", CASES, ids=by_label)
def test_screened_requests_are_fit_to_send(case: Case, backend: Backend, wire: Wire, preflight: Preflight) -> None:
    asked = Asked(model=case.model, backend=backend)
    for request in wire.of(case):
        out = screened(preflight, request.body, asked)

        assert wire_oracle.complaints(request.body, out, case.model) == []
        assert screened(preflight, out, asked) == out


@pytest.fixture(scope="module")
def preflight() -> Iterator[Preflight]:
    with Preflight.from_config() as preflight:
        yield preflight
