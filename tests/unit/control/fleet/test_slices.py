"""Slices of GPUs, from the hardware that an engine reports to the job that holds one: stories in data."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.errors import Invalid
from corral.control.fleet import catalog
from corral.control.live.cycle import run_cycle
from corral.control.ports import Store
from corral.control.records import FlavorRecord, PackageRecord
from corral.core.model import Gpu, JobState, Node, Request
from tests.unit.control.world import ROOT, Desk, draft
from tests.unit.core.builders import node

SMALL, LARGE = "H200-MIG-1g.18gb", "H200-MIG-3g.71gb"


def machine(name: str, *models: str) -> Node:
    return node(name, gpus=tuple(Gpu(id=f"{name}/{n}", index=n, model=model) for n, model in enumerate(models)))


#: a machine with a whole GPU and one that is cut into three
MIXED = (machine("n1", "H200", SMALL, SMALL, LARGE),)
CUT = (machine("n1", SMALL, LARGE),)


def desk_with(store: Store, nodes: tuple[Node, ...]) -> Desk:
    desk = Desk(store, nodes=nodes)
    desk.do(catalog.create_flavor, ROOT, FlavorRecord(name="slice", models=(SMALL,)))
    desk.do(catalog.create_package, ROOT, PackageRecord(name="notebook", gpus=1, flavor="slice"))
    return desk


STARTS: list[tuple[str, tuple[Node, ...], dict[str, Any], str]] = [
    ("by its model", MIXED, {"request": Request(gpus=1, models=(SMALL,))}, SMALL),
    ("by a larger profile", MIXED, {"request": Request(gpus=1, models=(LARGE,))}, LARGE),
    ("by a flavor", MIXED, {"request": Request(gpus=1), "flavor": "slice"}, SMALL),
    ("by a package", MIXED, {"request": Request(), "package": "notebook"}, SMALL),
    ("a share is of a whole GPU", MIXED, {"request": Request(gpu_milli=500)}, "H200"),
    ("no model means a whole GPU", MIXED, {"request": Request(gpus=1)}, "H200"),
    ("no model where there are slices only", CUT, {"request": Request(gpus=1)}, SMALL),
]


@pytest.mark.parametrize(("nodes", "asked", "got"), [row[1:] for row in STARTS], ids=[row[0] for row in STARTS])
def test_a_job_starts_on_the_model_that_it_asks_for(
    store: Store, nodes: tuple[Node, ...], asked: dict[str, Any], got: str
) -> None:
    desk = desk_with(store, nodes)
    (job,) = desk.submit(draft(**asked))
    desk.do(run_cycle, desk.journal)
    started = desk.job(job.id)
    assert started.state is JobState.STARTING
    assert started.allocation is not None
    assert started.allocation.model == got
    (gpu,) = started.allocation.gpus
    assert {one.id: one.model for one in nodes[0].gpus}[gpu] == got


REFUSED: list[tuple[str, tuple[Node, ...], Request, str]] = [
    ("a share of a slice", MIXED, Request(gpu_milli=500, models=(SMALL,)), "a slice of a GPU is not shared"),
    ("a share where there are slices only", CUT, Request(gpu_milli=500), "a slice of a GPU is not shared"),
    ("more whole GPUs than there are", MIXED, Request(gpus=2), "no node in pool default has 2 GPUs, the largest has 1"),
    (
        "a profile without slices",
        MIXED,
        Request(gpus=1, models=("H200-MIG-7g.141gb",)),
        "there is no GPU of model",
    ),
    ("the GPU that was cut", CUT, Request(gpus=1, models=("H200",)), "there is no GPU of model H200 in pool default"),
]


@pytest.mark.parametrize(("nodes", "asked", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_request_for_what_is_not_there_is_refused(
    store: Store, nodes: tuple[Node, ...], asked: Request, words: str
) -> None:
    desk = desk_with(store, nodes)
    with pytest.raises(Invalid, match=words):
        desk.submit(draft(request=asked))
    assert desk.state.snapshot.jobs == {}
