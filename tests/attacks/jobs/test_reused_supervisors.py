"""A job tries to leave things in the process of its supervisor for the next job, which may be another user's."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import SharedMachine

pytestmark = pytest.mark.slow

_TRIES = 10
#: What a job has of its supervisor: account, limits, signals, descriptors, directory and variables.
_LOOK = """
echo parent $PPID
id; umask; ulimit -a; nice; ls -l /proc/self/fd | sed 's/.* -> //; s/[0-9][0-9]*/N/g'
grep -E 'Sig|Shd|Cap|NoNewPrivs|Seccomp|Groups' /proc/self/status
cat /proc/self/oom_score_adj /proc/self/coredump_filter /proc/self/timerslack_ns 2>/dev/null
env | sort | sed 's#/runs/[^/]*/#/runs/#; s/j-[0-9][0-9]*/JOB/g; s/[0-9][0-9]*/N/g'
sleep 0.5
"""
#: Changes all that a process can change of itself, and leaves programs that write to the log of the next job.
_LEAVE = """
echo parent $PPID
ulimit -n 64; ulimit -c 0; umask 0; renice 15 $$ >/dev/null; echo 900 > /proc/self/oom_score_adj
export FROM_EVE=1 LD_PRELOAD=/tmp/eve.so PATH=/tmp/eve:$PATH
for n in 1 2 3; do (setsid sh -c "trap '' TERM HUP INT; while :; do echo EVE was here; sleep 0.05; done" &); done
kill -STOP $PPID; kill -TERM $PPID; kill -HUP $PPID; kill -KILL $PPID
renice 19 $PPID; taskset -p 1 $PPID; prlimit --pid $PPID --nofile=10
trap '' TERM HUP INT QUIT USR1
sleep 0.2
"""
#: Searches the supervisor for what it knew of the job before.
_SEARCH = """
echo parent $PPID
cat /proc/$PPID/environ /proc/$PPID/cmdline /proc/$PPID/maps
ls -l /proc/$PPID/fd /proc/$PPID/cwd /proc/$PPID/root
for fd in 3 4 5 6 7 8 9; do head -c 100 /proc/$PPID/fd/$fd; done
head -c 100 /proc/$PPID/mem
"""


def parent_of(log: str) -> str:
    (line,) = [line for line in log.splitlines() if line.startswith("parent ")]
    return line.removeprefix("parent ")


def after(machine: SharedMachine, first: str, second: str, *, user: str, by: str) -> tuple[str, str]:
    """The logs of two jobs that had the same supervisor: the first script as `by`, the second as `user`."""
    for _ in range(_TRIES):
        _, before = machine.run(by, first, env={"TOKEN_OF": f"secret-of-{by}"})
        _, then = machine.run(user, second)
        if parent_of(before) == parent_of(then):
            return before, then
    raise AssertionError("no supervisor was used for both jobs")


def test_a_job_finds_nothing_of_the_one_before_it(machine: SharedMachine) -> None:
    _, alone = machine.run("ann", _LOOK)
    _, then = after(machine, _LEAVE, _LOOK, user="ann", by="eve")
    assert "EVE" not in then
    assert then.replace(parent_of(then), "") == alone.replace(parent_of(alone), "")


def test_a_job_reads_nothing_of_the_one_before_it_from_their_supervisor(machine: SharedMachine) -> None:
    before, then = after(machine, "echo parent $PPID; echo $TOKEN_OF", _SEARCH, user="eve", by="ann")
    assert "secret-of-ann" in before
    assert "secret-of-ann" not in then
    denied = [line for line in then.splitlines() if "Permission denied" in line or "cannot" in line]
    assert len(denied) >= 5, then
    ended, _ = machine.run("ann", "true")
    assert ended["state"] == "completed"
