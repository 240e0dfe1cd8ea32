"""Everything that the nodes of an attempt need, written where they find it before Slurm hears of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from corral.control.ports import Instance, LaunchOrder
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.slurm.attempts import run_directory, scripts
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.submitters import Submitter, give_job, give_place, give_storage


def lay_out(
    layout: Layout,
    order: LaunchOrder,
    program: str,
    specs: Mapping[int, list[StorageSpec]],
    environment: Callable[[Instance], Mapping[str, str]],
    said: Sequence[str] = (),
) -> None:
    """`program` is corral's own on the nodes, `specs` are what each instance mounts, and `said` are the first lines of
    its log. Not kept yet: should the server die before `attempts.create`, it was never ordered."""
    for instance in order.instances:
        place = layout.place(order.attempt_id, instance.rank)
        os.mkdir(place)
        text = scripts.instance_text(order, instance, environment(instance), specs[instance.rank])
        run_directory.append(f"{place}/instance", text)
        # Made here also without a word: so the node, which others need, has one file less to make.
        run_directory.append(f"{place}/log", "".join(f"corral: {line}\n" for line in said))
    if len(order.instances) > 1:
        shared = scripts.attempt_text(order, layout, program)
        run_directory.append(f"{layout.place(order.attempt_id, 0)}/attempt", shared)


def give(
    layout: Layout, order: LaunchOrder, mounted: list[StorageSpec], who: Submitter, top: str, volumes: str
) -> None:
    """To the account whose job it is; root needs nothing."""
    if who.account.uid != 0:
        for instance in order.instances:
            give_place(layout.place(order.attempt_id, instance.rank), who.owner, top)
        give_job(order, who.owner, top)
        give_storage(mounted, who.owner, volumes, top)
