"""Checks of the engines that run jobs: limits, shares, isolation, containers, Slurm and Kubernetes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from corral.cli.system.doctor_checks.findings import Finding, Verdict, fail, local_settings, ok, warn
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal
from corral.client.http.errors import ClientError
from corral.core.counts import noun_for

if TYPE_CHECKING:
    from corral.server.settings.sections.cluster_sections import ClusterSettings


def cgroup_limits(terminal: Terminal) -> Finding:
    from corral.engines.local.cgroups import cgroup_support

    support = cgroup_support()
    if not support.writable:
        return warn(
            "Limits",
            f"memory and CPU limits of jobs are not enforced: {support.detail}",
            "Run the server as a systemd unit with Delegate=yes, or as root.",
        )
    if not support.pids:
        return warn(
            "Limits",
            f"enforced by cgroup {support.detail}, but nothing limits how many processes a job starts",
            "Give the server's group the pids controller: under systemd, Delegate=yes does.",
        )
    return ok("Limits", f"enforced by cgroup {support.detail}")


def gpu_shares(terminal: Terminal) -> Finding:
    """Whether the server enforces shares of GPUs."""
    try:
        with terminal.client() as client:
            known = client.system.about().get("gpu_shares")
    except ClientError:
        return warn("Shares of GPUs", "not known without a server", "Start one: `corral up`.")
    if known is None:
        return warn("Shares of GPUs", "the server does not report it: it has an older version")
    return ok("Shares of GPUs", known["detail"])


def isolation(terminal: Terminal) -> Finding:
    """The isolation that the server reports; without a server, that of a server on this machine."""
    try:
        with terminal.client() as client:
            known = client.system.about().get("isolation")
        if known is None:
            return warn("Isolation", "the server does not report it: it has an older version")
        separation, detail = known["separation"], known["detail"]
    except ClientError:
        from corral.server.system.isolation import account_rules, separated

        settings = local_settings()
        if isinstance(settings, str):
            return warn("Isolation", "not checked: the configuration cannot be used")
        here = separated(account_rules(settings) if os.geteuid() == 0 else None)
        separation, detail = here.separation.value, here.detail
    if separation == "single_user":
        return warn("Isolation", detail, "For several users run it as root: `corral init server` writes the unit.")
    if separation == "shared_accounts":
        return warn("Isolation", detail, "Give each user an account of the machine (local.run_as).")
    return ok("Isolation", detail)


def containers(terminal: Terminal) -> Finding:
    from corral.engines.local.cgroups import cgroup_support
    from corral.engines.local.containers.container_runtime import find_runtime

    runtime = find_runtime(cgroup_support(), os.environ)
    if runtime is None:
        return warn("Containers", "jobs with an image cannot run here", "Install Podman, or Docker with its daemon.")
    gpus_by = "GPUs by CDI" if runtime.cdi_devices else "no CDI specification of GPUs"
    if runtime.amd_devices:
        gpus_by = "AMD GPUs by their device files"
    return ok("Containers", f"{runtime.detail}, {gpus_by}")


def slurm_accounts(terminal: Terminal) -> Finding:
    settings = local_settings()
    if isinstance(settings, str):
        return warn("Slurm", "not checked: the configuration cannot be used")
    names = [cluster.name for cluster in settings.cluster if cluster.engine == "slurm"]
    if not names:
        return ok("Slurm", "no cluster of it is configured")
    from corral.engines.slurm.root_users import REMEDY, root_on_nodes
    from corral.server.system.isolation import account_rules

    if root_users := root_on_nodes(account_rules(settings) if os.geteuid() == 0 else None):
        return warn("Slurm", f"{formats.listed(names)}: {root_users}", f"{REMEDY[0].upper()}{REMEDY[1:]}.")
    return ok("Slurm", f"{formats.listed(names)}: no job is root on the nodes")


def kubernetes_rights(terminal: Terminal) -> Finding:
    """Whether each Kubernetes cluster can be reached, and which rights are missing there."""
    settings = local_settings()
    if isinstance(settings, str):
        return warn("Kubernetes", "not checked: the configuration cannot be used")
    clusters = [cluster for cluster in settings.cluster if cluster.engine == "kubernetes"]
    if not clusters:
        return ok("Kubernetes", "no cluster of it is configured")
    from corral.engines.kubernetes.api.client import ApiError, ApiUnavailable
    from corral.engines.kubernetes.api.kubeconfig import KubeconfigError
    from corral.engines.kubernetes.attempts.pod_rules import NO_HOME

    findings = []
    for cluster in clusters:
        try:
            findings.append(_kubernetes_cluster(cluster))
        except (KubeconfigError, ApiError, ApiUnavailable) as error:
            return fail("Kubernetes", f"{cluster.name}: {error}", "Correct cluster.kubernetes in corral.yaml.")
    for verdict in (Verdict.FAIL, Verdict.WARN):
        if bad := [finding for finding in findings if finding.verdict is verdict]:
            detail = "; ".join(finding.detail for finding in bad)
            return Finding(check="Kubernetes", verdict=verdict, detail=detail, fix=bad[0].fix)
    homeless = [cluster.name for cluster in clusters if cluster.kubernetes.home is None]
    if homeless:
        fix = "Set cluster.kubernetes.home to a claim that the server has mounted, too (the chart's home.shared)."
        return warn("Kubernetes", f"{', '.join(homeless)}: {NO_HOME}", fix)
    return ok("Kubernetes", "; ".join(finding.detail for finding in findings))


def _kubernetes_cluster(cluster: ClusterSettings) -> Finding:
    """One cluster: its version and namespaces, its first failed check, or the rights that are missing."""
    from corral.engines.kubernetes.api.client import ApiClient
    from corral.engines.kubernetes.cluster_checks import check_cluster
    from corral.engines.kubernetes.factory import access_of, namespace_of, rules_of

    access = access_of(cluster.kubernetes)
    rules = rules_of(cluster.kubernetes, namespace_of(cluster.kubernetes, access), 0)
    api = ApiClient(access)
    found = list(check_cluster(api, rules))
    rights = [checked for checked in found if checked.check == "Rights"]
    failed = [checked for checked in found if checked.verdict == "FAIL" and checked not in rights]
    for checked in (*failed, *rights):
        if checked.verdict != "OK":
            verdict = fail if checked.verdict == "FAIL" else warn
            return verdict("Kubernetes", f"{cluster.name}: {checked.check}: {checked.detail}", checked.fix)
    places = f"{noun_for(len(rules.namespaces), 'namespace')} {', '.join(rules.namespaces)}"
    return ok("Kubernetes", f"{cluster.name}: {api.get('/version')['gitVersion']}, {places}")
