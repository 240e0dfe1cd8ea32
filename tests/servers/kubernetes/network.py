"""The network of a test cluster: a namespace for the control plane, one for each node, and a bridge between them.

The addresses are those that RFC 2544 sets aside for tests. Each cluster takes one of `CLUSTERS` blocks of them, and the
lock of that block for as long as it runs. The kernel forwards nothing that comes from the bridge, so that no packet of
a node or a pod leaves this machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from socket import socket

from tests.servers.network_names import held

ADDRESSES = IPv4Network("198.18.0.0/15")
#: how many clusters, with 4,096 addresses each
CLUSTERS = 32
NAMESPACES = Path("/run/netns")


@dataclass(kw_only=True)
class ClusterNetwork:
    number: int
    _lock: socket = field(repr=False)

    @classmethod
    def take(cls) -> ClusterNetwork:
        """The first that no cluster of this machine uses, without what an aborted one left in it."""
        for number in range(CLUSTERS):
            lock = held(f"test-network-kubernetes-{number}")
            if lock is None:
                continue
            network = cls(number=number, _lock=lock)
            if network._is_of_another_root():
                lock.close()
                continue
            network.remove()
            network._create_bridge()
            return network
        raise RuntimeError(f"all {CLUSTERS} networks for test clusters are taken")

    def release(self) -> None:
        self.remove()
        self._lock.close()

    # ------------------------------------------------------------------------------------ addresses

    @property
    def name(self) -> str:
        """The prefix of its devices and namespaces, whose names have at most 15 characters. Browsers of tests take a
        new address of a device as a change of their network, and end their connections, unless it is called a tunnel.
        """
        return f"tunck{self.number}"

    @property
    def block(self) -> IPv4Network:
        return list(ADDRESSES.subnets(prefixlen_diff=5))[self.number]

    @property
    def nodes(self) -> IPv4Network:
        return self._parts[0]

    @property
    def services(self) -> IPv4Network:
        return self._parts[1]

    @property
    def api_service(self) -> IPv4Address:
        """Kubernetes gives its own service the first address."""
        return self.services[1]

    @property
    def host(self) -> IPv4Address:
        """This machine, as the nodes see it."""
        return self.nodes[1]

    @property
    def control_plane(self) -> IPv4Address:
        return self.nodes[2]

    @property
    def hollow_nodes(self) -> IPv4Address:
        return self.nodes[3]

    def node(self, number: int) -> IPv4Address:
        return self.nodes[10 + number]

    def pods(self, number: int) -> IPv4Network:
        """The addresses of pods on the node with this number, which starts at 1."""
        return self._parts[1 + number]

    @property
    def _parts(self) -> list[IPv4Network]:
        return list(self.block.subnets(new_prefix=24))

    # ------------------------------------------------------------------------------------ namespaces

    def add(self, kind: str, address: IPv4Address) -> str:
        """The name of a new namespace with this address on the bridge."""
        space, outer = f"{self.name}{kind}", f"{self.name}v{kind}"
        self.drop(kind)
        run_ip("netns", "add", space)
        run_ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
        run_ip("link", "set", outer, "master", self.name, "up")
        for words in (("link", "set", "lo", "up"), ("link", "set", "eth0", "up")):
            run_ip("-n", space, *words)
        run_ip("-n", space, "addr", "add", f"{address}/{self.nodes.prefixlen}", "dev", "eth0")
        # Programs look for the device of the default route to learn their own address.
        run_ip("-n", space, "route", "add", "default", "via", str(self.host))
        return space

    def drop(self, kind: str) -> None:
        space = f"{self.name}{kind}"
        if not (NAMESPACES / space).exists():
            return
        _end_processes(space)
        run_ip("netns", "del", space)
        # The kernel removes both ends of its cable later; its name is needed now.
        run_ip("link", "del", f"{self.name}v{kind}", check=False)

    def unplug(self, kind: str) -> None:
        """No packet gets through any more, not even those that close connections."""
        run_ip("link", "set", f"{self.name}v{kind}", "down")

    def add_route(self, kind: str, target: IPv4Network, gateway: IPv4Address) -> None:
        run_ip("-n", f"{self.name}{kind}", "route", "replace", str(target), "via", str(gateway))

    def add_host_route(self, target: IPv4Network, gateway: IPv4Address) -> None:
        """Tests and corral's server reach pods and services as a machine beside the cluster would."""
        run_ip("route", "replace", str(target), "via", str(gateway))

    def remove(self) -> None:
        for space in self._spaces():
            self.drop(space.removeprefix(self.name))
        run_ip("link", "del", self.name, check=False)

    def _is_of_another_root(self) -> bool:
        """Whether tests in another root of the file system use it: their lock and namespaces are not seen from here,
        but their devices are."""
        devices = re.findall(rf"^\d+: {self.name}(?:v\w+)?[@:]", run_ip("-oneline", "link", "show"), re.MULTILINE)
        return bool(devices) and not self._spaces()

    def _spaces(self) -> list[str]:
        return [path.name for path in NAMESPACES.glob(f"{self.name}[a-z]*")] if NAMESPACES.exists() else []

    def _create_bridge(self) -> None:
        run_ip("link", "add", self.name, "type", "bridge")
        run_ip("addr", "add", f"{self.host}/{self.nodes.prefixlen}", "dev", self.name)
        run_ip("link", "set", self.name, "up")
        Path(f"/proc/sys/net/ipv4/conf/{self.name}/forwarding").write_text("0")
        self.add_host_route(IPv4Network(self.services), self.control_plane)


def _end_processes(space: str) -> None:
    """SIGKILL to all in it: those of an aborted run, too, which no handle is left of."""
    deadline = time.monotonic() + 30
    while pids := run_ip("netns", "pids", space).split():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        assert time.monotonic() < deadline, f"processes {pids} in {space} do not end"
        time.sleep(0.05)


def run_ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
