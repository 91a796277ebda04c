"""What a request is weighed on: one endpoint, model and backend, with their rules, prices and limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property, partial
from math import isfinite
from types import MappingProxyType
from typing import Any, Self

from weighlock.errors import InputError, MimeMismatch
from weighlock.media.facts import AudioFacts, VideoFacts
from weighlock.planning.admit import Verdict, admit
from weighlock.planning.cost import Prices, ServiceTier, Unpriced
from weighlock.planning.knobs import advise, heaviest
from weighlock.planning.levers import CutBy, Shaping, Target
from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.placement import refused_inline
from weighlock.planning.screen import Policy
from weighlock.planning.weigh import CostRange, Examined, Weighed, cost_of, refused_together, weigh
from weighlock.pricing import prices_for, upcoming_change
from weighlock.report import Report, Scale
from weighlock.request import Backend, Clip, Content, MediaPart, MediaResolution, Modality
from weighlock.rules import Controls, RuleBook
from weighlock.settings import OnMimeMismatch, OnUnknownModel, OnUnknownPrice, Settings
from weighlock.uploads.policy import DEFAULT_TENANT
from weighlock.written import is_unicode, quoted

_LONGEST_TENANT = 200
_MOST_TOKENS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller may say about a request; what is left out comes from the endpoint."""

    endpoint: str | None = None
    model: str | None = None
    backend: Backend | None = None
    controls: Controls | None = None
    clip: Clip | None = None
    """Of video and audio, relative to each medium's own length; beats the offsets of `controls`."""
    content: Content | None = None
    """What films show that do not say so themselves."""
    output_tokens: int | None = None
    """The expected answer, added to the cost."""
    max_tokens: int | None = None
    """Of the whole prompt; beats the endpoint's."""
    max_usd: Decimal | None = None
    """Of the whole request; beats the endpoint's."""
    on: date | None = None
    """The day whose rules and prices apply; today (UTC) when left out."""
    tenant: str = DEFAULT_TENANT
    """Whose request it is: what is uploaded or counted for one is nobody else's."""
    session: str | None = None
    """Which run of an agent it is part of, for the endpoint's `session` budget."""
    tier: ServiceTier = ServiceTier.STANDARD
    """How fast an answer is wanted, which is priced."""
    deadline_s: float | None = None
    """For the work on bytes; beats the endpoint's. Infinity waits as long as it takes."""

    def __post_init__(self) -> None:
        for name in ("tenant", "endpoint", "model", "session"):
            word = getattr(self, name)
            if word is not None and not (isinstance(word, str) and is_unicode(word)):
                raise InputError(f"{name}: {quoted(str(word))} is not Unicode text")
        if len(self.tenant) > _LONGEST_TENANT:
            raise InputError(f"tenant: {len(self.tenant):,} characters; it may have {_LONGEST_TENANT}")
        if self.output_tokens is not None:
            _demand_whole("output_tokens", self.output_tokens)
        if self.max_tokens is not None:
            _demand_whole("max_tokens", self.max_tokens)
        if self.max_usd is not None and not (isfinite(self.max_usd) and self.max_usd >= 0):
            raise InputError(f"max_usd must be an amount from 0 on: {self.max_usd}")
        if self.deadline_s is not None and not self.deadline_s > 0:
            raise InputError(f"deadline_s must be more than 0 seconds: {self.deadline_s:g}")

    @property
    def limits(self) -> dict[str, int | Decimal]:
        """What it sets in place of the endpoint's limits, by their names."""
        own = {"prompt_tokens": self.max_tokens, "cost_usd": self.max_usd}
        return {name: limit for name, limit in own.items() if limit is not None}


def _demand_whole(name: str, tokens: int) -> None:
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        raise InputError(f"{name} is a whole number, not {quoted(str(tokens))}")
    if tokens < 0:
        raise InputError(f"{name} cannot be negative: {tokens:,}")
    if tokens > _MOST_TOKENS:
        raise InputError(f"{name}: {tokens:,} are more than there are; at most {_MOST_TOKENS:,}")


class Scales:
    """Stays the same while many requests are weighed. Does nothing but ask the pure rooms.

    Raises:
        ConfigError: no such endpoint.
    """

    def __init__(self, settings: Settings, rules: RuleBook, asked: Asked) -> None:
        day = asked.on or datetime.now(UTC).date()
        self.endpoint = settings.endpoint(asked.endpoint)
        account = self.endpoint.account
        self.inline_below = settings.uploads.inline_below
        self.limits = replace(self.endpoint.limits, **asked.limits)  # type: ignore[arg-type]  # each of its own type
        self._asked_limits = frozenset(asked.limits)
        self.model = asked.model or self.endpoint.model
        self.backend = asked.backend or account.backend
        self.deadline_s = self.endpoint.prepare_deadline_s if asked.deadline_s is None else asked.deadline_s
        self.controls = asked.controls or Controls()
        self.clip, self.content = asked.clip, asked.content
        expected = self.endpoint.output_tokens.expected or 0
        self.output_tokens = expected if asked.output_tokens is None else asked.output_tokens
        self.rules = rules.for_model(self.model, self.backend, day)
        self.hint = None if self.rules.known else rules.suggestion(self.model)
        location = account.location if self.backend is account.backend else None
        contract = settings.pricing
        # A contract may name the model as it is asked for; the lists know it by its own name.
        priced = self.rules.model if self.rules.known and self.model not in contract.overrides else self.model
        self._prices_at = partial(prices_for, priced, self.backend, on=day, location=location, pricing=contract)
        self.tier = asked.tier
        self.prices = self._priced(self._prices_at(tier=asked.tier))
        self._policy_reasons = tuple(self._reasons())
        self.change = upcoming_change(priced, self.backend, on=day, pricing=contract)

    def prices_at(self, tier: ServiceTier | None) -> Prices | Unpriced:
        """What a call costs at the tier it was served at, where that is not the one it was asked for at."""
        return self.prices if tier in (None, self.tier) else self._prices_at(tier=tier)

    def _priced(self, prices: Prices | Unpriced) -> Prices | Unpriced:
        """The prices, if they price all that is asked: an answer nobody prices leaves the whole request unpriced."""
        rates = (prices.base, prices.long) if isinstance(prices, Prices) else ()
        if self.output_tokens and any(rate is not None and rate.output is None for rate in rates):
            return Unpriced(model=self.model, reason=f"no output rate is known for {self.model}")
        return prices

    def under(self, limits: Limits) -> Self:
        """The same scales with other limits."""
        other = self._copy()
        other.limits = limits
        return other

    def leaving(self) -> Self:
        """The same scales without a limit, a lever or a setting of the endpoint's: what the caller wants is done, and
        what the service would refuse is put right."""
        other = self.under(Limits())
        other.endpoint = replace(self.endpoint, levers=(), media=MappingProxyType({}), limits=Limits())
        return other

    def without_levers(self) -> Self:
        """The same scales, on which nothing is made lighter that is over a limit."""
        other = self._copy()
        other.endpoint = replace(self.endpoint, levers=())
        return other

    def _copy(self) -> Self:
        other = copy(self)
        for told in ("shaping", "scale"):
            other.__dict__.pop(told, None)
        return other

    def weigh(self, examined: Iterable[Examined], *, standing: bool = True) -> Report:
        """The receipt of one request made of these media; `standing` as `parts` has it."""
        return self.report(self.parts(examined, standing=standing))

    def report(self, parts: Sequence[Weighed]) -> Report:
        """The receipt of one request made of media that are weighed."""
        parts = tuple(parts)
        load = Load.of(parts)
        cost = self._cost(load)
        verdict = self._verdict(load, cost)
        why: dict[str, Any] = {}
        if over := verdict.over:
            why["advise"] = partial(advise, parts, self.rules, self.judge)
            why["explain"] = partial(heaviest, parts, over, self.rules)
        return Report(
            scale=self.scale,
            parts=parts,
            tokens=load.tokens,
            cost=cost,
            verdict=verdict,
            refused=(*refused_together(parts, self.rules.limits), *refused_inline(parts, self.rules)),
            text_rule=self.rules.text,
            prices=self.prices,
            **why,
        )

    def parts(
        self, examined: Iterable[Examined], controls: Controls | None = None, *, standing: bool = True
    ) -> list[Weighed]:
        """The media under the caller's controls, or others in their place, and the endpoint's policy.

        Without `standing`, as they come: the clip that is asked for and the endpoint's settings for the modality
        (`apply: always`) are left out.
        """
        refuse, asked = self.endpoint.mime_mismatch is OnMimeMismatch.REJECT, controls or self.controls
        return [
            weigh(
                one,
                self._controls(one, one.asked.or_else(asked) if one.asked else asked, standing=standing),
                self.rules,
                refuse_mislabelled=refuse,
            )
            for one in examined
        ]

    @cached_property
    def shaping(self) -> Shaping:
        """What the endpoint allows to be done to a request over its limits, and in which order."""
        floors = {kind: media.floor for kind, media in self.endpoint.media.items() if media.floor is not None}
        film = self.endpoint.media.get(Modality.VIDEO)
        return Shaping(
            levers=self.endpoint.levers,
            floors=floors,
            local_work=self.endpoint.local_work,
            older=self.endpoint.history.older,
            cut=(film.cut if film else None) or CutBy.EXACT,
        )

    def target(self, examined: Examined, part: MediaPart | None = None) -> Target:
        """How far a medium is to be taken at once: by the caller, or by the endpoint, always or where it has to be.

        `part` holds what the caller wants of this very one.
        """
        media = self.endpoint.media.get(examined.modality) if examined.modality else None
        asked, target = self._asked_clip(examined), Target()
        if media is not None:
            target = Target(fps=media.fps, content=media.content, resolution=media.resolution, always=media.always)
        if part is not None and part.region is not None:
            target = replace(target, region=part.region)
        content = (part.content if part else None) or self.content
        if content is not None and examined.modality is Modality.VIDEO:
            target = replace(target, content=content)
        clip = asked or (media.clip if media else None)
        if clip is None or not isinstance(examined.facts, VideoFacts | AudioFacts):
            return target
        return replace(
            target,
            span_s=clip.span(examined.facts.duration_s),
            around_s=clip.around_s,
            span_asked=asked is not None,
            recut=asked is None and clip.recuts(examined.facts.duration_s),
            perhaps_cut=asked is None and clip.spans(examined.facts.duration_s),
        )

    def _asked_clip(self, examined: Examined) -> Clip | None:
        """What the caller wants of a recording: of this one, or of all that do not say so themselves."""
        own = examined.asked is not None and examined.asked.clipped
        return examined.clip or (None if own else self.clip)

    @property
    def policy(self) -> Policy:
        """What the endpoint wants done where a carrier holds what it may not."""
        endpoint = self.endpoint
        return Policy(
            tool_media=endpoint.tool_media,
            base64_in_tool_text=endpoint.base64_in_tool_text,
            refuse_mislabelled=endpoint.mime_mismatch is OnMimeMismatch.REJECT,
        )

    @property
    def fps(self) -> float:
        """Frames sampled a second where a part says nothing else."""
        standing = self.endpoint.media.get(Modality.VIDEO)
        always = standing.fps if standing is not None and standing.always else None
        return self.controls.fps or always or self.rules.video(self.controls).default_fps

    def judge(self, load: Load) -> Verdict:
        """What the endpoint's per-request limits say to a request."""
        return self._verdict(load, None if self.limits.cost_usd is None else self._cost(load))

    def _verdict(self, load: Load, cost: CostRange | None) -> Verdict:
        wrong = (part for part in load.unknown if isinstance(part.error, MimeMismatch))
        mislabelled = (f"{part.examined.label} is {part.error}" for part in wrong)
        return admit(load, self.limits, cost, reasons=(*self._policy_reasons, *mislabelled))

    def _cost(self, load: Load) -> CostRange | None:
        """`None` where nothing could be weighed, or nobody prices it."""
        if load.parts and not load.weighed:
            return None
        return cost_of(load.tokens, self.prices, output_tokens=self.output_tokens)

    @cached_property
    def scale(self) -> Scale:
        """What the figures rest on, for the reader of a report."""
        prices = self.prices
        return Scale(
            model=self.model,
            resolved_model=self.rules.model,
            known_model=self.rules.known,
            model_note=self.rules.note,
            model_hint=self.hint,
            backend=self.backend,
            endpoint=self.endpoint.name,
            owner=self.endpoint.owner,
            mode=self.endpoint.mode.value,
            on_exceed=self.endpoint.on_exceed.value,
            asked_limits=self._asked_limits,
            rule_date=self.rules.rule_date,
            price_source=prices.source if isinstance(prices, Prices) else None,
            price_notes=prices.notes if isinstance(prices, Prices) else (),
            unpriced_reason=prices.reason if isinstance(prices, Unpriced) else None,
            price_change=self.change.message if self.change else None,
            output_tokens=self.output_tokens,
        )

    def _controls(self, examined: Examined, asked: Controls, *, standing: bool) -> Controls:
        """The caller's controls, and where they are silent the endpoint's settings for the modality."""
        clip = self._asked_clip(examined) if standing else None
        wanted = self.endpoint.media.get(examined.modality) if examined.modality else None
        if standing and wanted is not None and wanted.always:
            silent = asked.media_resolution is MediaResolution.UNSPECIFIED
            asked = replace(
                asked,
                part_resolution=asked.part_resolution or (wanted.resolution if silent else None),
                fps=asked.fps or wanted.fps,
            )
            if not asked.clipped:
                clip = clip or wanted.clip
        if clip is None or not isinstance(examined.facts, VideoFacts | AudioFacts):
            return asked
        start_s, end_s = clip.span(examined.facts.duration_s)
        if start_s >= end_s:  # behind the end: kept as it was asked for, so that the service's answer can be told
            start_s, end_s = clip.bounds_s
        return replace(asked, start_offset_s=start_s, end_offset_s=end_s)

    def _reasons(self) -> Iterator[str]:
        """Refusals that no limit explains; the same for every request."""
        endpoint, hint = self.endpoint, f" ({self.hint[2:]})" if self.hint else ""
        if not (endpoint.allows(self.model) or endpoint.allows(self.rules.model)):
            yield f"model {self.model} is not in its list (models: {', '.join(endpoint.models or ())})"
        if not self.rules.known and endpoint.on_unknown_model is OnUnknownModel.REJECT:
            yield f"no rules for model {self.model}{hint} (on_unknown_model: reject)"
        if (
            isinstance(self.prices, Unpriced)
            and endpoint.limits.cost_usd is not None
            and endpoint.on_unknown_price is OnUnknownPrice.REJECT
        ):
            yield (
                f"{self.prices.reason}{hint}, and a USD limit applies "
                "(set pricing.overrides, or on_unknown_price: ignore)"
            )
