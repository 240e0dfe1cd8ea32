"""Etcd and the daemons of Kubernetes' control plane, in a network namespace of their own, at the usual ports."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from tests.servers.kubernetes.certificates import Authority, key_pair
from tests.servers.kubernetes.network import NAMESPACES, ClusterNetwork, run_ip
from tests.servers.kubernetes.processes import Processes

#: in the order of their start
DAEMONS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
#: Until a node that does not answer counts as lost, and until its pods are evicted then.
NODE_GRACE_SECONDS = 16
EVICTION_SECONDS = 5
_KIND = "m"


@dataclass(kw_only=True)
class ControlPlane:
    directory: Path
    programs: Path
    network: ClusterNetwork
    processes: Processes
    authority: Authority

    @property
    def secrets(self) -> Path:
        return self.directory / "secrets"

    @property
    def url(self) -> str:
        return f"https://{self.network.control_plane}"

    def prepare(self) -> None:
        """Creates its namespace, certificates and keys."""
        for name in ("secrets", "etcd"):
            (self.directory / name).mkdir(mode=0o700)
        (self.secrets / "ca.crt").write_bytes(self.authority.certificate)
        private, public = key_pair()
        (self.secrets / "accounts.key").write_bytes(private)
        (self.secrets / "accounts.pub").write_bytes(public)
        addresses = (self.network.control_plane, self.network.api_service)
        names = "kubernetes kubernetes.default kubernetes.default.svc"
        self.authority.issue("kube-apiserver", addresses=addresses, names=names).write(self.secrets, "apiserver")
        self.authority.issue("kube-apiserver-client", group="system:masters").write(self.secrets, "kubelet-client")
        self.add_user("admin", "admin", "system:masters")
        for daemon in ("kube-controller-manager", "kube-scheduler"):
            self.add_user(daemon, f"system:{daemon}")
        space = self.network.add(_KIND, self.network.control_plane)
        # Nothing translates addresses of services here: the API server has that of its own service itself.
        run_ip("-n", space, "addr", "add", f"{self.network.api_service}/32", "dev", "lo")

    def add_user(self, name: str, user: str, group: str = "") -> Path:
        """The path of a kubeconfig for a new certificate with this name and group."""
        path = self.secrets / f"{name}.json"
        path.touch(mode=0o600)
        path.write_text(self.authority.kubeconfig(self.url, self.authority.issue(user, group=group)))
        return path

    def add_route(self, target: IPv4Network, gateway: int) -> None:
        self.network.add_route(_KIND, target, self.network.node(gateway))

    def start(self, daemon: str) -> None:
        command = {
            "etcd": self._etcd,
            "kube-apiserver": self._api_server,
            "kube-controller-manager": self._controllers,
            "kube-scheduler": self._scheduler,
        }[daemon]()
        program = "etcd" if daemon == "etcd" else self.programs / daemon
        space = NAMESPACES / f"{self.network.name}{_KIND}"
        self.processes.start(daemon, ["nsenter", f"--net={space}", "--", program, *command])

    def kill(self, daemon: str) -> None:
        self.processes.end(daemon, signal.SIGKILL)

    def stop(self) -> None:
        for daemon in reversed(DAEMONS):
            # Nothing is to be kept, and to end gracefully takes an API server a minute.
            self.kill(daemon)
        self.network.drop(_KIND)

    # ------------------------------------------------------------------------------------ inside

    def _etcd(self) -> list[str]:
        peers = "http://127.0.0.1:2380"
        return [
            "--name=tests",
            f"--data-dir={self.directory}/etcd",
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=tests={peers}",
            "--logger=zap",
            "--log-outputs=stderr",
        ]

    def _api_server(self) -> list[str]:
        secrets = self.secrets
        return [
            "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=443",
            f"--advertise-address={self.network.control_plane}",
            f"--cert-dir={self.directory}",
            f"--tls-cert-file={secrets}/apiserver.crt",
            f"--tls-private-key-file={secrets}/apiserver.key",
            f"--client-ca-file={secrets}/ca.crt",
            f"--kubelet-client-certificate={secrets}/kubelet-client.crt",
            f"--kubelet-client-key={secrets}/kubelet-client.key",
            f"--kubelet-certificate-authority={secrets}/ca.crt",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={secrets}/accounts.pub",
            f"--service-account-signing-key-file={secrets}/accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={self.network.services}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--default-not-ready-toleration-seconds={EVICTION_SECONDS}",
            f"--default-unreachable-toleration-seconds={EVICTION_SECONDS}",
        ]

    def _controllers(self) -> list[str]:
        return [
            f"--kubeconfig={self.secrets}/kube-controller-manager.json",
            f"--cert-dir={self.directory}",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self.secrets}/accounts.key",
            f"--root-ca-file={self.secrets}/ca.crt",
            "--node-monitor-period=2s",
            f"--node-monitor-grace-period={NODE_GRACE_SECONDS}s",
            "--node-eviction-rate=10",
        ]

    def _scheduler(self) -> list[str]:
        return [
            f"--kubeconfig={self.secrets}/kube-scheduler.json",
            f"--cert-dir={self.directory}",
            "--leader-elect=false",
        ]
