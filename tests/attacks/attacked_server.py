"""A corral server for attacks on Slurm: run instead of the ordinary entry point.

ACCOUNT_UID: it becomes this account first. CRASH_FILE: it dies right behind the next sbatch while this file is there,
which is removed then: Slurm has the job, and the server has not stored its id.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from corral.cli.main import main
from corral.engines.slurm.attempts import slurm_attempt


def crash_before_the_id_is_stored(file: Path) -> None:
    note_job = slurm_attempt.note_job

    def dying(*words: Any) -> None:
        if file.exists():
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        note_job(*words)

    slurm_attempt.note_job = dying


if __name__ == "__main__":
    if (uid := int(os.environ.pop("ACCOUNT_UID", "0"))) != 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if file := os.environ.pop("CRASH_FILE", ""):
        crash_before_the_id_is_stored(Path(file))
    main()
