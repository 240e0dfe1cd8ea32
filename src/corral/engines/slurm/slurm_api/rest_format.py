"""How slurmrestd is spoken to and what its answers mean: pure, for each version of its interface.

Versions differ in the shape of a job and in what can be done at all. Slurm 22.05 speaks v0.0.38; 24.11 speaks v0.0.40
and the following, which can also change nodes and signal the script of a job alone; 26.05 speaks v0.0.42 to v0.0.45.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from corral.engines.slurm.cluster.partitions import UNLIMITED
from corral.engines.slurm.slurm_api.clean_text import plain
from corral.engines.slurm.slurm_api.commands import Submission, gres_options
from corral.engines.slurm.slurm_api.slurm_records import NOTHING_FOUND

#: the oldest first; the newest that slurmrestd offers is used
VERSIONS = ("v0.0.38", "v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
#: Options of sbatch that a job can be given without sbatch, and their names here.
OPTIONS = {
    "--constraint": "constraints",
    "--licenses": "licenses",
    "--reservation": "reservation",
    "--wckey": "wckey",
}
#: A job that waits is put off for so long, and so surely waits on while it is taken back.
PUT_OFF_SECONDS = 300 * 86_400
#: v0.0.38 reaches all processes of a job alike. This signal means nothing to any of them but corral's own script,
#: which takes it for the wish to end; srun would take TERM as one to kill the whole job.
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
    """One answer of slurmrestd. Errors are told in the document, under whatever status."""

    status: int
    document: Mapping[str, Any]
    words: str = ""
    codes: frozenset[int] = frozenset()

    @property
    def is_good(self) -> bool:
        return not self.words and self.status < 400

    @property
    def is_over(self) -> bool:
        """What should be ended or changed has ended."""
        return bool(self.codes & _OVER)

    @property
    def may_be_the_token(self) -> bool:
        """22.05 says "unspecified" of a token that has expired, as of a controller that is away."""
        return self.is_the_token or _NOT_TRUSTED in self.codes or self.is_unspecified

    @property
    def is_the_token(self) -> bool:
        """Slurm's own refusals, and in 26.05 also a controller that is away, may come with these statuses too."""
        return self.status in (401, 403, 511) and all(1000 <= code < 2000 for code in self.codes)

    @property
    def is_unspecified(self) -> bool:
        """Neither done nor refused: Slurm's own message did not come through. Below 1000 are words of the system, not
        of Slurm: 24.11 says "Operation not permitted" of a cancel while its controller is away. Other answers of it
        have only a status then, as those of a proxy."""
        if not self.codes:
            return self.status >= 500
        return all(code < 1100 or 5000 <= code < 5100 for code in self.codes)


def answer_of(status: int, document: Any, text: str) -> Answer:
    """`document` is None where the answer was no JSON."""
    if not isinstance(document, Mapping):
        return Answer(status=status, document={}, words=plain(" ".join(text.split()), 200) or f"HTTP status {status}")
    errors = [item for item in document.get("errors") or () if isinstance(item, Mapping)]
    errors += _refusals(document)
    codes = frozenset(code for item in errors if (code := _code(item)) is not None)
    if codes == {NOTHING_FOUND}:
        return Answer(status=200, document=document)
    words = plain("; ".join(dict.fromkeys(filter(None, map(_message, errors)))))
    if not words and status >= 400:
        words = f"HTTP status {status}"
    return Answer(status=status, document=document, words=words, codes=codes)


def best_version(document: Mapping[str, Any]) -> str | None:
    """Of those that slurmrestd offers by its own description."""
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
        "tres_per_node": ",".join(f"gres/{one}" for one in gpus) or None,
        "memory_per_node": _number(job.memory_mib),
        "time_limit": _minutes(job.minutes),
        "open_mode": ["APPEND"],
        "requeue": False,
        "environment": [f"{name}={value}" for name, value in job.env.items()],
    }
    return {"job": _without_none(body)}


def put_off_body(now: float, version: str) -> dict[str, Any]:
    """A change that Slurm makes to jobs that wait, and refuses for all others."""
    if is_classic(version):
        return {"begin_time": f"now+{PUT_OFF_SECONDS}"}
    return {"begin_time": _number(int(now) + PUT_OFF_SECONDS)}


def signal_query(name: str, *, to_steps: bool, version: str) -> dict[str, str]:
    if is_classic(version):
        return {"signal": ATTENTION if name == "TERM" else name}
    # Without a flag also the srun of a gang is signalled, and kills all of it.
    return {"signal": name, "flags": "FULL_STEPS_ONLY" if to_steps else "BATCH_JOB"}


def booked_query(job_ids: Iterable[int], version: str) -> dict[str, Any]:
    """Slurm calls it one list with commas, and from v0.0.40 on refuses those: it wants each by itself."""
    words = [str(job_id) for job_id in job_ids]
    return {"step": ",".join(words) if is_classic(version) else words}


def node_body(*, is_withheld: bool, reason: str) -> dict[str, Any]:
    return {"state": ["DRAIN"], "reason": reason} if is_withheld else {"state": ["RESUME"]}


def options_of(words: Iterable[str]) -> dict[str, str]:
    """Fields of a job for options of sbatch. Raises ValueError for one that has none."""
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in OPTIONS or not value:
            known = ", ".join(f"{option}=…" for option in OPTIONS)
            raise ValueError(f"{word!r} cannot be given through slurmrestd; these can: {known}")
        found[OPTIONS[name]] = value
    return found


def parse_place(url: str) -> tuple[str, str | None]:
    """An address for requests, and the socket behind it, if it is one. Raises ValueError."""
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
    """From v0.0.42 on, what was refused of a cancel or a signal, job by job under a good status. The versions before
    say nothing of it."""
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
