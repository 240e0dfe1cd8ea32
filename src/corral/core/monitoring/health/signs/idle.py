"""A GPU is idle under a running job: the device, or the program on it, hangs.

This is the weakest sign, because a program can be idle by itself. So it counts only if the job has the whole GPU, is
not a workbench (its owner may be thinking), and does not idle on purpose, as apps do by default. A GPU that the job has
never used, while it uses others, was requested without need and does not count. Under a later attempt of a job that a
failed GPU has ended before, the GPU becomes suspect and no more: a program that hangs everywhere must not fail one GPU
after the other.
"""

from __future__ import annotations

from corral.core.model import WHOLE, JobKind
from corral.core.monitoring.health.model import FINE, UNKNOWN, Finding, HolderFacts, Sight, Weight

#: Utilization below this counts as idle.
NOTHING_DONE = 0.01
ADVICE = (
    "Look at the job's log: if the program waits or hangs by itself, stop it and reset the GPU's health. Otherwise run "
    "the self-test. A job that works without its GPU for long is submitted with --idles."
)
LATER_ADVICE = "The program probably hangs by itself, on every GPU: look at the job's log, and stop it."


def look(sight: Sight) -> Finding:
    holder, grace = held_for_work(sight), sight.rules.idle_grace_seconds
    if holder is None or grace is None:
        return FINE
    use = sight.reading.utilization
    if use is None:
        return UNKNOWN
    seconds = sight.reading.at - idle_since(sight, holder)
    if use >= NOTHING_DONE or seconds < grace:
        return FINE
    if holder.after_gpu_failure:
        return Finding(
            weight=Weight.BAD,
            text=f"nothing done for {seconds / 60:.0f} minutes under a job that was moved off another GPU before",
            advice=LATER_ADVICE,
            value=seconds,
        )
    return Finding(
        weight=Weight.FATAL if seconds >= sight.rules.idle_fail_seconds else Weight.BAD,
        text=f"nothing done for {seconds / 60:.0f} minutes under a running job",
        advice=ADVICE,
        value=seconds,
    )


def held_for_work(sight: Sight) -> HolderFacts | None:
    """The attempt under which this GPU should be busy; None if idleness would prove nothing."""
    if len(sight.holders) != 1:
        return None
    holder = sight.holders[0]
    counts = (
        holder.running_since is not None
        and holder.gpu_milli == WHOLE
        and holder.kind is not JobKind.WORKBENCH
        and not holder.idles
        and (sight.memory.worked == holder.attempt_id or holder.attempt_id not in sight.working)
    )
    return holder if counts else None


def idle_since(sight: Sight, holder: HolderFacts) -> float:
    """Since when the GPU has been idle, as of this reading."""
    memory, at = sight.memory, sight.reading.at
    goes_on = memory.idle_attempt == holder.attempt_id and at - memory.idle_until <= sight.rules.gap_seconds
    return memory.idle_since if goes_on else at
