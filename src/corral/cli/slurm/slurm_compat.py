"""`corral slurm-compat`: sbatch, squeue, scancel, sinfo and sacct, which use corral's queues.

Scripts for Slurm run unchanged: `corral slurm-compat install DIR` writes programs of those names into a directory for
the PATH. Options that corral cannot support are refused; options without effect are reported once on stderr.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from corral.cli.jobs.job_request import with_flags
from corral.cli.jobs.submission.submit import send, wait_for_end
from corral.cli.slurm.sbatch_options import Here, NotUnderstood, name_for, script_named, understood
from corral.cli.slurm.slurm_columns import (
    ACCOUNT_FORMAT,
    COLUMN,
    INFO_FORMAT,
    INFO_TITLES,
    LONG_INFO_FORMAT,
    LONG_NODE_FORMAT,
    LONG_QUEUE_FORMAT,
    NODE_FORMAT,
    QUEUE_FORMAT,
    QUEUE_TITLES,
    STATES,
    account_fields,
    account_line,
    account_names,
    filled,
    info_rows,
    queue_fields,
)
from corral.cli.slurm.slurm_jobs import jobs_of_number, resolved
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ApiProblem
from corral.core.os_errors import reason_of

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import JobCreate, JobView

app = typer.Typer(
    no_args_is_help=True, help="Commands of Slurm, answered by corral: sbatch, squeue, scancel, sinfo, sacct."
)

PROGRAMS = ("sbatch", "squeue", "scancel", "sinfo", "sacct")
#: The states of jobs that have not ended.
_LIVE = ("created", "queued", "starting", "running", "stopping")

_ARGUMENTS_HELP = "As for the Slurm program. Options of corral come before: corral -o json slurm-compat squeue."
FreeArguments = Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS", help=_ARGUMENTS_HELP)]


@command(
    app,
    "sbatch",
    section=Section.DAILY,
    all_arguments=True,
    examples=["corral slurm-compat sbatch train.sh", "corral slurm-compat sbatch --gres=gpu:2 -t 2:00:00 train.sh 90"],
)
def sbatch(terminal: Terminal, given: FreeArguments = None) -> None:
    """Submit a batch script with its #SBATCH lines to corral's queue."""
    typed = list(given or ())
    try:
        name = script_named(typed)
        script = _read(name) if name is not None else _input(typed)
        batch = understood(typed, script, Here(directory=os.getcwd(), environment=dict(os.environ)))
    except NotUnderstood as error:
        raise WrongUsage(f"sbatch: {error}") from error
    for note in batch.notes:
        terminal.note(f"sbatch: {note}")
    with terminal.client() as client:
        try:
            body = resolved(client, batch, batch.body)
            if batch.is_test:
                single = {key: value for key, value in body.items() if key != "array"}
                terminal.json(client.jobs.plan(cast("JobCreate", single)))
                return
            jobs = _submitted(client, body)
        except ApiProblem as error:
            raise with_flags(error) from error
        number = jobs[0]["id"].removeprefix("j-")
        terminal.say(number if batch.is_parsable else f"Submitted batch job {number}")
        if batch.waits:
            wait_for_end(terminal, client, jobs)


@command(
    app,
    "squeue",
    section=Section.DAILY,
    all_arguments=True,
    examples=["corral slurm-compat squeue --me", "corral slurm-compat squeue -u ann -t RUNNING -h -o '%i %j %T'"],
)
def squeue(terminal: Terminal, given: FreeArguments = None) -> None:
    """List waiting and running jobs in Slurm's columns."""
    options = _options(
        "squeue",
        given,
        valued={"-u": "user", "--user": "user", "-j": "jobs", "--jobs": "jobs", "-t": "states", "--states": "states",
                "-o": "format", "--format": "format", "-n": "name", "--name": "name", "-p": "queue",
                "--partition": "queue"},
        bare={"--me": "me", "-h": "noheader", "--noheader": "noheader", "-l": "long", "--long": "long"},
    )  # fmt: skip
    with terminal.client() as client:
        user = client.people.me()["name"] if options.get("me") else options.get("user")
        wanted = _states(options.get("states", ""))
        jobs = list(
            client.jobs.list(
                states=wanted or _LIVE,
                user=user.split(",") if user else None,
                queue=options.get("queue"),
                sort="id",
            )
        )
        numbers = [text for text in options.get("jobs", "").split(",") if text]
        ids = {job for text in numbers for job in jobs_of_number(client, text)}
    shown = [job for job in jobs if (not numbers or job["id"] in ids) and _is_called(job, options.get("name"))]
    if terminal.as_json:
        terminal.json({"items": shown})
        return
    line = options.get("format", LONG_QUEUE_FORMAT if options.get("long") else QUEUE_FORMAT)
    if not options.get("noheader"):
        terminal.say(filled(line, QUEUE_TITLES))
    for job in shown:
        terminal.say(filled(line, queue_fields(job, terminal.now())))


@command(
    app,
    "scancel",
    section=Section.DAILY,
    all_arguments=True,
    examples=["corral slurm-compat scancel 42", "corral slurm-compat scancel --me -t PENDING"],
)
def scancel(terminal: Terminal, given: FreeArguments = None) -> None:
    """Stop jobs."""
    options = _options(
        "scancel",
        given,
        valued={"-u": "user", "--user": "user", "-n": "name", "--name": "name", "-t": "states", "--state": "states"},
        bare={"--me": "me", "-Q": "quiet", "--quiet": "quiet"},
    )
    numbers = [text for word in options.pop("arguments", "").split() for text in word.split(",") if text]
    if not numbers and not options.keys() & {"user", "me", "name"}:
        raise WrongUsage("scancel: which job? Give its number, --me, --user or --name")
    failed = False
    with terminal.client() as client:
        if not numbers:
            user = client.people.me()["name"] if options.get("me") else options.get("user")
            listed = client.jobs.list(states=_states(options.get("states", "")) or _LIVE, user=user, sort="id")
            numbers = [job["id"] for job in listed if _is_called(job, options.get("name"))]
            failed = not _all_stopped(terminal, client, numbers, may_be_over=True)
        else:
            for number in numbers:
                try:
                    jobs = jobs_of_number(client, number)
                except ApiProblem as error:
                    terminal.note(f"scancel: {number}: {error.message}")
                    failed = True
                    continue
                failed |= not _all_stopped(terminal, client, jobs, may_be_over=len(jobs) > 1)
    if failed:
        raise typer.Exit(1)


@command(
    app,
    "sinfo",
    section=Section.DAILY,
    all_arguments=True,
    examples=["corral slurm-compat sinfo", "corral slurm-compat sinfo -h -o '%P %D %t'"],
)
def sinfo(terminal: Terminal, given: FreeArguments = None) -> None:
    """List nodes by queue and state in Slurm's columns."""
    options = _options(
        "sinfo",
        given,
        valued={"-p": "queue", "--partition": "queue", "-o": "format", "--format": "format"},
        bare={
            "-h": "noheader",
            "--noheader": "noheader",
            "-N": "each",
            "--Node": "each",
            "-l": "long",
            "--long": "long",
        },
    )
    with terminal.client() as client:
        queues = [queue for queue in client.queues.list() if options.get("queue", queue["name"]) == queue["name"]]
        nodes = list(client.fleet.nodes())
    each, is_long = bool(options.get("each")), bool(options.get("long"))
    rows = info_rows(queues, nodes, each=each)
    if terminal.as_json:
        terminal.json({"items": rows})
        return
    plain = (LONG_NODE_FORMAT if is_long else NODE_FORMAT) if each else LONG_INFO_FORMAT if is_long else INFO_FORMAT
    line = options.get("format", plain)
    if not options.get("noheader"):
        terminal.say(filled(line, INFO_TITLES))
    for row in rows:
        terminal.say(filled(line, row))


@command(
    app,
    "sacct",
    section=Section.DAILY,
    all_arguments=True,
    examples=["corral slurm-compat sacct", "corral slurm-compat sacct -j 42 --format=jobid,state,elapsed -n -P"],
)
def sacct(terminal: Terminal, given: FreeArguments = None) -> None:
    """List jobs of today, ended ones too, in Slurm's columns."""
    options = _options(
        "sacct",
        given,
        valued={"-j": "jobs", "--jobs": "jobs", "-u": "user", "--user": "user", "-s": "states", "--state": "states",
                "-S": "since", "--starttime": "since", "-o": "format", "--format": "format", "--name": "name",
                "-r": "queue", "--partition": "queue"},
        bare={"-a": "all", "--allusers": "all", "-n": "noheader", "--noheader": "noheader", "-P": "parsable",
              "--parsable2": "parsable", "-X": "steps", "--allocations": "steps"},
    )  # fmt: skip
    columns = account_names(options.get("format", ACCOUNT_FORMAT))
    numbers = [text for text in options.get("jobs", "").split(",") if text]
    with terminal.client() as client:
        user = None if options.get("all") else options.get("user") or (None if numbers else client.people.me()["name"])
        jobs = [
            job
            for job in client.jobs.list(
                states=_states(options.get("states", "")),
                user=user.split(",") if user else None,
                queue=options.get("queue"),
                since=None if numbers else _beginning(options.get("since"), terminal.now()),
                sort="id",
            )
            if _is_called(job, options.get("name"))
        ]
        ids = {job for text in numbers for job in jobs_of_number(client, text)}
    shown = [job for job in jobs if not numbers or job["id"] in ids]
    if terminal.as_json:
        terminal.json({"items": shown})
        return
    names, widths = [name for name, _ in columns], [width for _, width in columns]
    rows = [[account_fields(job, terminal.now())[name] for name in names] for job in shown]
    if options.get("parsable"):
        lines = ["|".join(row) for row in ([] if options.get("noheader") else [names]) + rows]
    else:
        rules = [names, ["-" * abs(width or COLUMN) for width in widths]]
        lines = [account_line(row, widths) for row in ([] if options.get("noheader") else rules) + rows]
    for line in lines:
        terminal.say(line)


@command(app, "install", section=Section.DAILY, examples=["corral slurm-compat install ~/corral-bin"])
def install(
    terminal: Terminal, directory: Annotated[Path, typer.Argument(metavar="DIR", help="Created if it does not exist.")]
) -> None:
    """Write programs named sbatch, squeue, scancel, sinfo and sacct into a directory for the PATH."""
    paths = {name: directory / name for name in PROGRAMS}
    for path in paths.values():
        if path.exists() and "corral" not in path.read_text(errors="replace"):
            raise WrongUsage(f"{path} exists and is not from corral: choose another directory")
    directory.mkdir(parents=True, exist_ok=True)
    for name, path in paths.items():
        # After -- everything belongs to the Slurm command, --help too.
        program = f"{shlex.quote(sys.executable)} -m corral.cli.main slurm-compat {name}"
        path.write_text(f'#!/bin/sh\nexec {program} -- "$@"\n')
        path.chmod(0o755)
    terminal.answer(
        {"directory": str(directory), "programs": list(PROGRAMS)},
        f"Wrote {formats.listed(list(PROGRAMS))} to {directory}. Use them: export PATH={directory.absolute()}:$PATH",
    )


# ------------------------------------------------------------------------------------------------ inside


def _input(typed: Sequence[str]) -> str | None:
    """The script from stdin, if no file is given; None with --wrap."""
    is_wrapped = any(word == "--wrap" or word.startswith("--wrap=") for word in typed)
    return None if is_wrapped else sys.stdin.read()


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise WrongUsage(
            f"sbatch: there is no script {name} in {os.getcwd()}", hint="Use --wrap 'COMMAND' for a single command."
        ) from None
    except IsADirectoryError:
        raise WrongUsage(f"sbatch: {name} is a directory, not a script") from None
    except UnicodeDecodeError:
        raise WrongUsage(f"sbatch: {name} is not a text file, so it is no script") from None
    except OSError as error:
        raise WrongUsage(f"sbatch: the script {name} cannot be read: {reason_of(error)}") from error


def _submitted(client: Client, body: dict[str, Any]) -> list[JobView]:
    """Submit under the script's name, or under the next free one if a job of that name exists."""
    wanted, number = body["name"], 1
    mine = client.jobs.list(user=client.people.me()["name"], name=name_for(wanted, 1))
    taken = {name for job in mine for name in (job["name"], job["array"]["name"] if job["array"] else None)}
    while True:
        while (name := name_for(wanted, number)) in taken:
            number += 1
        named = {**body, "name": name}
        try:
            return send(client, named)
        except ApiProblem as error:
            # another sbatch took the name at the same time
            if error.slug != "name-taken":
                raise
            taken.add(name)


def _all_stopped(terminal: Terminal, client: Client, jobs: Iterable[str], *, may_be_over: bool) -> bool:
    """Stop several jobs. Some may have ended already, or end because another of them did."""
    is_done = True
    for job in jobs:
        try:
            client.jobs.stop(job)
        except ApiProblem as error:
            if not (may_be_over and error.slug == "wrong-state"):
                terminal.note(f"scancel: {job.removeprefix('j-')}: {error.message}")
                is_done = False
    return is_done


def _is_called(job: JobView, name: str | None) -> bool:
    """Whether the job has this name; later jobs of the same name have a number after it, those of arrays an index."""
    if name is None or job["name"] == name:
        return True
    plain = name_for(name, 1)
    own = job["array"]["name"] if job["array"] else job["name"]
    return own == plain or re.fullmatch(rf"{re.escape(plain)}-\d+", own) is not None


def _options(
    program: str, given: Sequence[str] | None, *, valued: dict[str, str], bare: dict[str, str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    left = list(given or ())
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in valued:
            if not equals:
                if not left:
                    raise WrongUsage(f"{program}: {name} needs a value")
                value = left.pop(0)
            found[valued[name]] = value
        elif word in bare:
            found[bare[word]] = "yes"
        elif len(word) > 2 and word[:2] in valued and not word.startswith("--"):
            found[valued[word[:2]]] = word[2:]
        elif len(word) > 2 and word[:2] in bare and not word.startswith("--"):
            # several options in one argument
            found[bare[word[:2]]] = "yes"
            left.insert(0, f"-{word[2:]}")
        elif word.startswith("-"):
            raise WrongUsage(f"{program}: corral does not know the option {word}")
        else:
            found["arguments"] = f"{found.get('arguments', '')} {word}".strip()
    return found


def _beginning(text: str | None, now: float) -> str:
    """The start of the time of sacct: a date, a date and time, or the beginning of today."""
    if text is None:
        today = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
        return today.astimezone().isoformat()
    if ago := re.fullmatch(r"now-(\d+)(minutes?|hours?|days?|weeks?)", text):
        seconds = {"m": 60, "h": 3600, "d": 86400, "w": 604800}[ago[2][0]] * int(ago[1])
        return datetime.fromtimestamp(now - seconds).astimezone().isoformat()
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except ValueError:
        raise WrongUsage(
            f"sacct: {text!r} is not a time", hint="Write 2026-07-01, 2026-07-01T12:00 or now-2days."
        ) from None


def _states(text: str) -> list[str]:
    if not text or text.lower() == "all":
        return list(STATES) if text else []
    wanted = {word.upper() for word in text.split(",")}
    return [state for state, names in STATES.items() if wanted & set(names)]
