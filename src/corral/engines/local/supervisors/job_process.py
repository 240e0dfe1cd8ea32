"""Starts the process of a job: forks, and executes the job's program (or its container's runtime) in the child.

It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import os
import select
import signal
from dataclasses import dataclass

from corral.core.os_errors import placed_reason
from corral.engines.attempts.instance_messages import InstanceSpec
from corral.engines.attempts.processes import ExecFailed, enter_job, inherited_signals
from corral.engines.local.cgroups import Cgroup
from corral.engines.local.containers.container_job import ContainerJob
from corral.engines.local.containers.container_mounts import CannotMount
from corral.engines.storage.preparation import InstanceStorage

_HELD_BACK = {signal.SIGTERM}
#: How long a supervisor rests after a fork while the program is not executed: each page that it writes to until then is
#: copied. A stop is delayed by this at most.
_REST_MILLISECONDS = 50


@dataclass(frozen=True, slots=True)
class JobProcess:
    """A process that was forked, and the read ends of its two pipes, which do not block."""

    pid: int
    #: standard output and standard error
    output: int
    #: closes when the program is executed; an error message comes before if that fails
    exec_report: int


def start_job(
    spec: InstanceSpec, workdir: str, container: ContainerJob | None, storage: InstanceStorage, cgroup: Cgroup | None
) -> JobProcess:
    """Raises OSError if no process can be started."""
    supervisor = os.getpid()
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    output, output_write = os.pipe2(os.O_CLOEXEC)
    exec_report, report_write = os.pipe2(os.O_CLOEXEC)
    # A stop may come between fork and exec. It is blocked until then: the job must receive it, not the handler of the
    # supervisor that the child has inherited.
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
    inherited_signals()  # looked up once in this process, not in each child
    rest = select.poll()
    rest.register(exec_report, select.POLLIN)
    os.set_blocking(output, False)
    os.set_blocking(exec_report, False)
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            _enter(spec, workdir, container, storage, cgroup, supervisor, output_write, null)
        except (ExecFailed, CannotMount) as error:
            os.write(report_write, str(error).encode(errors="replace"))
        except BaseException as error:  # noqa: BLE001 - a forked child must never run its parent's code
            os.write(report_write, f"could not be started: {error}".encode(errors="replace"))
        finally:
            os._exit(127)
    os.close(report_write)
    rest.poll(_REST_MILLISECONDS)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
    os.close(null)
    os.close(output_write)
    return JobProcess(pid=pid, output=output, exec_report=exec_report)


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
