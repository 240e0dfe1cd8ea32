"""Reads how the API server is reached and by which credentials: from a kubeconfig, or from the service account of the
pod that the server runs in.

Supports what kubectl supports: several files in KUBECONFIG, contexts, CA data or files, client certificates, tokens,
token files, exec plugins, proxies and server names. `credentials` has the tokens that change while the server runs.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from corral.engines.kubernetes.api.credentials import Credential, ExecPlugin, NoToken, StaticToken, TokenFile

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigError(Exception):
    """The kubeconfig cannot be used; the message names the file and the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """How the API server is reached."""

    server: str
    credential: Credential
    #: the namespace of the context; "" if it names none
    namespace: str = ""
    #: PEM; None means the certificate authorities of this machine
    ca: bytes | None = None
    is_insecure: bool = False
    #: PEM
    client_certificate: bytes | None = None
    client_key: bytes | None = None
    #: the name that the server's certificate must have; "" means its host name
    server_name: str = ""
    proxy: str | None = None
    #: this server runs in a pod of the cluster, and so reaches the addresses of other pods
    is_inside: bool = False


def find_access(
    kubeconfig: str | None,
    context: str | None,
    environ: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The configured kubeconfig, else KUBECONFIG, else the pod's service account, else ~/.kube/config. Raises
    KubeconfigError."""
    if kubeconfig is not None:
        return read_kubeconfig([Path(kubeconfig)], context)
    if listed := [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]:
        return read_kubeconfig(listed, context)
    if environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return in_cluster(environ, service_account)
    return read_kubeconfig([Path(environ.get("HOME", "/")) / ".kube" / "config"], context)


def in_cluster(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Access:
    """The service account of the pod that this server runs in."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = service_account / "namespace"
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        credential=TokenFile(service_account / "token"),
        namespace=namespace.read_text().strip() if namespace.exists() else "",
        ca=(service_account / "ca.crt").read_bytes(),
        is_inside=True,
    )


def read_kubeconfig(paths: Sequence[Path], context: str | None = None) -> Access:
    """Reads kubeconfig files. The first file that has an entry counts. Raises KubeconfigError."""
    files = [_File(path, _document(path)) for path in paths if path.exists()]
    if not files:
        raise KubeconfigError(f"{', '.join(map(str, paths))}: there is no such file")
    name = context or next((file.body["current-context"] for file in files if file.body.get("current-context")), "")
    if not name:
        raise KubeconfigError(f"{files[0].path}: there is no current-context; set `context`")
    chosen, _ = _entry(files, "contexts", "context", name)
    cluster, cluster_file = _entry(files, "clusters", "cluster", str(chosen.get("cluster", "")))
    user: Mapping[str, Any] = {}
    user_file = cluster_file
    if chosen.get("user"):
        user, user_file = _entry(files, "users", "user", str(chosen["user"]))
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{cluster_file.path}: cluster {chosen.get('cluster')!r} has no valid server address")
    credential = _credential(user, user_file)
    return Access(
        server=server.rstrip("/"),
        credential=credential,
        namespace=str(chosen.get("namespace") or ""),
        ca=_content(cluster, "certificate-authority", cluster_file),
        is_insecure=cluster.get("insecure-skip-tls-verify") is True,
        client_certificate=_content(user, "client-certificate", user_file),
        client_key=_content(user, "client-key", user_file),
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster["proxy-url"]) if cluster.get("proxy-url") else None,
    )


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    body: Mapping[str, Any]


def _document(path: Path) -> Mapping[str, Any]:
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(body, dict):
        raise KubeconfigError(f"{path}: is not a kubeconfig")
    return body


def _entry(files: Sequence[_File], listing: str, key: str, name: str) -> tuple[Mapping[str, Any], _File]:
    for file in files:
        for entry in file.body.get(listing) or ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(key), dict):
                return entry[key], file
    raise KubeconfigError(f"{files[0].path}: there is no {key} {name!r}")


def _content(entry: Mapping[str, Any], key: str, file: _File) -> bytes | None:
    """`KEY-data` in base64, or the file that KEY names, relative to the kubeconfig."""
    if entry.get(f"{key}-data"):
        try:
            return base64.b64decode(entry[f"{key}-data"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise KubeconfigError(f"{file.path}: {key}-data is not base64") from error
    if not entry.get(key):
        return None
    path = file.path.parent / str(entry[key])
    try:
        return path.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{file.path}: {key} {path}: {error.strerror}") from error


def _credential(user: Mapping[str, Any], file: _File) -> Credential:
    if user.get("tokenFile"):
        return TokenFile(file.path.parent / str(user["tokenFile"]))
    if user.get("token"):
        return StaticToken(str(user["token"]))
    if isinstance(plugin := user.get("exec"), dict):
        return _exec_plugin(plugin, file)
    if user.get("auth-provider"):
        raise KubeconfigError(f"{file.path}: auth-provider is not supported; use an exec plugin, as Kubernetes advises")
    if user.get("username"):
        raise KubeconfigError(f"{file.path}: user names with passwords are not supported by Kubernetes any more")
    return NoToken()


def _exec_plugin(plugin: Mapping[str, Any], file: _File) -> ExecPlugin:
    command = plugin.get("command")
    if not isinstance(command, str) or not command:
        raise KubeconfigError(f"{file.path}: the exec plugin has no command")
    if os.sep in command and not os.path.isabs(command):
        command = str(file.path.parent / command)
    return ExecPlugin(
        command=(command, *(str(word) for word in plugin.get("args") or ())),
        env={str(variable["name"]): str(variable["value"]) for variable in plugin.get("env") or ()},
        api_version=str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1"),
        hint=str(plugin.get("installHint") or ""),
    )
