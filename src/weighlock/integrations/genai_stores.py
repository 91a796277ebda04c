"""The SDK's `caches` and `batches`: what is put there is weighed and limited, and billed by others later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.genai import types
from google.genai.batches import AsyncBatches, Batches
from google.genai.caches import AsyncCaches, Caches

from weighlock.integrations.genai_contract import BATCHES, CACHES, uncovered
from weighlock.integrations.genai_gate import AwaitingFace, BlockingFace, Face
from weighlock.integrations.genai_uncovered import demand_allowed, guard
from weighlock.io import run


class WeighedCaches(Caches):
    """As `client.caches`."""

    _face: BlockingFace

    def create(self, *, model: str, config: Any = None) -> types.CachedContent:
        return super().create(model=model, config=run(_cached(self._face, model, config)))


class AsyncWeighedCaches(AsyncCaches):
    """As `client.aio.caches`."""

    _face: AwaitingFace

    async def create(self, *, model: str, config: Any = None) -> types.CachedContent:
        return await super().create(model=model, config=await _cached(self._face, model, config))


class WeighedBatches(Batches):
    """As `client.batches`."""

    _face: BlockingFace

    def create(self, *, model: str, src: Any, config: Any = None) -> types.BatchJob:
        inlined = run(_inlined(self, model, src))
        return super().create(model=model, src=inlined, config=config)


class AsyncWeighedBatches(AsyncBatches):
    """As `client.aio.batches`."""

    _face: AwaitingFace

    async def create(self, *, model: str, src: Any, config: Any = None) -> types.BatchJob:
        inlined = await _inlined(self, model, src)
        return await super().create(model=model, src=inlined, config=config)


async def _cached(face: Face, model: str, config: Any) -> Any:
    """The configuration of a cache with its contents as they may be sent."""
    if config is None:
        return None
    known = config if isinstance(config, types.CreateCachedContentConfig) else _of(config)
    if not known.contents:
        return config
    asked = types.GenerateContentConfig(
        system_instruction=known.system_instruction, tools=[*known.tools] if known.tools else None
    )
    ready = await face.prepare(known.contents, asked, model=model, holds=False)
    system = getattr(ready.config, "system_instruction", known.system_instruction)
    return known.model_copy(update={"contents": ready.contents, "system_instruction": system})


def _of(config: Any) -> types.CreateCachedContentConfig:
    return types.CreateCachedContentConfig.model_validate(config)


async def _inlined(holder: WeighedBatches | AsyncWeighedBatches, model: str, src: Any) -> Any:
    """The source of a batch with each of its requests as it may be sent.

    Raises:
        UncoveredCall: its requests are in a file, where nobody weighs them.
    """
    if isinstance(src, Mapping):
        src = types.BatchJobSource.model_validate(src)
    if isinstance(src, types.BatchJobSource) and src.inlined_requests:
        requests = await _each(holder._face, model, src.inlined_requests)
        return src.model_copy(update={"inlined_requests": requests})
    if isinstance(src, Sequence) and not isinstance(src, str | bytes) and src and not isinstance(src[0], str):
        return await _each(holder._face, model, src)
    demand_allowed(holder, "batches.create from a file")
    return src


async def _each(face: Face, model: str, requests: Sequence[Any]) -> list[types.InlinedRequest]:
    found = []
    for one in requests:
        request = one if isinstance(one, types.InlinedRequest) else types.InlinedRequest.model_validate(one)
        ready = await face.prepare(request.contents, request.config, model=request.model or model, holds=False)
        found.append(request.model_copy(update={"contents": ready.contents, "config": ready.config}))
    return found


guard(WeighedCaches, Caches, uncovered(Caches, CACHES), "caches.")
guard(AsyncWeighedCaches, AsyncCaches, uncovered(AsyncCaches, CACHES), "aio.caches.")
guard(WeighedBatches, Batches, uncovered(Batches, BATCHES), "batches.")
guard(AsyncWeighedBatches, AsyncBatches, uncovered(AsyncBatches, BATCHES), "aio.batches.")
