"""A user's job attacks the server that `corral.service` starts: its store, keys and processes."""

from __future__ import annotations

import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.conftest import SharedMachine, shared_machine
from tests.servers import unit_server
from tests.servers.images import busybox_image, needs_podman

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("systemd-analyze") is None,
        reason="there is no systemd-analyze: install it (Debian package: systemd)",
    ),
]

_SYS_MODULE = 16
#: Tries everything, and says what succeeded. Arguments: the home, the server, its spawner.
ATTACK = r"""
import ctypes, os, signal, sqlite3, sys
home, server, spawner = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, action, *args):
    try:
        print("SUCCEEDED", name, action(*args))
    except (OSError, sqlite3.Error) as error:
        print("failed", name, type(error).__name__)

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result

def promote():
    with sqlite3.connect(f"{home}/corral.db", timeout=1) as store:
        return store.execute("UPDATE users SET role = 'operator' WHERE name = 'eve'").rowcount

def read(path):
    with open(path, "rb") as source:
        return source.read(100)

def write(path):
    with open(path, "ab") as target:
        return target.write(b"x")

def push_event():
    return os.write(os.open(f"{home}/local/events", os.O_WRONLY | os.O_NONBLOCK), b"j-1.1\n")

attempt("edit the store", promote)
for name in ("corral.db", "corral.db-wal", "secrets.key", "server.log", "server.lock", "local/spawner.log"):
    attempt(f"read {name}", read, f"{home}/{name}")
    attempt(f"write {name}", write, f"{home}/{name}")
for name in ("", "jobs", "jobs/000000", "local", "local/live", "local/runs"):
    attempt(f"list {name or 'the home'}", os.listdir, f"{home}/{name}")
    attempt(f"make a file in {name or 'the home'}", write, f"{home}/{name}/planted")
    attempt(f"change the mode of {name or 'the home'}", os.chmod, f"{home}/{name}", 0o777)
attempt("move the store away", os.rename, f"{home}/corral.db", f"{home}/gone.db")
attempt("remove the key", os.unlink, f"{home}/secrets.key")
attempt("push an event", push_event)
for name, pid in (("server", server), ("spawner", spawner), ("supervisor", os.getppid())):
    for number in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        attempt(f"signal {number} to the {name}", os.kill, pid, number)
    attempt(f"trace the {name}", lambda: checked(libc.ptrace(16, pid, 0, 0)))
    for file in ("environ", "mem", "maps", "stack", "syscall", "io", "auxv", "pagemap"):
        attempt(f"read {file} of the {name}", read, f"/proc/{pid}/{file}")
    for file in ("mem", "oom_score_adj", "comm"):
        attempt(f"write {file} of the {name}", write, f"/proc/{pid}/{file}")
    for folder in ("fd", "map_files", "root", "cwd", "fdinfo"):
        attempt(f"list {folder} of the {name}", os.listdir, f"/proc/{pid}/{folder}/")
    attempt(f"name the mounts of the {name}", os.readlink, f"/proc/{pid}/ns/mnt")
    attempt(f"take a descriptor of the {name}", lambda: checked(libc.syscall(438, os.pidfd_open(pid), 3, 0)))
    attempt(f"change the limits of the {name}", lambda: __import__("resource").prlimit(pid, 7, (1, 1)))
    attempt(f"change the niceness of the {name}", os.setpriority, os.PRIO_PROCESS, pid, 19)
print("tried everything")
"""


@pytest.fixture(scope="module")
def machine(worker_id: str) -> Iterator[SharedMachine]:
    with shared_machine(worker_id, program=[unit_server.__file__]) as shared:
        yield shared


def test_a_job_can_neither_change_the_store_nor_reach_the_servers_processes(machine: SharedMachine) -> None:
    assert machine.server.process is not None
    server = machine.server.process.pid
    (spawner,) = [pid for pid in _children(server) if _name(pid) == "corral-spawner"]
    # The directives of the unit hold.
    assert _status(server, "Seccomp") == "2"
    assert not int(_status(server, "CapEff"), 16) >> _SYS_MODULE & 1
    with machine.server.http() as http:
        # The first secret makes the key.
        login = {"registry": "registry.example.org", "username": "lab", "secret": "hunter2"}
        http.put("/registry-logins/lab", json=login).raise_for_status()
    assert (machine.server.home / "secrets.key").is_file()
    program = machine.place / "attack.py"
    program.write_text(ATTACK)
    ended, log = machine.run("eve", f"exec python3 {program} {machine.server.home} {server} {spawner}")
    assert ended["state"] == "completed", log
    assert log.splitlines()[-1] == "tried everything"
    assert [line for line in log.splitlines() if line.startswith("SUCCEEDED")] == []
    with machine.server.http("eve") as http:
        assert http.get("/me").json()["role"] == "scientist"
    assert machine.server.is_running
    assert (machine.server.home.stat().st_mode & 0o777, machine.server.home.stat().st_uid) == (0o711, 0)


def test_a_job_has_no_privileges_and_the_operators_are_refused(machine: SharedMachine) -> None:
    _, log = machine.run("eve", "grep -E 'Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:' /proc/self/status; umask; ulimit -n")
    status = dict(line.split(":", 1) for line in log.splitlines() if ":" in line)
    assert status["Uid"].split() == [str(_uid(machine.accounts["eve"]))] * 4
    assert status["Groups"].split() == status["Gid"].split()[:1]
    assert {status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    # Under the unit no job is root, the first operator's neither.
    ended, _ = machine.run("operator", "id -u")
    assert (ended["state"], ended["end_reason"]) == ("failed", "launch_error")
    assert "operator has no account on this machine" in ended["message"]


def test_jobs_work_under_the_unit(machine: SharedMachine) -> None:
    """Limits, a volume, a stop and a restart of the server need what the unit leaves to it."""
    with machine.server.http("ann") as http:
        body = {"name": "data", "type": "filesystem", "size": "1G"}
        http.post("/volumes", json=body).raise_for_status()
    script = "echo kept > /data/file && cat /data/file && id -u"
    ended, log = machine.run("ann", script, mounts=["data:/data:rw"], memory="64M", cpus=1)
    assert (ended["state"], log.split()) == ("completed", ["kept", str(_uid(machine.accounts["ann"]))]), log
    long = machine.submit("ann", "echo up; exec sleep 1000")
    machine.wait("ann", long, "running")
    assert machine.server.stop() == 0
    machine.start()
    assert machine.job("ann", long)["state"] == "running"
    with machine.server.http("ann") as http:
        http.post(f"/jobs/{long}/stop").raise_for_status()
    assert machine.wait("ann", long)["state"] == "stopped"


@needs_podman
def test_containers_work_under_the_unit(machine: SharedMachine) -> None:
    with busybox_image() as address:
        with machine.server.http() as http:
            image = {"name": "busybox", "address": address, "visibility": "public"}
            http.post("/images", json=image).raise_for_status()
        ended, log = machine.run("ann", "id -u; cat /proc/self/status", image="busybox")
    assert ended["state"] == "completed", (ended["message"], log)
    assert log.splitlines()[0] == str(_uid(machine.accounts["ann"]))


def _uid(account: str) -> int:
    return pwd.getpwnam(account).pw_uid


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _status(pid: int, key: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{key}:"))
