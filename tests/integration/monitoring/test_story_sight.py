"""A bad day for 44 GPUs: one overheats, one dies, a job hangs, a node is lost; everything else goes on.

Each fault is found, the operator gets one mail when it begins and one when it is over, and the jobs go on elsewhere
from where they were.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.smtp import SmtpServer

#: The suspicion of an idle GPU after three seconds, not half an hour; the rest follows from readings twice a second.
CONFIG = """
monitoring:
  interval_seconds: 0.5
  health: {confirm_readings: 3, idle_grace_minutes: 0.05, idle_fail_minutes: 0.1, recover_minutes: 0.05}
notification:
  channels: ["%s"]
"""
#: Alerts as quick as the readings. An idle GPU is reported after three seconds.
QUICK_RULES = {
    "gpu-temperature": {"for_seconds": 1, "clear_seconds": 1},
    "gpu-failed": {"for_seconds": 0, "clear_seconds": 1},
    "node-lost": {"for_seconds": 0, "clear_seconds": 1},
    "gpu-idle": {"threshold": 0.05, "for_seconds": 0, "clear_seconds": 1},
    # a failed GPU is suspect too: not reported twice, however slow this machine is
    "gpu-suspect": {"for_seconds": 3600},
}
#: A training that saves its step, goes on from the step that it finds, and writes down every beginning.
TRAINING = """
import json, os, pathlib, time
place = pathlib.Path(os.environ["CORRAL_CHECKPOINT_DIR"])
saved = place / "step"
step = int(saved.read_text()) if saved.exists() else 0
with (place / "begun").open("a") as begun:
    begun.write(json.dumps({"attempt": int(os.environ["CORRAL_ATTEMPT"]), "step": step, "pid": os.getpid()}) + "\\n")
while True:
    time.sleep(0.05)
    step += 1
    (place / "draft").write_text(str(step))
    os.replace(place / "draft", saved)
"""


@dataclass(kw_only=True)
class Training:
    """A job, and what it has left on the disk."""

    http: httpx.Client
    id: str
    place: Path

    @property
    def view(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/jobs/{self.id}").json()
        return found

    @property
    def gpus(self) -> list[str]:
        return [gpu for grant in self.view["allocation"]["grants"] for gpu in grant["gpus"]]

    @property
    def nodes(self) -> list[str]:
        return [grant["node"] for grant in self.view["allocation"]["grants"]]

    @property
    def step(self) -> int:
        try:
            return int((self.place / "step").read_text())
        except FileNotFoundError:
            return 0

    @property
    def begun(self) -> list[dict[str, int]]:
        return [json.loads(line) for line in (self.place / "begun").read_text().splitlines()]

    def runs(self, attempt: int) -> bool:
        view = self.view
        return view["state"] == "running" and view["attempt"] == attempt


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        yield server


@pytest.fixture
def server(smtp: SmtpServer, tmp_path: Path) -> Iterator[CorralServer]:
    config = tmp_path / "corral.yaml"
    config.write_text(CONFIG % smtp.url)
    made = CorralServer(
        tmp_path / "home",
        *("--virtual-nodes", "6x4xA10,5x4xA100-80G", "--config", str(config)),
        program=(str(Path(__file__).parent.with_name("repeated_alerts_server.py")),),
    )
    try:
        made.start()
        yield made
    finally:
        made.kill()


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture
def drill(server: CorralServer) -> Person:
    """Someone at a shell on the server's machine."""
    return Person(server=server.url, home=server.home)


def train(server: CorralServer, http: httpx.Client, name: str, *, gpus: int, model: str) -> Training:
    body = {"name": name, "command": [sys.executable, "-c", TRAINING], "gpus": gpus, "model": model, "grace": 1}
    answer = http.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text
    job_id = answer.json()["id"]
    shard = f"{int(job_id.removeprefix('j-')) // 1000:06d}"
    return Training(http=http, id=job_id, place=server.home / "jobs" / shard / job_id / "checkpoints")


def gpu_view(http: httpx.Client, gpu_id: str) -> dict[str, Any]:
    items = http.get("/gpus", params={"limit": 200}).json()["items"]
    found: dict[str, Any] = next(item for item in items if item["id"] == gpu_id)
    return found


def fails_with(http: httpx.Client, gpu_id: str, sign: str) -> None:
    wait_until(lambda: gpu_view(http, gpu_id)["health"] == "failed", f"{gpu_id} has failed")
    evidence = gpu_view(http, gpu_id)["evidence"]
    assert sign in {item["sign"] for item in evidence}
    assert all(item["text"] for item in evidence)


def goes_on(training: Training, reason: str, *, from_step: int) -> None:
    """In its second attempt, after the first ended for this reason, and not from the beginning."""
    wait_until(lambda: training.runs(2), f"{training.id} runs again")
    first, second = training.http.get(f"/jobs/{training.id}/attempts").json()["items"]
    assert (first["end_reason"], second["end_reason"]) == (reason, None)
    wait_until(lambda: len(training.begun) == 2, f"{training.id} has begun again")
    before, after = training.begun
    assert (before["attempt"], before["step"]) == (1, 0)
    assert after["attempt"] == 2
    assert after["step"] >= from_step > 0
    wait_until(lambda: training.step > after["step"], f"{training.id} trains on")


def alerts(http: httpx.Client, *states: str) -> dict[tuple[str, str], int]:
    """Rule and subject of the alerts in these states, and how many there are of each."""
    items = http.get("/alerts", params={"limit": 200}).json()["items"]
    return Counter((item["rule"], item["subject"]) for item in items if item["state"] in states)


def reported(smtp: SmtpServer) -> tuple[Counter[int], Counter[int]]:
    """How often each alert, by its number, was reported as begun, and as over."""
    begun: Counter[int] = Counter()
    over: Counter[int] = Counter()
    for body in smtp.bodies():
        counted = begun
        for heading, number in re.findall(r"(Firing:|Resolved:)|#(\d+) ", body):
            if heading:
                counted = begun if heading == "Firing:" else over
            else:
                counted[int(number)] += 1
    return begun, over


def _states_of_deliveries(http: httpx.Client) -> set[str]:
    return {item["state"] for item in http.get("/deliveries", params={"limit": 200}).json()["items"]}


def test_four_faults_on_one_day(server: CorralServer, http: httpx.Client, drill: Person, smtp: SmtpServer) -> None:
    for rule, changes in QUICK_RULES.items():
        answer = http.patch(f"/alert-rules/{rule}", json=changes)
        assert answer.status_code == 200, answer.text

    # Morning: everybody works.
    hot = train(server, http, "overheats", gpus=2, model="A10")
    neighbour = train(server, http, "neighbour", gpus=2, model="A10")
    lost = train(server, http, "on-a-lost-node", gpus=4, model="A10")
    dead = train(server, http, "on-a-dead-gpu", gpus=1, model="A100-80G")
    hung = train(server, http, "hangs", gpus=1, model="A100-80G")
    large = train(server, http, "undisturbed", gpus=4, model="A100-80G")
    everybody = [hot, neighbour, lost, dead, hung, large]
    wait_until(lambda: all(training.runs(1) and training.step > 10 for training in everybody), "all jobs train")
    assert set(neighbour.nodes) == set(hot.nodes)
    assert not {*lost.nodes} & {*hot.nodes}
    hot_gpu, dead_gpu, hung_gpu, lost_node = hot.gpus[0], dead.gpus[0], hung.gpus[0], lost.nodes[0]
    untouched = {training.id: training.view["allocation"] for training in (neighbour, large)}
    wait_until(
        lambda: gpu_view(http, hung_gpu)["reading"]["utilization"] > 0.05, "the job that will hang has begun to work"
    )
    assert alerts(http, "pending", "firing", "resolved") == {}

    # Everything happens at once.
    steps = {training.id: training.step for training in everybody}
    drill.ok("drill", "overheat", hot_gpu, "--temperature", "97")
    drill.ok("drill", "lose-gpu", dead_gpu)
    drill.ok("drill", "hang", hung_gpu)
    drill.ok("drill", "lose-node", lost_node)

    # The hardware is found out, with evidence.
    for gpu, sign in ((hot_gpu, "hot"), (dead_gpu, "lost"), (hung_gpu, "idle")):
        fails_with(http, gpu, sign)
    wait_until(lambda: http.get(f"/nodes/{lost_node}").json()["state"] == "down", "the node is down")
    gpus = http.get("/gpus", params={"limit": 200}).json()["items"]
    assert len(gpus) == 44
    assert {item["id"] for item in gpus if item["health"] != "healthy"} == {hot_gpu, dead_gpu, hung_gpu}

    # The jobs run again, elsewhere, from where they were.
    for training, reason in ((hot, "gpu_failed"), (dead, "gpu_failed"), (hung, "gpu_failed"), (lost, "node_lost")):
        goes_on(training, reason, from_step=steps[training.id])
    assert hot_gpu not in hot.gpus
    assert dead_gpu not in dead.gpus
    assert hung_gpu not in hung.gpus
    assert lost_node not in lost.nodes

    # No other job was affected.
    for training in (neighbour, large):
        assert training.view["attempt"] == 1
        assert training.view["allocation"] == untouched[training.id]
        assert len(training.begun) == 1
        assert training.step > steps[training.id]

    # The operator was notified of each, and of nothing else.
    expected = {
        ("gpu-temperature", hot_gpu),
        ("gpu-failed", hot_gpu),
        ("gpu-failed", dead_gpu),
        ("gpu-idle", hung_gpu),
        ("gpu-failed", hung_gpu),
        ("node-lost", lost_node),
    }
    wait_until(lambda: set(alerts(http, "firing", "resolved")) == expected, "every fault has its alert")
    fired = [item for item in http.get("/alerts", params={"limit": 200}).json()["items"] if item["fired_at"]]
    # The overheating explains the failure of its GPU: no notice of its own.
    assert [(item["rule"], item["subject"]) for item in fired if item["folded_into"]] == [("gpu-failed", hot_gpu)]
    ids = {item["id"] for item in fired if not item["folded_into"]}
    wait_until(lambda: set(reported(smtp)[0]) == ids, "every beginning was reported")

    # Repairs: the faults end, and the operator says that the GPUs may be used again.
    drill.ok("drill", "clear")
    for gpu in (hot_gpu, dead_gpu, hung_gpu):
        answer = http.post(f"/gpus/{gpu}/reset-health")
        assert answer.json()["health"] == "healthy", answer.text
    wait_until(lambda: http.get(f"/nodes/{lost_node}").json()["state"] == "ready", "the node is back")
    wait_until(lambda: alerts(http, "pending", "firing") == {}, "every alert is over")
    assert alerts(http, "resolved") == dict.fromkeys(expected, 1)

    # One beginning and one end each, however they were joined into mails. The folded alert has a notice of its own
    # if its cause ends first.
    wait_until(lambda: ids <= set(reported(smtp)[1]) == set(reported(smtp)[0]), "every end was reported")
    begun, over = reported(smtp)
    assert begun == over == Counter(dict.fromkeys(begun, 1))
    assert set(begun) <= {item["id"] for item in fired}
    # A mail is there a moment before the server has noted that it went out.
    wait_until(lambda: _states_of_deliveries(http) == {"sent"}, "every delivery is done")

    # And the repaired hardware is used again.
    assert all(item["health"] == "healthy" for item in http.get("/gpus", params={"limit": 200}).json()["items"])
    whole = train(server, http, "after-the-repair", gpus=4, model="A10")
    wait_until(lambda: whole.runs(1), "what was repaired takes new work")
    for training in (*everybody, whole):
        http.post(f"/jobs/{training.id}/stop")
    wait_until(lambda: http.get("/overview").json()["gpus_free"] == 44, "everything has ended")
