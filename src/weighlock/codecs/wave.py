"""Reading a WAV file by its chunks: how long its samples last, by everything in it that says so."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from weighlock.codecs.streams import Evidence, mismatch, refuse_too_dense

_INTEGER, _FLOAT, _A_LAW, _MU_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_UNKNOWN_LENGTHS = {0, 0xFFFFFFFF}
_HUGE_LENGTH = 0x7FFF0000
"""Writers that leave the length to a later they never reach put a huge one in; it is as good as unknown."""
_CHUNK_HEAD = 8
_MAX_CHUNKS = 10_000
_MAX_FORMATS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A `fmt ` chunk. `tag` is that of its extension, where it has one."""

    tag: int
    channels: int
    rate_hz: int
    byte_rate: int
    block_bytes: int
    bits: int

    @property
    def plain(self) -> bool:
        """Whether its samples are stored one by one, in a fixed number of bytes each."""
        return self.tag in (_INTEGER, _FLOAT, _A_LAW, _MU_LAW)

    @property
    def decoded_rate(self) -> int:
        """Bytes a decoder takes for a second of plain samples: it goes by their width, not by the block."""
        width = 1 if self.tag in (_A_LAW, _MU_LAW) else (self.bits + 7) // 8
        return self.channels * width * self.rate_hz

    def rates(self) -> dict[str, int]:
        """Bytes a second, by what in the chunk says so. Less than one bit a sample is no rate at all."""
        said = {"its byte rate": self.byte_rate}
        if self.plain:
            said = {"its sample width": self.decoded_rate, "its block size": self.block_bytes * self.rate_hz, **said}
        return {name: rate for name, rate in said.items() if rate and rate * 8 >= self.rate_hz}


@dataclass(slots=True, kw_only=True)
class Wave:
    """The chunks that matter. Sizes are in bytes."""

    forms: list[Form] = field(default_factory=list)
    held: int = 0
    """Samples in the data chunks, as far as the file goes."""
    claimed: int = 0
    """What a data chunk says that ends after the file does; 0 for none."""
    rest: int = 0
    """From the first sample to the end of the file, where what follows the samples is not made of chunks."""

    @property
    def plain(self) -> bool:
        return bool(self.forms) and self.forms[0].plain and self.forms[0].decoded_rate > 0

    def claims(self) -> dict[str, float]:
        """Seconds by who says so, where they differ from the first: the longest decides, the others are told."""
        lengths = {"": self.held, " and the claim of its data": self.claimed, " to the end of the file": self.rest}
        rates = [item for form in self.forms for item in form.rates().items()]
        found: dict[str, float] = {}
        for name, rate in rates:
            for suffix, length in lengths.items():
                if length:
                    found[name + suffix] = max(found.get(name + suffix, 0.0), length / rate)
        return found


def read_wave(view: mmap.mmap) -> Wave | None:
    """The chunks of a RIFF, RF64 or BW64 file; `None` where there is no data chunk or no format before it."""
    if view[0:4] not in (b"RIFF", b"RF64", b"BW64") or view[8:12] != b"WAVE":
        return None
    found, long_size = Wave(), 0
    for kind, body, size in _chunks(view, 12):
        if kind == b"ds64" and body + 16 <= len(view):
            long_size = struct.unpack_from("<Q", view, body + 8)[0]
        elif kind == b"fmt " and body + 16 <= len(view) and len(found.forms) < _MAX_FORMATS:
            found.forms.append(_form(view, body, size))
        elif kind == b"data":
            if not found.forms:
                return None
            _measure(found, view, body, long_size if size == 0xFFFFFFFF and long_size else size)
            return found
    return None


def wave(view: mmap.mmap) -> Evidence | None:
    """Samples of an uncompressed WAV: to the end of the file where the data chunk gives no length.

    Everything else the file says of its length is a claim: decoders go by the width of a sample, other readers by the
    size of a block or by the bytes a second. `None` for other kinds of sound, whose packets must be walked.

    Raises:
        MalformedMedia: a large payload in next to no time.
    """
    found = read_wave(view)
    if found is None or not found.plain:
        return None
    evidence = Evidence(end_s=found.held / found.forms[0].decoded_rate, claims=found.claims())
    refuse_too_dense(max(found.held, found.rest), evidence.high_s)
    return evidence


def check_packed(view: mmap.mmap, evidence: Evidence) -> None:
    """Hold what the packets of a compressed WAV add up to against its bytes a second."""
    found = read_wave(view)
    claims = found.claims() if found else {}
    if mismatch(evidence.span_s, claims):
        evidence.claims.update(claims)


def _form(view: mmap.mmap, body: int, size: int) -> Form:
    tag, channels, rate, byte_rate, block, bits = struct.unpack_from("<HHIIHH", view, body)
    if tag == _EXTENSIBLE and size >= 26 and body + 26 <= len(view):
        tag = struct.unpack_from("<H", view, body + 24)[0]
    elif tag == _EXTENSIBLE:  # the extension that would say more is missing; readers take it for integers
        tag = _INTEGER
    return Form(tag=tag, channels=channels, rate_hz=rate, byte_rate=byte_rate, block_bytes=block, bits=bits)


def _measure(found: Wave, view: mmap.mmap, body: int, size: int) -> None:
    left = len(view) - body
    if size in _UNKNOWN_LENGTHS:
        found.held = left
        return
    found.held = min(size, left)
    if left < size < _HUGE_LENGTH:
        found.claimed = size
    behind = body + size + (size & 1)
    if size < left and not _only_chunks(view, behind):
        found.rest = left
    # Players go on with the next data chunk, if there is one.
    found.held += sum(min(more, len(view) - at) for kind, at, more in _chunks(view, behind) if kind == b"data")


def _chunks(view: mmap.mmap, at: int) -> Iterator[tuple[bytes, int, int]]:
    """(kind, start of the content, size) of each chunk that begins in the file."""
    for _ in range(_MAX_CHUNKS):
        if at + _CHUNK_HEAD > len(view):
            return
        size = struct.unpack_from("<I", view, at + 4)[0]
        yield view[at : at + 4], at + _CHUNK_HEAD, size
        at += _CHUNK_HEAD + size + (size & 1)


def _only_chunks(view: mmap.mmap, at: int) -> bool:
    """Whether the file goes on in chunks, each with a name one can read, up to a last one that ends with it."""
    for kind, body, size in _chunks(view, at):
        if not (kind.isascii() and kind.decode().isprintable()) or body + size > len(view):
            return False
        at = body + size + (size & 1)
    return len(view) - at < _CHUNK_HEAD
