"""Derives the kind of a job from its program and its number of nodes, so that users cannot choose the quota that counts
it.
"""

from __future__ import annotations

from corral.control.errors import Invalid
from corral.control.records import JobSpec
from corral.core.model import JobKind, Request

#: What a workbench runs. The same for every workbench and every version, so that one of an earlier version starts
#: again.
HOST_COMMAND = (
    "/bin/sh",
    "-c",
    'command -v python3 >/dev/null 2>&1 || exit 83; exec python3 -Iu "$CORRAL_JOB_DIR/workbench/host.py"',
    "corral-workbench",
)
#: What is launched for a job with an app, instead of its command.
APP_COMMAND = (
    "/bin/sh",
    "-c",
    "command -v python3 >/dev/null 2>&1 || { echo 'corral: an app needs python3, in the image too' >&2; exit 127; }; "
    'exec python3 -Iu "$CORRAL_JOB_DIR/workbench/app.py"',
    "corral-app",
)
_WHY = {
    JobKind.DISTRIBUTED: "a job on several nodes is distributed",
    JobKind.TRAINING: "a program on one node is a training",
    JobKind.PRESET: "a preset's job counts as one",
    JobKind.WORKBENCH: "a workbench keeps running, with Jupyter and SSH as its owner chose",
}


def derived_kind(spec: JobSpec, request: Request) -> JobKind:
    if spec.preset is not None:
        return JobKind.PRESET
    if spec.task is not None or spec.command == HOST_COMMAND:
        return JobKind.WORKBENCH
    return JobKind.DISTRIBUTED if request.is_gang else JobKind.TRAINING


def check_declared(declared: JobKind | None, spec: JobSpec, request: Request) -> None:
    """Refuses a declared kind that is not the kind of the job."""
    kind = derived_kind(spec, request)
    if declared is None or declared is kind:
        return
    hint = "; corral workbench create makes one" if declared is JobKind.WORKBENCH else ""
    raise Invalid(f"this is a {kind} job, not a {declared} one: {_WHY[kind]}{hint}", field="kind", kind=kind)
