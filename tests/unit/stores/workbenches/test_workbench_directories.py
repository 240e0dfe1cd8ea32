"""The directories of workbenches: what the server writes there, and that an owner cannot lead it astray."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches, NotTheWorkbench, parse_status

STATUS = {
    "attempt": 2,
    "at": 100.0,
    "account": "ann",
    "jupyter_ready": True,
    "ssh_ready": True,
    "ssh_port": 40001,
    "ssh_host_key": "ssh-ed25519 AAAA",
    "ssh_sessions": 1,
    "busy": False,
    "used_at": 90.0,
}


@pytest.fixture
def files(tmp_path: Path) -> DirectoryWorkbenches:
    program = tmp_path / "program.py"
    program.write_text("print('hello')")
    found = DirectoryWorkbenches(lambda job_id: tmp_path / "jobs" / job_id, {"host.py": program})
    found.prepare("j-1", {"jupyter": True, "workdir": None}, ["ssh-ed25519 AAAA"])
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "jobs" / "j-1" / "workbench"


def test_a_workbench_finds_everything_when_it_starts(files: DirectoryWorkbenches, home: Path) -> None:
    assert (home / "host.py").read_text() == "print('hello')"
    assert json.loads((home / "settings.json").read_text()) == {"jupyter": True, "workdir": None}
    assert (home / "authorized_keys").read_text() == "ssh-ed25519 AAAA\n"
    assert (home / "run").stat().st_mode & 0o777 == 0o700
    assert (home.parent / "work").stat().st_mode & 0o777 == 0o700


def test_keys_are_written_only_when_they_change(files: DirectoryWorkbenches, home: Path) -> None:
    assert not files.put_keys("j-1", ["ssh-ed25519 AAAA"])
    assert files.put_keys("j-1", [])
    assert (home / "authorized_keys").read_text() == ""
    assert not files.put_keys("j-2", ["ssh-ed25519 AAAA"]), "one that was never launched"


def test_a_link_in_the_way_is_replaced_and_not_followed(
    files: DirectoryWorkbenches, home: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (home / "authorized_keys").unlink()
    (home / "authorized_keys").symlink_to(precious)
    assert files.put_keys("j-1", ["new"])
    assert (home / "authorized_keys").read_text() == "new\n"
    assert precious.read_text() == "kept"
    assert not (home / "authorized_keys").is_symlink()


def test_a_directory_that_is_a_link_is_refused(files: DirectoryWorkbenches, home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.rename(home.with_name("moved"))
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="a link is in the way"):
        files.prepare("j-1", {}, [])
    assert files.status("j-1") is None
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_status_of_a_workbench_is_read(files: DirectoryWorkbenches, home: Path) -> None:
    assert files.status("j-1") is None
    (home / "run" / "status.json").write_text(json.dumps(STATUS))
    status = files.status("j-1")
    assert status is not None
    assert (status.attempt, status.account, status.ssh_port, status.used_at) == (2, "ann", 40001, 90.0)


def test_a_pipe_or_a_link_in_its_place_says_nothing(files: DirectoryWorkbenches, home: Path) -> None:
    place = home / "run" / "status.json"
    os.mkfifo(place)
    assert files.status("j-1") is None
    place.unlink()
    place.symlink_to("/etc/hostname")
    assert files.status("j-1") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"account": "ann; rm -rf /"},
        {"account": "-oProxyCommand=evil"},
        {"account": ""},
        {"account": 7},
        {"ssh_port": 0},
        {"ssh_port": 70000},
        {"ssh_host_key": "ssh-ed25519 AAAA\nevil"},
        {"ssh_host_key": "@cert-authority * ssh-ed25519 AAAA"},
        {"at": None},
        {"attempt": "first"},
    ],
)
def test_nonsense_is_nothing(wrong: dict[str, Any]) -> None:
    assert parse_status(json.dumps(STATUS).encode()) is not None
    assert parse_status(json.dumps({**STATUS, **wrong}).encode()) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*STATUS]), inner, max_size=10),
    max_leaves=20,
)


@given(JSON)
def test_files_written_by_the_owner_harm_no_other_user(value: Any) -> None:
    parse_status(json.dumps(value).encode())


@given(st.binary(max_size=200))
def test_nor_do_bytes(data: bytes) -> None:
    parse_status(data)


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen(1)
    return server


def test_socket_is_found_in_deep_directories(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.touch()
    deep = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    files = DirectoryWorkbenches(lambda job_id: deep / job_id, {"host.py": program})
    files.prepare("j-1", {}, [])
    run = deep / "j-1" / "workbench" / "run"
    assert len(str(run)) > 107
    before = os.open(".", os.O_RDONLY)
    os.chdir(run)
    try:
        with listening(Path("jupyter.sock")), files.connect("j-1") as connection:
            assert connection.getpeername() == "jupyter.sock"
    finally:
        os.chdir(before)
        os.close(before)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another account: run as root")
def test_a_link_to_another_users_socket_leads_nowhere(files: DirectoryWorkbenches, home: Path, tmp_path: Path) -> None:
    """The server may be root: its connection must not reach a daemon that only root may speak to."""
    with listening(tmp_path / "daemon.sock"):
        (home / "run" / "jupyter.sock").symlink_to(tmp_path / "daemon.sock")
        files.connect("j-1").close()
        os.chown(home / "run", 12345, 12345)
        with pytest.raises(NotTheWorkbench):
            files.connect("j-1")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another account: run as root")
def test_a_moved_directory_leads_nowhere(
    files: DirectoryWorkbenches, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of a workbench is read from the job's own directory, which no job can replace."""
    monkeypatch.chdir(home / "run")  # the path of a socket has its limits
    with listening(Path("jupyter.sock")):
        os.chown(home.parent, 12345, 12345)
        with pytest.raises(NotTheWorkbench):
            files.connect("j-1")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another account: run as root")
def test_later_files_belong_to_the_account_of_the_job(files: DirectoryWorkbenches, home: Path) -> None:
    os.chown(home, 12345, 12345)
    (home / "run").rmdir()
    files.prepare("j-1", {"workdir": None}, [])
    assert (home / "run").stat().st_uid == 12345
