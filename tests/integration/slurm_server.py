"""A corral server on a real Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.servers.corral_server import CorralServer
from tests.servers.fork_server import ENTRY_POINT
from tests.servers.slurm import SlurmCluster


def server_on(
    slurm: SlurmCluster,
    home: Path,
    *args: str,
    settings: str = "",
    local: bool = False,
    program: Sequence[str] = ENTRY_POINT,
    **options: str,
) -> CorralServer:
    """`options` are further settings of the cluster; `settings` are further lines of corral.yaml. With `local`, this
    machine is a cluster of its own beside it."""
    home.mkdir(parents=True, exist_ok=True)
    slurm.make_whole()
    more = "".join(f", {name}: {value}" for name, value in options.items())
    beside = "{name: local}, " if local else ""
    (home / "corral.yaml").write_text(
        f"cluster: [{beside}{{name: hpc, engine: slurm, slurm: {{conf: {slurm.conf}{more}}}}}]\n{settings}"
    )
    return CorralServer(home, "--config", str(home / "corral.yaml"), *args, program=program)
