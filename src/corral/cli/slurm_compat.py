"""`corral slurm-compat`: sbatch, squeue, scancel and sinfo as people know them, over corral's queue.

Scripts for Slurm run unchanged: `corral slurm-compat install DIR` puts programs of those names into a directory for the
PATH. What corral cannot do is refused in words; what has no effect here is said once on the standard error.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import words
from corral.cli.failures import WrongUsage
from corral.cli.sbatch_words import Here, NotUnderstood, name_for, script_named, understood
from corral.cli.submit import in_their_words, wait_for_end
from corral.cli.terminal import Section, Terminal, command
from corral.client.errors import ApiProblem

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import JobView

app = typer.Typer(no_args_is_help=True)

PROGRAMS = ("sbatch", "squeue", "scancel", "sinfo")
#: Slurm's short and long words for the states of a job.
STATES = {
    "created": ("PD", "PENDING"),
    "queued": ("PD", "PENDING"),
    "starting": ("CF", "CONFIGURING"),
    "running": ("R", "RUNNING"),
    "stopping": ("CG", "COMPLETING"),
    "stopped": ("CA", "CANCELLED"),
    "completed": ("CD", "COMPLETED"),
    "failed": ("F", "FAILED"),
}
QUEUE_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#: of jobs that are not over
_LIVE = ("created", "queued", "starting", "running", "stopping")
INFO_FORMAT = "%9P %5a %.10l %.6D %.6t %N"
_FIELD = re.compile(r"%(\.?)(\d*)([A-Za-z])")

FreeWords = Annotated[list[str] | None, typer.Argument(metavar="WORDS", help="As the Slurm program takes them.")]


@command(
    app,
    "sbatch",
    section=Section.DAILY,
    free_arguments=True,
    examples=["corral slurm-compat sbatch train.sh", "corral slurm-compat sbatch --gres=gpu:2 -t 2:00:00 train.sh 90"],
)
def sbatch(terminal: Terminal, given: FreeWords = None) -> None:
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
    body = batch.body
    with terminal.client() as client:
        body = _in_reach(body, {queue["name"] for queue in client.queues.list()})
        try:
            if batch.is_test:
                terminal.json(client.jobs.plan({key: value for key, value in body.items() if key != "array"}))
                return
            jobs = _submitted(client, body)
        except ApiProblem as error:
            raise in_their_words(error) from error
        number = jobs[0]["id"].removeprefix("j-")
        terminal.say(number if batch.is_parsable else f"Submitted batch job {number}")
        if batch.waits:
            wait_for_end(terminal, client, jobs)


@command(
    app,
    "squeue",
    section=Section.DAILY,
    free_arguments=True,
    examples=["corral slurm-compat squeue --me", "corral slurm-compat squeue -u ann -t RUNNING -h -o '%i %j %T'"],
)
def squeue(terminal: Terminal, given: FreeWords = None) -> None:
    """The jobs that wait and run, in Slurm's columns."""
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
    ids = {_full_id(text) for text in options.get("jobs", "").split(",") if text}
    shown = [job for job in jobs if (not ids or job["id"] in ids) and options.get("name", job["name"]) == job["name"]]
    if terminal.as_json:
        terminal.json({"items": shown})
        return
    line = options.get("format", QUEUE_FORMAT)
    if not options.get("noheader"):
        terminal.say(_filled(line, _QUEUE_TITLES))
    for job in shown:
        terminal.say(_filled(line, _queue_fields(job, terminal.now())))


@command(
    app,
    "scancel",
    section=Section.DAILY,
    free_arguments=True,
    examples=["corral slurm-compat scancel 42", "corral slurm-compat scancel --me -t PENDING"],
)
def scancel(terminal: Terminal, given: FreeWords = None) -> None:
    """Stop jobs."""
    options = _options(
        "scancel",
        given,
        valued={"-u": "user", "--user": "user", "-n": "name", "--name": "name", "-t": "states", "--state": "states"},
        bare={"--me": "me", "-Q": "quiet", "--quiet": "quiet"},
    )
    ids = [_full_id(text) for word in options.pop("words", "").split() for text in word.split(",")]
    if not ids and not options.keys() & {"user", "me", "name"}:
        raise WrongUsage("scancel: which job? Give its number, --me, --user or --name")
    failed = False
    with terminal.client() as client:
        if not ids:
            user = client.people.me()["name"] if options.get("me") else options.get("user")
            listed = client.jobs.list(states=_states(options.get("states", "")) or _LIVE, user=user, sort="id")
            ids = [job["id"] for job in listed if options.get("name", job["name"]) == job["name"]]
        for job in ids:
            try:
                client.jobs.stop(job)
            except ApiProblem as error:
                failed = True
                terminal.note(f"scancel: {job}: {error.message}")
    if failed:
        raise typer.Exit(1)


@command(
    app,
    "sinfo",
    section=Section.DAILY,
    free_arguments=True,
    examples=["corral slurm-compat sinfo", "corral slurm-compat sinfo -h -o '%P %D %t'"],
)
def sinfo(terminal: Terminal, given: FreeWords = None) -> None:
    """Nodes by queue and state, in Slurm's columns."""
    options = _options(
        "sinfo",
        given,
        valued={"-p": "queue", "--partition": "queue", "-o": "format", "--format": "format"},
        bare={"-h": "noheader", "--noheader": "noheader", "-N": "nodes", "--Node": "nodes", "-l": "long"},
    )
    with terminal.client() as client:
        queues = [queue for queue in client.queues.list() if options.get("queue", queue["name"]) == queue["name"]]
        nodes = list(client.fleet.nodes())
    rows = _info_rows(queues, nodes)
    if terminal.as_json:
        terminal.json({"items": rows})
        return
    line = options.get("format", INFO_FORMAT)
    if not options.get("noheader"):
        terminal.say(_filled(line, _INFO_TITLES))
    for row in rows:
        terminal.say(_filled(line, row))


@command(app, "install", section=Section.DAILY, examples=["corral slurm-compat install ~/corral-bin"])
def install(
    terminal: Terminal, directory: Annotated[Path, typer.Argument(metavar="DIR", help="Made if it is not there.")]
) -> None:
    """Put programs called sbatch, squeue, scancel and sinfo into a directory for the PATH."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        path = directory / name
        if path.exists() and "corral" not in path.read_text(errors="replace"):
            raise WrongUsage(f"{path} is there already and is not corral's: choose another directory")
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m corral.cli.main slurm-compat {name} -- "$@"\n')
        path.chmod(0o755)
    terminal.answer(
        {"directory": str(directory), "programs": list(PROGRAMS)},
        f"Wrote {words.listed(list(PROGRAMS))} to {directory}. Use them: export PATH={directory.absolute()}:$PATH",
    )


# ------------------------------------------------------------------------------------------------ inside


def _input(typed: Sequence[str]) -> str | None:
    """Without a file the script comes on the standard input, unless it is wrapped."""
    is_wrapped = any(word == "--wrap" or word.startswith("--wrap=") for word in typed)
    return None if is_wrapped else sys.stdin.read()


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"sbatch: unable to open file {name}: {error}") from error


def _submitted(client: Client, body: dict[str, Any]) -> list[JobView]:
    """Under the name that the script gives it or, where a job of that name is there already, the next free one."""
    wanted, number = body.get("name"), 1
    if wanted is not None:
        mine = client.jobs.list(user=client.people.me()["name"], name=name_for(wanted, 1))
        taken = {job["array"]["name"] if job["array"] else job["name"] for job in mine}
        while name_for(wanted, number) in taken:
            number += 1
        body = {**body, "name": name_for(wanted, number)}
    return client.jobs.submit_array(body) if "array" in body else [client.jobs.submit(body)]


def _in_reach(body: dict[str, Any], queues: set[str]) -> dict[str, Any]:
    """A partition is the queue of that name or, where there is none, a label of the nodes in it."""
    queue = body.get("queue")
    if queue is None or queue in queues:
        return body
    labels = {**body.get("labels", {}), f"slurm.partition.{queue}": "yes"}
    return {**{key: value for key, value in body.items() if key != "queue"}, "labels": labels}


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
        elif word.startswith("-"):
            raise WrongUsage(f"{program}: corral does not know the option {word}")
        else:
            found["words"] = f"{found.get('words', '')} {word}".strip()
    return found


def _states(text: str) -> list[str]:
    if not text or text.lower() == "all":
        return list(STATES) if text else []
    wanted = {word.upper() for word in text.split(",")}
    return [state for state, names in STATES.items() if wanted & set(names)]


def _full_id(text: str) -> str:
    return f"j-{text}" if text.isdigit() else text


_QUEUE_TITLES = {
    "i": "JOBID", "A": "JOBID", "P": "PARTITION", "j": "NAME", "u": "USER", "t": "ST", "T": "STATE", "M": "TIME",
    "l": "TIME_LIMIT", "D": "NODES", "R": "NODELIST(REASON)", "N": "NODELIST", "b": "TRES_PER_NODE", "Q": "PRIORITY",
    "C": "CPUS", "r": "REASON",
}  # fmt: skip
_INFO_TITLES = {
    "P": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE", "N": "NODELIST",
    "G": "GRES",
}  # fmt: skip


def _queue_fields(job: JobView, now: float) -> dict[str, str]:
    allocation = job["allocation"]
    nodes = ",".join(grant["node"] for grant in allocation["grants"]) if allocation else ""
    short, full = STATES[job["state"]]
    reason = "(Dependency)" if job.get("after") else "(JobHeldUser)" if job["state"] == "created" else "(Resources)"
    started = job["started_at"]
    return {
        "i": job["id"].removeprefix("j-"),
        "A": job["id"].removeprefix("j-"),
        "P": job["queue"],
        "j": job["name"],
        "u": job["user"],
        "t": short,
        "T": full,
        "M": _clock(now - words.moment(started)) if started else "0:00",
        "l": _clock(job["time_limit_seconds"]) if job["time_limit_seconds"] else "UNLIMITED",
        "D": str(job["nodes"]),
        "R": nodes or reason,
        "N": nodes,
        "b": f"gres/gpu:{job['gpus']:g}" if job["gpus"] else "N/A",
        "Q": str(job["priority"]),
        "C": f"{job['cpus']:g}",
        "r": "None" if nodes else reason.strip("()"),
    }


def _info_rows(queues: Iterable[Any], nodes: Sequence[Any]) -> list[dict[str, str]]:
    rows = []
    for queue in queues:
        by_state: dict[str, list[Any]] = defaultdict(list)
        for node in nodes:
            if not node["gpus"] or any(gpu["pool"] == queue["pool"] for gpu in node["gpus"]):
                by_state[_node_state(node)].append(node)
        for state, mine in sorted(by_state.items()):
            rows.append(
                {
                    "P": queue["name"],
                    "a": "up",
                    "l": _clock(queue["max_seconds"]) if queue.get("max_seconds") else "infinite",
                    "D": str(len(mine)),
                    "t": state,
                    "T": state,
                    "N": ",".join(node["id"] for node in mine),
                    "G": f"gpu:{len(mine[0]['gpus'])}" if mine[0]["gpus"] else "(null)",
                }
            )
    return rows


def _node_state(node: Any) -> str:
    if node["state"] != "ready":
        return "down" if node["state"] == "down" else "drain"
    free, total = node["gpus_free"], len(node["gpus"])
    return "idle" if free == total else "alloc" if free == 0 else "mix"


def _clock(seconds: float) -> str:
    days, rest = divmod(max(0, int(seconds)), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    short = f"{hours}:{minutes:02d}:{left:02d}" if hours or days else f"{minutes}:{left:02d}"
    return f"{days}-{hours:02d}:{minutes:02d}:{left:02d}" if days else short


def _filled(line: str, fields: dict[str, str]) -> str:
    def one(found: re.Match[str]) -> str:
        right, width, letter = found[1], int(found[2] or 0), found[3]
        if letter not in fields:
            raise WrongUsage(f"corral does not know the field %{letter}; it knows {' '.join(sorted(fields))}")
        text = fields[letter][:width] if width else fields[letter]
        return text.rjust(width) if right else text.ljust(width)

    return _FIELD.sub(one, line).rstrip()
