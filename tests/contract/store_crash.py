"""A server that dies at a given moment: writes a job to the store at argv[1], says so, and waits to be killed."""

from __future__ import annotations

import sys
import time

from corral.stores import open_store
from tests.contract.store_samples import a_record


def main(url: str, moment: str) -> None:
    store = open_store(url)
    with store.write() as transaction:
        (job_id,) = transaction.jobs.next_ids(1)
        transaction.jobs.add([a_record(job_id, name=moment)])
        if moment == "midway":
            _wait_to_be_killed()
    _wait_to_be_killed()


def _wait_to_be_killed() -> None:
    sys.stdout.write("now\n")
    sys.stdout.flush()
    time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
