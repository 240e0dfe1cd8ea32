"""From the request to the process and back, through API, store, scheduler, engine and real processes.

The peer is the bare operating system: starting the same no-op program and waiting for it, one after the other.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time

import httpx

from benchmarks.live import LiveServer, live_server, wait_until_ended
from benchmarks.tables import Row, median, percentile, print_table, spread

NO_OP = {"command": ["/bin/true"], "gpus": 1}
RUNS = 3


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


def latencies(server: LiveServer, count: int) -> list[float]:
    """Milliseconds from sending the request to hearing that the processes run."""
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


def throughput(server: LiveServer, client: httpx.Client, count: int, done: int) -> tuple[float, float]:
    """No-op jobs a second, each submitted by a request of its own, and the server's CPU per job in milliseconds."""
    cpu = server.cpu_seconds()
    begun = time.perf_counter()
    for _ in range(count):
        client.post("/jobs", json=NO_OP).raise_for_status()
    wait_until_ended(client, done + count)
    elapsed = time.perf_counter() - begun
    return count / elapsed, (server.cpu_seconds() - cpu) / count * 1000


def batch_rate(client: httpx.Client, size: int, batches: int) -> float:
    """Submits a second through the batch endpoint. The jobs are held, so that running them does not count."""
    body = {"jobs": [{**NO_OP, "hold": True} for _ in range(size)]}
    begun = time.perf_counter()
    for _ in range(batches):
        client.post("/jobs:batch", json=body).raise_for_status()
    return size * batches / (time.perf_counter() - begun)


def bare_rate(count: int = 200) -> float:
    begun = time.perf_counter()
    for _ in range(count):
        subprocess.run(["/bin/true"], check=True)
    return count / (time.perf_counter() - begun)


def main() -> None:
    with live_server() as server, server.client() as client:
        waits = latencies(server, 200)
        done = 205
        rates, costs = [], []
        for _ in range(RUNS):
            rate, cost = throughput(server, client, 500, done)
            done += 500
            rates.append(rate)
            costs.append(cost)
        bare = bare_rate()
        batches = [batch_rate(client, 500, 4) for _ in range(RUNS)]
    rows = [
        Row(
            what="submit → running, no-op job through the API",
            value=f"p50 {median(waits):.1f} ms, p99 {percentile(waits, 99):.1f} ms",
            spread=spread(waits, "ms"),
            target="p50 ≤ 60 ms, p99 ≤ 250 ms",
        ),
        Row(
            what="no-op jobs end to end, one request each",
            value=f"{median(rates):.0f} jobs/s",
            spread=spread(rates, "jobs/s", 0),
            target="≥ 100 jobs/s",
            ratio=f"{median(rates) / bare:.2f} × bare processes one by one ({bare:.0f}/s)",
        ),
        Row(what="server CPU for each of them", value=f"{median(costs):.2f} ms", spread=spread(costs, "ms", 2)),
        Row(
            what="submits through the batch endpoint",
            value=f"{median(batches):,.0f} jobs/s",
            spread=spread(batches, "jobs/s", 0),
            target="≥ 1,000 jobs/s",
        ),
    ]
    print_table("Jobs through the live server", rows)


if __name__ == "__main__":
    main()
