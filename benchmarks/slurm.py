"""What corral costs on a Slurm cluster: the same no-op jobs by plain `sbatch` and through corral, on one real Slurm.

All take turns in the same run, as whatever else the machine does in the meantime must hit them alike. corral asks Slurm
by its programs, and by slurmrestd where that is installed. Many jobs are run twice: with everything on the same cores,
where each of corral's milliseconds is one that Slurm does not have; and with Slurm and its jobs on one half of them and
all who ask it on the other, as on a cluster, where these are different machines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from tests.servers.slurm import HOW_TO_INSTALL, SlurmCluster, has_rest, is_installed

from benchmarks.jobs import Announcements
from benchmarks.live import LiveServer, live_server, wait_until_ended
from benchmarks.tables import Row, median, percentile, print_table, spread

NO_OP = {"command": ["/bin/true"], "gpus": 1}
REST_SECONDS = 30.0
#: for a server that stood still to catch up
SETTLE_SECONDS = 3.0
#: jobs in one request: the first begin while others are still being submitted, as in a loop of sbatch
BATCH = 50
#: jobs before all others, which are not measured
WARM_UP = 5
TOGETHER, APART = "all on the same cores", "Slurm and who asks it on cores of their own"
#: what programs ask of the controller, as it counts them; nodes and the accounting have others
_QUERY = re.compile(r"(REQUEST_\w*INFO\w*|REQUEST_SHOW\w*|REQUEST_PING)\s*\(\s*\d+\)\s+count:(\d+)")


@contextlib.contextmanager
def cluster() -> Iterator[SlurmCluster]:
    with tempfile.TemporaryDirectory(prefix="corral-slurm-", dir="/tmp") as directory:
        started = SlurmCluster(directory=Path(directory))
        try:
            started.start()
            yield started
        finally:
            started.stop()


def plain_rate(slurm: SlurmCluster, count: int) -> float:
    """Jobs a second by a loop of a shell, until the last of them is over."""
    loop = f"for i in $(seq {count}); do sbatch -Q -o /dev/null --gres=gpu:1 --wrap /bin/true; done"
    begun = time.perf_counter()
    subprocess.run(["bash", "-c", loop], env=slurm.env, check=True, stdout=subprocess.DEVNULL)
    while slurm.run("squeue", "-h", "-o", "%i").strip():
        time.sleep(0.1)
    return count / (time.perf_counter() - begun)


def corral_rate(client: httpx.Client, count: int, done: int) -> float:
    """Jobs a second, submitted some at a time as fast as corral takes them, until it has the end of each."""
    begun = time.perf_counter()
    for first in range(0, count, BATCH):
        client.post("/jobs:batch", json={"jobs": [NO_OP] * min(BATCH, count - first)}).raise_for_status()
    wait_until_ended(client, done + count, pause=0.1, fastest=100)
    return count / (time.perf_counter() - begun)


@contextlib.contextmanager
def cores_apart(slurm: SlurmCluster, servers: Sequence[LiveServer]) -> Iterator[None]:
    """slurmrestd is one of those who ask, as sbatch is."""
    everywhere = os.sched_getaffinity(0)
    ordered = sorted(everywhere)
    theirs, ours = set(ordered[: len(ordered) // 2]), set(ordered[len(ordered) // 2 :])
    asking = [os.getpid(), *(server.process.pid for server in servers)]
    daemons = slurm.process_ids()
    asking += [daemons.pop("slurmrestd")] if "slurmrestd" in daemons else []
    try:
        _put(daemons.values(), theirs)
        _put(asking, ours)
        yield
    finally:
        _put([*daemons.values(), *asking], everywhere)


def _put(processes: Iterable[int], cores: set[int]) -> None:
    """With what they start from now on."""
    for process in processes:
        for thread in os.listdir(f"/proc/{process}/task"):
            # It may be gone in the meantime.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cores)


def _begun(path: Path, since: float) -> float:
    """Milliseconds until the job's own first line, which it leaves in a file."""
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} does not come")
        time.sleep(0.01)
    return (float(path.read_text()) - since) * 1000


def plain_latency(slurm: SlurmCluster, mark: Path) -> float:
    since = time.time()
    slurm.run("sbatch", "-Q", "-o", "/dev/null", "--gres=gpu:1", "--wrap", f"date +%s.%N >{mark}")
    return _begun(mark, since)


def corral_latency(client: httpx.Client, heard: Announcements, mark: Path) -> tuple[float, float]:
    """Until the job's first line, and until corral says that it runs."""
    since, begun = time.time(), time.perf_counter()
    body = {"command": ["sh", "-c", f"date +%s.%N >{mark}"], "gpus": 1}
    job = client.post("/jobs", json=body).raise_for_status().json()
    reported = (heard.wait(job["id"], "job.running") - begun) * 1000
    heard.wait(job["id"], "job.completed")
    return _begun(mark, since), reported


def queries_at_rest(slurm: SlurmCluster) -> float:
    """A second, as the controller counts them."""
    first = _queries(slurm)
    time.sleep(REST_SECONDS)
    return (_queries(slurm) - first) / REST_SECONDS


def _queries(slurm: SlurmCluster) -> int:
    by_kind = slurm.run("sdiag").partition("by message type")[2].partition("by user")[0]
    return sum(int(count) for kind, count in _QUERY.findall(by_kind) if kind != "REQUEST_STATS_INFO")


@dataclass(kw_only=True)
class Corral:
    """A server over the same Slurm, and what was measured with it."""

    way: str
    server: LiveServer
    client: httpx.Client
    at_rest: float = 0.0
    done: int = 0
    begun_ms: list[float] = field(default_factory=list)
    reported_ms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)


def corrals(slurm: SlurmCluster, parts: contextlib.ExitStack, *, at_rest: bool = False) -> list[Corral]:
    """Each is started alone, and may be left at rest for a while: only then are the controller's queries its own."""
    ways = {"its programs": f"{{conf: {slurm.conf}}}"}
    if has_rest():
        token = slurm.directory / "token"
        token.touch(mode=0o600)
        token.write_text(slurm.token())
        ways["slurmrestd"] = f"{{conf: {slurm.conf}, rest: {{url: {slurm.start_rest()!r}, token_file: {token}}}}}"
    found, before = list[Corral](), 0.0
    for way, options in ways.items():
        settings = f"cluster: [{{name: hpc, engine: slurm, slurm: {options}}}]\n"
        server = parts.enter_context(live_server(virtual_nodes=None, settings=settings, CORRAL_ALLOW_ROOT="true"))
        one = Corral(way=way, server=server, client=parts.enter_context(server.client()))
        if at_rest:
            queries = queries_at_rest(slurm)
            one.at_rest, before = queries - before, queries
        found.append(one)
    return found


def measure_latencies(slurm: SlurmCluster, all_of_them: list[Corral], count: int) -> list[float]:
    """Returns those of plain Slurm. It looks at its queue once a second: all are spread over that alike."""
    plain = list[float]()
    heard = [Announcements(one.server) for one in all_of_them]
    for number in range(count):
        part = (number + 0.5) / count
        _wait_for(part)
        plain.append(plain_latency(slurm, all_of_them[0].server.home / f"plain-{number}"))
        for one, events in zip(all_of_them, heard, strict=True):
            _wait_for(part)
            begun, reported = corral_latency(one.client, events, one.server.home / f"ours-{number}")
            one.begun_ms.append(begun)
            one.reported_ms.append(reported)
            one.done += 1
    return plain


def _wait_for(part: float) -> None:
    """Until that part of a second has passed."""
    time.sleep((part - time.time()) % 1.0)


@contextlib.contextmanager
def alone(chosen: Corral | None, all_of_them: Sequence[Corral]) -> Iterator[None]:
    """The others stand still: what is measured has the machine for itself."""
    others = [one.server.process for one in all_of_them if one is not chosen]
    for process in others:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in others:
            process.send_signal(signal.SIGCONT)


def measure_rates(slurm: SlurmCluster, all_of_them: list[Corral], jobs: int, rounds: int) -> list[float]:
    """Returns those of plain Slurm. The more jobs Slurm remembers, the slower it is: each is first once."""
    plain = list[float]()
    turns: list[Corral | None] = [None, *all_of_them]
    for one in all_of_them:
        corral_rate(one.client, WARM_UP, one.done)
        one.done += WARM_UP
    for number in range(rounds):
        first = number % len(turns)
        for one in (*turns[first:], *turns[:first]):
            with alone(one, all_of_them):
                if one is None:
                    plain.append(plain_rate(slurm, jobs))
                    continue
                time.sleep(SETTLE_SECONDS)
                one.rates.append(corral_rate(one.client, jobs, one.done))
                one.done += jobs
    return plain


def plain_row(jobs: int, where: str, rates: list[float]) -> Row:
    return Row(
        what=f"{jobs} no-op jobs by a loop of plain sbatch, {where}",
        value=f"{median(rates):.1f} jobs/s",
        spread=spread(rates, "jobs/s"),
    )


def rate_rows(jobs: int, where: str, plain: list[float], rates: list[float]) -> Iterator[Row]:
    overheads = [(theirs / mine - 1) * 100 for theirs, mine in zip(plain, rates, strict=True)]
    yield Row(
        what=f"{jobs} no-op jobs, {where}",
        value=f"{median(rates):.1f} jobs/s",
        spread=spread(rates, "jobs/s"),
        ratio=f"{median(rates) / median(plain):.2f} × plain sbatch",
    )
    yield Row(
        what=f"overhead per job, {where}",
        value=f"{median(overheads):+.0f} %",
        spread=spread(overheads, "%", 0),
        target="≤ 15 %",
    )


def single_rows(one: Corral, plain_ms: list[float]) -> Iterator[Row]:
    yield Row(
        what="submit → first line of the job",
        value=f"p50 {median(one.begun_ms):.0f} ms, p90 {percentile(one.begun_ms, 90):.0f} ms",
        spread=spread(one.begun_ms, "ms", 0),
        ratio=f"{median(one.begun_ms) / median(plain_ms):.2f} × plain sbatch",
    )
    yield Row(
        what="submit → corral says that it runs",
        value=f"p50 {median(one.reported_ms):.0f} ms, p90 {percentile(one.reported_ms, 90):.0f} ms",
        spread=spread(one.reported_ms, "ms", 0),
    )
    yield Row(what="controller queries at rest", value=f"{one.at_rest:.2f} /s", target="≤ 1 /s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slurm")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", type=int, default=20, help="single jobs, for the time until they run")
    given, _ = parser.parse_known_args()
    if not is_installed():
        print(HOW_TO_INSTALL)
        return
    # Clusters of their own: who reads a server's events, as for single jobs, costs it something.
    with contextlib.ExitStack() as parts:
        slurm = parts.enter_context(cluster())
        single = corrals(slurm, parts, at_rest=True)
        plain_ms = measure_latencies(slurm, single, given.single)
    with contextlib.ExitStack() as parts:
        slurm = parts.enter_context(cluster())
        together = corrals(slurm, parts)
        plain = measure_rates(slurm, together, given.jobs, given.rounds)
    with contextlib.ExitStack() as parts:
        slurm = parts.enter_context(cluster())
        apart = corrals(slurm, parts)
        parts.enter_context(cores_apart(slurm, [one.server for one in apart]))
        plain_apart = measure_rates(slurm, apart, given.jobs, given.rounds)
    rows = [
        plain_row(given.jobs, TOGETHER, plain),
        plain_row(given.jobs, APART, plain_apart),
        Row(
            what="sbatch → first line of the job, plain",
            value=f"p50 {median(plain_ms):.0f} ms, p90 {percentile(plain_ms, 90):.0f} ms",
            spread=spread(plain_ms, "ms", 0),
        ),
    ]
    print_table("Jobs on Slurm, plain", rows)
    for lone, beside, away in zip(single, together, apart, strict=True):
        rows = [
            *rate_rows(given.jobs, TOGETHER, plain, beside.rates),
            *rate_rows(given.jobs, APART, plain_apart, away.rates),
            *single_rows(lone, plain_ms),
        ]
        print_table(f"Jobs on Slurm, through corral by {lone.way}", rows)


if __name__ == "__main__":
    main()
