"""Tests that only the local engine allows: killed supervisors and spawners, reboots, control groups."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase
from corral.core.model import EndReason
from corral.engines.attempts.claims import CLAIM, take_claim
from corral.engines.local.cgroups import CgroupSupport, cgroup_support
from tests.contract.engine_harness import LocalHarness, kill, order, process_exists, script, wait_until

RUNNING, ENDED = AttemptPhase.RUNNING, AttemptPhase.ENDED


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalHarness]:
    harness = LocalHarness(tmp_path / "engine")
    yield harness
    harness.clean_up()


def test_a_killed_supervisor_takes_its_job_along_and_the_attempt_is_lost(local: LocalHarness) -> None:
    local.launch(order(*script("setsid sh -c 'echo daemon $$; exec sleep 300' & echo main $$; wait")))
    pids = [local.number_from_output(word) for word in ("daemon", "main")]
    kill(local.supervisor_pid())
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.LOST, None)
    assert "supervisor was killed" in ended.message
    assert not [pid for pid in pids if process_exists(pid)]
    local.restart()
    assert local.status() == ended


def test_a_supervisor_killed_while_no_server_lived_is_found(local: LocalHarness) -> None:
    local.launch(order(*script("setsid sh -c 'echo daemon $$; exec sleep 300' & wait")))
    daemon = local.number_from_output("daemon")
    pid = local.supervisor_pid()
    local.stop_server()
    kill(pid)
    local.start()
    status = local.status()
    assert status is not None
    assert status.reason is EndReason.LOST
    assert not process_exists(daemon)


def test_a_lost_instance_ends_its_gang(local: LocalHarness) -> None:
    local.launch(order("sleep", "60", nodes=2))
    local.listener.running()
    kill(local.supervisor_pid(rank=1))
    ended = local.listener.ended()
    assert ended.reason is EndReason.LOST
    assert ended.message.startswith("instance 1 on node2: ")


def test_a_restart_of_the_machine_is_reported_as_such(local: LocalHarness) -> None:
    local.launch(order("sleep", "60"))
    local.listener.running()
    pid = local.supervisor_pid()
    local.stop_server()
    kill(pid)
    claim = Path(local.layout.rank_dir("j-1.1", 0)) / CLAIM
    claim.write_text(claim.read_text().replace(local.engine._files.boot_id, "an earlier one"))
    local.start()
    status = local.status()
    assert status is not None
    assert (status.reason, status.message) == (EndReason.LOST, "the machine was restarted while it ran")


def test_a_launch_cut_short_before_the_claim_is_not_reported_and_can_be_repeated(local: LocalHarness) -> None:
    os.kill(local.spawner_pid(), signal.SIGSTOP)
    stuck = local.spawner_pid()
    local.launch(order("echo", "second try"))
    kill(stuck)  # the launch dies unread, and so does the server
    local.engine._launches._launches.clear()
    _, listener = local.restart()
    assert local.status() is None
    local.launch(order("echo", "second try"))
    assert listener.ended().exit_code == 0
    assert local.output() == "second try\n"


def test_a_killed_spawner_is_replaced_and_its_unread_launches_are_not_lost(local: LocalHarness) -> None:
    first = local.spawner_pid()
    os.kill(first, signal.SIGSTOP)
    for number in range(3):
        local.launch(order("true", attempt_id=f"j-{number}.1"))
    kill(first)
    for number in range(3):
        assert local.listener.ended(f"j-{number}.1").exit_code == 0
    assert local.spawner_pid() != first


def test_more_launches_than_the_socket_holds_wait_for_the_spawner(local: LocalHarness) -> None:
    os.kill(local.spawner_pid(), signal.SIGSTOP)
    for number in range(20):
        local.launch(order("true", attempt_id=f"j-{number}.1", env={"FILL": "x" * 60_000}))
    os.kill(local.spawner_pid(), signal.SIGCONT)
    for number in range(20):
        assert local.listener.ended(f"j-{number}.1").exit_code == 0


def test_the_spawner_survives_bad_messages(local: LocalHarness) -> None:
    spawner = local.spawner_pid()
    link = local.engine._launches._link
    assert link is not None
    for body in (b"not json", b"[]", b"{}", b'{"rank_dir": "/no/such/place"}', b'{"rank_dir": 5}'):
        link.send(struct.pack("!I", len(body)) + body)
    local.launch(order("true"))
    assert local.listener.ended().exit_code == 0
    assert local.spawner_pid() == spawner


def test_the_missing_part_of_a_gang_is_launched_and_the_rest_left_alone(local: LocalHarness) -> None:
    local.launch(order(*script("echo run; exec sleep 60"), nodes=2))
    local.listener.running()
    # As if the spawner had died between the two: rank 1 was never claimed.
    directory = Path(local.layout.rank_dir("j-1.1", 1))
    pid = local.supervisor_pid(rank=1)
    local.stop_server()
    (directory / CLAIM).unlink()
    kill(pid)
    _, listener = local.start()
    assert local.status() is None
    local.launch(order(*script("echo run; exec sleep 60"), nodes=2))
    listener.running()
    assert local.output(rank=0) == "run\n"


def test_stopping_a_half_launched_gang_ends_it(local: LocalHarness) -> None:
    local.stop_server()
    local.start()
    os.kill(local.spawner_pid(), signal.SIGSTOP)
    local.launch(order("sleep", "60", nodes=2))
    local.engine.stop("j-1.1", 5.0)
    ended = local.listener.ended()
    assert ended.message == "instance 0 on node1: stopped before it started"
    os.kill(local.spawner_pid(), signal.SIGCONT)
    local.launch(order("true", attempt_id="j-2.1"))
    local.listener.ended("j-2.1")
    assert local.status() == ended  # the spawner came too late: the claims were taken


def test_the_spawner_ends_with_the_server_and_the_job_does_not(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    program = f"""
import sys, threading
from pathlib import Path
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import fleet_for
from tests.contract.engine_harness import order
engine = LocalEngine(root=Path({str(root)!r}), fleet=fleet_for(virtual_gpus="1xT4"))
up = threading.Event()
engine.subscribe(lambda status: up.set())
engine.launch(order("sleep", "60"))
up.wait()
print(engine._launches._link.pid, flush=True)
threading.Event().wait()
"""
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    spawner = int(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()
    wait_until(lambda: not process_exists(spawner), "the end of the spawner")
    local = LocalHarness(root)
    local._launched.add("j-1.1")
    status = local.status()
    assert status is not None
    assert status.phase is RUNNING
    local.clean_up()


def test_a_long_path_to_the_root_does_no_harm(tmp_path: Path) -> None:
    local = LocalHarness(tmp_path / ("deep-" * 20) / ("deeper-" * 20) / "engine")
    local.launch(order("true"))
    assert local.listener.ended().exit_code == 0
    local.clean_up()


def test_a_run_directory_that_cannot_be_prepared_is_a_launch_error(local: LocalHarness) -> None:
    directory = local.layout.rank_dir("j-1.1", 0)
    os.makedirs(directory)
    Path(directory, "work").write_text("in the way")
    local.launch(order("true"))
    ended = local.listener.ended()
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert directory in ended.message


def test_a_claim_is_taken_once(tmp_path: Path) -> None:
    first = take_claim(str(tmp_path), {"pid": 1})
    assert first is not None
    assert take_claim(str(tmp_path), {"pid": 2}) is None
    assert json.loads((tmp_path / CLAIM).read_text()) == {"pid": 1}
    os.close(first)


# ------------------------------------------------------------------------------------------------ limits

LIMITS = cgroup_support()
needs_cgroups = pytest.mark.skipif(
    not LIMITS.writable, reason=f"no control groups that can be written, run as root: {LIMITS.detail}"
)

HOG = (
    "import sys, time; print('hog', flush=True); held = []\n"
    "while True: held.append(b'x' * (1 << 20)); print(len(held), flush=True)"
)


def groups_left(local: LocalHarness) -> list[str]:
    prefix = local.engine._files.cgroup_name("", 0)[:9]
    return [name for base in {LIMITS.memory, LIMITS.cpu} for name in os.listdir(base) if name.startswith(prefix)]


@needs_cgroups
def test_a_job_over_its_memory_is_killed_says_so_and_its_neighbour_is_unharmed(local: LocalHarness) -> None:
    neighbour = order(
        sys.executable, "-c", "held = b'x' * (16 << 20); print('up', flush=True); import time; time.sleep(60)",
        attempt_id="j-2.1", memory_bytes=64 << 20,
    )  # fmt: skip
    local.launch(neighbour)
    wait_until(lambda: "up" in local.output("j-2.1"), "the neighbour")
    local.launch(order(sys.executable, "-c", HOG, memory_bytes=64 << 20))
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.OOM_KILLED, 137)
    assert ended.message.startswith("used more than its 64.0 MiB of memory")
    assert ended.message.endswith("the kernel killed it")
    assert int(local.output().split()[-1]) < 64
    status = local.status("j-2.1")
    assert status is not None
    assert status.phase is RUNNING
    local.engine.stop("j-2.1", 5.0)
    assert local.listener.ended("j-2.1").message == "killed by SIGTERM"
    wait_until(lambda: not groups_left(local), f"removed groups; left: {groups_left(local)}")


@needs_cgroups
def test_a_child_over_the_memory_limit_fails_the_job_that_reports_it(local: LocalHarness) -> None:
    local.launch(order(*script(f'"{sys.executable}" -c "{HOG}" >/dev/null; exit 1'), memory_bytes=64 << 20))
    assert local.listener.ended().reason is EndReason.OOM_KILLED


@needs_cgroups
def test_a_cpu_limit_holds(local: LocalHarness) -> None:
    spin = (
        "import time; begin = time.monotonic()\n"
        "while time.monotonic() - begin < 1: pass\n"
        "print('cpu', int(time.process_time() * 1000))"
    )
    local.launch(order(sys.executable, "-c", spin, cpu_milli=200))
    local.listener.ended()
    assert local.number_from_output("cpu") < 450  # of 1000 ms; a period may begin with a full quota


@needs_cgroups
def test_the_group_of_a_killed_supervisor_is_removed(local: LocalHarness) -> None:
    local.launch(order("sleep", "60", memory_bytes=64 << 20, cpu_milli=500))
    local.listener.running()
    assert groups_left(local)
    kill(local.supervisor_pid())
    local.listener.ended()
    assert not groups_left(local)


def test_without_control_groups_a_limit_is_not_enforced_and_nothing_fails(tmp_path: Path) -> None:
    local = LocalHarness(tmp_path / "engine", cgroups=CgroupSupport(version=0, detail="none here"))
    local.launch(order("true", memory_bytes=1 << 20, cpu_milli=100))
    assert local.listener.ended().exit_code == 0
    assert local.engine.describe()["cgroups"] == "none here"
    local.clean_up()
