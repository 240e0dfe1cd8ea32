"""The queries of retention, on every database."""

from __future__ import annotations

from corral.control.ports import Store
from corral.control.records import EventRecord
from corral.core.model import JobState
from tests.contract.store_samples import added, ids_of

pytest_plugins = ("tests.servers.fixtures",)


def test_jobs_that_are_over_come_in_the_order_of_their_ids(store: Store) -> None:
    states = (JobState.COMPLETED, JobState.RUNNING, JobState.FAILED, JobState.QUEUED, JobState.STOPPED)
    records = added(store, *({"state": state} for state in states))
    ended = [record.job.id for record in records if record.job.state.is_ended]
    with store.read() as tables:
        assert tables.jobs.count_ended() == 3
        assert ids_of(tables.jobs.ended(None, 10)) == ended
        assert ids_of(tables.jobs.ended(None, 2)) == ended[:2]
        assert ids_of(tables.jobs.ended(ended[1], 10)) == ended[2:]
        assert tables.jobs.ended(ended[2], 10) == []


def test_events_go_from_the_oldest_on(store: Store) -> None:
    with store.write() as tables:
        tables.events.append(
            [EventRecord(id=0, at=float(at), actor="ann", action="job.created", subject=f"j-{at}") for at in range(6)]
        )
    with store.write() as tables:
        assert tables.events.prune(3.0, 2) == 2
        assert tables.events.prune(3.0, 2) == 1
        assert tables.events.prune(3.0, 2) == 0
        assert [found.at for found in tables.events.after(0, 10)] == [3.0, 4.0, 5.0]
