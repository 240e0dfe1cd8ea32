"""Requests to slurmrestd and the meaning of its answers, for each version of its interface. Pure.

Versions differ in the form of a job and in the operations that they offer. Slurm 22.05 supports v0.0.38; 24.11 supports
v0.0.40 and later, which can also change nodes and signal the script of a job alone; 26.05 supports v0.0.42 to v0.0.45.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from corral.engines.attempts.clean_text import plain
from corral.engines.slurm.cluster.partitions import UNLIMITED
from corral.engines.slurm.slurm_api.commands import Submission, gres_options
from corral.engines.slurm.slurm_api.slurm_records import NOTHING_FOUND

#: the oldest first; the newest that slurmrestd offers is used
VERSIONS = ("v0.0.38", "v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
#: Options of sbatch that slurmrestd supports, with their names there.
OPTIONS = {
    "--constraint": "constraints",
    "--licenses": "licenses",
    "--reservation": "reservation",
    "--wckey": "wckey",
}
#: A pending job is deferred for this long, so that it cannot start while it is taken back.
DEFER_SECONDS = 300 * 86_400
#: v0.0.38 signals all processes of a job. This signal has no effect on any of them except corral's own script, which
#: takes it as a request to end; srun would take TERM as a request to kill the whole job.
ATTENTION = "URG"

_OFFERED = re.compile(r"/slurm/(v\d+\.\d+\.\d+)/jobs?\b")
#: ESLURM_INVALID_JOB_ID, _TRANSITION_STATE_NO_UPDATE, _ALREADY_DONE, _JOB_NOT_PENDING, _JOB_FINISHED: nothing to do
_OVER = frozenset([2017, 2020, 2021, 2073, 2084])
#: ESLURM_DB_CONNECTION: slurmrestd does not reach accounting
NO_DATABASE = 7000
#: SLURM_PROTOCOL_AUTHENTICATION_ERROR
_NOT_TRUSTED = 1007


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One answer of slurmrestd. Errors are in the document, under any status."""

    status: int
    document: Mapping[str, Any]
    message: str = ""
    codes: frozenset[int] = frozenset()

    @property
    def is_good(self) -> bool:
        return not self.message and self.status < 400

    @property
    def is_over(self) -> bool:
        """The job to be ended or changed is over."""
        return bool(self.codes & _OVER)

    @property
    def may_be_the_token(self) -> bool:
        """22.05 reports "unspecified" both for an expired token and for a controller that is down."""
        return self.is_the_token or _NOT_TRUSTED in self.codes or self.is_unspecified

    @property
    def is_the_token(self) -> bool:
        """Slurm's own refusals, and in 26.05 also a controller that is down, may have these statuses too."""
        return self.status in (401, 403, 511) and all(1000 <= code < 2000 for code in self.codes)

    @property
    def is_unspecified(self) -> bool:
        """Neither done nor refused: Slurm's own message is missing. Numbers below 1000 are errors of the system, not of
        Slurm: 24.11 reports "Operation not permitted" for a cancel while its controller is down. Its other answers have
        only a status then, like those of a proxy."""
        if not self.codes:
            return self.status >= 500
        return all(code < 1100 or 5000 <= code < 5100 for code in self.codes)


def answer_of(status: int, document: Any, text: str) -> Answer:
    """`document` is None if the answer was not JSON."""
    if not isinstance(document, Mapping):
        return Answer(status=status, document={}, message=plain(" ".join(text.split()), 200) or f"HTTP status {status}")
    errors = [item for item in document.get("errors") or () if isinstance(item, Mapping)]
    errors += _refusals(document)
    codes = frozenset(code for item in errors if (code := _code(item)) is not None)
    if codes == {NOTHING_FOUND}:
        return Answer(status=200, document=document)
    message = plain("; ".join(dict.fromkeys(filter(None, map(_message, errors)))))
    if not message and status >= 400:
        message = f"HTTP status {status}"
    return Answer(status=status, document=document, message=message, codes=codes)


def best_version(document: Mapping[str, Any]) -> str | None:
    """The newest of the versions that slurmrestd offers in its own description."""
    offered = {found[1] for path in document.get("paths") or () if (found := _OFFERED.match(path))}
    return next((version for version in reversed(VERSIONS) if version in offered), None)


def is_classic(version: str) -> bool:
    return version == "v0.0.38"


def job_body(job: Submission, version: str) -> dict[str, Any]:
    gpus = gres_options(job)
    shared: dict[str, Any] = {
        "name": job.name,
        "comment": job.comment,
        "tasks": len(job.nodes),
        "tasks_per_node": 1,
        "cpus_per_task": job.cpus,
        "current_working_directory": job.workdir,
        "standard_output": job.output,
        "standard_input": "/dev/null",
        **{name: value for name, value in _named(job).items() if value},
        **options_of(job.extra),
    }
    if is_classic(version):
        body = {
            **shared,
            "nodelist": ",".join(job.nodes),
            "nodes": [len(job.nodes), len(job.nodes)],
            "gres": ",".join(gpus) or None,
            "memory_per_node": job.memory_mib,
            "time_limit": job.minutes,
            "open_mode": "append",
            "no_requeue": True,
            "environment": dict(job.env),
        }
        return {"script": job.script, "job": _without_none(body)}
    body = {
        **shared,
        "script": job.script,
        "required_nodes": list(job.nodes),
        "minimum_nodes": len(job.nodes),
        "maximum_nodes": len(job.nodes),
        "tres_per_node": ",".join(f"gres/{gpu}" for gpu in gpus) or None,
        "memory_per_node": _number(job.memory_mib),
        "time_limit": _minutes(job.minutes),
        "open_mode": ["APPEND"],
        "requeue": False,
        "environment": [f"{name}={value}" for name, value in job.env.items()],
    }
    return {"job": _without_none(body)}


def defer_body(now: float, version: str) -> dict[str, Any]:
    """A change that Slurm makes to pending jobs, and refuses for all others."""
    if is_classic(version):
        return {"begin_time": f"now+{DEFER_SECONDS}"}
    return {"begin_time": _number(int(now) + DEFER_SECONDS)}


def signal_query(name: str, *, to_steps: bool, version: str) -> dict[str, str]:
    if is_classic(version):
        return {"signal": ATTENTION if name == "TERM" else name}
    # Without a flag the srun of a gang gets the signal too, and kills all of it.
    return {"signal": name, "flags": "FULL_STEPS_ONLY" if to_steps else "BATCH_JOB"}


def accounting_query(job_ids: Iterable[int], version: str) -> dict[str, Any]:
    """The documentation calls it one list with commas, but from v0.0.40 on Slurm refuses that: each id is a
    parameter."""
    ids = [str(job_id) for job_id in job_ids]
    return {"step": ",".join(ids) if is_classic(version) else ids}


def node_body(*, is_withheld: bool, reason: str) -> dict[str, Any]:
    return {"state": ["DRAIN"], "reason": reason} if is_withheld else {"state": ["RESUME"]}


def options_of(options: Iterable[str]) -> dict[str, str]:
    """Fields of a job for options of sbatch. Raises ValueError for an option without a field."""
    found = {}
    for word in options:
        name, _, value = word.partition("=")
        if name not in OPTIONS or not value:
            known = ", ".join(f"{option}=…" for option in OPTIONS)
            raise ValueError(f"{word!r} cannot be given through slurmrestd; these can: {known}")
        found[OPTIONS[name]] = value
    return found


def parse_place(url: str) -> tuple[str, str | None]:
    """The base address for requests, and the socket, if it is one. Raises ValueError."""
    if url.startswith("unix:"):
        path = url.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/"):
            raise ValueError(f"{url!r} is not of the form unix:/run/slurmrestd.socket")
        return "http://localhost", path
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r} is neither of the form http://login1:6820 nor unix:/run/slurmrestd.socket")
    return url.rstrip("/"), None


def _named(job: Submission) -> dict[str, str]:
    return {"partition": job.partition, "account": job.account, "qos": job.qos}


def _minutes(value: int | None) -> dict[str, Any] | None:
    return {"set": True, "infinite": True, "number": 0} if value == UNLIMITED else _number(value)


def _number(value: int | None) -> dict[str, Any] | None:
    return None if value is None else {"set": True, "infinite": False, "number": value}


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _refusals(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The refusals of a cancel or a signal for single jobs under a good status. Versions before v0.0.42 do not report
    them.
    """
    found = document.get("status")
    parts = [item.get("error") for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []
    return [error for error in parts if isinstance(error, Mapping) and error.get("code")]


def _message(error: Mapping[str, Any]) -> str:
    return str(error.get("error") or error.get("string") or error.get("description") or "")


def _code(error: Mapping[str, Any]) -> int | None:
    for name in ("error_number", "error_code", "errno", "code"):
        if isinstance(value := error.get(name), int):
            return value
    return None
