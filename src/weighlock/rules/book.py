"""All rule files, read when asked for: packaged ones, and the operator's on top."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from weighlock.errors import ConfigError
from weighlock.media.tokens import Confidence
from weighlock.request import Backend, Carrier, MediaResolution, Placement
from weighlock.rules.entry import Entry, Generation
from weighlock.rules.model import ModelRules
from weighlock.rules.names import Match, ResolvedModel, bare, candidates
from weighlock.rules.schema import Mistakes, nearest, read
from weighlock.written import plain, quoted, read_text

FALLBACK = "fallback"
_LONGEST_LINE = 2_000
"""A dotted key takes time by the square of its length."""
_DATA = Path(__file__).with_name("data")
_NO_GENERATION = {"aliases", "sources"}
_EVERY_MEDIUM_NEEDS = ("image", "video", "sampling", "sound", "audio", "document", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """Rules for every known model, and a safe answer for the others. Packaged files are read on first use."""

    overlays: tuple[Generation, ...] = ()
    _merged: dict[str, Generation] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def packaged(cls) -> RuleBook:
        """The rules this release came with."""
        return cls()

    def with_overlay(self, path: Path | str) -> RuleBook:
        """These rules and, on top, those of one file: entries of a known generation are appended, a new one is added.

        Raises:
            ConfigError: the file cannot be read, or is wrong; the message names the first mistake,
                `figures["mistakes"]` all of them.
        """
        book = RuleBook(overlays=(*self.overlays, load(Path(path))))
        book.generation(book.overlays[-1].name)  # a new generation must be complete, and its parent known
        return book

    def generations(self) -> tuple[Generation, ...]:
        """Every generation, oldest name first, the fallback last."""
        names = {*packaged_names(), *(overlay.name for overlay in self.overlays)} - {FALLBACK}
        return tuple(self.generation(name) for name in (*sorted(names), FALLBACK))

    def generation(self, name: str) -> Generation:
        """One generation with what it inherits and what the overlays add.

        Raises:
            ConfigError: there is none of that name, or it lacks a rule some medium needs.
        """
        if name not in self._merged:
            self._merged[name] = self._merge(name, ())
        return self._merged[name]

    def resolve(self, name: str) -> ResolvedModel:
        """What a model's name stands for. Never fails: an unknown name gets the fallback and a note."""
        name = name.strip()
        for candidate in candidates(name):
            for generation in self._listing(candidate):
                if candidate in generation.models:
                    exact = candidate == name
                    note = None if exact else f"{plain(name, 200)} is taken as {candidate}"
                    match = Match.EXACT if exact else Match.ALIAS
                    return ResolvedModel(
                        asked=name, model=candidate, generation=generation.name, match=match, note=note
                    )
        if (moving := packaged_aliases()["models"].get(bare(name))) is not None:
            checked_on = packaged_aliases()["checked_on"]
            note = f"{plain(name, 200)} moves with Google's releases; taken as {moving}, as it stood on {checked_on}"
            return replace(self.resolve(moving), asked=name, match=Match.ALIAS, note=note)
        return ResolvedModel(
            asked=name,
            model=bare(name),
            generation=FALLBACK,
            match=Match.UNKNOWN,
            note=f"no measured rules for {quoted(name)}: the dearest known figures stand in",
        )

    def for_model(self, name: str, backend: Backend, on: date) -> ModelRules:
        """The rules in force for a model on a backend on a day.

        A day before a generation's first entry gets that first day's rules: nothing older is known of it.
        """
        resolved = self.resolve(name)
        generation = self.generation(resolved.generation)
        fitting = [entry for entry in generation.entries if entry.selectors.fits_endpoint(resolved.model, backend)]
        sections: dict[str, list[Entry]] = {}
        for section in {entry.section: None for entry in fitting}:
            entries = [entry for entry in fitting if entry.section == section]
            day = max(on, min(entry.since for entry in entries))
            sections[section] = [entry for entry in entries if entry.since <= day]
        return ModelRules(
            resolved=resolved,
            backend=backend,
            on=on,
            sections={section: tuple(entries) for section, entries in sections.items()},
            rule_date=generation.checked_on,
        )

    def models(self) -> tuple[str, ...]:
        """Every listed model."""
        return tuple(model for generation in self.generations() for model in generation.models)

    def suggestion(self, name: str) -> str:
        """`; did you mean 'gemini-2.5-flash'?` for a name that may be misspelt."""
        return nearest(bare(name), self.models())

    def _listing(self, model: str) -> Iterator[Generation]:
        """Generations that may list a model: the overlaid ones, then packaged files whose name begins the model's."""
        yield from (self.generation(name) for name in {overlay.name: None for overlay in self.overlays})
        stems = [stem for stem in packaged_names() if model == stem or model.startswith((f"{stem}.", f"{stem}-"))]
        yield from (self.generation(stem) for stem in sorted(stems, key=len, reverse=True))

    def _merge(self, name: str, heirs: tuple[str, ...]) -> Generation:
        if name in heirs:
            raise ConfigError(f"rules: {' inherits '.join((*heirs, name))}, in a circle", generation=name)
        layers = [_packaged(name)] if name in packaged_names() else []
        layers += [overlay for overlay in self.overlays if overlay.name == name]
        if not layers:
            known = {*packaged_names(), *(overlay.name for overlay in self.overlays)} - {name}
            raise ConfigError(f"rules: no generation {quoted(name)}{nearest(name, sorted(known))}", generation=name)
        parent = next((layer.inherits for layer in reversed(layers) if layer.inherits), None)
        inherited = () if parent is None else _assumed(self._merge(parent, (*heirs, name)).entries)
        merged = replace(
            layers[0],
            inherits=parent,
            checked_on=max(layer.checked_on for layer in layers),
            models=tuple(dict.fromkeys(model for layer in layers for model in layer.models)),
            entries=(*inherited, *(entry for layer in layers for entry in layer.entries)),
            sources={key: source for layer in layers for key, source in layer.sources.items()},
        )
        _demand_complete(merged)
        return merged


def load(path: Path) -> Generation:
    """One rule file by itself.

    Raises:
        ConfigError: it cannot be read, or is wrong.
    """
    name = plain(path.name)
    try:
        return read(tomllib.loads(read_text(path, longest_line=_LONGEST_LINE)))
    except OSError as error:
        raise ConfigError(f"rule file {name}: {error.strerror or error}", file=name) from error
    except RecursionError as error:
        raise ConfigError(f"rule file {name}: nested too deeply", file=name) from error
    except ValueError as error:
        raise ConfigError(f"rule file {name}: not TOML: {plain(error, 300)}", file=name) from error
    except Mistakes as error:
        more = f" (and {len(error.found) - 1} more)" if len(error.found) > 1 else ""
        raise ConfigError(f"rule file {name}: {error.found[0]}{more}", file=name, mistakes=error.found) from error


@cache
def packaged_names() -> tuple[str, ...]:
    """Generations this release has files for; a file is named after its generation, which begins its models' names."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.toml") if path.stem not in _NO_GENERATION))


def packaged_path(name: str) -> Path:
    """The file of a packaged generation."""
    return _DATA / f"{name}.toml"


@cache
def packaged_aliases() -> Mapping[str, Any]:
    """Names that move, and what they stood for on `checked_on`."""
    return tomllib.loads((_DATA / "aliases.toml").read_text(encoding="utf-8"))


@cache
def packaged_sources() -> Mapping[str, Mapping[str, object]]:
    """What the source keys of the packaged files stand for: `title`, and where known `url` and `dated`."""
    return tomllib.loads((_DATA / "sources.toml").read_text(encoding="utf-8"))


@cache
def _packaged(name: str) -> Generation:
    return load(packaged_path(name))


def _assumed(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    # A neighbour's bill proves nothing here, however well it was measured there.
    return tuple(replace(entry, confidence=Confidence.ASSUMED) for entry in entries)


def _demand_complete(generation: Generation) -> None:
    """Every way of sending every medium must meet a rule, so that weighing never fails on one."""
    ways = list(product(MediaResolution, Placement, Carrier))
    for section in _EVERY_MEDIUM_NEEDS:
        plain = [entry for entry in generation.entries if entry.section == section and not entry.selectors.models]
        for backend in Backend:
            fitting = [entry.selectors for entry in plain if entry.selectors.fits_endpoint("", backend)]
            if not all(any(selectors.fits_part(*way) for selectors in fitting) for way in ways):
                raise ConfigError(
                    f"rules: {generation.name} has no [[{section}]] entry for every resolution, placement and carrier "
                    f"on {backend}; add one, or inherit a generation",
                    generation=generation.name,
                )
