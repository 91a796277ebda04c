"""The house rules that a linter cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import media
import weighlock

SOURCE = Path(weighlock.__file__).parent
DOORS = {
    "av": {
        "codecs/pyav.py",
        "codecs/samples.py",
        *(f"codecs/pyav_{part}.py" for part in ("film", "output", "pictures", "sound")),
    },
    "PIL": {
        *(f"codecs/pillow{part}.py" for part in ("", "_colour", "_make", "_sheet", "_write")),
        "codecs/samples.py",
    },
    "pi_heif": {"codecs/pillow.py", "codecs/pillow_make.py"},
    "pypdfium2": {"codecs/pdf.py"},
    "pypdfium2_raw": {"codecs/pdf.py"},
    "pikepdf": {f"codecs/pdf{part}.py" for part in ("", "_links", "_make", "_strip")},
    "google": {
        "gemini/auth.py",
        *(
            f"converters/genai_{part}.py"
            for part in ("config", "contents", "fields", "media", "parts", "raw_results", "types")
        ),
        *(f"integrations/genai_{part}.py" for part in ("client", "contract", "models", "stores")),
        "integrations/media.py",
    },
    "pybase64": {"encoded.py"},
    "httpx2": {"io.py"},
    "sqlite3": {"state.py"},
    "redis": {"budgets/redis.py"},
    "msgspec": {"converters/json_text.py"},
    "genai_prices": {"pricing.py"},
    "prometheus_client": {"observe/prometheus.py"},
    "aiohttp": {"service/upstream.py"},
    "yarl": {"service/upstream.py"},
    "starlette": {"emulator/admin.py", "emulator/app.py", "emulator/routes.py", "service/admin.py"},
    "uvicorn": {"emulator/transport.py", "service/server.py"},
    "pytest": {"emulator/pytest_plugin.py"},
}
PURE = ("media", "mime", "planning", "report.py", "screening_report.py", "request.py", "errors.py")
DEEDS = {"os", "io", "socket", "subprocess", "time", "threading", "asyncio", "tempfile", "logging", "random", "shutil"}
FOREIGN = {"pydantic", "pydantic_settings", "click", "rich", "yaml", *DOORS}


def modules_below(room: str) -> list[Path]:
    path = SOURCE / room
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


@cache
def imported(path: Path) -> set[str]:
    """Top-level names a module imports at run time, wherever in it; type-checking blocks do not count."""
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
        waiting += ast.iter_child_nodes(node)
    return names


@pytest.mark.parametrize("library", DOORS)
def test_each_outside_library_has_its_doors(library: str) -> None:
    users = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if library in imported(path)}

    assert users <= DOORS[library]


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_do_no_deeds_and_need_nobody(room: str) -> None:
    found = {path.name: imported(path) & (DEEDS | FOREIGN) for path in modules_below(room)}

    assert not {name: names for name, names in found.items() if names}


def test_public_names_are_sorted_and_resolve() -> None:
    names = [name for name in weighlock.__all__ if not name.startswith("_")]

    assert names == sorted(names)
    assert all(getattr(weighlock, name) is not None for name in weighlock.__all__)
    assert set(names) == set(weighlock._HOMES)


def test_importing_the_package_loads_neither_sdk_nor_codec() -> None:
    heavy = (
        "av",
        "PIL",
        "pi_heif",
        "pypdfium2",
        "pikepdf",
        "google.genai",
        "pydantic",
        "genai_prices",
        "rich",
        "click",
    )
    code = f"import sys, weighlock; print([m for m in {heavy!r} if m in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"


def test_checking_an_image_loads_neither_sdk_nor_codec(tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    shot.write_bytes(media.picture((64, 48)))
    heavy = ("av", "PIL", "pi_heif", "pypdfium2", "pikepdf", "google.genai")
    code = (
        f"import sys; sys.argv = ['weighlock', 'check', {str(shot)!r}]\n"
        "from weighlock.cli import cli\n"
        "cli(standalone_mode=False)\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip().splitlines()[-1] == "[]"


def test_the_source_leaves_no_word_of_unfinished_work() -> None:
    unfinished = ("TO" + "DO", "FIX" + "ME", "raise NotImplemented" + "Error")
    found = [
        f"{path.name}: {word}"
        for path in SOURCE.rglob("*.py")
        for word in unfinished
        if word in path.read_text(encoding="utf-8")
    ]

    assert not found
