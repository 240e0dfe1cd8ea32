"""`make bench`: every measurement, or those named: `python -m benchmarks scheduling jobs`."""

from __future__ import annotations

import sys

from benchmarks import console, footprint, history, joblist, jobs, overview, scheduling

ALL = {
    "scheduling": scheduling.main,
    "jobs": jobs.main,
    "joblist": joblist.main,
    "console": console.main,
    "overview": overview.main,
    "footprint": footprint.main,
    "history": history.main,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
