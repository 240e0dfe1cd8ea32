"""Scripts as programs: `corral submit train.sh` runs a script of the current folder, with the options in its lines
`#CORRAL` and `#SBATCH`."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corral.cli.habits.foreign_flags import hint_for
from corral.cli.habits.habit_group import similar
from corral.cli.jobs.job_options import JOB_OPTIONS, JobOption
from corral.cli.jobs.submission.end_notes import INTERPRETERS
from corral.cli.slurm.sbatch_options import SHELLS, Batch, Here, NotUnderstood, name_for, understood
from corral.cli.slurm.slurm_jobs import resolved
from corral.cli.terminal.failures import WrongUsage
from corral.core.jobs.field_types import SUBMIT
from corral.core.os_errors import unreadable

if TYPE_CHECKING:
    from corral.client.client import Client

CORRAL_LINE = "#CORRAL"
SLURM_LINE = "#SBATCH"
#: Larger files are programs and no scripts.
MOST_BYTES = 1 << 20
_NUMBERS = {int: "a whole number", float: "a number"}


class _Flag(NamedTuple):
    """An option of `corral submit` that a line may have."""

    field: str
    kind: Any
    #: None: the text is the value
    option: JobOption | None = None


_FLAGS = {
    flag: _Flag(option.field, option.option.type, option)
    for option in JOB_OPTIONS
    if SUBMIT in option.help
    for flag in (option.long_flag, option.option.letter)
    if flag
} | {"--array": _Flag("array", str), "--pack": _Flag("pack", bool)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """The submission that a script describes, with the places of its fields. `batch` is that of a Slurm script."""

    body: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)
    batch: Batch | None = None

    def looked_up(self, client: Client, body: dict[str, Any]) -> dict[str, Any]:
        """The whole request `body` with what only the server knows: the partitions, GPU types and job numbers that the
        lines of a Slurm script name."""
        if self.batch is None:
            return body
        own: dict[str, Any] = {
            key: body[key] for key in ("queue", "after") if key in body and body[key] == self.body.get(key)
        }
        labels = {"labels": body["labels"]} if "labels" in body else {}
        rest = {key: value for key, value in body.items() if key not in own and key != "labels"}
        return {**resolved(client, self.batch, {**own, **labels}), **rest}


def script_of(words: Sequence[str]) -> Script | None:
    """The script that is the program; None for any other program."""
    path = Path(words[0])
    if not path.is_file():
        return None
    text = _text(path)
    is_found = os.access(path, os.X_OK) if "/" in words[0] else shutil.which(words[0]) is not None
    if not text.startswith("#!"):
        if not is_found and path.suffix in INTERPRETERS:
            hint = f"Put its interpreter before it: -- {INTERPRETERS[path.suffix]} {' '.join(words)}"
            raise WrongUsage(f"{words[0]} is a file that cannot be started: it does not begin with #!", hint=hint)
        return None
    has_lines = any(line.startswith((CORRAL_LINE, SLURM_LINE)) for line in text.splitlines())
    if is_found and not has_lines:
        return None
    body, places = _of_lines(text, words[0])
    if not any(number for number, _ in _lines(text, SLURM_LINE)):
        return Script(body={**body, "command": _command(text, words)}, places=places)
    try:
        batch = understood(list(words), text, Here(directory=os.getcwd(), environment=dict(os.environ)))
    except NotUnderstood as error:
        raise WrongUsage(f"{words[0]}: {error}") from error
    slurm = {
        key: value for key, value in batch.body.items() if key not in ("name", "workdir") or _is_own(key, batch, path)
    }
    if "name" in slurm:
        slurm["name"] = name_for(slurm["name"], 1)
    return Script(body={**slurm, **body}, places=places, batch=batch)


def _is_own(key: str, batch: Batch, path: Path) -> bool:
    """Whether a line sets the name or the directory, which `sbatch` chooses otherwise."""
    chosen = {"name": path.name, "workdir": os.getcwd()}
    return bool(batch.body.get(key) != chosen[key])


def _text(path: Path) -> str:
    """The text of a file; empty for a file that is no text."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {unreadable(error)}") from error


def _command(text: str, words: Sequence[str]) -> list[str]:
    """A shell gets the script itself: later changes of the file apply to the next submission. Other interpreters get
    the file, which may look for its own place."""
    interpreter = shlex.split(text.partition("\n")[0][2:])
    if any(word.rpartition("/")[2] in SHELLS for word in interpreter):
        return [*interpreter, "-c", text, *words]
    return [*interpreter, str(Path(words[0]).absolute()), *words[1:]]


def _lines(text: str, mark: str) -> Iterator[tuple[int, str]]:
    """The number and the rest of each line with this mark, up to the first command."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(mark):
            yield number, line.removeprefix(mark)
        elif line.strip() and not line.lstrip().startswith("#"):
            return


def _of_lines(text: str, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields that lines `#CORRAL` set, and the place of each."""
    body: dict[str, Any] = {}
    places: dict[str, str] = {}
    for number, line in _lines(text, CORRAL_LINE):
        place = f"{name}:{number}"
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise WrongUsage(f"{place}: {error}") from error
        for key, value in _fields(words, place):
            repeated = body.get(key)
            if isinstance(value, dict) and isinstance(repeated, dict):
                value = {**repeated, **value}
            elif isinstance(value, list) and isinstance(repeated, list):
                value = [*repeated, *value]
            body[key], places[key] = value, place
    return body, places


def _fields(words: Sequence[str], place: str) -> Iterator[tuple[str, Any]]:
    rest = list(words)
    while rest:
        name, equals, text = rest.pop(0).partition("=")
        is_negated = name.startswith("--no-")
        flag = _FLAGS.get(name.replace("--no-", "--"))
        if flag is None or (is_negated and flag.kind is not bool):
            close = similar(name, _FLAGS)
            hint = hint_for(name, _FLAGS) or (f"Did you mean {close}?" if close else "")
            raise WrongUsage(f"{place}: {name}: there is no such option", hint=hint)
        if flag.kind is bool:
            yield flag.field, not is_negated
            continue
        if not equals:
            if not rest:
                raise WrongUsage(f"{place}: {name}: the value is missing")
            text = rest.pop(0)
        yield flag.field, _value(flag, text, f"{place}: {name}")


def _value(flag: _Flag, text: str, place: str) -> Any:
    """The value of the field, read as that of the option."""
    if flag.option is None:
        return text
    typed: Any = [text] if flag.kind == list[str] else Path(text) if flag.option.is_path else text
    if flag.kind in _NUMBERS:
        try:
            typed = flag.kind(text)
        except ValueError:
            raise WrongUsage(f"{place}: {text!r} is not {_NUMBERS[flag.kind]}") from None
    return flag.option.value(SUBMIT, typed)
