"""`weighlock serve --upstream emulator` as a process, what its emulator billed, and what `weighlock usage` tells."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from serving import NO_TLS
from weighlock.service.keys import hash_of, new_key

YAML = """\
version: 1
accounts: {{google: {{backend: developer, api_key_env: UNSET}}}}
default: {{account: google, model: gemini-3.5-flash}}
endpoints:
  app: {{mode: enforce, on_exceed: reject, owner: team-apps, limits: {{tokens: {{audio: 1000}}}}}}
  other: {{}}
service:
  admin: null
  clients: {{app: {{key_sha256: {digest}, endpoints: [app], tenant: acme}}}}
observe: {{decision_log: {folder}/decisions.jsonl}}
state: {{dir: {folder}/state}}
"""
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if "proxy" not in key.lower() and "GEMINI" not in key},
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
"""For programs that are to reach loopback only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service with an emulator of its own, both on loopback."""

    base_url: str
    emulator_url: str
    key: str
    """Of its only client, which may use the endpoint `app` for the tenant `acme`."""
    folder: Path

    def script(self, *rules: Mapping[str, Any]) -> None:
        """What the model says: `{"contains": …, "text": …}`."""
        self._emulator("PUT", "script", {"when": rules})

    def requests(self) -> list[dict[str, Any]]:
        """What reached the emulator, and what it billed."""
        told: list[dict[str, Any]] = self._emulator("GET", "requests")
        return told

    def billed(self) -> dict[str, int]:
        """Tokens of all requests, by Google's own buckets; `output` and `cached` beside them."""
        sums: Counter[str] = Counter()
        for usage in filter(None, (one["usage"] for one in self.requests())):
            sums.update({one["modality"].lower(): one["tokenCount"] for one in usage["promptTokensDetails"]})
            sums["output"] += usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
            sums["cached"] += usage.get("cachedContentTokenCount", 0)
        return dict(sums)

    def booked(self) -> dict[str, int]:
        """The same by `weighlock usage`, of the endpoint and tenant; what is only an estimate is booked by nobody."""
        by_modality = self.usage("modality")
        (endpoint,), (tenant,) = self.usage("endpoint").items(), self.usage("tenant").items()
        assert (endpoint[0], tenant[0]) == ("app", "acme")
        assert endpoint[1] == tenant[1]
        assert endpoint[1]["estimated"] == 0
        sums = {name: group["prompt_tokens"] for name, group in by_modality.items()}
        return sums | {"output": endpoint[1]["output_tokens"], "cached": endpoint[1]["cached_tokens"]}

    def usage(self, by: str) -> dict[str, Any]:
        """What the command tells."""
        command = [sys.executable, "-m", "weighlock", "usage", "--config", str(self.folder / "weighlock.yaml")]
        run = subprocess.run(
            [*command, "--by", by, "--format", "json"], capture_output=True, text=True, check=True, env=ENVIRONMENT
        )
        groups: dict[str, Any] = json.loads(run.stdout)["groups"]
        return groups

    def decisions(self) -> list[dict[str, Any]]:
        """The lines of the decision log."""
        return [json.loads(line) for line in (self.folder / "decisions.jsonl").read_text().splitlines()]

    def _emulator(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self.emulator_url}/emulator/{path}"
        with httpx2.Client(verify=NO_TLS) as http:
            return http.request(method, url, json=body).raise_for_status().json()


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """The command itself, until the `with` ends; it ends without an error then."""
    key = new_key()
    settings = folder / "weighlock.yaml"
    settings.write_text(YAML.format(digest=hash_of(key), folder=folder))
    command = [sys.executable, "-m", "weighlock", "serve", "--upstream", "emulator", "--listen", "127.0.0.1:0"]
    with (
        (folder / "stderr").open("w+") as said,
        subprocess.Popen(
            [*command, "--config", str(settings)], stdout=subprocess.PIPE, stderr=said, text=True, env=ENVIRONMENT
        ) as process,
    ):
        try:
            assert process.stdout is not None
            urls = re.findall(r"http://[\d.:]+", process.stdout.readline())
            assert len(urls) == 2, (folder / "stderr").read_text()
            yield Running(base_url=urls[0], emulator_url=urls[1], key=key, folder=folder)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        assert process.returncode == 0
        assert (folder / "stderr").read_text() == ""
