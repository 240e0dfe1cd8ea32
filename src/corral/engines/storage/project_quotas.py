"""Project quotas: the file system itself enforces the size of a volume. ext4 and XFS have them when mounted with
`prjquota`, and only root may set them. The kernel is called directly, since the tools are rarely installed."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from dataclasses import dataclass

_MOUNTS = "/proc/self/mountinfo"
_OPTIONS = {"prjquota", "pquota"}
#: <linux/fs.h>: a directory's project, and that new files in it inherit the project
_GET_ATTRIBUTES = 0x801C581F
_SET_ATTRIBUTES = 0x401C5820
_ATTRIBUTES = struct.Struct("=5I8s")
_INHERITED = 0x200
#: <linux/quota.h>
_PROJECT = 2
_GET_QUOTA = 0x800007
_SET_QUOTA = 0x800008
_QUOTA = struct.Struct("=8QI4x")
_LIMITS_GIVEN = 1
_BLOCK_BYTES = 1024

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProjectQuotas:
    """The quotas of the file system on this device."""

    device: str

    def limit(self, directory: str, project: int, size_bytes: int) -> None:
        """Assign the directory and new files in it to this project, with this limit. Raises OSError."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            raw = fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size))
            flags, extent, extents, _, cow, rest = _ATTRIBUTES.unpack(raw)
            wanted = _ATTRIBUTES.pack(flags | _INHERITED, extent, extents, project, cow, rest)
            if wanted != raw:
                fcntl.ioctl(descriptor, _SET_ATTRIBUTES, wanted)
        finally:
            os.close(descriptor)
        blocks = -(-size_bytes // _BLOCK_BYTES)
        self._ask(_SET_QUOTA, project, bytearray(_QUOTA.pack(blocks, blocks, 0, 0, 0, 0, 0, 0, _LIMITS_GIVEN)))

    def used_bytes(self, project: int) -> int:
        answer = bytearray(_QUOTA.size)
        self._ask(_GET_QUOTA, project, answer)
        return int(_QUOTA.unpack(answer)[2])

    def _ask(self, command: int, project: int, body: bytearray) -> None:
        buffer = (ctypes.c_char * len(body)).from_buffer(body)
        code = ctypes.c_int(command << 8 | _PROJECT)
        if _libc.quotactl(code, os.fsencode(self.device), ctypes.c_int(project), buffer) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), self.device)


def quotas_of(directory: str, mounts: str | None = None) -> ProjectQuotas | None:
    """The quotas of the directory's file system; None if it has no usable ones."""
    if os.geteuid() != 0:
        return None
    if mounts is None:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as source:
            mounts = source.read()
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        fields, _, of_system = line.partition(" - ")
        if fields.split()[2] != number:
            continue
        kind, source_device, options = of_system.split()[:3]
        if kind in ("ext4", "xfs") and _OPTIONS & set(options.split(",")):
            return ProjectQuotas(source_device)
    return None
