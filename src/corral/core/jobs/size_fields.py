"""Rows of the table of job fields that say how large a job is, and on which GPUs it runs."""

from __future__ import annotations

from corral.core.jobs.field_types import (
    CLONE,
    EDIT,
    PRESET_RUN,
    SUBMIT,
    WORKBENCH_CREATE,
    Edit,
    JobField,
    Kept,
    Option,
    Reader,
)

_STARTS_OVER = "Whether an elastic job that never saved may start over for a resize"

#: In the order in which `--help` lists them.
SIZE_ROWS = (
    JobField(
        name="gpus",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            letter="-G",
            type=float,
            metavar="N",
            read=Reader.AMOUNT,
            help={
                SUBMIT: "GPUs per node; a fraction is a share of one.",
                CLONE: "GPUs per node; a fraction is a share of one.",
                EDIT: "GPUs per node: 0, a share such as 0.5, or whole GPUs.",
                PRESET_RUN: "GPUs; 0 for CPUs only.",
                WORKBENCH_CREATE: "GPUs; a fraction is a share of one.",
            },
        ),
    ),
    JobField(
        name="min_gpus",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            type=int,
            metavar="N",
            help={
                SUBMIT: "The least of an elastic job, which grows into idle GPUs.",
                CLONE: "The least of an elastic job.",
                EDIT: "The least of an elastic job.",
                PRESET_RUN: "The least of an elastic job, which grows into idle GPUs.",
            },
        ),
    ),
    JobField(
        name="max_gpus",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            type=int,
            metavar="N",
            help={
                SUBMIT: "The most of an elastic job; on several nodes, of each node.",
                CLONE: "The most of an elastic job.",
                EDIT: "The most of an elastic job.",
                PRESET_RUN: "The most of an elastic job.",
            },
        ),
    ),
    JobField(
        name="restart_unsaved",
        kept=Kept.JOB,
        edit=Edit.WAITING,
        option=Option(
            type=bool,
            help={SUBMIT: f"{_STARTS_OVER}; default: no.", CLONE: f"{_STARTS_OVER}.", EDIT: f"{_STARTS_OVER}."},
        ),
    ),
    JobField(
        name="nodes",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            letter="-N",
            type=int,
            metavar="N",
            help={
                SUBMIT: "Nodes that start together as one gang.",
                CLONE: "Nodes that start together as one gang.",
                EDIT: "Nodes that start together as one gang.",
            },
        ),
    ),
    JobField(
        name="cpus",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            letter="-c",
            type=float,
            metavar="N",
            read=Reader.AMOUNT,
            help={
                SUBMIT: "CPUs per node.",
                CLONE: "CPUs per node.",
                EDIT: "CPUs per node.",
                PRESET_RUN: "CPUs.",
                WORKBENCH_CREATE: "CPUs.",
            },
        ),
    ),
    JobField(
        name="memory",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            metavar="SIZE",
            help={
                SUBMIT: "Memory per node, such as 16GiB.",
                CLONE: "Memory per node, such as 16GiB.",
                EDIT: "Memory per node, such as 16GiB.",
                PRESET_RUN: "Memory, such as 16GiB.",
                WORKBENCH_CREATE: "Memory, such as 16GiB.",
            },
        ),
    ),
    JobField(
        name="model",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            type=list[str],
            metavar="MODEL",
            help={
                SUBMIT: "An accepted GPU model; repeatable.",
                CLONE: "An accepted GPU model; repeatable.",
                PRESET_RUN: "An accepted GPU model; repeatable.",
                WORKBENCH_CREATE: "An accepted GPU model; repeatable.",
            },
        ),
        edit_option=Option(
            metavar="MODELS",
            read=Reader.COMMAS,
            reset=("any", None),
            help={EDIT: "Accepted GPU models, separated by commas; any: every model."},
        ),
    ),
)
