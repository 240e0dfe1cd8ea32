"""Jobs try to inherit from the server, to gain privileges, to outlive their end and to leave their limits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.attacks.conftest import SharedMachine, shared_machine
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD

pytestmark = pytest.mark.slow

_SYS_ADD_KEY, _SYS_KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(os.uname().machine, (0, 0))
_SESSION_KEYRING = -3
#: A server whose session holds a secret, as that of an administrator who signed in may.
SERVER_WITH_KEY = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({_SYS_KEYCTL}, 1, None) > 0 and libc.syscall(
    {_SYS_ADD_KEY}, b"user", b"corral:secret", b"hunter2", 7, {_SESSION_KEYRING}
) > 0:
    print("the session has a key", file=sys.stderr, flush=True)
os.execv(sys.executable, [sys.executable, "-m", "corral.cli.main", *sys.argv[1:]])
"""
#: Prints the payload of a key that the session keyring holds.
READ_KEY = f"""
import ctypes
libc = ctypes.CDLL(None)
found = libc.syscall({_SYS_KEYCTL}, 10, {_SESSION_KEYRING}, b"user", b"corral:secret", 0)
text = ctypes.create_string_buffer(64)
length = libc.syscall({_SYS_KEYCTL}, 11, found, text, 64) if found > 0 else -1
print("read", text.raw[:length].decode() if length > 0 else "nothing")
"""
#: Leaves every group and session that a process can leave, and goes on.
DAEMON = """
import os, signal, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.environ.clear()
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
for descriptor in range(3):
    os.close(descriptor)
os.execve(sys.executable, ["corral-escaped-" + sys.argv[1], "-c", "import time; time.sleep(1000)"], {})
"""


def test_a_job_inherits_no_keys_of_roots_session(worker_id: str, tmp_path: Path) -> None:
    """A process with a session keyring has the keys in it, whatever its account is."""
    program = tmp_path / "server.py"
    program.write_text(SERVER_WITH_KEY)
    with shared_machine(worker_id, program=[str(program)]) as machine:
        assert "the session has a key" in machine.server.log()
        ended, log = machine.run("eve", f"python3 -c '{READ_KEY}'")
    assert (ended["state"], log) == ("completed", "read nothing\n")


def test_a_job_inherits_neither_files_nor_variables_nor_signals_of_the_server(machine: SharedMachine) -> None:
    _, log = machine.run("eve", "env; ls -l /proc/self/fd; grep -E 'Sig|Shd' /proc/self/status; umask; tty; true")
    assert PASSWORD not in log
    assert "CORRAL_BOOTSTRAP_PASSWORD" not in log
    assert "CORRAL_ALLOW_ROOT" not in log
    lines = log.splitlines()
    # Standard input, the pipe to the log twice, and the directory that ls reads.
    descriptors = [line.rpartition(" -> ")[2] for line in lines if " -> " in line]
    assert len(descriptors) == 4, log
    assert descriptors[0] == "/dev/null"
    assert all(place.startswith(("pipe:", "/proc/")) for place in descriptors[1:]), log
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    # Signals 32 and 33 are libc's own: no program can set them, and a job has them as the machine's first process has.
    of_libc = 0b11 << 31
    masks = {int(status[name], 16) & ~of_libc for name in ("SigBlk", "SigIgn", "SigPnd", "ShdPnd")}
    assert masks == {0}, log
    assert "0022" in lines
    assert "not a tty" in lines


def test_a_setuid_program_gives_a_job_no_privileges(machine: SharedMachine) -> None:
    """Such as sudo: to run a job as an account needs no password of that account."""
    raised = machine.place / "raised"
    shutil.copyfile("/usr/bin/id", raised)
    raised.chmod(0o4755)
    ended, log = machine.run("eve", f"{raised} -u; {raised} -ru")
    assert ended["state"] == "completed"
    assert len(set(log.split())) == 1, log
    assert "0" not in log.split()


def test_the_server_offers_no_socket_to_jobs(machine: SharedMachine) -> None:
    """Sockets without a file have no owner: every account could connect to one."""
    script = "grep -oE '@[^ ]*(corral|jupyter|uvicorn)[^ ]*' /proc/net/unix; ls -R $SERVER/local; true"
    _, log = machine.run("eve", script, env={"SERVER": str(machine.server.home)})
    assert [line for line in log.splitlines() if line.startswith("@")] == []
    sockets = [path for path in machine.server.home.rglob("*") if path.is_socket() or path.is_fifo()]
    assert [path for path in sockets if path.stat().st_mode & 0o077] == []


def test_a_daemon_ends_with_its_job(machine: SharedMachine) -> None:
    program = machine.place / "daemon.py"
    program.write_text(DAEMON)
    ended, _ = machine.run("eve", f"python3 {program} ended; sleep 1")
    assert ended["state"] == "completed"
    wait_until(lambda: not _escaped("ended"), "the daemon is gone")


def test_a_daemon_ends_with_the_time_limit(machine: SharedMachine) -> None:
    program = machine.place / "daemon.py"
    program.write_text(DAEMON)
    script = f"trap '' TERM; python3 {program} limited; while :; do sleep 1; done"
    ended, _ = machine.run("eve", script, time="2s", grace="1s")
    assert ended["end_reason"] == "timed_out", ended
    wait_until(lambda: not _escaped("limited"), "the daemon is gone")


def test_a_job_cannot_leave_its_control_group(machine: SharedMachine) -> None:
    script = """
    cat /proc/self/cgroup
    for file in $(find /sys/fs/cgroup -name cgroup.procs -o -name tasks 2>/dev/null); do
        echo $$ > $file && echo LEFT $file
    done 2>/dev/null
    for file in $(find /sys/fs/cgroup -name memory.max -o -name memory.limit_in_bytes -o -name pids.max 2>/dev/null); do
        echo max > $file && echo RAISED $file
    done 2>/dev/null
    cat /proc/self/cgroup
    """
    ended, log = machine.run("eve", script, memory="64M")
    assert ended["state"] in ("completed", "failed")
    assert "LEFT" not in log
    assert "RAISED" not in log
    groups = log.splitlines()
    assert groups[: len(groups) // 2] == groups[len(groups) // 2 :], log


def _escaped(name: str) -> list[int]:
    marker = f"corral-escaped-{name}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # gone meanwhile
            if marker in command:
                found.append(int(entry.name))
    return found
