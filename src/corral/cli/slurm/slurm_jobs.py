"""Words of Slurm that only the server can translate: partitions, types of GPUs, and numbers of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corral.cli.slurm.sbatch_options import Batch, models_for
from corral.cli.terminal.failures import WrongUsage

if TYPE_CHECKING:
    from corral.client.client import Client


def resolved(client: Client, batch: Batch, body: dict[str, Any]) -> dict[str, Any]:
    """The request with the queue, GPU models and jobs that the words of the batch script mean."""
    if "queue" in body:
        body = _with_partition(body, {queue["name"] for queue in client.queues.list()})
    if batch.gpu_type:
        types = (cluster.get("gpu_types", {}) for cluster in client.fleet.clusters())
        body = {**body, "model": models_for(batch.gpu_type, types)}
    if "after" in body:
        body = {**body, "after": [job for text in body["after"] for job in jobs_of_number(client, text)]}
    return body


def jobs_of_number(client: Client, text: str) -> list[str]:
    """The jobs of a Slurm number. The number of an array is that of its first job and means all; `12_3` means one."""
    number, underscore, index = text.removeprefix("j-").partition("_")
    if not number.isdigit():
        return [text]
    job = client.jobs.get(f"j-{number}")
    if not job["array"]:
        return [job["id"]]
    members = list(client.jobs.list(array=job["array"]["name"], user=job["user"], sort="id"))
    if underscore:
        members = [member for member in members if member["array"] and str(member["array"]["index"]) == index]
        if not members:
            raise WrongUsage(f"array {number} has no job of index {index}")
        return [members[0]["id"]]
    return [member["id"] for member in members] if members[0]["id"] == job["id"] else [job["id"]]


def _with_partition(body: dict[str, Any], queues: set[str]) -> dict[str, Any]:
    """A partition means the queue of that name or, without such a queue, a label of nodes."""
    queue = body.get("queue")
    if queue is None or queue in queues:
        return body
    labels = {**body.get("labels", {}), f"slurm.partition.{queue}": "yes"}
    return {**{key: value for key, value in body.items() if key != "queue"}, "labels": labels}
