"""A new operator sets a house up: users, pools of different models, groups, packages, quotas. Everybody's jobs run on
the GPUs of their own pool only, and everything that must not be done is tried and refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import problem
from tests.integration.audit import assert_journal_replays, assert_no_gpu_given_twice, attempts_of
from tests.integration.cli_harness import operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

USERS = ("ann", "ben", "eve")
SLEEP = ["sleep", "600"]


class House:
    """The server with everybody in it, and the questions that the stories ask."""

    def __init__(self, server: CorralServer) -> None:
        self.server = server
        self.root = server.http()
        self.people = {"operator": self.root}

    def sign_in(self, user: str) -> None:
        self.server.token(user, f"password-of-{user}")
        self.people[user] = self.server.http(user)

    def ok(self, answer: httpx.Response, status: int = 200) -> Any:
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def gpus(self) -> dict[str, dict[str, Any]]:
        items = self.ok(self.root.get("/gpus", params={"limit": 500}))["items"]
        return {item["id"]: item for item in items}

    def gpus_in(self, pool: str) -> set[str]:
        return {gpu_id for gpu_id, gpu in self.gpus().items() if gpu["pool"] == pool}

    def of_model(self, model: str) -> list[str]:
        return sorted(gpu_id for gpu_id, gpu in self.gpus().items() if gpu["model"] == model)

    def submit(self, user: str, name: str, **body: Any) -> dict[str, Any]:
        answer = self.people[user].post("/jobs", json={"command": SLEEP, "gpus": 1, "name": name, **body})
        found: dict[str, Any] = self.ok(answer, 201)
        return found

    def job(self, user: str, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ok(self.people[user].get(f"/jobs/{job_id}"))
        return found

    def wait_for(self, user: str, job_id: str, state: str) -> dict[str, Any]:
        wait_until(lambda: self.job(user, job_id)["state"] == state, f"{job_id} of {user} is {state}")
        return self.job(user, job_id)

    def runs(self, user: str, name: str, **body: Any) -> tuple[str, set[str]]:
        """A job of this user that runs: its id, and the GPUs that it holds."""
        job = self.wait_for(user, self.submit(user, name, **body)["id"], "running")
        return job["id"], {gpu for grant in job["allocation"]["grants"] for gpu in grant["gpus"]}

    def stop(self, user: str, *job_ids: str) -> None:
        for job_id in job_ids:
            self.ok(self.people[user].post(f"/jobs/{job_id}/stop"))
            self.wait_for(user, job_id, "stopped")

    def rules(self, user: str, job_id: str) -> list[str]:
        return [reason["rule"] for reason in self.ok(self.people[user].get(f"/jobs/{job_id}/why"))["reasons"]]

    def edit_group(self, name: str, **changes: Any) -> None:
        self.ok(self.root.patch(f"/groups/{name}", json=changes))

    def everything(self) -> list[Any]:
        """The state that a refused request must not change."""
        return [
            self.ok(self.root.get(path, params={"limit": 500}))["items"]
            for path in ("/pools", "/groups", "/users", "/queues", "/packages", "/quotas")
        ]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    home: Path = tmp_path_factory.mktemp("people") / "home"
    server = CorralServer(home, "--virtual-nodes", "2x4xA10,2x4xA100-80G")
    server.start()
    made = House(server)
    try:
        use_it_alone(made)
        on_board(made)
        yield made
        live = made.ok(made.root.get("/jobs", params={"state": ["queued", "running", "starting"], "limit": 500}))
        for job in live["items"]:
            made.root.post(f"/jobs/{job['id']}/stop")
        wait_until(
            lambda: not made.ok(made.root.get("/jobs", params={"state": ["running", "stopping"]}))["items"],
            "nothing runs",
        )
    finally:
        server.kill()


def use_it_alone(house: House) -> None:
    """A single operator needs no administration: one group, one pool, every GPU."""
    (pool,) = house.ok(house.root.get("/pools"))["items"]
    assert (pool["name"], pool["group"], pool["gpus_total"], pool["queues"]) == ("default", "default", 16, ["default"])
    assert pool["model"] is None
    (group,) = house.ok(house.root.get("/groups"))["items"]
    assert (group["name"], group["pool"], group["users"]) == ("default", "default", ["operator"])
    me = house.ok(house.root.get("/me"))
    assert (me["role"], me["group"], me["pool"]) == ("operator", "default", "default")
    for model in ("A10", "A100-80G"):
        job_id, gpus = house.runs("operator", f"alone-{model}", gpus=4, model=model)
        assert gpus <= set(house.of_model(model))
        house.stop("operator", job_id)


def on_board(house: House) -> None:
    """Pools first, then users without a group, then groups: the order that spares an operator steps."""
    a10, a100 = house.of_model("A10"), house.of_model("A100-80G")
    small = house.ok(house.root.post("/pools", json={"name": "small", "description": "for trying", "gpus": a10}), 201)
    assert (small["model"], small["gpus_total"], small["group"]) == ("A10", 8, None)
    house.ok(house.root.post("/pools", json={"name": "big"}), 201)
    big = house.ok(house.root.post("/pools/big/gpus", json={"gpus": a100[:4]}))
    assert (big["model"], big["gpus_free"]) == ("A100-80G", 4)
    assert house.gpus_in("default") == set(a100[4:]), "assigning a GPU takes it out of default"

    for name, group in (("ann", None), ("ben", None), ("eve", "default")):
        body = {"name": name, "password": f"password-of-{name}", "group": group}
        user = house.ok(house.root.post("/users", json=body), 201)
        assert (user["role"], user["group"]) == ("scientist", group)
        house.sign_in(name)
    house.ok(house.root.post("/groups", json={"name": "vision", "users": ["ann"], "pool": "small"}), 201)
    house.ok(house.root.post("/groups", json={"name": "language"}), 201)
    house.edit_group("language", add_users=["ben"], pool="big")
    assert house.ok(house.people["ben"].get("/me"))["pool"] == "big"

    for name, model in (("a10", "A10"), ("a100", "A100-80G")):
        house.ok(house.root.post("/flavors", json={"name": name, "models": [model]}), 201)
        package = {"name": f"one-{name}", "gpus": 1, "cpus": 1, "flavor": name, "kinds": ["training"]}
        house.ok(house.root.post("/packages", json=package), 201)
    house.ok(house.root.put("/users/ann/quota", json={"training": {"gpus": 6}, "workbench": {"gpus": 1}}))


# ------------------------------------------------------------------------------------------------ who runs where


def test_everybodys_jobs_run_on_the_gpus_of_their_own_pool_only(house: House) -> None:
    pools = {"ann": "small", "ben": "big", "eve": "default"}
    started: dict[str, list[str]] = {user: [] for user in USERS}
    for number in range(4):
        for user, pool in pools.items():
            job = house.submit(user, f"spread-{number}", command=["sleep", "0.05"])
            assert job["queue"] == pool, "without a word the job goes to the queue of the user's pool"
            started[user].append(job["id"])
    owner = {job_id: user for user, ids in started.items() for job_id in ids}
    for job_id, user in owner.items():
        house.wait_for(user, job_id, "completed")
    allowed = {user: house.gpus_in(pool) for user, pool in pools.items()}
    attempts = [attempt for attempt in attempts_of(house.server.home) if attempt.job_id in owner]
    assert len(attempts) == len(owner)
    for attempt in attempts:
        assert set(attempt.allocation.gpus) <= allowed[owner[attempt.job_id]]
    assert_no_gpu_given_twice(attempts_of(house.server.home))
    assert assert_journal_replays(house.server.home) > 0


def test_a_full_pool_does_not_spill_into_another(house: House) -> None:
    held, gpus = house.runs("ben", "fills-big", gpus=4)
    assert gpus == house.gpus_in("big")
    waiting = house.submit("ben", "waits-for-big")["id"]
    wait_until(lambda: house.rules("ben", waiting) == ["resources"], "it waits for room in its own pool")
    assert {pool["name"]: pool["gpus_free"] for pool in house.ok(house.root.get("/pools"))["items"]} == {
        "default": 4,
        "small": 8,
        "big": 0,
    }
    house.stop("ben", held)
    house.wait_for("ben", waiting, "running")
    house.stop("ben", waiting)


@pytest.mark.parametrize(("user", "queue", "model"), [("ann", "big", "A100-80G"), ("eve", "small", "A10")])
def test_no_job_gets_into_another_pool(house: House, user: str, queue: str, model: str) -> None:
    ask = house.people[user]
    wrong_queue = problem(ask.post("/jobs", json={"command": SLEEP, "gpus": 1, "queue": queue}), 422)
    assert wrong_queue["errors"][0]["field"] == "queue"
    assert wrong_queue["known"] == [{"ann": "small", "eve": "default"}[user]]
    wrong_model = problem(ask.post("/jobs", json={"command": SLEEP, "gpus": 1, "model": model}), 422)
    assert wrong_model["errors"][0]["field"] == "model"
    plan = house.ok(ask.post("/jobs:plan", json={"command": SLEEP, "gpus": 1, "queue": queue}))
    assert plan["outcome"] == "refuse"


def test_packages_show_what_the_own_pool_has_and_quotas_hold(house: House) -> None:
    offers = {
        user: [
            item["name"] for item in house.ok(house.people[user].get("/packages", params={"kind": "training"}))["items"]
        ]
        for user in USERS
    }
    assert offers == {"ann": ["one-a10"], "ben": ["one-a100"], "eve": ["one-a100"]}
    body = {"command": SLEEP, "name": "packed", "package": "one-a10"}
    job = house.ok(house.people["ann"].post("/jobs", json=body), 201)
    packed = house.wait_for("ann", job["id"], "running")
    assert (packed["package"], packed["gpus"], packed["queue"]) == ("one-a10", 1, "small")
    quota = house.ok(house.people["ann"].get("/me/quota"))["kinds"]["training"]
    assert quota["gpus"] == {"limit": 6, "held": 1, "asked": 0}
    house.ok(house.root.put("/users/ann/quota", json={"training": {"gpus": 4}}))
    refused = problem(house.people["ann"].post("/jobs", json={"command": SLEEP, "gpus": 4}), 409)
    assert refused["type"] == "/problems/insufficient-quota"
    assert (refused["asked"], refused["held"], refused["limit"]) == (4, 1, 4)
    house.stop("ann", job["id"])


def test_short_and_heavy_work_finds_its_own_queue(house: House) -> None:
    for queue in (
        {"name": "small-quick", "pool": "small", "max_seconds": "1h", "max_job_gpus": 1},
        {"name": "small-heavy", "pool": "small", "min_job_gpus": 4},
        {"name": "big-lent", "pool": "big", "groups": ["vision"], "max_gpus": 1},
    ):
        house.ok(house.root.post("/queues", json=queue), 201)
    try:
        for name, body, queue_name in (
            ("quick-one", {"gpus": 1, "time": "10m"}, "small-quick"),
            ("long-one", {"gpus": 1, "time": "2h"}, "small"),
            ("heavy-one", {"gpus": 4}, "small-heavy"),
            ("lent-one", {"gpus": 1, "queue": "big-lent"}, "big-lent"),
        ):
            job = house.submit("ann", name, hold=True, **body)
            assert job["queue"] == queue_name, name
            house.ok(house.people["ann"].delete(f"/jobs/{job['id']}"), 204)
        job_id, gpus = house.runs("ann", "borrows", queue="big-lent")
        assert gpus <= house.gpus_in("big")
        house.stop("ann", job_id)
        problem(house.people["eve"].post("/jobs", json={"command": SLEEP, "queue": "big-lent"}), 422)
    finally:
        for name in ("small-quick", "small-heavy", "big-lent"):
            house.ok(house.root.delete(f"/queues/{name}"), 204)


# ------------------------------------------------------------------------------------------------ what waits stays


def test_waiting_jobs_outlive_every_change_and_run_when_the_cause_is_gone(house: House) -> None:
    held, _ = house.runs("ben", "holds-big", gpus=4)
    waiting = house.submit("ben", "outlives")["id"]

    def waits_for(rule: str) -> None:
        wait_until(lambda: house.rules("ben", waiting)[:1] == [rule], f"{waiting} waits for {rule}")
        assert house.job("ben", waiting)["state"] == "queued"

    waits_for("resources")
    house.edit_group("language", pool=None)
    waits_for("membership")
    assert house.job("ben", held)["state"] == "running", "what runs goes on"
    house.stop("ben", held)
    house.ok(house.root.delete("/pools/big"), 204)
    waits_for("queue-missing")
    a100 = house.of_model("A100-80G")
    assert house.gpus_in("default") == set(a100)

    house.ok(house.root.post("/pools", json={"name": "big"}), 201)
    waits_for("membership")
    house.edit_group("language", pool="big")
    waits_for("impossible")
    house.edit_group("language", remove_users=["ben"])
    waits_for("membership")
    problem(house.people["ben"].post("/jobs", json={"command": SLEEP}), 409)
    house.edit_group("vision", add_users=["ben"])
    waits_for("membership")
    moved = house.ok(house.people["ben"].patch(f"/jobs/{waiting}", json={"queue": "small", "priority": 1}))
    assert (moved["queue"], moved["priority"]) == ("small", 1)
    assert house.wait_for("ben", waiting, "running")["allocation"]["model"] == "A10"
    house.stop("ben", waiting)

    house.edit_group("vision", remove_users=["ben"])
    house.edit_group("language", add_users=["ben"])
    house.ok(house.root.post("/pools/big/gpus", json={"gpus": a100[:4]}))
    again = house.ok(house.people["ben"].post(f"/jobs/{waiting}/start"))
    assert again["queue"] == "big", "a started job goes where its user belongs now"
    assert house.wait_for("ben", waiting, "running")["allocation"]["model"] == "A100-80G"
    house.stop("ben", waiting)


# ------------------------------------------------------------------------------------------------ what 002 forbids


def test_every_refusal_of_the_notes_is_a_refusal(house: House) -> None:
    job_id, (gpu,) = house.runs("ann", "in-the-way")
    free = sorted(house.gpus_in("small") - {gpu})[0]
    other = house.of_model("A100-80G")[-1]
    root = house.root
    before = house.everything()
    refusals = [
        # only a single type of GPU can be assigned to a pool
        (root.post("/pools", json={"name": "mixed", "gpus": [free, other]}), 422, "one"),
        (root.post("/pools/big/gpus", json={"gpus": [free]}), 422, "models"),
        (root.patch("/pools/small", json={"gpus": [gpu, other]}), 422, "models"),
        # a GPU with a running job cannot be moved, a pool with one cannot be deleted, and the job is named
        (root.post("/pools/default/gpus", json={"gpus": [free, gpu]}), 409, f"GPU {gpu} has job {job_id}"),
        (root.patch("/pools/small", json={"gpus": [free]}), 409, job_id),
        (root.post("/pools", json={"name": "fresh", "gpus": [gpu]}), 409, job_id),
        (root.delete("/pools/small"), 409, "vision"),
        (root.delete("/pools/default"), 409, "default"),
        (root.post("/pools/big/gpus", json={"gpus": ["no-such-gpu"]}), 422, "no-such-gpu"),
        (root.post("/pools", json={"name": "small"}), 409, "small"),
        # only free users, and only a pool that no group has
        (root.post("/groups", json={"name": "third", "users": ["ann"]}), 409, "ann is in group vision"),
        (root.patch("/groups/vision", json={"add_users": ["eve"]}), 409, "eve is in group default"),
        (root.post("/groups", json={"name": "third", "pool": "big"}), 409, "language"),
        (root.patch("/groups/vision", json={"pool": "default"}), 409, "default"),
        (root.patch("/groups/vision", json={"remove_users": ["ben"]}), 422, "ben"),
        # a group with users or a pool cannot be deleted
        (root.delete("/groups/vision"), 409, "ann"),
        (root.delete("/groups/default"), 409, "default"),
        # a user with an active job cannot be deleted, nor can the last operator go or step down
        (root.delete("/users/ann"), 409, job_id),
        (root.delete("/users/operator"), 409, "last operator"),
        (root.patch("/users/operator", json={"role": "scientist"}), 409, "last operator"),
        (root.post("/users", json={"name": "zoe", "group": "nowhere"}), 422, "nowhere"),
        # the group is changed by editing the group only
        (root.patch("/users/ann", json={"group": "default"}), 422, "group"),
    ]
    for answer, status, words in refusals:
        found = problem(answer, status)
        assert words in found["detail"], f"{answer.request.method} {answer.request.url}: {found['detail']}"
    assert house.everything() == before, "a refusal leaves everything as it was"
    assert house.job("ann", job_id)["state"] == "running"

    # detached and without its group the pool still has a running job
    house.edit_group("vision", pool=None)
    assert job_id in problem(root.delete("/pools/small"), 409)["detail"]
    assert problem(root.delete("/groups/vision"), 409)["users"] == ["ann"]
    house.edit_group("vision", pool="small")
    house.stop("ann", job_id)


def test_a_scientist_administers_nothing(house: House) -> None:
    ann = house.people["ann"]
    before = house.everything()
    for answer in (
        ann.post("/pools", json={"name": "mine"}),
        ann.patch("/pools/small", json={"description": "mine"}),
        ann.post("/pools/small/gpus", json={"gpus": house.of_model("A10")}),
        ann.delete("/pools/small"),
        ann.get("/groups"),
        ann.get("/groups/vision"),
        ann.post("/groups", json={"name": "mine"}),
        ann.patch("/groups/vision", json={"add_users": ["eve"]}),
        ann.delete("/groups/vision"),
        ann.post("/queues", json={"name": "mine"}),
        ann.get("/users"),
    ):
        problem(answer, 403)
    assert house.everything() == before
    shown = house.ok(ann.get("/pools/small"))
    assert (shown["group"], len(shown["gpus"])) == ("vision", 8)
    waiting = house.submit("ben", "not-anns", hold=True)["id"]
    problem(ann.patch(f"/jobs/{waiting}", json={"priority": 0}), 404)
    house.ok(house.people["ben"].delete(f"/jobs/{waiting}"), 204)


def test_roles_go_up_and_down_and_an_empty_user_is_deleted(house: House) -> None:
    root = house.root
    house.ok(root.post("/users", json={"name": "zoe", "password": "password-of-zoe", "group": None}), 201)
    house.sign_in("zoe")
    assert "no group" in problem(house.people["zoe"].post("/jobs", json={"command": SLEEP}), 409)["detail"]
    assert house.ok(root.patch("/users/zoe", json={"role": "operator"}))["role"] == "operator"
    house.ok(house.people["zoe"].get("/groups"))
    assert house.ok(root.patch("/users/zoe", json={"role": "scientist"}))["role"] == "scientist"
    problem(house.people["zoe"].get("/groups"), 403)
    house.ok(root.delete("/users/zoe"), 204)
    problem(root.get("/users/zoe"), 404)


# ------------------------------------------------------------------------------------------------ restart, command line


def test_the_command_line_does_the_same(house: House) -> None:
    operator = operator_of(house.server)
    gpu = sorted(house.gpus_in("default"))[0]
    assert "Created pool spare with 1 GPU" in operator.ok("pool", "create", "spare", "--gpu", gpu)
    assert "spare" in operator.ok("pool", "ls")
    assert gpu in operator.ok("pool", "show", "spare")
    operator.ok("pool", "edit", "spare", "--empty", "--description", "nothing in it")
    node = house.gpus()[gpu]["node"]
    assert "has 4 GPUs now" in operator.ok("pool", "move-gpus", "spare", "--node", node)
    assert operator.run("pool", "move-gpus", "spare", "--node", "nowhere").code == 2
    operator.ok("pool", "move-gpus", "default", gpu)
    job = house.ok(house.root.post("/jobs", json={"command": SLEEP, "gpus": 1, "queue": "default"}), 201)["id"]
    wait_until(lambda: house.root.get(f"/jobs/{job}").json()["state"] == "running", "the job runs")
    assert f"GPU {gpu} has job {job}" in operator.run("pool", "move-gpus", "spare", gpu).err
    assert f"1 GPU will follow when free: {gpu}" in operator.ok("pool", "move-gpus", "spare", gpu, "--when-free")
    assert "spare, when free" in operator.ok("pool", "show", "default")
    assert "default, moves to spare when free" in operator.ok("gpus", "show", gpu)
    house.root.post(f"/jobs/{job}/stop")
    wait_until(lambda: gpu in house.gpus_in("spare"), "the GPU has moved")
    operator.ok("group", "create", "guests", "--pool", "spare")
    operator.ok("user", "create", "yan", "--group", "none", "--no-password")
    assert {user["name"]: user["group"] for user in operator.read("user", "ls")["items"]}["yan"] is None
    operator.ok("user", "rm", "-y", "yan")
    assert "has pool spare" in operator.run("group", "rm", "-y", "guests", code=1).err
    operator.ok("group", "edit", "default", "--remove", "eve")
    assert "users eve; pool spare" in operator.ok("group", "edit", "guests", "--add", "eve")
    assert "guests" in operator.ok("group", "ls")
    operator.ok("group", "edit", "guests", "--remove", "eve", "--pool", "none")
    operator.ok("group", "edit", "default", "--add", "eve")
    assert "none" in operator.ok("group", "show", "guests")
    operator.ok("group", "rm", "-y", "guests")
    operator.ok("pool", "rm", "-y", "spare")
    assert gpu in house.gpus_in("default")

    job = operator.submit("--hold", "--", "true")
    assert "priority 3, 10m" in operator.ok("edit", job, "--priority", "3", "--time", "10m")
    assert operator.run("edit", job, "--queue", "big").code == 2
    assert operator.run("edit", job).code == 2
    operator.ok("edit", job, "--queue", "auto", "--time", "none")
    operator.ok("rm", "-y", job)


def without_counts(state: list[Any]) -> list[Any]:
    """Without what moves by itself: who has just used what."""
    moving = {"last_seen_at", "running", "queued", "held_gpus", "gpus_free", "gpus_allocated", "active_jobs"}
    return [[{key: value for key, value in item.items() if key not in moving} for item in items] for items in state]


def test_a_restart_changes_nothing(house: House) -> None:
    before, gpus = house.everything(), {gpu_id: gpu["pool"] for gpu_id, gpu in house.gpus().items()}
    running, _ = house.runs("ben", "over-restart")
    house.server.kill()
    house.server.start()
    assert {gpu_id: gpu["pool"] for gpu_id, gpu in house.gpus().items()} == gpus
    assert house.job("ben", running)["state"] == "running"
    house.stop("ben", running)
    assert without_counts(house.everything()) == without_counts(before)
    _, gpus_of_eve = house.runs("eve", "after-restart")
    assert gpus_of_eve <= house.gpus_in("default")
