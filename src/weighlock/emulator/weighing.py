"""A request as the service takes it in: files looked up, media opened, everything weighed by the rule tables."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from weighlock.emulator import errors
from weighlock.emulator.accounts import Project
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.files import Files, name_in
from weighlock.encoded import Base64
from weighlock.errors import InputError, ServiceError, WeighlockError
from weighlock.examiner import Examiner
from weighlock.planning.said import controls_of, request_resolution, request_text
from weighlock.planning.weigh import Examined, Weighed, weigh
from weighlock.request import (
    Backend,
    Carrier,
    MediaPart,
    MediaResolution,
    Place,
    Placement,
    Request,
    Uri,
)
from weighlock.rules import Controls, ModelRules
from weighlock.settings import PACKAGED, load

_REMEMBERED = 512
"""Media whose facts are kept: a history comes again every turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """What stands behind an `https://` or `gs://` address. Nothing is ever fetched."""

    data: bytes
    mime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One medium of a request."""

    place: Place
    part: MediaPart
    controls: Controls
    examined: Examined
    digest: str
    """Of its bytes, or of its address where it has none here."""
    read: bool = True
    """False where the service answers without having looked at it."""

    @property
    def known(self) -> bool:
        return self.read and self.examined.error is None and self.examined.facts is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """A request that is taken in, and what it weighs."""

    request: Request
    rules: ModelRules
    media: tuple[Sent, ...]

    @property
    def text(self) -> Weighed:
        """All its text."""
        return weigh(request_text(self.request), Controls(), self.rules)

    def weighed(self, sent: Sent) -> Weighed:
        """One medium as it is billed; a medium nobody could read weighs nothing."""
        if not sent.known:
            return Weighed(examined=sent.examined, controls=sent.controls)
        return weigh(sent.examined, sent.controls, self.rules)


class Scale:
    """Takes requests in. Thread-safe; starts the confined worker with the first film, recording or PDF."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.remotes: dict[str, Remote] = {}
        """By address: what `fileData` may name besides files."""
        self._examiner = Examiner(load(PACKAGED, environ={}), preload=True)
        self._facts: OrderedDict[str, Examined] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        self._examiner.close()

    def take_in(self, request: Request, rules: ModelRules, project: Project) -> Intake:
        """
        Raises:
            ApiError: a file that may not be used, bytes that are no base64, a type it does not take, a control that is
                none.
        """
        resolution = _resolution(request)
        media = [
            self._sent(place, part, carrier, resolution, rules, project) for place, part, carrier in request.media()
        ]
        return Intake(request=request, rules=rules, media=tuple(media))

    def _sent(
        self,
        place: Place,
        part: MediaPart,
        carrier: Carrier,
        resolution: MediaResolution,
        rules: ModelRules,
        project: Project,
    ) -> Sent:
        part, placement, digest = self._resolved(part, rules.backend, project)
        pointed_at = carrier is Carrier.TOOL_RESULT and placement is not Placement.INLINE
        read = rules.backend is Backend.VERTEX or not pointed_at
        if read:
            _demand_type(part, carrier, placement, rules)
        try:
            controls = controls_of(part, place, carrier, placement, resolution, rules)
        except InputError as error:
            raise errors.invalid(str(error)) from None
        examined = self._examined(part, digest) if read else Examined(label=part.label)
        return Sent(place=place, part=part, controls=controls, examined=examined, digest=digest, read=read)

    @reproduces("file-forbidden", "file-not-active", "url-not-fetched", "no-files-on-vertex", "file-mime-known")
    def _resolved(self, part: MediaPart, backend: Backend, project: Project) -> tuple[MediaPart, Placement, str]:
        """The part with its bytes, how they came, and their digest."""
        source = part.source
        if isinstance(source, Base64):
            try:
                source.check()
            except InputError as error:
                raise errors.invalid(f"Invalid value at '{part.label}' (TYPE_BYTES): {error}") from None
            return part, Placement.INLINE, hashlib.sha256(source.text.encode()).hexdigest()
        address = source.text if isinstance(source, Uri) else ""
        name = name_in(address)
        if name is not None and backend is Backend.DEVELOPER:
            file = self.files.usable(project, name)
            held = file.path if file.path is not None else source
            mime = part.declared_mime or file.mime
            return replace(part, source=held, declared_mime=mime), Placement.FILES, file.sha256
        remote = self.remotes.get(address)
        if remote is None:
            raise errors.not_fetched()
        mime = part.declared_mime or remote.mime
        digest = hashlib.sha256(remote.data).hexdigest()
        return replace(part, source=remote.data, declared_mime=mime), Placement.URI, digest

    @reproduces("type-from-the-bytes", "unreadable-medium-is-silent")
    def _examined(self, part: MediaPart, digest: str) -> Examined:
        with self._lock:
            known = self._facts.get(digest)
        if known is None:
            known = self._looked_at(part)
            with self._lock:
                self._facts[digest] = known
                while len(self._facts) > _REMEMBERED:
                    self._facts.popitem(last=False)
        return replace(known, declared_mime=part.declared_mime)

    def _looked_at(self, part: MediaPart) -> Examined:
        if isinstance(part.source, Uri):  # a file whose bytes were not kept
            return Examined(label=part.label)
        (known,) = self._examiner.examine([part])
        if isinstance(known.error, ServiceError):  # this machine's fault, not the medium's
            raise known.error
        return known


def _resolution(request: Request) -> MediaResolution:
    try:
        level = request_resolution(request)
        Controls(media_resolution=level)
    except WeighlockError as error:
        raise errors.invalid(str(error)) from None
    return level


@reproduces("unsupported-mime", "unusable-type", "mime-spelling")
def _demand_type(part: MediaPart, carrier: Carrier, placement: Placement, rules: ModelRules) -> None:
    """
    Raises:
        ApiError: 400, a type the model does not take; what a tool result may hold is asked elsewhere.
    """
    declared = (part.declared_mime or "").partition(";")[0].strip().lower()
    if carrier is Carrier.TOOL_RESULT:
        return
    if declared in ("image/tiff", "image/svg+xml"):
        raise errors.invalid()
    if "/" not in declared or declared in ("image/jpg", "application/csv"):
        raise errors.unsupported_mime(declared)
    if not rules.accepts(declared, carrier, placement):
        raise errors.unsupported_mime(declared)
