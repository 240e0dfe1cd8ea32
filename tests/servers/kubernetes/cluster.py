"""A real Kubernetes for tests: control plane, real nodes with GPUs that are not there, and hollow nodes.

Hollow nodes are real kubelets over a runtime that only pretends: pods become Running there and stay so. They cost a
tenth of a real one, and serve to fill a cluster.
"""

from __future__ import annotations

import shutil
import signal
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.servers.kubernetes.access import KubernetesAccess
from tests.servers.kubernetes.archives import write_images
from tests.servers.kubernetes.certificates import Authority
from tests.servers.kubernetes.control_plane import DAEMONS, ControlPlane
from tests.servers.kubernetes.network import NAMESPACES, ClusterNetwork
from tests.servers.kubernetes.node import Node
from tests.servers.kubernetes.processes import Processes, wait_for

GPU = "nvidia.com/gpu"
#: as GPU feature discovery labels nodes
LABELS = {f"{GPU}.product": "NVIDIA-A100-SXM4-80GB", f"{GPU}.memory": "81920", f"{GPU}.family": "ampere"}
DRIVER_NAME = "gpu.nvidia.com"
#: the DeviceClass of each type of device
DEVICE_TYPES = {"gpu": "gpu.nvidia.com", "mig": "mig.nvidia.com"}
_HOLLOW = "h"


@dataclass(kw_only=True)
class KubernetesCluster:
    directory: Path
    #: with Kubernetes' own programs in it
    programs: Path
    nodes: int = 2
    hollow_nodes: int = 2
    #: so many of the real ones, the last, have a driver of Dynamic Resource Allocation in place of a device plugin
    driver_nodes: int = 0
    gpus: int = 8
    cpus: int = 16
    #: A hollow node says so; a real one has that of this machine.
    hollow_memory: str = "64Gi"
    hollow_pods: int = 200
    access: KubernetesAccess = field(init=False)
    control_plane: ControlPlane = field(init=False)
    network: ClusterNetwork = field(init=False)
    _real: dict[str, Node] = field(default_factory=dict)
    _processes: Processes = field(init=False)

    # ------------------------------------------------------------------------------------ for tests

    def __enter__(self) -> KubernetesCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator."""
        return self.directory / "secrets" / "admin.json"

    @property
    def real_names(self) -> list[str]:
        return [f"gpu{number}" for number in range(1, self.nodes + 1)]

    @property
    def hollow_names(self) -> list[str]:
        return [f"hollow{number}" for number in range(1, self.hollow_nodes + 1)]

    @property
    def node_names(self) -> list[str]:
        return [*self.real_names, *self.hollow_names]

    @property
    def driver_names(self) -> list[str]:
        return self.real_names[self.nodes - self.driver_nodes :]

    def start(self) -> None:
        self._prepare()
        for daemon in DAEMONS:
            self.start_daemon(daemon)
            if daemon == "kube-apiserver":
                wait_for(self.access.answers, f"the API server; see {self.directory}/log")
        for name in self.real_names:
            self.start_node(name)
        for number in range(1, self.hollow_nodes + 1):
            self.start_hollow_node(number)
        wait_for(self._is_ready, f"the nodes; see {self.directory}/log", seconds=240)
        if self.driver_nodes:
            self.access.create(*(_device_class(*names) for names in DEVICE_TYPES.items()))

    def stop(self) -> None:
        for node in self._real.values():
            node.cut_power()
        for name in self._processes.running():
            self._processes.end(name, signal.SIGKILL)
        self.network.release()

    def start_daemon(self, daemon: str) -> None:
        """One of the control plane."""
        self.control_plane.start(daemon)

    def kill_daemon(self, daemon: str) -> None:
        self.control_plane.kill(daemon)

    def node(self, name: str) -> Node:
        return self._real[name]

    def start_node(self, name: str) -> None:
        """A real one, also after `cut_power`."""
        node = self._real[name]
        node.start()
        for other in self._real.values():
            if other is not node:
                self._connect(other, node)
                self._connect(node, other)

    def cut_power(self, name: str) -> None:
        """Ends everything on a real or a hollow node without a packet about it."""
        if name in self._real:
            self._real[name].cut_power()
        else:
            self._processes.end(name, signal.SIGKILL)

    def start_hollow_node(self, number: int) -> None:
        name = self.hollow_names[number - 1]
        kubeconfig = self.control_plane.add_user(name, f"system:node:{name}", "system:nodes")
        resources = {"cpu": self.cpus, "memory": self.hollow_memory, GPU: self.gpus}
        scratch = self.directory / name
        scratch.mkdir(exist_ok=True)
        command = [
            "nsenter",
            f"--net={NAMESPACES / f'{self.network.name}{_HOLLOW}'}",
            "--",
            self.programs / "kubemark",
            "--morph=kubelet",
            f"--name={name}",
            f"--kubeconfig={kubeconfig}",
            f"--kubelet-port={10_000 + 2 * number}",
            f"--kubelet-read-only-port={10_001 + 2 * number}",
            f"--node-labels={_listed({**LABELS, 'hollow': 'true'})}",
            f"--extended-resources={_listed(resources)}",
            f"--max-pods={self.hollow_pods}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--use-host-image-service=false",
        ]
        self._processes.start(name, command, {"TMPDIR": str(scratch)})

    def client(self) -> httpx.Client:
        """Requests of an administrator to the API server over connections that stay open."""
        secrets = self.control_plane.secrets
        trusted = ssl.create_default_context(cafile=str(secrets / "ca.crt"))
        trusted.load_cert_chain(secrets / "kubelet-client.crt", secrets / "kubelet-client.key")
        return httpx.Client(base_url=self.control_plane.url, verify=trusted, timeout=60)

    def load_image(self, archive: Path) -> None:
        """Written by `podman save`, on all real nodes."""
        shutil.copy(archive, self.directory / "images" / archive.name)
        for node in self._real.values():
            if node.is_running():
                node.load_image(archive)

    # ------------------------------------------------------------------------------------ inside

    def _prepare(self) -> None:
        log = self.directory / "log"
        log.mkdir()
        self._processes = Processes(log=log)
        self.network = ClusterNetwork.take()
        self.control_plane = ControlPlane(
            directory=self.directory,
            programs=self.programs,
            network=self.network,
            processes=self._processes,
            authority=Authority(),
        )
        self.control_plane.prepare()
        self.access = KubernetesAccess(kubeconfig=self.kubeconfig, kubectl_program=self.programs / "kubectl")
        write_images(self.directory / "images")
        self.network.add(_HOLLOW, self.network.hollow_nodes)
        for number, name in enumerate(self.real_names, 1):
            self._real[name] = self._new_node(number, name)

    def _new_node(self, number: int, name: str) -> Node:
        secrets = self.control_plane.secrets
        self.control_plane.add_user(name, f"system:node:{name}", "system:nodes")
        address = self.network.node(number)
        self.control_plane.authority.issue(name, addresses=(address,), names=name).write(secrets, name)
        self.network.add_host_route(self.network.pods(number), address)
        self.control_plane.add_route(self.network.pods(number), number)
        return Node(
            name=name,
            number=number,
            directory=self.directory / name,
            programs=self.programs,
            images=self.directory / "images",
            secrets=secrets,
            network=self.network,
            processes=self._processes,
            gpus=self.gpus,
            cpus=self.cpus,
            labels=_listed({**({} if name in self.driver_names else LABELS), "hollow": "false"}),
            has_driver=name in self.driver_names,
        )

    def _connect(self, source: Node, target: Node) -> None:
        """Pods of the one reach pods of the other."""
        if source.is_running():
            self.network.add_route(
                f"n{source.number}", self.network.pods(target.number), self.network.node(target.number)
            )

    def _is_ready(self) -> bool:
        ready = 0
        for node in self.access.get("/api/v1/nodes")["items"]:
            status = node["status"]
            conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
            gpus = int(status.get("allocatable", {}).get(GPU, "0"))
            has_all = gpus == self.gpus or node["metadata"]["name"] in self.driver_names
            ready += conditions.get("Ready") == "True" and has_all
        return ready == len(self.node_names) and len(self.published()) == self.gpus * self.driver_nodes

    def published(self) -> list[str]:
        """The names of all devices that drivers publish, with their nodes."""
        slices = self.access.get("/apis/resource.k8s.io/v1/resourceslices")["items"] if self.driver_nodes else []
        return [
            f"{one['spec']['nodeName']}/{device['name']}" for one in slices for device in one["spec"].get("devices", [])
        ]


def _device_class(kind: str, name: str) -> dict[str, object]:
    """The same as in the chart of NVIDIA's driver."""
    condition = f"device.driver == '{DRIVER_NAME}' && device.attributes['{DRIVER_NAME}'].type == '{kind}'"
    spec = {"selectors": [{"cel": {"expression": condition}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _listed(settings: dict[str, object] | dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in settings.items())
