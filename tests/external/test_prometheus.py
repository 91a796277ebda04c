"""A real Prometheus reads what we tell: rules, alerts, and every expression of the dashboard, over a scripted hour."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.genai.errors import APIError
from prometheus_client import CollectorRegistry

import films
import media
from emulated import Wire, called, inline, result, user
from fake_io import START, FakeClock, FakeSyncIo
from prepared import settings
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer
from weighlock.errors import BudgetExceeded
from weighlock.observe import metrics as m
from weighlock.preflight import Preflight

pytestmark = pytest.mark.external

CONFIG = Path(__file__).parents[2] / "config"
RULES = CONFIG / "prometheus"
MODEL = "gemini-3.8-flash"
YAML = f"""
default: {{model: {MODEL}}}
uploads: {{inline_below: {{developer: 100KB}}}}
endpoints:
  bug_triage:
    owner: team-support
    mode: enforce
    limits: {{prompt_tokens: 3000}}
    windows: {{day: {{cost_usd: 5, prompt_tokens: 10000000}}}}
    history: {{keep_media: 1, batch: 1}}
    media: {{video: {{clip: last 10s}}, levers: [history, clip, resolution]}}
"""
MINUTES = 60


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def run(*command: str, cwd: Path = RULES) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules_are_right_and_every_alert_fires_when_it_should_and_not_when_not() -> None:
    promtool = program("promtool")
    run(promtool, "check", "config", "prometheus.yml")
    run(promtool, "check", "rules", "recording.rules.yml", "alerts.rules.yml")
    run(promtool, "test", "rules", "alerts.test.yml")
    alerts = set(re.findall(r"- alert: (\w+)", (RULES / "alerts.rules.yml").read_text()))
    cases = (RULES / "alerts.test.yml").read_text()
    told = re.findall(r"alertname: (\w+)\n(?:.*\n)?\s+exp_alerts:\n", cases)
    quiet = re.findall(r"alertname: (\w+), exp_alerts: \[\]", cases)
    assert alerts == set(told) == set(quiet)


class Hour:
    """Traffic of all kinds, minute by minute, and what a scrape saw after each."""

    def __init__(self, folder: Path, wire: Wire) -> None:
        self.clock, self.registry, self.wire = FakeClock(), CollectorRegistry(), wire
        self.seen: dict[str, tuple[str, list[str]]] = {}
        known = settings(folder, YAML)
        self.preflight = Preflight(known, preload=False, io=FakeSyncIo(self.clock), registry=self.registry)
        self.shot = inline(media.picture((640, 480)), "image/png")
        self.film = inline(films.film(6.0), "video/mp4")
        self.long = inline(media.endless(240.0), "video/x-matroska")
        self.sound = result("listen", inline(media.wav(0.5), "audio/wav"))
        self.turns: list[Any] = []

    def minute(self, at: int) -> None:
        self.asked([user("look", self.shot, self.film)])
        self.asked([user("hear"), called("listen"), user(self.sound)])
        self.turns += [user("turn", self.shot)]
        self.asked(self.turns[-8:])
        self.turns += [{"role": "model", "parts": [{"text": "seen"}]}]
        if at % 10 == 0:
            with pytest.raises(BudgetExceeded):
                self.asked([user("x" * 90_000)])
            self.lost()
        if at % 20 == 5:
            self.file_gone()
        self.clock.passed_s += 60
        self.scraped()

    def asked(self, contents: list[Any]) -> None:
        ready = self.preflight.prepare(json.dumps({"contents": contents}).encode(), endpoint="bug_triage")
        self.preflight.settle(ready, self.answer(ready))

    def answer(self, ready: Any) -> Any:
        self.wire.emulator.script.queue(Answer(text="a window", thoughts=20))
        return self.wire.http.post(f"/v1beta/models/{MODEL}:generateContent", content=ready.body).json()

    def lost(self) -> None:
        """Nobody tells the bill."""
        self.preflight.settle(self.preflight.prepare(b'{"contents": [{"parts": [{"text": "?"}]}]}'))

    def file_gone(self) -> None:
        big = inline(media.picture((2000, 1500), "BMP"), "image/bmp")
        ready = self.preflight.prepare(json.dumps({"contents": [user(big)]}).encode(), endpoint="bug_triage")
        self.preflight.settle(ready, self.answer(ready))
        ready = self.preflight.prepare(json.dumps({"contents": [user(big)]}).encode(), endpoint="bug_triage")
        (file,) = ready.receipt.uploads.values()
        self.wire.http.delete(f"/v1beta/{file.name}")
        self.clock.passed_s += 120
        told = f"You do not have permission to access the File {file.name.partition('/')[2]} or it may not exist."
        mended = self.preflight.mend(
            ready, APIError(403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": told}})
        )
        assert mended is not None
        self.preflight.settle(mended, self.answer(mended))

    def scraped(self) -> None:
        seconds = (START + timedelta(seconds=self.clock.passed_s)).timestamp()
        for family in self.registry.collect():
            _, lines = self.seen.setdefault(family.name, (family.type, []))
            for one in family.samples:
                labels = ",".join(f'{name}="{value}"' for name, value in sorted(one.labels.items()))
                if not one.name.endswith("_created"):
                    lines.append(f"{one.name}{{{labels}}} {one.value} {seconds:.3f}")

    def openmetrics(self) -> str:
        told = []
        for name, (kind, lines) in self.seen.items():
            told += [
                f"# TYPE {name} {kind}",
                *sorted(lines, key=lambda line: line.rpartition(" ")[0].rpartition(" ")[0]),
            ]
        return "\n".join([*told, "# EOF", ""])


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    program("prometheus")
    folder = tmp_path_factory.mktemp("hour")
    with pytest.MonkeyPatch.context() as patch, Emulator(processing_s=0.0) as emulator, closing(Wire(emulator)) as wire:
        patch.setenv("GOOGLE_GEMINI_BASE_URL", emulator.base_url)
        patch.setenv("GEMINI_API_KEY", "k")
        told = Hour(folder, wire)
        with told.preflight:
            for at in range(MINUTES):
                told.minute(at)
        end = (START + timedelta(seconds=told.clock.passed_s)).timestamp()
    (folder / "hour.om").write_text(told.openmetrics())
    run(program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "hour.om", "tsdb", cwd=folder)
    return folder, end


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """A real one, over blocks that are there already; it scrapes nobody."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "prometheus.yml").write_text(f"rule_files: ['{RULES}/recording.rules.yml']\n")
    command = [
        program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=10y", "--log.level=error",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 30
        while True:
            try:
                httpx2.get(f"{url}/-/ready", timeout=2).raise_for_status()
                break
            except httpx2.HTTPError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def asked(url: str, expression: str, at: float) -> list[Any]:
    document = httpx2.get(f"{url}/api/v1/query", params={"query": expression, "time": at}, timeout=20).json()
    assert document["status"] == "success", expression
    found: list[Any] = document["data"]["result"]
    return found


def expressions() -> list[str]:
    """Of the dashboard, its variables filled in."""
    panels = json.loads((CONFIG / "grafana/weighlock.json").read_text())["panels"]
    told = [target["expr"] for panel in panels for target in panel["targets"]]
    filled = [("$__rate_interval", "5m"), ("$__range", "1h"), ("$endpoint", ".*")]
    for name, value in filled:
        told = [one.replace(name, value) for one in told]
    assert not any("$" in one for one in told)
    return told


def test_every_expression_of_dashboard_and_rules_returns_data(hour: tuple[Path, float]) -> None:
    folder, end = hour
    with prometheus(folder) as url:
        empty = [one for one in expressions() if not asked(url, one, end)]
        assert empty == []
        start = f"{end - 3600:.0f}"
        run(
            program("promtool"), "tsdb", "create-blocks-from", "rules", f"--start={start}", f"--end={end:.0f}",
            f"--url={url}", "--output-dir=rules", "--eval-interval=60s", str(RULES / "recording.rules.yml"), cwd=folder,
        )  # fmt: skip
    for block in (folder / "rules").iterdir():
        if (block / "meta.json").exists():
            shutil.copytree(block, folder / "tsdb" / block.name, dirs_exist_ok=True)
    recorded = re.findall(r"- record: (\S+)", (RULES / "recording.rules.yml").read_text())
    with prometheus(folder) as url:
        assert [name for name in recorded if not asked(url, name, end)] == []
        for metric in m.COUNTED_UP:
            name = metric.name + ("_count" if metric.kind is m.Kind.HISTOGRAM else "")
            exempt = {m.COUNTED.name, m.TOOL_USE.name, m.FINDINGS.name, m.UNDERESTIMATED.name, m.UNVERIFIED.name}
            assert name in exempt or asked(url, name, end), name


def test_what_prometheus_adds_up_is_what_was_counted(hour: tuple[Path, float]) -> None:
    folder, end = hour
    of = '{endpoint="bug_triage"}'
    with prometheus(folder) as url:

        def value(expression: str) -> float:
            ((_, found),) = [one["value"] for one in asked(url, expression, end)]
            return float(found)

        assert value(f"sum({m.BILLED.name})") == value(f"sum({m.BILLED_AS.name})")
        used = value(f'{m.BUDGET_USED.name}{{endpoint="bug_triage", window="day", unit="prompt_tokens"}}')
        assert value(f"sum({m.BILLED.name}{of})") == used
