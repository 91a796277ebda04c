# mypy: ignore-errors
"""litellm's `completion` in a tool loop, results as content lists: `litellm_driver.py URL FOLDER < jobs.json`.

A job is `{"label", "model", "prompts", "stream"}`; each prompt is a user turn of one conversation.
"""

import base64
import json
import sys
from pathlib import Path

import litellm

URL, FOLDER = sys.argv[1], Path(sys.argv[2])
MIME = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".png": "image/png", ".pdf": "application/pdf"}


def read(file: str) -> tuple[str, str]:
    path = FOLDER / file
    return base64.b64encode(path.read_bytes()).decode(), MIME[path.suffix]


def remark(file: str) -> dict:
    return {"type": "text", "text": f"remark on {file}"}


def as_image_url(file: str) -> list:
    data, mime = read(file)
    return [remark(file), {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}]


def as_input_audio(file: str) -> list:
    return [remark(file), {"type": "input_audio", "input_audio": {"data": read(file)[0], "format": file[-3:]}}]


def as_file(file: str) -> list:
    data, mime = read(file)
    return [remark(file), {"type": "file", "file": {"filename": file, "file_data": f"data:{mime};base64,{data}"}}]


def as_text(file: str) -> str:
    data, mime = read(file)
    return json.dumps({"remark": f"remark on {file}", "mime_type": mime, "data": data})


def as_data_uri(file: str) -> str:
    data, mime = read(file)
    return f"data:{mime};base64,{data}"


TOOLS = {tool.__name__: tool for tool in (as_image_url, as_input_audio, as_file, as_text, as_data_uri)}
SCHEMA = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
DECLARED = [
    {"type": "function", "function": {"name": name, "description": "Returns the file.", "parameters": SCHEMA}}
    for name in TOOLS
]


def answer(job: dict, messages: list) -> dict:
    asked = {"model": f"gemini/{job['model']}", "api_base": URL, "api_key": "none", "tools": DECLARED}
    if not job["stream"]:
        return litellm.completion(messages=messages, **asked).choices[0].message.model_dump()
    chunks = list(litellm.completion(messages=messages, stream=True, **asked))
    return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message.model_dump()


def run(job: dict) -> None:
    messages = [{"role": "system", "content": "Look at files."}]
    for prompt in job["prompts"]:
        messages.append({"role": "user", "content": prompt})
        messages.append(answer(job, messages))
        while calls := messages[-1].get("tool_calls"):
            for call in calls:
                content = TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            messages.append(answer(job, messages))


for each in json.load(sys.stdin):
    run(each)
