"""What the tests of known traps share: a preflight of one endpoint, and a medium taken through it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from weighlock import Preflight
from weighlock.converters import rest_json
from weighlock.fitted import Fitted
from weighlock.media.facts import AudioFacts, VideoFacts
from weighlock.planning.weigh import Weighed
from weighlock.request import MediaPart, Modality
from weighlock.settings import load

Json = dict[str, Any]


def preflight(folder: Path, default: str = "model: gemini-2.5-flash", backend: str = "developer") -> Preflight:
    path = folder / "weighlock.yaml"
    account = {
        "developer": "{backend: developer, api_key_env: X}",
        "vertex": "{backend: vertex, project: p, location: global}",
    }[backend]
    path.write_text(f"version: 1\naccounts: {{a: {account}}}\ndefault: {{account: a, {default}}}\n")
    return Preflight(load(path, environ={}))


def weighed(line: Preflight, data: bytes, label: str = "medium", **asked: Any) -> Weighed:
    """One medium by its bytes."""
    (part,) = line.check(MediaPart(source=data, label=label), **asked).parts
    return part


def likely(part: Weighed) -> dict[Modality, int]:
    return {tokens.modality: tokens.likely for tokens in part.tokens if tokens.high}


def seconds(part: Weighed) -> float:
    facts = part.examined.facts
    assert isinstance(facts, AudioFacts | VideoFacts), part.error
    return facts.duration_s


def inline(data: bytes, mime: str | None, **beside: Any) -> Json:
    named = {} if mime is None else {"mimeType": mime}
    return {"inlineData": {**named, "data": base64.b64encode(data).decode()}, **beside}


def parsed(*parts: Json) -> rest_json.Parsed:
    return rest_json.parse(json.dumps({"contents": [{"role": "user", "parts": [{"text": "look"}, *parts]}]}).encode())


def weighed_request(line: Preflight, *parts: Json) -> list[Weighed]:
    """The media of a request, without its text."""
    return list(line.weigh_request(parsed(*parts).request).parts[:-1])


def sent(line: Preflight, *parts: Json) -> tuple[list[Json], Fitted]:
    """The parts of the body that leaves, once it is made to fit and the work on it is done, without the text."""
    read = parsed(*parts)
    fitted = line.carry_out(line.fit(read.request))
    body = json.loads(rest_json.emit(fitted.request, read))
    return body["contents"][0]["parts"][1:], fitted
