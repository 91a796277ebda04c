from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from weighlock.errors import ConfigError, StateUnavailable
from weighlock.state import StateFile, network_file_system

ONE = "CREATE TABLE words (word TEXT)"
TWO = "ALTER TABLE words ADD COLUMN length INTEGER; UPDATE words SET length = length(word)"


def words(file: StateFile) -> list[str]:
    with file.reading() as sql:
        return [row[0] for row in sql.execute("SELECT word FROM words ORDER BY word")]


def say(file: StateFile, word: str) -> None:
    with file.writing() as sql:
        sql.execute("INSERT INTO words (word) VALUES (?)", (word,))


def test_what_is_written_is_there_the_next_time_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.db"
    first = StateFile(path, [ONE])
    say(first, "lock")
    modes = {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    first.close()

    again = StateFile(path, [ONE])

    assert words(again) == ["lock"]
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    again.close()


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.db", [ONE])

    def half() -> None:
        with file.writing() as sql:
            sql.execute("INSERT INTO words VALUES ('half')")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()

    assert words(file) == []
    file.close()


def test_an_older_file_is_brought_forward_and_a_copy_of_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    old = StateFile(path, [ONE])
    say(old, "toll")
    old.close()

    new = StateFile(path, [ONE, TWO])

    with new.reading() as sql:
        assert tuple(sql.execute("SELECT word, length FROM words").fetchone()) == ("toll", 4)
    new.close()
    (tmp_path / "s.db.v1").rename(path)
    back = StateFile(path, [ONE])
    assert words(back) == ["toll"]
    back.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    StateFile(path, [ONE]).close()

    with pytest.raises(StateUnavailable, match="no such table"):
        StateFile(path, [ONE, "ALTER TABLE words ADD COLUMN a; DROP TABLE missing"])

    StateFile(path, [ONE]).close()


def test_a_newer_file_is_refused_and_the_way_back_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    StateFile(path, [ONE, TWO]).close()

    with pytest.raises(ConfigError, match=r"of version 2, and this weighlock knows 1: .*s\.db\.v1.*move the file"):
        StateFile(path, [ONE])


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (a)")
    other.close()

    with pytest.raises(ConfigError, match="another program"):
        StateFile(path, [ONE])


@pytest.mark.parametrize(
    "damage", [b"no database at all, but long enough" * 100, b"SQLite format 3\x00" + b"\xff" * 4080]
)
def test_a_damaged_file_is_a_typed_error(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "s.db").write_bytes(damage)

    with pytest.raises(StateUnavailable, match="move it away"):
        StateFile(tmp_path / "s.db", [ONE])


@pytest.mark.parametrize(
    "damage", ["PRAGMA user_version=0", "PRAGMA user_version=-3", "DROP TABLE words", "ALTER TABLE words DROP word"]
)
def test_a_file_that_lost_its_version_or_a_table_is_told_to_be_moved_away(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "s.db"
    StateFile(path, [ONE, TWO]).close()
    sql = sqlite3.connect(path)
    sql.execute(damage)
    sql.close()

    with pytest.raises(StateUnavailable, match=r"s\.db: .*; move it away"):
        words(StateFile(path, [ONE, TWO]))


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"state\.dir"):
        StateFile(tmp_path / "file" / "s.db", [ONE])


NOBODY = """
import os, sys
from pathlib import Path
from weighlock.errors import ConfigError
from weighlock.state import StateFile
if os.geteuid() == 0:
    os.setuid(65534)
try:
    StateFile(Path(sys.argv[1]), ())
except ConfigError as error:
    print(error)
"""


def test_a_folder_that_is_not_ours_to_write_is_told_by_the_setting(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # `tmp_path` lies in a folder nobody else may enter
        file = Path(folder) / "uploads.db"
        StateFile(file, [ONE]).close()
        file.chmod(0o666)
        Path(folder).chmod(0o555)

        told = subprocess.run(
            [sys.executable, "-c", NOBODY, str(file)], capture_output=True, text=True, check=True
        ).stdout

        assert told == f"state.dir {folder}: not ours to write\n"


def test_a_lock_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    file, other = (StateFile(tmp_path / "s.db", [ONE], busy_s=0.1) for _ in range(2))

    with file.writing(), pytest.raises(StateUnavailable, match=r"locked for longer than 0\.1 s"):
        say(other, "late")

    file.close()
    other.close()


def test_threads_share_one_file(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.db", [ONE])
    threads = [threading.Thread(target=say, args=(file, f"{n:02}")) for n in range(20)]

    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert len(words(file)) == 20
    file.close()


def test_processes_that_begin_together_make_one_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from weighlock.state import StateFile\n"
        f"StateFile(Path(sys.argv[1]), [{ONE!r}]).close()"
    )
    begun = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s.db")]) for _ in range(4)]

    assert [one.wait() for one in begun] == [0] * 4


def test_a_forked_child_writes_beside_its_parent(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.db", [ONE])
    say(file, "parent")
    child = os.fork()
    if not child:
        say(file, "child")
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert words(file) == ["child", "parent"]
    file.close()


MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/local tmpfs rw 0 0
//host/share /mnt/with\040blank cifs rw 0 0
/dev/sdb1 /srv ext4 rw 0 0
host:/srv /srv fuse.sshfs rw 0 0
odd line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib", None),
        ("/home/me", "nfs4"),
        ("/home/me/local/state", None),
        ("/homestead", None),
        ("/mnt/with blank/x", "cifs"),
        ("/srv", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_told_by_the_mount_a_folder_is_on(folder: str, kind: str | None) -> None:
    assert network_file_system(Path(folder), MOUNTS) == kind


def test_a_folder_on_a_network_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr("weighlock.state._MOUNTS", mounts)

    with pytest.raises(ConfigError, match=r"is on nfs4, .*state\.dir"):
        StateFile(tmp_path / "s.db", [ONE])
