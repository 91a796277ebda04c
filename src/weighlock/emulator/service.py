"""The service without its routes: what is kept between requests, and the few deeds that use all of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from weighlock.converters import rest_json
from weighlock.converters.rest_json import Parsed
from weighlock.emulator import count, errors, refusals
from weighlock.emulator.accounts import Accounts, Project
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.billing import PromptCache
from weighlock.emulator.clock import Clock
from weighlock.emulator.faults import Faults
from weighlock.emulator.files import Files
from weighlock.emulator.generate import Generated
from weighlock.emulator.journal import Journal
from weighlock.emulator.resumable import Uploads
from weighlock.emulator.script import Script
from weighlock.emulator.weighing import Intake, Scale
from weighlock.errors import InputError
from weighlock.request import Backend, Json
from weighlock.rules import ModelRules, RuleBook


class Service:
    """One Gemini API, for any number of projects."""

    def __init__(
        self,
        *,
        rules: RuleBook,
        keys: Mapping[str, Project] | None,
        processing_s: float,
        seed: int,
    ) -> None:
        self.rules = rules
        """What it bills by; change it and the bills drift."""
        self.clock = Clock()
        self.accounts = Accounts(keys)
        self.files = Files(self.clock, processing_s=processing_s)
        self.uploads = Uploads(self.files)
        self.scale = Scale(self.files)
        self.cache = PromptCache(self.clock)
        self.script = Script()
        self.faults = Faults(seed)
        self.journal = Journal()

    def model(self, name: str, backend: Backend, version: str, method: str) -> ModelRules:
        """
        Raises:
            ApiError: 404, no such model.
        """
        rules = self.rules.for_model(name, backend, self.clock.now().date())
        if not rules.known:
            raise errors.unknown_model(name, version, method)
        return rules

    def generate(self, body: bytes, name: str, rules: ModelRules, project: Project) -> Generated:
        """
        Raises:
            ApiError: whatever the service refuses.
        """
        intake = self._taken_in(self._parsed(body, name, rules, counting=False), rules, project)
        bill = self.cache.bill(intake, project.name)
        project.spend(rules.model, bill.total, self.clock)  # a prompt that is too long is spent all the same
        refusals.demand_context(bill.total, rules)
        answer = self.script.answer(intake, name)
        return Generated.of(intake, answer, bill, model=name, now=self.clock.now())

    def count(self, body: bytes, name: str, rules: ModelRules, project: Project) -> Json:
        """
        Raises:
            ApiError: whatever the service refuses.
        """
        parsed = self._parsed(body, name, rules, counting=True)
        intake = self._taken_in(parsed, rules, project)
        return count.answer(intake, wrapped=parsed.around is not None)

    @reproduces("both-spellings", "both-alphabets", "payload-limit")
    def _parsed(self, body: bytes, name: str, rules: ModelRules, *, counting: bool) -> Parsed:
        most = rules.limits.inline_request_bytes
        if most is not None and len(body) > most:
            raise errors.invalid(f"Request payload size exceeds the limit: {most} bytes.")
        try:
            parsed = rest_json.parse(body, model=name)
        except InputError as error:
            raise errors.invalid(f"Invalid JSON payload received. {error}") from None
        outer = parsed.inner if parsed.around is None else {**parsed.around, "generateContentRequest": parsed.inner}
        refusals.demand_fields(outer, counting=counting)
        if counting:
            count.demand_form(parsed, outer, rules.backend)
        return parsed

    def _taken_in(self, parsed: Parsed, rules: ModelRules, project: Project) -> Intake:
        refusals.demand_structure(parsed.request, rules)
        intake = self.scale.take_in(parsed.request, rules, project)
        refusals.demand_media(intake)
        return intake

    def lay_over(self, overlay: bytes) -> None:
        """Lays a rule file's text over the rules, so that what it bills drifts.

        Raises:
            ConfigError: it is none.
        """
        with tempfile.TemporaryDirectory(prefix="weighlock-") as folder:
            path = Path(folder) / "overlay.toml"
            path.write_bytes(overlay)
            self.rules = self.rules.with_overlay(path)

    def reset(self) -> None:
        """As if it had just begun; the clock, projects and rules stay."""
        self.uploads.clear()
        self.files.clear()
        self.script.clear()
        self.faults.clear()
        self.journal.clear()
        self.cache.clear()

    def close(self) -> None:
        self.uploads.clear()
        self.files.clear()
        self.scale.close()
