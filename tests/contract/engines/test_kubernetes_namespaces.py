"""Groups with namespaces of their own, on a real Kubernetes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from corral.control.ports import EngineUnavailable, LaunchOrder, LaunchRefused, RegistryLogin
from corral.core.model import EndReason
from corral.engines.kubernetes import cluster_checks, leftovers
from corral.engines.kubernetes.api.client import ApiClient, Json
from corral.engines.kubernetes.api.credentials import StaticToken
from corral.engines.kubernetes.api.kubeconfig import Access, read_kubeconfig
from corral.engines.kubernetes.api.rights import RIGHTS
from corral.engines.kubernetes.api.roles import roles
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.engine import KubernetesEngine
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.kubernetes_harness import NAMESPACE, KubernetesHarness
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow


class GroupedHarness(KubernetesHarness):
    """The group vision has a namespace of its own."""

    def __init__(self, root: Path, access: KubernetesAccess, vision: str) -> None:
        self.vision = vision
        self.rules = {"group_namespaces": {"vision": vision}, "mounts": ()}
        #: a token of another account than the administrator's
        self.token = ""
        super().__init__(root, access)

    def new_engine(self) -> KubernetesEngine:
        engine = super().new_engine()
        if not self.token:
            return engine
        engine.close()
        rules = PodRules(namespace=NAMESPACE, default_image=self.image)
        api = ApiClient(with_token(self.kubeconfig, self.token))
        return KubernetesEngine(root=self.root, api=api, rules=replace(rules, **self.rules), look_seconds=0.2)

    def pods_in(self, namespace: str, kind: str = "pods") -> list[str]:
        selector = f"corral/installation={self.engine.describe()['installation']}"
        found = self.api.get(f"/api/v1/namespaces/{namespace}/{kind}", {"labelSelector": selector})["items"]
        return sorted(one["metadata"]["name"] for one in found)

    def clean_up(self) -> None:
        super().clean_up()
        api = ApiClient(read_kubeconfig([self.kubeconfig]))
        leftovers.remove(api, [self.vision], self.engine.describe()["installation"])
        api.delete(f"/api/v1/namespaces/{self.vision}")
        api.close()


def with_token(kubeconfig: Path, token: str) -> Access:
    access = read_kubeconfig([kubeconfig])
    return replace(access, credential=StaticToken(token), client_certificate=None, client_key=None)


@pytest.fixture
def cluster(tmp_path: Path, kubernetes_access: KubernetesAccess) -> Iterator[GroupedHarness]:
    api = ApiClient(read_kubeconfig([kubernetes_access.kubeconfig]))
    vision = f"vision-{uuid4().hex[:6]}"
    cluster_checks.create_namespace(api, vision)
    api.close()
    harness = GroupedHarness(tmp_path / "engine", kubernetes_access, vision)
    yield harness
    harness.clean_up()


def of_vision(launched: LaunchOrder) -> LaunchOrder:
    return replace(launched, group="vision")


def limit(cluster: GroupedHarness, kind: str, spec: Json) -> None:
    plural = {"ResourceQuota": "resourcequotas", "LimitRange": "limitranges"}[kind]
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "limits"}, "spec": spec}
    cluster.api.create(f"/api/v1/namespaces/{cluster.vision}/{plural}", body)


def test_jobs_of_a_group_run_in_its_namespace_and_leave_nothing_there(cluster: GroupedHarness) -> None:
    login = RegistryLogin(registry="example.org", username="ada", secret="s")
    text = "echo hello $TOKEN; while :; do sleep 0.1; done"
    mine = order(*script(text), gpus=1, env={"TOKEN": "t"}, secret_env={"TOKEN": "t"}, login=login)
    cluster.launch(of_vision(mine))
    cluster.launch(order(*script("echo elsewhere; sleep 600"), attempt_id="j-2.1", gpus=1))
    wait_until(lambda: cluster.output() == "hello t\n", "its log is read")
    wait_until(lambda: cluster.output("j-2.1") == "elsewhere\n", "the other's log is read")
    assert [len(cluster.pods_in(one)) for one in (cluster.vision, NAMESPACE)] == [1, 1]
    assert len(cluster.pods_in(cluster.vision, "secrets")) == 2
    assert leftovers.installations(cluster.api, [NAMESPACE, cluster.vision])[
        cluster.engine.describe()["installation"]
    ] == {"pods": 2, "secrets": 2}

    # The engine of the next server knows where they are, whatever the configuration says by then.
    cluster.stop_server()
    cluster.rules = {"mounts": ()}
    cluster.start()
    for attempt_id in ("j-1.1", "j-2.1"):
        assert cluster.status(attempt_id) is not None
        cluster.engine.stop(attempt_id, 1.0)
        assert cluster.listener.ended(attempt_id).reason is EndReason.EXIT_CODE
    cluster.engine.forget(["j-1.1", "j-2.1"])
    wait_until(lambda: not cluster.pods_in(cluster.vision) and not cluster.pods_in(NAMESPACE), "no pod stays")
    wait_until(lambda: not cluster.pods_in(cluster.vision, "secrets"), "no secret stays")


def test_a_restored_server_finds_the_pods_of_a_group(cluster: GroupedHarness) -> None:
    cluster.launch(of_vision(order(*script("trap 'exit 7' TERM; while :; do sleep 0.1; done"), nodes=2)))
    cluster.listener.running()
    pods = cluster.pods_in(cluster.vision)
    cluster.stop_server()
    engine_id = (cluster.root / "engine-id").read_text()
    shutil.rmtree(cluster.root)
    cluster.root.mkdir()
    (cluster.root / "engine-id").write_text(engine_id)
    cluster.start()
    assert cluster.status() is not None
    assert cluster.pods_in(cluster.vision) == pods
    cluster.engine.stop("j-1.1", 5.0)
    assert cluster.listener.ended().exit_code == 7


def test_refusals_of_a_namespace_are_said_in_plain_words(cluster: GroupedHarness) -> None:
    limit(cluster, "ResourceQuota", {"hard": {"requests.nvidia.com/gpu": "2"}})
    sleeping = script("sleep 600")
    cluster.launch(of_vision(order(*sleeping, gpus=2)))
    second = cluster.on_nodes(of_vision(order(*sleeping, attempt_id="j-2.1", gpus=1)))
    words = "allows 2 GPUs .nvidia.com/gpu. at most, of which 2 are used and 1 more requested"
    with pytest.raises(EngineUnavailable, match=words):
        cluster.engine.launch(second)
    with pytest.raises(LaunchRefused, match="allows 2 GPUs"):
        cluster.engine.launch(cluster.on_nodes(of_vision(order(*sleeping, attempt_id="j-3.1", gpus=3))))
    # Once the first is gone there is room.
    cluster.listener.running()
    cluster.engine.stop("j-1.1", 1.0)
    cluster.listener.ended()
    cluster.engine.forget(["j-1.1"])
    cluster.launch(of_vision(order(*sleeping, attempt_id="j-2.1", gpus=1)))
    cluster.listener.running("j-2.1")

    limit(cluster, "LimitRange", {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]})
    large = of_vision(order(*sleeping, attempt_id="j-4.1", memory_bytes=256 << 20))
    with pytest.raises(LaunchRefused, match="at most 64Mi memory for each container, not"):
        cluster.engine.launch(cluster.on_nodes(large))


def test_the_rights_of_the_roles_are_enough_without_a_view_of_other_namespaces(
    cluster: GroupedHarness, kubernetes_access: KubernetesAccess
) -> None:
    account = f"corral-{uuid4().hex[:6]}"
    user = f"system:serviceaccount:{cluster.vision}:{account}"
    kubernetes_access.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": cluster.vision}}
    )
    documents = roles([NAMESPACE, cluster.vision], user, name=account)
    for one in documents:
        if one["kind"] == "ClusterRole":
            one["rules"] = [rule for rule in one["rules"] if rule["resources"] == ["nodes"]]
    kubernetes_access.create(*documents)
    cluster.stop_server()
    cluster.token = kubernetes_access.kubectl("create", "token", account, "-n", cluster.vision).strip()
    cluster.start()
    try:
        rules = PodRules(namespace=NAMESPACE, default_image=cluster.image, **cluster.rules)
        api = ApiClient(with_token(cluster.kubeconfig, cluster.token))
        found = list(cluster_checks.check_cluster(api, rules))
        api.close()
        assert {one.check: str(one.verdict) for one in found if one.check != "Nodes"} == {
            "API server": "OK",
            "Namespace": "OK",
            "Rights": "WARN",
            "GPUs": "OK",
            "Trial pod": "OK",
        }
        (missing,) = [one.detail for one in found if one.check == "Rights"]
        assert all(str(right) in missing for right in RIGHTS if right.is_for_cluster and right.resource == "pods")

        cluster.launch(of_vision(order(*script("echo mine; exit 3"), gpus=1)))
        cluster.launch(order(*script("echo other"), attempt_id="j-2.1", gpus=1))
        assert cluster.listener.ended().exit_code == 3
        assert cluster.listener.ended("j-2.1").exit_code == 0
        assert (cluster.output(), cluster.output("j-2.1")) == ("mine\n", "other\n")
        cluster.engine.forget(["j-1.1", "j-2.1"])
        wait_until(lambda: not cluster.pods_in(cluster.vision) and not cluster.pods_in(NAMESPACE), "nothing stays")
    finally:
        cluster.token = ""
        for kind in ("clusterrole", "clusterrolebinding"):
            kubernetes_access.kubectl("delete", kind, account)
        for kind in ("role", "rolebinding"):
            kubernetes_access.kubectl("delete", kind, account, "-n", NAMESPACE)
