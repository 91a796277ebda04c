# mypy: ignore-errors
"""LangChain through all that weighlock's service does for it: `service_langchain.py URL KEY EMULATOR FOLDER`."""

import base64
import json
import sys
import urllib.request
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI

URL, KEY, EMULATOR, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
MODEL = ChatGoogleGenerativeAI(model="gemini-3.5-flash", google_api_key=KEY, base_url=URL)


def block(kind: str, name: str, mime: str) -> dict:
    return {"type": kind, "base64": base64.b64encode((FOLDER / name).read_bytes()).decode(), "mime_type": mime}


def asked(words: str, *blocks: dict) -> dict:
    return {"role": "user", "content": [*blocks, {"type": "text", "text": words}]}


@tool
def listen() -> list:
    """Records sound."""
    return [{"type": "text", "text": "a tone"}, block("audio", "tone.wav", "audio/wav")]


def tool_result() -> list[str]:
    """A tool's sound, and a turn after it."""
    agent = create_agent(MODEL, [listen])
    first = agent.invoke({"messages": [asked("Listen.")]})["messages"]
    return [first[-1].text, agent.invoke({"messages": [*first, asked("And now?")]})["messages"][-1].text]


def upload() -> dict:
    """A file that is used at once, and three days later."""
    uploaded = MODEL.client.files.upload(file=FOLDER / "shot.png")
    turn = asked("Describe it.", {"type": "media", "file_uri": uploaded.uri, "mime_type": uploaded.mime_type})
    used = MODEL.invoke([turn]).text
    body = json.dumps({"advance_s": 3 * 86_400}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{EMULATOR}/emulator/clock", body)).close()  # noqa: S310
    return {"upload": uploaded.state.name, "used": used, "expired": MODEL.invoke([turn]).text}


def refused() -> list:
    try:
        MODEL.invoke([asked("Write it down.", block("audio", "long.wav", "audio/wav"))])
    except Exception as error:
        return [type(error).__name__, str(error)]


shot = block("image", "shot.png", "image/png")
others = [
    ("audio", "tone.wav", "audio/wav"),
    ("video", "clip.mp4", "video/mp4"),
    ("file", "page.pdf", "application/pdf"),
]
told = {"call": MODEL.invoke([asked("Describe it.", shot, *(block(*one) for one in others))]).text}
told["stream"] = [chunk.text for chunk in MODEL.stream([asked("Describe it.", shot)]) if chunk.text]
told |= {"tool": tool_result(), **upload(), "refused": refused()}
print(json.dumps(told))
