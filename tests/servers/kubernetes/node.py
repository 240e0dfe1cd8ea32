"""A real node of a test cluster: kubelet, containerd and runc in namespaces of their own, and GPUs that are not there.

It has its own network, process ids, mounts, host name and control groups, so that all of it ends at once when its power
is cut, and nothing of it is left on this machine.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.kubernetes import cgroups
from tests.servers.kubernetes.archives import PAUSE_IMAGE
from tests.servers.kubernetes.network import NAMESPACES, ClusterNetwork
from tests.servers.kubernetes.processes import Processes, wait_for

SOCKET = "/run/containerd/containerd.sock"
#: Mount points. The empty directories stay behind: other nodes may have them mounted over.
_OWN = {"kubelet": "/var/lib/kubelet", "cni": "/var/lib/cni", "pods": "/var/log/pods", "links": "/var/log/containers"}
_ALL_NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup")
DAEMONS = ("containerd", "kubelet", "gpu-plugin")


@dataclass(kw_only=True)
class Node:
    name: str
    #: from 1 on
    number: int
    directory: Path
    programs: Path
    images: Path
    #: with the node's certificate, key, and kubeconfig
    secrets: Path
    network: ClusterNetwork
    processes: Processes
    gpus: int
    cpus: int
    labels: str

    @property
    def unhealthy_gpus(self) -> Path:
        """Indexes of GPUs to be reported as unhealthy, separated by spaces."""
        return self.directory / "unhealthy"

    def start(self) -> None:
        """Starts the node like after a power failure: its disk is as it was."""
        for name in (*_OWN, "containerd", "cni-settings", "cpus", "no-nodes"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        for place in _OWN.values():
            Path(place).mkdir(parents=True, exist_ok=True)
        self._write_settings()
        self.network.add(self._kind, self.network.node(self.number))
        self.network.add_route(self._kind, self.network.services, self.network.control_plane)
        ready = self.directory / "ready"
        ready.unlink(missing_ok=True)
        self.processes.start(self.name, ["bash", self._entry_script()])
        wait_for(ready.exists, f"the namespaces of {self.name}")
        self.start_daemon("containerd")
        wait_for(lambda: self._containerd("version").returncode == 0, f"containerd of {self.name}")
        for archive in sorted(self.images.glob("*.tar")):
            self.load_image(archive)
        self.start_daemon("gpu-plugin")
        self.start_daemon("kubelet")

    def start_daemon(self, daemon: str) -> None:
        inside = ["nsenter", "-t", self.processes.child(self.name), *_ALL_NAMESPACES]
        # Its namespaces are joined so, but not its control groups.
        joined = " ".join(str(cgroups.daemons(kind, place) / "cgroup.procs") for kind, place, _ in cgroups.mounts())
        script = f'for file in {joined}; do echo $$ > "$file"; done; exec "$@"'
        self.processes.start(
            f"{self.name}-{daemon}", [*inside, "--", "sh", "-ec", script, daemon, *self._command(daemon)]
        )

    def kill_daemon(self, daemon: str) -> None:
        """SIGKILL. Containers go on, as after a crash of the daemon."""
        self.processes.end(f"{self.name}-{daemon}", signal.SIGKILL, child=True)

    def is_running(self) -> bool:
        return self.processes.is_running(self.name)

    def cut_power(self) -> None:
        """All of it ends at once, and no packet says so."""
        if not self.is_running():
            return
        self.network.unplug(self._kind)
        self.processes.end(self.name, signal.SIGKILL, child=True)
        for daemon in DAEMONS:
            with contextlib.suppress(ProcessLookupError):
                self.processes.end(f"{self.name}-{daemon}", signal.SIGKILL)
        self.network.drop(self._kind)
        cgroups.remove(self._group)

    def load_image(self, archive: Path) -> None:
        done = self._containerd("-n", "k8s.io", "images", "import", str(archive))
        if done.returncode != 0:
            raise RuntimeError(f"image {archive} on {self.name}: {done.stderr}")

    # ------------------------------------------------------------------------------------ inside

    @property
    def _kind(self) -> str:
        return f"n{self.number}"

    @property
    def _group(self) -> str:
        return f"{self.network.name}{self._kind}"

    def _containerd(self, *words: str) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "-t", str(self.processes.child(self.name)), "--mount", "--net"]
        command = [*inside, "--", "ctr", "-a", SOCKET, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def _command(self, daemon: str) -> list[object]:
        if daemon == "containerd":
            return ["containerd", "-c", self.directory / "containerd.toml"]
        if daemon == "gpu-plugin":
            return [self.programs / "gpu-plugin", self.gpus, self.unhealthy_gpus]
        return [
            self.programs / "kubelet",
            f"--config={self.directory}/kubelet.json",
            f"--kubeconfig={self.secrets}/{self.name}.json",
            f"--hostname-override={self.name}",
            f"--node-ip={self.network.node(self.number)}",
            f"--node-labels={self.labels}",
        ]

    def _entry_script(self) -> Path:
        """Enters its control groups and its network, then its other namespaces; the second script is process 1."""
        enter, inside = self.directory / "enter.sh", self.directory / "init.sh"
        groups = cgroups.create(self._group)
        unshare = "unshare --cgroup --mount --pid --uts --ipc --fork --kill-child --mount-proc --propagation private"
        lines = [f"echo $$ > {shlex.quote(str(group))}/cgroup.procs" for group in groups]
        space = NAMESPACES / self._group
        enter.write_text("\n".join(["set -e", *lines, f"exec nsenter --net={space} {unshare} bash {inside}", ""]))
        inside.write_text("\n".join([*self._mount_lines(), f"touch {self.directory}/ready", _REAP, ""]))
        return enter

    def _mount_lines(self) -> list[str]:
        # Mounts of the kubelet must show in its containers, but nowhere outside.
        lines = ["set -e", f"hostname {self.name}", "mount --make-rshared /"]
        lines += [f"mount --bind {self.directory}/{own} {place}" for own, place in _OWN.items()]
        lines += [f"mkdir -p {place} && mount -t tmpfs tmpfs {place}" for place in ("/run/containerd", "/run/netns")]
        # The kubelet reads from here how many CPUs the node has.
        lines.append(f"mount --bind {self.directory}/cpus /sys/devices/system/cpu")
        lines.append(
            f"! [ -d /sys/devices/system/node ] || mount --bind {self.directory}/no-nodes /sys/devices/system/node"
        )
        for kind, place, options in cgroups.mounts():
            lines.append(f"umount {place} && mount -t {kind} {f'-o {options}' if options else ''} {kind} {place}")
            group = cgroups.daemons(kind, place)
            lines.append(f"mkdir -p {group} && echo $$ > {group}/cgroup.procs")
        return lines

    def _write_settings(self) -> None:
        (self.directory / "containerd.toml").write_text(_CONTAINERD.format(directory=self.directory, pause=PAUSE_IMAGE))
        (self.directory / "cni-settings" / "10-tests.conflist").write_text(json.dumps(self._pod_network()))
        (self.directory / "kubelet.json").write_text(json.dumps(self._kubelet_settings()))
        for number in range(self.cpus):
            topology = self.directory / "cpus" / f"cpu{number}" / "topology"
            topology.mkdir(parents=True, exist_ok=True)
            (topology / "core_id").write_text(f"{number}\n")
            (topology / "physical_package_id").write_text("0\n")
        (self.directory / "cpus" / "online").write_text(f"0-{self.cpus - 1}\n")

    def _pod_network(self) -> dict[str, object]:
        ranges = [[{"subnet": str(self.network.pods(self.number))}]]
        addresses = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "ipam": addresses}
        return {"cniVersion": "0.4.0", "name": "tests", "plugins": [bridge]}

    def _kubelet_settings(self) -> dict[str, object]:
        address = str(self.network.node(self.number))
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            "healthzBindAddress": address,
            "tlsCertFile": f"{self.secrets}/{self.name}.crt",
            "tlsPrivateKeyFile": f"{self.secrets}/{self.name}.key",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": f"{self.secrets}/ca.crt"},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": "/",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "oomScoreAdj": 0,
            # The disk and the memory are shared with everything else that runs here: a node is not to act on it.
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "4s",
            "nodeLeaseDurationSeconds": 12,
            "maxPods": 200,
            "syncFrequency": "5s",
        }


_CONTAINERD = """version = 2
root = "{directory}/containerd"
state = "/run/containerd/state"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE the value may not be lowered, and runc fails.
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni-settings"
"""
#: Process 1 of a node: it reaps what daemons leave behind.
_REAP = "while :; do sleep 1000 & wait $!; done"
