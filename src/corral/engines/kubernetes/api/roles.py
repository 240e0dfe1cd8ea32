"""The roles with the rights of the engine, as objects that `kubectl apply` takes. Pure.

The chart has the same rights for a server in the cluster; these are for the account of a kubeconfig.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.rights import RIGHTS, Right

_GROUP = "rbac.authorization.k8s.io"
_SERVICE_ACCOUNT = "system:serviceaccount:"


def roles(namespaces: Sequence[str], user: str, *, name: str = "corral-jobs") -> list[Json]:
    """A role in each namespace of jobs and one for the cluster, bound to the user of the API."""
    subject = _subject(user)
    made: list[Json] = []
    for namespace in namespaces:
        made += [
            _role("Role", name, [right for right in RIGHTS if not right.is_for_cluster], namespace),
            _binding("Role", name, subject, namespace),
        ]
    made += [
        _role("ClusterRole", name, [right for right in RIGHTS if right.is_for_cluster]),
        _binding("ClusterRole", name, subject),
    ]
    return made


def _role(kind: str, name: str, rights: Iterable[Right], namespace: str = "") -> Json:
    verbs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for right in rights:
        verbs[right.group, right.resource].append(right.verb)
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": sorted(found)}
        for (group, resource), found in verbs.items()
    ]
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace), "rules": rules}


def _binding(kind: str, name: str, subject: Json, namespace: str = "") -> Json:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }


def _metadata(name: str, namespace: str) -> Json:
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _subject(user: str) -> Json:
    if user.startswith(_SERVICE_ACCOUNT):
        namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"kind": "User", "apiGroup": _GROUP, "name": user}
