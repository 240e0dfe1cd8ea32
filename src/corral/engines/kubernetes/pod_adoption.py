"""Attempts of which only the pods are left: after a backup was restored, the engine's records are gone or older.

Pods have the id of the installation, which is in every backup. From them the records are made anew, so that the
programs go on and no job runs twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import annotations_of, container_of, labels_of, moment, name_of
from corral.engines.kubernetes.api.pod_refs import ref_of
from corral.engines.kubernetes.attempts.pod_commands import key_of
from corral.engines.kubernetes.attempts.pods import (
    ATTEMPT_LABEL,
    GPUS_ANNOTATION,
    RANK_LABEL,
    SIZE_ANNOTATION,
    env_secret_name,
    is_safe_id,
    limit_of_program,
    pod_name,
    secret_name,
)


def documents(pods: Iterable[Json], installation: str, home: str, now: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """The first note of each attempt whose pods are all there, as `pod_attempt.create` writes it, with its id. `home`
    is the engine's own namespace."""
    found: dict[str, dict[int, Json]] = {}
    for pod in pods:
        attempt_id, rank = annotations_of(pod).get(ATTEMPT_LABEL, ""), labels_of(pod).get(RANK_LABEL, "")
        if is_safe_id(attempt_id) and rank.isdigit() and name_of(pod) == pod_name(installation, attempt_id, int(rank)):
            found.setdefault(attempt_id, {})[int(rank)] = pod
    for attempt_id, ranks in found.items():
        try:
            document = _document(attempt_id, ranks, installation, home, now)
        except (KeyError, IndexError, TypeError, ValueError):
            continue  # made by an older version, or by another user of Kubernetes
        if document is not None:
            yield attempt_id, document


def _document(
    attempt_id: str, ranks: Mapping[int, Json], installation: str, home: str, now: float
) -> dict[str, Any] | None:
    """The attempt of these pods; None if a pod is missing, or if they are not of the same launch."""
    size = int(annotations_of(ranks[0])[SIZE_ANNOTATION])
    keys = {key_of(pod) for pod in ranks.values()}
    namespaces = {pod["metadata"].get("namespace") for pod in ranks.values()}
    if sorted(ranks) != list(range(size)) or len(keys) != 1 or "" in keys or len(namespaces) != 1:
        return None
    pods = [ranks[rank] for rank in range(size)]
    pulls = {secret["name"] for secret in pods[0]["spec"].get("imagePullSecrets") or ()}
    values = [variable.get("valueFrom") or {} for variable in container_of(pods[0]).get("env") or ()]
    secrets = {(value.get("secretKeyRef") or {}).get("name") for value in values}
    return {
        "nodes": [_node(pod) for pod in pods],
        "gpus": [[gpu_id for gpu_id in annotations_of(pod)[GPUS_ANNOTATION].split(",") if gpu_id] for pod in pods],
        "grace_seconds": float(pods[0]["spec"]["terminationGracePeriodSeconds"]),
        "limit_seconds": limit_of_program(pods[0]),
        "created_at": min(moment(pod["metadata"].get("creationTimestamp")) or now for pod in pods),
        "pods": [ref_of(pod, home) for pod in pods],
        "key": keys.pop(),
        "has_login": secret_name(installation, attempt_id) in pulls,
        "has_secrets": env_secret_name(installation, attempt_id) in secrets,
    }


def _node(pod: Json) -> str:
    """Where the plan wants it."""
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
