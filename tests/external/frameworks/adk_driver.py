# mypy: ignore-errors
"""google-adk, its tools returning media in the ways ADK knows: `adk_driver.py URL FOLDER < jobs.json`.

A job is `{"label", "model", "prompts", "stream"}`; each prompt is a user turn of one session.
"""

import asyncio
import base64
import json
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.load_artifacts_tool import load_artifacts_tool
from google.genai import types

URL, FOLDER = sys.argv[1], Path(sys.argv[2])
MIME = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".png": "image/png", ".pdf": "application/pdf"}


def read(file: str) -> tuple[bytes, str]:
    path = FOLDER / file
    return path.read_bytes(), MIME[path.suffix]


def as_part(file: str):
    """Returns the file as a part."""
    data, mime = read(file)
    return types.Part.from_bytes(data=data, mime_type=mime)


def as_part_in_dict(file: str):
    """Returns the file as a part, with a remark."""
    return {"remark": f"remark on {file}", "media": [as_part(file)]}


def as_dict(file: str) -> dict:
    """Returns the file as base64."""
    data, mime = read(file)
    return {"remark": f"remark on {file}", "mime_type": mime, "data": base64.b64encode(data).decode()}


def as_mcp(file: str) -> dict:
    """Returns the file as an MCP server would."""
    data, mime = read(file)
    kind, encoded = mime.split("/")[0], base64.b64encode(data).decode()
    block = {"type": kind, "data": encoded, "mimeType": mime}
    if kind not in ("image", "audio"):
        block = {"type": "resource", "resource": {"uri": f"file:///{file}", "mimeType": mime, "blob": encoded}}
    return {"content": [{"type": "text", "text": f"remark on {file}"}, block], "isError": False}


async def run(job: dict) -> None:
    model = Gemini(model=job["model"], base_url=URL, client_kwargs={"api_key": "none"})
    tools = [as_part, as_part_in_dict, as_dict, as_mcp, load_artifacts_tool]
    runner = InMemoryRunner(agent=LlmAgent(name="looker", model=model, instruction="Look at files.", tools=tools))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    for file in sorted(FOLDER.iterdir()):
        await runner.artifact_service.save_artifact(
            app_name=runner.app_name,
            user_id="u",
            session_id=session.id,
            filename=file.name,
            artifact=as_part(file.name),
        )
    config = RunConfig(streaming_mode=StreamingMode.SSE if job["stream"] else StreamingMode.NONE)
    for prompt in job["prompts"]:
        content = types.Content(role="user", parts=[types.Part(text=prompt)])
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=content, run_config=config):
            if event.error_code:
                print(job["label"], event.error_code, event.error_message, file=sys.stderr)


async def main() -> None:
    for job in json.load(sys.stdin):
        await run(job)


asyncio.run(main())
