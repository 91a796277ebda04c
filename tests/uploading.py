"""A process that asks for references, over and over: `python -m uploading URL FOLDER SEED ASKED FILES MIME`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from weighlock.gemini.auth import ApiKey
from weighlock.gemini.http import Service, Target
from weighlock.io import SyncIo, run
from weighlock.request import MediaPart
from weighlock.uploads.references import References
from weighlock.uploads.registry import Registry


def content(number: int) -> bytes:
    return random.Random(number).randbytes(20_000)


def main(url: str, folder: str, seed: str, asked: str, files: str, mime: str) -> None:
    """Prints that it has begun; in the end how many it uploaded itself, and every address it was given."""
    order = random.Random(int(seed))
    registry = Registry(Path(folder) / "uploads.db")
    numbers = order.sample(range(int(files)), int(files))  # each once, and then any
    given, uploaded = set(), 0
    with SyncIo() as io:
        references = References(io, Service(io, Target(base_url=url), ApiKey("k")), registry, account="acme")
        print("begun", flush=True)
        for nth in range(int(asked)):
            number = order.randrange(int(files)) if nth >= int(files) else numbers[nth]
            part = MediaPart(source=content(number), label=f"{number}.png")
            reference = run(references.ensure(part, mime, tenant="a"))
            given.add((number, reference.uri))
            uploaded += not reference.reused
    registry.close()
    print(uploaded, *sorted(f"{number}={uri}" for number, uri in given))


if __name__ == "__main__":
    main(*sys.argv[1:])
