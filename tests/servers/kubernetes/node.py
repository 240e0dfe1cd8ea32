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
from collections.abc import Mapping, Sequence
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
#: GPUs of a node are counted by a device plugin, or published by a driver of Dynamic Resource Allocation.
PLUGIN, DRIVER = "gpu-plugin", "gpu-driver"
DAEMONS = ("containerd", "kubelet", PLUGIN, DRIVER)


def gpu_device(node: str, index: int, **attributes: object) -> dict[str, object]:
    """A GPU as NVIDIA's driver publishes it; `attributes` are of the kinds of a ResourceSlice, as {"string": "x"}."""
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{node}-{index}"},
            "productName": {"string": "NVIDIA A100-SXM4-80GB"},
            **attributes,
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


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
    #: a driver publishes its GPUs
    has_driver: bool = False

    @property
    def unhealthy_gpus(self) -> Path:
        """Indexes of GPUs to be reported as unhealthy, separated by spaces."""
        return self.directory / "unhealthy"

    @property
    def devices(self) -> Path:
        """The directory of the driver: `devices.json` has the devices that it publishes; while there is a file
        `refusal`, it prepares no claim."""
        return self.directory / "devices"

    def publish(self, devices: Sequence[Mapping[str, object]]) -> None:
        """`devices` in the form of a ResourceSlice."""
        self.devices.mkdir(exist_ok=True)
        new = self.devices / "devices.new"
        new.write_text(json.dumps(devices))
        new.rename(self.devices / "devices.json")

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
        if self.has_driver and not self.devices.exists():
            self.publish([gpu_device(self.name, index) for index in range(self.gpus)])
        self.start_daemon(DRIVER if self.has_driver else PLUGIN)
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
        if daemon == PLUGIN:
            return [self.programs / PLUGIN, self.gpus, self.unhealthy_gpus]
        if daemon == DRIVER:
            return [self.programs / DRIVER, self.name, self.secrets / "admin.json", self.devices]
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
        runtime = self.directory / "runtime"
        runtime.write_text(_RUNTIME.format(edits=self.devices / "cdi"))
        runtime.chmod(0o755)
        settings = _CONTAINERD.format(directory=self.directory, pause=PAUSE_IMAGE)
        settings += _OWN_RUNTIME.format(runtime=runtime) if self.has_driver else ""
        (self.directory / "containerd.toml").write_text(settings)
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
_OWN_RUNTIME = """  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{runtime}"
"""
#: runc behind what containerd does by itself from 1.7 on (Debian 12 has 1.6): a container gets the variables that a
#: driver has prepared for its pod, from files in the format of the Container Device Interface.
_RUNTIME = """#!/usr/bin/python3 -IS
import glob, json, os, sys
words = sys.argv[1:]
if "create" in words:
    path = words[words.index("--bundle") + 1] + "/config.json"
    with open(path) as file:
        config = json.load(file)
    notes = config.get("annotations", {{}})
    pod = "/".join(str(notes.get("io.kubernetes.cri.sandbox-" + part)) for part in ("namespace", "name"))
    for name in glob.glob("{edits}/*.json"):
        with open(name) as file:
            prepared = json.load(file)
        if pod in prepared["annotations"]["pods"].split(","):
            for device in prepared["devices"]:
                config["process"]["env"] += device["containerEdits"]["env"]
    with open(path, "w") as file:
        json.dump(config, file)
os.execvp("runc", ["runc", *words])
"""
#: Process 1 of a node: it reaps what daemons leave behind.
_REAP = "while :; do sleep 1000 & wait $!; done"
