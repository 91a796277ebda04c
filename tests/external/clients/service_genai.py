"""google-genai through all that weighlock's service does for it: `service_genai.py URL KEY EMULATOR FOLDER`."""

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from google import genai
from google.genai import errors, types

URL, KEY, EMULATOR, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
MODEL = "gemini-3.5-flash"
LISTENS = types.Tool(function_declarations=[types.FunctionDeclaration(name="listen", description="Records sound.")])
client: Any = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))


def part(name: str, mime: str) -> types.Part:
    return types.Part.from_bytes(data=(FOLDER / name).read_bytes(), mime_type=mime)


def asked(*parts: Any) -> types.Content:
    return types.UserContent(list(parts))


def everything() -> types.Content:
    kinds = ("image/png", "audio/wav", "video/mp4", "application/pdf")
    named = zip(("shot.png", "tone.wav", "clip.mp4", "page.pdf"), kinds, strict=True)
    return asked(*(part(name, mime) for name, mime in named), "Describe it.")


def tool() -> list[str]:
    """A tool's sound, and a turn after it."""
    turns: list[Any] = [asked("Listen.")]
    config = types.GenerateContentConfig(
        tools=[LISTENS], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    calls = client.models.generate_content(model=MODEL, contents=turns, config=config)
    blob = types.FunctionResponseBlob(mime_type="audio/wav", data=(FOLDER / "tone.wav").read_bytes())
    answer = types.FunctionResponse(
        name=calls.function_calls[0].name,
        id=calls.function_calls[0].id,
        response={"heard": "a tone"},
        parts=[types.FunctionResponsePart(inline_data=blob)],
    )
    turns += [calls.candidates[0].content, types.Content(role="user", parts=[types.Part(function_response=answer)])]
    heard = client.models.generate_content(model=MODEL, contents=turns, config=config)
    turns += [heard.candidates[0].content, asked("And now?")]
    return [heard.text, client.models.generate_content(model=MODEL, contents=turns, config=config).text]


def upload() -> dict[str, object]:
    """A file that is used at once, and three days later."""
    uploaded = client.files.upload(file=FOLDER / "shot.png")
    turn = asked(types.Part.from_uri(file_uri=uploaded.uri, mime_type=uploaded.mime_type), "Describe it.")
    used = client.models.generate_content(model=MODEL, contents=turn).text
    known = [one.name == uploaded.name for one in client.files.list()]
    three_days_on()
    expired = client.models.generate_content(model=MODEL, contents=turn).text
    return {"upload": uploaded.state.name, "known": known, "used": used, "expired": expired}


def three_days_on() -> None:
    body = json.dumps({"advance_s": 3 * 86_400}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{EMULATOR}/emulator/clock", body)).close()  # noqa: S310


def refused() -> list[object]:
    try:
        client.models.generate_content(model=MODEL, contents=asked(part("long.wav", "audio/wav"), "Write it down."))
    except errors.ClientError as error:
        return [error.code, error.status, error.message]
    return []


def main() -> None:
    shot = asked(part("shot.png", "image/png"), "Describe it.")
    told: dict[str, object] = {"version": genai.__version__}
    answer = client.models.generate_content(model=MODEL, contents=everything())
    told["call"] = answer.text
    headers, prompt = answer.sdk_http_response.headers, answer.usage_metadata.prompt_token_count
    told["receipt"] = headers["x-weighlock-billed"].startswith(f"prompt={prompt},")
    told["stream"] = [piece.text for piece in client.models.generate_content_stream(model=MODEL, contents=shot)]
    told["count"] = client.models.count_tokens(model=MODEL, contents=shot).total_tokens
    told |= {"tool": tool(), **upload(), "refused": refused()}
    print(json.dumps(told))


main()
