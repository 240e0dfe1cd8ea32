"""`corral init kubernetes`: what it finds in a cluster, and the files that it writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from corral.cli.system.doctor_checks.engine_checks import _kubernetes_cluster
from corral.cli.system.doctor_checks.findings import Verdict
from corral.engines.kubernetes.api.client import ApiClient
from corral.engines.kubernetes.api.kubeconfig import read_kubeconfig
from corral.engines.kubernetes.api.rights import RIGHTS
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.cluster_checks import check_cluster
from corral.server.settings.sections.cluster_sections import ClusterSettings, KubernetesSettings
from tests.unit.cli.runner import corral
from tests.unit.engines.kubernetes.api_server import Answer, ApiServer, Asked, answer, api_server, refusal
from tests.unit.engines.kubernetes.objects import Json, gpu_device, node, resource_slice

CHECKS = ["API server", "Namespace", "Rights", "Nodes", "GPUs", "Trial pod"]


class Cluster:
    """The answers of a new cluster."""

    def __init__(self) -> None:
        self.nodes: list[Json] = [node("gpu1"), node("gpu2")]
        #: None: the account may not list them
        self.slices: list[Json] | None = []
        self.namespaces = {"corral"}
        #: rights that the account lacks, as verb and resource, and in one namespace only
        self.lacks: set[tuple[str, str]] = set()
        self.lacks_in: set[tuple[str, str, str]] = set()
        self.on_pod = answer({}, 201)
        self.created: list[Json] = []

    def respond(self, asked: Asked) -> Answer:
        if asked.path == "/version":
            return answer({"gitVersion": "v1.34.2"})
        if asked.path.endswith("/selfsubjectreviews"):
            return answer({"status": {"userInfo": {"username": "ada@example.org"}}}, 201)
        if asked.path.endswith("/selfsubjectaccessreviews"):
            wanted = asked.body["spec"]["resourceAttributes"]
            right = (wanted["verb"], "/".join(filter(None, (wanted["resource"], wanted["subresource"]))))
            here = (*right, wanted.get("namespace", ""))
            return answer({"status": {"allowed": right not in self.lacks and here not in self.lacks_in}}, 201)
        if asked.path == "/api/v1/nodes":
            return answer({"items": self.nodes})
        if asked.path == "/apis/resource.k8s.io/v1/resourceslices":
            return refusal(403, "no right") if self.slices is None else answer({"items": self.slices})
        if asked.path == "/api/v1/namespaces":
            self.namespaces.add(asked.body["metadata"]["name"])
            return answer(asked.body, 201)
        if asked.path.endswith("/pods"):
            assert asked.params == {"dryRun": "All"}
            self.created.append(asked.body)
            return self.on_pod
        name = asked.path.rpartition("/")[2]
        if name in self.namespaces:
            return answer({"status": {"phase": "Active"}})
        return refusal(404, f'namespaces "{name}" not found', "NotFound")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with api_server(cluster.respond) as served:
        config = {
            "clusters": [{"name": "k", "cluster": {"server": served.url}}],
            "contexts": [{"name": "k", "context": {"cluster": "k"}}],
            "current-context": "k",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield served


def findings(*words: str, code: int = 0) -> dict[str, Json]:
    done = corral("init", "kubernetes", "-o", "json", *words)
    assert done.exit_code == code, done.stderr
    return {one["check"]: one for one in json.loads(done.stdout)["items"]}


def test_a_cluster_where_everything_is_in_place(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    found = findings("--directory", str(tmp_path / "lab"))
    assert list(found) == CHECKS
    assert [one["verdict"] for one in found.values()] == ["OK"] * len(CHECKS)
    assert found["API server"]["detail"] == f"v1.34.2 at {server.url}, as ada@example.org"
    assert found["Nodes"]["detail"] == "2 of 2 nodes can take jobs"
    assert found["GPUs"]["detail"] == "16 A100-SXM4-80GB"
    (tried,) = cluster.created
    assert tried["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    written = yaml.safe_load((tmp_path / "lab" / "corral.yaml").read_text())
    section = {"namespace": "corral", "default_image": "docker.io/library/python:3.12-slim"}
    assert written == {"cluster": [{"name": "kubernetes", "engine": "kubernetes", "kubernetes": section}]}
    assert not (tmp_path / "lab" / "rights.yaml").exists()
    again = corral("init", "kubernetes", "--directory", str(tmp_path / "lab"))
    assert again.exit_code == 1
    assert "exists already" in again.stderr


def test_rights_that_are_missing_are_written_for_an_administrator(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.lacks = {("list", "nodes"), ("create", "pods")}
    found = findings("--directory", str(tmp_path), code=1)
    assert "create pods (to run jobs)" in found["Rights"]["detail"]
    assert found["Rights"]["verdict"] == "FAIL"
    documents = list(yaml.safe_load_all((tmp_path / "rights.yaml").read_text()))
    assert [(one["kind"], one["metadata"].get("namespace")) for one in documents] == [
        ("Role", "corral"),
        ("RoleBinding", "corral"),
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
    ]
    granted = {
        (verb, group, one, document["kind"] == "ClusterRole")
        for document in documents
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for one in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == {(right.verb, right.group, right.resource, right.is_for_cluster) for right in RIGHTS}
    assert documents[1]["subjects"][0]["name"] == "ada@example.org"
    cluster.lacks = {("patch", "nodes")}
    assert findings("--check")["Rights"]["verdict"] == "WARN"


def test_namespaces_of_groups_are_checked_and_get_the_rights_as_well(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    options = ["--group-namespace", "vision=team-vision", "--group-namespace", "speech=team-speech"]
    without = corral("init", "kubernetes", *options, "--directory", str(tmp_path / "early"))
    assert without.exit_code == 1
    assert "kubectl create namespace team-vision" in without.stdout
    assert "kubectl create namespace team-speech" in without.stdout
    assert "kubectl create namespace corral" not in without.stdout

    cluster.lacks_in = {("create", "pods", "team-vision"), ("get", "pods", "team-speech")}
    done = corral("init", "kubernetes", *options, "--create-namespace", "--directory", str(tmp_path), "-o", "json")
    assert cluster.namespaces == {"corral", "team-vision", "team-speech"}
    (rights,) = [one for one in json.loads(done.stdout)["items"] if one["check"] == "Rights"]
    assert rights["verdict"] == "FAIL"
    assert "create pods in team-vision (to run jobs); get pods in team-speech (to run jobs)" in rights["detail"]
    documents = list(yaml.safe_load_all((tmp_path / "rights.yaml").read_text()))
    namespaces = ["corral", "team-vision", "team-speech"]
    for kind in ("Role", "RoleBinding"):
        assert [one["metadata"]["namespace"] for one in documents if one["kind"] == kind] == namespaces
    assert len([one for one in documents if "namespace" not in one["metadata"]]) == 2
    written = yaml.safe_load((tmp_path / "corral.yaml").read_text())["cluster"][0]["kubernetes"]
    assert written["group_namespaces"] == {"vision": "team-vision", "speech": "team-speech"}

    inside = corral("init", "kubernetes", *options, "--inside", "--directory", str(tmp_path))
    assert inside.exit_code == 1
    values = yaml.safe_load((tmp_path / "values.yaml").read_text())
    assert values["cluster"]["kubernetes"]["group_namespaces"] == written["group_namespaces"]


def test_each_right_that_is_missing_in_one_namespace_only_is_named(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.namespaces.add("team-vision")
    cluster.slices = [resource_slice("gpu1", gpu_device("gpu-0", "GPU-1"))]
    rules = PodRules(namespace="corral", group_namespaces={"vision": "team-vision"})
    api = ApiClient(read_kubeconfig([tmp_path / "kubeconfig"]))
    for right in RIGHTS:
        where = "" if right.is_for_cluster else "team-vision"
        cluster.lacks_in = {(right.verb, right.resource, where)}
        (found,) = [one for one in check_cluster(api, rules) if one.check == "Rights"]
        assert str(found.verdict) == ("WARN" if right.is_optional else "FAIL")
        assert f"{right}{' in team-vision' if where else ''} (to {right.purpose})" in found.detail
        assert found.detail.count("(to ") == 1
    api.close()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("vision", "expected NAME=VALUE, got 'vision'"),
        ("=team-vision", "expected NAME=VALUE"),
        ("vision=Team_Vision", "group_namespaces.vision"),
        ("vision=", "group_namespaces.vision"),
    ],
)
def test_a_namespace_of_a_group_that_cannot_be_is_refused(server: ApiServer, option: str, words: str) -> None:
    done = corral("init", "kubernetes", "--check", "--group-namespace", option)
    assert done.exit_code == 2
    assert words in done.stderr


def test_gpus_of_drivers_are_found_and_their_rights_are_wanted_only_there(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    claims = {("create", "resourceclaims")}
    cluster.lacks = claims
    assert findings("--check")["Rights"]["verdict"] == "OK"

    cluster.nodes = [node("gpu1", gpus=0)]
    cluster.slices = [resource_slice("gpu1", gpu_device("gpu-0", "GPU-1"), gpu_device("gpu-1", "GPU-2"))]
    found = findings("--check")
    assert found["Rights"]["verdict"] == "WARN"
    assert "create resourceclaims (to give the GPUs of drivers to jobs)" in found["Rights"]["detail"]
    assert found["GPUs"]["detail"] == "2 A100-SXM4-80GB"
    (tried,) = cluster.created[-1:]
    assert tried["spec"]["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    assert tried["spec"]["resourceClaims"][0]["resourceClaimName"] == tried["metadata"]["name"]

    # Nothing shows whether this cluster has such GPUs: its nodes have no others.
    cluster.slices, cluster.lacks = None, {("list", "resourceslices")}
    assert "list resourceslices in all namespaces" in findings("--check")["Rights"]["detail"]
    cluster.nodes = [node("gpu1")]
    assert findings("--check")["Rights"]["verdict"] == "OK"


def test_a_namespace_is_created_on_request_only(server: ApiServer, cluster: Cluster) -> None:
    missing = findings("--check", "--namespace", "lab", code=1)
    assert "Trial pod" not in missing
    assert missing["Namespace"]["fix"] == "kubectl create namespace lab, or use --create-namespace."
    assert findings("--check", "--namespace", "lab", "--create-namespace")["Namespace"]["verdict"] == "OK"
    assert cluster.namespaces == {"corral", "lab"}


def test_nodes_that_take_no_jobs_and_gpus_that_are_not_there_are_named(server: ApiServer, cluster: Cluster) -> None:
    cluster.nodes[0]["spec"]["unschedulable"] = True
    for one in cluster.nodes:
        one["status"]["capacity"].pop("nvidia.com/gpu")
    found = findings("--check")
    assert found["Nodes"]["detail"] == "1 of 2 nodes can take jobs; gpu1: cordoned in Kubernetes"
    assert (found["GPUs"]["verdict"], found["GPUs"]["detail"]) == ("WARN", "no node reports any")
    cluster.nodes[1]["spec"]["taints"] = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    none = findings("--check", code=1)
    assert "gpu2: tainted in Kubernetes: dedicated=ml:NoSchedule" in none["Nodes"]["detail"]
    assert none["Trial pod"]["detail"] == "not tried: no node can take jobs"


def test_a_pod_that_would_be_refused_is_said_in_plain_words(server: ApiServer, cluster: Cluster) -> None:
    message = 'pods "x" is forbidden: failed quota: compute: must specify limits.memory for: job'
    cluster.on_pod = refusal(403, message)
    found = findings("--check", code=1)
    assert "wants limits.memory of every pod" in found["Trial pod"]["detail"]


def test_a_server_in_the_cluster_gets_values_of_the_chart(server: ApiServer, tmp_path: Path) -> None:
    done = corral("init", "kubernetes", "--inside", "--repository", "example.org/corral", "--directory", str(tmp_path))
    assert done.exit_code == 0, done.stderr
    values = yaml.safe_load((tmp_path / "values.yaml").read_text())
    assert values["image"] == {"repository": "example.org/corral"}
    assert values["cluster"]["kubernetes"] == {"default_image": "docker.io/library/python:3.12-slim"}
    assert "helm install corral" in done.stdout + done.stderr
    assert not (tmp_path / "corral.yaml").exists()


def test_a_cluster_that_does_not_answer_and_a_kubeconfig_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = corral("init", "kubernetes", "--check", "--kubeconfig", str(tmp_path / "none"))
    assert missing.exit_code == 1
    assert "there is no such file" in missing.stderr
    config = {
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "k", "context": {"cluster": "k"}}],
        "current-context": "k",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    assert findings("--check", code=1)["API server"]["verdict"] == "FAIL"


def test_the_doctor_names_missing_rights_and_says_when_none_is_missing(server: ApiServer, cluster: Cluster) -> None:
    section = KubernetesSettings(namespace="corral", default_image="base:1")
    configured = ClusterSettings(name="lab", engine="kubernetes", kubernetes=section)
    found = _kubernetes_cluster(configured)
    assert (found.verdict, found.detail) == (Verdict.OK, "lab: v1.34.2, namespace corral")
    cluster.lacks = {("list", "events")}
    found = _kubernetes_cluster(configured)
    assert (found.verdict, found.detail) == (
        Verdict.WARN,
        "lab: Rights: missing, and corral works without: list events (to show why a node does not start a pod)",
    )
    cluster.lacks = {("create", "pods")}
    assert _kubernetes_cluster(configured).verdict is Verdict.FAIL
