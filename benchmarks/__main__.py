"""`make bench`: every measurement on one page. `python -m benchmarks scheduling jobs`: all tables of those named."""

from __future__ import annotations

import sys

from benchmarks import (
    buckets,
    completion,
    console,
    datasets,
    departures,
    estimates,
    fairness,
    footprint,
    history,
    joblist,
    jobs,
    kubernetes,
    live_week,
    overview,
    packing,
    page,
    read_costs,
    reads,
    real_weeks,
    scheduling,
    simulate,
    slurm,
    store_copies,
    transfer,
)

ALL = {
    "scheduling": scheduling.main,
    "packing": packing.main,
    "departures": departures.main,
    "completion": completion.main,
    "real_weeks": real_weeks.main,
    "live_week": live_week.main,
    "fairness": fairness.main,
    "estimates": estimates.main,
    "simulate": simulate.main,
    "jobs": jobs.main,
    "slurm": slurm.main,
    "kubernetes": kubernetes.main,
    "joblist": joblist.main,
    "reads": reads.main,
    "read_costs": read_costs.main,
    "console": console.main,
    "overview": overview.main,
    "footprint": footprint.main,
    "history": history.main,
    "store_copies": store_copies.main,
    "transfer": transfer.main,
    "buckets": buckets.main,
    "datasets": datasets.main,
}

if __name__ == "__main__":
    if names := sys.argv[1:]:
        for name in names:
            ALL[name]()
    else:
        page.main()
