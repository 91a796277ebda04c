"""One file at a time: what it is, how big, how long, how many pages."""

from __future__ import annotations

import mmap
import os
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import media
from benchmarks.harness import Comparison, Operations, medians, timed
from corpus import CORPUS, manifest
from weighlock import mime as truth
from weighlock.codecs import Prober
from weighlock.codecs.source import HEAD_BYTES, open_source
from weighlock.media.facts import ImageFacts
from weighlock.mime import Window, image_size, sniff
from weighlock.request import Backend, MediaPart, Modality
from weighlock.rules import Controls, RuleBook, estimate

_MICROSECONDS, _MILLISECONDS = 1e6, 1e3


def mime(folder: Path, rounds: int) -> Iterator[Comparison]:
    """Media type per file, open and read included, against libmagic."""
    labelled = _corpus() or _drawn(folder)
    paths = [path for path, _ in labelled]
    operations: Operations = {
        "weighlock": lambda: [_sniffed(path) for path in paths],
        "open + read 4 KiB": lambda: _read(paths),
    }
    right = {"weighlock": sum(_sniffed(path) == expected for path, expected in labelled)}
    notes = []
    try:
        import magic
    except ImportError:
        notes.append("libmagic: not installed")
        baseline = "open + read 4 KiB"
    else:
        tool = magic.Magic(mime=True)
        operations["libmagic"] = lambda: [_by_libmagic(tool, path) for path in paths]
        right["libmagic"] = sum(truth.agrees(_by_libmagic(tool, path), expected) for path, expected in labelled)
        baseline = "libmagic"
    notes.append("type right: " + ", ".join(f"{k} {v / len(paths):.1%}" for k, v in right.items()))
    yield Comparison(
        task=f"MIME of {len(paths)} files",
        unit="µs a file",
        baseline=baseline,
        medians=medians(timed(operations, rounds=rounds), scale=_MICROSECONDS / len(paths)),
        goals={"weighlock": 0.25} if baseline == "libmagic" else {},
        notes=tuple(notes),
    )


def images(folder: Path, rounds: int) -> Iterator[Comparison]:
    """MIME + size + tokens of 1,000 images, from the disk."""
    from PIL import Image

    paths = list(_thousand_images(folder))
    rules = RuleBook.packaged().for_model("gemini-3.8-flash", Backend.DEVELOPER, date(2026, 11, 30))
    controls = Controls()

    parts = [MediaPart(source=path, label="image") for path in paths]

    def weighed() -> int:
        return sum(_image_tokens(part, controls, rules) for part in parts)

    def pillow() -> None:
        for path in paths:
            with Image.open(path) as image:
                image.size  # noqa: B018  # what is timed

    operations: Operations = {"weighlock": weighed, "open + read 4 KiB": lambda: _read(paths), "PIL.Image.open": pillow}
    yield Comparison(
        task="MIME + size + tokens of 1,000 images",
        unit="ms",
        baseline="open + read 4 KiB",
        medians=medians(timed(operations, rounds=rounds), scale=_MILLISECONDS),
        goals={"weighlock": 4.0},
    )


def video(folder: Path, rounds: int) -> Iterator[Comparison]:
    """A confined probe of a 10 s 720p clip, against the ffprobe program and the same probe in-process."""
    clip = folder / "clip.mp4"
    clip.write_bytes(media.video(10, fps=25, size=(1280, 720), sound_s=10))
    probes = max(20, rounds * 5)
    with Prober() as prober, open_source(MediaPart(source=clip, label="clip"), max_bytes=1 << 30) as source:
        fd, size = source.descriptor(), source.size_bytes

        def confined() -> None:
            prober.probe(fd, size_bytes=size, mime="video/mp4", modality=Modality.VIDEO)

        operations: Operations = {"confined": confined, "in-process": lambda: _in_process(fd)}
        notes = []
        if program := shutil.which("ffprobe"):
            command = [program, "-v", "error", "-show_format", "-show_streams", "-of", "json", str(clip)]
            operations["ffprobe"] = lambda: subprocess.run(command, capture_output=True, check=True)
        else:
            notes.append("ffprobe: not installed")
        samples = timed(operations, rounds=probes)
    added = statistics.median(samples["confined"]) - statistics.median(samples["in-process"])
    notes.append(f"added by confinement, p50: {added * _MILLISECONDS:.2f} ms (goal ≤ 8 ms)")
    yield Comparison(
        task="probe of a 10 s 720p MP4",
        unit="ms",
        baseline="ffprobe" if "ffprobe" in samples else "in-process",
        medians=medians(samples, scale=_MILLISECONDS),
        goals={"confined": 0.25} if "ffprobe" in samples else {},
        notes=tuple(notes),
    )


def pdf(folder: Path, rounds: int) -> Iterator[Comparison]:
    """Pages of a PDF: confined, against bare pypdfium2 and the pdfinfo program."""
    import pypdfium2

    for pages in (1, 200):
        path = folder / f"{pages}.pdf"
        path.write_bytes(media.pdf([(595.28, 841.89)] * pages))
        with Prober() as prober, open_source(MediaPart(source=path, label="pdf"), max_bytes=1 << 30) as source:
            fd, size = source.descriptor(), source.size_bytes

            def confined(prober: Prober = prober, fd: int = fd, size: int = size) -> None:
                prober.probe(fd, size_bytes=size, mime="application/pdf", modality=Modality.DOCUMENT)

            def bare(path: Path = path) -> None:
                document = pypdfium2.PdfDocument(path)
                sizes = [document.get_page_size(page) for page in range(len(document))]
                document.close()
                assert len(sizes) == pages  # noqa: B023

            operations: Operations = {"confined": confined, "pypdfium2 in-process": bare}
            if program := shutil.which("pdfinfo"):
                operations["pdfinfo"] = lambda: subprocess.run([program, str(path)], capture_output=True, check=True)  # noqa: B023
            yield Comparison(
                task=f"pages of a {pages}-page PDF",
                unit="ms",
                baseline="pypdfium2 in-process",
                medians=medians(timed(operations, rounds=rounds * 3), scale=_MILLISECONDS),
            )


def _in_process(fd: int) -> None:
    """The same probe without worker, limits or filter: what confinement is measured against."""
    from weighlock.codecs import pyav
    from weighlock.codecs.job import Bounds

    bounds = Bounds(max_pixels=10**8, max_duration_s=14_400, max_pages=1000, max_frames=10**6, scan_cpu_s=4)
    with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        pyav.probe(view, mime="video/mp4", modality=Modality.VIDEO, bounds=bounds)


def _sniffed(path: Path) -> str:
    with open_source(MediaPart(source=path, label=path.name), max_bytes=1 << 40) as source:
        found = sniff(Window(head=source.head, size=source.size_bytes, read_at=source.read_at))
    return truth.refine_text(found.mime, path.name)


def _image_tokens(part: MediaPart, controls: Controls, rules: object) -> int:
    with open_source(part, max_bytes=1 << 40) as source:
        window = Window(head=source.head, size=source.size_bytes, read_at=source.read_at)
        size = image_size(window, sniff(window).mime)
        assert size is not None
        facts = ImageFacts(width_px=size.width_px, height_px=size.height_px)
        return estimate(facts, controls, rules).tokens[0].likely  # type: ignore[arg-type]  # ModelRules


def _by_libmagic(tool: object, path: Path) -> str:
    try:
        return str(tool.from_file(str(path)))  # type: ignore[attr-defined]
    except Exception:
        return ""


def _read(paths: list[Path]) -> None:
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.read(fd, HEAD_BYTES)
        os.close(fd)


def _corpus() -> list[tuple[Path, str]]:
    return [(CORPUS / row["file"], row["mime"]) for row in manifest() if not row.get("degenerate")]


def _drawn(folder: Path) -> list[tuple[Path, str]]:
    recipes = {
        "a.png": (media.picture((64, 48)), "image/png"),
        "a.jpg": (media.picture((64, 48), "JPEG"), "image/jpeg"),
        "a.pdf": (media.pdf(), "application/pdf"),
        "a.mp4": (media.video(1), "video/mp4"),
    }
    labelled = []
    for name, (data, expected) in recipes.items():
        (folder / name).write_bytes(data)
        labelled.append((folder / name, expected))
    return labelled


def _thousand_images(folder: Path) -> Iterator[Path]:
    drawn = [(media.picture((640 + n, 480)), "png") for n in range(10)] + [
        (media.picture((800, 600 + n), "JPEG"), "jpg") for n in range(10)
    ]
    for number in range(1000):
        data, suffix = drawn[number % len(drawn)]
        path = folder / f"{number:04}.{suffix}"
        path.write_bytes(data)
        yield path
