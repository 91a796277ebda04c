"""The one thing of EXIF that changes a displayed size: orientation."""

from __future__ import annotations

_ORIENTATION = 0x0112
_SHORT, _LONG = 3, 4
_MAX_ENTRIES = 512


def orientation(tiff: bytes) -> int:
    """EXIF orientation 1…8 from a TIFF block; 1 where there is none or it is broken, as viewers do."""
    tiff = tiff.removeprefix(b"Exif\0\0")
    if tiff[:4] == b"II*\0":
        order = "little"
    elif tiff[:4] == b"MM\0*":
        order = "big"
    else:
        return 1
    return _from_directory(tiff, order)


def _from_directory(tiff: bytes, order: str) -> int:
    def number(at: int, n: int) -> int:
        return int.from_bytes(tiff[at : at + n], "little" if order == "little" else "big")

    directory = number(4, 4)
    for index in range(min(number(directory, 2), _MAX_ENTRIES)):
        entry = directory + 2 + 12 * index
        if entry + 12 > len(tiff):
            break
        if number(entry, 2) == _ORIENTATION:
            kind = number(entry + 2, 2)
            value = number(entry + 8, 4 if kind == _LONG else 2) if kind in {_SHORT, _LONG} else 1
            return value if 1 <= value <= 8 else 1
    return 1
