"""How the API server is reached: kubeconfigs in all their forms, and the service account of a pod."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.engines.kubernetes.api.credentials import CredentialError, ExecPlugin, TokenFile
from corral.engines.kubernetes.api.kubeconfig import KubeconfigError, find_access, read_kubeconfig


def config(user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }


def write(path: Path, body: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(body))
    return path


def test_certificates_are_data_or_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(b"KEY")
    user = {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key": "key.pem"}
    access = read_kubeconfig([write(tmp_path / "config", config(user, {"insecure-skip-tls-verify": True}))])
    assert (access.server, access.namespace) == ("https://10.0.0.1:6443", "ml")
    assert (access.client_certificate, access.client_key, access.is_insecure) == (b"CERT", b"KEY", True)
    assert access.credential.token() == ""


def test_several_files_are_one(tmp_path: Path) -> None:
    users = write(tmp_path / "users", {"users": [{"name": "u", "user": {"token": "abc"}}]})
    rest = config()
    del rest["users"]
    access = find_access(None, None, {"KUBECONFIG": f"{users}:{write(tmp_path / 'rest', rest)}:{tmp_path / 'none'}"})
    assert access.credential.token() == "abc"


def test_another_context_is_chosen_by_name(tmp_path: Path) -> None:
    body = config(contexts=[{"name": "other", "context": {"cluster": "c"}}])
    path = write(tmp_path / "config", body)
    assert read_kubeconfig([path], "other").namespace == ""
    with pytest.raises(KubeconfigError, match="there is no context 'main'"):
        read_kubeconfig([path])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "is not a kubeconfig"),
        (config(clusters=[]), "there is no cluster 'c'"),
        (config({"client-key-data": "%"}), "client-key-data is not base64"),
        (config({"client-key": "missing.pem"}), "missing.pem: No such file"),
        (config({"auth-provider": {"name": "gcp"}}), "auth-provider is not supported"),
        (config({"exec": {"args": []}}), "has no command"),
        (config({"username": "ada", "password": "x"}), "passwords are not supported"),
        (config(None, {"server": "10.0.0.1"}), "no valid server address"),
        ({**config(), "current-context": ""}, "no current-context"),
    ],
)
def test_unusable_kubeconfig_has_a_message(tmp_path: Path, body: Any, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(body))
    with pytest.raises(KubeconfigError, match=words):
        read_kubeconfig([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="there is no such file"):
        find_access(str(tmp_path / "none"), None, {})


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "t-1\n"), ("namespace", "corral"), ("ca.crt", "CA")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    access = find_access(None, None, environ, tmp_path)
    assert (access.server, access.namespace, access.ca) == ("https://[fd00::1]:6443", "corral", b"CA")
    assert access.credential.token() == "t-1"


def test_a_token_file_is_read_again_after_a_while_and_after_a_refusal(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("a")
    tokens = TokenFile(path, clock=lambda: now[0])
    assert tokens.token() == "a"
    path.write_text("b")
    assert tokens.token() == "a"
    now[0] = 60.0
    assert tokens.token() == "b"
    path.write_text("c")
    tokens.refuse("b")
    assert tokens.token() == "c"
    path.unlink()
    tokens.refuse("c")
    with pytest.raises(CredentialError, match="No such file"):
        tokens.token()


def plugin(tmp_path: Path, text: str, **more: Any) -> ExecPlugin:
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return ExecPlugin(command=(str(path),), env={"WHO": "ada"}, api_version="client.authentication.k8s.io/v1", **more)


def credential(token: str, expires: str | None = None) -> str:
    status = {"token": token, **({"expirationTimestamp": expires} if expires else {})}
    return json.dumps({"kind": "ExecCredential", "status": status})


def test_an_exec_plugin_is_asked_again_before_its_token_expires(tmp_path: Path) -> None:
    now = [0.0]
    text = f"echo run >> {tmp_path}/runs; echo '{credential('$WHO', '1970-01-01T01:00:00Z')}'".replace("$WHO", "'$WHO'")
    tokens = plugin(tmp_path, text, clock=lambda: now[0])
    assert [tokens.token(), tokens.token()] == ["ada", "ada"]
    now[0] = 3541.0
    tokens.token()
    tokens.refuse("ada")
    tokens.token()
    assert (tmp_path / "runs").read_text() == "run\n" * 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("echo no access >&2; exit 3", "exit code 3: no access"), ("echo hello", "no ExecCredential"),
     ("echo '{\"status\": {\"token\": \"\"}}'", "printed no token")],
)  # fmt: skip
def test_an_exec_plugin_that_fails(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CredentialError, match=words):
        plugin(tmp_path, text).token()
    missing = ExecPlugin(command=(str(tmp_path / "none"),), env={}, api_version="v1", hint="install aws-cli")
    with pytest.raises(CredentialError, match="install aws-cli"):
        missing.token()
