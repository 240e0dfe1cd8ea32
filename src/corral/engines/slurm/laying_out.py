"""Everything that the nodes of an attempt need, written where they find it before Slurm hears of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from corral.control.ports import Instance, LaunchOrder
from corral.engines.local.messages import StorageSpec
from corral.engines.slurm import attempts, rundir, scripts
from corral.engines.slurm.attempts import Attempt
from corral.engines.slurm.rundir import Layout
from corral.engines.slurm.submitters import Submitter, give_attempt, give_job, give_storage


def lay_out(
    layout: Layout,
    order: LaunchOrder,
    program: str,
    specs: Mapping[int, list[StorageSpec]],
    environment: Callable[[Instance], Mapping[str, str]],
    said: Sequence[str] = (),
) -> Attempt:
    """`program` is corral's own on the nodes, `specs` are what each instance mounts, and `said` are the first lines of
    its log. Not kept yet: should the server die before `attempts.keep`, it was never ordered."""
    attempt = attempts.create(layout, order, attempts.clock())
    rundir.write_new(layout.attempt(order.attempt_id) / "attempt", scripts.attempt_text(order, layout, program))
    for instance in order.instances:
        place = layout.rank(order.attempt_id, instance.rank)
        place.mkdir()
        text = scripts.instance_text(order, instance, environment(instance), specs[instance.rank])
        rundir.write_new(place / "instance", text)
        if said:
            rundir.write_new(place / "log", "".join(f"corral: {line}\n" for line in said))
    return attempt


def give(
    layout: Layout, order: LaunchOrder, mounted: list[StorageSpec], who: Submitter, top: str, volumes: str
) -> None:
    """To the account whose job it is; root needs nothing."""
    if who.account.uid != 0:
        give_attempt(layout.attempt(order.attempt_id), who.owner, top)
        give_job(order, who.owner, top)
        give_storage(mounted, who.owner, volumes, top)
