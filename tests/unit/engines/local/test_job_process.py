"""The start of a job's process: with shared memory and by a fork, which must not differ for the job."""

from __future__ import annotations

import os
import resource
import select
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from corral.engines.local.supervisors import job_process, shared_memory_start
from corral.engines.local.supervisors.job_process import start_job
from corral.engines.local.supervisors.shared_memory_start import Call, Need, Step, hides_memory, is_supported, start

needs_start = pytest.mark.skipif(not is_supported(), reason="no start with shared memory on this machine")
LOOK = """
import os, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(os.getcwd(), os.getsid(0) == os.getpid(), os.environ["WORD"], sorted(os.environ), sys.argv[1:])
print({name: status[name].strip() for name in ("SigBlk", "NoNewPrivs", "Uid", "Groups")})
print(sorted(os.listdir("/proc/self/fd"))[:3], os.readlink("/proc/self/fd/0"))
"""


@pytest.fixture(params=["shared memory", "fork"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fork":
        monkeypatch.setattr(job_process, "is_supported", lambda: False)
    elif not is_supported():
        pytest.skip("no start with shared memory on this machine")
    return str(request.param)


def spec_of(*command: str, **more: Any) -> Any:
    env = {"WORD": "wörd", "PATH": "/nowhere:/usr/bin:/bin"}
    empty: dict[str, Any] = {"owner": None, "venv": "", "no_new_privileges": False, "container": None, "storage": []}
    return {**empty, "command": list(command), "env": env, **more}


class _NoStorage:
    def enter(self, say: object) -> dict[str, str]:
        return {}


def ran(spec: Any, workdir: Path | str) -> tuple[int, str, str]:
    """Exit code, output, and why the program was not executed."""
    process = start_job(spec, str(workdir), None, _NoStorage(), None)  # type: ignore[arg-type]
    _, status = os.waitpid(process.pid, 0)
    try:
        select.select([process.exec_report], [], [])
        report = os.read(process.exec_report, 4096).decode()
        output = b""
        while data := os.read(process.output, 65536):
            output += data
    finally:
        os.close(process.output)
        os.close(process.exec_report)
    return os.waitstatus_to_exitcode(status), output.decode(), report or process.problem()


def test_both_ways_start_the_same_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(sys.executable, "-c", LOOK, "a b", "ü")
    shared = ran(spec, tmp_path)
    monkeypatch.setattr(job_process, "is_supported", lambda: False)
    assert ran(spec, tmp_path) == shared
    code, output, problem = shared
    assert (code, problem) == (0, "")
    assert output.startswith(f"{tmp_path} True wörd")


def test_no_signal_is_blocked_or_ignored(way: str, tmp_path: Path) -> None:
    """The interpreter ignores some, and a supervisor more."""
    output = ran(spec_of("cat", "/proc/self/status"), tmp_path)[1]
    assert {f"{name}:\t{0:016x}" for name in ("SigBlk", "SigIgn", "SigCgt")} <= set(output.splitlines())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change accounts")
def test_both_ways_change_to_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = {"name": "nobody", "uid": 65534, "gid": 65534, "groups": [65534, 4]}
    spec = spec_of("cat", "/proc/self/status", owner=owner, no_new_privileges=True)

    def seen() -> set[str]:
        code, output, problem = ran(spec, "/")
        assert (code, problem) == (0, "")
        lines = output.splitlines()
        return {line for line in lines if line.startswith(("Uid", "Gid", "Groups", "NoNewPrivs", "CapEff", "Umask"))}

    shared = seen()
    assert {"Uid:\t65534\t65534\t65534\t65534", "Groups:\t4 65534 ", "NoNewPrivs:\t1", "Umask:\t0022"} <= shared
    monkeypatch.setattr(job_process, "is_supported", lambda: False)
    assert seen() == shared


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-program", "no-such-program: command not found in PATH (/nowhere:/usr/bin:/bin)"),
        ("/etc", "/etc: Permission denied"),
        ("/no/such", "/no/such: No such file or directory"),
        ("a\0b", "'a\\x00b': execve: embedded null character in path"),
    ],
)
def test_a_program_that_cannot_be_executed_is_reported(way: str, tmp_path: Path, command: str, problem: str) -> None:
    assert ran(spec_of(command), tmp_path) == (127, "", problem)


def test_a_missing_working_directory_is_reported(way: str, tmp_path: Path) -> None:
    code, _, problem = ran(spec_of("true"), tmp_path / "gone")
    assert (code, problem) == (127, f"working directory {tmp_path}/gone: No such file or directory")


def test_a_script_without_interpreter_and_too_long_arguments_are_reported(way: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/interpreter\n")
    script.chmod(0o755)
    assert "interpreter named in its first line" in ran(spec_of(str(script)), tmp_path)[2]
    assert "too long" in ran(spec_of("true", "x" * (1 << 20)), tmp_path)[2]


@needs_start
def test_a_program_is_started_without_a_copy_of_the_memory(tmp_path: Path) -> None:
    """Counted in page faults of the new process: a fork of this interpreter takes hundreds more."""

    def faults(run: Any) -> int:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        run()
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before

    bare = faults(lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0))
    assert faults(lambda: ran(spec_of("/bin/true"), tmp_path)) <= bare + 10


@needs_start
def test_steps_end_at_the_first_one_that_fails() -> None:
    steps = [
        Step(Call.GETPPID, need=Need.EQUAL, expected=os.getpid()),
        Step(Call.CHDIR, (b"/no/such",), need=Need.NOTHING),
        Step(Call.DUP2, (-1, 0)),
        Step(Call.EXECVE, (b"/bin/true", [b"true"], [])),
    ]
    started = start(steps)
    assert os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1]) == 127
    assert started.has_failed
    assert started.errors() == [0, 2, 9, None]
    other = start([Step(Call.GETPPID, need=Need.EQUAL, expected=1 << 40), steps[-1]])
    assert os.waitstatus_to_exitcode(os.waitpid(other.pid, 0)[1]) == 127
    assert other.has_failed


@needs_start
def test_the_parent_goes_on_while_a_step_waits() -> None:
    """As with a working directory on a server that does not answer."""
    read, write = os.pipe()
    copy = os.dup(write)
    os.set_blocking(write, False)
    room = 0
    while True:
        try:
            room += os.write(write, bytes(4096))
        except BlockingIOError:
            break
    os.set_blocking(copy, True)
    begun = time.monotonic()
    started = start([Step(Call.WRITE, (copy, b"x", 1)), Step(Call.EXECVE, (b"/bin/true", [b"true"], []))])
    assert os.waitpid(started.pid, os.WNOHANG) == (0, 0), f"after {time.monotonic() - begun} s"
    while room > 0:
        room -= len(os.read(read, 1 << 16))
    assert os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1]) == 0
    for descriptor in (read, write, copy):
        os.close(descriptor)


def test_memory_is_shared_only_where_the_kernel_hides_it_from_the_account(tmp_path: Path) -> None:
    setting = tmp_path / "suid_dumpable"
    assert not hides_memory(str(setting))
    for value, hidden in (("0", True), ("1", False), ("2", True), ("", False)):
        setting.write_text(f"{value}\n")
        assert hides_memory(str(setting)) is hidden


@needs_start
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change accounts")
def test_a_process_of_another_account_hides_the_memory_that_it_shares() -> None:
    """While it waits, it has the account `nobody` and the memory of its parent; the kernel shows it to root only."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # the memory of this process stays hidden afterwards
        try:
            steps = [
                Step(Call.SETRESGID, (65534, 65534, 65534)),
                Step(Call.SETRESUID, (65534, 65534, 65534)),
                Step(Call.WRITE, (write, b"x", 1)),
                Step(Call.EXECVE, (b"/bin/sleep", [b"sleep", b"0"], [])),
            ]
            started = shared_memory_start.start(steps)
            os.waitpid(started.pid, 0)
            os._exit(0 if os.stat("/proc/self/mem").st_uid == 0 and not _dumpable() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(read)
    os.close(write)


def _dumpable() -> bool:
    import ctypes

    return bool(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 1)  # PR_GET_DUMPABLE
