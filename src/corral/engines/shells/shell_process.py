"""Runs one more command beside the program of a running job, and ends it with that program.

It is run by path, with the standard library only, by the server's account. This process watches the command, the
program of the job (by its directory in /proc, so that no other process can take its place) and the server (by a pipe
that closes with it). The command is a child that enters the job first: its control groups, mounts, account, environment
and working directory, with no more privileges than the program has.

    shell_process.py SPEC      SPEC is the JSON of a ShellSpec (see `process_shell`)

Without a program (`pid` is 0) the command is one that enters the job by itself, such as `srun`: it gets the account and
is watched like any other.

The exit code is that of the command; 128 + N after signal N, and 126 if the job could not be entered.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pwd
import select
import signal
import sys
import termios
import time
from collections.abc import Mapping
from typing import Any

_CLONE_NEWNS = 0x00020000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 1, 38, 24
_CANNOT_ENTER = 126
_DEFAULT_SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec /bin/sh")
#: Between two looks where the kernel cannot wait for a process.
_POLL_MILLISECONDS = 100
_MOST_ENVIRON_BYTES = 16 << 20

_libc = ctypes.CDLL(None, use_errno=True)


def main(spec: Mapping[str, Any]) -> int:
    program = _program(spec["pid"])
    if spec["pid"] and (program < 0 or _start_ticks(program) != spec["start_ticks"]):
        _complain("the job's program has ended")
        return _CANNOT_ENTER
    os.set_inheritable(spec["control"], False)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _enter(spec, program, parent)
        except OSError as error:
            _complain(f"the shell cannot enter the job: {error.strerror or error}")
        finally:
            os._exit(_CANNOT_ENTER)
    # The terminal and the pipes belong to the command: they close when it ends.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    return _watch(child, spec, program)


def _program(pid: int) -> int:
    """Opens its directory in /proc; -1 if it has ended, or there is none."""
    try:
        return os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if pid else -1
    except FileNotFoundError:
        return -1


def _watch(child: int, spec: Mapping[str, Any], program: int) -> int:
    """The exit code of the command, which is ended with the program of the job, or when the server leaves it."""
    control, poll = spec["control"], select.poll()
    poll.register(control, 0)  # only that its other end was closed
    pause: int | None = None
    for pid in filter(None, (child, spec["pid"])):
        try:
            poll.register(os.pidfd_open(pid), select.POLLIN)
        except OSError:
            pause = _POLL_MILLISECONDS  # an old kernel, or the program has just ended
    hung_up_at = 0.0
    while True:
        closed = any(descriptor == control for descriptor, _ in poll.poll(pause))
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if not hung_up_at and (closed or (program >= 0 and _start_ticks(program) != spec["start_ticks"])):
            hung_up_at, pause, poll = time.monotonic(), _POLL_MILLISECONDS, select.poll()
            _signal_session(child, signal.SIGHUP)
        elif hung_up_at and time.monotonic() - hung_up_at > spec["hang_up_seconds"]:
            _signal_session(child, signal.SIGKILL)
    # What the shell left in the background, as a terminal that is closed does.
    _signal_session(child, signal.SIGHUP)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _signal_session(leader: int, number: signal.Signals) -> None:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ProcessLookupError):
                if os.getsid(int(entry)) == leader:
                    os.kill(int(entry), number)


def _enter(spec: Mapping[str, Any], program: int, parent: int) -> None:
    """Raises OSError; returns only if the command cannot be executed."""
    if program < 0:
        env, workdir = dict(os.environ), "/"
        if os.geteuid() == 0 and spec["uid"] != 0:
            _become(spec["uid"], spec["gid"], _groups(spec["uid"], spec["gid"]))
    else:
        env, workdir = _environment(program), os.readlink("cwd", dir_fd=program)
        _enter_program(spec, program)
    # After the change of accounts, which would reset it.
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        return
    os.setsid()
    if spec["has_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        env["TERM"] = spec["term"] or "xterm"
    with contextlib.suppress(OSError):
        os.chdir(workdir)
    command = spec["command"] or _DEFAULT_SHELL
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], list(command), env)
    except (OSError, ValueError) as error:
        _complain(f"{command[0]}: {getattr(error, 'strerror', None) or error}")
        os._exit(127)


def _enter_program(spec: Mapping[str, Any], program: int) -> None:
    """Raises OSError."""
    status = _status(program)
    for path in spec["groups"]:
        with open(path, "w", encoding="ascii") as procs:
            procs.write("0")
    if os.geteuid() == 0:
        # Before the mounts of the job, among which its owner may have put an /etc or a library.
        groups = _groups(spec["uid"], spec["gid"])
        _enter_mounts(program)
        _drop_capabilities(int(status["CapBnd"], 16))
        _become(spec["uid"], spec["gid"], groups)
    if status.get("NoNewPrivs") == "1":
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _environment(program: int) -> dict[str, str]:
    """The variables with which the job's program began. The program itself may have changed that memory: the values
    are used by its own account only."""
    with open(os.open("environ", os.O_RDONLY | os.O_CLOEXEC, dir_fd=program), "rb") as source:
        lines = source.read(_MOST_ENVIRON_BYTES).split(b"\0")
    pairs = (line.partition(b"=") for line in lines)
    return {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if name and equals}


def _status(program: int) -> dict[str, str]:
    with open(
        os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=program), encoding="utf-8", errors="replace"
    ) as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def _start_ticks(program: int) -> int:
    """0 if it has ended."""
    try:
        with open(os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=program), "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else 0


def _enter_mounts(program: int) -> None:
    namespace = os.open("ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=program)
    if os.fstat(namespace).st_ino != os.stat("/proc/self/ns/mnt").st_ino and _libc.setns(namespace, _CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), f"its mounts: {os.strerror(ctypes.get_errno())}")
    os.close(namespace)


def _drop_capabilities(kept: int) -> None:
    """Root has no more rights than the job's program, from the next program on."""
    for number in range(64):
        if not kept >> number & 1 and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            return  # the kernel knows no more of them


def _groups(uid: int, gid: int) -> list[int]:
    try:
        return os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        return [gid]


def _become(uid: int, gid: int, groups: list[int]) -> None:
    os.umask(0o022)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
