"""The meaning of each rule that holds a waiting job, and advice: the table of the reference page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleText:
    meaning: str
    help: str


_LIMIT = "Jobs under the limit have to end first, or an operator raises it."

RULE_TEXTS: Mapping[str, RuleText] = {
    "dependency": RuleText(
        meaning="The job comes after jobs that have not completed.",
        help="Wait for them, or `corral edit JOB --after none`.",
    ),
    "given-back": RuleText(
        meaning="Its cluster (Slurm, Kubernetes) did not begin the job several times in a row.",
        help="The text has the cluster's own reason; its administrators can change that limit.",
    ),
    "back-off": RuleText(
        meaning="An attempt failed, and the next one begins after a pause.",
        help="Wait; the pause is at most five minutes.",
    ),
    "queue-missing": RuleText(
        meaning="The job's queue does not exist any more.",
        help="Choose another one: `corral edit JOB --queue QUEUE`.",
    ),
    "membership": RuleText(
        meaning="The group of the job's user has another pool than the job's queue, or none.",
        help="Choose a queue of the group's pool, or ask an operator for a pool.",
    ),
    "gpus-per-job": RuleText(meaning="The job asks for more GPUs than one job may hold.", help="Ask for fewer GPUs."),
    "gpus-per-user": RuleText(meaning="The user holds as many GPUs as one user may.", help=_LIMIT),
    "queue-gpus": RuleText(meaning="The jobs of the queue hold as many GPUs as they may together.", help=_LIMIT),
    "total-gpus": RuleText(meaning="All jobs hold as many GPUs as they may together.", help=_LIMIT),
    "quota": RuleText(
        meaning="The user's quota for this kind of job is used up.",
        help="`corral quota show` has the numbers; a quota was lowered after the job was queued.",
    ),
    "over-budget": RuleText(
        meaning="The user or the group has spent the hard limit of the period.",
        help="`corral budget` has the numbers; the next period or an operator ends it.",
    ),
    "owed": RuleText(
        meaning="The job cannot be preempted, and the free GPUs are guaranteed to other queues.",
        help="Let it be preempted: submit without `--no-preemptible`.",
    ),
    "volume-missing": RuleText(
        meaning="A volume that the job mounts does not exist any more.", help="Clone the job without the mount."
    ),
    "volume-full": RuleText(
        meaning="A volume that the job writes to is full.", help="Delete files, or let the volume grow."
    ),
    "mount": RuleText(
        meaning="Another job has mounted the volume in a way that excludes this one.",
        help="Mount it to read only (`:ro`), or wait for the other job.",
    ),
    "check": RuleText(
        meaning="The job checks one GPU, which is in use or away.", help="The check begins when the GPU is free."
    ),
    "reserved": RuleText(
        meaning="The GPUs that would fit are reserved for other users.",
        help="Wait until the window is over, or give a `--time` that ends before it.",
    ),
    "order": RuleText(
        meaning="The queue is `strict`: the job ahead goes first, even if this one fits.", help="Wait for that job."
    ),
    "limit-kept": RuleText(
        meaning="What a limit leaves is kept for a job ahead that has a planned start.",
        help="A `--time` that ends before that start lets the job pass.",
    ),
    "mount-kept": RuleText(
        meaning="The next turn of a volume is kept for a job ahead that has a planned start.",
        help="A `--time` that ends before that start lets the job pass.",
    ),
    "impossible": RuleText(
        meaning="No ready node can ever hold the job.",
        help="Ask for less or for another model; a node may be down or cordoned (`corral nodes`).",
    ),
    "resources": RuleText(
        meaning="Not enough is free.", help="Wait, or ask for less: fewer GPUs, a share, another `--model`."
    ),
    "resizing": RuleText(meaning="Elastic jobs give back GPUs for this one.", help="Wait until they have saved."),
    "giving-way": RuleText(meaning="Other jobs are stopped or moved for this one.", help="Wait until they have saved."),
    "kept": RuleText(
        meaning="There are free GPUs, but they are reserved for the planned start of a job ahead.",
        help="A `--time` that ends before that start lets the job pass.",
    ),
}
