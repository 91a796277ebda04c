"""The service asked before the verdict, where its answer can change it. Written once, over an `Io`, for both faces."""

from __future__ import annotations

import threading
from dataclasses import replace

from weighlock import mime
from weighlock.accounts import service_of
from weighlock.count_report import Counted, biases
from weighlock.errors import ConfigError, CountFailed
from weighlock.gemini.count import TokenCounter
from weighlock.io import Io
from weighlock.planning.admit import Decision
from weighlock.planning.counting import Count, Form, OnCountFailure, form_wanted
from weighlock.planning.identify import modality_of
from weighlock.planning.recount import corrected
from weighlock.report import Report
from weighlock.request import Modality, Request
from weighlock.scales import Scales
from weighlock.settings import Account


class Counters:
    """A counter for each account, made when it is first needed: what one was told, it remembers. Thread-safe."""

    def __init__(self, io: Io) -> None:
        self.io = io
        self._made: dict[str, TokenCounter] = {}
        self._lock = threading.Lock()

    def of(self, account: Account) -> TokenCounter:
        """Raises `ConfigError` where the account's key is not where it says."""
        with self._lock:
            if account.name not in self._made:
                self._made[account.name] = TokenCounter(service_of(account, self.io))
            return self._made[account.name]


async def counted(report: Report, request: Request, scales: Scales, counters: Counters) -> Report:
    """The receipt with the service's count in it; the very same where no count would change its verdict.

    `request` is what would be sent.

    Raises:
        ConfigError: no key where the account says it is, or it is an account of another backend.
    """
    form = _form(report, scales)
    if form is None:
        return report
    policy, account = scales.endpoint.count, scales.endpoint.account
    if account.backend is not scales.backend:
        raise ConfigError(f"account {account.name} is of {account.backend}, and cannot count for {scales.backend}")
    asked = Counted(form=form, biases=tuple(biases(_covered(form, report), scales.rules)))
    try:
        count = await counters.of(account).count(request, scales.model, form, timeout_s=policy.timeout_s)
    except CountFailed as failure:
        told = replace(report, counted=replace(asked, failure=failure))
        return _refused(told, failure) if policy.on_failure is OnCountFailure.REJECT else told
    return _recounted(report, replace(asked, count=count), count, scales)


def _form(report: Report, scales: Scales) -> Form | None:
    if report.screening is not None and report.screening.errors:
        return None  # it cannot be sent, and what is refused there is refused by a count too
    return form_wanted(report.parts, report.verdict, scales.endpoint.count, known_model=scales.rules.known)


def _covered(form: Form, report: Report) -> list[Modality]:
    if form is Form.TEXT:
        return [Modality.TEXT]
    examined = [part.examined for part in report.parts]
    kinds = {one.modality or modality_of(mime.canonical(one.declared_mime)) for one in examined}
    return [modality for modality in Modality if modality in kinds]


def _recounted(report: Report, asked: Counted, count: Count, scales: Scales) -> Report:
    text, whole = (count, None) if asked.form is Form.TEXT else (None, count)
    known = scales.report(corrected(report.parts, text, whole, scales.rules))
    return replace(known, counted=asked, screening=report.screening, confinement=report.confinement)


def _refused(report: Report, failure: CountFailed) -> Report:
    reason = f"{failure.message} (count: {{on_failure: reject}})"
    verdict = replace(report.verdict, decision=Decision.REJECT, reasons=(*report.verdict.reasons, reason))
    return replace(report, verdict=verdict)
