"""`make bench`: every measurement, or those named: `python -m benchmarks scheduling jobs`."""

from __future__ import annotations

import sys

from benchmarks import (
    completion,
    console,
    datasets,
    estimates,
    fairness,
    footprint,
    history,
    joblist,
    jobs,
    overview,
    packing,
    real_weeks,
    scheduling,
    simulate,
    slurm,
    transfer,
)

ALL = {
    "scheduling": scheduling.main,
    "packing": packing.main,
    "completion": completion.main,
    "real_weeks": real_weeks.main,
    "fairness": fairness.main,
    "estimates": estimates.main,
    "simulate": simulate.main,
    "jobs": jobs.main,
    "slurm": slurm.main,
    "joblist": joblist.main,
    "console": console.main,
    "overview": overview.main,
    "footprint": footprint.main,
    "history": history.main,
    "transfer": transfer.main,
    "datasets": datasets.main,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
