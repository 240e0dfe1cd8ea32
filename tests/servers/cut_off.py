"""A network namespace with one cable to this machine, for a server that is to be cut off from its database.

The server reaches the database at one address of this machine, and is reached by clients from another one, so that the
first way can be cut alone: packets to the database vanish, as behind a broken switch, and no connection is closed.
The addresses are those of RFC 5737 for documentation. `python cut_off.py NAMESPACE ARGUMENTS` runs corral inside.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from socket import socket

ADDRESSES = IPv4Network("198.51.100.0/24")
NAMESPACES = Path("/run/netns")
#: an address that no device has
NO_DEVICE = "02:00:00:00:00:01"
CLONE_NEWNET = 0x40000000


@dataclass(kw_only=True)
class CutOff:
    number: int
    _lock: socket = field(repr=False)

    @classmethod
    def take(cls) -> CutOff:
        """The first that no other test of this machine uses."""
        # Not at the top: this module is also a program that other modules of tests are not there for.
        from tests.servers.network_names import held

        for number in range(32):
            lock = held(f"test-network-cut-off-{number}")
            if lock is None:
                continue
            taken = cls(number=number, _lock=lock)
            taken._remove()
            taken._create()
            return taken
        raise RuntimeError("all networks for servers that are cut off are taken")

    def release(self) -> None:
        self._remove()
        self._lock.close()

    @property
    def name(self) -> str:
        """The name of namespace and cable. Browsers of tests ignore a tunnel."""
        return f"tuncut{self.number}"

    @property
    def database(self) -> str:
        """The address of this machine that can be cut off."""
        return str(self._network(0)[1])

    @property
    def network(self) -> str:
        """The address and the network of the database's clients."""
        return f"{self.database}/{self._network(0).prefixlen}"

    @property
    def address(self) -> str:
        """The address at which the server is reached."""
        return str(self._network(1)[2])

    @property
    def program(self) -> tuple[str, str]:
        """Runs corral inside."""
        return str(Path(__file__).resolve()), self.name

    def cut(self) -> None:
        _ip("-n", self.name, "neigh", "replace", self.database, "lladdr", NO_DEVICE, "dev", "eth0", "nud", "permanent")

    def mend(self) -> None:
        _ip("-n", self.name, "neigh", "del", self.database, "dev", "eth0")

    def _network(self, place: int) -> IPv4Network:
        return list(ADDRESSES.subnets(new_prefix=30))[self.number * 2 + place]

    def _create(self) -> None:
        _ip("netns", "add", self.name)
        _ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        for network in (self._network(0), self._network(1)):
            _ip("addr", "add", f"{network[1]}/30", "dev", self.name)
            _ip("-n", self.name, "addr", "add", f"{network[2]}/30", "dev", "eth0")
        _ip("link", "set", self.name, "up")
        for device in ("lo", "eth0"):
            _ip("-n", self.name, "link", "set", device, "up")

    def _remove(self) -> None:
        if (NAMESPACES / self.name).exists():
            _ip("netns", "del", self.name)
        device = Path(f"/sys/class/net/{self.name}")
        if device.exists():
            try:
                _ip("link", "del", self.name)
            except subprocess.CalledProcessError:
                # The kernel removes it with the namespace, a moment later.
                if device.exists():
                    raise


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _enter(space: str) -> None:
    opened = os.open(NAMESPACES / space, os.O_RDONLY | os.O_CLOEXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(opened, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "the network namespace cannot be entered")
    os.close(opened)


if __name__ == "__main__":
    from corral.cli.main import main

    _enter(sys.argv[1])
    del sys.argv[1]
    main()
