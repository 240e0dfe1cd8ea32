"""Writes the files that the nodes of an attempt read, before the attempt is submitted to Slurm."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from corral.control.ports import Instance, LaunchOrder
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.slurm.attempts import run_directory, scripts
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.submitters import Submitter, give_job, give_place, give_storage
from corral.engines.slurm.slurm_images import ImageRules


def lay_out(
    layout: Layout,
    order: LaunchOrder,
    program: str,
    specs: Mapping[int, list[StorageSpec]],
    environment: Callable[[Instance], Mapping[str, str]],
    log_lines: Sequence[str] = (),
    *,
    images: ImageRules,
    home: str,
) -> None:
    """`program` is corral's script on the nodes, `specs` is the storage of each instance, `log_lines` are the first
    lines of its log, `home` the directory of the job's account. If the server dies before `slurm_attempt.create`, these
    files do not count: the attempt was never ordered."""
    for instance in order.instances:
        place = layout.place(order.attempt_id, instance.rank)
        os.mkdir(place)
        text = scripts.instance_text(order, instance, environment(instance), specs[instance.rank], images, home)
        run_directory.append(f"{place}/instance", text)
        # Created here even if it is empty, so that the node has one file less to create.
        run_directory.append(f"{place}/log", "".join(f"corral: {line}\n" for line in log_lines))
    if len(order.instances) > 1:
        shared = scripts.attempt_text(order, layout, program)
        run_directory.append(f"{layout.place(order.attempt_id, 0)}/attempt", shared)


def give(
    layout: Layout, order: LaunchOrder, mounted: list[StorageSpec], submitter: Submitter, top: str, volumes: str
) -> None:
    """Give the directories of the attempt to the account of its job; root needs no permission."""
    if submitter.account.uid != 0:
        for instance in order.instances:
            give_place(layout.place(order.attempt_id, instance.rank), submitter.owner, top)
        give_job(order, submitter.owner, top)
        give_storage(mounted, submitter.owner, volumes, top)
