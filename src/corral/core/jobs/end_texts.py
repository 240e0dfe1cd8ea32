"""The meaning of each end of a job, and advice for its owner: one table for the command line and the reference page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from corral.core.model import EndReason


@dataclass(frozen=True, kw_only=True, slots=True)
class EndText:
    meaning: str
    #: what the owner can do; {job} stands for the job's id
    advice: str


_RESUME = "`corral start {job}` runs it again, from its last checkpoint if it saved one."
_PLATFORM = "The program is not at fault. `corral start {job}` runs it again, away from what failed."

END_TEXTS: Mapping[EndReason, EndText] = {
    EndReason.EXIT_CODE: EndText(
        meaning="The program ended by itself, with this exit code.",
        advice="Its last lines usually say why: `corral logs {job} --tail 20`. `corral start {job}` runs it again.",
    ),
    EndReason.OOM_KILLED: EndText(
        meaning="The program used more memory than the job asked for.",
        advice="Clone it with more: `corral clone {job} --memory 64GiB`.",
    ),
    EndReason.EVICTED: EndText(
        meaning="The job held GPUs without using them, was an unused workbench, or was evicted by the cluster.",
        advice=f"The message says which limit it was. {_RESUME}",
    ),
    EndReason.IMAGE_PULL_ERROR: EndText(
        meaning="The image could not be fetched.",
        advice="Check its name (`corral image ls`) and your login (`corral registry ls`).",
    ),
    EndReason.LAUNCH_ERROR: EndText(
        meaning="The program or its directory cannot be used, so that nothing ran.",
        advice="Check the program, --workdir and --venv on the node: the job sees the files of the node, not yours.",
    ),
    EndReason.NODE_LOST: EndText(meaning="The node of the job was lost, too often to go on.", advice=_PLATFORM),
    EndReason.GPU_FAILED: EndText(meaning="A GPU of the job failed, too often to go on.", advice=_PLATFORM),
    EndReason.TIMED_OUT: EndText(
        meaning="The job ran longer than its time limit.",
        advice=f"Clone it with more time: `corral clone {{job}} --time 4h`. {_RESUME}",
    ),
    EndReason.PREEMPTED: EndText(meaning="The job made room for another job.", advice=_RESUME),
    EndReason.STOPPED_BY_USER: EndText(meaning="Its owner stopped the job.", advice=_RESUME),
    EndReason.STOPPED_BY_OPERATOR: EndText(
        meaning="An operator, or a limit that an operator set, stopped the job.", advice=_RESUME
    ),
    EndReason.LOST: EndText(
        meaning="The job's processes were lost, too often to go on: a supervisor, a launch or the machine failed.",
        advice=_PLATFORM,
    ),
    EndReason.RESIZED: EndText(meaning="The attempt ended so that the job goes on with other GPUs.", advice=""),
    EndReason.MOVED: EndText(meaning="The attempt ended so that the job goes on elsewhere.", advice=""),
    EndReason.DEPENDENCY_FAILED: EndText(
        meaning="A job that this one comes after has not completed.",
        advice="Repair that one first (`corral show {job}` names it); then `corral start {job}`.",
    ),
    EndReason.DISK_QUOTA: EndText(
        meaning="The job wrote more than it may to the node's disk.",
        advice="Keep fewer checkpoints, or write to a volume: `--mount VOLUME:/data`.",
    ),
    EndReason.HUNG: EndText(
        meaning="The program reported no step for long, and the job was submitted with --restart-if-hung.",
        advice="Its log shows where it stopped: `corral logs {job} --tail 50`.",
    ),
}

#: Exit codes that shells and the kernel give, with what usually causes them.
_USUAL_CAUSES: Mapping[int, str] = {
    97: "97 means, for a job with --git, that the commit was not fetched: its log says why.",
    126: "126 means that the program may not be executed: `chmod +x` it.",
    127: "127 means that a shell did not find the program: check PATH, --venv and --image.",
    134: "134 means that the program aborted itself (SIGABRT).",
    137: "137 means SIGKILL: often too little memory.",
    139: "139 means a segmentation fault (SIGSEGV).",
}


def advice_for(job: str, reason: str, exit_code: int | None) -> str:
    """The advice for the owner of a job that did not complete; empty for reasons that this version does not know."""
    if reason not in END_TEXTS:
        return ""
    advice = END_TEXTS[EndReason(reason)].advice.format(job=job)
    cause = _USUAL_CAUSES.get(exit_code or 0, "") if reason == EndReason.EXIT_CODE else ""
    return f"{cause} {advice}".strip()
