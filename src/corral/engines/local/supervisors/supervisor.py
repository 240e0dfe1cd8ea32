"""One per instance: starts the job's process, keeps its log, ends it when told or when its time is over, and records
how it ended. It needs nobody: the server may stop, crash and come back meanwhile.

It decides the reason and exit code of its own instance only; what that means for the attempt is the engine's
business. Runs forked from the spawner, so only the standard library is imported here.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Any, NoReturn

from corral.engines.attempts.claims import add_to_claim, take_claim
from corral.engines.attempts.instance_messages import InstanceSpec
from corral.engines.attempts.job_places import hand_over, make_private, open_way, remove_tree
from corral.engines.attempts.processes import (
    ExecFailed,
    become_subreaper,
    descendants,
    enter_job,
    name_process,
    send,
    start_ticks,
)
from corral.engines.attempts.terms import read_term
from corral.engines.local.cgroups import Cgroup, CgroupSupport
from corral.engines.local.containers.container_job import ContainerJob, PullFailed, PullStopped, error_in
from corral.engines.local.containers.container_mounts import CannotMount
from corral.engines.local.logs import LogWriter
from corral.engines.local.rundir import TMP, WORK, notify, read_stop
from corral.engines.local.supervisors.exits import (
    REASON_EXIT,
    REASON_LAUNCH,
    REASON_LOST,
    REASON_OOM,
    REASON_PULL,
    REASON_TIME,
    launch_reason,
    oom_message,
    record_exit,
    signal_name,
)
from corral.engines.storage.preparation import InstanceStorage, PrepareFailed, PrepareStopped

#: How long processes that a finished job left behind may take to end by themselves.
LINGER_SECONDS = 0.5
#: How often SIGKILL is repeated while something is still there (new forks, or stuck in the kernel).
KILL_AGAIN_SECONDS = 0.05
#: How long the runtime of a container may take to notice its end and to tidy up.
RUNTIME_SECONDS = 10.0
_READ_BYTES = 1 << 16
_READS_PER_TURN = 16
#: What is kept of the output to find the runtime's complaint in.
_TAIL_BYTES = 4096
_HELD_BACK = {signal.SIGTERM}


#: As a shell and a container's runtime tell that a signal ended a process.
_KILLED = 128 + signal.SIGKILL
_TERMINATED = 128 + signal.SIGTERM
#: As Podman and Docker tell that they, and not the program, have failed.
_RUNTIME_FAILED = 125


def supervise(spec: InstanceSpec) -> None:
    """Run one instance from its claim to its exit record."""
    if spec["term"] < read_term(spec["term_path"]):
        return  # nobody wants it any more: the server that took over starts it itself
    supervisor = Supervisor(spec)
    if not supervisor.claim():
        return
    try:
        supervisor.run()
    except Exception as error:
        # The job must not outlive the one who watches it, and its end must be on record.
        supervisor.abandon()
        record_exit(spec, reason=REASON_LOST, message=f"its supervisor failed: {error!r}")
        raise


class Supervisor:
    def __init__(self, spec: InstanceSpec) -> None:
        self._spec = spec
        self._log = LogWriter(spec["rank_dir"], spec["log_limit_bytes"])
        self._cgroup = _cgroup_of(spec)
        self._container = ContainerJob(spec["container"]) if spec["container"] else None
        self._storage = InstanceStorage(spec)
        self._pid = os.getpid()
        self._claim = -1
        self._main = 0
        self._main_status: int | None = None
        self._main_ended_at: float | None = None
        self._children_left = False
        self._started_at: float | None = None
        self._limit_at: float | None = None
        self._kill_at: float | None = None
        self._timed_out = False
        self._stop_wanted = False
        self._stopping = False
        #: the end is the engine's or the time limit's doing, not the job's own
        self._told_to_end = False
        #: the container had no process yet that SIGTERM could be sent to
        self._warning_due = False
        #: its first process was ended in place of SIGTERM
        self._ended_first = False
        self._exec_problem = b""
        self._tail = b""
        self._output = -1
        self._exec_report = -1
        self._wake, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def claim(self) -> bool:
        """Whether this supervisor owns the instance. The claim stays locked until the process ends."""
        # Signals first: from the moment of the claim on the engine may send one.
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, lambda number, frame: self._want_stop())
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        prepares = self._container is not None or self._storage.takes_long
        body = {"pid": self._pid, "boot_id": self._spec["boot_id"], "prepares": prepares}
        claim = take_claim(self._spec["rank_dir"], body)
        if claim is None:
            return False
        self._claim = claim
        return True

    def run(self) -> None:
        # After the claim: who takes over writes the term first, and looks at claims then.
        if self._is_superseded(self._spec["term"]):
            record_exit(self._spec, reason=REASON_LOST, message="another server took over before it started")
            return
        # A stop that came before the claim found nobody to signal, but left its file.
        if self._stop_order() is not None:
            record_exit(self._spec, reason=REASON_EXIT, message="stopped before it started")
            return
        name_process("corral-job")
        try:
            # Storage first: a bucket that is mounted for it serves others too, and must not become our child.
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
        """The order to stop, unless there is none or it is that of a server that was superseded."""
        order = read_stop(self._spec["attempt_dir"])
        if order is None:
            return None
        return None if self._is_superseded(int(order.get("term", 0))) else order

    @property
    def _tmp(self) -> str:
        return os.path.join(self._spec["rank_dir"], TMP)

    # -------------------------------------------------------------------------------------------- beginning

    def _has_storage(self) -> bool:
        """Prepare what it mounts; False if the attempt ends here. Counts for no time limit."""
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
        """Pull the image, if there is one; False if the attempt ends here. Counts for no time limit."""
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

    def _say(self, words: str) -> None:
        """A line of our own in the job's log."""
        self._log.write(f"corral: {words}\n".encode())

    def _make_places(self) -> str:
        """Working and temporary directory; gives the former."""
        spec, owner = self._spec, self._spec["owner"]
        workdir = spec["workdir"] or os.path.join(spec["rank_dir"], WORK)
        if not spec["workdir"]:
            os.makedirs(workdir, exist_ok=True)
        make_private(self._tmp, owner)
        if owner is not None:
            own = [*([] if spec["workdir"] else [workdir]), *spec["owned"]]
            hand_over(own, owner)
            for path in own:
                open_way(path, spec["top"])
            open_way(self._tmp, spec["top"])
        return workdir

    def _start(self) -> bool:
        try:
            workdir = self._make_places()
            if self._container:
                self._container.write_environment({**self._spec["env"], **self._storage.seen_in_container()})
            if self._cgroup:
                self._cgroup.create()
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            self._output, output_write = os.pipe2(os.O_CLOEXEC)
            self._exec_report, report_write = os.pipe2(os.O_CLOEXEC)
            # A stop may come between fork and exec: held back, it meets the job and not this program's handler.
            signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
            pid = os.fork()
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            message = f"could not be prepared: {place}{error.strerror}"
            record_exit(self._spec, reason=launch_reason(error), message=message)
            if self._cgroup:
                self._cgroup.remove()
            return False
        if pid == 0:
            self._become_job(workdir, output_write, null, report_write)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
        for descriptor in (null, output_write, report_write):
            os.close(descriptor)
        for descriptor in (self._output, self._exec_report):
            os.set_blocking(descriptor, False)
        self._main = pid
        self._children_left = True
        return True

    def _become_job(self, workdir: str, output: int, null: int, report: int) -> NoReturn:
        spec = self._spec
        try:
            signal.set_wakeup_fd(-1)
            if self._container:
                # Only the runtime: the job's account and limits are the container's.
                command = self._container.entered(spec)
                enter_job(command, self._container.env, "/", parent=self._pid, output=output, null=null)
            if self._cgroup:
                self._cgroup.join()
            enter_job(
                spec["command"],
                {**spec["env"], **self._entered_storage()},
                workdir,
                parent=self._pid,
                output=output,
                null=null,
                owner=spec["owner"],
                venv=spec["venv"],
                no_new_privileges=spec["no_new_privileges"],
            )
        except (ExecFailed, CannotMount) as error:
            os.write(report, str(error).encode(errors="replace"))
        except BaseException as error:  # noqa: BLE001 - a forked child must never run its parent's code
            os.write(report, f"could not be started: {error}".encode(errors="replace"))
        finally:
            os._exit(127)

    def _entered_storage(self) -> dict[str, str]:
        try:
            return self._storage.enter()
        except OSError as error:
            raise ExecFailed(f"what it mounts cannot be mounted: {error.filename}: {error.strerror}") from error

    def _mark_started(self) -> None:
        self._started_at = time.time()
        if self._spec["time_limit_seconds"] is not None:
            self._limit_at = time.monotonic() + self._spec["time_limit_seconds"]
        body = {"pid": self._main, "start_ticks": start_ticks(self._main), "at": self._started_at}
        add_to_claim(self._claim, body)
        notify(self._spec["events_path"], self._spec["attempt_id"])

    # -------------------------------------------------------------------------------------------- watching

    def _watch(self) -> None:
        """Until the main process and everything it left behind is gone."""
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
        due = [at for at in (self._kill_at, None if self._stopping else self._limit_at) if at is not None]
        if self._stop_wanted:
            return 0
        if self._stopping and self._container and self._main_status is None:
            due.append(time.monotonic() + KILL_AGAIN_SECONDS)
        return max(0.0, min(due) - time.monotonic()) * 1000 if due else None

    def _act_on_time(self) -> bool:
        """Do what is due. False when all that is left cannot be signalled by us."""
        now = time.monotonic()
        if self._stop_wanted:
            self._stop_wanted = False
            order = self._stop_order()
            if order is not None:
                self._told_to_end = True
                self._terminate(float(order.get("grace_seconds", self._spec["grace_seconds"])))
        elif self._main_status is None and not self._stopping and self._limit_at is not None and now >= self._limit_at:
            self._timed_out = self._told_to_end = True
            self._terminate(self._spec["grace_seconds"])
        elif self._main_status is not None and not self._stopping:
            self._terminate(RUNTIME_SECONDS if self._container else LINGER_SECONDS)
        elif self._stopping and self._container and self._main_status is None:
            self._go_on_stopping(self._container)
        if self._kill_at is not None and now >= self._kill_at:
            reached = self.kill_everything()
            self._kill_at = now + (RUNTIME_SECONDS if self._container else KILL_AGAIN_SECONDS)
            return reached > 0 or self._main_status is None
        return True

    def _go_on_stopping(self, container: ContainerJob) -> None:
        inside = self._processes()
        if self._warning_due:
            self._warning_due = not container.terminate(inside)
        elif container.end_lonely_first(inside):
            self._ended_first = True

    def _must_stop(self) -> bool:
        """Whether it was told to end while it is being prepared."""
        return self._stop_wanted and self._stop_order() is not None

    def _want_stop(self) -> None:
        self._stop_wanted = True

    def _terminate(self, grace_seconds: float) -> None:
        """SIGTERM to all, SIGKILL after the grace time; of several requests the earliest end counts."""
        kill_at = time.monotonic() + grace_seconds
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if self._stopping:
            return
        self._stopping = True
        targets = self._processes()
        if self._container:
            self._warning_due = not self._container.terminate(targets)
            return
        send(targets, signal.SIGTERM)
        send(targets, signal.SIGCONT)  # a suspended process would not notice before it is killed

    def abandon(self) -> None:
        """End everything at once and leave nothing."""
        self.kill_everything()
        if self._container:
            self._container.remove()

    def kill_everything(self) -> int:
        if self._cgroup and not self._container:
            # A container's processes end with its first one, and its runtime needs a process more to tidy up.
            self._cgroup.forbid_forks()
        reached = send(self._processes(), signal.SIGKILL)
        if self._container and not reached:
            # Nothing of the job is left, and its runtime does not end, or has never got to starting it.
            reached = send(descendants(self._pid), signal.SIGKILL)
        return reached

    def _processes(self) -> set[int]:
        """The job's own, without those of a container's runtime."""
        found = set(descendants(self._pid))
        if self._cgroup:
            found |= self._cgroup.processes()
        return self._container.inside(found) if self._container else found

    def _pump(self) -> bool:
        """Move output into the log; False at its end. Bounded, so that a torrent cannot delay a stop."""
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
        """The report closes without a word when the program begins to run."""
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
        # Bounded by what is in the pipe now: somebody outside may still hold its other end.
        self._pump()
        self._log.close()
        assert self._main_status is not None
        code = os.waitstatus_to_exitcode(self._main_status)
        signal_number = -code if code < 0 else None
        exit_code = 128 - code if code < 0 else code
        if self._container:
            reason, message, exit_code = self._container_verdict(self._container, exit_code)
        else:
            reason, message = self._verdict(exit_code, signal_number)
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
            self._cgroup.remove()

    def _verdict(self, exit_code: int, signal_number: int | None, *, oom_killed: bool = False) -> tuple[str, str]:
        if self._exec_problem:
            return REASON_LAUNCH, self._exec_problem.decode(errors="replace")
        if self._timed_out:
            return REASON_TIME, f"ran longer than its time limit of {self._spec['time_limit_seconds']:g} s"
        if exit_code and self._cgroup:
            report = self._cgroup.memory_report()
            if report.oom_kills or (oom_killed and report.own_limit):
                return REASON_OOM, oom_message(self._spec["memory_bytes"], report.peak_bytes, report.own_limit)
        if signal_number is not None:
            return REASON_EXIT, f"killed by {signal_name(signal_number)}"
        if not exit_code:
            return REASON_EXIT, ""
        refused = self._cgroup.refused_forks() if self._cgroup else 0
        limit = f"; it wanted more than its {self._spec['max_processes']} processes" if refused else ""
        return REASON_EXIT, f"exit code {exit_code}{limit}"

    def _container_verdict(self, container: ContainerJob, exit_code: int) -> tuple[str, str, int]:
        """As without a container, with what its runtime knows. Leaves nothing of it behind."""
        end = container.end()
        container.remove()
        has_failed = end.has_started is False or (end.has_started is None and exit_code == _RUNTIME_FAILED)
        if has_failed and not self._told_to_end:
            complaint = end.message or error_in(self._tail)
            return REASON_LAUNCH, complaint or f"the container could not be started (code {exit_code})", exit_code
        if self._ended_first and exit_code == _KILLED:
            exit_code = _TERMINATED
        # Version 1 counts a kill where the container's own group was, which is gone: that nobody here did it must do.
        looks_killed = exit_code == _KILLED and not self._told_to_end
        reason, message = self._verdict(exit_code, None, oom_killed=end.oom_killed or looks_killed)
        if end.oom_killed and reason == REASON_EXIT and exit_code:
            reason, message = REASON_OOM, oom_message(self._spec["memory_bytes"], 0, own_limit=True)
        return reason, message, exit_code


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
