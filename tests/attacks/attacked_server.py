"""A corral server for attacks on Slurm: run instead of the ordinary entry point.

ACCOUNT_UID: it becomes this account first. CRASH_FILE: it dies right behind the next sbatch while this file is there,
which is removed then: Slurm has the job, and the server has not stored its id.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from corral.cli.main import main
from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt


def crash_before_the_id_is_stored(file: Path) -> None:
    note_job = slurm_attempt.note_job

    def note_or_die(layout: Layout, attempt: Attempt, job_id: int) -> None:
        if file.exists():
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        note_job(layout, attempt, job_id)

    slurm_attempt.note_job = note_or_die


if __name__ == "__main__":
    if (uid := int(os.environ.pop("ACCOUNT_UID", "0"))) != 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if file := os.environ.pop("CRASH_FILE", ""):
        crash_before_the_id_is_stored(Path(file))
    main()
