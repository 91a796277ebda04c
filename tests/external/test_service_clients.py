"""Real clients, unchanged but for the base URL, before `weighlock serve`: each is served, and every token is booked.

Each makes a call with one medium of every kind, a stream, a tool call whose result is a sound and a turn after it, an
upload that is used at once and three days later, and a call over a limit, as far as it has them.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import media
from external.running import ENVIRONMENT, Running, running
from external.test_emulator_clients import node_of
from external.test_frameworks_wire import REQUIREMENTS
from external.venvs import npm_package, venv

pytestmark = pytest.mark.external

HERE = Path(__file__).parent
EVERYTHING = "The emulator was sent 1 IMAGE, 1 VIDEO, 1 AUDIO, 1 DOCUMENT, 1 TEXT parts."
SAW = "The emulator was sent 1 IMAGE, 1 TEXT parts."
HEARD_NOTHING = ["The emulator was sent 1 TEXT parts.", "The emulator was sent 3 TEXT parts."]
SENTENCE = (
    "app refuses even at its lightest: audio 1,500 tokens, limit 1,000 (rule gemini-3/audio, 2026-11-30)",
    "Raise limits.tokens.audio of app, or send less. Owner: team-apps.",
)
MEDIA = {"image": 4 * 1100, "video": 2 * 63, "audio": 25 + 2 * 25, "document": 532}
"""Tokens of the four pictures each of them sends, its film, that film's and its own sound, and its page; as sent."""
FILED = {"image": 4 * 1100 + 532, "video": 2 * (63 + 25), "audio": 25}
"""The same in Google's own buckets: a page is a picture there, and a film's sound part of it."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as service:
        service.script({"contains": "Listen.", "calls": [{"name": "listen", "args": {}}]})
        yield service


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    (folder / "shot.png").write_bytes(media.picture((1920, 1080)))
    (folder / "tone.wav").write_bytes(media.wav(1.0))
    (folder / "long.wav").write_bytes(media.wav(60.0))
    (folder / "clip.mp4").write_bytes(media.video(2.0, sound_s=2.0))
    (folder / "page.pdf").write_bytes(media.pdf([(595.0, 842.0)]))
    return folder


def told(command: list[str], served: Running, files: Path, *beside: str, prefix: str = "") -> dict[str, Any]:
    """What a client tells of its calls."""
    addressed = [*command, served.base_url + prefix, served.key, served.emulator_url, str(files), *beside]
    done = subprocess.run(addressed, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def demand_served(found: Mapping[str, Any], served: Running, *, expired: str = SAW) -> None:
    """What every client's user is to see, and whoever runs the service."""
    assert found["call"] == EVERYTHING
    assert len(found["stream"]) == 3
    assert "".join(found["stream"]) == SAW
    assert found["tool"] == HEARD_NOTHING
    assert (found["used"], found["expired"]) == (SAW, expired)
    assert all(words in found["refused"][-1] for words in SENTENCE)
    decisions = served.decisions()
    assert [one["screened"] for one in decisions if one["screened"]] == [{"removed": {"AUDIO": 1}}] * 2
    assert sum((Counter(one["reuploads"]) for one in decisions), Counter()) == {"refused": 1}
    assert [one["codes"] for one in decisions if one["outcome"] == "refused"] == [
        ["budget_exceeded", "limits.tokens.audio"]
    ]
    assert {one["status"] for one in served.requests()} == {200, 403}  # 403 of the file that was gone
    assert len([one for one in served.requests() if one["operation"] == "upload.finalize"]) == 2
    demand_booked(served, MEDIA, FILED)


def demand_booked(served: Running, sent: Mapping[str, int], filed: Mapping[str, int]) -> None:
    """`weighlock usage` and the decision log add up to the emulator's bill: tokens of media as sent, and as filed."""
    billed, booked = served.billed(), served.booked()
    of_all = {name: billed[name] for name in ("text", "output", "cached")}
    assert billed == {**of_all, **filed}
    assert booked == {**of_all, **sent}
    buckets: Counter[str] = Counter()
    for one in filter(None, (decision["billed"] for decision in served.decisions())):
        buckets.update({name.lower(): tokens for name, tokens in one["buckets"].items()})
    assert buckets == {"text": billed["text"], **filed}


@pytest.mark.parametrize(("version", "prefix"), [("2.34.0", "/endpoints/app"), ("3.6.1", "")])
def test_google_genai_for_python(served: Running, files: Path, version: str, prefix: str) -> None:
    python = venv(f"client-{version}", f"google-genai=={version}")

    found = told([str(python), str(HERE / "clients" / "service_genai.py")], served, files, prefix=prefix)

    demand_sdk(found, version)
    demand_served(found, served)


@pytest.mark.parametrize(("version", "node_major", "prefix"), [("2.32.0", 20, "/endpoints/app"), ("3.3.0", 22, "")])
def test_google_genai_for_node(served: Running, files: Path, version: str, node_major: int, prefix: str) -> None:
    home, node = npm_package("@google/genai", version), node_of(node_major)

    found = told([node, str(HERE / "clients" / "service_genai.mjs")], served, files, str(home), prefix=prefix)

    demand_sdk(found, version)
    demand_served(found, served)


def demand_sdk(found: Mapping[str, Any], version: str) -> None:
    """What the SDKs have beyond what every client has."""
    assert (found["version"], found["upload"], found["known"]) == (version, "ACTIVE", [True])
    assert found["receipt"] is True
    assert found["count"] == 1104  # the service counts one more than it bills
    assert found["refused"][:2] == [400, "INVALID_ARGUMENT"]


FRAMEWORKS = {
    "adk": ("ClientError", "The emulator was sent 1 IMAGE, 3 TEXT parts."),  # its session goes on
    "langchain": ("GoogleInvalidRequestError", SAW),
    "litellm": ("BadRequestError", SAW),
}
"""What a refusal is there, and what is answered three days later."""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_frameworks(served: Running, files: Path, framework: str) -> None:
    python = venv(framework, *REQUIREMENTS[framework])
    kind, expired = FRAMEWORKS[framework]

    found = told([str(python), str(HERE / "frameworks" / f"service_{framework}.py")], served, files)

    assert found["refused"][0] == kind
    demand_served(found, served, expired=expired)


def test_gemini_cli(served: Running, files: Path, tmp_path: Path) -> None:
    home = npm_package("@google/gemini-cli", "0.61.0")
    served.script({"contains": "Listen.", "calls": [{"name": "read_file", "args": {"file_path": "tone.wav"}}]})
    settings = tmp_path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(CLI_SETTINGS))
    environment = {
        **ENVIRONMENT,
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GOOGLE_GEMINI_BASE_URL": served.base_url,
        "GEMINI_API_KEY": served.key,
    }

    def asked(prompt: str, model: str = "gemini-2.5-flash") -> subprocess.CompletedProcess[str]:
        command = [node_of(20), str(home / "bundle" / "gemini.js"), "-m", model, "-p", prompt]
        return subprocess.run(
            command,
            cwd=files,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    shown = asked("Describe @shot.png @tone.wav @clip.mp4 @page.pdf")
    heard = [asked("Listen.", model) for model in ("gemini-2.5-flash", "gemini-3.8-flash")]
    refused = asked("Write down @long.wav")

    assert "sent 1 IMAGE, 1 VIDEO, 1 AUDIO, 1 DOCUMENT," in shown.stdout, shown.stderr
    assert all("sent 1 AUDIO," in one.stdout for one in heard), [one.stderr for one in heard]
    assert [one.returncode for one in (shown, *heard, refused)] == [0, 0, 0, 1]
    assert "app refuses even at its lightest: audio 1,920 tokens, limit 1,000" in refused.stderr
    assert SENTENCE[1] in refused.stderr
    decisions = served.decisions()
    assert [one["screened"] for one in decisions if one["screened"]] == [{"relocated": {"AUDIO": 1}}] * 2
    assert len([one for one in decisions if one["outcome"] == "refused"]) == 1  # nothing was tried again
    assert {one["status"] for one in served.requests()} == {200}
    assert [one["operation"] for one in served.requests()] == ["count", *["stream"] * 5, "count"]
    asis = {"image": 258, "video": 526, "audio": 3 * 32 + 32 + 25, "document": 258}
    demand_booked(served, asis, asis)


CLI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "maxAttempts": 2},
}
