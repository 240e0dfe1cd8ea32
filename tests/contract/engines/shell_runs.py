"""Commands in jobs of an engine that runs them by processes of this machine, from start to end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from corral.control.ports import ShellChannel, ShellStream
from tests.contract.engine_harness import LocalHarness
from tests.contract.slurm_harness import SlurmHarness

WithShells = LocalHarness | SlurmHarness


async def heard(shell: ShellStream) -> dict[ShellChannel, str]:
    """All output until the end."""
    found = {ShellChannel.STDOUT: b"", ShellChannel.STDERR: b""}
    async for channel, data in shell.output():
        found[channel] += data
    return {channel: data.decode() for channel, data in found.items()}


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
