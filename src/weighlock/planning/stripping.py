"""Which media lose what says where, when and by whom they were made, before they are sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weighlock.media.work import STRIPPED, StillsWork, StripWork
from weighlock.planning.levers import LocalWork
from weighlock.planning.shape import Shaped
from weighlock.request import Modality, Placement


def without_metadata(media: Sequence[Shaped], local_work: LocalWork) -> tuple[list[Shaped], tuple[int, ...]]:
    """The media, with the work that takes their metadata out, and those whose metadata travels all the same.

    A pinned one too: what the model sees of it stays as it is. Media named by reference lie elsewhere and are left
    alone; where `local_work` is `never`, all are.
    """
    done = [one if local_work is LocalWork.NEVER else _stripped(one) for one in media]
    return done, tuple(at for at, one in enumerate(done) if _carries(one) and not _strips(one))


def _stripped(one: Shaped) -> Shaped:
    if not _carries(one):
        return one
    if one.work is not None and not isinstance(one.work, StripWork | StillsWork):
        return replace(one, work=replace(one.work, strip_metadata=True))
    return replace(one, work=StripWork()) if one.finding.medium.mime in STRIPPED else one


def _carries(one: Shaped) -> bool:
    """Whether bytes of ours go out that may say more than the model needs."""
    medium = one.finding.medium
    inline = medium.placement is Placement.INLINE and medium.error is None and one.finding.note is None
    return inline and medium.modality not in (None, Modality.TEXT)


def _strips(one: Shaped) -> bool:
    match one.work:
        case None | StillsWork():
            return False
        case StripWork():
            return True
        case work:
            return work.strip_metadata
