"""Makes media in the confined worker, each once: what came of the same bytes by the same work is remembered."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

from weighlock.codecs.source import OpenSource
from weighlock.errors import MalformedMedia
from weighlock.made import MadeMedia
from weighlock.media.work import Made, Work
from weighlock.uploads.policy import DEFAULT_TENANT

if TYPE_CHECKING:
    from weighlock.codecs import Prober
    from weighlock.codecs.encoding import Encoding
    from weighlock.codecs.program import Watch
    from weighlock.codecs.transformer import Transformer


class Maker:
    """Thread-safe. `prober` gives the worker to work with."""

    def __init__(self, prober: Callable[[], Prober], encoding: Encoding) -> None:
        self._prober, self._encoding = prober, encoding
        self._made = MadeMedia()
        self._transformers: list[Transformer] = []
        """One, from the first need on."""

    def forget(self) -> None:
        """What the worker made goes with it: another may come with other codecs."""
        self._made.clear()

    def make(
        self, source: OpenSource, mime: str, work: Work, watch: Watch, *, owner: str = DEFAULT_TENANT
    ) -> tuple[bytes, Made]:
        """What a work makes of a medium, and its facts. `owner` is the tenant it is of: each has its own.

        Raises:
            InputError: it cannot be made into that, or it changed meanwhile.
            Cancelled: `watch` said so.
            ServiceError: the confined worker could not be started, or may not run unconfined.
        """
        stamp = source.stamp()
        key = (owner, source.sha256(watch.refuse_if_cancelled), mime, work, self._encoding)

        def make() -> tuple[bytes, Made]:
            medium = self._make(source, mime, work, watch)
            if source.stamp() != stamp:
                raise MalformedMedia("it changed while it was being worked on")
            return medium

        medium = self._made.get(key, make, watch.cancelled)
        if watch.progress is not None:
            watch.progress(1.0)
        return medium

    def _make(self, source: OpenSource, mime: str, work: Work, watch: Watch) -> tuple[bytes, Made]:
        with tempfile.TemporaryFile(prefix="weighlock-") as out:
            made = self._transformer().make(
                source.descriptor(),
                size_bytes=source.size_bytes,
                mime=mime,
                work=work,
                out=out.fileno(),
                progress=watch.progress,
                cancelled=watch.cancelled,
            )
            out.seek(0)
            return out.read(), made

    def _transformer(self) -> Transformer:
        # No lock, as in the examiner: whoever appends first wins.
        if not self._transformers:
            from weighlock.codecs.transformer import Transformer

            self._transformers.append(Transformer(self._prober(), encoding=self._encoding))
        return self._transformers[0]
