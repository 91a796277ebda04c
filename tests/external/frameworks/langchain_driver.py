# mypy: ignore-errors
"""LangChain and its Gemini model, its tools returning media: `langchain_driver.py URL FOLDER < jobs.json`.

A job is `{"label", "model", "prompts", "stream"}`; each prompt is a user turn of one conversation.
"""

import base64
import json
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI

URL, FOLDER = sys.argv[1], Path(sys.argv[2])
MIME = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".png": "image/png", ".pdf": "application/pdf"}
BLOCK = {"audio/wav": "audio", "video/mp4": "video", "image/png": "image", "application/pdf": "file"}


def read(file: str) -> tuple[str, str]:
    path = FOLDER / file
    return base64.b64encode(path.read_bytes()).decode(), MIME[path.suffix]


@tool
def as_block(file: str) -> list:
    """Returns the file as a standard content block, with a remark."""
    data, mime = read(file)
    return [{"type": "text", "text": f"remark on {file}"}, {"type": BLOCK[mime], "base64": data, "mime_type": mime}]


@tool
def as_media(file: str) -> list:
    """Returns the file as this integration's own block, with a remark."""
    data, mime = read(file)
    return [{"type": "text", "text": f"remark on {file}"}, {"type": "media", "data": data, "mime_type": mime}]


@tool
def as_image_url(file: str) -> list:
    """Returns the file as an OpenAI block, with a remark."""
    data, mime = read(file)
    url = {"url": f"data:{mime};base64,{data}"}
    return [{"type": "text", "text": f"remark on {file}"}, {"type": "image_url", "image_url": url}]


@tool(response_format="content_and_artifact")
def as_artifact(file: str) -> tuple:
    """Returns the file as a content block, and its bytes for the program."""
    return as_block.func(file), (FOLDER / file).read_bytes()


@tool
def as_dict(file: str) -> dict:
    """Returns the file as base64."""
    data, mime = read(file)
    return {"remark": f"remark on {file}", "mime_type": mime, "data": data}


def run(job: dict) -> None:
    model = ChatGoogleGenerativeAI(model=job["model"], google_api_key="none", base_url=URL, max_retries=1)
    tools = [as_block, as_media, as_image_url, as_artifact, as_dict]
    agent = create_agent(model, tools, system_prompt="Look at files.")
    messages = []
    for prompt in job["prompts"]:
        messages.append({"role": "user", "content": prompt})
        if job["stream"]:
            # Streaming by message lets the model itself stream.
            for mode, chunk in agent.stream({"messages": messages}, stream_mode=["messages", "values"]):
                if mode == "values":
                    result = chunk
        else:
            result = agent.invoke({"messages": messages})
        messages = result["messages"]


for each in json.load(sys.stdin):
    run(each)
