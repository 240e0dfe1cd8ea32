"""Refusals of the API server in the words of corral: quotas, limits of a namespace, and rules of security. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.engines.kubernetes.api.objects import amounts

_QUOTA = re.compile(
    r"exceeded quota: (?P<name>\S+), requested: (?P<asked>.*?), used: (?P<used>.*?), limited: (?P<limit>\S+)"
)
_UNNAMED = re.compile(r"failed quota: (?P<name>[^\s:]+): must specify (?P<what>.+)")
#: "maximum memory usage per Container is 1Gi, but limit is 4Gi", "minimum cpu usage per Pod is 1, but request is 100m"
_LIMIT = re.compile(
    r"(?P<kind>maximum|minimum) (?P<resource>\S+) usage per (?P<of>\w+) is (?P<bound>\S+?), but "
    r"(?:(?:limit|request) is (?P<asked>\S+?)|no (?:limit|request) is specified)(?=[\],.\s]|$)"
)
_RATIO = re.compile(
    r"(?P<resource>\S+) max limit to request ratio per (?P<of>\w+) is (?P<bound>\S+?), but "
    r"(?:provided ratio is (?P<asked>[\d.]+)|no .* is specified)"
)
_SECURITY = re.compile(r'violates PodSecurity "(?P<level>[^"]+)": (?P<why>.*)')
#: what a user of corral calls the resources, and the option that asks for them
_WORDS = {"cpu": "CPU", "memory": "memory", "pods": "pods"}
_OPTIONS = {"cpu": "--cpus", "memory": "--memory"}


def plain_refusal(message: str, namespace: str) -> str:
    """The message of the API server; in plain words if its kind is known."""
    if found := _QUOTA.search(message):
        return _quota(found, namespace)
    if found := _UNNAMED.search(message):
        return f"the quota {found['name']} of namespace {namespace} wants {_unnamed(found['what'])}"
    if limits := list(_limits(message)):
        return f"namespace {namespace} does not allow it: {'; '.join(limits)}"
    if found := _SECURITY.search(message):
        return f"namespace {namespace} enforces the standard {found['level']} of Pod Security: {found['why']}"
    return message


def is_full_quota(message: str) -> bool:
    """Whether a quota is used up for now: another job may free it. False for a request that exceeds the quota alone."""
    if (found := _QUOTA.search(message)) is None:
        return "exceeded quota" in message
    asked, limit = (amounts(dict(_pairs(found[part]))) for part in ("asked", "limit"))
    return all(asked[name] <= most for name, most in limit.items())


def _quota(found: re.Match[str], namespace: str) -> str:
    asked, used, limit = (dict(_pairs(found[part])) for part in ("asked", "used", "limit"))
    parts = [
        f"{limit[name]} {_word(name)} at most, of which {used.get(name, '0')} are used and {asked.get(name, '0')} "
        "more requested"
        for name in limit
    ]
    return f"the quota {found['name']} of namespace {namespace} allows {'; '.join(parts)}"


def _unnamed(what: str) -> str:
    """limits.cpu for: job; requests.memory for: job"""
    names = [item.partition(" for:")[0].strip() for item in re.split(r"[;,]", what)]
    options = dict.fromkeys(filter(None, (_OPTIONS.get(name.rpartition(".")[2]) for name in names)))
    return f"{', '.join(filter(None, names))} of every pod: submit the job with {' and '.join(options) or 'them'}"


def _limits(message: str) -> Iterator[str]:
    for found in _LIMIT.finditer(message):
        bound = "at most" if found["kind"] == "maximum" else "at least"
        asked = f"not {found['asked']}" if found["asked"] else "and the job names none"
        yield f"{bound} {found['bound']} {_word(found['resource'])} for each {found['of'].lower()}, {asked}"
    for found in _RATIO.finditer(message):
        asked = f", not {found['asked']}" if found["asked"] else ""
        yield f"a limit of {_word(found['resource'])} at most {found['bound']} times the request{asked}"


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        name, _, value = part.partition("=")
        yield name, value


def _word(resource: str) -> str:
    name = resource.removeprefix("requests.").removeprefix("limits.")
    return _WORDS.get(name, f"GPUs ({name})" if "gpu" in name or "/mig-" in name else name)
