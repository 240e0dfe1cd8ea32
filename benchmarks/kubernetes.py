"""What corral costs on a Kubernetes cluster: the same no-op jobs as plain pods and through corral, on one real cluster.

Plain pods are created by a loop over one connection, which is the fastest that a user has. All take turns in the same
run, as whatever else the machine does in the meantime must hit them alike. Hollow nodes hold the pods that are only
watched.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from tests.servers.kubernetes.cluster import GPU, KubernetesCluster
from tests.servers.kubernetes.programs import HOW_TO_BUILD, HOW_TO_INSTALL, find_programs, is_installed

from benchmarks.jobs import Announcements
from benchmarks.live import LiveServer, live_server, wait_until_ended
from benchmarks.tables import Row, median, percentile, print_table, spread

PODS = "/api/v1/namespaces/default/pods"
#: jobs in one request: the first begin while others are still being submitted, as in a loop
BATCH = 50
REST_SECONDS = 30.0
CHANGES = 1000
_REQUESTS = re.compile(r"^apiserver_request_total\{.*\} (\S+)$", re.MULTILINE)


@contextlib.contextmanager
def cluster(programs: Path) -> Iterator[KubernetesCluster]:
    with tempfile.TemporaryDirectory(prefix="corral-k8s-", dir="/tmp") as directory:
        place = Path(directory)
        with KubernetesCluster(directory=place, programs=programs, hollow_pods=3000) as started:
            yield started


def corral_over(kubernetes: KubernetesCluster) -> contextlib.AbstractContextManager[LiveServer]:
    own = f"{{kubeconfig: {kubernetes.kubeconfig}, namespace: default, default_image: {kubernetes.access.image!r}, "
    own += "node_selector: {hollow: 'false'}}"
    settings = f"cluster: [{{name: lab, engine: kubernetes, kubernetes: {own}}}]\n"
    return live_server(virtual_nodes=None, settings=settings, CORRAL_ALLOW_ROOT="true")


def no_op_pod(name: str, image: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "command": ["true"],
        "resources": {"limits": {GPU: "1"}},
    }
    # The same nodes that corral's jobs run on.
    spec = {"restartPolicy": "Never", "containers": [container], "nodeSelector": {"hollow": "false"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"plain": "yes"}}, "spec": spec}


def plain_rate(client: httpx.Client, image: str, count: int) -> float:
    """Pods a second, until the last of them has succeeded; then they are removed."""
    begun = time.perf_counter()
    for number in range(count):
        client.post(PODS, json=no_op_pod(f"plain-{number}", image)).raise_for_status()
    while _phases(client).count("Succeeded") < count:
        time.sleep(0.25)
    rate = count / (time.perf_counter() - begun)
    client.delete(PODS, params={"labelSelector": "plain=yes"}).raise_for_status()
    while _phases(client):
        time.sleep(0.25)
    return rate


def _phases(client: httpx.Client) -> list[str]:
    pods = client.get(PODS, params={"labelSelector": "plain=yes"}).raise_for_status().json()["items"]
    return [pod["status"]["phase"] for pod in pods]


def corral_rate(client: httpx.Client, count: int, done: int) -> float:
    begun = time.perf_counter()
    for first in range(0, count, BATCH):
        jobs = [{"command": ["true"], "gpus": 1}] * min(BATCH, count - first)
        client.post("/jobs:batch", json={"jobs": jobs}).raise_for_status()
    wait_until_ended(client, done + count, seconds=1800, pause=0.25, fastest=50)
    return count / (time.perf_counter() - begun)


def plain_latency(client: httpx.Client, image: str) -> float:
    """Milliseconds from the request until the API reports that the pod runs or has run. corral learns it from the pod's
    output, which is earlier: the two times are no ratio."""
    begun = time.perf_counter()
    made = client.post(PODS, json=no_op_pod("plain-single", image)).raise_for_status().json()
    query = {"watch": "1", "fieldSelector": "metadata.name=plain-single"}
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    took = 0.0
    with client.stream("GET", PODS, params={**query, **version}) as events:
        for line in events.iter_lines():
            if '"phase":"Running"' in line or '"phase":"Succeeded"' in line:
                took = took or (time.perf_counter() - begun) * 1000
            if '"phase":"Succeeded"' in line:
                break
    client.delete(f"{PODS}/plain-single", params={"gracePeriodSeconds": 0}).raise_for_status()
    while client.get(f"{PODS}/plain-single").status_code != httpx.codes.NOT_FOUND:
        time.sleep(0.05)
    return took


def corral_latency(client: httpx.Client, heard: Announcements) -> float:
    begun = time.perf_counter()
    job = client.post("/jobs", json={"command": ["true"], "gpus": 1}).raise_for_status().json()
    running = heard.wait(job["id"], "job.running")
    heard.wait(job["id"], "job.completed")
    return (running - begun) * 1000


def requests_per_second(client: httpx.Client, seconds: float) -> float:
    """All that the API server answers, those of Kubernetes' own daemons too."""
    first = _requests(client)
    time.sleep(seconds)
    return (_requests(client) - first) / seconds


def _requests(client: httpx.Client) -> float:
    return sum(map(float, _REQUESTS.findall(client.get("/metrics").raise_for_status().text)))


def fill(client: httpx.Client, image: str, count: int) -> None:
    """Pods of others on the hollow nodes."""
    for number in range(count):
        body = no_op_pod(f"other-{number}", image)
        body["metadata"]["labels"] = {"other": "yes"}
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}}
        body["spec"]["nodeSelector"] = {"hollow": "true"}
        client.post(PODS, json=body).raise_for_status()


def cpu_of_watching(client: httpx.Client, server: LiveServer, pods: int) -> Iterator[Row]:
    """The server's processor time at rest, and for changes of pods that it only watches."""
    before = server.cpu_seconds()
    time.sleep(REST_SECONDS)
    at_rest = (server.cpu_seconds() - before) / REST_SECONDS
    before = server.cpu_seconds()
    for number in range(CHANGES):
        body = {"metadata": {"annotations": {"changed": str(number)}}}
        headers = {"Content-Type": "application/merge-patch+json"}
        client.patch(f"{PODS}/other-{number % pods}", json=body, headers=headers).raise_for_status()
    time.sleep(2)
    events = max(0.0, server.cpu_seconds() - before - at_rest * 2) / CHANGES * 1000
    memory = server.memory_bytes() / 2**20
    yield Row(what=f"processor at rest, {pods} pods of others watched", value=f"{at_rest * 100:.1f} % of a core")
    yield Row(what="processor for each change of such a pod", value=f"{events:.2f} ms")
    yield Row(what="memory of the server with them", value=f"{memory:.0f} MiB")


def note(line: str) -> None:
    """At once: a run that is cut off has shown what it measured."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kubernetes")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", type=int, default=20, help="single jobs, for the time until they run")
    parser.add_argument("--watched", type=int, default=5000, help="pods of others")
    parser.add_argument("--rest", type=float, default=30.0, help="seconds in which requests at rest are counted")
    given, _ = parser.parse_known_args()
    programs = find_programs() if is_installed() else None
    if programs is None:
        print(HOW_TO_BUILD if is_installed() else HOW_TO_INSTALL)
        return
    with cluster(programs) as kubernetes, kubernetes.client() as api:
        image = kubernetes.access.image
        idle = requests_per_second(api, given.rest)
        plain_ms, ours_ms, plain, ours = list[float](), list[float](), list[float](), list[float]()
        with corral_over(kubernetes) as server, server.client() as client:
            at_rest = requests_per_second(api, given.rest) - idle
            heard = Announcements(server)
            note(f"API requests at rest: {at_rest:.2f} /s beside {idle:.2f} /s of Kubernetes itself")
            for _ in range(given.single):
                plain_ms.append(plain_latency(api, image))
                ours_ms.append(corral_latency(client, heard))
                note(f"single: plain {plain_ms[-1]:.0f} ms, corral {ours_ms[-1]:.0f} ms")
            for number in range(given.rounds):
                plain.append(plain_rate(api, image, given.jobs))
                note(f"{given.jobs} plain pods: {plain[-1]:.2f} /s")
                ours.append(corral_rate(client, given.jobs, given.single + number * given.jobs))
                note(f"{given.jobs} jobs: {ours[-1]:.2f} /s")
            rows = job_rows(given.jobs, plain, ours, plain_ms, ours_ms)
            rows.append(Row(what="API requests at rest", value=f"{at_rest:.2f} /s", target="≤ 1 /s"))
            if given.watched:
                fill(api, image, given.watched)
                rows += cpu_of_watching(api, server, given.watched)
    print_table("Jobs on Kubernetes", rows)


def job_rows(
    jobs: int, plain: list[float], ours: list[float], plain_ms: list[float], ours_ms: list[float]
) -> list[Row]:
    overheads = [(theirs / mine - 1) * 100 for theirs, mine in zip(plain, ours, strict=True)]
    return [
        Row(
            what=f"{jobs} plain pods by a loop",
            value=f"{median(plain):.1f} pods/s",
            spread=spread(plain, "pods/s"),
        ),
        Row(
            what=f"{jobs} no-op jobs through corral",
            value=f"{median(ours):.1f} jobs/s",
            spread=spread(ours, "jobs/s"),
            ratio=f"{median(ours) / median(plain):.2f} × plain pods",
        ),
        Row(
            what="overhead per job",
            value=f"{median(overheads):+.0f} %",
            spread=spread(overheads, "%", 0),
            target="≤ 15 %",
        ),
        Row(
            what="create → the API reports a plain pod as running",
            value=f"p50 {median(plain_ms):.0f} ms, p90 {percentile(plain_ms, 90):.0f} ms",
            spread=spread(plain_ms, "ms", 0),
        ),
        Row(
            what="submit → corral reports the job as running",
            value=f"p50 {median(ours_ms):.0f} ms, p90 {percentile(ours_ms, 90):.0f} ms",
            spread=spread(ours_ms, "ms", 0),
        ),
    ]


if __name__ == "__main__":
    main()
