"""Translates `sbatch` options and `#SBATCH` lines to the fields of a submission. Pure."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from corral.core.jobs.arrays import parse_array
from corral.core.jobs.job_fields import JOB_FIELDS

#: The option with which an interpreter accepts a program as an argument.
_PROGRAM_FLAGS = {"sh": "-c", "bash": "-c", "dash": "-c", "zsh": "-c", "ksh": "-c", "python": "-c", "perl": "-e"}
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
#: Options without effect: accounting, mail, and how Slurm itself orders or binds.
_WITHOUT_EFFECT = (
    ("-A", "--account"),
    ("-q", "--qos"),
    ("--mail-type",),
    ("--mail-user",),
    ("--nice",),
    ("--hint",),
    ("--threads-per-core",),
    ("--distribution", "-m"),
    ("--cpu-bind",),
    ("--gpu-bind",),
    ("--open-mode",),
    ("-i", "--input"),
    ("--reservation",),
    ("--signal",),
    ("--tmp",),
    ("--exclude", "-x"),
)
_BARE_WITHOUT_EFFECT = (("--overcommit", "-O"), ("--oversubscribe", "-s"), ("--contiguous",), ("--get-user-env",))
#: Fields whose value `sbatch` has as an option.
_SAME_OPTIONS = {name: field.sbatch for name, field in JOB_FIELDS.items() if field.sbatch}
_SIZES = {"": "MiB", "K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"}


class NotUnderstood(Exception):
    """The script or its options request something that corral does not support; the message says what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """The submission, and notes about options without effect."""

    body: dict[str, Any]
    notes: tuple[str, ...] = ()
    #: the GPU type in Slurm; "" for any
    gpu_type: str = ""
    is_parsable: bool = False
    waits: bool = False
    is_test: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Here:
    """The directory and environment of the submission."""

    directory: str
    environment: Mapping[str, str] = field(default_factory=dict)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise NotUnderstood(message)


def _parser() -> _Parser:
    parser = _Parser(prog="sbatch", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("-J", "--job-name")
    add("-N", "--nodes")
    add("-n", "--ntasks", type=int)
    add("--ntasks-per-node", type=int)
    add("-c", "--cpus-per-task", type=int)
    add("--mem")
    add("--mem-per-cpu")
    add("--mem-per-gpu")
    add("-G", "--gpus")
    add("--gpus-per-node")
    add("--gpus-per-task")
    add("--gres")
    add("-t", "--time")
    add("-p", "--partition")
    add("-C", "--constraint")
    add("-w", "--nodelist")
    add("-o", "--output")
    add("-e", "--error")
    add("-D", "--chdir")
    add("-d", "--dependency")
    add("-a", "--array")
    add("-b", "--begin")
    add("--export")
    add("--wrap")
    add("-H", "--hold", action="store_true")
    add("-W", "--wait", action="store_true")
    add("--parsable", action="store_true")
    add("--test-only", action="store_true")
    add("-Q", "--quiet", action="store_true")
    add("-v", "--verbose", action="count")
    add("--requeue", action="store_true", default=None)
    add("--no-requeue", dest="requeue", action="store_false")
    add("--exclusive", nargs="?", const="yes")
    for option in _SAME_OPTIONS.values():
        add(f"--{option}")
    for names in _WITHOUT_EFFECT:
        add(*names, dest=f"ignored_{names[-1].lstrip('-')}")
    for names in _BARE_WITHOUT_EFFECT:
        add(*names, dest=f"ignored_{names[0].lstrip('-')}", action="store_true", default=None)
    add("script", nargs="?")
    add("arguments", nargs=argparse.REMAINDER)
    return parser


def script_named(words: Sequence[str]) -> str | None:
    """The script file, if one is named and --wrap is not used."""
    given = _parser().parse_args(list(words))
    return None if given.wrap is not None else given.script


def understood(words: Sequence[str], script: str | None, here: Here) -> Batch:
    """The submission of `sbatch` with these arguments and script. The command line wins over lines of the script."""
    given = _parser().parse_args(list(words))
    if given.wrap is not None:
        if given.script is not None:
            raise NotUnderstood("--wrap and a script exclude each other")
        script = f"#!/bin/sh\n{given.wrap}\n"
    if script is None:
        raise NotUnderstood("there is no script: name a file, give it on the standard input, or use --wrap")
    options = _parser().parse_args([*_lines_of(script), *_before_script(words, given)])
    notes = [
        f"--{name.removeprefix('ignored_')} has no effect here"
        for name, value in vars(options).items()
        if name.startswith("ignored_") and value is not None
    ]
    if options.job_name is None:
        options.job_name = "wrap" if given.wrap is not None else (given.script or "sbatch").rpartition("/")[2]
    body = _body(options, here, notes)
    body["command"] = _command(script, options, given)
    return Batch(
        body=body,
        notes=tuple(notes),
        gpu_type=_gpus(options)[1],
        is_parsable=options.parsable,
        waits=options.wait,
        is_test=options.test_only,
    )


def _lines_of(script: str) -> list[str]:
    """The options in `#SBATCH` lines, which end at the first line that is a command."""
    found: list[str] = []
    for line in script.splitlines():
        text = line.strip()
        if text.startswith("#SBATCH"):
            found += shlex.split(text.removeprefix("#SBATCH"), comments=True)
        elif text and not text.startswith("#"):
            break
    return found


def _before_script(words: Sequence[str], given: argparse.Namespace) -> list[str]:
    behind = len(given.arguments) + (given.script is not None)
    return list(words[: len(words) - behind])


def _body(options: argparse.Namespace, here: Here, notes: list[str]) -> dict[str, Any]:
    nodes = _nodes(options)
    tasks_per_node = _tasks_per_node(options, nodes)
    cpus = (options.cpus_per_task or 1) * tasks_per_node
    gpus, _ = _gpus(options)
    body: dict[str, Any] = {
        "nodes": nodes,
        "gpus": gpus,
        "cpus": cpus,
        "workdir": options.chdir or here.directory,
        "env": {**_exported(options, here), **_slurm_variables(options, here, nodes, tasks_per_node)},
        "name": options.job_name,
        "memory": _memory(options, cpus, gpus),
        "time": _minutes(options.time),
        "queue": (options.partition or "").split(",")[0] or None,
        "labels": _labels(options),
        "after": _after(options.dependency),
        "array": _indexes(options.array),
        "hold": options.hold or None,
        "max_retries": 0 if options.requeue is False else None,
        **{name: getattr(options, option.replace("-", "_")) for name, option in _SAME_OPTIONS.items()},
    }
    if options.begin:
        raise NotUnderstood("--begin: corral starts jobs as soon as it can; submit with --hold and start it later")
    if options.nodelist:
        notes.append("--nodelist has no effect here: corral chooses the nodes; use --constraint or a label")
    if options.exclusive:
        notes.append("--exclusive has no effect here: ask for all GPUs of a node instead")
    return {key: value for key, value in body.items() if value not in (None, {})}


def _nodes(options: argparse.Namespace) -> int:
    least = (options.nodes or "1").partition("-")[0]
    if not least.isdigit() or int(least) < 1:
        raise NotUnderstood(f"--nodes: {options.nodes!r} is not a number of nodes")
    return int(least)


def _tasks_per_node(options: argparse.Namespace, nodes: int) -> int:
    return options.ntasks_per_node or max(1, -(-(options.ntasks or 1) // nodes))


def models_for(gpu_type: str, known: Iterable[Mapping[str, str]]) -> list[str]:
    """The GPU models that a GPU type of Slurm means, as the clusters report them (case-insensitive). A type that no
    cluster reports is used as a model itself."""
    wanted = gpu_type.casefold()
    named = {model for types in known for kind, model in types.items() if wanted in (kind.casefold(), model.casefold())}
    return sorted(named) or [gpu_type.upper()]


def _gpus(options: argparse.Namespace) -> tuple[int, str]:
    """The number of GPUs on each node, and their type."""
    nodes = _nodes(options)
    tasks_per_node = _tasks_per_node(options, nodes)
    for text, times, among in (
        (options.gpus_per_node, 1, 1),
        (_gres(options.gres), 1, 1),
        (options.gpus_per_task, tasks_per_node, 1),
        (options.gpus, 1, nodes),
    ):
        if text:
            kind, _, count = text.rpartition(":")
            if not count.isdigit():
                kind, count = count, "1"
            return -(-int(count) * times // among), kind
    return 0, ""


def _gres(text: str | None) -> str:
    for part in (text or "").split(","):
        name, _, rest = part.partition(":")
        if name == "gpu":
            return rest or "1"
        if name:
            raise NotUnderstood(f"--gres: corral knows GPUs only, not {name!r}")
    return ""


def _memory(options: argparse.Namespace, cpus: int, gpus: int) -> str | None:
    """The memory on each node. 0 means all of it in Slurm; corral ignores it."""
    for text, times in ((options.mem, 1), (options.mem_per_cpu, cpus), (options.mem_per_gpu, max(1, gpus))):
        if text and text != "0":
            found = re.fullmatch(r"(\d+)([KMGT]?)B?", text.upper())
            if found is None:
                raise NotUnderstood(f"{text!r} is not a size, such as 16G")
            return f"{int(found[1]) * times}{_SIZES[found[2]]}"
    return None


def _minutes(text: str | None) -> str | None:
    """`30`, `1:30:00`, `2-12` or `2-12:00:00`, as seconds."""
    if text is None or text.upper() in ("UNLIMITED", "INFINITE"):
        return None
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in [*parts, *([days] if dash else [])]) or len(parts) > 3:
        raise NotUnderstood(f"--time: {text!r} is not a time, such as 90, 1:30:00 or 2-12")
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    return f"{((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds}s"


def _labels(options: argparse.Namespace) -> dict[str, str]:
    features = re.split(r"[&,]", options.constraint or "")
    if any(letter in (options.constraint or "") for letter in "|[]()*"):
        raise NotUnderstood(f"--constraint: {options.constraint!r}: corral knows features joined by & only")
    return {f"slurm.feature.{feature}": "yes" for feature in features if feature}


def _after(text: str | None) -> list[str] | None:
    if not text:
        return None
    found: list[str] = []
    for part in text.split(","):
        kind, _, jobs = part.partition(":")
        if kind not in ("afterok", "after") or not jobs:
            raise NotUnderstood(f"--dependency: corral knows afterok:JOB[:JOB…] only, not {part!r}")
        found += [_job_id(job) for job in jobs.split(":")]
    return found


def _job_id(text: str) -> str:
    """The job id of a number, as `sbatch --parsable` prints it."""
    return f"j-{text}" if text.isdigit() else text


def _indexes(text: str | None) -> str | None:
    """A limit of concurrent jobs is refused unless it has no effect: without it, too many jobs would run."""
    if text is None:
        return None
    indexes, percent, limit = text.partition("%")
    if percent and (not limit.isdigit() or int(limit) < len(_parsed_array(indexes))):
        raise NotUnderstood(
            f"--array: corral cannot keep to {percent + limit!r}, a limit of jobs at once: leave it out, or submit the "
            "array to a queue with a max_gpus"
        )
    return indexes


def _parsed_array(text: str) -> tuple[int, ...]:
    try:
        return parse_array(text)
    except ValueError as error:
        raise NotUnderstood(f"--array: {error}") from error


def _exported(options: argparse.Namespace, here: Here) -> dict[str, str]:
    """The variables that --export names. `ALL`, the default of Slurm, is ignored: corral does not send the whole
    environment of the submitting machine."""
    found: dict[str, str] = {}
    for part in (options.export or "").split(","):
        name, equals, value = part.partition("=")
        if name in ("", "ALL", "NONE", "NIL"):
            continue
        if equals:
            found[name] = value
        elif name in here.environment:
            found[name] = here.environment[name]
    return found


def _slurm_variables(options: argparse.Namespace, here: Here, nodes: int, tasks_per_node: int) -> dict[str, str]:
    """Environment variables that scripts for Slurm expect."""
    found = {
        "SLURM_SUBMIT_DIR": here.directory,
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_NNODES": str(nodes),
        "SLURM_NTASKS": str(options.ntasks or nodes * tasks_per_node),
        "SLURM_CPUS_PER_TASK": str(options.cpus_per_task or 1),
        "SLURM_JOB_NAME": options.job_name,
    }
    if nodes > 1:
        # The script runs in a step with all resources of the job; steps that it starts share them.
        found["SLURM_OVERLAP"] = "1"
    return found


def name_for(wanted: str, number: int) -> str:
    """A valid name in corral. Names in Slurm may be short and used repeatedly: later ones get a number."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-")[:50] or "batch"
    is_fine = len(plain) >= 4 and not re.fullmatch(r"job-\d+", plain)
    return (plain if is_fine else f"batch-{plain}") + (f"-{number}" if number > 1 else "")


def _command(script: str, options: argparse.Namespace, given: argparse.Namespace) -> list[str]:
    """The script is part of the command: later changes of the file apply to the next submission."""
    first = script.partition("\n")[0]
    if not first.startswith("#!"):
        raise NotUnderstood("this does not look like a batch script: its first line must begin with #!")
    interpreter = shlex.split(first[2:])
    name = interpreter[-1].rpartition("/")[2].rstrip("0123456789.")
    flag = _PROGRAM_FLAGS.get(name)
    if flag is None:
        raise NotUnderstood(f"scripts of {interpreter[-1]} are not supported: use one of {', '.join(_PROGRAM_FLAGS)}")
    text = _prelude(options) + script if name in SHELLS else script
    command = [*interpreter, flag, text, given.script or "wrap", *given.arguments]
    return command if _nodes(options) == 1 else ["/bin/sh", "-c", _ON_FIRST_NODE, "batch", *command]


#: A batch script runs on the first node. The other nodes wait until it has ended, for steps that it starts with srun.
_ON_FIRST_NODE = """over="$CORRAL_JOB_DIR/.batch-$CORRAL_ATTEMPT-over"
if [ "${CORRAL_RANK:-0}" != 0 ]; then
  while [ ! -e "$over" ]; do sleep 1; done
  exit 0
fi
"$@"
code=$?
: >"$over"
exit $code
"""


def _prelude(options: argparse.Namespace) -> str:
    """Sets variables that are missing outside of Slurm, and redirects the output as the script requests."""
    lines = [
        'export SLURM_JOB_ID="${SLURM_JOB_ID:-${CORRAL_JOB_ID#j-}}" SLURM_NODEID="${SLURM_NODEID:-${CORRAL_RANK:-0}}"',
        'export SLURM_JOBID="$SLURM_JOB_ID" SLURM_PROCID="${SLURM_PROCID:-$SLURM_NODEID}"',
    ]
    if options.array is not None:
        lines += _array_lines(options.array)
    if options.output:
        lines.append(f"exec >>{_file(options.output, options)}" + ("" if options.error else " 2>&1"))
    if options.error:
        lines.append(f"exec 2>>{_file(options.error, options)}")
    return "\n".join(lines) + "\n"


def _array_lines(text: str) -> list[str]:
    """The number of an array is that of its first job; the numbers of the other jobs follow."""
    indexes = _parsed_array(text.partition("%")[0])
    return [
        f"corral_place=0; for corral_index in {' '.join(map(str, indexes))}; do",
        '[ "$corral_index" = "$CORRAL_ARRAY_INDEX" ] && break; corral_place=$((corral_place + 1)); done',
        'export SLURM_ARRAY_TASK_ID="$CORRAL_ARRAY_INDEX" SLURM_ARRAY_TASK_COUNT="$CORRAL_ARRAY_SIZE"',
        'export SLURM_ARRAY_JOB_ID="$((${CORRAL_JOB_ID#j-} - corral_place))"',
        f"export SLURM_ARRAY_TASK_MIN={indexes[0]} SLURM_ARRAY_TASK_MAX={indexes[-1]}",
    ]


#: Job numbers are those that sbatch printed, also if Slurm itself runs the job under another number.
_PATTERNS = {
    "%j": '"${CORRAL_JOB_ID#j-}"',
    "%J": '"${CORRAL_JOB_ID#j-}"',
    "%A": '"${SLURM_ARRAY_JOB_ID:-${CORRAL_JOB_ID#j-}}"',
    "%a": '"$SLURM_ARRAY_TASK_ID"',
    "%N": '"$CORRAL_NODE"',
    "%u": '"$USER"',
    "%n": '"$SLURM_NODEID"',
    "%t": '"$SLURM_PROCID"',
    "%%": "%",
}


def _file(pattern: str, options: argparse.Namespace) -> str:
    """A file name with Slurm's patterns, as text for a shell."""
    parts = re.split(r"(%\d*[a-zA-Z%])", pattern)
    filled = []
    for part in parts:
        plain = re.sub(r"\d", "", part)
        if plain == "%x":
            filled.append(shlex.quote(options.job_name))
        else:
            filled.append(_PATTERNS[plain] if plain in _PATTERNS else shlex.quote(part) if part else "")
    return "".join(filled)
