"""Opens the Kubernetes engine from the section `kubernetes` of a cluster in the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from corral.engines.engine_setup import EngineSetup
from corral.engines.kubernetes.api.client import ApiClient
from corral.engines.kubernetes.api.kubeconfig import Access, find_access
from corral.engines.kubernetes.attempts.job_accounts import JobAccount, JobAccounts
from corral.engines.kubernetes.attempts.pod_rules import PodRules, parse_claim
from corral.engines.kubernetes.attempts.standby_logs import KubernetesLogs
from corral.engines.kubernetes.cluster.nodes import FleetRules, parse_toleration
from corral.engines.kubernetes.engine import KubernetesEngine

DEFAULT_NAMESPACE = "default"


class KubernetesSection(Protocol):
    @property
    def kubeconfig(self) -> str | None: ...
    @property
    def context(self) -> str | None: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def group_namespaces(self) -> Mapping[str, str]: ...
    @property
    def default_image(self) -> str: ...
    @property
    def pull_credentials(self) -> tuple[str, ...]: ...
    @property
    def gpu_resources(self) -> tuple[str, ...]: ...
    @property
    def device_classes(self) -> Mapping[str, str]: ...
    @property
    def node_selector(self) -> Mapping[str, str]: ...
    @property
    def tolerations(self) -> tuple[str, ...]: ...
    @property
    def models(self) -> Mapping[str, str]: ...
    @property
    def priority_class(self) -> str: ...
    @property
    def runtime_class(self) -> str: ...
    @property
    def run_as_user(self) -> int: ...
    @property
    def run_as_group(self) -> int: ...
    @property
    def home(self) -> str | None: ...
    @property
    def mounts(self) -> tuple[str, ...]: ...
    @property
    def cpus_per_gpu(self) -> float: ...
    @property
    def exporter_namespace(self) -> str | None: ...
    @property
    def pending_seconds(self) -> float: ...
    @property
    def pull_seconds(self) -> float: ...
    @property
    def starting_seconds(self) -> float: ...


def open_engine(setup: EngineSetup) -> KubernetesEngine:
    section: KubernetesSection = setup.section
    access = access_of(section)
    rules = rules_of(section, namespace_of(section, access), setup.log_limit_bytes)
    return KubernetesEngine(
        root=setup.root,
        api=ApiClient(access),
        rules=rules,
        accounts=JobAccounts(_default_account(rules), setup.isolation.accounts, top=str(setup.home)),
        storage=setup.storage,
        fold_after_seconds=setup.fold_after_seconds,
        fold_homes=setup.fold_homes,
    )


def open_logs(root: Path, is_over: Callable[[str], bool]) -> KubernetesLogs:
    return KubernetesLogs(root, is_over)


def access_of(section: KubernetesSection) -> Access:
    """Raises KubeconfigError."""
    return find_access(section.kubeconfig, section.context, os.environ)


def namespace_of(section: KubernetesSection, access: Access) -> str:
    return section.namespace or access.namespace or DEFAULT_NAMESPACE


def _default_account(rules: PodRules) -> JobAccount:
    """Jobs of a server that is not root have its account, so that both can change the job's files."""
    if os.geteuid() == 0:
        return JobAccount(uid=rules.uid, gid=rules.gid)
    return JobAccount(uid=os.geteuid(), gid=os.getegid())


def rules_of(section: KubernetesSection, namespace: str, log_limit_bytes: int) -> PodRules:
    return PodRules(
        namespace=namespace,
        group_namespaces=section.group_namespaces,
        fleet=FleetRules(
            gpu_resources=section.gpu_resources,
            device_classes=section.device_classes,
            selector=section.node_selector,
            tolerations=tuple(map(parse_toleration, section.tolerations)),
            models=section.models,
        ),
        default_image=section.default_image,
        pull_secrets=section.pull_credentials,
        priority_class=section.priority_class,
        runtime_class=section.runtime_class,
        uid=section.run_as_user,
        gid=section.run_as_group,
        home=None if section.home is None else parse_claim(section.home),
        mounts=tuple(map(parse_claim, section.mounts)),
        cpu_milli_per_gpu=round(section.cpus_per_gpu * 1000),
        pending_seconds=section.pending_seconds,
        pull_seconds=section.pull_seconds,
        starting_seconds=section.starting_seconds,
        exporter_namespace=section.exporter_namespace or "",
        log_limit_bytes=log_limit_bytes,
    )
