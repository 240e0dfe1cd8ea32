"""`corral logs`: print, follow, search or save the output of a job."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.jobs.jobs import JobArgument
from corral.cli.jobs.submission.end_notes import Ending, ending_of_log
from corral.cli.terminal.failures import NOT_FOUND, WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client

app = typer.Typer()

ALL = "all"
_NUMBER = re.compile(r"\d{1,9}")


@command(
    app,
    "logs",
    section=Section.DAILY,
    examples=[
        "corral logs j-12",
        "corral logs -f resnet",
        "corral logs --tail 100 --attempt 1 --rank 3 j-12",
        "corral logs j-12 --search error --ignore-case --attempt all --rank all",
        "corral logs j-12 --rank all --download j-12.tar.gz",
    ],
)
def logs(
    terminal: Terminal,
    job: JobArgument,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new output until the job ends; exit with its exit code.")
    ] = False,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="Begin with the last N lines.")] = None,
    attempt: Annotated[str | None, typer.Option(metavar="N|all", help="This attempt; default: the latest.")] = None,
    rank: Annotated[
        str | None, typer.Option(metavar="N|all", help="This instance of a gang; default: the first.")
    ] = None,
    all_ranks: Annotated[bool, typer.Option("--all-ranks", help="The same as --rank all.")] = False,
    search: Annotated[
        str | None, typer.Option("-s", "--search", metavar="TEXT", help="Only lines that contain this text.")
    ] = None,
    regex: Annotated[bool, typer.Option("-E", "--regex", help="With --search: TEXT is a regular expression.")] = False,
    ignore_case: Annotated[bool, typer.Option("-i", "--ignore-case", help="With --search: case-insensitive.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="With --search: at most N lines.")] = 1000,
    download: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save it in a file; several attempts or ranks as a .tar.gz.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print control characters unchanged at a terminal, too, such as colours.")
    ] = False,
) -> None:
    """Print a job's output, search it on the server, or save it.

    -f continues over restarts of the server and of the job, and exits with the job's exit code. A search that finds
    nothing exits with 4. At a terminal, control characters are shown as symbols; pipes and files receive the bytes
    unchanged.
    """
    rank = ALL if all_ranks else rank
    for flag, value, least in (("--attempt", attempt, 1), ("--rank", rank, 0)):
        if value is not None and value != ALL and not (_NUMBER.fullmatch(value) and int(value) >= least):
            raise WrongUsage(f"{flag}: {value!r} is neither a number from {least} on nor all")
    if (search is not None) + follow + (download is not None) > 1:
        raise WrongUsage("--follow, --search and --download exclude each other")
    if search is None and (regex or ignore_case):
        raise WrongUsage("--regex and --ignore-case go with --search")
    if follow and ALL in (attempt, rank):
        raise WrongUsage("--follow goes with one attempt and one rank")
    if follow:
        _follow(terminal, job, _number(attempt), _number(rank) or 0, tail, raw)
        return
    with terminal.client() as client:
        if search is not None:
            _search(terminal, client, job, search, attempt, rank, regex, ignore_case, limit, raw)
        elif download is not None:
            _download(terminal, client, job, download, attempt, rank)
        else:
            _print(terminal, client, job, attempt, rank, tail, raw)


def _number(value: str | None) -> int | None:
    return None if value is None else int(value)


def _print(
    terminal: Terminal, client: Client, job: str, attempt: str | None, rank: str | None, tail: int | None, raw: bool
) -> None:
    if ALL in (attempt, rank):
        _print_all(terminal, client, job, attempt, rank, tail, raw)
        return
    text = client.jobs.log(job, attempt=_number(attempt), rank=_number(rank) or 0, tail=tail)
    if terminal.as_json:
        terminal.json({"job": job, "attempt": _number(attempt), "rank": _number(rank) or 0, "text": text})
    elif text:
        _write(terminal, text, raw)
    elif client.jobs.get(job)["ended_at"] is not None:
        terminal.note(f"The job has no output. How it ended: corral show {job}")
    else:
        terminal.note(f"No output yet. Wait for it: corral logs -f {job}. The job's state: corral show {job}")


def _print_all(
    terminal: Terminal, client: Client, job: str, attempt: str | None, rank: str | None, tail: int | None, raw: bool
) -> None:
    """Several logs in order, each under a heading."""
    view = client.jobs.get(job)
    latest = [view["attempt"]] if view["attempt"] else []
    attempts = range(1, view["attempt"] + 1) if attempt == ALL else latest if attempt is None else [int(attempt)]
    ranks = range(view["nodes"]) if rank == ALL else [_number(rank) or 0]
    items = []
    for number in attempts:
        for place in ranks:
            text = client.jobs.log(job, attempt=number, rank=place, tail=tail)
            items.append({"attempt": number, "rank": place, "text": text})
            if not terminal.as_json:
                terminal.say(f"==> attempt {number}, rank {place} <==")
                _write(terminal, text, raw)
    if terminal.as_json:
        terminal.json({"job": job, "items": items})


def _write(terminal: Terminal, text: str, raw: bool) -> None:
    whole = text if text.endswith("\n") or not text else text + "\n"
    if raw:
        sys.stdout.write(whole)
    else:
        terminal.raw(whole)


def _search(
    terminal: Terminal,
    client: Client,
    job: str,
    text: str,
    attempt: str | None,
    rank: str | None,
    regex: bool,
    ignore_case: bool,
    limit: int,
    raw: bool,
) -> None:
    """Prints matching lines as they are found, with line numbers; with attempt and rank if there are several logs."""
    found = client.jobs.search_log(
        job, text, attempt=attempt, rank=rank, regex=regex, ignore_case=ignore_case, limit=limit
    )
    items = []
    for match in found:
        items.append(match)
        if not terminal.as_json:
            place = f"{match['attempt']}:{match['rank']}:" if ALL in (attempt, rank) else ""
            _write(terminal, f"{place}{match['line']}:{match['text']}", raw)
    if terminal.as_json:
        terminal.json({"items": items})
    elif len(items) == limit:
        terminal.note(f"-- the first {limit}; more with --limit")
    if not items:
        terminal.note(f"No line has {text!r}." if not regex else f"No line matches {text!r}.")
        raise typer.Exit(NOT_FOUND)


def _download(
    terminal: Terminal, client: Client, job: str, target: Path, attempt: str | None, rank: str | None
) -> None:
    from corral.cli.jobs.files import keep, saving

    with saving(target.parent) as draft:
        fetched = client.files.fetch_logs(job, draft, attempt=attempt, rank=rank)
        keep(draft, target)
    saved = {"job": job, "file": str(target), "size_bytes": fetched.size_bytes, "is_archive": fetched.is_archive}
    terminal.answer(saved, f"Saved {target} ({fetched.size_bytes} bytes)")


def _follow(terminal: Terminal, job: str, attempt: int | None, rank: int, tail: int | None, raw: bool) -> None:
    """Prints the log as it is written, and exits with the job's exit code."""
    from corral.client.jobs.jobs import exit_status

    with terminal.client() as client:
        end = print_to_end(terminal, client, job, attempt=attempt, rank=rank, tail=tail, raw=raw)
    raise typer.Exit(exit_status(end.state, end.exit_code))


def print_to_end(
    terminal: Terminal,
    client: Client,
    job: str,
    *,
    attempt: int | None = None,
    rank: int = 0,
    tail: int | None = None,
    raw: bool = False,
) -> Ending:
    """Prints the log as it is written, until the job has ended. As JSON, every part is one line, and the last line is
    the end of the job with its reason."""
    from corral.client.http.streams import LogText, Patience

    def lost(error: ClientError) -> None:
        terminal.note(f"{error.message} Still trying; the job is not affected.")

    for piece in client.jobs.follow_log(job, attempt=attempt, rank=rank, tail=tail, patience=Patience(on_lost=lost)):
        if not isinstance(piece, LogText):
            ending = ending_of_log(client, job, attempt, piece)
            if terminal.as_json:
                terminal.json_line(ending.document)
            else:
                for line in ending.lines:
                    terminal.note(line)
            return ending
        if terminal.as_json:
            terminal.json_line({"text": piece.text})
        elif raw:
            sys.stdout.write(piece.text)
            sys.stdout.flush()
        else:
            terminal.raw(piece.text)
    raise AssertionError("a log that is followed ends with the end of its job")
