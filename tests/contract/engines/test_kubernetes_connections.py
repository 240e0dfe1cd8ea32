"""Connections into pods with the rights of the table and no others, on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from corral.engines.kubernetes.api.client import ApiForbidden
from corral.engines.kubernetes.api.credentials import StaticToken
from corral.engines.kubernetes.api.exec_stream import open_command
from corral.engines.kubernetes.api.kubeconfig import Access, read_kubeconfig
from corral.engines.kubernetes.api.port_forward import forward
from corral.engines.kubernetes.api.rights import RIGHTS
from tests.servers.kubernetes.access import KubernetesAccess
from tests.servers.kubernetes.processes import wait_for

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def pod(kubernetes_access: KubernetesAccess) -> Iterator[str]:
    name = f"reached-{uuid4().hex[:8]}"
    kubernetes_access.add_pod(
        name, script="mkdir /tmp/www; echo hello >/tmp/www/index.html; httpd -f -p 8000 -h /tmp/www"
    )
    wait_for(lambda: kubernetes_access.phase(name) == "Running", "the pod")
    yield name
    kubernetes_access.delete_pod(name)


def account(access: KubernetesAccess, *rights: tuple[str, str]) -> Access:
    """An account with these rights on resources of the namespace."""
    name = f"account-{uuid4().hex[:8]}"
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": [verb]} for resource, verb in rights]
    access.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": name, "namespace": "default"},
            "rules": rules,
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": "default"},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        },
    )
    token = access.kubectl("create", "token", name).strip()
    admin = read_kubeconfig([access.kubeconfig])
    return replace(admin, credential=StaticToken(token), client_certificate=None, client_key=None)


def granted(resource: str) -> list[tuple[str, str]]:
    return [(right.resource, right.verb) for right in RIGHTS if right.resource == resource]


def path(pod: str) -> str:
    return f"/api/v1/namespaces/default/pods/{pod}"


def said(access: Access, pod: str) -> bytes:
    async def run() -> bytes:
        command = await open_command(access, path(pod), "main", ["echo", "hi"], has_terminal=False, has_input=False)
        heard = b"".join([data async for _, data in command.output()])
        assert command.exit_code == 0
        return heard

    return asyncio.run(run())


def test_commands_need_the_rights_of_the_table_and_get_is_one_of_them(
    kubernetes_access: KubernetesAccess, pod: str
) -> None:
    assert said(account(kubernetes_access, *granted("pods/exec")), pod) == b"hi\n"
    with pytest.raises(ApiForbidden, match="pods/exec"):
        said(account(kubernetes_access, ("pods/exec", "create")), pod)


def test_ports_need_the_rights_of_the_table(kubernetes_access: KubernetesAccess, pod: str) -> None:
    def page() -> bytes:
        with forward(access, path(pod), 8000) as opened:
            opened.settimeout(30)
            opened.sendall(b"GET / HTTP/1.0\r\n\r\n")
            heard = b""
            while piece := opened.recv(1000):
                heard += piece
        return heard

    access = account(kubernetes_access, *granted("pods/portforward"))
    wait_for(lambda: page().endswith(b"hello\n"), "the page")
    with pytest.raises(ApiForbidden, match="pods/portforward"):
        forward(account(kubernetes_access, ("pods", "get")), path(pod), 8000)
