"""What-if questions and looking back on a real server: over its own history, over crashes, and cancelled."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

#: Enough jobs for a question that is not answered in a moment.
LONG_TRACE = [
    {
        "user": f"u{number % 7}",
        "submitted_at": number * 3.0,
        "run_seconds": 40.0 + number % 50,
        "gpus": 1 + number % 2,
        "time_limit_seconds": 200,
    }
    for number in range(9000)
]
SHORTEST = {"queues": {"*": {"policy": "shortest"}}}


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann",)) as started:
        yield started


def ask(api: httpx.Client, **body: Any) -> str:
    answer = api.post("/simulations", json={"candidate": SHORTEST, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def seen(api: httpx.Client, simulation: str) -> dict[str, Any]:
    answer = api.get(f"/simulations/{simulation}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def wait_for(api: httpx.Client, simulation: str, state: str) -> dict[str, Any]:
    wait_until(lambda: seen(api, simulation)["state"] == state, f"{simulation} is {state}", seconds=120)
    return seen(api, simulation)


def workers_of(server: CorralServer) -> list[int]:
    """Processes that answer a question of this server."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"corral.server.whatif.simulation_worker" in command and any(
                part.startswith(bytes(server.home)) for part in command
            ):
                found.append(int(entry.name))
    return found


def wait_for_worker(server: CorralServer) -> int:
    wait_until(lambda: bool(workers_of(server)), "a process answers")
    return workers_of(server)[0]


@pytest.fixture(autouse=True)
def nothing_is_asked_any_more(server: CorralServer) -> Iterator[None]:
    """Questions are answered one by one: one that a failed test left would be taken for the next test's."""
    yield
    with server.http() as api:
        for asked in api.get("/simulations").json()["items"]:
            if asked["state"] in ("waiting", "working"):
                api.post(f"/simulations/{asked['id']}/cancel", json={})
    wait_until(lambda: not workers_of(server), "no worker is left")


def test_a_trace_is_replayed_on_the_cluster_as_it_is_and_as_it_could_be(server: CorralServer) -> None:
    jobs = [
        {"user": user, "group": group, "submitted_at": 10.0 * number, "run_seconds": seconds, "gpus": 2}
        for number, (user, group, seconds) in enumerate(
            [("ann", "a", 300), ("ann", "a", 300), ("ann", "a", 300), ("zoe", "b", 10), ("zoe", "b", 10)]
        )
    ]
    more = {"fleet": {"add": [{"nodes": 1, "gpus": 8, "model": "A100-80G"}]}}
    with server.http() as api:
        done = wait_for(api, ask(api, jobs=jobs, candidate=more, name="one node more"), "ready")
    result = done["result"]
    assert done["name"] == "one node more"
    assert done["words"] == {"base": "as it is", "candidate": "+1x8xA100-80G"}
    assert done["progress"]["fraction"] == 1.0
    assert (result["jobs"], result["base"]["gpus"], result["candidate"]["gpus"]) == (5, 4, 12)
    # two of four GPUs each: the third waits for the first, and with eight more no job waits
    assert result["base"]["wait_seconds"]["max"] > 250
    assert result["candidate"]["wait_seconds"]["max"] == 0
    assert result["fidelity"] is None
    assert {share["name"] for share in result["groups"]} == {"a", "b"}
    waits = {item["field"]: item for item in result["differences"]}
    assert waits["wait_seconds.mean"]["better"] is True
    assert waits["utilization"]["better"] is None
    assert result["base"]["waiting_cdf"][-1][1] == 1.0
    series = result["base"]["course"]
    assert len(series["times"]) == len(series["used_gpus"]) == len(series["waiting_jobs"]) <= 401
    assert 0 < max(series["used_gpus"]) <= 4


def test_a_question_can_be_cancelled_and_its_process_ends(server: CorralServer) -> None:
    with server.http() as api:
        simulation = ask(api, jobs=LONG_TRACE)
        waiting = ask(api, jobs=LONG_TRACE[:10])
        worker = wait_for_worker(server)
        # the server says so right after it began the process: a moment passes in between
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, worker) == 19, "the process steps behind everything else")
        wait_until(lambda: seen(api, simulation)["progress"]["fraction"] > 0, "there is progress")
        assert seen(api, waiting)["state"] == "waiting"
        cancelled = api.post(f"/simulations/{simulation}/cancel", json={})
        assert cancelled.json()["state"] == "cancelled"
        wait_until(lambda: worker not in workers_of(server), "its process ends")
        problem(api.post(f"/simulations/{simulation}/cancel", json={}), 409)
        # the next one has its turn
        assert wait_for(api, waiting, "ready")["result"]["jobs"] == 10
        assert seen(api, simulation)["state"] == "cancelled"
        assert api.delete(f"/simulations/{simulation}").status_code == 204
        problem(api.get(f"/simulations/{simulation}"), 404)
        assert not (server.home / "simulations" / simulation).exists()


def test_a_killed_process_is_reported_and_can_be_started_again(server: CorralServer) -> None:
    with server.http() as api:
        simulation = ask(api, jobs=LONG_TRACE)
        os.kill(wait_for_worker(server), signal.SIGKILL)
        killed = wait_for(api, simulation, "interrupted")
        assert killed["error"] == "its process was killed by signal 9"
        again = api.post(f"/simulations/{simulation}/again", json={}).json()
        assert again["id"] != simulation
        wait_for_worker(server)
        assert api.post(f"/simulations/{again['id']}/cancel", json={}).status_code == 200


def test_a_question_outlives_a_crash_of_the_server_and_a_second_one_ends_it(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "state", "--virtual-gpus", "4xA100-80G")
    server.start()
    try:
        with server.http() as api:
            simulation = ask(api, jobs=LONG_TRACE)
            short = ask(api, jobs=LONG_TRACE[:10])
        orphan = wait_for_worker(server)
        server.kill()
        wait_until(lambda: orphan not in workers_of(server), "the process sees that it is alone")
        server.start()
        with server.http() as api:
            wait_for_worker(server)
            assert seen(api, simulation)["state"] == "working"
        server.kill()
        server.start()
        with server.http() as api:
            given_up = wait_for(api, simulation, "interrupted")
            assert given_up["error"] == "the server stopped 2 times while it ran"
            assert wait_for(api, short, "ready")["result"]["jobs"] == 10
    finally:
        server.kill()


def test_stopping_the_server_ends_the_process(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "state", "--virtual-gpus", "4xA100-80G")
    server.start()
    try:
        with server.http() as api:
            ask(api, jobs=LONG_TRACE)
        worker = wait_for_worker(server)
        assert server.stop() == 0
        assert worker not in workers_of(server)
    finally:
        server.kill()


def test_followers_hear_how_far_it_is_and_only_operators_do(server: CorralServer) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []
    with server.http() as api, api.stream("GET", "/stream", timeout=60) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        simulation = ask(api, jobs=LONG_TRACE)
        name = ""
        for line in lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name.startswith("simulation."):
                heard.append((name, json.loads(line.removeprefix("data: "))))
                if name == "simulation.progress":
                    break
        assert api.post(f"/simulations/{simulation}/cancel", json={}).status_code == 200
    assert [name for name, _ in heard[:2]] == ["simulation.requested", "simulation.started"]
    progress = heard[-1][1]
    assert progress["id"] == simulation
    assert 0 <= progress["fraction"] <= 1


def test_more_than_ten_questions_do_not_wait(server: CorralServer) -> None:
    with server.http() as api:
        asked = [ask(api, jobs=LONG_TRACE)] + [ask(api, jobs=LONG_TRACE[:2]) for _ in range(9)]
        refused = problem(api.post("/simulations", json={"candidate": SHORTEST}), 409)
        assert refused["limit"] == 10
        for simulation in asked[::-1]:
            api.delete(f"/simulations/{simulation}")


# ------------------------------------------------------------------------------------------------ its own history


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Person, Person, list[str]]]:
    """A server on which jobs have waited for each other; an operator, a scientist and the scientist's jobs."""
    with cli_server(tmp_path_factory.mktemp("whatif"), "--virtual-gpus", "2xA100-80G") as server:
        operator = operator_of(server)
        ann = scientist(server, operator, "ann")
        token = ann.read("token", "create", "test")["token"]
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=30) as api:
            # at once: a command line takes longer than they run
            made = [
                api.post(
                    f"{server.url}/api/v1/jobs",
                    json={"name": f"work-{number}", "gpus": 2, "command": ["sleep", "1.5"]},
                )
                for number in range(3)
            ]
        jobs = [str(answer.json()["id"]) for answer in made]
        for job in jobs:
            ann.wait_for(job, "completed")
        yield operator, ann, jobs


def test_history_is_replayed_and_compared_with_real_starts(
    lived: tuple[Person, Person, list[str]],
) -> None:
    operator, _, _ = lived
    found = operator.read("whatif", "--days", "1", "--scale", "4")
    result = found["result"]
    assert (found["state"], found["source"], result["jobs"]) == ("ready", "history", 3)
    fidelity = result["fidelity"]
    assert fidelity["jobs"] == 3
    # two of them waited, and the last for both others
    assert fidelity["real_wait_seconds"]["max"] > 2.5
    assert fidelity["replayed_wait_seconds"]["max"] > 2.5
    assert result["candidate"]["wait_seconds"]["mean"] < result["base"]["wait_seconds"]["mean"]
    # A day was asked for, and some seconds are known: idle time before the first job does not count.
    covered = [datetime.fromisoformat(found[key]).timestamp() for key in ("history_since", "until")]
    assert datetime.fromisoformat(found["since"]).timestamp() < covered[0]
    assert result["base"]["makespan_seconds"] < 3600
    assert result["base"]["utilization"] > 0.01
    begun = datetime.fromisoformat(result["base"]["course"]["times"][0]).timestamp()
    assert begun == pytest.approx(covered[0], abs=2)
    printed = operator.run("whatif", "show", found["id"])
    assert "The history of jobs begins" in printed.err
    shown = printed.out
    assert "Changed: fleet × 4" in shown
    assert "really they waited for" in shown
    assert "waiting mean" in shown
    assert "better" in shown
    assert found["id"] in operator.ok("whatif", "ls")
    again = operator.read("whatif", "again", found["id"])
    assert again["result"]["base"]["jobs"] == 3
    assert operator.read("whatif", "rm", found["id"], "-y") == {"deleted": [found["id"]]}
    assert operator.run("whatif", "show", found["id"]).code == 4


def test_all_policies_are_compared_with_a_recommendation(lived: tuple[Person, Person, list[str]]) -> None:
    operator, _, _ = lived
    found = operator.read("whatif", "--days", "1", "--all-policies")
    result = found["result"]
    assert found["words"]["candidate"] == "each policy in turn"
    assert {(row["policy"], row["preempts"]) for row in result["policies"]} >= {("fcfs", False), ("shortest", True)}
    assert [row["policy"] for row in result["policies"] if row["is_present"]] == ["fair-share"]
    assert all(row["jobs"] == result["base"]["jobs"] for row in result["policies"])
    shown = result["policies"][result["recommendation"]["shown"]]
    assert result["candidate"]["completion_seconds"]["mean"] == shown["completion_mean_seconds"]
    printed = operator.ok("whatif", "show", found["id"])
    assert result["recommendation"]["text"].split(":")[0] in printed
    assert "shortest, preempts" in printed
    assert "at present" in printed
    refused = operator.run("whatif", "--all-policies", "--policy", "fcfs")
    assert refused.code == 2
    assert "all policies are compared: leave out policy" in refused.err


def test_wrong_words_are_explained(lived: tuple[Person, Person, list[str]]) -> None:
    operator, ann, _ = lived
    for args, words in (
        ((), "a simulation needs a change"),
        (("--nodes", "2x8"), "adds no nodes"),
        (("--quota", "ann"), "is not NAME:VALUE"),
        (("--guarantee", "default:many"), "is not a whole number"),
        (("--days", "7", "--since", "3d", "--policy", "fcfs"), "not both"),
        (("--trace", "/nowhere.csv", "--policy", "fcfs"), "/nowhere.csv"),
    ):
        refused = operator.run("whatif", *args)
        assert refused.code == 2, args
        assert words in refused.err
    assert "no policy 'x'" in operator.run("whatif", "--policy", "x").err
    assert ann.run("whatif", "--policy", "fcfs").code == 3


def test_an_empty_window_fails_in_words(lived: tuple[Person, Person, list[str]]) -> None:
    operator, _, _ = lived
    window = ("--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z")
    refused = operator.run("whatif", *window, "--policy", "fcfs")
    assert refused.code == 1
    assert "no job of that time can be replayed" in refused.err


def test_why_a_job_waited_can_be_asked_afterwards(lived: tuple[Person, Person, list[str]]) -> None:
    operator, ann, jobs = lived
    last = ann.read("show", jobs[-1])
    waited_at = _before(last["started_at"], 0.6)
    then = ann.read("why", jobs[-1], "--at", waited_at)
    assert then["state"] == "queued"
    assert [reason["rule"] for reason in then["reasons"]][:1] == ["resources"]
    assert jobs[-2] in then["reasons"][0]["jobs"]
    assert then["at"] == waited_at
    assert then["cycle"]["at"] <= then["cycle"]["known_until"] <= waited_at
    assert then["cycle"]["words"].startswith(f"as of cycle {then['cycle']['id']} at ")
    shown = ann.ok("why", jobs[-1], "--at", waited_at)
    assert f"{jobs[-1]} was queued. What held it:" in shown
    running = ann.read("why", jobs[0], "--at", _before(ann.read("show", jobs[0])["ended_at"], 0.3))
    assert running["summary"] == "it did not wait then: it was running"
    assert ann.read("why", jobs[0], "--at", waited_at)["summary"].startswith("it did not wait then: it had ended")
    early = ann.run("why", jobs[-1], "--at", "2026-01-03 10:00")
    assert early.code == 4
    assert "the journal begins at" in early.err
    future = ann.run("why", jobs[0], "--at", "2999-01-01T00:00:00Z")
    assert future.code == 2
    assert "in the future" in future.err
    late = operator.submit("--name", "latecomer", "--gpus", "1", "--", "sleep", "0")
    unborn = operator.run("why", late, "--at", waited_at)
    assert unborn.code == 4
    assert "did not exist then" in unborn.err
    assert ann.run("why", late, "--at", waited_at).code == 4


def _before(moment: str, seconds: float) -> str:
    from corral.cli.terminal import formats as words

    assert time.time() > words.moment(moment)
    return words.rfc3339(words.moment(moment) - seconds)
