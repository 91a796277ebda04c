"""The receipt: what each part is and costs, what the endpoint says to it, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from weighlock.count_report import Counted, counted_dict
from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, PageRun, TextFacts, TextSizes, VideoFacts
from weighlock.media.text import TextRule
from weighlock.media.tokens import weakest
from weighlock.planning.admit import Decision, LimitCheck, Verdict
from weighlock.planning.cost import Prices, Unpriced
from weighlock.planning.knobs import Advice
from weighlock.planning.screen import Screening
from weighlock.planning.weigh import CostRange, Tally, Weighed, by_modality, cost_of
from weighlock.request import Backend, MediaResolution, Modality
from weighlock.screening_report import screening_dict

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What a request was weighed on: model, backend and the age of what is known about them."""

    model: str
    """As asked for."""
    resolved_model: str
    """The rules' own name for it."""
    known_model: bool
    backend: Backend
    endpoint: str
    owner: str | None
    rule_date: date
    price_source: str | None
    """Where the price comes from and its date; `None` when there is none."""
    price_notes: tuple[str, ...] = ()
    unpriced_reason: str | None = None
    price_change: str | None = None
    """A dated change within 60 days, in words."""
    output_tokens: int = 0
    model_note: str | None = None
    """How the name was understood, where it is not the rules' own."""
    model_hint: str | None = None
    """`; did you mean …?` for a model without rules."""
    mode: str = "enforce"
    on_exceed: str = "reject"
    """With `mode`, what the endpoint does to a request over its limits."""
    asked_limits: frozenset[str] = frozenset()
    """Limits the caller set for this request, in place of the endpoint's: `prompt_tokens`, `cost_usd`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One request as it would be sent. `refusal` is set exactly when the verdict is `reject`."""

    scale: Scale
    parts: tuple[Weighed, ...]
    tokens: Mapping[Modality, Tally]
    cost: CostRange | None
    verdict: Verdict
    advise: Callable[[], Advice | None] = field(default=lambda: None, repr=False, compare=False)
    """Which settings would make it fit; `None` where no limit is broken. Who makes it fit anyway does not ask."""
    explain: Callable[[], str | None] = field(default=lambda: None, repr=False, compare=False)
    """How the first broken limit's heaviest part comes to its tokens; `None` where no token or USD limit is broken."""
    refused: tuple[str, ...] = ()
    """Why the service will refuse the request as a whole, whatever the budget says."""
    confinement: Mapping[str, Any] | None = None
    """Which limits held while the media were probed; `None` when no codec was needed."""
    screening: Screening | None = None
    """What each carrier may hold, and what became of it; of a whole request only."""
    text_rule: TextRule | None = None
    """What text costs here, to tell what media hidden in a tool's text would have cost as such."""
    counted: Counted | None = None
    """What the service was asked before the verdict; `None` where it was not."""
    prices: Prices | Unpriced | None = field(default=None, repr=False)
    """What tokens cost, for whoever asks of one part."""

    @property
    def costs(self) -> tuple[CostRange | None, ...]:
        """One a part, input only."""
        return tuple(
            cost_of(by_modality([part]), self.prices) if part.tokens and self.prices is not None else None
            for part in self.parts
        )

    @property
    def total(self) -> Tally:
        return Tally.of(self.tokens.values())

    @property
    def weighed(self) -> bool:
        """False when not one part could be: then every sum is unknown, not zero."""
        return not self.parts or any(part.tokens for part in self.parts)

    @property
    def refusal(self) -> str | None:
        return refusal(self) if self.verdict.decision is Decision.REJECT else None

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values, `schema` 1. USD are strings of decimals, so that nothing is rounded on the way."""
        return {
            "schema": SCHEMA,
            **scale_dict(self.scale),
            "parts": [part_dict(part, cost) for part, cost in zip(self.parts, self.costs, strict=True)],
            **self.sums_dict(),
            "refusal": self.refusal,
            "screening": self.screening and screening_dict(self.screening, self.parts, self.text_rule),
            "counted": self.counted and counted_dict(self.counted),
            "weighed": "together",
            "confinement": self.confinement and dict(self.confinement),
        }

    def sums_dict(self) -> dict[str, Any]:
        """The part of `as_dict` that speaks of the request as a whole."""
        return {
            "total": asdict(self.total) if self.weighed else None,
            "tokens": {modality.value: asdict(tally) for modality, tally in self.tokens.items()},
            "cost_usd": cost_dict(self.cost),
            "verdict": self.verdict.decision.value,
            "limits": [_limit_dict(check) for check in self.verdict.limits],
            "refused_by_service": list(self.refused),
        }


def scale_dict(scale: Scale) -> dict[str, Any]:
    return {
        "model": scale.model,
        "resolved_model": scale.resolved_model,
        "known_model": scale.known_model,
        "model_note": scale.model_note,
        "model_hint": scale.model_hint and scale.model_hint.removeprefix("; "),
        "backend": scale.backend.value,
        "endpoint": scale.endpoint,
        "owner": scale.owner,
        "mode": scale.mode,
        "on_exceed": scale.on_exceed,
        "rule_date": scale.rule_date.isoformat(),
        "price_source": scale.price_source,
        "price_notes": list(scale.price_notes),
        "unpriced_reason": scale.unpriced_reason,
        "price_change": scale.price_change,
        "output_tokens": scale.output_tokens,
    }


def part_dict(part: Weighed, cost: CostRange | None) -> dict[str, Any]:
    examined, total = part.examined, part.total
    return {
        "source": examined.label,
        "size_bytes": examined.size_bytes,
        "declared_mime": examined.declared_mime,
        "mime": examined.mime,
        "send_as": part.send_as,
        "mislabelled": examined.mislabelled,
        "modality": examined.modality.value if examined.modality else None,
        "facts": _facts(part),
        "controls": _controls(part),
        "tokens": _tokens(part, total) if part.tokens else None,
        "rule_id": " + ".join(tokens.rule_id for tokens in part.tokens) or None,
        "confidence": weakest(tokens.confidence for tokens in part.tokens).value if part.tokens else None,
        "cost_usd": cost_dict(cost),
        "anomalies": [asdict(anomaly) for anomaly in examined.anomalies],
        "notes": list(part.notes),
        "refused_by_service": list(part.refused),
        "error": {"code": part.error.code, "message": part.error.message} if part.error else None,
    }


def _facts(part: Weighed) -> dict[str, Any] | None:
    return asdict(part.examined.facts) if part.examined.facts is not None else None


def _controls(part: Weighed) -> dict[str, Any]:
    controls = asdict(part.controls)
    return {name: None if value == math.inf else value for name, value in controls.items()}


def _tokens(part: Weighed, total: Tally) -> dict[str, Any]:
    billed: dict[str, int] = {}
    for tokens in part.tokens:
        billed[tokens.billed_as.value] = billed.get(tokens.billed_as.value, 0) + tokens.likely
    return {
        **asdict(total),
        "billed_as": billed,
        "by_modality": {
            tokens.modality.value: {
                "low": tokens.low,
                "likely": tokens.likely,
                "high": tokens.high,
                "rule_id": tokens.rule_id,
                "confidence": tokens.confidence.value,
            }
            for tokens in part.tokens
        },
    }


def cost_dict(cost: CostRange | None) -> dict[str, str] | None:
    return {bound: f"{getattr(cost, bound):f}" for bound in ("low", "likely", "high")} if cost else None


def _limit_dict(check: LimitCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        **{field: _plain(getattr(check, field)) for field in ("limit", "low", "likely", "high")},
        "over": check.over,
        "a_count_would_settle": check.a_count_would_settle,
    }


def _plain(value: int | Decimal) -> int | str:
    return value if isinstance(value, int) else f"{value:f}"


# ---- the sentence of a refusal

_OF_THE_CALL = {"prompt_tokens": "--max-tokens (max_tokens of the call)", "cost_usd": "--max-usd (max_usd of the call)"}


def refusal(report: Report) -> str:
    """Why the endpoint refuses, what costs what, and the knob that would fit. One paragraph for a person."""
    scale, verdict = report.scale, report.verdict
    over = [over_in_words(check, report) for check in verdict.over]
    sentences = [f"{scale.endpoint} {verb(scale)}: {'; '.join([*over, *verdict.reasons])}."]
    if verdict.over:
        sentences += [report.explain() or "", _way_out(report)]
    if scale.owner:
        sentences.append(f"Owner: {scale.owner}.")
    return " ".join(sentence for sentence in sentences if sentence)


def verb(scale: Scale) -> str:
    """What the endpoint does to a request over its limits."""
    if scale.mode == "observe":
        return "would refuse (mode: observe)"
    return "warns (on_exceed: warn)" if scale.on_exceed == "warn" else "refuses"


def over_in_words(check: LimitCheck, report: Report, *, by_bound: bool = False) -> str:
    """What a limit is broken by: the likely need where that is over it already, and the bound that decides."""
    bound = "up to " if check.likely <= check.limit or (by_bound and check.likely < check.high) else ""
    need = check.high if bound else check.likely
    match check.name:
        case "cost_usd":
            return f"{bound}${_told_apart(Decimal(need), Decimal(check.limit))} a request, limit ${check.limit:f}"
        case "media_parts":
            return f"{need} media parts, limit {check.limit}"
        case "bytes":
            return f"{need:,} bytes of media, limit {check.limit:,}"
    what = check.modality.lower() if check.modality else "prompt"
    rule = f" (rule {_rule_ids(check, report)}, {report.scale.rule_date})" if check.modality else ""
    return f"{what} {bound}{need:,} tokens, limit {check.limit:,}{rule}"


def _told_apart(amount: Decimal, limit: Decimal) -> str:
    """The amount with four decimals, or as many more as it takes not to read like the limit."""
    for places in range(4, 12):
        if Decimal(words := f"{amount:.{places}f}") != limit:
            break
    return words


def _rule_ids(check: LimitCheck, report: Report) -> str:
    found = {tokens.rule_id for part in report.parts for tokens in part.tokens if tokens.modality is check.modality}
    return ", ".join(sorted(found)) or "-"


def _way_out(report: Report) -> str:
    counted = [check for check in report.verdict.over if check.name in ("media_parts", "bytes")]
    sentences = [_advice(report)] if len(counted) < len(report.verdict.over) else []
    if counted:
        sentences.append(f"Send fewer or smaller files, or raise {knobs(counted, report.scale)}.")
    return " ".join(sentences)


def _advice(report: Report) -> str:
    advice = report.advise()
    if advice is None or not advice.settings:
        lowerable = [check for check in report.verdict.over if check.name not in ("media_parts", "bytes")]
        return f"No setting of the media lowers it; raise {knobs(lowerable, report.scale)}, or send less."
    settings = "; ".join(_settings_of(advice, report))
    reached = ", ".join(_in_words(modality, tally) for modality, tally in _reached(advice).items())
    if advice.fits:
        return f"Fits with {settings} → {reached}."
    way_out = f"raise {knobs(advice.still_over, report.scale)}, or send less"
    return f"The lowest any setting reaches is {settings} → {reached}; {way_out}."


def knobs(checks: Sequence[LimitCheck], scale: Scale) -> str:
    """What to raise: the endpoint's limits, or those the caller set in their place."""
    theirs = [f"limits.{check.name}" for check in checks if check.name not in scale.asked_limits]
    own = [_OF_THE_CALL[check.name] for check in checks if check.name in scale.asked_limits]
    return " and ".join([f"{' and '.join(theirs)} of {scale.endpoint}"] * bool(theirs) + own)


def _settings_of(advice: Advice, report: Report) -> Iterator[str]:
    """Each setting with the files it is for; a single file needs no name."""
    files: dict[str, list[str]] = {}
    for index, setting in advice.settings.items():
        files.setdefault(setting.words, []).append(report.parts[index].examined.label)
    for words, names in files.items():
        if len(report.parts) == 1:
            yield words
        else:
            yield f"{', '.join(names) if len(names) <= 2 else f'{len(names)} files'} {words}"


def _reached(advice: Advice) -> dict[Modality, Tally]:
    """What the whole request would then hold, of the modalities that changed."""
    changed = {tokens.modality for index in advice.settings for tokens in advice.parts[index].tokens}
    return {modality: tally for modality, tally in by_modality(advice.parts).items() if modality in changed}


def _in_words(modality: Modality, tally: Tally) -> str:
    return f"{modality.lower()} {tally.likely:,}"


def facts_in_words(part: Weighed) -> str:
    """The facts the tokens rest on, short enough for a table cell: `240 s · 1280×720 · sound`."""
    match part.examined.facts:
        case ImageFacts(width_px=width, height_px=height, frames=frames):
            return f"{width}×{height}" + (f" · {frames} frames" if frames and frames > 1 else "")
        case VideoFacts() as video:
            sound = " · sound" if video.audio_tracks else " · silent"
            return f"{_seconds(video.duration_s)} · {video.width_px}×{video.height_px}{sound}"
        case AudioFacts(duration_s=duration_s):
            return _seconds(duration_s)
        case DocumentFacts(pages=pages, runs=runs):
            size = _page_size(runs[0]) if len(runs) == 1 else "mixed sizes"
            return f"{pages:,} page{'s' if pages != 1 else ''} · {size}"
        case TextFacts(chars=chars) | TextSizes(content_chars=chars):
            return f"{chars:,} characters"
        case _:
            return ""


def settings_in_words(part: Weighed) -> str:
    """What the part was weighed at, where that is not the service's default: `fps 0.2 · resolution low · 150-210 s`."""
    controls, facts = part.controls, part.examined.facts
    words = []
    if isinstance(facts, VideoFacts) and controls.fps is not None:
        words.append(f"fps {controls.fps:g}")
    level = controls.part_resolution or controls.media_resolution
    if isinstance(facts, VideoFacts | ImageFacts | DocumentFacts) and level is not MediaResolution.UNSPECIFIED:
        words.append(f"resolution {level.value}")
    clipped = controls.start_offset_s is not None or controls.end_offset_s is not None
    if isinstance(facts, VideoFacts | AudioFacts) and clipped:
        start_s, end_s = controls.start_offset_s or 0.0, controls.end_offset_s or math.inf
        end_s = facts.duration_s if start_s < facts.duration_s < end_s else end_s
        words.append(f"{start_s:g}-{'' if end_s == math.inf else f'{end_s:g}'} s")
    return " · ".join(words)


def _seconds(duration_s: float) -> str:
    return f"{duration_s:,.0f} s" if duration_s >= 100 else f"{duration_s:.3g} s"


_PAPER = {(595, 842): "A4", (612, 792): "US Letter", (842, 1191): "A3", (420, 595): "A5", (612, 1008): "US Legal"}


def _page_size(run: PageRun) -> str:
    width, height = round(run.width_pt), round(run.height_pt)
    if (width, height) in _PAPER:
        return _PAPER[width, height]
    if (height, width) in _PAPER:
        return f"{_PAPER[height, width]} landscape"
    return f"{width}×{height} pt"
