"""Converts a launch order into pods: names, labels, and the specification of each pod. Pure.

Pods pass the `restricted` Pod Security Standard. A pod is pinned to the node of the plan by node affinity and placed by
the cluster's own scheduler, which decides races with pods of others.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.control.jobs.job_kinds import HOST_COMMAND
from corral.control.ports import Instance, LaunchOrder, LaunchRefused
from corral.core.model import WHOLE
from corral.engines.attempts.environment import MIG_PREFIX, job_directories, job_environment
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import CONTAINER, container_of
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pod_wrapper import wrapper_text
from corral.engines.kubernetes.attempts.storage import Volumes, mount_storage
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL
from corral.engines.kubernetes.devices.resource_claims import POD_CLAIM
from corral.engines.kubernetes.devices.resource_slices import Device
from corral.engines.order_checks import check_cluster_order, check_registry_image
from corral.engines.storage.storage_specs import StoragePlaces

ATTEMPT_LABEL = "corral/attempt"
JOB_LABEL = "corral/job"
RANK_LABEL = "corral/rank"
#: Kept until the end of the attempt is recorded.
FINALIZER = "corral/end-not-recorded"
GATE = "corral/gang"
#: The address of a gang's first instance: set when every pod of the gang is there, and the sign to begin.
START_ANNOTATION = "corral/start"
#: The attempt's own random word.
KEY_ANNOTATION = "corral/key"
TERM_ANNOTATION = "corral/term"
#: The GPUs that the plan named for an instance, and the number of instances of its attempt: a server that has lost its
#: records makes them anew from its pods.
GPUS_ANNOTATION = "corral/gpus"
SIZE_ANNOTATION = "corral/size"
_START_DIRECTORY = "/etc/corral"
_MASTER_PORT = 29500
JOB_DIR_VARIABLE = "CORRAL_JOB_DIR"
#: Place of the wrapper's first argument, after the shell, -c, its text and its name.
_FIRST_ARGUMENT = 4
MAX_ORDER_CHARS = 900_000
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\.\d{1,9}")
_PLAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PodOwner:
    """The installation that a pod belongs to, and the account that it runs as."""

    installation: str
    term: int
    key: str
    uid: int
    gid: int


def is_safe_id(attempt_id: str) -> bool:
    return _SAFE_ID.fullmatch(attempt_id) is not None


def check_order(order: LaunchOrder, rules: PodRules) -> None:
    """Raises LaunchRefused for an order that can never run here."""
    check_cluster_order(order, is_safe_id, MAX_ORDER_CHARS)
    check_registry_image(order)
    if order.command == HOST_COMMAND and not _is_shared(order.env.get(JOB_DIR_VARIABLE, ""), rules):
        raise LaunchRefused(
            "a workbench on Kubernetes needs a directory that the server and its pod share: an operator sets "
            "cluster.kubernetes.home (the chart's home.shared), or choose another cluster for it"
        )
    if order.has_app:
        raise LaunchRefused("apps cannot run on a Kubernetes cluster yet: choose another cluster for the job")
    if not order.image and not rules.default_image:
        raise LaunchRefused(
            "a job on Kubernetes needs an image: submit it with --image, or an operator sets "
            "cluster.kubernetes.default_image"
        )
    if any(instance.gpu_milli != WHOLE for instance in order.instances if instance.gpu_ids):
        raise LaunchRefused("a Kubernetes cluster gives out whole GPUs only")


def pod_name(installation: str, attempt_id: str, rank: int) -> str:
    """The same for the same attempt, so that creating it twice makes one pod."""
    stem = attempt_id.replace(".", "-")
    if not _PLAIN.fullmatch(stem):
        # Names of pods have no capitals: two attempts must not get the same name.
        stem = f"{re.sub('[^a-z0-9-]', '-', stem.lower()).strip('-')}-{zlib.crc32(attempt_id.encode()):08x}"
    return f"corral-{installation}-{stem}-{rank}"


def secret_name(installation: str, attempt_id: str) -> str:
    """The name of the secret with the login for the attempt's image."""
    return f"{pod_name(installation, attempt_id, 0)}-pull"


def env_secret_name(installation: str, attempt_id: str) -> str:
    """The name of the secret with the values of the job's own secrets."""
    return f"{pod_name(installation, attempt_id, 0)}-env"


def make_pod(
    order: LaunchOrder,
    instance: Instance,
    rules: PodRules,
    owner: PodOwner,
    *,
    gpus: Mapping[str, int],
    places: StoragePlaces | None,
    devices: Sequence[Device] = (),
) -> Json:
    """`gpus` are requested of device plugins by resource, `devices` by a claim with the name of the pod. Raises
    LaunchRefused for storage that this cluster cannot mount."""
    is_gang = len(order.instances) > 1
    volumes = Volumes()
    env = instance_environment(order, instance)
    env |= mount_storage(volumes, order.storage, places, rules.home)
    _mount_directories(volumes, order, rules)
    volumes.add("shm", {"emptyDir": {"medium": "Memory"}}, "/dev/shm")
    if is_gang:
        item = {"path": "start", "fieldRef": {"fieldPath": f"metadata.annotations['{START_ANNOTATION}']"}}
        volumes.add("start", {"downwardAPI": {"items": [item]}}, _START_DIRECTORY, read_only=True)
    container: Json = {
        "name": CONTAINER,
        "image": order.image or rules.default_image,
        "command": ["/bin/sh", "-c", *map(_literal, (wrapper_text(), "corral", *_wrapper_arguments(order, is_gang)))],
        "env": [_variable(key, value, order, owner) for key, value in env.items()],
        "resources": _resources(order, gpus, len(devices), rules),
        "volumeMounts": volumes.mounts,
        "terminationMessagePolicy": "File",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec: Json = {
        "restartPolicy": "Never",
        "affinity": _pinned(instance.node),
        "containers": [container],
        "volumes": volumes.volumes,
        "tolerations": _tolerations(rules),
        "securityContext": _account(owner),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": whole_grace(order.grace_seconds),
        **_optional_fields(order, rules, owner),
    }
    metadata = _metadata(order, instance, rules, owner)
    if devices:
        spec["resourceClaims"] = [{"name": POD_CLAIM, "resourceClaimName": metadata["name"]}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _optional_fields(order: LaunchOrder, rules: PodRules, owner: PodOwner) -> Json:
    """The fields of a pod's spec that are left out if they are empty."""
    secrets = list(rules.pull_secrets)
    if order.login is not None:
        secrets.append(secret_name(owner.installation, order.attempt_id))
    fields: Json = {
        "imagePullSecrets": [{"name": name} for name in secrets],
        "priorityClassName": rules.priority_class,
        "runtimeClassName": rules.runtime_class,
        "schedulingGates": [{"name": GATE}] if len(order.instances) > 1 else [],
    }
    return {key: value for key, value in fields.items() if value}


def _metadata(order: LaunchOrder, instance: Instance, rules: PodRules, owner: PodOwner) -> Json:
    return {
        "name": pod_name(owner.installation, order.attempt_id, instance.rank),
        "namespace": rules.namespace,
        "labels": _labels(order, instance, owner),
        "annotations": {
            TERM_ANNOTATION: str(owner.term),
            ATTEMPT_LABEL: order.attempt_id,
            KEY_ANNOTATION: owner.key,
            GPUS_ANNOTATION: ",".join(instance.gpu_ids),
            SIZE_ANNOTATION: str(len(order.instances)),
            "corral/user": order.user,
        },
        "finalizers": [FINALIZER],
    }


def _account(owner: PodOwner) -> Json:
    """The security context that the standard `restricted` requires."""
    return {
        "runAsNonRoot": True,
        "runAsUser": owner.uid,
        "runAsGroup": owner.gid,
        "fsGroup": owner.gid,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def whole_grace(seconds: float) -> int:
    """Kubernetes counts whole seconds, and takes 0 for an end without a word to the kubelet."""
    return max(1, math.ceil(seconds))


def instance_environment(order: LaunchOrder, instance: Instance) -> dict[str, str]:
    is_distributed = order.is_distributed or len(order.instances) > 1
    env = job_environment(order, instance, base={}, master_port=_MASTER_PORT if is_distributed else None)
    # The device plugin sets it for pods with GPUs. Without it, images for GPUs see all GPUs of their node.
    env.pop("NVIDIA_VISIBLE_DEVICES", None)
    if not instance.gpu_ids:
        env["NVIDIA_VISIBLE_DEVICES"] = "void"
        env["CUDA_VISIBLE_DEVICES"] = ""
    elif any(gpu.startswith(MIG_PREFIX) for gpu in instance.gpu_ids):
        del env["CUDA_VISIBLE_DEVICES"]
    else:
        # The container has its own GPUs only, numbered from 0.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(len(instance.gpu_ids))))
    return env


def _wrapper_arguments(order: LaunchOrder, is_gang: bool) -> list[str]:
    limit = order.time_limit_seconds
    return [
        "" if limit is None else f"{limit:.3f}",
        "" if limit is None else str(math.ceil(limit)),
        str(whole_grace(order.grace_seconds)),
        order.workdir or "",
        order.venv or "",
        f"{_START_DIRECTORY}/start" if is_gang else "",
        *order.command,
    ]


def limit_of_program(pod: Json) -> float | None:
    """The time limit that the wrapper of a pod was given. Raises ValueError."""
    given = container_of(pod)["command"][_FIRST_ARGUMENT]
    return float(given) if given else None


def place_of_program(pod: Json) -> tuple[str, str]:
    """The working directory and the virtual environment that the wrapper of a pod was given."""
    arguments = container_of(pod)["command"][_FIRST_ARGUMENT:]
    return arguments[3].replace("$$", "$"), arguments[4].replace("$$", "$")


def _literal(text: str) -> str:
    """Kubernetes replaces $(NAME) in commands and environments."""
    return text.replace("$", "$$")


def _labels(order: LaunchOrder, instance: Instance, owner: PodOwner) -> Json:
    return {
        "app.kubernetes.io/managed-by": "corral",
        INSTALLATION_LABEL: owner.installation,
        ATTEMPT_LABEL: order.attempt_id,
        JOB_LABEL: order.job_id,
        RANK_LABEL: str(instance.rank),
    }


def _pinned(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _tolerations(rules: PodRules) -> list[Json]:
    return [
        {
            "key": toleration.key,
            **({"operator": "Equal", "value": toleration.value} if toleration.value else {"operator": "Exists"}),
            **({"effect": toleration.effect} if toleration.effect else {}),
        }
        for toleration in rules.fleet.tolerations
    ]


def _resources(order: LaunchOrder, gpus: Mapping[str, int], devices: int, rules: PodRules) -> Json:
    requests: dict[str, str] = {}
    limits = {name: str(count) for name, count in gpus.items() if count}
    claims = [{"name": POD_CLAIM}] if devices else []
    if cpu := order.cpu_milli or rules.cpu_milli_per_gpu * (sum(gpus.values()) + devices):
        requests["cpu"] = f"{cpu}m"
    if order.memory_bytes:
        requests["memory"] = limits["memory"] = str(order.memory_bytes)
    parts: Json = {"requests": requests, "limits": limits, "claims": claims}
    return {key: value for key, value in parts.items() if value}


def _mount_directories(volumes: Volumes, order: LaunchOrder, rules: PodRules) -> None:
    """The job's directories: on the claim that the server shares, else on the node's disk until the pod ends."""
    outermost: list[str] = []
    for path in job_directories(order):
        if not any(_is_below(path, other) for other in outermost):
            outermost.append(path)
    for number, path in enumerate(outermost):
        if rules.home is not None and _is_shared(path, rules):
            volumes.add_claim(rules.home, path, os.path.relpath(path, rules.home.path))
        else:
            volumes.add(f"directory-{number}", {"emptyDir": {}}, path)
    for mount in rules.mounts:
        volumes.add_claim(mount, mount.path, "", read_only=mount.read_only)


def _is_shared(path: str, rules: PodRules) -> bool:
    return rules.home is not None and _is_below(path, rules.home.path)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _variable(name: str, value: str, order: LaunchOrder, owner: PodOwner) -> Json:
    """Values of secrets are not part of the pod, which more accounts may read than secrets."""
    if order.secret_env.get(name) != value:
        return {"name": name, "value": _literal(value)}
    secret = env_secret_name(owner.installation, order.attempt_id)
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}


def make_secrets(order: LaunchOrder, rules: PodRules, owner: PodOwner) -> list[Json]:
    """The login with which the kubelet pulls the attempt's image, and the values of the job's own secrets."""
    made = []
    if order.login is not None:
        login = order.login
        auths: dict[str, Any] = {login.registry: {"username": login.username, "password": login.secret}}
        name = secret_name(owner.installation, order.attempt_id)
        data = {".dockerconfigjson": json.dumps({"auths": auths})}
        made.append(_secret(name, "kubernetes.io/dockerconfigjson", data, order, rules, owner))
    if order.secret_env:
        name = env_secret_name(owner.installation, order.attempt_id)
        made.append(_secret(name, "Opaque", order.secret_env, order, rules, owner))
    return made


def _secret(
    name: str, kind: str, data: Mapping[str, str], order: LaunchOrder, rules: PodRules, owner: PodOwner
) -> Json:
    labels = _labels(order, order.instances[0], owner)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": rules.namespace, "labels": labels},
        "type": kind,
        "stringData": dict(data),
    }
