"""Captures anew what `tests/fixtures/wire` keeps: `PYTHONPATH=tests .venv/bin/python -m external.keep_fixtures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from external.capture import Capture
from external.test_frameworks_wire import CASES, converse, drawn

KEPT = Path(__file__).parents[1] / "fixtures" / "wire"

NAMES = {
    "adk": "adk-2.13",
    "langchain": "langchain-google-genai-4.4",
    "litellm": "litellm-1.110",
    "pydantic_ai": "pydantic-ai-2.68",
}

CHOSEN = (
    "adk.as_part.gemini-3.5-flash.wav",
    "adk.as_part.gemini-2.5-flash.png",
    "adk.as_part_in_dict.gemini-3.5-flash.mp4-then-pdf",
    "adk.as_dict.gemini-3.5-flash.wav-and-png",
    "adk.as_mcp.gemini-3.5-flash.png",
    "adk.as_mcp.gemini-2.5-flash.mp4-then-pdf",
    "adk.load_artifacts.gemini-3.5-flash.wav-and-png",
    "langchain.as_block.gemini-3.5-flash.wav",
    "langchain.as_block.gemini-3.5-flash.wav-and-png",
    "langchain.as_image_url.gemini-2.5-flash.mp4-then-pdf",
    "litellm.as_data_uri.gemini-3.5-flash.mp4-then-pdf",
    "litellm.as_file.gemini-3.5-flash.wav-and-png",
    "litellm.as_image_url.gemini-2.5-flash.wav-and-png",
    "litellm.as_input_audio.gemini-3.5-flash.wav",
    "pydantic_ai.as_binary.gemini-2.5-flash.pdf",
    "pydantic_ai.as_list.gemini-3.5-flash.wav-and-png",
)
"""Of each of these conversations the last request, byte for byte as it came."""


def main() -> None:
    chosen = [case for case in CASES if case.label in CHOSEN]
    with tempfile.TemporaryDirectory() as scratch, Capture({case.label: case.script for case in chosen}) as capture:
        folder, home = Path(scratch, "media"), Path(scratch, "home")
        folder.mkdir()
        home.mkdir()
        for name, data in drawn().items():
            (folder / name).write_bytes(data)
        for framework in NAMES:
            converse(framework, capture.url, folder, home)
        for case in chosen:
            form = case.form.removeprefix("as_").replace("_", "-")
            name = f"{NAMES[case.framework]}-{form}-{case.scene}-{case.model}.json"
            (KEPT / name).write_bytes(capture.of(case.label)[-1].body)


if __name__ == "__main__":
    main()
