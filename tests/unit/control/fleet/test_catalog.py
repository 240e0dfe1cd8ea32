"""Flavors and packages: what operators may offer, and what picking one means."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Refusal, Taken
from corral.control.fleet import catalog
from corral.control.fleet.catalog import FLAVOR_LABEL, PACKAGE_LABEL
from corral.control.jobs.jobs import make_job
from corral.control.live.unit_of_work import Work
from corral.control.ports import Store
from corral.control.records import FlavorRecord, PackageRecord
from corral.control.scheduling import views
from corral.core.model import JobKind, Request
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, ROOT, Desk, draft
from tests.unit.core.builders import node

A100 = FlavorRecord(name="a100", models=("A100",))
FAST = FlavorRecord(name="fast", models=("A100",), labels=(("disk", "nvme"),))
ANYWHERE = FlavorRecord(name="anywhere", labels=(("room", "1"),))
ONE = PackageRecord(name="one", gpus=1, cpu_milli=4000, memory_bytes=2**30, flavor="a100")


@pytest.fixture
@once
def desk(store: Store) -> Desk:
    nodes = (
        node("n1", gpus=4, model="A100", labels=(("disk", "nvme"), ("rdma", "true"))),
        node("n2", gpus=4, model="V100"),
    )
    desk = Desk(store, nodes=nodes)
    for flavor in (A100, FAST, ANYWHERE):
        desk.do(catalog.create_flavor, ROOT, flavor)
    desk.do(catalog.create_package, ROOT, ONE)
    return desk


def stored(desk: Desk) -> catalog.Catalog:
    with desk.store.read() as tx:
        return catalog.load_catalog(tx)


def refused(desk: Desk, kind: type[Refusal], act: Callable[[Work], object]) -> Refusal:
    """The refusal; nothing is changed by it."""
    before, events = stored(desk), len(desk.events())
    with pytest.raises(kind) as refusal:
        desk.do(act)
    assert stored(desk) == before
    assert len(desk.events()) == events
    return refusal.value


# ------------------------------------------------------------------------------------------------ managing


def test_flavors_and_packages_are_kept_and_their_changes_recorded(desk: Desk) -> None:
    edited = desk.do(catalog.edit_package, ROOT, PackageRecord(name="one", gpus=2, flavor="fast"))
    assert (edited.gpus, edited.flavor, edited.created_at) == (2, "fast", desk.now)
    desk.do(catalog.edit_flavor, ROOT, FlavorRecord(name="fast", models=("V100", "A100", "V100")))
    assert stored(desk).flavors["fast"].models == ("A100", "V100")
    assert stored(desk).packages["one"] == edited
    assert desk.actions("one") == ["package.created", "package.edited"]
    assert desk.actions("fast") == ["flavor.created", "flavor.edited"]


def test_a_flavor_counts_the_gpus_that_are_of_its_kind(desk: Desk) -> None:
    kinds = desk.state.fleet().kinds
    count = {name: catalog.matching_gpus(flavor, kinds) for name, flavor in stored(desk).flavors.items()}
    assert count == {"a100": 4, "fast": 4, "anywhere": 0}


def test_only_operators_manage_the_catalog(desk: Desk) -> None:
    for act in (
        lambda work: catalog.create_flavor(work, ANN, FlavorRecord(name="x")),
        lambda work: catalog.edit_flavor(work, ANN, A100),
        lambda work: catalog.delete_flavors(work, ANN, ["anywhere"]),
        lambda work: catalog.create_package(work, ANN, PackageRecord(name="x", gpus=1)),
        lambda work: catalog.edit_package(work, ANN, ONE),
        lambda work: catalog.delete_packages(work, ANN, ["one"]),
    ):
        refused(desk, Forbidden, act)


def test_names_are_plain_and_taken_once(desk: Desk) -> None:
    refused(desk, Taken, lambda work: catalog.create_flavor(work, ROOT, A100))
    refused(desk, Taken, lambda work: catalog.create_package(work, ROOT, ONE))
    for name in ("", "a b", "x" * 64, "a/b"):
        flaw = refused(desk, Invalid, partial(catalog.create_flavor, caller=ROOT, flavor=FlavorRecord(name=name)))
        assert flaw.field == "name"
        package = PackageRecord(name=name, gpus=1)
        refused(desk, Invalid, partial(catalog.create_package, caller=ROOT, package=package))


def test_missing_flavors_and_packages_cannot_be_edited(desk: Desk) -> None:
    refused(desk, NotFound, lambda work: catalog.edit_flavor(work, ROOT, FlavorRecord(name="none")))
    refused(desk, NotFound, lambda work: catalog.edit_package(work, ROOT, PackageRecord(name="none", gpus=1)))


@pytest.mark.parametrize(
    ("package", "field"),
    [
        (PackageRecord(name="empty"), "gpus"),
        (PackageRecord(name="both", gpus=1, gpu_milli=500), "gpus"),
        (PackageRecord(name="lost", gpus=1, flavor="h100"), "flavor"),
        (PackageRecord(name="cpu", cpu_milli=1000, flavor="a100"), "gpus"),
    ],
)
def test_a_package_that_makes_no_sense_is_refused(desk: Desk, package: PackageRecord, field: str) -> None:
    assert refused(desk, Invalid, lambda work: catalog.create_package(work, ROOT, package)).field == field


def test_a_package_cannot_contradict_its_flavor(desk: Desk) -> None:
    desk.do(catalog.create_flavor, ROOT, FlavorRecord(name="slow", labels=(("rdma", "false"),)))
    package = PackageRecord(name="rdma", gpus=1, flavor="slow", rdma=True)
    flaw = refused(desk, Invalid, lambda work: catalog.create_package(work, ROOT, package))
    assert flaw.field == "labels"
    desk.do(catalog.create_package, ROOT, PackageRecord(name="quick", gpus=1, flavor="fast", rdma=True))
    turned = FlavorRecord(name="fast", labels=(("rdma", "false"),))
    refused(desk, Invalid, lambda work: catalog.edit_flavor(work, ROOT, turned))


def test_a_flavor_of_packages_without_gpus_cannot_become_a_gpu(desk: Desk) -> None:
    desk.do(catalog.create_package, ROOT, PackageRecord(name="cpu", cpu_milli=1000, flavor="anywhere"))
    turned = FlavorRecord(name="anywhere", models=("A100",))
    flaw = refused(desk, InUse, lambda work: catalog.edit_flavor(work, ROOT, turned))
    assert flaw.numbers == {"packages": ["cpu"]}


def test_a_flavor_in_use_stays_and_so_do_those_beside_it(desk: Desk) -> None:
    flaw = refused(desk, InUse, lambda work: catalog.delete_flavors(work, ROOT, ["anywhere", "a100"]))
    assert flaw.numbers == {"packages": ["one"]}
    assert "flavor a100 is used by package one" in flaw.detail
    flaw = refused(desk, NotFound, lambda work: catalog.delete_flavors(work, ROOT, ["anywhere", "no", "nor"]))
    assert flaw.numbers == {"missing": ["no", "nor"]}
    assert desk.do(catalog.delete_flavors, ROOT, ["anywhere", "fast", "anywhere"]) == ["anywhere", "fast"]
    assert set(stored(desk).flavors) == {"a100"}


def test_packages_go_together_or_not_at_all(desk: Desk) -> None:
    desk.do(catalog.create_package, ROOT, PackageRecord(name="two", gpus=2))
    refused(desk, NotFound, lambda work: catalog.delete_packages(work, ROOT, ["one", "three"]))
    assert desk.do(catalog.delete_packages, ROOT, ["one", "two"]) == ["one", "two"]
    assert stored(desk).packages == {}


# ------------------------------------------------------------------------------------------------ picking


def test_a_package_brings_size_models_and_labels(desk: Desk) -> None:
    fast = PackageRecord(name="fast-one", gpus=1, cpu_milli=2000, memory_bytes=100, flavor="fast", rdma=True)
    desk.do(catalog.create_package, ROOT, fast)
    (job,) = desk.submit(draft("training", gpus=0, package="fast-one"))
    assert job.request == Request(
        gpus=1,
        cpu_milli=2000,
        memory_bytes=100,
        models=("A100",),
        labels=(("disk", "nvme"), ("rdma", "true")),
    )
    assert desk.record(job.id).spec.labels == {PACKAGE_LABEL: "fast-one"}


def test_a_flavor_brings_models_and_labels_beside_what_is_asked(desk: Desk) -> None:
    asked = Request(gpus=2, models=("A100", "V100"), labels=(("disk", "nvme"),))
    (job,) = desk.submit(draft("training", request=asked, flavor="fast"))
    assert (job.request.gpus, job.request.models, job.request.labels) == (2, ("A100",), (("disk", "nvme"),))
    assert desk.record(job.id).spec.labels == {FLAVOR_LABEL: "fast"}


def test_a_flavor_gives_cpus_and_memory_per_gpu_where_the_job_asks_for_none(desk: Desk) -> None:
    balanced = FlavorRecord(
        name="balanced", models=("A100",), cpu_milli_per_gpu=8000, memory_bytes_per_gpu=64 << 30, default_gpus=1
    )
    desk.do(catalog.create_flavor, ROOT, balanced)
    assert stored(desk).flavors["balanced"].default_gpus == 1
    (two,) = desk.submit(draft("two-gpus", request=Request(gpus=2), flavor="balanced", hold=True))
    assert (two.request.cpu_milli, two.request.memory_bytes) == (16_000, 128 << 30)
    (share,) = desk.submit(draft("share", request=Request(gpu_milli=500), flavor="balanced", hold=True))
    assert (share.request.cpu_milli, share.request.memory_bytes) == (4_000, 32 << 30)
    (own,) = desk.submit(draft("own-cpus", request=Request(gpus=1, cpu_milli=1000), flavor="balanced", hold=True))
    assert (own.request.cpu_milli, own.request.memory_bytes) == (1_000, 64 << 30), "an amount of its own counts"
    (none,) = desk.submit(draft("none", request=Request(), flavor="balanced", hold=True))
    assert (none.request.gpus, none.request.cpu_milli) == (1, 8_000)
    desk.do(catalog.create_package, ROOT, PackageRecord(name="pair", gpus=2, flavor="balanced"))
    (packed,) = desk.submit(draft("packed", gpus=0, package="pair", hold=True))
    assert (packed.request.gpus, packed.request.cpu_milli) == (2, 16_000)


def test_a_gang_gets_its_package_on_every_node(desk: Desk) -> None:
    (job,) = desk.submit(draft("gang", gpus=0, nodes=2, package="one", hold=True))
    assert (job.kind, job.request.nodes, job.request.total_gpu_milli) == (JobKind.DISTRIBUTED, 2, 2000)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"package": "none"}, "package"),
        ({"flavor": "none"}, "flavor"),
        ({"package": "one", "flavor": "a100"}, "flavor"),
        ({"package": "one", "request": Request(gpus=1)}, "gpus"),
        ({"package": "one", "request": Request(gpu_milli=500)}, "gpus"),
        ({"package": "one", "request": Request(cpu_milli=1)}, "cpus"),
        ({"package": "one", "request": Request(memory_bytes=1)}, "memory"),
        ({"package": "one", "request": Request(models=("V100",))}, "model"),
        ({"flavor": "a100", "request": Request(gpus=1, models=("V100",))}, "model"),
        ({"flavor": "fast", "request": Request(gpus=1, labels=(("disk", "tape"),))}, "labels"),
        ({"flavor": "a100", "request": Request(cpu_milli=1000)}, "gpus"),
        ({"package": "bench", "kind": JobKind.TRAINING}, "package"),
    ],
)
def test_options_that_contradict_the_package_are_refused_by_name(
    desk: Desk, values: dict[str, object], field: str
) -> None:
    desk.do(catalog.create_package, ROOT, PackageRecord(name="bench", gpus=1, kinds=(JobKind.WORKBENCH,)))
    asked = draft("training", **{"request": Request(), **values})  # type: ignore[arg-type]
    with pytest.raises(Invalid) as refusal:
        desk.submit(asked)
    assert refusal.value.field == field
    with pytest.raises(Invalid) as refusal:
        desk.do(lambda work: make_job(work, ANN, asked))
    assert refusal.value.field == field, "a dry run says the same"
    assert desk.state.snapshot.jobs == {}


def test_a_dry_run_takes_the_package_too(desk: Desk) -> None:
    job = desk.do(lambda work: make_job(work, ANN, draft("training", gpus=0, package="one")))
    trial = views.try_out(desk.state, desk.now, job)
    assert trial.start is not None
    assert trial.start.allocation.model == "A100"


def test_a_job_keeps_what_it_was_submitted_with(desk: Desk) -> None:
    (job,) = desk.submit(draft("training", gpus=0, package="one"))
    desk.do(catalog.edit_package, ROOT, PackageRecord(name="one", gpus=4))
    desk.do(catalog.delete_packages, ROOT, ["one"])
    assert desk.job(job.id).request.gpus == 1
    assert desk.cycle() == [job.id]
