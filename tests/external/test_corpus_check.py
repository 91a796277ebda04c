"""`weighlock check` over the whole corpus, as a user would run it, watched by the kernel's own log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import pytest

import corpus
from corpus import CORPUS

pytestmark = pytest.mark.external

_CALLS = "open,openat,openat2,creat,socket,connect,bind,sendto,execve,unlink,rename"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, int]:
    """The JSON of a run, what strace saw of it and all its children, and the exit code."""
    corpus.needed()
    strace = shutil.which("strace") or corpus.lacking("strace is not installed")
    log = tmp_path_factory.mktemp("trace") / "log"
    command = [strace, "-f", "-qq", "-s", "512", "-e", f"trace={_CALLS}", "-o", str(log)]
    command += [sys.executable, "-m", "weighlock", "check", str(CORPUS), "--format", "json"]
    run = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert run.stderr == b""
    return json.loads(run.stdout), log.read_text(errors="replace"), run.returncode


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    return {row["file"]: row for row in corpus.needed()}


def parts_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(Path(part["source"]).relative_to(CORPUS)): part for part in report["parts"]}


def test_every_file_gets_its_line(watched: tuple[dict[str, Any], str, int], rows: dict[str, dict[str, Any]]) -> None:
    report, _, code = watched

    parts = parts_of(report)
    assert set(rows) <= set(parts)
    assert all((part["tokens"] is None) == (part["error"] is not None) for part in parts.values())
    assert code in (3, 4)


def test_types_and_modalities_are_right(
    watched: tuple[dict[str, Any], str, int], rows: dict[str, dict[str, Any]]
) -> None:
    parts = parts_of(watched[0])
    clean = {name: row for name, row in rows.items() if not row.get("degenerate")}

    wrong_modality = [name for name, row in clean.items() if (parts[name]["modality"] or "").lower() != row["modality"]]
    wrong_mime = [name for name, row in clean.items() if parts[name]["mime"] != row["mime"]]

    assert wrong_modality == []
    assert len(wrong_mime) <= 0.02 * len(clean)


DECODES = {"magika/bmp.bmp", "magika/gif89.gif", "magika/tiny.flac", "music-metadata/apev2.sv7.mpc"}
"""Marked degenerate in the manifest, but a library opens and decodes them: measured is right."""

CUT = {
    "Pillow/truncated_jpeg.jpg": "no end of the picture",
    "file-type/fixture.3g2": "12 bytes of a header",
    "file-type/fixture.wma.asf": "2.6 s in its header, 0.6 s in what is left of it",
    "mp4parse-rust/bipbop_480wp_1001kbps-cenc-video-key1-init.mp4": "the first segment of a stream: no samples",
    "mp4parse-rust/bipbop_audioinit.mp4": "the first segment of a stream: no samples",
    "music-metadata/flac-bug.flac": "557 s in its header, 3.7 s in what is left of it",
    "music-metadata/issue-749.m4a": "1,563 s in its header, no sample left",
    "tinytag/vbr_xing_header_2channel.mp3": "250 s in its header, 0.1 s in what is left of it",
}
"""Not marked degenerate in the manifest, but cut or a part of a file: each must be flagged or refused."""


def test_each_degenerate_file_is_an_error_or_flagged(
    watched: tuple[dict[str, Any], str, int], rows: dict[str, dict[str, Any]]
) -> None:
    parts = parts_of(watched[0])
    degenerate = {name: parts[name] for name, row in rows.items() if row.get("degenerate")}

    silent = {
        n for n, part in degenerate.items() if not (part["error"] or part["anomalies"] or part["refused_by_service"])
    }
    assert silent <= DECODES
    assert all(decodes(CORPUS / name) for name in silent)


def decodes(path: Path) -> bool:
    from PIL import Image

    if path.suffix in (".bmp", ".gif"):
        with Image.open(path) as image:
            image.load()
            return True
    with av.open(str(path)) as container:
        return any(True for _ in container.decode(audio=0))


def test_cut_files_are_flagged_and_clean_ones_hardly_ever(
    watched: tuple[dict[str, Any], str, int], rows: dict[str, dict[str, Any]]
) -> None:
    parts = parts_of(watched[0])
    flagged = {name for name, row in rows.items() if parts[name]["anomalies"] and not row.get("degenerate")}
    clean = [name for name, row in rows.items() if not row.get("degenerate") and name not in CUT]

    assert [name for name in CUT if name not in flagged and not parts[name]["error"]] == []
    assert len(flagged - set(CUT)) <= 0.02 * len(clean)


def test_nothing_foreign_was_opened_and_nobody_was_called(watched: tuple[dict[str, Any], str, int]) -> None:
    log = watched[1]

    assert not re.findall(r"(?:connect|bind|sendto)\(\d+, \{sa_family=(?!AF_UNIX)", log)
    # The confined children try to open one, to see that they cannot.
    assert not re.findall(r"socket\(AF_(?!UNIX)[^\n]*\) = \d+", log)
    programs = set(re.findall(r'execve\("([^"]+)"', log))
    assert all(Path(program).name.startswith("python") for program in programs)
    own = (
        str(CORPUS),
        str(Path(__file__).parents[2]),
        sys.prefix,
        sys.base_prefix,
        str(Path(sys.executable).parent),
        "/proc/",
        "/sys/",
        "/dev/",
        "/etc/ld.so",
        "/etc/localtime",
        "/lib",
        "/usr/lib",
        "/usr/share",
        "/usr/local/lib",
        "/tmp/weighlock-",
    )
    opened = set(re.findall(r'open(?:at2?)?\([^"]*"([^"]+)"[^\n]*\) = \d+', log))
    media = {path for path in opened if path.startswith(str(CORPUS))}
    assert not [path for path in opened if not path.startswith(own)]  # a relative path is nobody's own
    assert len(media) >= 200  # names with quotes and the like are escaped in the log
