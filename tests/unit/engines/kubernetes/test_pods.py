"""The pods of an order: pinned, restricted, and with nothing of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.control.ports import Instance, LaunchOrder, LaunchRefused, RegistryLogin, StorageKind, StorageOrder
from corral.engines.kubernetes.attempts.pod_rules import ClaimMount, PodRules, parse_claim
from corral.engines.kubernetes.attempts.pods import PodOwner, check_order, make_pod, make_secrets, pod_name
from corral.engines.storage.storage_specs import StoragePlaces

RULES = PodRules(namespace="ml", default_image="base:1")
OWNER = PodOwner(installation="abcd", term=3, key="k", uid=1000, gid=1000)
PLACES = StoragePlaces.below("/srv/corral")


def order(*nodes: str, **changes: Any) -> LaunchOrder:
    instances = tuple(
        Instance(rank=rank, node=node, gpu_ids=(f"{node}-gpu5",), gpu_indexes=(5,)) for rank, node in enumerate(nodes)
    )
    given = {"attempt_id": "j-7.2", "job_id": "j-7", "user": "ada", "command": ("echo", "$(HOME) $$"), **changes}
    return LaunchOrder(**{"instances": instances, **given})


def made(given: LaunchOrder, rules: PodRules = RULES, rank: int = 0, gpus: int = 1) -> dict[str, Any]:
    resources = {"nvidia.com/gpu": gpus} if gpus else {}
    return make_pod(given, given.instances[rank], rules, OWNER, gpus=resources, places=PLACES)


def env(pod: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


def test_a_pod_is_pinned_by_affinity_and_placed_by_the_scheduler() -> None:
    spec = made(order("gpu1"))["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu1"]}]}
    assert "nodeName" not in spec
    assert "schedulingGates" not in spec
    assert spec["restartPolicy"] == "Never"


def test_a_pod_passes_the_restricted_standard() -> None:
    spec = made(order("gpu1"))["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    kinds = {next(key for key in volume if key != "name") for volume in spec["volumes"]}
    assert kinds <= {"emptyDir", "persistentVolumeClaim", "downwardAPI"}
    assert spec["automountServiceAccountToken"] is False


def test_kubernetes_replaces_nothing_in_commands() -> None:
    (container,) = made(order("gpu1", env={"X": "$(PATH)"}))["spec"]["containers"]
    assert container["command"][-1] == "$$(HOME) $$$$"
    assert {"name": "X", "value": "$$(PATH)"} in container["env"]


def test_pods_with_gpus_count_them_from_0_and_pods_without_see_none() -> None:
    assert env(made(order("gpu1")))["CUDA_VISIBLE_DEVICES"] == "0"
    assert "NVIDIA_VISIBLE_DEVICES" not in env(made(order("gpu1", env={"NVIDIA_VISIBLE_DEVICES": "all"})))
    none = order("gpu1", instances=(Instance(rank=0, node="gpu1"),), env={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert env(made(none, gpus=0))["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert env(made(none, gpus=0))["CUDA_VISIBLE_DEVICES"] == ""


def test_a_gang_has_gates_and_waits_for_its_start() -> None:
    spec = made(order("gpu1", "gpu2"), rank=1)["spec"]
    assert spec["schedulingGates"] == [{"name": "corral/gang"}]
    assert spec["containers"][0]["command"][9] == "/etc/corral/start"
    assert env(made(order("gpu1", "gpu2"), rank=1))["NODE_RANK"] == "1"


def test_memory_is_limited_and_cpus_are_requested() -> None:
    resources = made(order("gpu1", memory_bytes=1 << 30, cpu_milli=1500))["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "1500m", "memory": str(1 << 30)}
    assert resources["limits"] == {"nvidia.com/gpu": "1", "memory": str(1 << 30)}


def test_directories_of_the_job_are_on_the_claim_or_end_with_the_pod() -> None:
    given = order(
        "gpu1", env={"CORRAL_JOB_DIR": "/srv/corral/jobs/j-7", "CORRAL_OUTPUT_DIR": "/srv/corral/jobs/j-7/out"}
    )
    home = PodRules(namespace="ml", default_image="base:1", home=ClaimMount(claim="h", path="/srv", sub_path="top"))
    mounts = made(given, home)["spec"]["containers"][0]["volumeMounts"]
    job = {"name": "claim-h", "mountPath": "/srv/corral/jobs/j-7", "subPath": "top/corral/jobs/j-7"}
    assert [mount for mount in mounts if mount["mountPath"].startswith("/srv")] == [job]
    spec = made(given)["spec"]
    assert {"name": "directory-0", "emptyDir": {}} in spec["volumes"]


def stored(kind: StorageKind, **more: Any) -> LaunchOrder:
    one = StorageOrder(kind=kind, name="data", path="/data", read_only=True, id="v-1", **more)
    return order("gpu1", storage=(one,))


def test_volumes_are_directories_of_the_claim() -> None:
    home = PodRules(namespace="ml", default_image="base:1", home=ClaimMount(claim="h", path="/srv/corral"))
    mounts = made(stored(StorageKind.VOLUME), home)["spec"]["containers"][0]["volumeMounts"]
    data = {"name": "claim-h", "mountPath": "/data", "subPath": "volumes/v-1/data", "readOnly": True}
    assert data in mounts
    with pytest.raises(LaunchRefused, match="not on a claim"):
        made(stored(StorageKind.VOLUME))
    with pytest.raises(LaunchRefused, match="cannot be mounted on a Kubernetes cluster yet"):
        made(stored(StorageKind.DATASET), home)
    local = made(stored(StorageKind.LOCAL, size_bytes=5))
    assert {"name": "local-0", "emptyDir": {"sizeLimit": "5"}} in local["spec"]["volumes"]


def test_a_login_is_a_secret_of_its_own() -> None:
    login = RegistryLogin(registry="r.example.org", username="ada", secret="hush")
    given = order("gpu1", image="r.example.org/x:1", login=login)
    pod, (secret,) = made(given), make_secrets(given, RULES, OWNER)
    assert pod["spec"]["imagePullSecrets"] == [{"name": secret["metadata"]["name"]}]
    assert "hush" not in json.dumps(pod)
    assert json.loads(secret["stringData"][".dockerconfigjson"])["auths"]["r.example.org"]["password"] == "hush"


def test_values_of_secrets_are_not_part_of_the_pod() -> None:
    given = order("gpu1", image="x:1", env={"PLAIN": "seen"}, secret_env={"TOKEN": "hush"})
    pod, (secret,) = made(given), make_secrets(given, RULES, OWNER)
    variables = {one["name"]: one for one in pod["spec"]["containers"][0]["env"]}
    assert variables["TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": secret["metadata"]["name"], "key": "TOKEN"}}
    assert variables["PLAIN"]["value"] == "seen"
    assert "hush" not in json.dumps(pod)
    assert (secret["type"], secret["stringData"]) == ("Opaque", {"TOKEN": "hush"})


def test_names_are_the_same_for_the_same_attempt_and_differ_for_others() -> None:
    assert pod_name("abcd", "j-7.2", 1) == "corral-abcd-j-7-2-1"
    strange = {pod_name("abcd", attempt, 0) for attempt in ("J-7.2", "j-7.2", "j_7.2", "-7.2")}
    assert len(strange) == 4
    assert all(name == name.lower() and "_" not in name for name in strange)


def test_a_job_needs_an_image() -> None:
    check_order(order("gpu1", image="x:1"), PodRules())
    with pytest.raises(LaunchRefused, match="needs an image"):
        check_order(order("gpu1"), PodRules())


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("home:/srv", ClaimMount(claim="home", path="/srv")),
        ("data/a/b:/data/:ro", None),
        ("data/a/b:/data:ro", ClaimMount(claim="data", path="/data", sub_path="a/b", read_only=True)),
        ("home", None),
        ("data/../x:/data", None),
        ("Home:/srv", None),
    ],
)
def test_claims_are_written_in_one_line(text: str, claim: ClaimMount | None) -> None:
    if claim is not None:
        assert parse_claim(text) == claim
        return
    with pytest.raises(ValueError, match="not of the form"):
        parse_claim(text)
