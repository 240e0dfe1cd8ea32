"""Jobs over the wire, with real processes on virtual GPUs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as running:
        yield running


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client
        # Leave the fleet empty for the next story.
        for state in ("queued", "starting", "running"):
            for job in client.get("/jobs", params={"state": state, "limit": 500}).json()["items"]:
                client.post(f"/jobs/{job['id']}/stop")
        wait_until(lambda: client.get("/overview").json()["gpus_free"] == 4, "all GPUs are free again")


def submit(http: httpx.Client, *command: str, **fields: Any) -> dict[str, Any]:
    answer = http.post("/jobs", json={"command": list(command), "grace": 1, **fields})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def wait_state(http: httpx.Client, job: str, *states: str) -> dict[str, Any]:
    wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] in states, f"{job} is {' or '.join(states)}")
    body: dict[str, Any] = http.get(f"/jobs/{job}").json()
    return body


def follow(http: httpx.Client, job: str, **params: Any) -> list[tuple[str, Any]]:
    """The whole followed log as events."""
    events, name = [], ""
    with http.stream("GET", f"/jobs/{job}/logs", params={"follow": "true", **params}, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                events.append((name, json.loads(line.removeprefix("data: "))))
    return events


def test_a_job_runs_on_its_gpus_and_shows_everything_about_itself(http: httpx.Client) -> None:
    job = submit(
        http,
        "bash",
        "-c",
        "echo gpus=$CUDA_VISIBLE_DEVICES word=$WORD",
        gpus=2,
        cpus=0.5,
        memory="16MiB",
        time="2h",
        name="first-job",
        env={"WORD": "hello"},
        priority=3,
    )
    assert (job["gpus"], job["cpus"], job["memory_bytes"], job["time_limit_seconds"]) == (2, 0.5, 16 * 2**20, 7200)
    done = wait_state(http, job["id"], "completed", "failed")
    assert (done["state"], done["exit_code"], done["attempt_id"]) == ("completed", 0, f"{job['id']}.1")
    assert done["created_at"] <= done["started_at"] <= done["ended_at"]
    assert http.get(f"/jobs/{job['id']}/logs").text == "gpus=0,1 word=hello\n"
    assert http.get("/jobs/first-job").json()["id"] == job["id"]
    [attempt] = http.get(f"/jobs/{job['id']}/attempts").json()["items"]
    assert attempt["allocation"]["model"] == "A100-80G"
    assert [len(grant["gpus"]) for grant in attempt["allocation"]["grants"]] == [2]
    assert http.get(f"/jobs/{job['id']}/why").json()["summary"].startswith("it does not wait")


def test_a_log_is_followed_from_before_the_start_to_the_end(server: CorralServer, http: httpx.Client) -> None:
    blocker = submit(http, "sleep", "60", gpus=4)
    job = submit(http, "bash", "-c", "echo eins; sleep 0.3; echo zwöi; exit 3", gpus=1)
    heard: list[tuple[str, Any]] = []
    with server.http() as other:
        listener = threading.Thread(target=lambda: heard.extend(follow(other, job["id"])))
        listener.start()
        http.post(f"/jobs/{blocker['id']}/stop").raise_for_status()
        listener.join(30)
    assert "".join(data["text"] for name, data in heard if name == "log") == "eins\nzwöi\n"
    assert heard[-1] == ("end", {"state": "failed", "exit_code": 3})
    assert follow(http, job["id"], tail=1) == [("log", {"text": "zwöi\n"}), heard[-1]]


def test_the_last_lines_of_a_long_log(http: httpx.Client) -> None:
    job = submit(http, "seq", "1", "50000")
    wait_state(http, job["id"], "completed")
    path = f"/jobs/{job['id']}/logs"
    assert http.get(path, params={"tail": 3}).text == "49998\n49999\n50000\n"
    assert http.get(path, params={"tail": 0}).text == ""
    assert http.get(path).text.splitlines() == [str(n) for n in range(1, 50001)]
    assert len(http.get(path, params={"tail": 40000}).text.splitlines()) == 40000


def test_pages_show_every_job_once_whatever_the_order(http: httpx.Client) -> None:
    batch = {
        "jobs": [{"command": ["true"], "hold": True, "name": f"page-{n:02d}", "priority": n % 3} for n in range(25)]
    }
    made = [job["id"] for job in http.post("/jobs:batch", json=batch).json()["items"]]
    assert len(made) == 25
    for sort in ("id", "-id", "name", "-name", "priority", "-priority", "created_at", "-created_at"):
        seen: list[dict[str, Any]] = []
        cursor = None
        while True:
            params = {"name": "page-", "sort": sort, "limit": 7} | ({"cursor": cursor} if cursor else {})
            page = http.get("/jobs", params=params).json()
            seen += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert sorted(job["id"] for job in seen) == sorted(made)
        if sort.endswith(("name", "priority")):
            values = [job[sort.removeprefix("-")] for job in seen]
            assert values == sorted(values, reverse=sort.startswith("-"))
    both = http.get("/jobs", params={"state": ["created", "running"], "kind": "training", "limit": 500}).json()["items"]
    assert set(made) <= {job["id"] for job in both}
    assert http.get("/jobs", params={"user": "nobody"}).json() == {"items": [], "next_cursor": None}


def test_jobs_of_other_users_are_not_found(server: CorralServer, http: httpx.Client) -> None:
    with server.http("ann") as ann, server.http("bob") as bob:
        job = submit(ann, "bash", "-c", "sleep 60", "--key=secret", env={"KEY": "secret"}, name="private-job")
        for path in ("", "/why"):
            problem(bob.get(f"/jobs/{job['id']}{path}"), 404)
        assert bob.get("/jobs", params={"user": "ann"}).json()["items"] == []
        assert http.get(f"/jobs/{job['id']}").json()["env"] == {"KEY": "secret"}
        problem(bob.get("/jobs/private-job"), 404)
        for path in ("logs", "attempts"):
            problem(bob.get(f"/jobs/{job['id']}/{path}"), 404)
        problem(bob.post(f"/jobs/{job['id']}/stop"), 404)
        problem(bob.delete(f"/jobs/{job['id']}"), 404)
        assert ann.get(f"/jobs/{job['id']}").json()["state"] in ("queued", "starting", "running")
        assert http.post(f"/jobs/{job['id']}/stop").status_code == 200
        assert wait_state(ann, job["id"], "stopped")["end_reason"] == "stopped_by_operator"


def test_a_waiting_job_says_why_and_a_dry_run_says_what_would_happen(http: httpx.Client) -> None:
    plan = http.post("/jobs:plan", json={"command": ["true"], "gpus": 4}).json()
    assert (plan["outcome"], len(plan["nodes"])) == ("start", 1)
    first = submit(http, "sleep", "60", gpus=4, time="1h")
    wait_state(http, first["id"], "running")
    second = submit(http, "true", gpus=2)
    third = submit(http, "true", gpus=3)
    why = http.get(f"/jobs/{third['id']}/why").json()
    assert (why["state"], why["position"], why["ahead_count"]) == ("queued", 2, 1)
    assert [job["id"] for job in why["ahead"]] == [second["id"]]
    assert why["reasons"]
    assert all(reason["detail"] for reason in why["reasons"])
    assert http.get(f"/jobs/{second['id']}/why").json()["planned_start"] is not None
    plan = http.post("/jobs:plan", json={"command": ["true"], "gpus": 1}).json()
    assert (plan["outcome"], plan["ahead_count"]) == ("wait", 2)
    plan = http.post("/jobs:plan", json={"command": ["true"], "gpus": 40}).json()
    assert plan["outcome"] == "refuse"
    assert len(http.get("/jobs", params={"state": "queued"}).json()["items"]) == 2


def test_the_order_of_a_queue_can_be_seen_moved_and_pinned(server: CorralServer, http: httpx.Client) -> None:
    blocker = submit(http, "sleep", "60", gpus=4)
    jobs = [submit(http, "true", gpus=1)["id"] for _ in range(3)]

    def order() -> list[str]:
        lines = http.get("/queues/default/order").json()["lines"]
        return [job["id"] for line in lines for job in line["jobs"]]

    assert order() == jobs
    assert http.post(f"/jobs/{jobs[2]}/move", json={"before": jobs[0]}).status_code == 200
    assert order() == [jobs[2], jobs[0], jobs[1]]
    assert http.post(f"/jobs/{jobs[1]}/pin").json()["pinned_at"] is not None
    assert order() == [jobs[1], jobs[2], jobs[0]]
    with server.http("ann") as ann:
        problem(ann.post(f"/jobs/{jobs[0]}/pin"), 403)
    assert http.post(f"/jobs/{jobs[1]}/unpin").json()["pinned_at"] is None
    assert order() == [jobs[2], jobs[0], jobs[1]]
    view = http.get("/queues/default").json()
    assert (view["running"], view["queued"], view["held_gpus"]) == (1, 3, 4)
    http.post(f"/jobs/{blocker['id']}/stop").raise_for_status()
    for job in jobs:
        wait_state(http, job, "completed")


def test_over_quota_is_refused_with_the_numbers(server: CorralServer, http: httpx.Client) -> None:
    quota = http.put("/users/bob/quota", json={"training": {"gpus": 2}}).json()
    assert quota["kinds"]["training"]["gpus"] == {"limit": 2, "held": 0, "asked": 0}
    assert quota["kinds"]["training"]["cpus"] == {"limit": None, "held": 0, "asked": 0}
    with server.http("bob") as bob:
        job = submit(bob, "sleep", "60", gpus=1)
        reported = problem(bob.post("/jobs", json={"command": ["true"], "gpus": 2}), 409)
        assert reported["type"] == "/problems/insufficient-quota"
        assert (reported["asked"], reported["held"], reported["limit"]) == (2, 1, 2)
        assert bob.get("/me").json()["quota"]["training"]["gpus"] == 2
        bob.post(f"/jobs/{job['id']}/stop").raise_for_status()
        wait_state(bob, job["id"], "stopped")
        assert bob.delete(f"/jobs/{job['id']}").status_code == 204
        problem(bob.get(f"/jobs/{job['id']}"), 404)
    assert http.put("/users/bob/quota", json={}).json()["kinds"]["training"]["gpus"]["limit"] is None


def test_a_held_job_waits_for_its_start_and_an_ended_one_can_run_again(http: httpx.Client) -> None:
    job = submit(http, "true", hold=True)
    assert job["state"] == "created"
    assert http.post(f"/jobs/{job['id']}/start").json()["state"] == "starting"
    assert wait_state(http, job["id"], "completed")["attempt"] == 1
    http.post(f"/jobs/{job['id']}/start").raise_for_status()
    wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["attempt"] == 2, "the second attempt")
    wait_state(http, job["id"], "completed")
    running = submit(http, "sleep", "60")
    reported = problem(http.delete(f"/jobs/{running['id']}"), 409)
    assert "stop it first" in reported["detail"]


def test_queues_are_made_changed_and_removed(http: httpx.Client) -> None:
    made = http.post("/queues", json={"name": "two words", "policy": "fcfs"})
    problem(made, 422)
    body = {"name": "nights", "policy": "fcfs", "max_seconds": "8h", "kinds": ["training"], "max_job_gpus": 2}
    made = http.post("/queues", json=body)
    assert (made.status_code, made.json()["max_seconds"], made.json()["kinds"]) == (201, 28800, ["training"])
    assert made.json()["placement"] == "fragmentation"
    changed = http.patch("/queues/nights", json={"max_job_gpus": None, "blocking": "strict"}).json()
    assert (changed["max_job_gpus"], changed["blocking"], changed["policy"]) == (None, "strict", "fcfs")
    assert [queue["name"] for queue in http.get("/queues").json()["items"]] == ["default", "nights"]
    assert http.delete("/queues/nights").status_code == 204
    problem(http.get("/queues/nights"), 404)


def test_a_task_holds_gpus_gets_a_program_and_gives_them_back(http: httpx.Client) -> None:
    task = http.post("/tasks", json={"task": "exp_1", "gpus": 2}).json()
    assert task["job"]["name"] == "task_exp_1"
    wait_state(http, task["job"]["id"], "running")
    assert [entry["task"] for entry in http.get("/tasks").json()["items"]] == ["exp_1"]
    program = {"command": ["bash", "-c", "echo running on $CUDA_VISIBLE_DEVICES; sleep 60"]}
    assert http.post("/tasks/exp_1/program", json=program).status_code == 200
    problem(http.post("/tasks/exp_1/program", json=program), 409)
    wait_until(lambda: "running on 0,1" in http.get("/jobs/task_exp_1/logs").text, "the program runs")
    assert http.delete("/tasks/exp_1").json()["state"] in ("stopping", "stopped")
    wait_state(http, task["job"]["id"], "stopped")
    for name in ("auto", "too"):
        assert http.post("/tasks", json={"task": name}).json()["job"]["gpus"] == 1
    reported = problem(http.post("/tasks", json={"task": "more"}), 409)
    assert (reported["asked"], reported["held"], reported["limit"]) == (1, 2, 2)
    for name in ("auto", "too"):
        http.delete(f"/tasks/{name}").raise_for_status()
