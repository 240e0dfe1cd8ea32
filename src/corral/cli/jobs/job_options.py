"""The options that describe a job: one table for `submit`, `clone`, `edit`, `preset run`, `workbench create` and the
keys of job files.

A row of `JOB_OPTIONS` names a field of the API's request and, for each command that has the option, its help text.
`job_request` adds the options to the commands and makes requests of the typed values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.terminal import arguments
from corral.cli.terminal.failures import WrongUsage


class JobCommand(StrEnum):
    SUBMIT = "submit"
    CLONE = "clone"
    EDIT = "edit"
    PRESET_RUN = "preset run"
    WORKBENCH_CREATE = "workbench create"


SUBMIT, CLONE, EDIT = JobCommand.SUBMIT, JobCommand.CLONE, JobCommand.EDIT
PRESET_RUN, WORKBENCH_CREATE = JobCommand.PRESET_RUN, JobCommand.WORKBENCH_CREATE


def _as_typed(flag: str, value: Any) -> Any:
    return value


def _absolute(flag: str, path: Path) -> str:
    return str(path.absolute())


def _split(flag: str, text: str) -> list[str]:
    return text.split(",")


def _job_names(flag: str, texts: Sequence[str]) -> list[str]:
    """The option may be repeated, and one text may hold several names; `none` means no job."""
    found = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    if not found:
        raise WrongUsage(f"{flag}: which job?")
    return [] if found == ["none"] else found


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOption:
    #: in the API's request
    field: str
    type: Any
    #: the help text by command; a command that is missing here does not have the option
    help: Mapping[JobCommand, str]
    #: on the command line; also the key in job files, beside the field's name
    flag: str = ""
    metavar: str | None = None
    #: the value in the request, from the flag and what was typed
    read: Callable[[str, Any], Any] = _as_typed
    #: what `clone` and `edit` accept to take a setting away, and the value in the request
    reset: tuple[Any, Any] | None = None

    @property
    def long_flag(self) -> str:
        return f"--{self.flag or self.field.replace('_', '-')}"

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return self.long_flag.removeprefix("--").replace("-", "_")

    def declared(self, command: JobCommand) -> inspect.Parameter:
        negated = f"/--no-{self.parameter}" if self.field == "preemptible" else ""
        option = typer.Option(f"{self.long_flag}{negated}", metavar=self.metavar, help=self.help[command])
        value: Any = self.type | None
        annotation: Any = Annotated[value, option]
        return inspect.Parameter(self.parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)

    def value(self, command: JobCommand, typed: Any) -> Any:
        if self.reset is not None and command in (CLONE, EDIT) and typed == self.reset[0]:
            return self.reset[1]
        return self.read(self.long_flag, typed)


PREEMPTIBLE = "Whether the job may be preempted"
MOUNT = "Mount a volume, local:SIZE or dataset:NAME@VERSION; repeatable."
HOLD = "Only create it; `corral start` queues it."
VARIABLE = "An environment variable; repeatable."
PROGRAMS = "A virtual environment or conda prefix; its programs come first."

#: In the order in which `--help` lists them.
JOB_OPTIONS = (
    JobOption(
        field="name",
        type=str,
        help={
            SUBMIT: "The job's name, unique among your jobs.",
            CLONE: "The clone's name; default: the old one with a number.",
            PRESET_RUN: "The job's name, unique among your jobs.",
        },
    ),
    JobOption(
        field="gpus",
        type=float,
        metavar="N",
        read=arguments.amount,
        help={
            SUBMIT: "GPUs per node; a fraction is a share of one.",
            CLONE: "GPUs per node; a fraction is a share of one.",
            EDIT: "GPUs per node: 0, a share such as 0.5, or whole GPUs.",
            PRESET_RUN: "GPUs; 0 for CPUs only.",
            WORKBENCH_CREATE: "GPUs; a fraction is a share of one.",
        },
    ),
    JobOption(
        field="min_gpus",
        type=int,
        metavar="N",
        help={
            SUBMIT: "The least of an elastic job, which grows into idle GPUs.",
            CLONE: "The least of an elastic job.",
            EDIT: "The least of an elastic job.",
        },
    ),
    JobOption(
        field="max_gpus",
        type=int,
        metavar="N",
        help={
            SUBMIT: "The most of an elastic job.",
            CLONE: "The most of an elastic job.",
            EDIT: "The most of an elastic job.",
        },
    ),
    JobOption(
        field="nodes",
        type=int,
        metavar="N",
        help={
            SUBMIT: "Nodes that start together as one gang.",
            CLONE: "Nodes that start together as one gang.",
            EDIT: "Nodes that start together as one gang.",
        },
    ),
    JobOption(
        field="cpus",
        type=float,
        metavar="N",
        read=arguments.amount,
        help={
            SUBMIT: "CPUs per node.",
            CLONE: "CPUs per node.",
            EDIT: "CPUs per node.",
            PRESET_RUN: "CPUs.",
            WORKBENCH_CREATE: "CPUs.",
        },
    ),
    JobOption(
        field="memory",
        type=str,
        metavar="SIZE",
        help={
            SUBMIT: "Memory per node, such as 16GiB.",
            CLONE: "Memory per node, such as 16GiB.",
            EDIT: "Memory per node, such as 16GiB.",
            PRESET_RUN: "Memory, such as 16GiB.",
            WORKBENCH_CREATE: "Memory, such as 16GiB.",
        },
    ),
    JobOption(
        field="model",
        type=list[str],
        metavar="MODEL",
        help={
            SUBMIT: "An accepted GPU model; repeatable.",
            CLONE: "An accepted GPU model; repeatable.",
            PRESET_RUN: "An accepted GPU model; repeatable.",
            WORKBENCH_CREATE: "An accepted GPU model; repeatable.",
        },
    ),
    JobOption(
        field="model",
        type=str,
        metavar="MODELS",
        read=_split,
        reset=("any", None),
        help={EDIT: "Accepted GPU models, separated by commas; any: every model."},
    ),
    JobOption(
        field="labels",
        flag="label",
        type=list[str],
        metavar="K=V",
        read=arguments.pairs,
        help={
            SUBMIT: "A label that the job's nodes must have; repeatable.",
            CLONE: "A label to add or replace; repeatable.",
        },
    ),
    JobOption(
        field="queue",
        type=str,
        reset=("auto", None),
        help={
            SUBMIT: "The queue to wait in.",
            CLONE: "Another queue; the word auto finds the right one.",
            EDIT: "Another queue; the word auto finds the right one.",
            PRESET_RUN: "The queue to wait in.",
            WORKBENCH_CREATE: "The queue to wait in.",
        },
    ),
    JobOption(
        field="flavor",
        type=str,
        help={
            SUBMIT: "A kind of hardware: `corral flavor ls`.",
            CLONE: "Another kind of hardware: `corral flavor ls`.",
            EDIT: "Another kind of hardware: `corral flavor ls`.",
            WORKBENCH_CREATE: "A kind of hardware: `corral flavor ls`.",
        },
    ),
    JobOption(
        field="package",
        type=str,
        help={
            SUBMIT: "A size, instead of GPUs, CPUs and memory: `corral package ls`.",
            CLONE: "Another size: `corral package ls`.",
            EDIT: "Another size: `corral package ls`.",
            PRESET_RUN: "A size, instead of GPUs, CPUs and memory: `corral package ls`.",
            WORKBENCH_CREATE: "A size: `corral package ls --kind workbench`.",
        },
    ),
    JobOption(
        field="priority",
        type=int,
        metavar="0..100",
        help={
            SUBMIT: "Smaller goes first; default 5.",
            CLONE: "Smaller goes first.",
            EDIT: "Smaller goes first.",
            PRESET_RUN: "Smaller goes first.",
        },
    ),
    JobOption(
        field="time",
        type=str,
        metavar="DURATION",
        reset=("none", None),
        help={
            SUBMIT: "Longest run time, such as 90m or 2h.",
            CLONE: "Longest run time; none: no own limit.",
            EDIT: "Longest run time; none: as long as the queue allows.",
            PRESET_RUN: "Longest run time, such as 2h.",
            WORKBENCH_CREATE: "Longest run time, such as 8h.",
        },
    ),
    JobOption(
        field="grace",
        type=str,
        metavar="DURATION",
        help={
            SUBMIT: "Time between the warning and the end of a stop; default 30s.",
            CLONE: "Time between the warning and the end of a stop.",
        },
    ),
    JobOption(
        field="env",
        type=list[str],
        metavar="K=V",
        read=arguments.pairs,
        help={
            SUBMIT: VARIABLE,
            CLONE: "An environment variable to add or replace; repeatable.",
            PRESET_RUN: VARIABLE,
            WORKBENCH_CREATE: VARIABLE,
        },
    ),
    JobOption(
        field="workdir",
        type=Path,
        metavar="DIR",
        read=_absolute,
        help={
            SUBMIT: "The job's working directory; default: the current one.",
            CLONE: "The job's working directory.",
            PRESET_RUN: "The job's working directory.",
            WORKBENCH_CREATE: "The first directory; default: a directory of its own.",
        },
    ),
    JobOption(
        field="image",
        type=str,
        help={
            SUBMIT: "An image to run in, by name (`corral image ls`) or by address.",
            CLONE: "An image to run in, by name (`corral image ls`) or by address.",
            WORKBENCH_CREATE: "An image to run in, by name (`corral image ls`) or by address.",
        },
    ),
    JobOption(
        field="venv",
        type=Path,
        metavar="DIR",
        read=_absolute,
        help={SUBMIT: PROGRAMS, CLONE: PROGRAMS, WORKBENCH_CREATE: PROGRAMS},
    ),
    JobOption(
        field="kind",
        type=str,
        help={
            SUBMIT: "training or distributed: must fit the number of nodes.",
            CLONE: "training or distributed: must fit the number of nodes.",
        },
    ),
    JobOption(
        field="mounts",
        flag="mount",
        type=list[str],
        metavar="SRC:/PATH[:ro|rw]",
        reset=(["none"], []),
        help={
            SUBMIT: MOUNT,
            CLONE: "Mount this instead of what was mounted; none: nothing; repeatable.",
            PRESET_RUN: MOUNT,
            WORKBENCH_CREATE: MOUNT,
        },
    ),
    JobOption(
        field="max_retries",
        flag="retries",
        type=int,
        metavar="N",
        help={
            SUBMIT: "New attempts after a failure; 0: no new attempt, not even after a failure of the platform, which "
            "otherwise costs no retry.",
            CLONE: "New attempts after a failure; 0: no new attempt, not even after a failure of the platform.",
        },
    ),
    JobOption(
        field="preemptible",
        type=bool,
        help={SUBMIT: f"{PREEMPTIBLE}; default: yes.", CLONE: f"{PREEMPTIBLE}.", EDIT: f"{PREEMPTIBLE}."},
    ),
    JobOption(
        field="checkpoint_interval",
        type=str,
        metavar="DURATION",
        help={
            SUBMIT: "How often the program shall save, such as 5m.",
            CLONE: "How often the program shall save, such as 5m.",
        },
    ),
    JobOption(
        field="hold",
        type=bool,
        help={
            SUBMIT: HOLD,
            CLONE: HOLD,
            PRESET_RUN: HOLD,
            WORKBENCH_CREATE: "Only create it; `corral workbench start` starts it.",
        },
    ),
    JobOption(
        field="after",
        type=list[str],
        metavar="JOB",
        read=_job_names,
        help={
            SUBMIT: "Start when this job, or array, has completed; repeatable.",
            CLONE: "Start when this job, or array, has completed; none: after no job; repeatable.",
            EDIT: "Start when this job, or array, has completed; none: after no job; repeatable.",
        },
    ),
)

#: Fields that only a job file or the API sets, and the one that makes an array of a submission.
FILE_FIELDS = ("command", "preset", "parameters", "array")
#: Keys of job files, by flag and by the API's name, with the field that they set.
FILE_KEYS: Mapping[str, str] = (
    {field: field for field in FILE_FIELDS}
    | {option.long_flag.removeprefix("--"): option.field for option in JOB_OPTIONS if SUBMIT in option.help}
    | {option.field: option.field for option in JOB_OPTIONS if SUBMIT in option.help}
)
