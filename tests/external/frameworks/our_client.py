# mypy: ignore-errors
"""An agent of a framework, given `weighlock.Client`: `our_client.py FRAMEWORK CONFIG FOLDER`. Prints what it saw."""

import asyncio
import base64
import json
import sys
from pathlib import Path

import weighlock
from weighlock.preflight import Preflight

FRAMEWORK, CONFIG, FOLDER = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
MODEL = "gemini-3.5-flash"


class Counting(Preflight):
    prepared = settled = 0

    async def _prepared(self, *given, **said):
        ready = await super()._prepared(*given, **said)
        Counting.prepared += 1
        return ready

    async def _settled(self, *given):
        receipt = await super()._settled(*given)
        Counting.settled += receipt.billed is not None and not receipt.billed.estimated
        return receipt


def pydantic_ai(client) -> list[str]:
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    def look() -> BinaryContent:
        """Takes a screenshot."""
        return BinaryContent(data=(FOLDER / "shot.png").read_bytes(), media_type="image/png")

    def listen() -> BinaryContent:
        """Records sound."""
        return BinaryContent(data=(FOLDER / "tone.wav").read_bytes(), media_type="audio/wav")

    async def run() -> list[str]:
        agent = Agent(GoogleModel(MODEL, provider=GoogleProvider(client=client)), tools=[look, listen])
        result = await agent.run("What do you see and hear?")
        async with agent.run_stream("And now?", message_history=result.all_messages()) as stream:
            said = [result.output, await stream.get_output()]
        await client.aio.aclose()
        return said

    return asyncio.run(run())


def langchain(client) -> list[str]:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_google_genai import ChatGoogleGenerativeAI

    def block(kind: str, name: str, mime: str) -> list:
        data = base64.b64encode((FOLDER / name).read_bytes()).decode()
        return [{"type": "text", "text": name}, {"type": kind, "base64": data, "mime_type": mime}]

    @tool
    def look() -> list:
        """Takes a screenshot."""
        return block("image", "shot.png", "image/png")

    @tool
    def listen() -> list:
        """Records sound."""
        return block("audio", "tone.wav", "audio/wav")

    model = ChatGoogleGenerativeAI(model=MODEL, google_api_key="none", max_retries=1)
    model.client = client
    agent = create_agent(model, [look, listen])
    messages = agent.invoke({"messages": [{"role": "user", "content": "What do you see and hear?"}]})["messages"]
    first = messages[-1].text
    for mode, chunk in agent.stream(
        {"messages": [*messages, {"role": "user", "content": "And now?"}]}, stream_mode=["messages", "values"]
    ):
        if mode == "values":
            messages = chunk["messages"]
    return [str(first() if callable(first) else first), str(messages[-1].content)]


with Counting(weighlock.load(CONFIG)) as preflight:
    client = weighlock.Client(preflight=preflight)
    said = {"pydantic_ai": pydantic_ai, "langchain": langchain}[FRAMEWORK](client)
    client.close()
    held = [left for _, left in preflight.store.counters().values() if any(left.values())]
    spent = sum(spent.get("prompt_tokens", 0) for spent, _ in preflight.store.counters().values())
print(
    json.dumps({"prepared": Counting.prepared, "settled": Counting.settled, "held": held, "spent": spent, "said": said})
)
