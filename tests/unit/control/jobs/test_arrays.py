"""Arrays: many jobs alike out of one submission."""

from __future__ import annotations

import pytest

from corral.control.errors import Invalid, NotFound, Taken, WrongState
from corral.control.jobs import job_edit
from corral.control.jobs.arrays import stop_array, submit_array
from corral.control.jobs.job_clone import clone
from corral.control.jobs.jobs import JobChange
from corral.control.launch.orders import launch_order
from corral.control.records import JobSpec
from corral.core.jobs.arrays import parse_array
from corral.core.model import JobState
from tests.unit.control.world import ANN, BOB, ROOT, SPEC, Desk, changed, draft

THREE = parse_array("1,3,7")


def test_array_has_a_job_for_every_index(desk: Desk) -> None:
    records = desk.do(submit_array, ANN, draft("sweep", gpus=1), THREE)
    assert [record.job.name for record in records] == ["sweep-1", "sweep-3", "sweep-7"]
    assert [desk.record(record.job.id).spec.array_index for record in records] == [1, 3, 7]
    desk.cycle()
    record = desk.record(records[1].job.id)
    order = launch_order(record.job, record.spec, desk.state.snapshot.nodes, {})
    reported = {name: value for name, value in order.env.items() if name.startswith("CORRAL_ARRAY")}
    assert reported == {"CORRAL_ARRAY_INDEX": "3", "CORRAL_ARRAY_SIZE": "3", "CORRAL_ARRAY_NAME": "sweep"}


def test_the_platform_has_the_last_word_on_the_index(desk: Desk) -> None:
    spec = JobSpec(command=("true",), env={"CORRAL_ARRAY_INDEX": "99"})
    (record,) = desk.do(submit_array, ANN, draft("sweep", spec=spec), (4,))
    desk.cycle()
    present = desk.record(record.job.id)
    assert launch_order(present.job, present.spec, {}, {}).env["CORRAL_ARRAY_INDEX"] == "4"


def test_all_or_none(desk: Desk) -> None:
    desk.submit(draft("sweep-3"))
    with pytest.raises(Taken, match="sweep-3"):
        desk.do(submit_array, ANN, draft("sweep"), THREE)
    with pytest.raises(Taken, match="a job named 'sweep-3'"):
        desk.do(submit_array, ANN, draft("sweep-3"), THREE)
    with pytest.raises(Invalid, match="an array needs a name"):
        desk.do(submit_array, ANN, draft(), THREE)
    with pytest.raises(Invalid, match="4 to 63"):
        desk.do(submit_array, ANN, draft("x" * 62), THREE)
    assert [job.name for job in desk.state.snapshot.jobs.values()] == ["sweep-3"]


def test_a_thousand_in_one_transaction(desk: Desk) -> None:
    records = desk.do(submit_array, ANN, draft("sweep"), range(1000))
    assert len(records) == 1000
    assert len(desk.do(stop_array, ANN, "sweep")) == 1000
    assert desk.state.snapshot.jobs == {}


def test_a_job_can_come_after_a_whole_array(desk: Desk) -> None:
    members = [record.job.id for record in desk.do(submit_array, ANN, draft("sweep"), THREE)]
    (total,) = desk.submit(draft("total", after=("sweep",)))
    assert total.after == tuple(members)
    late = [record.job.after for record in desk.do(submit_array, ANN, draft("late", after=("total",)), THREE)]
    assert late == [(total.id,)] * 3


def test_an_array_is_stopped_in_one_step(desk: Desk) -> None:
    desk.do(submit_array, ANN, draft("sweep", gpus=4), range(4))
    desk.submit(draft("sweep-extra"))
    desk.do(clone, ANN, "sweep-0", JobChange(given=frozenset(), draft=draft(spec=SPEC)))
    running = desk.cycle()
    assert len(running) == 2
    stopped = desk.do(stop_array, ANN, "sweep")
    assert [record.job.state for record in stopped] == [JobState.STOPPING] * 2 + [JobState.STOPPED] * 2
    # A name that only begins alike, and a clone, are none of it.
    assert {job.name for job in desk.state.snapshot.jobs.values() if job.state is JobState.QUEUED} == {
        "sweep-extra",
        "sweep-0-2",
    }


def test_an_array_is_found_by_its_owner_and_name(desk: Desk) -> None:
    desk.do(submit_array, ANN, draft("sweep"), THREE)
    for caller, user in ((BOB, None), (BOB, "ann"), (ROOT, None)):
        with pytest.raises(NotFound, match="there is no array 'sweep'"):
            desk.do(stop_array, caller, "sweep", user)
    assert len(desk.do(stop_array, ROOT, "sweep", "ann")) == 3
    assert {desk.job(f"j-{serial}").end_reason for serial in (1, 2, 3)} == {"stopped_by_operator"}
    with pytest.raises(WrongState, match="every job of array 'sweep' \\(3\\) has ended already"):
        desk.do(stop_array, ANN, "sweep")


def test_an_array_whose_jobs_come_after_each_other_is_stopped_too(desk: Desk) -> None:
    """The end of the first already ends the second."""
    desk.do(submit_array, ANN, draft("sweep"), (0, 1))
    desk.do(job_edit.edit, ANN, "sweep-1", changed(after=("sweep-0",)))
    assert {record.job.state for record in desk.do(stop_array, ANN, "sweep")} == {JobState.STOPPED}
