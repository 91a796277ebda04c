# mypy: ignore-errors
"""pydantic-ai, its tools returning media in the ways it knows: `pydantic_ai_driver.py URL FOLDER < jobs.json`.

A job is `{"label", "model", "prompts", "stream"}`; each prompt is a user turn of one conversation.
"""

import asyncio
import base64
import json
import sys
from pathlib import Path

from pydantic_ai import Agent, BinaryContent, ToolReturn
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

URL, FOLDER = sys.argv[1], Path(sys.argv[2])
MIME = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".png": "image/png", ".pdf": "application/pdf"}


def read(file: str) -> tuple[bytes, str]:
    path = FOLDER / file
    return path.read_bytes(), MIME[path.suffix]


def as_binary(file: str) -> BinaryContent:
    """Returns the file."""
    data, mime = read(file)
    return BinaryContent(data=data, media_type=mime)


def as_list(file: str) -> list:
    """Returns the file, with a remark."""
    return [f"remark on {file}", as_binary(file)]


def as_tool_return(file: str) -> ToolReturn:
    """Returns a remark, and the file for the user's turn."""
    return ToolReturn(return_value=f"remark on {file}", content=[f"This is {file}:", as_binary(file)])


def as_dict(file: str) -> dict:
    """Returns the file as base64."""
    data, mime = read(file)
    return {"remark": f"remark on {file}", "mime_type": mime, "data": base64.b64encode(data).decode()}


async def run(job: dict) -> None:
    model = GoogleModel(job["model"], provider=GoogleProvider(api_key="none", base_url=URL))
    agent = Agent(model, instructions="Look at files.", tools=[as_binary, as_list, as_tool_return, as_dict])
    history = []
    for prompt in job["prompts"]:
        if job["stream"]:
            async with agent.run_stream(prompt, message_history=history) as result:
                await result.get_output()
        else:
            result = await agent.run(prompt, message_history=history)
        history = result.all_messages()


async def main() -> None:
    for job in json.load(sys.stdin):
        await run(job)


asyncio.run(main())
