"""The visibility of other users' jobs: only their identity is hidden."""

from __future__ import annotations

from corral.control.live.unit_of_work import Caller
from corral.control.records import Function
from corral.core.model import Job
from corral.core.scheduling.explain.reasons import Explanation
from corral.core.scheduling.limits.hold_rules import Reason
from corral.server.events.visibility import JobIdFilter
from corral.server.schemas.scheduling.explain import why_view

MINE = Job(id="j-1", name="mine", user="ann")
THEIRS = Job(id="j-12", name="secret-project", user="bob")
JOBS = {job.id: job for job in (MINE, THEIRS)}
STORY = Explanation(
    job_id="j-1",
    summary="kept for j-12, j-1 and j-99",
    reasons=(Reason(rule="kept", detail="kept for j-12", numbers={"kept_gpus": 2}, jobs=("j-12", "j-1", "j-99")),),
    ahead=("j-12", "j-1"),
)


def test_ids_of_others_become_their_owners() -> None:
    id_filter = JobIdFilter(caller=Caller(name="ann"), jobs=JOBS)
    shown = why_view(MINE, id_filter.over(STORY), id_filter)
    assert shown.summary == "kept for a job of bob, j-1 and another job"
    assert shown.reasons[0].jobs == ["j-1"]
    assert shown.reasons[0].numbers == {"kept_gpus": 2}
    assert [(entry.id, entry.name, entry.user) for entry in shown.ahead] == [
        (None, None, "bob"),
        ("j-1", "mine", "ann"),
    ]
    assert "secret-project" not in shown.model_dump_json()
    assert "j-12" not in shown.model_dump_json()


def test_users_with_the_right_see_jobs_of_others() -> None:
    for caller in (
        Caller(name="op", is_operator=True),
        Caller(name="ann", functions=frozenset({Function.SEE_OTHERS_JOBS})),
    ):
        id_filter = JobIdFilter(caller=caller, jobs=JOBS)
        assert id_filter.over(STORY) is STORY
        assert why_view(MINE, STORY, id_filter).ahead[0].id == "j-12"
