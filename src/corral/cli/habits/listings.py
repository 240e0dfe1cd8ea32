"""The command that lists the kind of thing that a message says is missing.

A message of the server begins with `there is no NOUN`: the noun decides, not the command that was typed. `corral cp`
can miss a volume, and `corral quota set` a user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Lists that only operators may see are marked, so that a scientist is not sent to a command that refuses.
_OPERATORS = "Operators list them with"

_COMMANDS: Mapping[str, str] = {
    "alert": "corral alert ls --all",
    "app": "corral app known",
    "array": "corral jobs -a",
    "cluster": "corral cluster ls",
    "dataset target": "corral target ls",
    "dataset": "corral dataset ls",
    "flavor": "corral flavor ls",
    "GPU": "corral gpus ls",
    "image": "corral image ls",
    "job": "corral jobs -a",
    "key": "corral key ls",
    "login": "corral registry ls",
    "node": "corral nodes ls",
    "object store": "corral object-store ls",
    "package": "corral package ls",
    "pool": "corral pool ls",
    "preset": "corral preset ls",
    "queue": "corral queue ls",
    "reservation": "corral reservation ls",
    "secret": "corral secret ls",
    "simulation": "corral whatif ls",
    "task": "corral status",
    "token": "corral token ls",
    "volume": "corral volume ls",
    "workbench": "corral workbench ls",
}
_OF_OPERATORS: Mapping[str, str] = {
    "alert rule": "corral alert rules",
    "channel": "corral channel ls",
    "delivery": "corral channel deliveries",
    "group": "corral group ls",
    "part": "corral cluster",
    "permission group": "corral permission-group ls",
    "report": "corral report ls",
    "schedule": "corral report schedule ls",
    "sign-in provider": "corral provider ls",
    "silence": "corral alert silences",
    "user": "corral user ls",
}
_NOUNS = "|".join(sorted((*_COMMANDS, *_OF_OPERATORS), key=len, reverse=True))
_MISSING = re.compile(rf"there is no (?P<noun>{_NOUNS})\b")
_NUMBER_OF_JOB = re.compile(r"there is no job '(\d+)'")
#: A part of a job or dataset that is missing, such as `job j-3 has no attempt 9`.
_PART = re.compile(r"(?P<noun>job|dataset) (?P<name>\S+) has no ")


def listing(message: str, command: str) -> str:
    """A sentence with the command that lists; empty if the message names nothing that a command lists. `command` is the
    one that was typed: a workbench is a job, too."""
    if found := _MISSING.search(message):
        noun = found["noun"]
        if number := _NUMBER_OF_JOB.search(message):
            return f"The ids of jobs begin with j-: j-{number[1]}."
        if noun == "job" and command.startswith("corral workbench "):
            noun = "workbench"
        if noun in _COMMANDS:
            return f"`{_COMMANDS[noun]}` lists them."
        return f"{_OPERATORS} `{_OF_OPERATORS[noun]}`."
    if message.startswith("you have no channel "):
        return "`corral inbox channels` lists yours."
    if found := _PART.match(message):
        shown = "show" if found["noun"] == "job" else "dataset show"
        if message.endswith(" in its output directory"):
            shown = "files"
        return f"`corral {shown} {found['name']}` shows what it has."
    return ""
