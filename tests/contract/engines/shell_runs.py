"""Commands in jobs of an engine that runs them by processes of this machine, from start to end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import pytest

from corral.control.ports import LaunchRefused, ShellChannel, ShellStream
from tests.contract.engine_harness import LocalHarness, order
from tests.contract.slurm_harness import SlurmHarness

WithShells = LocalHarness | SlurmHarness


async def heard(shell: ShellStream) -> dict[ShellChannel, str]:
    """All output until the end."""
    found = {ShellChannel.STDOUT: b"", ShellChannel.STDERR: b""}
    async for channel, data in shell.output():
        found[channel] += data
    return {channel: data.decode() for channel, data in found.items()}


async def heard_until(shell: ShellStream, pattern: str) -> str:
    """The output up to the first match."""
    found = ""
    async for _, data in shell.output():
        found += data.decode()
        if re.search(pattern, found):
            break
    return found


def open_shell(cluster: WithShells, *command: str, **options: Any) -> Coroutine[Any, Any, ShellStream]:
    attempt_id, rank = options.pop("attempt_id", "j-1.1"), options.pop("rank", 0)
    chosen = {"has_terminal": False, "has_input": False, **options}
    return cluster.engine.open_shell(attempt_id, rank, command, **chosen)


def ran(cluster: WithShells, *command: str, given: bytes = b"", rank: int = 0) -> tuple[str, str, int | None]:
    """Output, errors and exit code of a command."""

    async def run() -> tuple[str, str, int | None]:
        shell = await open_shell(cluster, *command, rank=rank, has_input=bool(given))
        if given:
            await shell.send(given)
            await shell.end_input()
        found = await heard(shell)
        await shell.close()
        return found[ShellChannel.STDOUT], found[ShellChannel.STDERR], shell.exit_code

    return asyncio.run(run())


def ended_with_its_job(cluster: WithShells) -> int | None:
    """The exit code of a command that lets the program of its job end, and would go on itself."""

    async def run() -> int | None:
        shell = await open_shell(cluster, "sh", "-c", "touch leave; trap '' HUP; echo here; sleep 600")
        await heard(shell)
        await shell.close()
        return shell.exit_code

    return asyncio.run(run())


def assert_only_running_instances_have_shells(cluster: WithShells) -> None:
    cluster.launch(order("/bin/true"))
    cluster.listener.ended()
    for attempt_id in ("j-1.1", "j-9.1", "../../etc"):
        with pytest.raises(LaunchRefused, match="does not run"):
            asyncio.run(open_shell(cluster, "id", attempt_id=attempt_id))
