"""From the request to the process and back, through API, store, scheduler, engine and real processes.

The peer is the bare operating system: starting the same no-op program and waiting for it, one after the other.
"""

from __future__ import annotations

import json
import resource
import subprocess
import threading
import time
from dataclasses import dataclass

import httpx

from benchmarks.live import LiveServer, live_server, wait_until_ended
from benchmarks.tables import Row, median, percentile, print_table, spread

NO_OP = {"command": ["/bin/true"], "gpus": 1}
RUNS = 3
LATENCIES = 200
JOBS_PER_RUN = 500
BATCH_SIZE = 500
BATCHES = 4


class Announcements:
    """When the server's event stream said what, seen by one reader."""

    def __init__(self, server: LiveServer) -> None:
        self.seen: dict[tuple[str, str], float] = {}
        self._arrived = threading.Condition()
        self._client = server.client()
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self, job_id: str, action: str) -> float:
        with self._arrived:
            if not self._arrived.wait_for(lambda: (job_id, action) in self.seen, timeout=30):
                raise TimeoutError(f"{job_id}: no {action}")
        return self.seen[job_id, action]

    def _read(self) -> None:
        with self._client.stream("GET", "/stream", timeout=None) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:") and '"action"' in line:
                    event = json.loads(line[5:])
                    with self._arrived:
                        self.seen.setdefault((event["subject"], event["action"]), time.perf_counter())
                        self._arrived.notify_all()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """No-op jobs a second, and CPU milliseconds for each of them."""

    jobs: float
    server_cpu: float
    #: of spawner, supervisors and the jobs' own processes; None where control groups cannot be used
    engine_cpu: float | None


def latencies(server: LiveServer, count: int) -> list[float]:
    """Milliseconds from sending the request to the event that the processes run."""
    announcements = Announcements(server)
    result = []
    with server.client() as client:
        for number in range(count + 5):
            begun = time.perf_counter()
            job = client.post("/jobs", json=NO_OP).raise_for_status().json()
            running = announcements.wait(job["id"], "job.running")
            announcements.wait(job["id"], "job.completed")
            if number >= 5:  # the first ones warm caches up
                result.append((running - begun) * 1000)
    return result


class Throughput:
    """Counts the jobs that have completed, so that each measurement knows when its own have ended."""

    def __init__(self, server: LiveServer, client: httpx.Client, done: int) -> None:
        self._server = server
        self._client = client
        self._done = done

    def by_requests(self, count: int) -> Rate:
        """Each job is submitted by a request of its own, one after the other."""
        return self._measured(count, [("/jobs", NO_OP)] * count)

    def by_array(self, count: int) -> Rate:
        """All jobs are submitted by one request, as the members of an array."""
        body = {**NO_OP, "name": f"bench-{self._done}", "array": f"1-{count}"}
        return self._measured(count, [("/jobs:array", body)])

    def _measured(self, count: int, requests: list[tuple[str, dict[str, object]]]) -> Rate:
        server, whole = self._server.cpu_seconds(), self._server.cpu_seconds_with_children()
        begun = time.perf_counter()
        for path, body in requests:
            self._client.post(path, json=body).raise_for_status()
        self._done += count
        wait_until_ended(self._client, self._done)
        elapsed = time.perf_counter() - begun
        used = self._server.cpu_seconds() - server
        with_children = self._server.cpu_seconds_with_children()
        engine = None if whole is None or with_children is None else with_children - whole - used
        return Rate(
            jobs=count / elapsed,
            server_cpu=used / count * 1000,
            engine_cpu=None if engine is None else engine / count * 1000,
        )


def batch_rate(client: httpx.Client, size: int, batches: int) -> float:
    """Submits a second through the batch endpoint. The jobs are held, so that running them does not count."""
    body = {"jobs": [{**NO_OP, "hold": True} for _ in range(size)]}
    begun = time.perf_counter()
    for _ in range(batches):
        client.post("/jobs:batch", json=body).raise_for_status()
    return size * batches / (time.perf_counter() - begun)


def bare_processes(count: int = 200) -> tuple[float, float]:
    """Processes a second, one after the other, and the CPU milliseconds of each process itself."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    for _ in range(count):
        subprocess.run(["/bin/true"], check=True)
    elapsed = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return count / elapsed, used / count * 1000


def main() -> None:
    with live_server() as server, server.client() as client:
        waits = latencies(server, LATENCIES)
        throughput = Throughput(server, client, done=LATENCIES + 5)
        single = [throughput.by_requests(JOBS_PER_RUN) for _ in range(RUNS)]
        bare, bare_cpu = bare_processes()
        array = [throughput.by_array(JOBS_PER_RUN) for _ in range(RUNS)]
        batches = [batch_rate(client, BATCH_SIZE, BATCHES) for _ in range(RUNS)]
    rows = [
        Row(
            what="submit → running, no-op job through the API",
            value=f"p50 {median(waits):.1f} ms, p99 {percentile(waits, 99):.1f} ms",
            spread=spread(waits, "ms"),
            target="p50 ≤ 12 ms, p99 ≤ 40 ms",
        ),
        _rate_row("no-op jobs end to end, one request each", single, "≥ 300 jobs/s", bare),
        _rate_row("no-op jobs end to end, one array", array, "≥ 500 jobs/s", bare),
        *_cpu_rows("one request each", single, bare_cpu),
        *_cpu_rows("one array", array, bare_cpu),
        Row(
            what="submits through the batch endpoint",
            value=f"{median(batches):,.0f} jobs/s",
            spread=spread(batches, "jobs/s", 0),
            target="≥ 10,000 jobs/s",
        ),
    ]
    print_table("Jobs through the live server", rows)


def _rate_row(what: str, rates: list[Rate], target: str, bare: float) -> Row:
    jobs = [rate.jobs for rate in rates]
    ratio = f"{median(jobs) / bare:.2f} × bare processes one by one ({bare:.0f}/s)"
    return Row(
        what=what, value=f"{median(jobs):.0f} jobs/s", spread=spread(jobs, "jobs/s", 0), target=target, ratio=ratio
    )


def _cpu_rows(what: str, rates: list[Rate], bare_cpu: float) -> list[Row]:
    server = [rate.server_cpu for rate in rates]
    engine = [rate.engine_cpu for rate in rates if rate.engine_cpu is not None]
    rows = [
        Row(
            what=f"server CPU per job, {what}",
            value=f"{median(server):.2f} ms",
            spread=spread(server, "ms", 2),
            target="≤ 2.5 ms",
        )
    ]
    if engine:
        row = Row(
            what=f"engine CPU per job, {what}",
            value=f"{median(engine):.2f} ms",
            spread=spread(engine, "ms", 2),
            target="≤ 2 ms",
            ratio=f"of which the job's own process uses about {bare_cpu:.2f} ms",
        )
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
