"""The engine on nodes whose GPUs a driver publishes: the claims of its pods, and why a pod does not get its GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, EngineUnavailable, Instance
from corral.core.model import EndReason
from corral.engines.kubernetes.api import watch
from corral.engines.kubernetes.attempts import tracking
from corral.engines.kubernetes.cluster import watches
from tests.unit.engines.kubernetes.api_server import Answer, Asked, api_server, refusal
from tests.unit.engines.kubernetes.fake_cluster import ALL_CLAIMS, CLAIMS, NAMESPACE, SLICES, FakeCluster
from tests.unit.engines.kubernetes.objects import (
    Json,
    condition,
    gpu_device,
    node,
    resource_claim,
    resource_slice,
)
from tests.unit.engines.kubernetes.test_kube_faults import ORDER, Started, wait_for

ON_DEVICES = replace(ORDER, instances=(Instance(rank=0, node="gpu1", gpu_ids=("GPU-1", "GPU-0"), gpu_indexes=(1, 0)),))


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.nodes = {"gpu1": node(gpus=0)}
    made.slices = [resource_slice("gpu1", *(gpu_device(f"gpu-{number}", f"GPU-{number}") for number in range(4)))]
    return made


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster) -> Iterator[Started]:
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(watch, name, 0.02)
    monkeypatch.setattr(watches, "WITHOUT_DEVICES_SECONDS", 0.02)
    with api_server(cluster.respond) as server:
        one = Started(tmp_path, server, cluster)
        one.engine.observe()
        yield one
        one.engine.close()


def unplaced(started: Started, message: str) -> None:
    body: Json = json.loads(json.dumps(started.cluster.pods[started.name]))
    body["status"] = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", message)]}
    started.cluster.put(body)


def waits_for(started: Started) -> str:
    status = started.status()
    return "" if status is None else status.message


def test_a_pod_gets_a_claim_for_the_gpus_of_its_plan_that_belongs_to_it(started: Started) -> None:
    started.launch(ON_DEVICES)
    pod, claim = started.cluster.pods[started.name], started.cluster.claims[started.name]
    assert pod["spec"]["containers"][0]["resources"] == {"claims": [{"name": "gpus"}]}
    assert pod["spec"]["resourceClaims"] == [{"name": "gpus", "resourceClaimName": started.name}]
    assert claim["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert claim["metadata"]["namespace"] == NAMESPACE
    wanted = [one["exactly"]["selectors"][0]["cel"]["expression"] for one in claim["spec"]["devices"]["requests"]]
    assert [text.rpartition(" ")[2] for text in wanted] == ['"GPU-1"', '"GPU-0"']
    env = {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}
    assert env["CUDA_VISIBLE_DEVICES"] == "0,1"
    # Readings are those of the GPU, whether or not a job has it.
    assert started.engine.held_devices() == {f"GPU-{number}": f"GPU-{number}" for number in range(4)}


def test_a_launch_that_is_repeated_makes_one_pod_and_one_claim(started: Started) -> None:
    def lost(asked: Asked) -> Answer | None:
        """The claim is refused as often as the API server is too busy for it."""
        return Answer(status=503) if (asked.method, asked.path) == ("POST", CLAIMS) else None

    started.cluster.fault = lost
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            started.engine.launch(ON_DEVICES)
    assert (len(started.cluster.pods), len(started.cluster.claims)) == (1, 0)
    started.cluster.fault = lambda _: None
    started.launch(ON_DEVICES)
    assert (len(started.cluster.pods), len(started.cluster.claims)) == (1, 1)
    # A server that crashed after the claim, and before it noted that.
    attempt = started.engine.attempt("j-1.1")
    assert attempt is not None
    attempt.is_created = False
    started.launch(ON_DEVICES)
    assert (len(started.cluster.pods), len(started.cluster.claims)) == (1, 1)


def test_a_claim_of_an_earlier_pod_is_removed_first(started: Started) -> None:
    labels = {"corral/installation": started.engine.describe()["installation"]}
    started.cluster.claims[started.name] = resource_claim(started.name, labels=labels)
    with pytest.raises(EngineUnavailable, match="not this pod's: it is removed"):
        started.engine.launch(ON_DEVICES)
    started.launch(ON_DEVICES)
    assert started.cluster.claims[started.name]["metadata"]["ownerReferences"]


def test_a_claim_of_others_with_its_name_stays_and_the_job_is_planned_again(started: Started) -> None:
    started.cluster.claims[started.name] = theirs = resource_claim(started.name)
    started.engine.launch(ON_DEVICES)
    status = started.status()
    assert status is not None
    assert (status.phase, status.reason) == (AttemptPhase.ENDED, EndReason.PREEMPTED)
    assert f"there is a ResourceClaim {started.name}" in status.message
    assert started.cluster.claims == {started.name: theirs}
    wait_for(lambda: not started.cluster.pods)


def test_a_gpu_that_is_not_published_any_more_is_planned_again(started: Started) -> None:
    gone = Instance(rank=0, node="gpu1", gpu_ids=("GPU-9",), gpu_indexes=(0,))
    started.engine.launch(replace(ON_DEVICES, instances=(gone,)))
    status = started.status()
    assert status is not None
    assert (status.phase, status.reason) == (AttemptPhase.ENDED, EndReason.PREEMPTED)
    assert status.message == "no driver publishes GPU-9 on gpu1 any more"
    assert not started.cluster.pods


def test_the_holder_of_a_gpu_is_named_with_the_words_of_kubernetes(started: Started) -> None:
    started.cluster.claims["theirs"] = resource_claim("theirs", ("gpu1", "gpu-1"))
    wait_for(lambda: started.engine.observe().nodes[0].taken.gpus == ("GPU-1",))
    started.launch(ON_DEVICES)
    unplaced(started, "0/1 nodes are available: 1 cannot allocate all claims.")
    expected = "GPU-1: ResourceClaim default/theirs has it; 0/1 nodes are available: 1 cannot allocate all claims."
    wait_for(lambda: waits_for(started) == f"waits in Kubernetes: {expected}")


def test_the_last_failure_of_a_pod_that_its_node_prepares_is_shown(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "ASK_SECONDS", 0.0)
    started.cluster.events = [
        {"reason": "FailedMount", "message": "late", "lastTimestamp": "2026-01-01T00:00:01Z"},
        {"reason": "FailedPrepareDynamicResources", "message": "no GPU", "lastTimestamp": "2026-01-01T00:00:02Z"},
        {"reason": "MissingClusterDNS", "message": "default", "lastTimestamp": "2026-01-01T00:00:03Z"},
    ]
    started.launch(ON_DEVICES)
    body: Json = json.loads(json.dumps(started.cluster.pods[started.name]))
    body["spec"]["nodeName"] = "gpu1"
    placed = condition("PodScheduled", "True") | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    body["status"] = {
        "phase": "Pending",
        "conditions": [placed],
        "containerStatuses": [{"name": "job", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    }
    monkeypatch.setattr(started.engine._tracker, "_is_late", lambda pod, now: False)
    started.cluster.put(body)
    expected = "waits in Kubernetes: ContainerCreating; FailedPrepareDynamicResources: no GPU"
    wait_for(lambda: waits_for(started) == expected)
    asked = [one for one in started.server.asked if one.path.endswith("/events")]
    assert asked[0].params["fieldSelector"] == f"involvedObject.uid={body['metadata']['uid']},type=Warning"
    # Not again before as long has passed as since it was placed.
    wait_for(lambda: len(started.server.asked) > started.server.asked.index(asked[0]) + 20)
    assert len([one for one in started.server.asked if one.path.endswith("/events")]) == 1


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_that_shows_no_devices_works_as_before(started: Started, status: int, tmp_path: Path) -> None:
    started.cluster.nodes = {"gpu1": node(gpus=8)}
    started.cluster.fault = lambda asked: (
        refusal(status, "no") if asked.path.startswith("/apis/resource.k8s.io") else None
    )
    started.root = tmp_path / "second"
    started.root.mkdir()
    second = started.new_engine()
    try:
        (seen,) = second.observe().nodes
        assert [gpu.id for gpu in seen.gpus] == [f"gpu1-gpu{number}" for number in range(8)]
        assert "resource" not in second.parts()[0].detail
    finally:
        second.close()


def test_rights_that_are_missing_are_said_where_they_matter(started: Started, tmp_path: Path) -> None:
    def detail(path: str) -> str:
        started.cluster.fault = lambda asked: refusal(403, "no right") if asked.path == path else None
        started.root = tmp_path / path.replace("/", "-")
        started.root.mkdir()
        engine = started.new_engine()
        try:
            engine.observe()
            return engine.parts()[0].detail
        finally:
            engine.close()

    assert "this account may not list resourceslices" in detail(SLICES)
    assert "GPUs that ResourceClaims of others hold are unknown" in detail(ALL_CLAIMS)
