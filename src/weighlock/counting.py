"""The service asked before the verdict, where its answer can change it. Written once, over an `Io`, for both faces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighlock import mime
from weighlock.accounts import Accounts
from weighlock.count_report import Counted, biases
from weighlock.errors import ConfigError, ReferenceUnrecoverable, ServiceError
from weighlock.gemini.count import TokenCounter
from weighlock.planning.admit import Decision
from weighlock.planning.counting import Count, Form, OnCountFailure, form_wanted
from weighlock.planning.identify import modality_of
from weighlock.planning.recount import corrected
from weighlock.report import Report
from weighlock.request import Backend, Modality, Request
from weighlock.scales import Scales
from weighlock.uploads.references import References
from weighlock.uploads.repair import Keep, references_in, repaired


async def count_of(
    request: Request,
    model: str,
    form: Form,
    *,
    counter: TokenCounter,
    references: Callable[[], References] | None,
    tenant: str,
    timeout_s: float,
    keep: Keep | None = None,
) -> Count:
    """What the service counts, with files that are gone uploaded again first, for `keep` as in `repaired`.

    `references` are asked for only where the request names files; `None` on Vertex, which has none.

    Raises:
        CountFailed: as `TokenCounter.count`, which the time is of.
        ReferenceUnrecoverable: a file is gone, and nobody here has its bytes.
        ServiceError: it cannot be uploaded again.
        InputError: a medium of the request cannot be read.
    """

    async def asked(sent: Request) -> Count:
        return await counter.count(sent, model, form, tenant=tenant, timeout_s=timeout_s)

    if references is None or form is Form.TEXT or not any(references_in(request)):
        return await asked(request)
    count, _ = await repaired(references(), tenant, request, asked, keep=keep)
    return count


async def counted(
    report: Report, request: Request, scales: Scales, accounts: Accounts, tenant: str, *, keep: Keep | None = None
) -> Report:
    """The receipt with the service's count in it; the very same where no count would change its verdict.

    `request` is what would be sent, by `tenant`; `keep` takes what is uploaded for it, as in `repaired`.

    Raises:
        ConfigError: no key where the account says it is, it is an account of another backend, or there is no place to
            remember uploads.
    """
    form = _form(report, scales)
    if form is None:
        return report
    policy, account = scales.endpoint.count, scales.endpoint.account
    if account.backend is not scales.backend:
        raise ConfigError(f"account {account.name} is of {account.backend}, and cannot count for {scales.backend}")
    asked = Counted(form=form, biases=tuple(biases(covered(form, report), scales.rules)))
    try:
        count = await count_of(
            request,
            scales.model,
            form,
            counter=accounts.counter(account),
            references=None if account.backend is Backend.VERTEX else lambda: accounts.references(account),
            tenant=tenant,
            timeout_s=policy.timeout_s,
            keep=keep,
        )
    except ReferenceUnrecoverable as failure:  # the service refuses the request itself as well
        return _refused(replace(report, counted=replace(asked, failure=failure)), failure.message)
    except ServiceError as failure:
        told = replace(report, counted=replace(asked, failure=failure))
        reason = f"{failure.message} (count: {{on_failure: reject}})"
        return _refused(told, reason) if policy.on_failure is OnCountFailure.REJECT else told
    return _recounted(report, replace(asked, count=count), count, scales)


def _form(report: Report, scales: Scales) -> Form | None:
    if report.screening is not None and report.screening.errors:
        return None  # it cannot be sent, and what is refused there is refused by a count too
    return form_wanted(report.parts, report.verdict, scales.endpoint.count, known_model=scales.rules.known)


def covered(form: Form, report: Report) -> list[Modality]:
    """What of a request a form of counting tells."""
    if form is Form.TEXT:
        return [Modality.TEXT]
    examined = [part.examined for part in report.parts]
    kinds = {one.modality or modality_of(mime.canonical(one.declared_mime)) for one in examined}
    return [modality for modality in Modality if modality in kinds]


def _recounted(report: Report, asked: Counted, count: Count, scales: Scales) -> Report:
    text, whole = (count, None) if asked.form is Form.TEXT else (None, count)
    known = scales.report(corrected(report.parts, text, whole, scales.rules))
    return replace(known, counted=asked, screening=report.screening, confinement=report.confinement)


def _refused(report: Report, reason: str) -> Report:
    verdict = replace(report.verdict, decision=Decision.REJECT, reasons=(*report.verdict.reasons, reason))
    return replace(report, verdict=verdict)
