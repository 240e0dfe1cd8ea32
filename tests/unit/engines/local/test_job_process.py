"""The start of a job's process: what the program sees, and what is reported if it cannot be executed."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

from corral.engines.attempts.processes import inherited_signals
from corral.engines.local.supervisors.job_process import start_job

LOOK = """
import os, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(os.getcwd(), os.getsid(0) == os.getpid(), os.environ["WORD"], sorted(os.environ), sys.argv[1:])
print({name: status[name].strip() for name in ("SigBlk", "NoNewPrivs", "Uid", "Groups")})
print(sorted(os.listdir("/proc/self/fd"))[:3], os.readlink("/proc/self/fd/0"))
"""


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
    return os.waitstatus_to_exitcode(status), output.decode(), report


def test_a_program_has_its_arguments_directory_session_and_variables(tmp_path: Path) -> None:
    code, output, problem = ran(spec_of(sys.executable, "-c", LOOK, "a b", "ü"), tmp_path)
    assert (code, problem) == (0, "")
    assert output.startswith(f"{tmp_path} True wörd")
    assert "['a b', 'ü']" in output
    assert output.rstrip().endswith("/dev/null")


#: Signals 32 and 33 belong to the C library: `posix_spawn`, by which make starts programs, leaves them ignored.
_OF_LIBC = 3 << 31


def test_no_signal_is_blocked_or_ignored(tmp_path: Path) -> None:
    """The interpreter ignores some, and a supervisor more."""
    inherited_signals.cache_clear()  # other tests of this process may have set handlers since
    lines = ran(spec_of("cat", "/proc/self/status"), tmp_path)[1].splitlines()
    fields = dict(line.split(":\t") for line in lines)
    names = ("SigPnd", "SigBlk", "SigIgn", "SigCgt")
    masks = {name: int(fields[name], 16) & ~_OF_LIBC for name in names}
    assert masks == dict.fromkeys(names, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change accounts: run as root")
def test_a_program_has_the_account_and_no_privileges() -> None:
    owner = {"name": "nobody", "uid": 65534, "gid": 65534, "groups": [65534, 4]}
    code, output, problem = ran(spec_of("cat", "/proc/self/status", owner=owner, no_new_privileges=True), "/")
    assert (code, problem) == (0, "")
    expected = {"Uid:\t65534\t65534\t65534\t65534", "Groups:\t4 65534 ", "NoNewPrivs:\t1", "Umask:\t0022"}
    assert expected <= set(output.splitlines())


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-program", "no-such-program: command not found in PATH (/nowhere:/usr/bin:/bin)"),
        ("/etc", "/etc: Permission denied"),
        ("/no/such", "/no/such: No such file or directory"),
        ("a\0b", "'a\\x00b': execve: embedded null character in path"),
    ],
)
def test_a_program_that_cannot_be_executed_is_reported(tmp_path: Path, command: str, problem: str) -> None:
    assert ran(spec_of(command), tmp_path) == (127, "", problem)


def test_a_missing_working_directory_is_reported(tmp_path: Path) -> None:
    code, _, problem = ran(spec_of("true"), tmp_path / "gone")
    assert (code, problem) == (127, f"working directory {tmp_path}/gone: No such file or directory")


def test_a_script_without_interpreter_and_too_long_arguments_are_reported(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/interpreter\n")
    script.chmod(0o755)
    assert "interpreter named in its first line" in ran(spec_of(str(script)), tmp_path)[2]
    assert "too long" in ran(spec_of("true", "x" * (1 << 20)), tmp_path)[2]
