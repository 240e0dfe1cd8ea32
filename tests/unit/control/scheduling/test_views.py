"""Views for users, counted again by hand."""

from __future__ import annotations

from corral.control.errors import Invalid
from corral.control.scheduling import views
from corral.core.model import Job, Request
from tests.unit.control.world import ANN, BOB, Desk, draft


def trial_job(**values: object) -> Job:
    return Job(**{"id": "j-0", "name": "trial", "user": "ann", "request": Request(gpus=4), **values})  # type: ignore[arg-type]


def test_nodes_tell_who_holds_which_gpu(desk: Desk) -> None:
    desk.submit(draft("shared-1", request=Request(gpu_milli=250)), caller=ANN)
    desk.submit(draft("shared-2", request=Request(gpu_milli=500)), caller=BOB)
    desk.cycle()
    nodes = {view.node.id: view for view in desk.state.fleet(desk.now).views()}
    held = [(gpu.held_milli, sorted(job.user for job in gpu.jobs)) for gpu in nodes["n1"].gpus]
    assert held[0] == (750, ["ann", "bob"])
    assert nodes["n1"].free_gpus == 3
    assert nodes["n2"].free_gpus == 4


def test_the_order_shows_places_reasons_and_the_promise(desk: Desk) -> None:
    desk.submit(draft("fills-1", gpus=4, time_limit_seconds=100.0), draft("fills-2", gpus=4, time_limit_seconds=300.0))
    desk.cycle()
    desk.submit(draft("waits-1", gpus=2), draft("waits-2", gpus=2))
    desk.cycle()
    (line,) = views.queue_order(desk.state, desk.now, "default")
    assert [(place.position, place.job.name) for place in line.places] == [(1, "waits-1"), (2, "waits-2")]
    assert line.places[0].planned_start == desk.now + 100.0 + 30.0
    assert line.places[1].planned_start is None
    assert "score" in line.places[0].detail


def test_long_line_shows_its_first_jobs_and_those_of_the_user(desk: Desk) -> None:
    desk.submit(draft("fills-1", gpus=4), draft("fills-2", gpus=4))
    desk.cycle()
    desk.submit(*(draft(f"of-ann-{n}", gpus=4) for n in range(3)), caller=ANN)
    desk.submit(draft("of-bob-0", gpus=4), caller=BOB)
    desk.cycle()
    (whole,) = views.queue_order(desk.state, desk.now, "default")
    (line,) = views.queue_order(desk.state, desk.now, "default", limit=1, whose="bob")
    assert [place.position for place in whole.places] == [1, 2, 3, 4]
    own = [place.position for place in whole.places if place.job.user == "bob"]
    assert [place.position for place in line.places] == sorted({1, *own})
    assert line.length == 4


def test_a_dry_run_shows_the_outcome_and_changes_nothing(desk: Desk) -> None:
    before = desk.state.snapshot.revision, len(desk.state.snapshot.jobs)
    fits = views.try_out(desk.state, desk.now, trial_job())
    assert fits.start is not None
    assert [grant.node for grant in fits.start.allocation.grants] == ["n1"]
    too_large = views.try_out(desk.state, desk.now, trial_job(request=Request(gpus=5)))
    assert isinstance(too_large.refusal, Invalid)
    desk.submit(draft("fills", gpus=4), draft("more", gpus=4))
    desk.cycle()
    waits = views.try_out(desk.state, desk.now, trial_job())
    assert waits.start is None
    assert waits.explanation is not None
    assert [reason.rule for reason in waits.explanation.reasons] == ["resources"]
    assert len(desk.state.snapshot.jobs) == before[1] + 2
