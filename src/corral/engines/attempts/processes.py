"""Questions to the kernel about processes (parents, start times, environments), and the start of a job's process.

The spawner and its supervisors import this module, so it uses the standard library only and starts no thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence

from corral.engines.attempts.instance_messages import Owner

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_KEYCTL_JOIN_SESSION_KEYRING = 1
#: The number of the system call `keyctl`, for which libc has no function.
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "ppc64le": 271, "riscv64": 219, "s390x": 280}.get(os.uname().machine)

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """The calling process gets SIGKILL as soon as its parent is gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def become_subreaper() -> None:
    """Orphaned descendants become children of the caller, so that a daemon of the job does not escape."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` show, at most 15 characters."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since boot: together with the pid this is unique. None if it is gone."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def _stat_fields(pid: int) -> list[bytes]:
    """The fields after the command's name, which itself may contain blanks and brackets."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        return os.read(descriptor, 4096).rpartition(b")")[2].split()
    except ProcessLookupError:
        return []
    finally:
        os.close(descriptor)


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return found
    for thread in threads:
        with (
            contextlib.suppress(FileNotFoundError, ProcessLookupError),
            open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as source,
        ):
            found += [int(child) for child in source.read().split()]
    return found


def send(pids: Iterable[int], number: signal.Signals) -> int:
    """How many processes received the signal; processes that are gone or may not be signalled are not counted."""
    reached = 0
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
        reached += 1
    return reached


def pid_namespace(pid: int) -> str:
    """The id of a process's namespace; "" if it is gone or may not be inspected."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def dies_of(pid: int, number: signal.Signals) -> bool:
    """Whether a process neither handles nor ignores a signal."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as source:
            masks = dict(line.split(":", 1) for line in source if line.startswith(("SigIgn", "SigCgt")))
    except OSError:
        return False
    return not any(int(mask, 16) >> (number - 1) & 1 for mask in masks.values())


def processes_by_env(name: str) -> dict[str, set[int]]:
    """All processes that have this environment variable, by its value: finds what a dead supervisor left behind."""
    found: dict[str, set[int]] = {}
    for pid, env in _environments(name):
        found.setdefault(env[name], set()).add(pid)
    return found


def processes_with_env(name: str, value: str, other: str) -> list[tuple[int, dict[str, str]]]:
    """All processes that have this value of one variable, and another variable besides: pid, and both variables."""
    return [(pid, env) for pid, env in _environments(name, other) if env[name] == value]


def _environments(*names: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Pid and variables of each process that has all these variables."""
    prefixes = {name: name.encode() + b"=" for name in names}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as source:
                lines = source.read().split(b"\0")
        except OSError:
            continue  # gone meanwhile, or of another user
        found = {
            name: os.fsdecode(line[len(prefix) :])
            for name, prefix in prefixes.items()
            for line in lines
            if line.startswith(prefix)
        }
        if len(found) == len(names):
            yield int(entry), found


def handle_nothing(_number: int, _frame: object) -> None:
    """A handler in place of SIG_IGN: a program that is executed later does not inherit it."""


@functools.cache
def inherited_signals() -> tuple[int, ...]:
    """Signals that a job must reset itself: SIGTERM, which may wait for the job until it is unblocked, and ignored
    ones, which would stay ignored. Others are reset by the kernel when the program is executed. Call it in a process
    that ignores no more signals."""
    ignored = (number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN)
    return (signal.SIGTERM, *ignored)


class ExecFailed(Exception):
    """The command could not be started; the message names the file."""


def enter_job(
    command: Sequence[str],
    env: dict[str, str],
    workdir: str,
    *,
    parent: int,
    output: int,
    null: int,
    owner: Owner | None = None,
    venv: str = "",
    no_new_privileges: bool = False,
) -> None:
    """Turn the calling, freshly forked process into the job's main process. Raises ExecFailed; never returns."""
    if owner is not None:
        _leave_keyring()
        _become(owner)
    if no_new_privileges and _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "setuid programs could not be disabled")
    # After the change of accounts, which would reset it.
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the line above took effect
    os.setsid()
    for number in inherited_signals():
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        os.chdir(workdir)
    except OSError as error:
        account = f" for the account {owner['name']}" if owner is not None else ""
        raise ExecFailed(f"working directory {workdir}: {error.strerror}{account}") from error
    if venv:
        env = _in_venv(env, venv)
    try:
        if "/" in command[0]:
            os.execve(command[0], list(command), env)
        os.execvpe(command[0], list(command), env)
    except (OSError, ValueError) as error:
        raise ExecFailed(_exec_problem(command[0], env.get("PATH", ""), error)) from error


@contextlib.contextmanager
def acting_as(owner: Owner | None) -> Iterator[None]:
    """Within the block, files are opened with the permissions of the account only. For processes of one thread."""
    if owner is None:
        yield
        return
    own_groups, own_gid, own_uid = os.getgroups(), os.getegid(), os.geteuid()
    os.setgroups(owner["groups"])
    os.setegid(owner["gid"])
    os.seteuid(owner["uid"])
    try:
        yield
    finally:
        os.seteuid(own_uid)
        os.setegid(own_gid)
        os.setgroups(own_groups)


def _become(owner: Owner) -> None:
    """Changes to the account permanently. Groups first, while that is still allowed."""
    os.umask(0o022)
    os.setgroups(owner["groups"])
    os.setresgid(owner["gid"], owner["gid"], owner["gid"])
    os.setresuid(owner["uid"], owner["uid"], owner["uid"])


def _leave_keyring() -> None:
    """Take an empty session keyring: every process that inherits a keyring can use the keys in it, whatever its
    account."""
    if _SYS_KEYCTL is None or _libc.syscall(_SYS_KEYCTL, _KEYCTL_JOIN_SESSION_KEYRING, None) >= 0:
        return
    # If the kernel has no keys, or a container forbids them, there is nothing to inherit.
    if (problem := ctypes.get_errno()) not in (errno.ENOSYS, errno.EPERM):
        raise OSError(problem, "its session keyring could not be replaced")


def _in_venv(env: Mapping[str, str], venv: str) -> dict[str, str]:
    """Inspected with the permissions of the job's account: the server could see files that other users keep secret."""
    if not os.path.isdir(os.path.join(venv, "bin")):
        raise ExecFailed(f"{venv}: there is no virtual environment: it has no directory bin")
    return with_venv(env, venv, is_conda=os.path.isdir(os.path.join(venv, "conda-meta")))


def with_venv(env: Mapping[str, str], venv: str, *, is_conda: bool) -> dict[str, str]:
    """Like activating it: its programs come first."""
    place = {"CONDA_PREFIX" if is_conda else "VIRTUAL_ENV": venv}
    kept = {name: value for name, value in env.items() if name not in ("PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")}
    return {**kept, **place, "PATH": f"{venv}/bin:{env.get('PATH', '')}".rstrip(":")}


def _exec_problem(program: str, path: str, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return f"{program!r}: {error}"
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"{program}: command not found in PATH ({path})"
        if os.path.exists(program):
            return f"{program}: the interpreter named in its first line was not found"
    if error.errno == errno.ENOEXEC:
        return f"{program}: not a program (a script must begin with #!)"
    if error.errno == errno.E2BIG:
        return f"{program}: arguments and environment are too long"
    return f"{program}: {error.strerror}"


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
        return source.read().strip()
