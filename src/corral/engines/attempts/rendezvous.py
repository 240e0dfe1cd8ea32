"""Where the instances of a gang meet: a port of this machine that nobody else is likely to take before they do.

Ports that the kernel hands out by itself are left alone: between the launch and the moment when the first instance
listens, any other program's connection could get one of them.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

FIRST_PORT = 20_000
#: the kernel's own begin behind it, unless an administrator has changed that
LAST_PORT = 32_000
_TRIED = 200


def meeting_port(address: str, taken: Collection[int]) -> int:
    """Free at this moment, and not promised to another gang that has not come to listen yet."""
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
