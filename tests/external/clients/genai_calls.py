"""Every call of google-genai that weighlock has to do with, against a base URL: `genai_calls.py URL SHOT`."""

import json
import sys
from typing import Any

from google import genai
from google.genai import errors, types


def main() -> None:
    url, shot = sys.argv[1:3]
    client: Any = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    told: dict[str, Any] = {"version": genai.__version__}
    with open(shot, "rb") as file:  # noqa: PTH123  # nothing of ours is installed here
        prompt = types.Content(
            role="user",
            parts=[types.Part.from_bytes(data=file.read(), mime_type="image/png"), types.Part(text="hi")],
        )
    answer = client.models.generate_content(model="gemini-3.5-flash", contents=prompt)
    told["generate"] = answer.usage_metadata.prompt_token_count
    pieces = list(client.models.generate_content_stream(model="gemini-3.5-flash", contents=prompt))
    told["stream"] = [len(pieces), pieces[-1].usage_metadata.prompt_token_count]
    told["count"] = client.models.count_tokens(model="gemini-3.5-flash", contents=prompt).total_tokens
    config = types.UploadFileConfig(name="files/mine", mime_type="image/png")
    uploaded: Any = client.files.upload(file=shot, config=config)
    told["upload"] = [uploaded.name, uploaded.state.name]
    part = types.Part.from_uri(file_uri=uploaded.uri, mime_type="image/png")
    used = client.models.generate_content(model="gemini-3.5-flash", contents=types.Content(role="user", parts=[part]))
    told["use"] = used.usage_metadata.prompt_token_count
    told["get"] = client.files.get(name="files/mine").size_bytes
    told["list"] = [one.name for one in client.files.list()]
    client.files.delete(name="files/mine")
    try:
        client.files.get(name="files/mine")
    except errors.ClientError as error:
        told["gone"] = [error.code, error.status]
    print(json.dumps(told))


main()
