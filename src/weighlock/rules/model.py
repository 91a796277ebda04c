"""The rules of one model on one backend on one day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TypeVar

from weighlock.media.area import Area
from weighlock.media.audio import AudioRule
from weighlock.media.controls import Controls
from weighlock.media.counted import CountRule
from weighlock.media.document import DocumentRule
from weighlock.media.image import ImageRule
from weighlock.media.rule import Provenance
from weighlock.media.text import TextRatios, TextRule
from weighlock.media.tokens import weakest
from weighlock.media.video import VideoRule
from weighlock.mime import spelling
from weighlock.request import Backend, Carrier, MediaResolution, Modality, Placement
from weighlock.rules.entry import (
    Accepted,
    Entry,
    Honoured,
    Limit,
    PartResolution,
    Rate,
    RequestLimits,
    Sampling,
    Sight,
    WireControl,
)
from weighlock.rules.names import Match, ResolvedModel

Kind = TypeVar("Kind", Area, Sampling, Rate, TextRatios)
_Way = tuple[MediaResolution, Placement, Carrier]
_ANY_WAY: _Way = (MediaResolution.UNSPECIFIED, Placement.INLINE, Carrier.USER)


@dataclass(frozen=True, kw_only=True)  # without slots: what does not depend on a medium is looked up once
class ModelRules:
    """What one model costs and takes on one backend, as the rules stood on `on`.

    A medium's rule depends on how it is sent; `image(controls)` and its siblings pick it.
    """

    resolved: ResolvedModel
    backend: Backend
    on: date
    sections: Mapping[str, tuple[Entry, ...]]
    """In force for this model, backend and day; within a section the last one that fits a medium wins."""
    rule_date: date
    """When the rules were last compared with their sources."""
    _limits: list[RequestLimits] = field(default_factory=list, repr=False, compare=False)
    _picked: dict[tuple[str, _Way], Entry | None] = field(default_factory=dict, repr=False, compare=False)
    _accepted: dict[tuple[Carrier, Placement], frozenset[str] | None] = field(
        default_factory=dict, repr=False, compare=False
    )
    _last_image: dict[str, tuple[Controls, ImageRule]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def model(self) -> str:
        return self.resolved.model

    @property
    def generation(self) -> str:
        return self.resolved.generation

    @property
    def known(self) -> bool:
        """False when the safe fallback stands in; `note` says so."""
        return self.resolved.match is not Match.UNKNOWN

    @property
    def note(self) -> str | None:
        return self.resolved.note

    def way(self, controls: Controls) -> _Way:
        """Resolution in effect, placement and carrier: what the choice of a rule depends on."""
        return self.resolution(controls), controls.placement, controls.carrier

    def resolution(self, controls: Controls) -> MediaResolution:
        """The part's resolution where the model honours one, else the request's."""
        asked = controls.part_resolution
        if asked is None or asked is MediaResolution.UNSPECIFIED or not self.honours_part_resolution:
            return controls.media_resolution
        return asked

    @cached_property
    def honours_part_resolution(self) -> bool:
        entry = self.pick("part_resolution", _ANY_WAY)
        return entry is not None and isinstance(entry.figure, PartResolution) and entry.figure.honoured

    def honours(self, control: WireControl) -> bool:
        """Whether the service is known to act on a field of the wire. False where nothing is known."""
        entry = self.honoured_entry(control)
        return entry is not None and isinstance(entry.figure, Honoured) and entry.figure.honoured

    def honoured_entry(self, control: WireControl) -> Entry | None:
        """What is known of a field of the wire; `None` where nothing is."""
        for entry in reversed(self.sections.get("honours", ())):
            if isinstance(entry.figure, Honoured) and control in entry.figure.control:
                return entry
        return None

    def image(self, controls: Controls) -> ImageRule:
        last = self._last_image.get("pair")  # a folder of screenshots asks thousands of times with the same controls
        if last is None or last[0] is not controls:
            area, entry = self._figure(Area, "image", self.way(controls))
            warnings = (entry.warning,) if entry.warning else ()
            rule = ImageRule(area=area, provenance=self._provenance(entry, Modality.IMAGE), warnings=warnings)
            last = self._last_image["pair"] = (controls, rule)
        return last[1]

    def video(self, controls: Controls) -> VideoRule:
        way = self.way(controls)
        area, entry = self._figure(Area, "video", way)
        sampling, counted = self._figure(Sampling, "sampling", way)
        provenance = self._provenance(entry, Modality.VIDEO)
        silent = self.pick("silent_sound", way) is not None
        return VideoRule(
            frame=area,
            rounding=sampling.rounding,
            default_fps=sampling.default_fps,
            max_fps=sampling.max_fps,
            sound=self._sound("sound", way),
            silent_sound=self._sound("silent_sound", way) if silent else None,
            provenance=replace(provenance, confidence=weakest((entry.confidence, counted.confidence))),
        )

    @property
    def cell_px(self) -> int | None:
        """Side of the square of pixels one token stands for; `None` where nothing is known, or assumed, of it."""
        entry = self.pick("sight", _ANY_WAY)
        return entry.figure.cell_px if entry is not None and isinstance(entry.figure, Sight) else None

    def audio(self, controls: Controls) -> AudioRule:
        return self._sound("audio", self.way(controls))

    def document(self, controls: Controls) -> DocumentRule:
        area, entry = self._figure(Area, "document", self.way(controls))
        return DocumentRule(page=area, provenance=self._provenance(entry, Modality.DOCUMENT))

    @cached_property
    def text(self) -> TextRule:
        ratios, entry = self._figure(TextRatios, "text", _ANY_WAY)
        return TextRule(ratios=ratios, provenance=self._provenance(entry, Modality.TEXT))

    @cached_property
    def counts(self) -> Mapping[Modality, CountRule]:
        """What `countTokens` is known to say, by modality; nothing for what nobody has measured."""
        return {modality: rule for modality, (rule, _) in self._counts().items()}

    def count_entry(self, modality: Modality) -> Entry | None:
        """Where that is known from."""
        found = self._counts().get(modality)
        return None if found is None else found[1]

    def _counts(self) -> Mapping[Modality, tuple[CountRule, Entry]]:
        return {
            entry.figure.modality: (entry.figure, entry)
            for entry in self.sections.get("counts", ())
            if isinstance(entry.figure, CountRule)
        }

    def accepted(
        self, carrier: Carrier = Carrier.USER, placement: Placement = Placement.INLINE
    ) -> frozenset[str] | None:
        """Media types the carrier may hold, spelt as the service does; `None` where nothing is known of it."""
        if (carrier, placement) not in self._accepted:
            lists = [self.accept_entry(modality, placement, carrier) for modality in Modality]
            known = frozenset(mime for entry in lists if entry for mime in _mimes(entry))
            self._accepted[carrier, placement] = known if any(lists) else None
        return self._accepted[carrier, placement]

    def accepts(self, mime: str, carrier: Carrier = Carrier.USER, placement: Placement = Placement.INLINE) -> bool:
        """May the carrier hold this type, under any of its names? True for a model nothing is known of."""
        accepted = self.accepted(carrier, placement)
        return accepted is None or spelling(mime, accepted) is not None

    def accept_entry(self, modality: Modality, placement: Placement, carrier: Carrier) -> Entry | None:
        """The list in force for one modality; `None` when the rules have none."""
        for entry in reversed(self.sections.get("accepts", ())):
            fits = entry.selectors.fits_part(MediaResolution.UNSPECIFIED, placement, carrier)
            if fits and isinstance(entry.figure, Accepted) and modality in entry.figure.modality:
                return entry
        return None

    @cached_property
    def limits(self) -> RequestLimits:
        """The service's own limits."""
        if not self._limits:
            found = [entry.figure for entry in self.sections.get("limits", ()) if isinstance(entry.figure, Limit)]
            self._limits.append(RequestLimits(**{figure.limit: figure.value for figure in found}))
        return self._limits[0]

    def warnings(self, section: str, controls: Controls) -> tuple[str, ...]:
        """What the rule in force for this medium has to say to its sender."""
        entry = self.pick(section, self.way(controls))
        return (entry.warning,) if entry is not None and entry.warning else ()

    def pick(self, section: str, way: _Way) -> Entry | None:
        """The entry in force for a medium sent this way; `None` when the section has none."""
        key = (section, way)
        if key not in self._picked:
            fitting = [entry for entry in self.sections.get(section, ()) if entry.selectors.fits_part(*way)]
            self._picked[key] = fitting[-1] if fitting else None
        return self._picked[key]

    def _figure(self, kind: type[Kind], section: str, way: _Way) -> tuple[Kind, Entry]:
        entry = self.pick(section, way)
        if entry is None or not isinstance(entry.figure, kind):  # RuleBook admits no generation with a gap
            raise LookupError(f"{self.generation} has no {section} rule for {', '.join(way)}")
        return entry.figure, entry

    def _sound(self, section: str, way: _Way) -> AudioRule:
        rate, entry = self._figure(Rate, section, way)
        return AudioRule(
            tokens_per_s=rate.tokens_per_s,
            rounding=rate.rounding,
            whole_seconds=rate.whole_seconds,
            low_tokens_per_s=rate.low_tokens_per_s,
            provenance=self._provenance(entry, Modality.AUDIO),
        )

    def _provenance(self, entry: Entry, modality: Modality) -> Provenance:
        return Provenance(
            rule_id=f"{self.generation}/{entry.section}",
            confidence=entry.confidence,
            billed_as=entry.billed_as or modality,
        )


def _mimes(entry: Entry) -> tuple[str, ...]:
    return entry.figure.mimes if isinstance(entry.figure, Accepted) else ()
