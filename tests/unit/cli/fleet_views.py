"""A small fleet as the API shows it: two nodes, a hot GPU, a failed one, one that is not read any more."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.unit.client.scripted_server import Answer, Seen, as_json

AT = "2026-05-04T10:00:00Z"
NOW = 1777888803.0  # three seconds later


def reading(**changes: Any) -> dict[str, Any]:
    return {
        "at": AT,
        "stale": False,
        "utilization": 0.5,
        "memory_used_bytes": 12 << 30,
        "memory_total_bytes": 24 << 30,
        "temperature_celsius": 61.0,
        "power_watts": 120.0,
        "energy_joules": 5.0,
        **changes,
    }


def gpu(node: str, index: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"{node}-gpu{index}",
        "index": index,
        "node": node,
        "model": "A10",
        "memory_bytes": 24 << 30,
        "health": "healthy",
        "pool": "default",
        "allocated": 0,
        "jobs": [],
        "reading": reading(),
        **changes,
    }


def node(name: str, gpus: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "cluster": "local",
        "state": "ready",
        "cpus": 64,
        "memory_bytes": 1 << 38,
        "labels": {},
        "load": 0.5,
        "gpus_total": len(gpus),
        "gpus_free": sum(not item["jobs"] for item in gpus),
        "gpus_allocated": sum(bool(item["jobs"]) for item in gpus),
        "gpus": gpus,
        "jobs": [],
        **changes,
    }


def job(job_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": job_id,
        "name": f"train-{job_id}",
        "user": "ann",
        "state": "running",
        "queue": "default",
        "nodes": 1,
        "gpus": 1,
        "started_at": AT,
        "queued_at": AT,
        "allocation": {"model": "A10", "grants": [{"node": "n1", "gpus": ["n1-gpu0"], "gpu_share": 1}]},
        **changes,
    }


HOLDER = {"id": "j-1", "name": "train-j-1", "user": "ann", "gpus": 1, "state": "running"}

NODES = [
    node(
        "n1",
        [
            gpu("n1", 0, jobs=[HOLDER], allocated=1, reading=reading(utilization=0.97, temperature_celsius=91.0)),
            gpu("n1", 1, reading=reading(stale=True, at="2026-05-04T09:58:03Z")),
        ],
    ),
    node(
        "n2",
        [gpu("n2", 0, health="failed", reading=None), gpu("n2", 1, reading=reading(utilization=None))],
        state="down",
    ),
]
RUNNING = [job("j-1")]
WAITING = [job("j-2", state="queued", started_at=None, allocation=None, user="bob", gpus=4)]
OVERVIEW = {
    "nodes": 2,
    "gpus": 4,
    "gpus_free": 3,
    "gpus_allocated": 1,
    "gpus_suspect": 0,
    "gpus_failed": 1,
    "gpus_stale": 2,
    "allocation": 1.25,
    "utilization": 0.24,
    "power_watts": 1240.0,
    "temperature_celsius": 91.0,
    "jobs": {"running": 1, "queued": 3},
    "queued": 3,
    "alerts": {"info": 0, "warning": 0, "critical": 2},
}


def answers(seen: Seen, _: int) -> Answer:
    path = urlsplit(seen.path)
    if path.path.endswith("/overview"):
        return as_json(OVERVIEW)
    if path.path.endswith("/nodes"):
        return as_json({"items": NODES, "next_cursor": None})
    items = WAITING if "state=queued" in path.query else RUNNING
    return as_json({"items": items, "next_cursor": None})
