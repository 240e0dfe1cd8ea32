"""The parts of a row of the table of job fields: options of commands, where the value is kept, when it may change."""

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
    #: a letter that Slurm has for the same, at the commands that submit
    letter: str = ""
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
