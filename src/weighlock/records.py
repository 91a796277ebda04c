"""A receipt → the event of its request. Pure."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from enum import Enum
from pathlib import Path
from typing import Any

from weighlock.encoded import Base64
from weighlock.errors import InputError
from weighlock.events import BilledRecord, Ended, PartRecord, StepRecord
from weighlock.facts_values import values_of
from weighlock.fitted import Fitted
from weighlock.media.controls import Controls
from weighlock.media.tokens import TokenRange
from weighlock.observe.decision_log import DecisionLog
from weighlock.passage import session_hash
from weighlock.planning.carrying import Action
from weighlock.planning.screen import Finding
from weighlock.planning.steps import Step
from weighlock.planning.weigh import CostRange, Tally, Weighed
from weighlock.prepared import Receipt
from weighlock.request import MediaPart, Modality
from weighlock.scales import Asked

_log = logging.getLogger("weighlock")
_DIGITS = 12
_PLAIN = Controls()


class Witnesses:
    """Whoever wants to know of requests that ended: the decision log, and a program's own."""

    def __init__(self, log: Path | str | None, on_event: Iterable[Callable[[Ended], object]]) -> None:
        self._hashes = log is not None
        self._listeners = [*on_event, *([DecisionLog(log).write] if log is not None else [])]

    def digests(self, findings: Iterable[Finding]) -> Mapping[int, str]:
        """What media in memory are told by, by part; nothing where no log is kept. Reads all their bytes."""
        if not self._hashes:
            return {}
        sent = enumerate(one.part for one in findings if one.is_sent)
        return {at: digest for at, part in sent if (digest := _digest(part)) is not None}

    def listen(self, listener: Callable[[Ended], object]) -> None:
        """Another one, told of what ends from now on."""
        self._listeners.append(listener)

    def tell(self, receipt: Receipt | None, asked: Asked) -> None:
        """What goes wrong there is not the request's."""
        if receipt is None or not self._listeners:
            return
        event = ended(receipt, tenant=asked.tenant, session=session_hash(asked))
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener of weighlock's events failed; the request goes on")


def ended(receipt: Receipt, *, tenant: str, session: str | None) -> Ended:
    """The event of a request. `session` is hashed already."""
    fitted, wished = receipt.fitted, receipt.wished
    scale = fitted.after.scale
    cached = fitted.cached
    return Ended(
        at=receipt.at,
        id=receipt.id,
        endpoint=scale.endpoint,
        owner=scale.owner,
        model=scale.model,
        family=scale.resolved_model,
        backend=scale.backend.value,
        tenant=tenant,
        session=session,
        mode=scale.mode,
        outcome=receipt.outcome.value,
        codes=receipt.codes,
        parts=tuple(_parts(receipt)),
        steps=_steps(fitted.plan.steps),
        wished=() if wished is fitted else _steps(wished.plan.steps),
        wished_tokens=wished.after.total.high,
        before=_tokens(fitted.before.tokens),
        after=_tokens(fitted.after.tokens),
        usd_before=_usd(fitted.before.cost),
        usd_after=_usd(fitted.after.cost),
        output_tokens=scale.output_tokens,
        held=dict(receipt.held),
        unverified=receipt.unverified,
        cache_kept=None if cached is None else Tally.of(cached.kept.values()).likely,
        cache_lost=None if cached is None else Tally.of(cached.lost.values()).likely,
        counted=fitted.before.counted is not None and fitted.before.counted.count is not None,
        counted_tokens=_counted(fitted),
        uploads=len(receipt.uploads),
        reuploads=dict(receipt.reuploads),
        screened=_screened(fitted),
        stages_ms={name: round(ms, 3) for name, ms in receipt.stages_ms.items()},
        billed=_billed(receipt),
        escalates=receipt.earlier.id if receipt.earlier is not None else None,
    )


def _parts(receipt: Receipt) -> Iterable[PartRecord]:
    fitted = receipt.fitted
    resent = fitted.sent.media if fitted.sent is not None else 0
    for at, (old, new) in enumerate(zip(fitted.before.parts, fitted.after.parts, strict=True)):
        facts = old.examined.facts
        yield PartRecord(
            sha256=_uploaded(receipt, at) or receipt.digests.get(at),
            mime=old.examined.mime,
            modality=old.examined.modality,
            size_bytes=old.examined.size_bytes,
            facts=None if facts is None else values_of(facts),
            asked=_controls(old.controls),
            sent=_controls(new.controls),
            before=_of_part(old),
            after=_of_part(new),
            resent=at < resent,
            sent_mime=new.examined.mime,
            sent_bytes=new.examined.size_bytes,
            work=_work(fitted, at),
            uploaded=not receipt.uploads[at].reused if at in receipt.uploads else None,
        )


def _work(fitted: Fitted, at: int) -> dict[str, Any] | None:
    """What was done to a medium's bytes, by its values that say something."""
    made = fitted.made.get(at)
    if made is None or made.by is None:
        return None
    given = {name: value for name, value in asdict(made.by).items() if value not in (None, False)}
    began = {} if made.actual_start_s is None else {"actual_start_s": made.actual_start_s}
    return {"kind": type(made.by).__name__, **_values(given), **began}


def _counted(fitted: Fitted) -> dict[str, int]:
    counted = fitted.before.counted
    return {} if counted is None or counted.count is None else {str(k): n for k, n in counted.count.by_modality.items()}


_DONE = {
    Action.RELABEL: "relabelled",
    Action.RECODE: "recoded",
    Action.CONVERT: "converted",
    Action.RELOCATE: "relocated",
    Action.REMOVE: "removed",
    Action.REJECT: "refused",
}


def _screened(fitted: Fitted) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for one in fitted.screening.findings:
        words = [_DONE[one.decision.action]] if one.decision.action in _DONE else []
        words += ["lifted"] if one.hidden is not None and one.is_sent else []
        words += ["converted"] if one.decision.action is Action.RELOCATE and one.decision.convert else []
        for word in words:
            found.setdefault(word, Counter())[str(one.medium.modality or "UNKNOWN")] += 1
    return {word: dict(kinds) for word, kinds in found.items()}


def _uploaded(receipt: Receipt, at: int) -> str | None:
    return receipt.uploads[at].key.sha256[:_DIGITS] if at in receipt.uploads else None


def _digest(part: MediaPart) -> str | None:
    try:
        data = part.source.decode() if isinstance(part.source, Base64) else part.source
    except InputError:
        return None
    return hashlib.sha256(data).hexdigest()[:_DIGITS] if isinstance(data, bytes) else None


def _controls(controls: Controls) -> dict[str, Any]:
    """Those that differ from none."""
    named = {one.name: getattr(controls, one.name) for one in fields(controls)}
    return _values({name: value for name, value in named.items() if value != getattr(_PLAIN, name)})


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def _steps(steps: Sequence[Step]) -> tuple[StepRecord, ...]:
    return tuple(
        StepRecord(
            lever=step.lever.value,
            parts=step.parts,
            words=step.words,
            saved_tokens=step.saved.high,
            local=step.local,
            breaks_prefix=step.breaks_prefix,
        )
        for step in steps
    )


def _tokens(tokens: Mapping[Modality, Tally]) -> dict[str, tuple[int, int, int]]:
    return {kind.value: (tally.low, tally.likely, tally.high) for kind, tally in tokens.items()}


def _of_part(part: Weighed) -> dict[str, tuple[int, int, int]]:
    return {one.modality.value: _bounds(one) for one in part.tokens}


def _bounds(tokens: TokenRange) -> tuple[int, int, int]:
    return tokens.low, tokens.likely, tokens.high


def _usd(cost: CostRange | None) -> str | None:
    return None if cost is None else f"{cost.high:f}"


def _billed(receipt: Receipt) -> BilledRecord | None:
    billed = receipt.billed
    if billed is None:
        return None
    usage = billed.usage
    return BilledRecord(
        prompt=usage.prompt,
        by_modality={kind.value: tokens for kind, tokens in usage.by_modality.items()},
        cached=usage.cached,
        answer=usage.answer,
        thoughts=usage.thoughts,
        usd=billed.usd,
        estimated=billed.estimated,
        underestimated=dict(billed.underestimated),
        findings=tuple(one.code for one in usage.findings),
        hops=usage.hops,
        tool_use=usage.tool_use,
        unattributed=usage.unattributed,
        cached_by_modality={kind.value: tokens for kind, tokens in usage.cached_by_modality.items()},
        buckets=dict(usage.buckets),
        usd_by_modality={kind: f"{amount:f}" for kind, amount in billed.shares.items()},
    )
