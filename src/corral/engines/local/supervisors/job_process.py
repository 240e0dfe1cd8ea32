"""Starts the process of a job: executes the job's program, or its container's runtime, in a new process.

A plain job is started without a copy of the supervisor's memory (`shared_memory_start`). A fork starts those for which
code of corral runs in the new process: containers, storage, virtual environments.

It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from corral.core.os_errors import placed_reason
from corral.engines.attempts.instance_messages import InstanceSpec
from corral.engines.attempts.processes import (
    JOB_UMASK,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    ExecFailed,
    changed_signals,
    enter_job,
    exec_problem,
    leave_keyring,
    program_paths,
)
from corral.engines.local.cgroups import Cgroup
from corral.engines.local.containers.container_job import ContainerJob
from corral.engines.local.containers.container_mounts import CannotMount
from corral.engines.local.supervisors.shared_memory_start import (
    Call,
    Need,
    Started,
    Step,
    is_supported,
    start,
)
from corral.engines.storage.preparation import InstanceStorage

#: The signals that a supervisor handles.
_HELD_BACK = {signal.SIGTERM, signal.SIGCHLD}
#: A signal set, and an action, of the kernel that are empty: nothing is blocked, and the action is the default one.
_SIGNAL_SET_BYTES = 8
_EMPTY = bytes(32)


@dataclass(frozen=True, slots=True)
class JobProcess:
    """A process that was started, and the read ends of its two pipes, which do not block."""

    pid: int
    #: standard output and standard error
    output: int
    #: closes when the program is executed; an error message comes before if that fails, or `problem` has it
    exec_report: int
    #: why the program was not executed, once `exec_report` is closed; "" if it was
    problem: Callable[[], str] = str


def start_job(
    spec: InstanceSpec, workdir: str, container: ContainerJob | None, storage: InstanceStorage, cgroup: Cgroup | None
) -> JobProcess:
    """Raises OSError if no process can be started."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    output, output_write = os.pipe2(os.O_CLOEXEC)
    exec_report, report_write = os.pipe2(os.O_CLOEXEC)
    # A stop may come before the program is executed. It is blocked until then: the job must receive it, not the handler
    # of the supervisor that the new process has inherited.
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
    changed_signals()  # looked up once in this process, not in each child
    problem: Callable[[], str] = str
    try:
        if _needs_fork(spec):
            pid = _forked(spec, workdir, container, storage, cgroup, output_write, report_write, null)
        else:
            pid, problem = _started(spec, workdir, cgroup, output_write, null)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
    for descriptor in (null, output_write, report_write):
        os.close(descriptor)
    for descriptor in (output, exec_report):
        os.set_blocking(descriptor, False)
    return JobProcess(pid=pid, output=output, exec_report=exec_report, problem=problem)


def _needs_fork(spec: InstanceSpec) -> bool:
    return bool(spec["container"] or spec["storage"] or spec["venv"]) or not is_supported() or _has_odd_text(spec)


def _has_odd_text(spec: InstanceSpec) -> bool:
    """Whether the kernel would read a text otherwise than it is: Python refuses it."""
    env = spec["env"]
    return any("\0" in text for text in (*spec["command"], *env.values())) or any(
        not name or "=" in name or "\0" in name for name in env
    )


def _forked(
    spec: InstanceSpec,
    workdir: str,
    container: ContainerJob | None,
    storage: InstanceStorage,
    cgroup: Cgroup | None,
    output: int,
    report: int,
    null: int,
) -> int:
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            _enter(spec, workdir, container, storage, cgroup, supervisor, output, null)
        except (ExecFailed, CannotMount) as error:
            os.write(report, str(error).encode(errors="replace"))
        except BaseException as error:  # noqa: BLE001 - a forked child must never run its parent's code
            os.write(report, f"could not be started: {error}".encode(errors="replace"))
        finally:
            os._exit(127)
    return pid


def _started(
    spec: InstanceSpec, workdir: str, cgroup: Cgroup | None, output: int, null: int
) -> tuple[int, Callable[[], str]]:
    """Start the job as `_enter` does, by steps. Returns the process, and what reads its problem."""
    command, env = spec["command"], spec["env"]
    arguments = [os.fsencode(one) for one in command]
    variables = [os.fsencode(f"{name}={value}") for name, value in env.items()]
    paths = [os.fsencode(path) for path in program_paths(command[0], env.get("PATH", os.defpath))]
    groups = cgroup.open_processes() if cgroup else []
    steps = [
        *(Step(Call.WRITE, (group, b"0", 1)) for group in groups),
        *_account_steps(spec),
        # After the change of accounts, which would reset it.
        Step(Call.PRCTL, (PR_SET_PDEATHSIG, int(signal.SIGKILL))),
        # Otherwise the supervisor died before the line above took effect.
        Step(Call.GETPPID, need=Need.EQUAL, expected=os.getpid()),
        Step(Call.SETSID),
        *(Step(Call.RT_SIGACTION, (int(one), _EMPTY, 0, _SIGNAL_SET_BYTES)) for one in changed_signals()),
        Step(Call.RT_SIGPROCMASK, (int(signal.SIG_SETMASK), _EMPTY, 0, _SIGNAL_SET_BYTES)),
        *(Step(Call.DUP2, pair) for pair in ((null, 0), (output, 1), (output, 2))),
        Step(Call.CHDIR, (os.fsencode(workdir),)),
        *(Step(Call.EXECVE, (path, arguments, variables), need=Need.NOTHING) for path in paths),
    ]
    try:
        started = start(steps)
    finally:
        for group in groups:
            os.close(group)
    return started.pid, partial(_problem_of, started, steps, spec, workdir)


def _account_steps(spec: InstanceSpec) -> list[Step]:
    """Groups first, while that is still allowed. The process inherits the keyring that its supervisor takes here."""
    owner, steps = spec["owner"], []
    if owner is not None:
        leave_keyring()
        uid, gid = owner["uid"], owner["gid"]
        steps = [
            Step(Call.UMASK, (JOB_UMASK,)),
            Step(Call.SETGROUPS, (len(owner["groups"]), struct.pack(f"={len(owner['groups'])}I", *owner["groups"]))),
            Step(Call.SETRESGID, (gid, gid, gid)),
            Step(Call.SETRESUID, (uid, uid, uid)),
        ]
    if spec["no_new_privileges"]:
        steps.append(Step(Call.PRCTL, (PR_SET_NO_NEW_PRIVS, 1)))
    return steps


def _problem_of(started: Started, steps: Sequence[Step], spec: InstanceSpec, workdir: str) -> str:
    if not started.has_failed:
        return ""
    errors = started.errors()
    tried = [error for step, error in zip(steps, errors, strict=True) if step.call is Call.EXECVE and error]
    if tried:
        # The first that is more than a missing file, as for `os.execvpe`.
        found = next((error for error in tried if error not in (errno.ENOENT, errno.ENOTDIR)), tried[-1])
        program, path = spec["command"][0], spec["env"].get("PATH", "")
        return exec_problem(program, path, OSError(found, os.strerror(found)))
    failed, error = next((step.call, error) for step, error in zip(steps, errors, strict=True) if error)
    if failed is Call.CHDIR:
        account = f" for the account {spec['owner']['name']}" if spec["owner"] is not None else ""
        return f"working directory {workdir}: {os.strerror(error)}{account}"
    return f"could not be started: {failed.name.lower()}: {os.strerror(error)}"


def _enter(
    spec: InstanceSpec,
    workdir: str,
    container: ContainerJob | None,
    storage: InstanceStorage,
    cgroup: Cgroup | None,
    supervisor: int,
    output: int,
    null: int,
) -> None:
    if container:
        # This process is the runtime only: the container has the job's account and limits.
        command = container.entered(spec)
        enter_job(command, container.env, "/", parent=supervisor, output=output, null=null)
    if cgroup:
        cgroup.join()
    enter_job(
        spec["command"],
        {**spec["env"], **_entered_storage(storage, output)},
        workdir,
        parent=supervisor,
        output=output,
        null=null,
        owner=spec["owner"],
        venv=spec["venv"],
        no_new_privileges=spec["no_new_privileges"],
    )


def _entered_storage(storage: InstanceStorage, output: int) -> dict[str, str]:
    try:
        return storage.enter(lambda line: _write_line(output, line))
    except OSError as error:
        raise ExecFailed(f"the job's storage cannot be mounted: {placed_reason(error)}") from error


def _write_line(output: int, text: str) -> None:
    """Into the job's output, in front of the program's own."""
    os.write(output, f"corral: {text}\n".encode())
