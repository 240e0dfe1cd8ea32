"""Days on a real Slurm with four nodes of eight GPUs: many jobs, crashes of everything, and others who use it too."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.audit import (
    assert_gangs_are_whole,
    assert_journal_replays,
    assert_no_gpu_given_twice,
    attempts_of,
)
from tests.integration.slurm_server import server_on
from tests.integration.system.test_crashes import Witness, all_jobs
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

USERS = ("ann", "ben", "eve")
SHAPES: tuple[dict[str, Any], ...] = (
    {"gpus": 1},
    {"gpus": 2},
    {"gpus": 8},
    {"gpus": 0, "cpus": 2},
    {"gpus": 4, "nodes": 3},
)


@pytest.fixture
def server(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[CorralServer]:
    slurm_cluster.make_whole()
    started = server_on(slurm_cluster, tmp_path / "home", pending_seconds="3")
    started.start()
    yield started
    if started.is_running:
        started.stop()
    slurm_cluster.run("scancel", "--user=root", check=False)


def wait_for_ends(http: httpx.Client, seconds: float = 240.0) -> dict[str, dict[str, Any]]:
    def unfinished() -> list[dict[str, Any]]:
        return [job for job in all_jobs(http) if job["state"] not in ("completed", "failed", "stopped")]

    try:
        wait_until(lambda: not unfinished(), "every job ends", seconds=seconds)
    except AssertionError as late:
        left = unfinished()
        why = http.get(f"/jobs/{left[0]['id']}/why").text if left else ""
        nodes = [(node["id"], node["state"], node["gpus_free"]) for node in http.get("/nodes").json()["items"]]
        raise AssertionError(f"{late}: {[(job['name'], job['state']) for job in left]}, {nodes}, {why}") from late
    return {job["name"]: job for job in all_jobs(http)}


def badly_ended(jobs: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (name, job["end_reason"], job["exit_code"], job["message"])
        for name, job in jobs.items()
        if job["state"] != "completed"
    ]


def test_mixed_jobs_and_gangs_of_three_users_all_complete(server: CorralServer) -> None:
    rng, submitted = random.Random(7), dict[str, dict[str, Any]]()
    for user in USERS:
        server.add_user(user)
    for number in range(12):
        jobs = [
            {"command": ["sleep", str(rng.choice([0, 0.1, 0.3]))], "time": "10m", **rng.choice(SHAPES)}
            for _ in range(5)
        ]
        with server.http(USERS[number % 3]) as http:
            answer = http.post("/jobs:batch", json={"jobs": jobs})
            assert answer.status_code == 201, answer.text
            submitted |= {job["id"]: job for job in answer.json()["items"]}
    with server.http() as http:
        ended = wait_for_ends(http)
        free = sum(node["gpus_free"] for node in http.get("/nodes").json()["items"])
    assert not badly_ended(ended)
    attempts = attempts_of(server.home)
    assert assert_no_gpu_given_twice(attempts) <= 32
    assert_gangs_are_whole(attempts, {job_id: job["nodes"] for job_id, job in submitted.items()})
    assert assert_journal_replays(server.home) > 0
    assert free == 32


def test_nothing_is_lost_and_nothing_runs_twice_whatever_dies(
    server: CorralServer, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    rng, witness = random.Random(11), Witness(tmp_path / "witness")
    expected: dict[str, int] = {}

    def submit(count: int) -> None:
        with server.http() as http:
            for _ in range(count):
                name, exit_code = f"crash-{len(expected):03d}", rng.choice([0, 0, 3])
                shape = rng.choice([{"gpus": 1}, {"gpus": 4}, {"gpus": 2, "nodes": 2}])
                command = witness.command(rng.choice([0.1, 1.0, 2.0]), exit_code)
                answer = http.post("/jobs", json={"name": name, "command": command, "time": "5m", **shape})
                assert answer.status_code == 201, answer.text
                expected[name] = exit_code

    def begin_long_job() -> None:
        """The only one that runs when Slurm's controller dies: of what ends in that very moment Slurm itself may keep
        the GPUs for ever."""
        with server.http() as http:
            wait_for_ends(http)
            command = witness.command(8.0, 0)
            job = http.post("/jobs", json={"name": "through-all", "command": command, "gpus": 2, "time": "5m"}).json()
            expected["through-all"] = 0
            wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "running", "it runs")

    for round_number in range(8):
        if round_number == 2:
            begin_long_job()
        else:
            submit(4)
            time.sleep(rng.uniform(0.0, 0.8))
        server.kill()
        if round_number == 2:
            slurm_cluster.kill_controller()
        if round_number == 4:
            slurm_cluster.kill_node_daemon("node4")
        server.start(wait=round_number != 2)
        if round_number == 2:
            # corral is up before the controller is, and waits for it
            time.sleep(1.0)
            slurm_cluster.start_controller()
            server.wait_ready(90)
        if round_number == 5:
            slurm_cluster.start_node("node4")
    with server.http() as http:
        jobs = wait_for_ends(http)
    assert jobs.keys() == expected.keys()
    for name, job in jobs.items():
        assert (job["exit_code"], job["end_reason"]) == (expected[name], "exit_code"), job
    begun = witness.lines("begin")
    assert set(begun.values()) == {1}, f"ran twice: {[name for name, count in begun.items() if count > 1]}"
    assert_no_gpu_given_twice(attempts_of(server.home))


def test_a_node_that_dies_is_seen_and_its_jobs_go_on_elsewhere(
    server: CorralServer, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    stay = tmp_path / "stay"
    stay.touch()
    command = ["sh", "-c", f"echo on $SLURMD_NODENAME; while [ -e {stay} ]; do sleep 0.1; done"]
    with server.http() as http:
        job = http.post("/jobs", json={"name": "moves", "command": command, "gpus": 8}).json()
        other = http.post("/jobs", json={"name": "stays", "command": command, "gpus": 8}).json()
        wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "running", "it runs")
        wait_until(lambda: http.get(f"/jobs/{other['id']}").json()["state"] == "running", "the other runs")
        node = http.get(f"/jobs/{job['id']}").json()["allocation"]["grants"][0]["node"]
        slurm_cluster.crash_node(node)
        try:
            wait_until(
                lambda: (
                    http.get(f"/jobs/{job['id']}").json()["attempt"] == 2
                    and http.get(f"/jobs/{job['id']}").json()["state"] == "running"
                ),
                "it runs elsewhere",
                seconds=120,
            )
            first = http.get(f"/jobs/{job['id']}/attempts").json()["items"][0]
            states = {item["id"]: item["state"] for item in http.get("/nodes").json()["items"]}
            assert (first["end_reason"], states[node]) == ("node_lost", "down")
            again = http.get(f"/jobs/{job['id']}").json()
            assert again["allocation"]["grants"][0]["node"] != node
            assert http.get(f"/jobs/{other['id']}").json()["attempt"] == 1
            stay.unlink()
            assert not badly_ended(wait_for_ends(http))
        finally:
            slurm_cluster.start_node(node)
        wait_until(
            lambda: {item["state"] for item in http.get("/nodes").json()["items"]} == {"ready"},
            "the node is back",
            seconds=60,
        )


def test_jobs_of_other_slurm_users_are_seen_and_block_no_job(server: CorralServer, slurm_cluster: SlurmCluster) -> None:
    rng = random.Random(3)
    foreign = slurm_cluster.run("sbatch", "--parsable", "-w", "node1", "--gres=gpu:8", "--wrap", "sleep 300").strip()
    with server.http() as http:

        def free_on_node1() -> int:
            return next(int(item["gpus_free"]) for item in http.get("/nodes").json()["items"] if item["id"] == "node1")

        wait_until(lambda: free_on_node1() == 0, "its GPUs are seen as taken", seconds=60)
        why = http.post("/jobs", json={"name": "needs-all", "command": ["true"], "gpus": 8, "nodes": 4}).json()
        reported = http.get(f"/jobs/{why['id']}/why").json()
        assert "held by others outside corral" in str(reported["reasons"])
        slurm_cluster.run("scancel", foreign)
        for number in range(20):
            if rng.random() < 0.5:
                gpus, seconds = rng.choice([1, 4, 8]), rng.choice([1, 3])
                slurm_cluster.run("sbatch", f"--gres=gpu:{gpus}", "--wrap", f"sleep {seconds}")
            shape = rng.choice([{"gpus": 2}, {"gpus": 8}, {"gpus": 4, "nodes": 2}])
            body = {"name": f"mine-{number:02d}", "command": ["sleep", "0.2"], "time": "5m", **shape}
            assert http.post("/jobs", json=body).status_code == 201
            time.sleep(rng.uniform(0.0, 0.3))
        jobs = wait_for_ends(http)
    assert not badly_ended(jobs)


def test_a_job_that_others_overtook_is_planned_there_no_more_and_why_names_them(
    server: CorralServer, slurm_cluster: SlurmCluster
) -> None:
    with server.http() as http:
        for node in slurm_cluster.node_names:
            slurm_cluster.run("sbatch", "--gres=gpu:8", f"--nodelist={node}", "--output=/dev/null", "--wrap=sleep 600")
        # Mostly planned by what was seen before that: then it waits in Slurm, and is taken back.
        job = http.post("/jobs", json={"name": "overtaken", "command": ["true"], "gpus": 8}).json()["id"]

        def reasons() -> str:
            return str(http.get(f"/jobs/{job}/why").json()["reasons"])

        wait_until(lambda: "32 GPUs are held by others outside corral" in reasons(), "why names the others")
        # A second one may be planned before the cluster was looked at again.
        assert http.get(f"/jobs/{job}").json()["attempt"] <= 2, "nothing is planned again on what others hold"
        assert sum(node["gpus_free"] for node in http.get("/nodes").json()["items"]) == 0
        hours = http.get(f"/jobs/{job}/metrics").json()["totals"]["gpu_hours"]
        assert hours == 0, "it never began"
        slurm_cluster.run("scancel", "--user=root")
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "completed", "it runs when they are gone")


def test_fair_share_starts_jobs_in_the_same_order_as_on_the_local_engine(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    def order_on(server: CorralServer) -> list[str]:
        """Users with unequal use before submit while everything is held; then one job after the other may start."""
        server.start()
        try:
            for user in USERS:
                server.add_user(user)
            with server.http() as http:
                queue = {"name": "one-by-one", "policy": "fair-share", "max_gpus": 8}
                assert http.post("/queues", json=queue).status_code == 201
                blocker = http.post("/jobs", json={"command": ["sleep", "5"], "gpus": 8, "queue": "one-by-one"})
                assert blocker.status_code == 201, blocker.text
            # How long they run differs by far more than what an engine needs to start and end them.
            for user, seconds, priorities in (("ann", 0.5, (5, 3)), ("ben", 4.5, (5, 5)), ("eve", 2.5, (1, 7))):
                with server.http(user) as http:
                    for number, priority in enumerate(priorities):
                        command = ["sleep", str(seconds)]
                        body = {"name": f"{user}-{number}", "command": command, "gpus": 8, "priority": priority}
                        answer = http.post("/jobs", json={**body, "queue": "one-by-one", "time": "5m"})
                        assert answer.status_code == 201, answer.text
            with server.http() as http:
                names = {job["id"]: name for name, job in wait_for_ends(http).items()}
        finally:
            server.stop()
        attempts = sorted(attempts_of(server.home), key=lambda attempt: attempt.planned_at)
        return [names[attempt.job_id] for attempt in attempts if not names[attempt.job_id].startswith("job-")]

    local = CorralServer(tmp_path / "local", "--virtual-nodes", "4x8xA100-80G")
    ours = order_on(server_on(slurm_cluster, tmp_path / "slurm"))
    assert ours == order_on(local)
    assert len(ours) == 6


def test_the_command_line_of_slurm_shows_whose_job_it_is(server: CorralServer, slurm_cluster: SlurmCluster) -> None:
    with server.http() as http:
        job = http.post("/jobs", json={"name": "visible", "command": ["sleep", "30"], "gpus": 1}).json()
        wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "running", "it runs")
        listed = subprocess.run(
            ["squeue", "-h", "-o", "%j %b"], env=slurm_cluster.env, capture_output=True, text=True, check=True
        ).stdout
        assert f"{job['id']}.1" in listed
        assert http.post(f"/jobs/{job['id']}/stop", json={}).status_code == 200
        wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "stopped", "it stops")
