"""What corral costs on a Slurm cluster: the same no-op jobs by plain `sbatch` and through corral, on one real Slurm.

Both take turns in the same run, as whatever else the machine does in the meantime must hit both alike.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from tests.servers.slurm import HOW_TO_INSTALL, SlurmCluster, is_installed

from benchmarks.jobs import Announcements
from benchmarks.live import LiveServer, live_server, wait_until_ended
from benchmarks.tables import Row, median, percentile, print_table, spread

NO_OP = {"command": ["/bin/true"], "gpus": 1}
REST_SECONDS = 30.0
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
    """Jobs a second submitted at once, until corral has the end of each."""
    begun = time.perf_counter()
    client.post("/jobs:batch", json={"jobs": [NO_OP] * count}).raise_for_status()
    wait_until_ended(client, done + count, pause=0.25)
    return count / (time.perf_counter() - begun)


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
    told = (heard.wait(job["id"], "job.running") - begun) * 1000
    heard.wait(job["id"], "job.completed")
    return _begun(mark, since), told


def queries_at_rest(slurm: SlurmCluster) -> float:
    """A second, as the controller counts them."""
    first = _queries(slurm)
    time.sleep(REST_SECONDS)
    return (_queries(slurm) - first) / REST_SECONDS


def _queries(slurm: SlurmCluster) -> int:
    by_kind = slurm.run("sdiag").partition("by message type")[2].partition("by user")[0]
    return sum(int(count) for kind, count in _QUERY.findall(by_kind) if kind != "REQUEST_STATS_INFO")


def latencies(slurm: SlurmCluster, server: LiveServer, client: httpx.Client, count: int) -> list[list[float]]:
    """Of plain Slurm, and of corral twice: begun, and told."""
    heard = Announcements(server)
    plain, begun, told = list[float](), list[float](), list[float]()
    for number in range(count):
        plain.append(plain_latency(slurm, server.home / f"plain-{number}"))
        ours, ours_told = corral_latency(client, heard, server.home / f"ours-{number}")
        begun.append(ours)
        told.append(ours_told)
    return [plain, begun, told]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slurm")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", type=int, default=15, help="single jobs, for the time until they run")
    given, _ = parser.parse_known_args()
    if not is_installed():
        print(HOW_TO_INSTALL)
        return
    with contextlib.ExitStack() as parts:
        slurm = parts.enter_context(cluster())
        settings = f"cluster: [{{name: hpc, engine: slurm, slurm: {{conf: {slurm.conf}}}}}]\n"
        server = parts.enter_context(live_server(virtual_nodes=None, settings=settings, CORRAL_ALLOW_ROOT="true"))
        client = parts.enter_context(server.client())
        at_rest = queries_at_rest(slurm)
        plain_waits, waits, told = latencies(slurm, server, client, given.single)
        plain, ours, done = list[float](), list[float](), given.single
        for _ in range(given.rounds):
            plain.append(plain_rate(slurm, given.jobs))
            ours.append(corral_rate(client, given.jobs, done))
            done += given.jobs
    overheads = [(theirs / mine - 1) * 100 for theirs, mine in zip(plain, ours, strict=True)]
    ratio = median(waits) / median(plain_waits)
    rows = [
        Row(
            what=f"{given.jobs} no-op jobs by a loop of plain sbatch",
            value=f"{median(plain):.1f} jobs/s",
            spread=spread(plain, "jobs/s"),
        ),
        Row(
            what=f"{given.jobs} no-op jobs through corral, same Slurm",
            value=f"{median(ours):.1f} jobs/s",
            spread=spread(ours, "jobs/s"),
            ratio=f"{median(ours) / median(plain):.2f} × plain sbatch",
        ),
        Row(
            what="overhead per job",
            value=f"{median(overheads):+.0f} %",
            spread=spread(overheads, "%", 0),
            target="≤ 15 %",
        ),
        Row(
            what="sbatch → first line of the job, plain",
            value=f"p50 {median(plain_waits):.0f} ms, p90 {percentile(plain_waits, 90):.0f} ms",
            spread=spread(plain_waits, "ms", 0),
        ),
        Row(
            what="submit → first line of the job, through corral",
            value=f"p50 {median(waits):.0f} ms, p90 {percentile(waits, 90):.0f} ms",
            spread=spread(waits, "ms", 0),
            ratio=f"{ratio:.2f} × plain sbatch",
        ),
        Row(
            what="submit → corral says that it runs",
            value=f"p50 {median(told):.0f} ms, p90 {percentile(told, 90):.0f} ms",
            spread=spread(told, "ms", 0),
        ),
        Row(what="controller queries at rest", value=f"{at_rest:.2f} /s", target="≤ 1 /s"),
    ]
    print_table("Jobs on Slurm", rows)


if __name__ == "__main__":
    main()
