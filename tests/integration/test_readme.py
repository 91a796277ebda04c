"""What the README shows is what happens."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from google import genai
from google.oauth2.credentials import Credentials
from starlette.datastructures import UploadFile

from weighlock.cli import cli
from weighlock.codecs.samples import draw_request, draw_samples
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    fenced = README.split("```")[1::2]
    return [body for name, _, body in (block.partition("\n") for block in fenced) if name == language]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    draw_samples(folder / "samples")
    draw_request(folder / "request.json", folder / "samples" / "screenshot.png")
    for name in ("recording.mp4", "screenshot.png"):
        (folder / name).write_bytes((folder / "samples" / name).read_bytes())
    (folder / "shot.png").write_bytes((folder / "screenshot.png").read_bytes())
    (folder / "uploads").mkdir()
    (folder / "uploads" / "a.png").write_bytes((folder / "screenshot.png").read_bytes())
    return folder


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "100")


def test_the_python_example_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(block for block in blocks("python") if "weighlock.check" in block)

    exec(compile(example, "README.md", "exec"), {})  # noqa: S102  # our own README

    said = [line.split("#")[1].strip() for line in example.splitlines() if line.startswith("print") and "#" in line]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] in said[0].replace(",", "")
    assert printed[1] == said[1]
    assert printed[2:] == ["no refusal", "True"]


def test_the_example_of_a_request_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(block for block in blocks("python") if "rest_json.parse" in block)

    exec(compile(example, "README.md", "exec"), {})  # noqa: S102  # our own README

    said = [line.split("#")[1].strip() for line in example.splitlines() if line.startswith("print")]
    printed = capsys.readouterr().out.splitlines()
    said[1] = said[1].replace(",", "").removesuffix(" tokens")
    assert printed == said


def test_the_table_of_a_request_is_the_one_that_is_printed() -> None:
    result = CliRunner().invoke(cli, ["check", "request.json"])

    shown = next(block for block in blocks("") if "request.json" in block)
    rows = [line.split() for line in shown.splitlines()]
    printed = [line.split() for line in result.stdout.splitlines()]
    assert rows[:-2] == printed[:-2]  # the last two tell of a price change


def test_the_table_is_the_one_that_is_printed() -> None:
    result = CliRunner().invoke(cli, ["check", "samples"])

    shown = next(block for block in blocks("") if "tokens as sent" in block)
    rows = [line.split() for line in shown.splitlines() if "samples/" not in line][:7]
    printed = [line.split() for line in result.stdout.splitlines() if "samples/" not in line][:7]
    assert rows == printed


def test_the_table_of_a_fit_is_the_one_that_is_printed() -> None:
    command = next(line for block in blocks("bash") for line in block.splitlines() if line.startswith("weighlock fit"))

    result = CliRunner().invoke(cli, shlex.split(command)[1:])

    shown = next(block for block in blocks("") if block.startswith("files · ")).splitlines()
    assert shown == result.stdout.splitlines()[: len(shown)]
    assert all(line.startswith(("Price change", "1M")) for line in result.stdout.splitlines()[len(shown) :])


@pytest.mark.parametrize(
    "command",
    [
        line.split("#")[0].split("|")[0].strip()
        for block in blocks("bash")
        for line in block.splitlines()
        if re.match(r"weighlock (check|fit|convert|rules|config|doctor)", line)
    ],
)
def test_every_command_shown_runs(command: str) -> None:
    result = CliRunner().invoke(cli, shlex.split(command)[1:])

    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in (0, 3), result.output


def shell(about: str) -> list[str]:
    """The commands of the block that is about something."""
    block = next(block for block in blocks("sh") if about in block)
    return [line.split("#")[0].strip() for line in block.splitlines()]


@pytest.mark.parametrize("about", ["weighlock upload ", "weighlock count "])
def test_what_is_said_to_the_service_runs_with_the_settings_shown(
    about: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", "any")
    Path("weighlock.yaml").write_text(next(block for block in blocks("yaml") if "# weighlock.yaml" in block))

    with Emulator() as emulator:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
        for command in shell(about):
            result = CliRunner().invoke(cli, shlex.split(command)[1:])
            assert result.exit_code == 0, (command, result.output)
        asked = len(list(emulator.requests))

    assert asked
    assert (tmp_path / "state" / "uploads.db").is_file() is ("upload" in about)


def test_the_example_of_budgets_prints_what_its_comments_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example = next(block for block in blocks("python") if "Ledger" in block)
    Path("budgets.yaml").write_text(next(block for block in blocks("yaml") if "# budgets.yaml" in block))
    monkeypatch.setenv("WEIGHLOCK_STATE__DIR", str(tmp_path))

    exec(compile(example, "README.md", "exec"), {})  # noqa: S102  # our own README

    expected = [line.rpartition("  # ")[2] for line in example.splitlines() if "print(" in line]
    assert capsys.readouterr().out.splitlines() == expected


def test_the_example_of_the_emulator_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(block for block in blocks("python") if "Emulator" in block)

    exec(compile(example, "README.md", "exec"), {})  # noqa: S102  # our own README

    said = [line.split("#")[1].strip() for line in example.splitlines() if line.strip().startswith("print")]
    assert capsys.readouterr().out.splitlines() == said


class Application:
    """As much of FastAPI as the README shows."""

    def post(self, path: str) -> Callable[[Any], Any]:
        def kept(handler: Any) -> Any:
            self.__dict__[path.strip("/")] = handler
            return handler

        return kept


def test_the_program_in_front_of_every_request_prints_what_its_comments_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = README.partition("## In front of every request")[2].partition("\n## ")[0].split("```")[1::2]
    yaml, first, application, agent, plain = (block.partition("\n")[2] for block in shown[:5])
    commands = [line.split("#")[0].strip() for line in shown[5].splitlines()[1:]]
    for name in ("endpoints.yaml", "weighlock.yaml", "stricter.yaml"):
        (tmp_path / name).write_text(f"{yaml}state: {{dir: state}}\n")
    (tmp_path / "recording.mp4").write_bytes(Path("recording.mp4").read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", "any")
    monkeypatch.setattr("google.auth.default", lambda **_: (Credentials("token"), "acme-prod"))  # type: ignore[no-untyped-call]
    fastapi = ModuleType("fastapi")
    fastapi.__dict__.update(FastAPI=Application, HTTPException=RuntimeError, UploadFile=UploadFile)
    monkeypatch.setitem(sys.modules, "fastapi", fastapi)

    def look() -> str:
        """Looks."""
        return "a button"

    with Emulator(processing_s=0.0) as emulator:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", emulator.base_url)
        program: dict[str, Any] = {"look": look, "plain": genai.Client(api_key="any")}
        emulator.script.queue("fine")
        exec(compile(first, "README.md", "exec"), program)  # noqa: S102  # our own README
        outcome, told = capsys.readouterr().out.splitlines()
        said = [line.rpartition("  # ")[2] for line in first.splitlines() if line.startswith("print")]
        assert outcome == said[0]
        assert re.sub(r"<Modality\.(\w+): '\w+'>", r"\1", told) == said[1]
        emulator.script.queue("the proxy")
        exec(compile(application, "README.md", "exec"), program)  # noqa: S102
        with Path("recording.mp4").open("rb") as file:
            upload = UploadFile(file, filename="recording.mp4")

            async def triaged() -> str:
                told: str = await program["app"].triage(upload)
                await program["client"].aio.aclose()
                return told

            assert asyncio.run(triaged()) == "the proxy"
        emulator.script.queue(Answer(calls=({"name": "look", "args": {}},)), "there")
        exec(compile(agent, "README.md", "exec"), program)  # noqa: S102
        exec(compile(plain, "README.md", "exec"), program)  # noqa: S102
        assert capsys.readouterr().out == "there\n"
        assert program["receipt"].billed is not None
        program["preflight"].close()
        for command in commands:
            result = CliRunner().invoke(cli, shlex.split(command)[1:])
            assert result.exit_code == 0, (command, result.output)
    assert len(Path("decisions.jsonl").read_text().splitlines()) == 5


def test_the_table_of_metrics_is_the_one_that_is_kept() -> None:
    from weighlock.observe import metrics

    rows = {
        line.split("|")[1].strip().strip("`"): line for line in README.splitlines() if line.startswith("| `weighlock_")
    }
    told = {
        one.name: f"| `{one.name}` | {one.kind.value} | {', '.join(one.labels)} | {one.help} |" for one in metrics.EVERY
    }

    assert rows == told


def test_rules_and_dashboard_ask_for_metrics_there_are() -> None:
    from weighlock.observe import metrics

    config = Path(__file__).parents[2] / "config"
    texts = [path.read_text() for path in (*config.glob("prometheus/*.yml"), config / "grafana/weighlock.json")]
    asked = set(re.findall(r"(?<![:\w])weighlock_[a-z0-9_]+", "\n".join(texts)))
    kept = {one.name for one in metrics.EVERY}
    kept |= {f"{one.name}{end}" for one in metrics.EVERY for end in ("_sum", "_count", "_bucket")}

    assert asked <= kept


def test_the_proxy_is_started_and_asked_as_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = next(block for block in blocks("sh") if "weighlock serve" in block)
    serve, curl = block.splitlines()[1].split("#")[0].split(), shlex.split(block.splitlines()[2])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from weighlock.cli import main; main()",
        *serve[1:],
        "--listen",
        f"127.0.0.1:{port}",
    ]
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(home / "state"),
        "WEIGHLOCK_SERVICE__ADMIN": "127.0.0.1:0",
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stdout is not None
        assert f"http://127.0.0.1:{port}" in running.stdout.readline()
        kind, url = curl[curl.index("-H") + 1].split(": ")[1], curl[-1].replace("8080", str(port))
        answer = httpx2.post(url, content=(home / "shot.png").read_bytes(), headers={"content-type": kind}, timeout=20)
        running.terminate()
    assert answer.json()["parts"][0]["mime"] == "image/png"
    assert running.returncode == 0
