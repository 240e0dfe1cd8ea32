"""The options of `submit`, `clone`, `edit`, `preset run` and `workbench create`, and the keys of job files.

They are made from the table of job fields; `job_request` adds the options to the commands and makes requests of the
typed values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.terminal import arguments, completion
from corral.cli.terminal.failures import WrongUsage
from corral.core.jobs.field_types import CLONE, EDIT, SUBMIT, JobCommand, Option, Reader
from corral.core.jobs.job_fields import JOB_FIELDS


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


_READERS: Mapping[Reader, Callable[[str, Any], Any]] = {
    Reader.TYPED: _as_typed,
    Reader.AMOUNT: arguments.amount,
    Reader.COMMAS: _split,
    Reader.PAIRS: arguments.pairs,
    Reader.PATH: _absolute,
    Reader.JOBS: _job_names,
}


#: Fields whose values the shell completes.
_COMPLETED = {"queue": completion.queue_names, "after": completion.job_names}


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOption:
    #: in the API's request
    field: str
    option: Option

    @property
    def help(self) -> Mapping[JobCommand, str]:
        return self.option.help

    @property
    def long_flag(self) -> str:
        return f"--{self.option.flag or self.field.replace('_', '-')}"

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return self.long_flag.removeprefix("--").replace("-", "_")

    def declared(self, command: JobCommand) -> inspect.Parameter:
        negated = f"/--no-{self.parameter}" if self.field == "preemptible" else ""
        letters = (self.option.letter,) if self.option.letter and command is SUBMIT else ()
        option = typer.Option(
            f"{self.long_flag}{negated}",
            *letters,
            metavar=self.option.metavar,
            help=self.help[command],
            autocompletion=_COMPLETED.get(self.field),
        )
        value: Any = (Path if self.is_path else self.option.type) | None
        annotation: Any = Annotated[value, option]
        return inspect.Parameter(self.parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)

    @property
    def is_path(self) -> bool:
        return self.option.read is Reader.PATH

    def value(self, command: JobCommand, typed: Any) -> Any:
        reset = self.option.reset
        if reset is not None and command in (CLONE, EDIT) and typed == reset[0]:
            return reset[1]
        return _READERS[self.option.read](self.long_flag, typed)


#: In the order in which `--help` lists them.
JOB_OPTIONS = tuple(JobOption(field=row.name, option=option) for row in JOB_FIELDS.values() for option in row.options)

#: The job file of a project folder: `corral init job` writes it, `corral submit` without a program reads it.
PROJECT_FILE = "corral.job.yaml"
#: Keys of job files, by the API's name and by flag, with the field that they set.
FILE_KEYS: Mapping[str, str] = {name: name for name in JOB_FIELDS} | {
    option.long_flag.removeprefix("--"): option.field for option in JOB_OPTIONS if SUBMIT in option.help
}
