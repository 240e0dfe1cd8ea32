"""The port at which the instances of a gang connect to each other: a port of this machine that is unlikely to be used
by another program until then.

Ports that the kernel assigns by itself are avoided: between the launch and the moment when the first instance listens,
the connection of any other program could get one of them.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

FIRST_PORT = 20_000
#: the kernel's own range begins above it, unless an administrator has changed that
LAST_PORT = 32_000
_TRIED = 200


def meeting_port(address: str, taken: Collection[int]) -> int:
    """A port that is free now, and not given to another gang that does not listen yet."""
    for _ in range(_TRIED):
        port = random.randint(FIRST_PORT, LAST_PORT)
        if port not in taken and _is_free(address, port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _is_free(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
