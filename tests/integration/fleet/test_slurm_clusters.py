"""One server with this machine and a real Slurm side by side: where jobs go, who may use a node, what is shown."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_harness import operator_of
from tests.integration.monitoring.test_cli_exporter import started
from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


ACCOUNT = "corral-test-bea"


def dcgm_page() -> str:
    """The page of NVIDIA's exporter on node2: each GPU has a different utilisation, which identifies it."""
    labels = 'UUID="GPU-{0}",device="nvidia{0}",modelName="NVIDIA A100-SXM4-80GB",Hostname="node2.cluster.example"'
    return "".join(
        f'DCGM_FI_DEV_{name}{{gpu="{index}",{labels.format(index)}}} {value}\n'
        for index in range(8)
        for name, value in (("GPU_UTIL", 10 + index), ("GPU_TEMP", 40 + index), ("FB_USED", 1024), ("FB_FREE", 1024))
    )


@pytest.fixture(scope="module")
def exporters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The sources of readings: corral's own exporter, a page of NVIDIA's exporter, and an unused address."""
    folder = tmp_path_factory.mktemp("dcgm")
    (folder / "metrics").write_text(dcgm_page())
    dcgm = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=dcgm.serve_forever, daemon=True).start()
    process, address = started("--port", "0", "--virtual-gpus", "8xA100-80G", "--interval", "0.5")
    try:
        yield (f"node1={address}/metrics", f"127.0.0.1:{dcgm.server_address[1]}", "node3=127.0.0.1:1")
    finally:
        process.terminate()
        process.communicate()
        dcgm.shutdown()
        dcgm.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def server(slurm_cluster: SlurmCluster, exporters: tuple[str, ...]) -> Iterator[CorralServer]:
    home = Path(tempfile.mkdtemp(prefix="corral-two-", dir="/tmp"))
    home.chmod(0o755)  # jobs' accounts pass here
    made = server_on(
        slurm_cluster,
        home / "home",
        local=True,
        settings="local: {virtual_nodes: 2x4xA100-80G, allow_root: true, "
        f"run_as: {{users: {{operator: root, bea: {ACCOUNT}}}}}}}\n"
        f"monitoring: {{interval_seconds: 1, scrape: {json.dumps(exporters)}}}\n",
        accounts="{bea: physics}",
    )
    made.start()
    yield made
    if made.is_running:
        made.stop()
    slurm_cluster.run("scancel", "--user=root", check=False)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def node_named(http: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/nodes/{name}").json()
    return found


def flags_of(slurm: SlurmCluster, name: str) -> str:
    return slurm.run("scontrol", "show", "node", name, "-o")


def ended(http: httpx.Client, job_id: str) -> dict[str, Any]:
    def job() -> dict[str, Any]:
        found: dict[str, Any] = http.get(f"/jobs/{job_id}").json()
        return found

    wait_until(lambda: job()["state"] in ("completed", "failed", "stopped"), f"{job_id} ends", seconds=60)
    return job()


def test_jobs_go_to_the_cluster_that_their_label_names_and_their_logs_are_found(http: httpx.Client) -> None:
    command = ["sh", "-c", "echo on ${SLURMD_NODENAME:-this machine}"]
    jobs = [
        http.post("/jobs", json={"command": command, "gpus": 1, "labels": {"corral.cluster": cluster}}).json()
        for cluster in ("hpc", "local")
    ]
    far, near = (ended(http, job["id"]) for job in jobs)
    assert (far["state"], near["state"]) == ("completed", "completed")
    logs = [http.get(f"/jobs/{job['id']}/logs").text for job in jobs]
    for cluster, job in (("hpc", far), ("local", near)):
        listed = http.get(f"/jobs?cluster={cluster}&state=completed").json()["items"]
        assert [one["id"] for one in listed] == [job["id"]]
    assert [http.get(f"/overview?cluster={name}").json()["nodes"] for name in ("hpc", "local")] == [4, 2]
    assert "on node" in logs[0]
    assert "on this machine" in logs[1]


def test_jobs_go_where_their_volumes_and_their_flavor_say(http: httpx.Client) -> None:
    flavor = {"name": "far", "labels": {"corral.cluster": "hpc"}}
    assert http.post("/flavors", json=flavor).status_code == 201
    volume = {"name": "shared", "type": "filesystem", "size": "1MiB", "cluster": "hpc"}
    assert http.post("/volumes", json=volume).status_code == 201
    text = (
        'echo on $SLURMD_NODENAME; echo words > "$CORRAL_JOB_DIR/mounts/shared/file"; cat "$CORRAL_MOUNT_SHARED/file"'
    )
    mounting = {"command": ["sh", "-c", text], "gpus": 0, "mounts": ["shared:/data"]}
    answers = [
        http.post("/jobs", json=mounting),
        http.post("/jobs", json={"command": ["sh", "-c", "echo on $SLURMD_NODENAME"], "gpus": 1, "flavor": "far"}),
    ]
    assert [answer.status_code for answer in answers] == [201, 201], [answer.text for answer in answers]
    for answer in answers:
        job = ended(http, answer.json()["id"])
        assert job["state"] == "completed", job
        assert "on node" in http.get(f"/jobs/{job['id']}/logs").text


def test_a_version_of_a_dataset_is_mounted_there(http: httpx.Client, server: CorralServer, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("version one\n")
    shell = operator_of(server)
    shell.ok("dataset", "create", "digits")
    version = shell.read("dataset", "commit", "digits", str(tmp_path))["id"]
    text = 'cat "$CORRAL_MOUNT_DIGITS/one"; echo of $CORRAL_DATASET_DIGITS_VERSION on $SLURMD_NODENAME'
    body = {"command": ["sh", "-c", text], "mounts": ["dataset:digits:/data"], "labels": {"corral.cluster": "hpc"}}
    job = ended(http, http.post("/jobs", json=body).json()["id"])
    assert job["state"] == "completed", job
    log = http.get(f"/jobs/{job['id']}/logs").text
    assert "version one\n" in log
    assert f"of {version} on node" in log


def test_gpus_of_slurm_nodes_are_read_from_the_exporters_that_settings_name(
    http: httpx.Client, exporters: tuple[str, ...]
) -> None:
    def readings(node: str) -> list[dict[str, Any] | None]:
        found = http.get("/gpus", params={"limit": 200}).json()["items"]
        return [gpu["reading"] for gpu in found if gpu["node"] == node]

    # As NVIDIA's exporter numbers them, on the node of that short name.
    wait_until(lambda: all(readings("node2")), "node2 is read")
    uses = {gpu["id"]: gpu["reading"]["utilization"] for gpu in node_named(http, "node2")["gpus"]}
    assert uses == {f"node2-gpu{index}": pytest.approx((10 + index) / 100) for index in range(8)}
    # corral's own exporter calls its node otherwise; the settings say which one it is.
    wait_until(lambda: all(readings("node1")), "node1 is read")
    assert readings("node3") == [None] * 8
    parts = {part["name"]: part for part in http.get("/about").json()["parts"]}
    own, dcgm, away = (parts[f"exporter {name.replace('http://', '').replace('/metrics', '')}"] for name in exporters)
    assert (own["healthy"], dcgm["healthy"], away["healthy"]) == (True, True, False)
    assert "Connection refused" in away["detail"]
    assert http.get("/readyz").status_code == 200, "the server is ready without it"


def test_a_jobs_chart_is_of_the_devices_that_slurm_gave_it(http: httpx.Client, slurm_cluster: SlurmCluster) -> None:
    others = ("node1", "node3", "node4")
    for node in others:
        assert http.post(f"/nodes/{node}/cordon").status_code == 200
    foreign = slurm_cluster.run(
        "sbatch", "--parsable", "-w", "node2", "--gres=gpu:3", "--output=/dev/null", "--wrap", "sleep 300"
    ).strip()
    try:
        # Earlier tests have used the first ones.
        wait_until(lambda: node_named(http, "node2")["taken"]["gpus"] == 3, "it is seen", seconds=60)
        assert [gpu["index"] for gpu in node_named(http, "node2")["gpus"] if gpu["taken"]] == [0, 1, 2]
        text = "echo has $SLURM_JOB_GPUS; sleep 600"
        body = {"command": ["sh", "-c", text], "gpus": 2, "labels": {"corral.cluster": "hpc"}}
        job = http.post("/jobs", json=body).json()["id"]
        wait_until(lambda: "has " in http.get(f"/jobs/{job}/logs").text, "it runs")
        given = [int(index) for index in http.get(f"/jobs/{job}/logs").text.split()[1].split(",")]

        def chart() -> dict[str, float]:
            answer = http.get(f"/jobs/{job}/metrics", params={"metric": "utilization", "per_gpu": True}).json()
            return {one["subject"]: one["points"][-1]["mean"] for one in answer["series"] if one["points"]}

        assert given == [3, 4]
        wait_until(lambda: len(chart()) == 2, "its chart has both")
        assert chart() == {f"node2-gpu{index}": pytest.approx((10 + index) / 100) for index in given}
        http.post(f"/jobs/{job}/stop").raise_for_status()
        ended(http, job)
    finally:
        slurm_cluster.run("scancel", foreign)
        for node in others:
            http.post(f"/nodes/{node}/uncordon")
        # The next story begins with everything free.
        wait_until(lambda: node_named(http, "node2")["taken"]["gpus"] == 0, "it is free again", seconds=60)


def test_a_users_job_is_that_users_in_slurm(server: CorralServer, slurm_cluster: SlurmCluster) -> None:
    server.add_user("bea")
    text = 'id -un; echo result > "$CORRAL_OUTPUT_DIR/file"; echo ready; sleep 1000'
    body = {"command": ["sh", "-c", text], "gpus": 1, "labels": {"corral.cluster": "hpc"}}
    with temporary_account(ACCOUNT, 54322) as account, server.http("bea") as http:
        job = http.post("/jobs", json=body).json()
        logs = f"/jobs/{job['id']}/logs"
        wait_until(lambda: "ready" in http.get(logs).text, "it runs and its log is read", seconds=60)
        assert ACCOUNT in http.get(logs).text
        assert slurm_cluster.run("squeue", "-h", "-o", "%u %a").split() == [ACCOUNT, "physics"]
        (written,) = server.home.glob(f"jobs/*/{job['id']}/outputs/file")
        assert written.stat().st_uid == account.pw_uid
        assert http.post(f"/jobs/{job['id']}/stop", json={}).status_code == 200
        assert ended(http, job["id"])["state"] == "stopped"


def test_drains_and_resumes_go_both_ways_and_the_last_word_is_right(
    http: httpx.Client, server: CorralServer, slurm_cluster: SlurmCluster
) -> None:
    assert http.post("/nodes/node2/cordon").json()["state"] == "cordoned"
    wait_until(lambda: "DRAIN" in flags_of(slurm_cluster, "node2"), "Slurm drains it", seconds=60)
    assert "Reason=corral: cordoned by" in flags_of(slurm_cluster, "node2")
    # A server that is killed and comes back says nothing else.
    server.kill()
    server.start()
    assert node_named(http, "node2")["state"] == "cordoned"
    slurm_cluster.run("scontrol", "update", "NodeName=node2", "State=RESUME")
    wait_until(lambda: node_named(http, "node2")["state"] == "ready", "corral hears of it", seconds=60)
    slurm_cluster.run("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=disk is full")
    wait_until(lambda: node_named(http, "node2")["state"] == "cordoned", "corral hears of it", seconds=60)
    reported = node_named(http, "node2")
    assert (reported["withheld"], reported["reason"]) == ("ready", "disk is full")
    assert http.post("/nodes/node2/uncordon").status_code == 200
    wait_until(lambda: "DRAIN" not in flags_of(slurm_cluster, "node2"), "Slurm resumes it", seconds=60)
    wait_until(lambda: node_named(http, "node2")["state"] == "ready", "it is ready", seconds=60)


def test_a_word_that_slurm_never_heard_reaches_it_after_a_crash(
    http: httpx.Client, server: CorralServer, slurm_cluster: SlurmCluster
) -> None:
    slurm_cluster.kill_controller()
    try:
        assert http.post("/nodes/node3/drain").json()["state"] in ("draining", "drained")
        server.kill()
    finally:
        slurm_cluster.start_controller()
    assert "DRAIN" not in flags_of(slurm_cluster, "node3")
    server.start()
    wait_until(lambda: "DRAIN" in flags_of(slurm_cluster, "node3"), "Slurm drains it", seconds=60)
    assert http.post("/nodes/node3/uncordon").status_code == 200
    wait_until(lambda: "DRAIN" not in flags_of(slurm_cluster, "node3"), "Slurm resumes it", seconds=60)


def test_gpus_held_by_other_slurm_jobs_are_shown_and_not_free(http: httpx.Client, slurm_cluster: SlurmCluster) -> None:
    foreign = slurm_cluster.run(
        "sbatch", "--parsable", "-w", "node4", "--gres=gpu:3", "--cpus-per-task=2", "--mem=1G", "--wrap", "sleep 300"
    ).strip()
    try:
        wait_until(lambda: node_named(http, "node4")["taken"]["gpus"] == 3, "it is seen", seconds=60)
        reported = node_named(http, "node4")
        assert reported["taken"] == {"gpus": 3, "cpus": 2, "memory_bytes": 1 << 30}
        assert (reported["gpus_free"], reported["gpus_allocated"]) == (5, 0)
        assert sum(gpu["taken"] for gpu in reported["gpus"]) == 3
        overview = http.get("/overview").json()
        # Nodes that another test drained have no free GPUs.
        free = sum(node["gpus_free"] for node in http.get("/nodes").json()["items"])
        assert (overview["gpus_free"], overview["gpus_taken"]) == (free, 3)
    finally:
        slurm_cluster.run("scancel", foreign)
    wait_until(lambda: node_named(http, "node4")["taken"]["gpus"] == 0, "it is free again", seconds=60)


def test_a_cluster_that_does_not_answer_says_so_and_the_other_goes_on(
    http: httpx.Client, slurm_cluster: SlurmCluster
) -> None:
    def clusters() -> dict[str, dict[str, Any]]:
        return {item["name"]: item for item in http.get("/clusters").json()["items"]}

    slurm_cluster.kill_controller()
    try:
        wait_until(lambda: not clusters()["hpc"]["healthy"], "it is seen", seconds=60)
        assert clusters()["hpc"]["detail"].startswith("Slurm: ")
        assert clusters()["hpc"]["since"] > clusters()["local"]["since"]
        assert clusters()["local"]["healthy"]
        waiting, stopped = (
            http.post("/jobs", json={"command": ["true"], "gpus": 1, "labels": {"corral.cluster": "hpc"}}).json()["id"]
            for _ in range(2)
        )
        job = http.post("/jobs", json={"command": ["true"], "gpus": 1, "labels": {"corral.cluster": "local"}}).json()
        assert ended(http, job["id"])["state"] == "completed"
        why = "its cluster does not take it yet: Slurm: "
        wait_until(lambda: why in http.get(f"/jobs/{waiting}/why").json()["summary"], "the reason is shown", seconds=60)
        wait_until(
            lambda: http.get(f"/jobs/{stopped}").json()["message"].startswith(why), "the reason is shown", seconds=60
        )
        http.post(f"/jobs/{stopped}/stop", json={}).raise_for_status()
    finally:
        slurm_cluster.start_controller()
    wait_until(lambda: clusters()["hpc"]["healthy"], "it is back", seconds=60)
    assert ended(http, waiting)["state"] == "completed"
    assert (ended(http, stopped)["state"], ended(http, stopped)["end_reason"]) == ("stopped", "stopped_by_user")


def test_the_daemons_of_slurm_are_on_the_status_page(http: httpx.Client, slurm_cluster: SlurmCluster) -> None:
    def daemon(name: str) -> dict[str, Any]:
        parts = http.get("/parts").json()["items"]
        found = [part for part in parts if part["kind"] == "daemon" and part["name"].startswith(name)]
        assert len(found) <= 1, found
        return found[0] if found else {"healthy": False, "restarts": 0}

    wait_until(lambda: daemon("slurmctld")["healthy"], "the controller of Slurm is shown as healthy")
    for node in slurm_cluster.node_names:
        wait_until(lambda node=node: daemon(f"slurmd {node}")["healthy"], f"slurmd of {node} is healthy")  # type: ignore[misc]
        assert daemon(f"slurmd {node}")["node"] == node
    first = slurm_cluster.node_names[0]
    before = daemon(f"slurmd {first}")["restarts"]
    slurm_cluster.kill_node_daemon(first)
    slurm_cluster.start_node(first)
    wait_until(lambda: daemon(f"slurmd {first}")["restarts"] > before, "the restart of slurmd is counted", seconds=120)
    slurm_cluster.kill_controller()
    try:
        wait_until(lambda: not daemon("slurmctld")["healthy"], "the end of the controller is seen", seconds=120)
        assert daemon("slurmctld")["detail"]
    finally:
        slurm_cluster.start_controller()
    wait_until(lambda: daemon("slurmctld")["healthy"], "the controller is back", seconds=120)
    assert daemon("slurmctld")["last_error"], "its last error is kept"
