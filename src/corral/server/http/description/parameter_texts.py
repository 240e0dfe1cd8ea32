"""The descriptions of API parameters for OpenAPI, where the route itself has none."""

from __future__ import annotations

from typing import Any

#: Parameters of paths that are called `name` or `id`, by the tag of the operation.
NOUNS = {
    "alerts": "rule",
    "catalog": "flavor or package",
    "channels": "channel",
    "groups": "group",
    "maintenance": "maintenance window",
    "pools": "pool",
    "queues": "queue",
    "reports": "report or schedule",
    "reservations": "reservation",
    "sign-in providers": "provider",
    "simulations": "simulation",
    "users": "user or permission group",
}
PATHS = {
    "alert": "The number of the alert.",
    "dataset": "The dataset: NAME for one of the caller's own, OWNER/NAME for another.",
    "delivery": "The id of the delivery.",
    "gpu": "The id of the GPU.",
    "image": "The name of the image.",
    "job": "The job's id, or the name of one of the caller's own jobs.",
    "key": "The id of the key.",
    "kind": "The kind of the asset: model or dataset.",
    "login": "The name of the login.",
    "secret": "The name of the secret.",
    "share": "The group, or the id of the link.",
    "node": "The name of the node.",
    "operation": "The id of the operation.",
    "pack": "The id of the pack.",
    "part": "The number of the part, from 0.",
    "preset": "The name of the preset.",
    "silence": "The id of the silence.",
    "store": "The name of the object store.",
    "tag": "The tag.",
    "target": "The name of the target.",
    "task": "The name of the task.",
    "token_id": "The id of the token.",
    "upload": "The id of the upload.",
    "user": "The name of the user.",
    "version": "The version: its id, a prefix of it, a tag, or `latest`.",
    "volume": "The volume: NAME for one of the caller's own, OWNER/NAME for another.",
    "workbench": "The workbench's id or name.",
}
QUERIES = {
    "action": "Only events of this action.",
    "actor": "Only events of this user.",
    "attempt": "The number of the attempt; the latest one by default.",
    "channel": "Only deliveries to this channel.",
    "follow": "Whether the answer is a stream that follows the log until the job has ended.",
    "format": "The format of the answer.",
    "group": "Only those of this group.",
    "ignore_case": "Whether upper and lower case are the same.",
    "kind": "Only those of this kind.",
    "limit": "The most items of one answer.",
    "mine": "Only the caller's own.",
    "model": "Only GPUs of this model.",
    "name": "Only those whose name contains this text.",
    "owner": "Only those of this owner.",
    "permission_group": "Only members of this permission group.",
    "pool": "Only those of this pool.",
    "queue": "Only those of this queue.",
    "rank": "The number of the instance, from 0.",
    "role": "Only users with this role.",
    "rule": "Only those of this rule.",
    "severity": "Only alerts of this severity.",
    "since": "Only those from this time on (RFC 3339).",
    "sort": "The field by which the answer is ordered; a minus sign before it reverses the order.",
    "state": "Only those in this state.",
    "subject": "Only those about this job, node, GPU or other object.",
    "target": "Only those of this target.",
    "to": "The other version.",
    "type": "Only those of this type.",
    "until": "Only those before this time (RFC 3339).",
    "user": "Only those of this user.",
}
HEADERS = {"Last-Event-ID": "The id of the last event that was received; the stream continues after it."}
_BY_PLACE = {"path": PATHS, "query": QUERIES, "header": HEADERS}


def describe_parameter(parameter: dict[str, Any], tag: str) -> None:
    """Add the description that the table has, unless the route gives one."""
    if parameter.get("description"):
        return
    name = parameter["name"]
    if parameter["in"] == "path" and name in ("name", "id"):
        noun = NOUNS.get(tag, "object")
        parameter["description"] = f"The {'id' if name == 'id' else 'name'} of the {noun}."
    elif name in (texts := _BY_PLACE.get(parameter["in"], {})):
        parameter["description"] = texts[name]
