"""The Helm chart: rendered by Helm itself with each of its options, and validated by a real API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from corral.engines.kubernetes.api.rights import RIGHTS
from corral.server.settings.config_file import parse_config
from tests.servers.kubernetes import programs
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "corral"
EVERYTHING: dict[str, Any] = {
    "database": {"secret": "corral-database"},
    "operator": {"secret": "corral-operator"},
    "home": {"shared": True, "storageClass": "nfs"},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "corral-tls"},
    "exporter": {"enabled": True, "nodeSelector": {"nvidia.com/gpu.present": "true"}},
    "networkPolicy": {"enabled": True, "allowFrom": [{"kubernetes.io/metadata.name": "ingress-nginx"}]},
    "priorityClass": {"create": True},
    "config": {"server": {"log_format": "json"}},
}


@pytest.fixture(scope="module")
def helm() -> Path:
    found = programs.find_helm()
    if found is None:
        pytest.skip(programs.HOW_TO_BUILD)
    return found


def render(helm: Path, values: dict[str, Any], namespace: str = "platform") -> dict[tuple[str, str], Any]:
    """The objects by kind and name."""
    command = [str(helm), "template", "lab", str(CHART), "--namespace", namespace, "--values", "-"]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr)
    objects = [found for found in yaml.safe_load_all(done.stdout) if found]
    return {(found["kind"], found["metadata"]["name"]): found for found in objects}


def test_helm_finds_no_fault(helm: Path) -> None:
    done = subprocess.run([helm, "lint", "--strict", CHART], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_the_least_is_a_server_with_a_home_and_its_rights(helm: Path) -> None:
    objects = render(helm, {})

    assert set(objects) == {
        ("ServiceAccount", "lab-corral"),
        ("ConfigMap", "lab-corral"),
        ("StatefulSet", "lab-corral"),
        ("Service", "lab-corral"),
        ("Role", "lab-corral-jobs"),
        ("RoleBinding", "lab-corral-jobs"),
        ("ClusterRole", "platform-lab-corral"),
        ("ClusterRoleBinding", "platform-lab-corral"),
    }
    claim = objects["StatefulSet", "lab-corral"]["spec"]["volumeClaimTemplates"][0]["spec"]
    assert claim == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}


def test_each_namespace_of_a_group_has_the_role_and_the_network_policy(helm: Path) -> None:
    groups = {"vision": "team-vision", "speech": "team-speech", "guests": "platform"}
    values = {
        "cluster": {"name": "k", "engine": "kubernetes", "kubernetes": {"group_namespaces": groups}},
        "networkPolicy": {"enabled": True},
    }
    command = [str(helm), "template", "lab", str(CHART), "--namespace", "platform", "--values", "-"]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True)
    objects = [one for one in yaml.safe_load_all(done.stdout) if one]
    roles = [one for one in objects if one["kind"] in ("Role", "RoleBinding")]
    places = sorted((one["kind"], one["metadata"]["namespace"]) for one in roles)
    namespaces = ["platform", "team-speech", "team-vision"]
    assert places == [(kind, one) for kind in ("Role", "RoleBinding") for one in namespaces]
    assert all(one.get("rules", roles[0]["rules"]) == roles[0]["rules"] for one in roles)
    policies = [one for one in objects if one["kind"] == "NetworkPolicy" and one["metadata"]["name"].endswith("-jobs")]
    assert sorted(one["metadata"]["namespace"] for one in policies) == namespaces
    assert all(one["spec"] == policies[0]["spec"] for one in policies)


def test_the_configuration_names_the_namespace_and_a_shared_home(helm: Path) -> None:
    text = render(helm, EVERYTHING)["ConfigMap", "lab-corral"]["data"]["corral.yaml"]

    assert parse_config(text, "corral.yaml").values == {
        "cluster": {
            "name": "kubernetes",
            "engine": "kubernetes",
            "kubernetes": {
                "namespace": "platform",
                "home": "home-lab-corral-0:/var/lib/corral",
                "exporter_namespace": "platform",
            },
        },
        "server": {"log_format": "json"},
    }


def test_a_shared_home_with_jobs_elsewhere_is_refused(helm: Path) -> None:
    with pytest.raises(ValueError, match="jobs in another namespace cannot mount the claim"):
        render(helm, {"home": {"shared": True}, "jobs": {"namespace": "jobs"}})


def test_the_roles_are_the_rights_that_the_engine_uses(helm: Path) -> None:
    roles = {kind: found for (kind, _), found in render(helm, {}).items() if kind in {"Role", "ClusterRole"}}

    granted = {
        (kind == "ClusterRole", group, resource, verb)
        for kind, role in roles.items()
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert granted == {(right.is_for_cluster, right.group, right.resource, right.verb) for right in RIGHTS}


def test_rights_that_are_not_wanted_are_not_there(helm: Path) -> None:
    objects = render(
        helm, {"rights": {"seeOthers": False, "drain": False, "devices": False}, "jobs": {"namespace": "jobs"}}
    )

    assert objects["ClusterRole", "platform-lab-corral"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
    ]
    assert objects["Role", "lab-corral-jobs"]["metadata"]["namespace"] == "jobs"
    groups = {group for rule in objects["Role", "lab-corral-jobs"]["rules"] for group in rule["apiGroups"]}
    assert groups == {""}
    assert objects["RoleBinding", "lab-corral-jobs"]["subjects"][0]["namespace"] == "platform"


@pytest.fixture
def namespace(kubernetes_access: KubernetesAccess) -> Iterator[str]:
    """One that refuses pods which could become root on a node."""
    name = f"platform-{uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubernetes_access.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    yield name
    kubernetes_access.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["least", "everything"])
def test_an_api_server_takes_every_object(
    helm: Path, kubernetes_access: KubernetesAccess, namespace: str, values: dict[str, Any]
) -> None:
    objects = list(render(helm, values, namespace).values())

    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    words = ("apply", "--dry-run=server", "--validate=strict", f"--namespace={namespace}", "-f", "-", "--output=name")
    taken = kubernetes_access.kubectl(*words, given=given)

    assert len(taken.split()) == len(objects)


def test_pods_pass_the_restricted_standard(helm: Path, kubernetes_access: KubernetesAccess, namespace: str) -> None:
    objects = render(helm, EVERYTHING, namespace)
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                **found["spec"]["template"]["spec"],
                # The claim of the StatefulSet, as its controller would add it.
                "volumes": [
                    *found["spec"]["template"]["spec"]["volumes"],
                    *([{"name": "home", "emptyDir": {}}] if kind == "StatefulSet" else []),
                ],
            },
        }
        for (kind, name), found in objects.items()
        if kind in {"StatefulSet", "DaemonSet"}
    ]
    account = objects["ServiceAccount", "lab-corral"]
    kubernetes_access.create({**account, "metadata": {"name": "lab-corral", "namespace": namespace}})

    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    taken = kubernetes_access.kubectl("create", "--dry-run=server", "-f", "-", "--output=name", given=given)

    assert sorted(taken.split()) == ["pod/lab-corral", "pod/lab-corral-exporter"]
