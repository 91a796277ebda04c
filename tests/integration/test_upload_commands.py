"""`weighlock upload` and `weighlock uploads`, against the emulator."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import media
from weighlock.cli import cli
from weighlock.emulator import Emulator
from weighlock.request import MediaPart
from weighlock.uploads.references import Reference, References

CANARY = "canary-key-4711"


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """With a folder to work in, whose settings keep state beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    Path("weighlock.yaml").write_text("version: 1\ndefault: {model: gemini-x}\nstate: {dir: state}\n")
    Path("shot.png").write_bytes(media.picture((64, 48)))
    Path("notes.txt").write_text("it fell over\n")
    with Emulator() as running:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running.base_url)
        yield running


def weighlock(*words: str) -> Result:
    return CliRunner(catch_exceptions=False).invoke(cli, words)


def uploaded(*words: str) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = json.loads(weighlock("upload", "--format", "json", *words).stdout)["files"]
    return files


def listed(*words: str) -> list[dict[str, Any]]:
    known: list[dict[str, Any]] = json.loads(weighlock("uploads", "list", "--format", "json", *words).stdout)["uploads"]
    return known


def test_files_are_uploaded_once_and_told_with_their_end(emulator: Emulator) -> None:
    first = weighlock("upload", "shot.png", "notes.txt")
    again = weighlock("upload", "shot.png")

    assert first.exit_code == again.exit_code == 0
    assert [line.split("\t")[2] for line in first.stdout.splitlines()] == ["image/png", "text/plain"]
    assert "\tnew, good until 20" in first.stdout
    assert "\treused, good until 20" in again.stdout
    assert len(emulator.requests.of("upload.start")) == 2
    assert CANARY not in first.output + again.output


def test_one_that_fails_is_told_and_the_others_go(emulator: Emulator) -> None:
    result = weighlock("upload", "missing.png", "shot.png")

    assert result.exit_code == 1
    assert result.stderr == "missing.png: no such file\n"
    assert result.stdout.startswith("shot.png\thttps://")


def test_what_was_uploaded_is_listed_and_shown(emulator: Emulator, tmp_path: Path) -> None:
    (file,) = uploaded("shot.png", "--tenant", "acme")

    (known,) = listed()
    assert (known["sha256"], known["uri"], known["tenant"]) == (file["sha256"], file["uri"], "acme")
    assert known["path"] == str(tmp_path / "shot.png")
    assert known["state"].startswith("good until")
    table = weighlock("uploads", "list").stdout
    assert file["sha256"][:12] in table
    assert "shot.png" in table
    assert listed("--tenant", "other") == []
    shown = json.loads(weighlock("uploads", "show", file["sha256"][:8]).stdout)["uploads"]
    assert shown == [known]


def test_every_command_tells_the_same_end(emulator: Emulator) -> None:
    until = re.compile(r"good until [^\n\t]* UTC")

    said = until.findall(weighlock("upload", "shot.png").stdout)
    (file,), (known,) = uploaded("shot.png"), listed()
    renewed = weighlock("uploads", "refresh", "--sha256", file["sha256"]).stdout
    after = listed()[0]

    assert said == [known["state"]]
    assert until.findall(renewed) == [after["state"]]
    for end in ("usable_until", "expires_at"):
        assert file[end] == known[end]
    assert known["usable_until"] < known["expires_at"]


def test_a_hash_that_nothing_has_is_told(emulator: Emulator) -> None:
    result = weighlock("uploads", "show", "ffff")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "weighlock uploads list" in result.stderr


def test_an_empty_path_is_not_the_folder_one_is_in(emulator: Emulator) -> None:
    result = weighlock("upload", "shot.png", "")

    assert result.exit_code == 2
    assert "a path is empty" in result.stderr
    assert not list(emulator.requests)


def test_whoever_waits_is_told_why(emulator: Emulator) -> None:
    emulator.faults.set("return-503", on="upload.start", count=1)

    result = weighlock("upload", "shot.png")

    assert result.exit_code == 0
    assert re.fullmatch(r"shot.png: the service refuses: 503 .*; trying again in 0\.\d s\n", result.stderr)


def test_what_is_named_is_uploaded_again(emulator: Emulator) -> None:
    (file, _) = uploaded("shot.png", "notes.txt")

    nothing_due = weighlock("uploads", "refresh")
    refreshed = weighlock("uploads", "refresh", "--sha256", file["sha256"][:10].upper())

    assert nothing_due.stdout == ""
    assert file["sha256"][:12] in refreshed.stdout
    assert file["uri"] not in refreshed.stdout
    assert len(emulator.requests.of("upload.start")) == 3
    assert uploaded("shot.png")[0]["uri"] != file["uri"]


def test_what_cannot_be_renewed_is_told(emulator: Emulator) -> None:
    uploaded("shot.png")
    Path("shot.png").unlink()

    result = weighlock("uploads", "refresh", "--tenant", "default")

    assert result.exit_code == 1
    assert "its bytes are nowhere here any more" in result.stderr


def test_purging_erases_here_and_says_what_stays_at_the_service(emulator: Emulator) -> None:
    (file,) = uploaded("shot.png")

    result = weighlock("uploads", "purge", "--sha256", file["sha256"])

    assert result.exit_code == 0
    assert "forgotten" in result.stdout
    assert "still at the service, which deletes it by 20" in result.stderr
    assert listed() == []
    assert sum(1 for _ in emulator.files) == 1


@pytest.mark.parametrize("words", [("purge", "--sha256", ""), ("refresh", "--sha256", " "), ("show", "")])
def test_no_digits_are_not_every_hash(emulator: Emulator, words: tuple[str, ...]) -> None:
    uploaded("shot.png")

    result = weighlock("uploads", *words)

    assert result.exit_code == 2
    assert "no digits" in result.stderr
    assert len(listed()) == 1


def test_purging_at_the_service_too_erases_every_file_of_the_content_and_no_other(emulator: Emulator) -> None:
    mine, other = uploaded("shot.png", "notes.txt")
    weighlock("uploads", "refresh", "--sha256", mine["sha256"])
    uploaded("shot.png", "--tenant", "b")

    result = weighlock("uploads", "purge", "--sha256", mine["sha256"], "--tenant", "default", "--remote")

    assert result.exit_code == 0
    assert result.stdout.count("deleted") == 2
    assert {(known["sha256"], known["tenant"]) for known in listed()} == {
        (mine["sha256"], "b"),
        (other["sha256"], "default"),
    }
    assert sum(1 for _ in emulator.files) == 2


def test_what_the_purge_cannot_reach_is_told_and_can_be_tried_again(emulator: Emulator) -> None:
    uploaded("shot.png")
    emulator.faults.set("return-400", on="files.delete", count=1)

    first = weighlock("uploads", "purge", "--all", "--remote")
    second = weighlock("uploads", "purge", "--all", "--remote")

    assert (first.exit_code, second.exit_code) == (1, 0)
    assert "kept here for another try" in first.stdout
    assert "not reached at the service" in first.stderr
    assert sum(1 for _ in emulator.files) == 0


def test_without_a_key_nothing_at_the_service_is_taken_for_erased(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded("shot.png", "notes.txt")
    monkeypatch.delenv("GEMINI_API_KEY")

    result = weighlock("uploads", "purge", "--all", "--remote")

    assert result.exit_code == 1
    assert result.stderr.count("GEMINI_API_KEY") == 2
    assert len(listed()) == 2
    assert weighlock("uploads", "purge", "--all").exit_code == 0


def test_a_copy_is_erased_though_the_service_cannot_be_asked(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    CliRunner().invoke(cli, ["upload", "-"], input=media.picture((64, 48)))
    (copy,) = Path("state/copies").iterdir()
    monkeypatch.delenv("GEMINI_API_KEY")

    result = weighlock("uploads", "purge", "--all", "--remote")

    assert not copy.exists()
    assert "copy erased, kept here for another try" in result.stdout
    assert "not reached at the service" in result.stderr
    assert result.exit_code == 1


def test_a_file_another_key_cannot_see_is_not_called_deleted(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded("shot.png")
    monkeypatch.setenv("GEMINI_API_KEY", "of-another-project")

    result = weighlock("uploads", "purge", "--all", "--remote")

    assert "was not there, or is another project's" in result.stdout
    assert "deleted" not in result.stdout
    assert sum(1 for _ in emulator.files) == 1


def test_what_is_there_when_somebody_stops_it_is_told(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure = References.ensure

    async def stopped(self: References, part: MediaPart, mime: str, **more: Any) -> Reference:
        if part.label == "notes.txt":
            raise KeyboardInterrupt
        return await ensure(self, part, mime, **more)

    monkeypatch.setattr(References, "ensure", stopped)

    result = weighlock("upload", "shot.png", "notes.txt")

    assert result.exit_code != 0
    assert result.stdout.startswith("shot.png\thttps://")


def test_nothing_to_renew_is_said(emulator: Emulator) -> None:
    result = weighlock("uploads", "refresh")

    assert (result.exit_code, result.stderr) == (0, "nothing to renew\n")


def test_what_was_used_lately_stays(emulator: Emulator) -> None:
    uploaded("shot.png")

    weighlock("uploads", "purge", "--older-than", "1h")

    assert len(listed()) == 1
    assert weighlock("uploads", "purge").exit_code == 2
    assert weighlock("uploads", "purge", "--older-than", "soon").exit_code == 2


def test_the_key_is_written_nowhere(emulator: Emulator, tmp_path: Path) -> None:
    uploaded("shot.png")

    written = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())

    assert CANARY.encode() not in written
    assert b"upload_id" not in written


# ---- said wrong, or to nobody


@pytest.mark.parametrize("mime", ["junk", "a\nb", "", "image/", "video/mp4", "text/plain", "x" * 99 + "/y"])
def test_a_type_that_is_none_or_another_than_the_bytes_is_refused_before_anything_is_kept(
    emulator: Emulator, mime: str
) -> None:
    result = weighlock("upload", "--mime", mime, "shot.png")

    assert result.exit_code in (1, 2)
    assert "--mime" in result.stderr
    assert (listed(), list(emulator.requests)) == ([], [])


@pytest.mark.parametrize(
    ("mime", "name", "known"),
    [
        ("IMAGE/PNG; q=1", "shot.png", "image/png"),
        ("text/markdown", "notes.txt", "text/markdown"),
        ("audio/l16", "raw", "audio/l16"),
    ],
)
def test_a_type_the_bytes_do_not_contradict_is_taken(emulator: Emulator, mime: str, name: str, known: str) -> None:
    Path("raw").write_bytes(bytes(range(1, 256)) * 40)

    assert [file["mime"] for file in uploaded("--mime", mime, name)] == [known]


def test_standard_input_is_uploaded_and_kept_for_it_is_seen_once(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    shot = Path("shot.png").read_bytes()

    result = CliRunner(catch_exceptions=False).invoke(cli, ["upload", "-", "notes.txt"], input=shot)

    assert result.stdout.startswith("standard input\thttps://")
    (known,) = (one for one in listed() if one["mime"] == "image/png")
    assert (known["path"], known["copied"], known["label"]) == (None, True, "standard input")
    assert weighlock("uploads", "refresh", "--sha256", known["sha256"]).exit_code == 0
    assert weighlock("upload", "-", "-").exit_code == 2


def test_nobody_is_no_tenant(emulator: Emulator) -> None:
    for words in (("upload", "shot.png"), ("uploads", "list"), ("uploads", "purge"), ("count", "shot.png")):
        result = weighlock(*words, "--tenant", "")
        assert (result.exit_code, "--tenant" in result.stderr) == (2, True)


@pytest.mark.parametrize("words", [("show", "zz"), ("list", "--sha256", "%"), ("purge", "--sha256", "\udcff")])
def test_what_is_no_hash_is_told(emulator: Emulator, words: tuple[str, ...]) -> None:
    result = weighlock("uploads", *words)

    assert result.exit_code == 2
    assert "digits" in result.stderr


def test_a_purge_of_nothing_says_so(emulator: Emulator) -> None:
    result = weighlock("uploads", "purge", "--sha256", "ffff", "--remote")

    assert (result.exit_code, result.stderr) == (0, "nothing to erase\n")


def test_what_was_uploaded_by_another_address_is_told_with_it(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded("shot.png")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")

    renewed, purged = (
        weighlock("uploads", "refresh", "--tenant", "default"),
        weighlock("uploads", "purge", "--all", "--remote"),
    )

    assert (renewed.exit_code, purged.exit_code) == (1, 1)
    for result in (renewed, purged):
        assert f"developer@{emulator.base_url.removeprefix('http://')}" in result.stderr


def test_what_is_given_up_and_not_reached_is_not_called_expired(emulator: Emulator) -> None:
    uploaded("shot.png")
    emulator.faults.set("return-400", on="files.delete", count=1)
    weighlock("uploads", "purge", "--all", "--remote")

    assert [one["state"] for one in listed()] == ["deleted, or not to be used any more"]


@pytest.mark.parametrize("words", [("purge", "--all", "--remote"), ("refresh", "--tenant", "default")])
def test_it_is_done_to_the_end_whoever_listens(emulator: Emulator, words: tuple[str, ...]) -> None:
    uploaded("shot.png", "notes.txt")
    read, write = os.pipe()
    os.close(read)

    command = [sys.executable, "-m", "weighlock", "uploads", *words]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)

    assert (done.returncode, done.stderr) == (0, b"")
    if words[0] == "purge":
        assert (listed(), [*emulator.files]) == ([], [])
    else:
        assert [one["uploads"] for one in listed()] == [2, 2]
