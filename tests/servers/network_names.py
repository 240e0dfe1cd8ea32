"""Names in the network of this machine, such as those of devices, that tests beside each other must not share.

The lock of a name is an abstract socket: it belongs to the network as the devices do. Files would not do: tests in a
root of their own see other files and the same devices.
"""

from __future__ import annotations

import socket


def held(name: str) -> socket.socket | None:
    """Holds the name until the socket is closed, or the process ends; None if another process holds it."""
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0{name}")
    except OSError:
        lock.close()
        return None
    return lock
