"""Side-by-side timings against named peers, in one run, shuffled. One command:

    .venv/bin/python tests/benchmarks [--rounds N] [--json FILE] [--only NAME]

Prints medians and ratios; asserts nothing, since machines are noisy. A peer that is not installed is named as missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "src")]

from benchmarks import files, folders, pictures, prepare, proxy, requests, startup, transforms, uploads  # noqa: E402
from benchmarks.harness import Comparison, as_table  # noqa: E402

BENCHES = {
    "mime": files.mime,
    "images": files.images,
    "video": files.video,
    "pdf": files.pdf,
    "folder": folders.mixed_folder,
    "pictures": pictures.pictures,
    "prepare": prepare.prepare,
    "proxy": proxy.proxy,
    "requests": requests.requests,
    "startup": startup.startup,
    "transforms": transforms.transforms,
    "uploads": uploads.uploads,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds a comparison is shuffled over (default 7)")
    parser.add_argument("--json", type=Path, help="write medians and ratios here too")
    parser.add_argument("--only", choices=BENCHES, action="append", help="just this one (may be given again)")
    asked = parser.parse_args()
    results: list[Comparison] = []
    for name in asked.only or BENCHES:
        with tempfile.TemporaryDirectory(prefix="weighlock-bench-") as folder:
            for comparison in BENCHES[name](Path(folder), asked.rounds):
                print(as_table(comparison), flush=True)
                results.append(comparison)
    if asked.json:
        asked.json.write_text(json.dumps([result.as_dict() for result in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
