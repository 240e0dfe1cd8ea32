"""The supervisor: one small process for each running instance, which runs the job's process from start to end.

The spawner gives every instance of an attempt to a supervisor of its own. The supervisor first claims the instance (a
locked file in the run directory, see `corral.engines.attempts.claims`), so that an instance never runs twice. It then
prepares the storage that the job mounts, pulls the image if the job has one, and starts the job's process in its own
session, with the job's account, limits and environment. From then on it waits in one loop: it copies the job's output
into the log, enforces the time limit, reacts to a stop, and waits until the main process and all processes that it
left behind are gone. At the end it records exit code and reason in the claim, and notifies the engine. After that, its
process may supervise another instance (`supervisor_pool`).

A stop is SIGTERM to the supervisor together with a file that holds the grace time: the supervisor sends SIGTERM to
the processes of the job, and SIGKILL after the grace time. If the time limit is reached, it does the same by itself.

A supervisor needs neither the server nor the engine: both may stop, crash and start again while it runs. It decides the
end reason of its own instance only; the engine decides what that means for the attempt. It is forked from the spawner,
so this module uses the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Any

from corral.core.os_errors import placed_reason
from corral.engines.attempts.claims import add_to_claim, take_claim
from corral.engines.attempts.instance_messages import InstanceSpec
from corral.engines.attempts.job_places import give_to, make_private, open_paths, remove_tree
from corral.engines.attempts.log_segments import LogWriter
from corral.engines.attempts.processes import (
    become_subreaper,
    handle_nothing,
    name_process,
    start_ticks,
)
from corral.engines.attempts.terms import read_term
from corral.engines.local.cgroups import Cgroup, CgroupSupport
from corral.engines.local.containers.container_job import ContainerJob, PullFailed, PullStopped
from corral.engines.local.rundir import TMP, WORK, notify, read_stop
from corral.engines.local.supervisors.exits import (
    REASON_EXIT,
    REASON_LAUNCH,
    REASON_LOST,
    REASON_PULL,
    launch_reason,
    record_exit,
)
from corral.engines.local.supervisors.job_process import start_job
from corral.engines.local.supervisors.job_stop import JobStop
from corral.engines.local.supervisors.verdicts import Ending, verdict
from corral.engines.storage.preparation import InstanceStorage, PrepareFailed, PrepareStopped

_READ_BYTES = 1 << 16
_READS_PER_TURN = 16
#: How much of the end of the output is kept, to find the error message of a container's runtime in it.
_TAIL_BYTES = 4096


def is_plain(spec: InstanceSpec) -> bool:
    """Whether a process may supervise this instance after another one, and another one after this. Storage and
    containers can leave processes and mounts behind that belong to the process of their supervisor."""
    return spec["container"] is None and not spec["storage"]


def prepare_process() -> None:
    """Make the calling process one that can supervise: signals other than SIGTERM have no effect on it."""
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, handle_nothing)


def supervise(spec: InstanceSpec) -> bool:
    """Run one instance from its claim to its exit record. Returns whether this process may supervise another one."""
    if spec["term"] < read_term(spec["term_path"]):
        return True  # a server with a later term took over, and launches the attempt itself
    supervisor = Supervisor(spec)
    if not supervisor.claim():
        supervisor.close()
        return is_plain(spec)
    try:
        supervisor.run()
    except Exception as error:
        # The job must not run without a supervisor, and its end must be recorded.
        supervisor.abandon()
        record_exit(spec, reason=REASON_LOST, message=f"its supervisor failed: {error!r}")
        raise
    supervisor.close()
    return is_plain(spec) and not supervisor.has_children


class Supervisor:
    def __init__(self, spec: InstanceSpec) -> None:
        self._spec = spec
        self._log = LogWriter(spec["rank_dir"], spec["log_limit_bytes"])
        self._cgroup = _cgroup_of(spec)
        self._container = ContainerJob(spec["container"]) if spec["container"] else None
        self._storage = InstanceStorage(spec)
        self._stop = JobStop(self._cgroup, self._container, spec["grace_seconds"])
        self._pid = os.getpid()
        self._claim = -1
        self._main = 0
        self._main_status: int | None = None
        self._main_ended_at: float | None = None
        self._children_left = False
        self._started_at: float | None = None
        self._stop_wanted = False
        self._exec_problem = b""
        self._tail = b""
        self._output = -1
        self._exec_report = -1
        self._wake, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def claim(self) -> bool:
        """Whether this supervisor owns the instance now. The claim stays locked until `close`, or until this process
        dies."""
        # The handler first: the engine may send a signal as soon as it sees the claim.
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda number, frame: self._want_stop())
        prepares = self._container is not None or self._storage.takes_long
        body = {"pid": self._pid, "boot_id": self._spec["boot_id"], "prepares": prepares}
        claim = take_claim(self._spec["rank_dir"], body)
        if claim is None:
            return False
        self._claim = claim
        return True

    def close(self) -> None:
        """Release the claim, and every other descriptor of the instance."""
        signal.set_wakeup_fd(-1)
        for descriptor in (self._claim, self._output, self._exec_report, self._wake, self._wake_write):
            if descriptor >= 0:
                os.close(descriptor)
        self._log.close()

    @property
    def has_children(self) -> bool:
        """Whether processes of the job are left that cannot be killed."""
        return self._children_left

    def run(self) -> None:
        # Checked after the claim: a server that takes over writes its term first, and reads the claims then.
        if self._is_superseded(self._spec["term"]):
            record_exit(self._spec, reason=REASON_LOST, message="another server took over before it started")
            return
        # A stop before the claim found no supervisor to signal, but its file is there.
        if self._stop_order() is not None:
            record_exit(self._spec, reason=REASON_EXIT, message="stopped before it started")
            return
        name_process("corral-job")
        try:
            # Storage first: the process of a bucket mount serves other jobs too, and must not become our child.
            if self._has_storage():
                become_subreaper()
                if self._has_image() and self._start():
                    self._watch()
                    self._finish()
        finally:
            remove_tree(self._tmp)
            self._storage.leave(self._say)

    def _is_superseded(self, term: int) -> bool:
        return term < read_term(self._spec["term_path"])

    def _stop_order(self) -> dict[str, Any] | None:
        """The order to stop; None if there is none, or if a superseded server wrote it."""
        order = read_stop(self._spec["attempt_dir"])
        if order is None:
            return None
        return None if self._is_superseded(int(order.get("term", 0))) else order

    @property
    def _tmp(self) -> str:
        return os.path.join(self._spec["rank_dir"], TMP)

    # -------------------------------------------------------------------------------------------- beginning

    def _has_storage(self) -> bool:
        """Prepare the storage; False if the attempt ends here. The time limit does not include this."""
        try:
            self._storage.prepare(self._wake, self._must_stop, self._say)
        except PrepareStopped:
            record_exit(self._spec, reason=REASON_EXIT, message="stopped before it started")
            return False
        except PrepareFailed as error:
            record_exit(self._spec, reason=REASON_LAUNCH, message=str(error))
            return False
        return True

    def _has_image(self) -> bool:
        """Pull the image, if there is one; False if the attempt ends here. The time limit does not include this."""
        if self._container is None:
            return True
        try:
            self._container.fetch_image(self._wake, self._must_stop, self._say)
        except PullStopped:
            record_exit(self._spec, reason=REASON_EXIT, message="stopped before it started")
            return False
        except PullFailed as error:
            record_exit(self._spec, reason=REASON_PULL, message=str(error))
            return False
        return True

    def _say(self, text: str) -> None:
        """Write a line into the job's log."""
        self._log.write(f"corral: {text}\n".encode())

    def _make_places(self) -> str:
        """Make the working directory and the temporary one; returns the working directory."""
        spec, owner = self._spec, self._spec["owner"]
        workdir = spec["workdir"] or os.path.join(spec["rank_dir"], WORK)
        if not spec["workdir"]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(workdir)
        make_private(self._tmp, owner)
        if owner is not None:
            own = [*([] if spec["workdir"] else [workdir]), *spec["owned"]]
            give_to(own, owner)
            open_paths([*own, self._tmp], spec["top"])
        return workdir

    def _start(self) -> bool:
        try:
            workdir = self._make_places()
            if self._container:
                self._container.write_environment({**self._spec["env"], **self._storage.seen_in_container(self._say)})
            if self._cgroup:
                self._cgroup.create()
            process = start_job(self._spec, workdir, self._container, self._storage, self._cgroup)
        except OSError as error:
            message = f"could not be prepared: {placed_reason(error)}"
            record_exit(self._spec, reason=launch_reason(error), message=message)
            if self._cgroup:
                self._cgroup.remove()
            return False
        self._output, self._exec_report = process.output, process.exec_report
        self._main = process.pid
        self._children_left = True
        return True

    def _mark_started(self) -> None:
        self._started_at = time.time()
        self._stop.limit(self._spec["time_limit_seconds"])
        body = {"pid": self._main, "start_ticks": start_ticks(self._main), "at": self._started_at}
        add_to_claim(self._claim, body)
        self._reap()
        if self._main_status is None or self._children_left:
            notify(self._spec["events_path"], self._spec["attempt_id"])
        # Otherwise it is over already: the notice of its end follows at once, and the engine reads both lines.

    # -------------------------------------------------------------------------------------------- watching

    def _watch(self) -> None:
        """Waits until the main process and all processes that it left behind are gone."""
        poll = select.poll()
        for descriptor in (self._wake, self._output, self._exec_report):
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll(self._milliseconds_to_wait()):
                if descriptor == self._wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake, 4096)
                elif not (self._pump() if descriptor == self._output else self._read_exec_report()):
                    poll.unregister(descriptor)
            self._reap()
            if self._main_status is not None and not self._children_left:
                return
            if not self._act_on_time():
                return

    def _milliseconds_to_wait(self) -> float | None:
        return 0 if self._stop_wanted else self._stop.milliseconds_to_wait(has_ended=self._has_ended)

    def _act_on_time(self) -> bool:
        """Stop and kill processes whose time has come. False if only processes are left that cannot be signalled."""
        if self._stop_wanted:
            self._stop_wanted = False
            order = self._stop_order()
            if order is not None:
                self._stop.order(float(order.get("grace_seconds", self._spec["grace_seconds"])))
        else:
            self._stop.act(has_ended=self._has_ended)
        return self._stop.kill_if_due(has_ended=self._has_ended)

    @property
    def _has_ended(self) -> bool:
        return self._main_status is not None

    def _must_stop(self) -> bool:
        """Whether a stop came during the preparation."""
        return self._stop_wanted and self._stop_order() is not None

    def _want_stop(self) -> None:
        self._stop_wanted = True

    def abandon(self) -> None:
        """Kill all processes at once and remove the container."""
        self._stop.kill_all()
        if self._container:
            self._container.remove()

    def _pump(self) -> bool:
        """Copy output into the log; False at its end. Bounded, so that much output cannot delay a stop."""
        for _ in range(_READS_PER_TURN):
            try:
                data = os.read(self._output, _READ_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._log.write(data)
            if self._container:
                self._tail = (self._tail + data)[-_TAIL_BYTES:]
        return True

    def _read_exec_report(self) -> bool:
        """The pipe closes without data when the program has been executed."""
        try:
            data = os.read(self._exec_report, 4096)
        except BlockingIOError:
            return True
        if data:
            self._exec_problem += data
            return True
        if not self._exec_problem and self._started_at is None:
            self._mark_started()
        return False

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._children_left = False
                return
            if pid == 0:
                return
            if pid == self._main:
                self._main_status = status
                self._main_ended_at = time.time()

    # -------------------------------------------------------------------------------------------- end

    def _finish(self) -> None:
        while self._started_at is None and self._read_exec_report():
            continue
        # Only the data in the pipe now: a process outside the job may still hold the other end.
        self._pump()
        self._log.close()
        assert self._main_status is not None
        code = os.waitstatus_to_exitcode(self._main_status)
        signal_number = -code if code < 0 else None
        exit_code = 128 - code if code < 0 else code
        ending = Ending(
            exit_code=exit_code,
            signal_number=signal_number,
            exec_problem=self._exec_problem.decode(errors="replace"),
            timed_out=self._stop.timed_out,
            must_end=self._stop.must_end,
            ended_first=self._stop.ended_first,
            tail=self._tail,
        )
        reason, message, exit_code = verdict(self._spec, ending, self._cgroup, self._container)
        record_exit(
            self._spec,
            reason=reason,
            message=message,
            exit_code=None if reason == REASON_LAUNCH else exit_code,
            signal_number=signal_number,
            started_at=self._started_at,
            main_ended_at=self._main_ended_at,
            dropped_log_bytes=self._log.dropped_bytes,
        )
        if self._cgroup:
            self._cgroup.remove(of_container=self._container is not None)


def _cgroup_of(spec: InstanceSpec) -> Cgroup | None:
    support = CgroupSupport(
        version=spec["cgroup_version"],
        memory=spec["cgroup_memory"],
        cpu=spec["cgroup_cpu"],
        pids=spec["cgroup_pids"],
    )
    cgroup = Cgroup(
        support,
        spec["cgroup_name"],
        memory_bytes=spec["memory_bytes"],
        cpu_milli=spec["cpu_milli"],
        max_processes=spec["max_processes"],
    )
    return cgroup if cgroup.directories else None
