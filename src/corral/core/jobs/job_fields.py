"""The table of job fields: every field of a submission is declared here, once.

A row names the field as the API and job files do, the options of the commands that set it, where a job keeps the value,
when the value can be changed, and who sees it. `field_types` has the parts of a row, `size_fields` the rows of sizes.
The other layers read the table:

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
from corral.core.jobs.size_fields import SIZE_ROWS

_PREEMPTIBLE = "Whether the job may be preempted"
_MOUNT = "Mount a volume, local:SIZE or dataset:NAME@VERSION; repeatable."
_SECRET = "A secret (`corral secret ls`) as an environment variable or file; repeatable."
_HOLD = "Only create it; `corral start` queues it."
_VARIABLE = "An environment variable; repeatable."
_PROGRAMS = "A virtual environment or conda prefix; its programs come first."

#: In the order in which `--help` lists them.
_ROWS = (
    JobField(
        name="name",
        option=Option(
            letter="-J",
            help={
                SUBMIT: "The job's name, unique among your jobs.",
                CLONE: "The clone's name; default: the old one with a number.",
                PRESET_RUN: "The job's name, unique among your jobs.",
            },
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
                SUBMIT: "Purpose of the job, at most 500 characters.",
                CLONE: "Purpose of the job.",
                EDIT: "Purpose of the job; can be changed at any time.",
                PRESET_RUN: "Purpose of the job, at most 500 characters.",
                WORKBENCH_CREATE: "What the workbench is for, at most 500 characters.",
            },
        ),
    ),
    *SIZE_ROWS,
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
        name="secrets",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            flag="secret",
            type=list[str],
            metavar="NAME[=VARIABLE|:file]",
            reset=(["none"], []),
            help={
                SUBMIT: _SECRET,
                CLONE: "A secret instead of those of the job; none: no secret; repeatable.",
                PRESET_RUN: _SECRET,
                WORKBENCH_CREATE: _SECRET,
            },
        ),
    ),
    JobField(
        name="app",
        kept=Kept.SPEC,
        title="App",
        option=Option(
            metavar="APP",
            help={
                SUBMIT: "A web program, such as tensorboard (`corral app known`); its arguments follow after `--`.",
                CLONE: "Another web program: `corral app known`.",
            },
        ),
    ),
    JobField(
        name="port",
        kept=Kept.SPEC,
        attribute="app_port",
        option=Option(
            type=int,
            metavar="PORT",
            help={
                SUBMIT: "The port at which the job's program serves a page; 0: a free one, in CORRAL_APP_PORT.",
                CLONE: "Another port at which the program serves a page.",
            },
        ),
    ),
    JobField(
        name="app_name",
        kept=Kept.SPEC,
        option=Option(
            metavar="NAME", help={SUBMIT: "The name of the page at --port.", CLONE: "Another name of the page."}
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
        name="git",
        kept=Kept.SPEC,
        is_private=True,
        title="Git",
        option=Option(
            metavar="URL",
            reset=("none", ""),
            help={
                SUBMIT: "A Git repository: the job begins in a commit of it; see --git-ref.",
                CLONE: "Another Git repository; none: no repository.",
            },
        ),
    ),
    JobField(
        name="git_ref",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            metavar="REF",
            help={
                SUBMIT: "A branch, a tag or a whole commit; default: the repository's own branch.",
                CLONE: "Another branch, tag or commit; a branch is looked up again.",
            },
        ),
    ),
    JobField(
        name="git_dir",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            metavar="DIR",
            help={
                SUBMIT: "The directory of the repository in which the program begins.",
                CLONE: "Another directory of the repository.",
            },
        ),
    ),
    JobField(
        name="git_secret",
        kept=Kept.SPEC,
        is_private=True,
        option=Option(
            metavar="NAME",
            reset=("none", ""),
            help={
                SUBMIT: "The secret with the deploy key or token (`corral secret ls`).",
                CLONE: "Another secret with a deploy key or token; none: no secret.",
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
