"""A server as `corral.service` starts it, where no systemd runs: `python unit_server.py up …`.

Applies the directives of the unit to this process and becomes the server, so that tests meet the same capabilities,
system calls and environment. Unlike systemd it takes the home and the configuration from its own environment.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

UNIT = Path(__file__).parents[2] / "src/corral/server/system/deploy/corral.service"
#: Directives that this program applies; a test compares them with those of the unit.
APPLIED = (
    "CapabilityBoundingSet",
    "Environment",
    "LimitNOFILE",
    "RestrictAddressFamilies",
    "RestrictRealtime",
    "StateDirectoryMode",
    "SystemCallArchitectures",
    "SystemCallErrorNumber",
    "SystemCallFilter",
    "UMask",
)

_PR_CAPBSET_DROP = 24
_NAMES = """
    CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
    NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
    SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP
    MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
#: By number.
CAPABILITIES = tuple(_NAMES.split())

# libseccomp, which systemd uses too
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_CTL_NNP = 3
_EQUAL, _GREATER = 4, 6
_REALTIME = (os.SCHED_FIFO, os.SCHED_RR, 6)
_LAST_FAMILY = 45


class _Compare(ctypes.Structure):
    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def directives(path: Path) -> dict[str, list[str]]:
    """The values of each directive of [Service]; an empty one takes back those before it."""
    found: dict[str, list[str]] = {}
    section = ""
    for raw in path.read_text().splitlines():
        line = raw.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key] = [*found.get(key, []), value] if value else []
    return found


def words_of(unit: dict[str, list[str]], key: str) -> list[str]:
    return [word for value in unit.get(key, []) for word in value.split()]


def apply(unit: dict[str, list[str]]) -> None:
    os.umask(int(unit["UMask"][0], 8))
    Path(os.environ["CORRAL_HOME"]).chmod(int(unit["StateDirectoryMode"][0], 8))
    for pair in words_of(unit, "Environment"):
        name, _, value = pair.partition("=")
        if name not in ("CORRAL_HOME", "CORRAL_CONFIG"):
            os.environ[name] = value
    files = min(int(unit["LimitNOFILE"][0]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    _filter_calls(unit)
    _drop_capabilities(words_of(unit, "CapabilityBoundingSet"))


def _drop_capabilities(kept: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for number, name in enumerate(CAPABILITIES):
        if f"CAP_{name}" not in kept and libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"CAP_{name} cannot be dropped")


def _filter_calls(unit: dict[str, list[str]]) -> None:
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(seccomp.seccomp_init(_ALLOW))
    # The other system calls of the architecture's older relatives end a program by default.
    assert unit["SystemCallArchitectures"] == ["native"]
    assert seccomp.seccomp_attr_set(rules, _CTL_NNP, 0) == 0

    def deny(call: str, number: int, *comparisons: _Compare) -> None:
        resolved = seccomp.seccomp_syscall_resolve_name(call.encode())
        array = (_Compare * max(1, len(comparisons)))(*comparisons)
        # Negative: another architecture's call.
        if resolved >= 0:
            assert seccomp.seccomp_rule_add_array(rules, _ERRNO | number, resolved, len(comparisons), array) == 0, call

    refused = getattr(errno, unit["SystemCallErrorNumber"][0])
    for call in _calls([word.lstrip("~") for word in words_of(unit, "SystemCallFilter")]):
        deny(call, refused)
    families = {getattr(socket, name) for name in words_of(unit, "RestrictAddressFamilies")}
    for family in set(range(_LAST_FAMILY + 1)) - families:
        deny("socket", errno.EAFNOSUPPORT, _Compare(0, _EQUAL, family, 0))
    deny("socket", errno.EAFNOSUPPORT, _Compare(0, _GREATER, _LAST_FAMILY, 0))
    if unit["RestrictRealtime"] == ["yes"]:
        for policy in _REALTIME:
            deny("sched_setscheduler", errno.EPERM, _Compare(1, _EQUAL, policy, 0))
    assert seccomp.seccomp_load(rules) == 0


def _calls(groups: list[str]) -> set[str]:
    """The system calls of groups, which may name other groups, as systemd knows them."""
    listed = subprocess.run(["systemd-analyze", "syscall-filter", *groups], check=True, capture_output=True, text=True)
    lines = [line.strip() for line in listed.stdout.splitlines() if line.startswith("    ")]
    named = {line for line in lines if not line.startswith(("#", "@"))}
    inner = [line for line in lines if line.startswith("@")]
    return named | (_calls(inner) if inner else set())


if __name__ == "__main__":
    apply(directives(UNIT))
    os.execv(sys.executable, [sys.executable, "-m", "corral.cli.main", *sys.argv[1:]])
