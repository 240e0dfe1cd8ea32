"""Checks a Kubernetes cluster for corral: whether it is reached, which rights are missing, which nodes and GPUs jobs
can use, and whether the API server accepts a pod of a job (in a dry run).

`corral init kubernetes` and `corral doctor` show the findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from corral.control.ports import Instance, LaunchOrder, LaunchRefused
from corral.core.counts import counted
from corral.core.model import Node, NodeState
from corral.engines.kubernetes.api.client import (
    ApiClient,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    ApiUnavailable,
    Json,
)
from corral.engines.kubernetes.api.objects import name_of
from corral.engines.kubernetes.api.refusals import plain_refusal
from corral.engines.kubernetes.api.rights import missing_in
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pods import PodOwner, make_pod
from corral.engines.kubernetes.cluster.nodes import FleetRules, gpus_asked, gpus_of, is_selected, nodes_seen
from corral.engines.kubernetes.devices.node_devices import node_devices
from corral.engines.kubernetes.devices.resource_claims import API_VERSION as CLAIM_API
from corral.engines.kubernetes.devices.resource_slices import NodeSlices, devices_of, is_of_gpus

_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#: nodes that are named one by one
_NAMED = 3
_SLICES = f"/apis/{CLAIM_API}/resourceslices"
RIGHTS_FIX = "An administrator of the cluster gives these rights to the account (`corral init kubernetes` writes them)."


class Verdict(StrEnum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterFinding:
    check: str
    verdict: Verdict
    detail: str
    #: how to fix it
    fix: str = ""
    #: the namespace that it is about
    namespace: str = ""


def check_cluster(api: ApiClient, rules: PodRules) -> Iterator[ClusterFinding]:
    """Stops after a finding without which the others mean nothing. Raises nothing of the API server."""
    try:
        yield _server(api)
        found = {namespace: replace(_namespace(api, namespace), namespace=namespace) for namespace in rules.namespaces}
        yield from found.values()
        nodes, slices = _nodes(api), _listed(api, _SLICES)
        published = _published(slices or (), rules.fleet)
        counts_any = any(gpus_of(node, rules.fleet) for node in nodes or ())
        yield _rights(api, rules.namespaces, uses_devices=bool(published) or (slices is None and not counts_any))
        if nodes is not None:
            devices = {name: node_devices(found, {}, ()) for name, found in published.items()}
            seen = nodes_seen(nodes, {}, {}, (), rules.fleet, devices=devices)
            yield _readiness(nodes, seen, rules)
            yield _gpus(seen, sum(found.unnamed for found in published.values()))
            for namespace, finding in found.items():
                if finding.verdict is not Verdict.FAIL:
                    yield _trial(api, nodes, seen, published, replace(rules, namespace=namespace))
    except (ApiError, ApiUnavailable) as error:
        fix = "`kubectl --kubeconfig FILE get --raw /version` must answer; name another file or --context."
        yield _fail("API server", f"{api.access.server}: {error}", fix)


def user_of(api: ApiClient) -> str:
    """The account of the credentials; "" if the API server is too old to tell. Raises ApiError and ApiUnavailable."""
    body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        status = api.create(_WHO, body).get("status") or {}
    except (ApiNotFound, ApiForbidden):
        return ""
    return str((status.get("userInfo") or {}).get("username") or "")


def create_namespace(api: ApiClient, name: str) -> None:
    """A namespace whose pods pass the `restricted` standard, as corral's do. Raises ApiError and ApiUnavailable."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    api.create("/api/v1/namespaces", body)


def _server(api: ApiClient) -> ClusterFinding:
    version, user = api.get("/version").get("gitVersion", "unknown"), user_of(api)
    return _ok("API server", f"{version} at {api.access.server}{f', as {user}' if user else ''}")


def _namespace(api: ApiClient, name: str) -> ClusterFinding:
    try:
        phase = (api.get(f"/api/v1/namespaces/{name}").get("status") or {}).get("phase")
    except ApiNotFound:
        fix = f"kubectl create namespace {name}, or use --create-namespace."
        return _fail("Namespace", f"there is no namespace {name}", fix)
    except ApiForbidden:
        return _ok("Namespace", f"{name} (this account may not look at it)")
    if phase == "Terminating":
        return _fail("Namespace", f"{name} is being deleted", "Wait until it is gone and create it again.")
    return _ok("Namespace", name)


def _rights(api: ApiClient, namespaces: Sequence[str], *, uses_devices: bool) -> ClusterFinding:
    missing = list(missing_in(api, namespaces, uses_devices=uses_devices))
    if not missing:
        return _ok("Rights", "all that corral uses")
    is_one = len(namespaces) == 1
    text = "; ".join(
        f"{right}{f' in {namespace}' if namespace and not is_one else ''} (to {right.purpose})"
        for namespace, right in missing
    )
    if all(right.is_optional for _, right in missing):
        return _warn("Rights", f"missing, and corral works without: {text}", RIGHTS_FIX)
    return _fail("Rights", f"missing: {text}", RIGHTS_FIX)


def _nodes(api: ApiClient) -> list[Json] | None:
    """All nodes; None if this account may not list them."""
    return _listed(api, "/api/v1/nodes")


def _listed(api: ApiClient, path: str) -> list[Json] | None:
    """All objects there, none if this Kubernetes has no such; None if this account may not list them."""
    try:
        items: list[Json] = api.get(path)["items"]
    except ApiForbidden:
        return None
    except ApiNotFound:
        return []
    return items


def _published(slices: Sequence[Json], fleet: FleetRules) -> dict[str, NodeSlices]:
    """The devices that drivers publish, by node."""
    by_node: dict[str, list[Json]] = {}
    for slice in slices:
        if is_of_gpus(slice, fleet.device_classes):
            by_node.setdefault(slice["spec"]["nodeName"], []).append(slice)
    return {
        node: devices_of(node, found, fleet.device_classes, fleet.models) for node, found in sorted(by_node.items())
    }


def _readiness(nodes: Sequence[Json], seen: Sequence[Node], rules: PodRules) -> ClusterFinding:
    ready = [node for node in seen if node.state is NodeState.READY]
    withheld = [f"{node.id}: {node.reason}" for node in seen if node.state is not NodeState.READY]
    left_out = sorted(name_of(node) for node in nodes if not is_selected(node, rules.fleet))
    parts = [f"{len(ready)} of {counted(len(nodes), 'node')} can take jobs"]
    parts += withheld[:_NAMED] + ([f"{len(withheld) - _NAMED} more are withheld"] if len(withheld) > _NAMED else [])
    if left_out:
        parts.append(f"not used (control plane, or not selected): {', '.join(left_out[:_NAMED])}")
        parts += [f"and {len(left_out) - _NAMED} more"] if len(left_out) > _NAMED else []
    text = "; ".join(parts)
    if not ready:
        fix = "Name the taints of nodes in cluster.kubernetes.tolerations, or uncordon one."
        return _fail("Nodes", text, fix)
    return _warn("Nodes", text) if withheld else _ok("Nodes", text)


def _gpus(seen: Sequence[Node], unnamed: int) -> ClusterFinding:
    models = Counter(gpu.model for node in seen for gpu in node.gpus)
    if not models:
        fix = (
            "Install the vendor's device plugin (`kubectl describe node` must list nvidia.com/gpu or amd.com/gpu), or "
            "its driver for Dynamic Resource Allocation (`kubectl get resourceslices` must list its devices)."
        )
        return _warn("GPUs", "no node reports any", fix)
    away = sum(len(node.taken.gpus) for node in seen)
    text = ", ".join(f"{count} {model}" for model, count in sorted(models.items()))
    text += f"; {away} not healthy" if away else ""
    text += f"; {unnamed} not used, as their driver publishes no attribute in which they differ" if unnamed else ""
    if "GPU" in models:
        fix = "Install GPU feature discovery, or name the models in cluster.kubernetes.models."
        return _warn("GPUs", f"{text}: the model of some is unknown", fix)
    return _ok("GPUs", text)


def _trial(
    api: ApiClient,
    nodes: Sequence[Json],
    seen: Sequence[Node],
    published: Mapping[str, NodeSlices],
    rules: PodRules,
) -> ClusterFinding:
    """A pod as a job would have it, which the API server checks and does not keep."""
    if not rules.default_image:
        return _warn("Trial pod", "not tried: there is no default image", "Set cluster.kubernetes.default_image.")
    ready = sorted((node for node in seen if node.state is NodeState.READY), key=lambda node: -len(node.gpus))
    if not ready:
        return _warn("Trial pod", "not tried: no node can take jobs")
    gpus = tuple(gpu.id for gpu in ready[0].gpus if gpu.id not in ready[0].taken.gpus)[:1]
    instance = Instance(rank=0, node=ready[0].id, gpu_ids=gpus, gpu_indexes=tuple(range(len(gpus))))
    order = LaunchOrder(
        attempt_id="trial.1", job_id="trial", user="trial", command=("/bin/true",), instances=(instance,)
    )
    owner = PodOwner(installation="trial", term=0, key="trial", uid=rules.uid, gid=rules.gid)
    node = next(node for node in nodes if name_of(node) == ready[0].id)
    mine = published.get(ready[0].id, NodeSlices()).devices
    devices = tuple(device for device in mine if device.gpu_id in gpus)
    asked = {} if devices else gpus_asked(node, gpus, rules.fleet)
    try:
        pod = make_pod(order, instance, rules, owner, gpus=asked, places=None, devices=devices)
        api.create(f"/api/v1/namespaces/{rules.namespace}/pods?dryRun=All", pod)
    except (ApiError, LaunchRefused) as refusal:
        fix = "A job would be refused in the same words: change what they name, or the settings of the cluster."
        return _fail("Trial pod", plain_refusal(str(refusal), rules.namespace), fix)
    where = "" if len(rules.namespaces) == 1 else f" (namespace {rules.namespace})"
    with_gpu = "with a GPU" if gpus else "without a GPU"
    return _ok("Trial pod", f"the API server accepts a pod {with_gpu} on {ready[0].id}; none was made{where}")


def _ok(check: str, detail: str) -> ClusterFinding:
    return ClusterFinding(check=check, verdict=Verdict.OK, detail=detail)


def _warn(check: str, detail: str, fix: str = "") -> ClusterFinding:
    return ClusterFinding(check=check, verdict=Verdict.WARN, detail=detail, fix=fix)


def _fail(check: str, detail: str, fix: str = "") -> ClusterFinding:
    return ClusterFinding(check=check, verdict=Verdict.FAIL, detail=detail, fix=fix)
