"""`corral init kubernetes`: checks an existing cluster, and writes the files of a server beside it or in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from corral.cli.terminal.arguments import pairs
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Terminal, command
from corral.core.visible_text import visible

if TYPE_CHECKING:
    from corral.engines.kubernetes.api.client import ApiClient
    from corral.engines.kubernetes.attempts.pod_rules import PodRules
    from corral.engines.kubernetes.cluster_checks import ClusterFinding

_COLOURS = {"OK": "green", "WARN": "yellow", "FAIL": "red"}
CONFIG, VALUES, RIGHTS = "corral.yaml", "values.yaml", "rights.yaml"
_HEAD = "# Written by `corral init kubernetes`.\n"


def register(app: typer.Typer) -> None:
    command(
        app,
        "kubernetes",
        connects=False,
        examples=[
            "corral init kubernetes",
            "corral init kubernetes --context lab --namespace corral --create-namespace",
            "corral init kubernetes --group-namespace vision=team-vision --group-namespace speech=team-speech",
            "corral init kubernetes --inside --repository registry.example.org/corral",
            "corral init kubernetes --check",
        ],
    )(init_kubernetes)


def init_kubernetes(
    terminal: Terminal,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The kubeconfig; else KUBECONFIG, else ~/.kube/config.")
    ] = None,
    context: Annotated[str | None, typer.Option(metavar="NAME", help="Its context; else the current one.")] = None,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="The namespace of the pods of jobs.")] = "corral",
    group_namespace: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=NAMESPACE", help="A group whose jobs run in a namespace of its own. Repeatable."),
    ] = None,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="The image of jobs that name none.")
    ] = "docker.io/library/python:3.12-slim",
    cluster: Annotated[str, typer.Option(metavar="NAME", help="The cluster's name in corral.")] = "kubernetes",
    inside: Annotated[bool, typer.Option("--inside", help="The server runs in the cluster, by the chart.")] = False,
    repository: Annotated[
        str, typer.Option(metavar="IMAGE", help="With --inside: the image of corral, without its tag.")
    ] = "corral",
    create_namespace: Annotated[
        bool, typer.Option("--create-namespace", help="Create the namespaces that are missing.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check; write nothing.")] = False,
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the files.")] = Path(),
    replace: Annotated[bool, typer.Option("--replace", help="Replace files that exist.")] = False,
) -> None:
    """Check an existing Kubernetes cluster, and write the files of a server beside it or in it.

    Shows the missing rights, nodes and GPUs, and whether a pod would be accepted."""
    from corral.engines.kubernetes import cluster_checks
    from corral.engines.kubernetes.api.client import ApiError, ApiUnavailable
    from corral.engines.kubernetes.cluster_checks import Verdict

    section: dict[str, Any] = {"namespace": namespace}
    if group_namespace:
        section["group_namespaces"] = pairs("--group-namespace", group_namespace)
    section["default_image"] = image
    if kubeconfig is not None:
        section["kubeconfig"] = str(kubeconfig.expanduser().absolute())
    if context is not None:
        section["context"] = context
    api, rules = _opened(section)
    if create_namespace:
        for namespace in rules.namespaces:
            try:
                _create_namespace(api, namespace)
            except (ApiError, ApiUnavailable) as error:
                raise Refused(f"namespace {namespace} cannot be created: {error}") from error
    findings = list(cluster_checks.check_cluster(api, rules))
    if not terminal.as_json:
        _show(findings)
    files, steps = (
        ({}, list[str]()) if check else _files(api, rules, section, cluster, findings, repository, inside=inside)
    )
    _write(directory, files, replace=replace)
    failed = any(finding.verdict is Verdict.FAIL for finding in findings)
    if terminal.as_json:
        items = [{"check": f.check, "verdict": str(f.verdict), "detail": f.detail, "fix": f.fix} for f in findings]
        terminal.json({"items": items, "healthy": not failed, "files": sorted(files), "next": steps})
    elif files:
        lines = [f"\nWritten to {directory.absolute()}: {', '.join(sorted(files))}. Next:"]
        for line in [*lines, *(f"  {step}" for step in steps)]:
            terminal.say(line)
    if failed:
        raise typer.Exit(1)


def _opened(section: dict[str, Any]) -> tuple[ApiClient, PodRules]:
    from pydantic import ValidationError

    from corral.engines.kubernetes.api.client import ApiClient
    from corral.engines.kubernetes.api.kubeconfig import KubeconfigError
    from corral.engines.kubernetes.factory import access_of, namespace_of, rules_of
    from corral.server.settings.sections.cluster_sections import KubernetesSettings

    try:
        settings = KubernetesSettings(**section)
        access = access_of(settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise WrongUsage(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (KubeconfigError, OSError) as error:
        raise Refused(str(error), hint="Give --kubeconfig, or set KUBECONFIG.") from error
    return ApiClient(access), rules_of(settings, namespace_of(settings, access), 0)


def _create_namespace(api: ApiClient, name: str) -> None:
    """Raises ApiError and ApiUnavailable."""
    from corral.engines.kubernetes import cluster_checks
    from corral.engines.kubernetes.api.client import ApiConflict

    try:
        cluster_checks.create_namespace(api, name)
    except ApiConflict:
        return


def _files(
    api: ApiClient,
    rules: PodRules,
    section: dict[str, Any],
    cluster: str,
    findings: list[ClusterFinding],
    repository: str,
    *,
    inside: bool,
) -> tuple[dict[str, str], list[str]]:
    """The texts by name, and the commands that come next."""
    files, steps = dict[str, str](), list[str]()
    namespace = section["namespace"]
    missing = {finding.check for finding in findings if finding.verdict != "OK"}
    absent = [found.namespace for found in findings if found.check == "Namespace" and found.verdict != "OK"]
    steps += [f"kubectl create namespace {namespace}" for namespace in absent]
    if inside:
        # The chart has an account and the rights of its own, and adds the namespace.
        own = {key: value for key, value in section.items() if key in ("group_namespaces", "default_image")}
        values = {
            "image": {"repository": repository},
            "operator": {"secret": "corral-operator"},
            "cluster": {"name": cluster, "engine": "kubernetes", "kubernetes": own},
        }
        files[VALUES] = _yaml(values)
        steps += [
            f"kubectl --namespace {namespace} create secret generic corral-operator --from-literal=password=CHANGE-ME",
            f"helm install corral deploy/helm/corral --namespace {namespace} -f {VALUES}",
            f"kubectl --namespace {namespace} port-forward service/corral 8470:80",
        ]
    else:
        files[CONFIG] = _yaml({"cluster": [{"name": cluster, "engine": "kubernetes", "kubernetes": section}]})
        if "Rights" in missing and (text := _rights(api, rules.namespaces)):
            files[RIGHTS] = text
            steps.append(f"kubectl apply -f {RIGHTS}     # by an administrator of the cluster")
        steps += [f"corral up --config {CONFIG}", "corral doctor"]
    return files, [*steps, "corral login --user operator", "corral submit --gpus 1 -- python -c 'print(\"hello\")'"]


def _rights(api: ApiClient, namespaces: Sequence[str]) -> str:
    """The roles for the account of the kubeconfig; "" if its name is unknown."""
    from corral.engines.kubernetes import cluster_checks
    from corral.engines.kubernetes.api.client import ApiError, ApiUnavailable
    from corral.engines.kubernetes.api.roles import roles

    try:
        user = cluster_checks.user_of(api)
    except (ApiError, ApiUnavailable):
        return ""
    return _HEAD + yaml.safe_dump_all(roles(namespaces, user), sort_keys=False) if user else ""


def _write(directory: Path, files: dict[str, str], *, replace: bool) -> None:
    present = [name for name in files if (directory / name).exists()]
    if present and not replace:
        raise Refused(f"{directory / present[0]} exists already", hint="Look at it, then use --replace or --directory.")
    try:
        for name, text in files.items():
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{directory} cannot be written: {os.strerror(error.errno or 0)}") from error


def _show(findings: list[ClusterFinding]) -> None:
    for finding in findings:
        verdict = typer.style(f"{finding.verdict:<4}", fg=_COLOURS[finding.verdict])
        typer.echo(f"{verdict}  {finding.check:<10}  {visible(finding.detail)}")
        if finding.fix:
            typer.echo(f"{'':18}fix: {visible(finding.fix)}")


def _yaml(body: dict[str, Any]) -> str:
    return _HEAD + yaml.safe_dump(body, sort_keys=False, allow_unicode=True)
