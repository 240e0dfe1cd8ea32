"""Jobs as text for people: states, properties and attempts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from corral.cli.scheduling.estimates import expected_text
from corral.cli.terminal import formats
from corral.core.jobs.job_fields import JOB_FIELDS

if TYPE_CHECKING:
    from corral.client.views import (
        AllocationView,
        AttemptView,
        IdleWarningView,
        JobDiskView,
        JobView,
        PredictionView,
        UsageView,
    )


def submitted(job: JobView) -> str:
    follow = f"Follow it: corral logs -f {job['id']}"
    if job["state"] == "created":
        follow = f"Queue it: corral start {job['id']}"
    return f"Submitted {job['id']} ({job['name']}), {job['state']}. {follow}"


def state_line(job: JobView) -> str:
    """A job's state with its nodes or how it ended."""
    line: str = job["state"]
    if job["allocation"] is not None and job["state"] in ("starting", "running"):
        line += f" on {formats.listed([grant['node'] for grant in job['allocation']['grants']])}"
    how = end_text(job) if job["state"] in ("completed", "failed", "stopped") else ""
    return f"{line} ({how})" if how else line


def end_text(ended: JobView | AttemptView) -> str:
    """How a job or an attempt ended: `exit code 3`, `timed_out; exit code 143; killed by SIGTERM`."""
    code = "" if ended["exit_code"] is None else f"exit code {ended['exit_code']}"
    # the exit code makes the reason `exit_code` redundant; engines repeat the code in their message
    reason = "" if code and ended["end_reason"] == "exit_code" else ended["end_reason"]
    message = ended["message"]
    if code and (message == code or message.startswith(f"{code};")):
        # The message repeats the code, and may say more.
        code = ""
    return "; ".join(part for part in (reason, code, message) if part)


def job_facts(job: JobView, now: float) -> list[tuple[str, str]]:
    return [
        ("Id", job["id"]),
        ("Name", job["name"]),
        *((row.title, str(job.get(row.attribute) or "")) for row in JOB_FIELDS.values() if row.title),
        ("Commit", job.get("git_commit") or ""),
        ("User", job["user"]),
        ("Kind", job["kind"]),
        ("State", job["state"]),
        ("How it ended", end_text(job) if job["ended_at"] else ""),
        ("Kept", "beyond the retention time" if job["kept"] else ""),
        ("Message", job["message"] if not job["ended_at"] else ""),
        ("Queue", f"{job['queue']}, priority {job['priority']}" + (", pinned" if job["pinned_at"] else "")),
        ("Comes after", formats.listed(job["after"]) if job.get("after") else ""),
        ("Array", _array_text(job)),
        ("Asks for", _request_text(job)),
        ("Elastic", elastic_text(job, now)),
        ("Holds", _allocation_text(job["allocation"])),
        ("Preset", _preset_text(job)),
        ("Command", shlex.join(job["command"])),
        ("Directory", job["workdir"] or ""),
        ("Image", job["image"] or ""),
        ("Mounts", _mounts(job)),
        ("Environment", job["venv"] or ""),
        ("Environment", " ".join(f"{key}={shlex.quote(value)}" for key, value in sorted(job["env"].items()))),
        ("Time limit", formats.duration(job["time_limit_seconds"]) if job["time_limit_seconds"] else "none"),
        ("Predicted", _prediction_text(job.get("predicted"))),
        ("Grace", formats.duration(job["grace_seconds"])),
        ("Retries", f"{job['retries']} of {job['max_retries']}{_retried(job)}"),
        ("Platform faults", f"{faults} in a row" if (faults := job.get("faults", 0)) else ""),
        ("Preemptible", _preemption_text(job)),
        ("Created", formats.at_and_ago(job["created_at"], now)),
        ("Queued", formats.at_and_ago(job["queued_at"], now) if job["queued_at"] else ""),
        ("Expected start", expected_text(expected, now) if (expected := job.get("estimated_start")) else ""),
        ("Not before", formats.at_and_ago(job["not_before"], now) if job["not_before"] else ""),
        ("Started", formats.at_and_ago(job["started_at"], now) if job["started_at"] else ""),
        ("Ended", formats.at_and_ago(job["ended_at"], now) if job["ended_at"] else ""),
        ("Ran", formats.between(job["started_at"], job["ended_at"], now) if job["started_at"] else ""),
        ("Idle", warning_text(job.get("idle_warning"), now)),
        ("Pace", _pace_text(job, now)),
        ("Used", _usage_text(job.get("usage"))),
        ("Temporary storage", _temporary_text(job.get("disk"))),
    ]


def _pace_text(job: JobView, now: float) -> str:
    """Set for a job whose program reports steps, and hangs or has slowed down."""
    if (hung := job.get("hung_since")) is not None:
        restart = "it is restarted elsewhere while retries are left" if job["restart_if_hung"] else "see its log"
        return f"hangs: no step since {formats.at_and_ago(hung, now)}; {restart}"
    slow = job.get("slow_since")
    return "" if slow is None else f"slower than before since {formats.at_and_ago(slow, now)}"


def _temporary_text(disk: JobDiskView | None) -> str:
    if disk is None:
        return ""
    used, limit = formats.size(disk["temporary_bytes"]), disk["temporary_limit_bytes"]
    return used if limit is None else f"{used} of {formats.size(limit)}; the job is evicted at 90 %"


def attempt_row(attempt: AttemptView, now: float) -> Sequence[str]:
    usage = attempt.get("usage")
    return (
        attempt["id"],
        formats.ago(attempt["started_at"], now),
        formats.between(attempt["started_at"], attempt["ended_at"], now),
        _allocation_text(attempt["allocation"]),
        formats.percent(usage["utilization"]) if usage else formats.NOTHING,
        formats.quantity(usage["gpu_hours"]) if usage else formats.NOTHING,
        formats.quantity(usage["energy_kwh"]) if usage and usage["measured_gpu_hours"] else formats.NOTHING,
        end_text(attempt) if attempt["ended_at"] else "",
    )


def _preemption_text(job: JobView) -> str:
    """Whether the job may be preempted, and how often it was."""
    if job["preempted_for"] and job["state"] == "stopping":
        return f"it is preempted for {job['preempted_for']}"
    text = "yes" if job["preemptible"] else "no"
    return f"{text}; {formats.count(job['preemptions'], 'time')} so far" if job["preemptions"] else text


def _prediction_text(prediction: PredictionView | None) -> str:
    """The run time of similar jobs, and the number of runs that it is based on."""
    if prediction is None:
        return ""
    usual, longest = (formats.duration(prediction[part]) for part in ("p50_seconds", "p90_seconds"))
    runs = formats.count(prediction["samples"], "run")
    return f"{usual}, and 9 of 10 take at most {longest} ({runs} of {prediction['like']})"


def _array_text(job: JobView) -> str:
    of = job.get("array")
    return f"{of['name']}, index {of['index']} of {formats.count(of['size'], 'job')}" if of else ""


def warning_text(warning: IdleWarningView | None, now: float) -> str:
    if warning is None:
        return ""
    text = f"it is stopped {formats.ago(warning['deadline'], now)} unless it uses its GPUs"
    return f"{text}; it was given more time" if warning["extended_at"] else f"{text}; more time: corral extend JOB"


def _usage_text(usage: UsageView | None) -> str:
    """The usage of the job's GPUs, over all attempts."""
    if usage is None or not usage["gpu_hours"]:
        return ""
    text = f"{formats.quantity(usage['gpu_hours'])} GPU-hours"
    if not usage["measured_gpu_hours"]:
        return f"{text}; its GPUs were not measured"
    return (
        f"{text}, {formats.percent(usage['utilization'])} in use, {formats.quantity(usage['idle_gpu_hours'])} idle;"
        f" {formats.quantity(usage['energy_kwh'])} kWh;"
        f" at most {formats.size(usage['memory_peak_bytes'])} of a GPU's memory"
    )


def _preset_text(job: JobView) -> str:
    given = [f"{name}={value}" for name, value in (job.get("parameters") or {}).items()]
    return " ".join([job.get("preset") or "", *given]).strip()


def _mounts(job: JobView) -> str:
    mounts = [f"{mount['source']}:{mount['path']}:{mount['mode']}" for mount in job.get("mounts", ())]
    return formats.listed(mounts) if mounts else ""


def _request_text(job: JobView) -> str:
    parts = [formats.count(job["gpus"], "GPU")]
    if job["cpus"]:
        parts.append(formats.count(job["cpus"], "CPU"))
    if job["memory_bytes"]:
        parts.append(f"{formats.size(job['memory_bytes'])} of memory")
    text = ", ".join(parts)
    if job["nodes"] > 1:
        text += f" on each of {job['nodes']} nodes"
    if job["models"]:
        text += f"; model {' or '.join(job['models'])}"
    if job["labels"]:
        text += f"; labels {formats.listed([f'{key}={value}' for key, value in sorted(job['labels'].items())])}"
    return text


def elastic_text(job: JobView, now: float) -> str:
    elastic = job.get("elastic")
    if elastic is None:
        return ""
    each = " on each node" if job["nodes"] > 1 else ""
    text = f"{elastic['min_gpus']} to {formats.count(elastic['max_gpus'], 'GPU')}{each}"
    if elastic["next_gpus"] is not None:
        text += f"; it saves, and continues with {len(elastic['next_gpus'])}"
    elif elastic["utilization"] is not None:
        text += f"; {formats.percent(elastic['utilization'])} in use lately"
    return f"{text}; resized {formats.ago(elastic['resized_at'], now)}" if elastic["resized_at"] else text


def _allocation_text(allocation: AllocationView | None) -> str:
    """Node by node: `gpu-01 (gpu ids)`."""
    if allocation is None:
        return ""
    shown = []
    for grant in allocation["grants"]:
        share = f"{formats.number(grant['gpu_share'])} of " if grant["gpus"] and grant["gpu_share"] < 1 else ""
        shown.append(f"{grant['node']} ({share}{', '.join(grant['gpus'])})" if grant["gpus"] else grant["node"])
    model = f"{allocation['model']}: " if allocation["model"] else ""
    return model + "; ".join(shown)


def _retried(job: JobView) -> str:
    """The failures of the program that are retried."""
    return f" (on {', '.join(job['retry_on'])})" if job["retry_on"] else ""
