"""The table of job fields: every field of a submission is declared here, once.

A row names the field as the API and job files do, the options of the commands that set it, where a job keeps the value,
when the value can be changed, and who sees it. The other layers read the table:

- `cli/jobs/job_options` makes the options of `submit`, `clone`, `edit`, `preset run` and `workbench create`, and the
  keys of job files;
- `server/jobs/drafts` fills the draft of a job from a request, and `server/schemas/jobs/jobs` fills the view;
- `control/jobs` fills a new job, a clone and an edited job;
- `stores/jobs/job_body` stores whatever field `Job` has.

So a field that is kept as it is (`kept` is set) is written down in few places, and
`tests/unit/server/jobs/test_job_fields.py` names the place where one is missing. CONTRIBUTING.md lists the places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class JobCommand(StrEnum):
    """A command that describes a job by options."""

    SUBMIT = "submit"
    CLONE = "clone"
    EDIT = "edit"
    PRESET_RUN = "preset run"
    WORKBENCH_CREATE = "workbench create"


SUBMIT, CLONE, EDIT = JobCommand.SUBMIT, JobCommand.CLONE, JobCommand.EDIT
PRESET_RUN, WORKBENCH_CREATE = JobCommand.PRESET_RUN, JobCommand.WORKBENCH_CREATE


class Reader(StrEnum):
    """How a typed value becomes the value of a request."""

    TYPED = "as typed"
    #: a number that is mostly whole
    AMOUNT = "an amount"
    COMMAS = "a list, separated by commas"
    #: NAME=VALUE, repeatable
    PAIRS = "pairs"
    #: made absolute on the caller's machine
    PATH = "a path"
    #: names of jobs, repeatable and separated by commas
    JOBS = "jobs"


class Kept(StrEnum):
    """The object that keeps the value of a field as it was given."""

    #: `core.model.Job`: values that decide about scheduling and the life of a job
    JOB = "job"
    #: `control.records.JobSpec`: values that are needed for a start, or that only describe the job
    SPEC = "spec"


class Edit(StrEnum):
    """When a job's owner or an operator may change a field."""

    NEVER = "never"
    UNSTARTED = "until the first start"
    WAITING = "while the job waits"
    ALWAYS = "at any time"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of one or several commands."""

    #: the help text by command; a command that is missing here does not have the option
    help: Mapping[JobCommand, str]
    type: Any = str
    #: on the command line, and a second key of job files; default: the field's name
    flag: str = ""
    metavar: str | None = None
    read: Reader = Reader.TYPED
    #: the text that `clone` and `edit` accept to take a setting away, and the value in the request
    reset: tuple[Any, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobField:
    #: in the API's requests, and the key of job files
    name: str
    #: None: only a job file or the API sets the field
    option: Option | None = None
    #: the option of `edit`, if it is typed in another way
    edit_option: Option | None = None
    #: None: the value is looked up or combined with others, by code of its own
    kept: Kept | None = None
    #: the attribute of the object that keeps the value, of the draft and of the API's view; default: the name
    attribute: str = ""
    #: the attribute of the installation's policies that decides if the field is not given; default: the model decides
    installation: str = ""
    edit: Edit = Edit.NEVER
    #: the option of `sbatch` that has the same meaning and any text as its value
    sbatch: str = ""
    #: whether only the owner and operators see the value
    is_private: bool = False
    #: whether a search for a text looks at the value; only for a field of the spec that is not private
    is_searched: bool = False
    #: the name of the line in `corral show`, below the job's name; "": no line, or one that is made with other values
    title: str = ""
    #: whether the field says how large the job is
    is_size: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "attribute", self.attribute or self.name)

    @property
    def options(self) -> tuple[Option, ...]:
        return tuple(option for option in (self.option, self.edit_option) if option is not None)


_PREEMPTIBLE = "Whether the job may be preempted"
_STARTS_OVER = "Whether an elastic job that never saved may start over for a resize"
_MOUNT = "Mount a volume, local:SIZE or dataset:NAME@VERSION; repeatable."
_HOLD = "Only create it; `corral start` queues it."
_VARIABLE = "An environment variable; repeatable."
_PROGRAMS = "A virtual environment or conda prefix; its programs come first."

#: In the order in which `--help` lists them.
_ROWS = (
    JobField(
        name="name",
        option=Option(
            help={
                SUBMIT: "The job's name, unique among your jobs.",
                CLONE: "The clone's name; default: the old one with a number.",
                PRESET_RUN: "The job's name, unique among your jobs.",
            }
        ),
    ),
    JobField(
        name="description",
        kept=Kept.SPEC,
        edit=Edit.ALWAYS,
        sbatch="comment",
        title="Description",
        is_searched=True,
        option=Option(
            metavar="TEXT",
            help={
                SUBMIT: "What the job is for, at most 500 characters.",
                CLONE: "What the job is for.",
                EDIT: "What the job is for; can be changed at any time.",
                PRESET_RUN: "What the job is for, at most 500 characters.",
                WORKBENCH_CREATE: "What the workbench is for, at most 500 characters.",
            },
        ),
    ),
    JobField(
        name="gpus",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
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
    JobField(
        name="labels",
        option=Option(
            flag="label",
            type=list[str],
            metavar="K=V",
            read=Reader.PAIRS,
            help={
                SUBMIT: "A label that the job's nodes must have; repeatable.",
                CLONE: "A label to add or replace; repeatable.",
                WORKBENCH_CREATE: "A label that its node must have; repeatable.",
            },
        ),
    ),
    JobField(
        name="queue",
        edit=Edit.WAITING,
        option=Option(
            reset=("auto", None),
            help={
                SUBMIT: "The queue to wait in.",
                CLONE: "Another queue; the word auto finds the right one.",
                EDIT: "Another queue; the word auto finds the right one.",
                PRESET_RUN: "The queue to wait in.",
                WORKBENCH_CREATE: "The queue to wait in.",
            },
        ),
    ),
    JobField(
        name="flavor",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            help={
                SUBMIT: "A kind of hardware: `corral flavor ls`.",
                CLONE: "Another kind of hardware: `corral flavor ls`.",
                EDIT: "Another kind of hardware: `corral flavor ls`.",
                WORKBENCH_CREATE: "A kind of hardware: `corral flavor ls`.",
            }
        ),
    ),
    JobField(
        name="package",
        edit=Edit.UNSTARTED,
        is_size=True,
        option=Option(
            help={
                SUBMIT: "A size, instead of GPUs, CPUs and memory: `corral package ls`.",
                CLONE: "Another size: `corral package ls`.",
                EDIT: "Another size: `corral package ls`.",
                PRESET_RUN: "A size, instead of GPUs, CPUs and memory: `corral package ls`.",
                WORKBENCH_CREATE: "A size: `corral package ls --kind workbench`.",
            }
        ),
    ),
    JobField(
        name="priority",
        kept=Kept.JOB,
        installation="default_priority",
        edit=Edit.WAITING,
        option=Option(
            type=int,
            metavar="0..100",
            help={
                SUBMIT: "Smaller goes first; default 5.",
                CLONE: "Smaller goes first.",
                EDIT: "Smaller goes first.",
                PRESET_RUN: "Smaller goes first.",
                WORKBENCH_CREATE: "Smaller goes first; default 5.",
            },
        ),
    ),
    JobField(
        name="time",
        kept=Kept.JOB,
        attribute="time_limit_seconds",
        edit=Edit.WAITING,
        option=Option(
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
    ),
    JobField(
        name="grace",
        kept=Kept.JOB,
        attribute="grace_seconds",
        installation="grace_seconds",
        option=Option(
            metavar="DURATION",
            help={
                SUBMIT: "Time between the warning and the end of a stop; default 30s.",
                CLONE: "Time between the warning and the end of a stop.",
            },
        ),
    ),
    JobField(
        name="env",
        option=Option(
            type=list[str],
            metavar="K=V",
            read=Reader.PAIRS,
            help={
                SUBMIT: _VARIABLE,
                CLONE: "An environment variable to add or replace; repeatable.",
                PRESET_RUN: _VARIABLE,
                WORKBENCH_CREATE: _VARIABLE,
            },
        ),
    ),
    JobField(
        name="workdir",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            metavar="DIR",
            read=Reader.PATH,
            help={
                SUBMIT: "The job's working directory; default: the current one.",
                CLONE: "The job's working directory.",
                PRESET_RUN: "The job's working directory.",
                WORKBENCH_CREATE: "The first directory; default: a directory of its own.",
            },
        ),
    ),
    JobField(
        name="image",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            help={
                SUBMIT: "An image to run in, by name (`corral image ls`) or by address.",
                CLONE: "An image to run in, by name (`corral image ls`) or by address.",
                WORKBENCH_CREATE: "An image to run in, by name (`corral image ls`) or by address.",
            }
        ),
    ),
    JobField(
        name="venv",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            metavar="DIR", read=Reader.PATH, help={SUBMIT: _PROGRAMS, CLONE: _PROGRAMS, WORKBENCH_CREATE: _PROGRAMS}
        ),
    ),
    JobField(
        name="kind",
        option=Option(
            help={
                SUBMIT: "training or distributed: must fit the number of nodes.",
                CLONE: "training or distributed: must fit the number of nodes.",
            }
        ),
    ),
    JobField(
        name="mounts",
        option=Option(
            flag="mount",
            type=list[str],
            metavar="SRC:/PATH[:ro|rw]",
            reset=(["none"], []),
            help={
                SUBMIT: _MOUNT,
                CLONE: "Mount this instead of what was mounted; none: nothing; repeatable.",
                PRESET_RUN: _MOUNT,
                WORKBENCH_CREATE: _MOUNT,
            },
        ),
    ),
    JobField(
        name="max_retries",
        kept=Kept.JOB,
        installation="max_retries",
        option=Option(
            flag="retries",
            type=int,
            metavar="N",
            help={
                SUBMIT: "New attempts after a failure; 0: no new attempt, not even after a failure of the platform, "
                "which otherwise costs no retry.",
                CLONE: "New attempts after a failure; 0: no new attempt, not even after a failure of the platform.",
            },
        ),
    ),
    JobField(
        name="retry_on",
        kept=Kept.JOB,
        installation="retry_on",
        option=Option(
            metavar="WHEN",
            read=Reader.COMMAS,
            help={
                SUBMIT: "Failures of the program that lead to another attempt: exit, oom, any, or exit codes, with "
                "commas; failures of a node or GPU always do.",
                CLONE: "Failures of the program that lead to another attempt: exit, oom, any, or exit codes.",
            },
        ),
    ),
    JobField(
        name="idles",
        kept=Kept.JOB,
        option=Option(
            type=bool,
            help={
                SUBMIT: "The job may hold GPUs without using them for long: zero use is no sign of a fault.",
                CLONE: "The job may hold GPUs without using them for long.",
            },
        ),
    ),
    JobField(
        name="restart_if_hung",
        kept=Kept.JOB,
        edit=Edit.WAITING,
        option=Option(
            type=bool,
            help={
                SUBMIT: "Restart it elsewhere, as a retry, if its program reports steps and then none for long.",
                CLONE: "Restart it elsewhere if its program hangs.",
                EDIT: "Restart it elsewhere if its program hangs.",
            },
        ),
    ),
    JobField(
        name="preemptible",
        kept=Kept.JOB,
        edit=Edit.UNSTARTED,
        option=Option(
            type=bool,
            help={SUBMIT: f"{_PREEMPTIBLE}; default: yes.", CLONE: f"{_PREEMPTIBLE}.", EDIT: f"{_PREEMPTIBLE}."},
        ),
    ),
    JobField(
        name="checkpoint_interval",
        kept=Kept.SPEC,
        attribute="checkpoint_interval_seconds",
        option=Option(
            metavar="DURATION",
            help={
                SUBMIT: "How often the program shall save, such as 5m.",
                CLONE: "How often the program shall save, such as 5m.",
            },
        ),
    ),
    JobField(
        name="commit_outputs",
        kept=Kept.SPEC,
        title="Commits to",
        option=Option(
            flag="commit",
            metavar="DATASET[=PATH]",
            help={
                SUBMIT: "When it completes, commit its outputs, or a part, as a version of this dataset.",
                CLONE: "When it completes, commit its outputs, or a part, as a version of this dataset.",
                PRESET_RUN: "When it completes, commit its outputs, or a part such as best, to this dataset.",
            },
        ),
    ),
    JobField(
        name="hold",
        option=Option(
            type=bool,
            help={
                SUBMIT: _HOLD,
                CLONE: _HOLD,
                PRESET_RUN: _HOLD,
                WORKBENCH_CREATE: "Only create it; `corral workbench start` starts it.",
            },
        ),
    ),
    JobField(
        name="after",
        edit=Edit.WAITING,
        option=Option(
            type=list[str],
            metavar="JOB",
            read=Reader.JOBS,
            help={
                SUBMIT: "Start when this job, or array, has completed; repeatable.",
                CLONE: "Start when this job, or array, has completed; none: after no job; repeatable.",
                EDIT: "Start when this job, or array, has completed; none: after no job; repeatable.",
            },
        ),
    ),
    # Only a job file or the API sets these; `array` makes an array of a submission.
    JobField(name="command"),
    JobField(name="preset", kept=Kept.SPEC),
    JobField(name="parameters"),
    JobField(name="array"),
    JobField(name="pack"),
)

#: By name.
JOB_FIELDS: Mapping[str, JobField] = {row.name: row for row in _ROWS}
#: The fields that `Job` and `JobSpec` keep as they are given.
KEPT_BY_JOB = tuple(row for row in _ROWS if row.kept is Kept.JOB)
KEPT_BY_SPEC = tuple(row for row in _ROWS if row.kept is Kept.SPEC)
#: The names of the fields that say how large a job is.
SIZE_FIELDS = frozenset(row.name for row in _ROWS if row.is_size)
#: Where a search for a text looks, for help texts.
SEARCHED = ("id", "name", "user", *(row.name for row in _ROWS if row.is_searched))


def editable(*when: Edit) -> frozenset[str]:
    """The names of the fields that can be changed then."""
    return frozenset(row.name for row in _ROWS if row.edit in when)
