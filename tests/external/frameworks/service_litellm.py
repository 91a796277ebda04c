# mypy: ignore-errors
"""litellm through all that weighlock's service does for it: `service_litellm.py URL KEY EMULATOR FOLDER`."""

import base64
import json
import sys
import urllib.request
from pathlib import Path

import litellm

URL, KEY, EMULATOR, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
SCHEMA = {"type": "object", "properties": {}}
LISTENS = {"type": "function", "function": {"name": "listen", "description": "Records sound.", "parameters": SCHEMA}}


def uri(name: str, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode((FOLDER / name).read_bytes()).decode()}"


def asked(words: str, *blocks: dict) -> dict:
    return {"role": "user", "content": [*blocks, {"type": "text", "text": words}]}


def file(**fields: str) -> dict:
    return {"type": "file", "file": fields}


def complete(messages: list, **options):
    return litellm.completion(messages=messages, model="gemini/gemini-3.5-flash", api_base=URL, api_key=KEY, **options)


def said(messages: list, **options) -> str:
    return complete(messages, **options).choices[0].message.content


def tool_result() -> list[str]:
    """A tool's sound, and a turn after it."""
    messages = [asked("Listen.")]
    messages.append(complete(messages, tools=[LISTENS]).choices[0].message.model_dump())
    (call,) = messages[-1]["tool_calls"]
    content = [{"type": "text", "text": "a tone"}, file(filename="tone.wav", file_data=uri("tone.wav", "audio/wav"))]
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    heard = said(messages, tools=[LISTENS])
    return [heard, said([*messages, {"role": "assistant", "content": heard}, asked("And now?")], tools=[LISTENS])]


def upload() -> dict:
    """A file that is used at once, and three days later."""
    uploaded = litellm.create_file(
        file=FOLDER / "shot.png", purpose="user_data", custom_llm_provider="gemini", api_base=URL, api_key=KEY
    )
    turn = asked("Describe it.", file(file_id=uploaded.id, format="image/png"))
    used = said([turn])
    body = json.dumps({"advance_s": 3 * 86_400}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{EMULATOR}/emulator/clock", body)).close()  # noqa: S310
    return {"upload": uploaded.status, "used": used, "expired": said([turn])}


def refused() -> list:
    try:
        said([asked("Write it down.", file(filename="long.wav", file_data=uri("long.wav", "audio/wav")))])
    except litellm.BadRequestError as error:
        return [type(error).__name__, str(error)]


shot = {"type": "image_url", "image_url": {"url": uri("shot.png", "image/png")}}
others = [("tone.wav", "audio/wav"), ("clip.mp4", "video/mp4"), ("page.pdf", "application/pdf")]
told = {"call": said([asked("Describe it.", shot, *(file(filename=one[0], file_data=uri(*one)) for one in others))])}
pieces = complete([asked("Describe it.", shot)], stream=True)
told["stream"] = [text for piece in pieces if (text := piece.choices[0].delta.content)]
told |= {"tool": tool_result(), **upload(), "refused": refused()}
print(json.dumps(told))
