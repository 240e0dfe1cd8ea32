"""The modules that the spawner loads: every fork of a supervisor and of a job's process pays for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import corral

#: `threading` and `random` run code in each forked process; the others load one of them, or much else.
COSTLY = {"threading", "random", "secrets", "hashlib", "subprocess", "shutil", "logging", "asyncio", "pathlib"}


def test_the_spawner_loads_nothing_that_runs_in_each_forked_process() -> None:
    root = Path(corral.__file__).resolve().parent.parent
    code = (
        f"import sys; sys.path.append({str(root)!r}); import corral.engines.local.supervisors.spawner; "
        "print(*sys.modules)"
    )
    # As `spawner_command` starts it.
    shown = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True)
    assert COSTLY.isdisjoint(shown.stdout.split())
