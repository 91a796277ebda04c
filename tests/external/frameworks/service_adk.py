# mypy: ignore-errors
"""A google-adk agent through all that weighlock's service does for it: `service_adk.py URL KEY EMULATOR FOLDER`."""

import asyncio
import json
import sys
import urllib.request
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

URL, KEY, EMULATOR, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
MODEL = Gemini(model="gemini-3.5-flash", base_url=URL, client_kwargs={"api_key": KEY})


def part(name: str, mime: str) -> types.Part:
    return types.Part.from_bytes(data=(FOLDER / name).read_bytes(), mime_type=mime)


def listen():
    """Records sound."""
    return part("tone.wav", "audio/wav")


class Talk:
    """One session of an agent."""

    async def begin(self) -> "Talk":
        agent = LlmAgent(name="looker", model=MODEL, instruction="Look and listen.", tools=[listen])
        self.runner = InMemoryRunner(agent=agent)
        self.session = await self.runner.session_service.create_session(app_name=self.runner.app_name, user_id="u")
        return self

    async def events(self, *parts, stream=False) -> list:
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        message = types.UserContent(list(parts))
        run = self.runner.run_async(user_id="u", session_id=self.session.id, new_message=message, run_config=config)
        return [event async for event in run]

    async def ask(self, *parts) -> str:
        return (await self.events(*parts))[-1].content.parts[0].text


async def streamed() -> list[str]:
    events = await (await Talk().begin()).events(part("shot.png", "image/png"), "Describe it.", stream=True)
    return [event.content.parts[0].text for event in events if event.partial]


async def upload() -> dict:
    """A file that is used at once, and three days later in the same session."""
    uploaded = MODEL.api_client.files.upload(file=FOLDER / "shot.png")
    talk = await Talk().begin()
    reference = types.Part.from_uri(file_uri=uploaded.uri, mime_type=uploaded.mime_type)
    used = await talk.ask(reference, "Describe it.")
    body = json.dumps({"advance_s": 3 * 86_400}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{EMULATOR}/emulator/clock", body)).close()  # noqa: S310
    return {"upload": uploaded.state.name, "used": used, "expired": await talk.ask("And now?")}


async def refused() -> list:
    """As the program sees it: ADK raises, or tells an event."""
    try:
        events = await (await Talk().begin()).events(part("long.wav", "audio/wav"), "Write it down.")
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["event", events[-1].error_message]


async def main() -> None:
    others = [part("tone.wav", "audio/wav"), part("clip.mp4", "video/mp4"), part("page.pdf", "application/pdf")]
    told = {"call": await (await Talk().begin()).ask(part("shot.png", "image/png"), *others, "Describe it.")}
    told["stream"] = await streamed()
    talk = await Talk().begin()
    told["tool"] = [await talk.ask("Listen."), await talk.ask("And now?")]
    told |= await upload()
    told["refused"] = await refused()
    print(json.dumps(told))


asyncio.run(main())
