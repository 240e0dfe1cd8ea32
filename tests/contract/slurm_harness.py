"""The Slurm engine under contract, on a real Slurm that tests of one process share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.control.ports import Engine
from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.job_orders import SlurmRules
from corral.engines.slurm.attempts.run_directory import Layout, read_lines
from corral.engines.slurm.engine import SlurmEngine
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmCommands
from corral.engines.slurm.slurm_api.rest import SlurmRest
from corral.engines.slurm.slurm_api.rest_tokens import Tokens
from tests.contract.engine_harness import EngineHarness
from tests.servers.slurm import SlurmCluster


class SlurmHarness(EngineHarness):
    name = "slurm"
    engine: SlurmEngine
    rules: Mapping[str, Any] = {}

    def __init__(self, root: Path, cluster: SlurmCluster, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.root = root
        self.slurm = cluster
        root.mkdir(parents=True, exist_ok=True)
        cluster.make_whole()
        os.environ["CORRAL_TOKEN"] = "secret"
        self.start()

    def access(self) -> Slurm:
        return SlurmCommands(conf=str(self.slurm.conf))

    def new_engine(self) -> Engine:
        return SlurmEngine(
            root=self.root,
            slurm=self.access(),
            rules=SlurmRules(log_limit_bytes=self.log_limit_bytes, **self.rules),
            look_seconds=0.05,
            rescan_seconds=0.5,
            **self.options,
        )

    def crash_helper(self) -> None:
        """Does nothing: Slurm starts attempts."""

    def is_alive(self, attempt_id: str = "j-1.1", rank: int = 0) -> bool:
        reported = [line.split()[0] for line in read_lines(self.root / "places" / f"{attempt_id}.{rank}" / "told")]
        return "up" in reported and "end" not in reported

    def slurm_name(self, attempt_id: str = "j-1.1") -> str:
        """The name of the attempt's job in Slurm."""
        attempt = slurm_attempt.load(Layout(str(self.root)), attempt_id)
        assert attempt is not None
        return attempt.job_name(self.engine.describe()["mark"])

    def bytes_kept(self) -> int:
        return sum(path.stat().st_blocks * 512 for path in self.root.rglob("places/*/log"))

    def clean_up(self) -> None:
        super().clean_up()
        os.environ.pop("CORRAL_TOKEN", None)


class SlurmRestHarness(SlurmHarness):
    """The same cluster, reached through slurmrestd with a token of root's."""

    name = "slurm-rest"

    def access(self) -> Slurm:
        token = self.root / "token"
        if not token.exists():
            token.write_text(self.slurm.token())
        return SlurmRest(
            url=self.slurm.start_rest(),
            tokens=Tokens(file=str(token)),
            commands=SlurmCommands(conf=str(self.slurm.conf)),
        )
