"""Bounds the memory of a process that works for one user: how many files there are, and what is asked, is the user's
choice, and the server and other people's jobs need the rest of the machine."""

from __future__ import annotations

import os
import resource

#: A part of the machine's memory: a few such processes run at the same time.
_PART = 8
LEAST_BYTES = 2 << 30


def limit_memory() -> None:
    """Limit this process, and those that it starts. An allocation beyond the limit raises MemoryError.

    Limits what is written (RLIMIT_DATA): mapped files, and addresses that a library only reserves for its threads, cost
    no memory.
    """
    most = memory_limit_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def memory_limit_bytes() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(LEAST_BYTES, machine // _PART)
