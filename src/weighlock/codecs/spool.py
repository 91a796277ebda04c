"""Bytes behind a descriptor. By itself, so that a transform need not load what opens a source."""

from __future__ import annotations

import os


def spooled(data: bytes | bytearray | memoryview) -> int:
    """A descriptor of a nameless file that holds `data`, in memory where the system can; the caller closes it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("weighlock", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BaseException:
        os.close(fd)
        raise
    return fd
