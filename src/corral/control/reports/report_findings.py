"""The findings of a report as text: computed from its numbers, compared with the span before where it is known.

Each look gives one finding or none, with a weight; the heaviest come into the report, in the order of the looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corral.control.reports import report_texts as texts
from corral.control.reports.report_data import Finding, ReportData, Share, Step, Tone
from corral.core.counts import counted, noun_for

MOST_FINDINGS = 6
#: From here on the cluster is as good as full, and below, it mostly stands still.
FULL, QUIET = 0.85, 0.25
#: Mean use of held GPUs that is good, and that is poor.
WELL_USED, POORLY_USED = 0.7, 0.4
#: Part of the measured GPU time without any use from which on it is a finding.
MUCH_IDLE = 0.1
MANY_FAILURES = 0.15
LONG_WAIT_SECONDS = 3600.0
SHORT_WAIT_SECONDS = 300.0
#: Changes that are smaller are noise: points of a share, and parts of an amount.
POINTS, PARTS = 0.03, 0.1
MUCH_FOR_ONE = 0.4

END_REASONS = {
    "exit_code": "the program ended with an error",
    "oom_killed": "out of memory",
    "evicted": "evicted",
    "image_pull_error": "the image could not be fetched",
    "launch_error": "could not be launched",
    "node_lost": "a node was lost",
    "gpu_failed": "a GPU failed",
    "timed_out": "reached its time limit",
    "disk_quota": "took too much of the disk",
    "preempted": "made room for another job",
    "lost": "its processes vanished",
    "stopped_by_user": "stopped by its user",
    "stopped_by_operator": "stopped by an operator",
    "unknown": "unknown",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Noticed:
    weight: float
    tone: Tone
    text: str


def findings(data: ReportData) -> tuple[Finding, ...]:
    if data.totals.is_empty:
        return (Finding(tone=Tone.PLAIN, text="Nothing ran in this period: no job was submitted, started or ended."),)
    noticed = [found for look in LOOKS if (found := look(data)) is not None]
    # The order stays that of the looks: from the whole to the parts.
    kept = sorted(noticed, key=lambda found: -found.weight)[:MOST_FINDINGS]
    return tuple(Finding(tone=found.tone, text=found.text) for found in noticed if found in kept)


def _allocation(data: ReportData) -> _Noticed | None:
    now = data.totals.allocation
    if now is None:
        return None
    before = data.before.allocation if data.before else None
    text = (
        f"{texts.percent(now)} of the GPU time was held by jobs "
        f"({texts.hours(data.totals.hours.gpu_hours)} of {texts.hours(data.totals.available_gpu_hours or 0)} GPU-hours)"
        f"{_points(now, before)}."
    )
    if now >= FULL:
        return _Noticed(weight=9, tone=Tone.PLAIN, text=f"{text} The cluster is close to full.")
    if now < QUIET:
        return _Noticed(weight=9, tone=Tone.PLAIN, text=f"{text} Most of it stood free.")
    return _Noticed(weight=9, tone=Tone.PLAIN, text=text)


def _utilization(data: ReportData) -> _Noticed | None:
    hours = data.totals.hours
    now = hours.utilization
    if now is None:
        return None
    before = data.before.hours.utilization if data.before else None
    tone = Tone.GOOD if now >= WELL_USED else Tone.BAD if now < POORLY_USED else Tone.PLAIN
    text = f"Held GPUs were used {texts.percent(now)} on average{_points(now, before)}."
    return _Noticed(weight=8, tone=tone, text=text)


def _idle(data: ReportData) -> _Noticed | None:
    hours = data.totals.hours
    if not hours.measured_gpu_hours or hours.idle_gpu_hours < MUCH_IDLE * hours.measured_gpu_hours:
        return None
    part = hours.idle_gpu_hours / hours.measured_gpu_hours
    text = f"{texts.hours(hours.idle_gpu_hours)} GPU-hours ({texts.percent(part)}) were held without any use"
    worst = max(_named(data.top_users), key=lambda share: share.hours.idle_gpu_hours, default=None)
    if worst is not None and len(_named(data.top_users)) > 1:
        text += f"; the largest part, {texts.hours(worst.hours.idle_gpu_hours)}, by {worst.name}"
    return _Noticed(weight=7 + part, tone=Tone.BAD, text=f"{text}.")


def _failures(data: ReportData) -> _Noticed | None:
    outcomes = data.totals.outcomes
    rate = outcomes.failure_rate
    if rate is None:
        return None
    finished = outcomes.completed + outcomes.failed
    if not outcomes.failed:
        text = f"Every one of the {texts.count(finished, 'job')} that ran to the end was completed."
        return _Noticed(weight=3, tone=Tone.GOOD, text=text)
    before = data.before.outcomes.failure_rate if data.before else None
    reason = next(reason for reason in data.totals.outcomes.reasons if not reason.is_retried)
    text = (
        f"{texts.whole(outcomes.failed)} of {texts.whole(finished)} "
        f"{noun_for(finished, 'job')} that ran to the end failed "
        f"({texts.percent(rate)}{_points(rate, before, comma=';')}); the most frequent reason, "
        f"{texts.whole(reason.attempts)} times: {END_REASONS.get(reason.name, reason.name)}."
    )
    bad = rate >= MANY_FAILURES
    return _Noticed(weight=8.5 if bad else 5, tone=Tone.BAD if bad else Tone.PLAIN, text=text)


def _waits(data: ReportData) -> _Noticed | None:
    waiting = data.totals.waiting
    if waiting is None:
        return None
    before = data.before.waiting if data.before else None
    text = f"Half of the jobs started within {texts.duration(waiting.p50)}, nine of ten within "
    text += texts.duration(waiting.p90)
    if before is not None and _differs(waiting.p90, before.p90):
        text += f" ({texts.duration(before.p90)} in the period before)"
    slowest = max(data.queues, key=lambda queue: queue.p90)
    if len(data.queues) > 1 and slowest.p90 > 2 * waiting.p50 and slowest.p90 > SHORT_WAIT_SECONDS:
        text += f"; the slowest queue is {slowest.queue} ({texts.duration(slowest.p90)})"
    if waiting.p90 >= LONG_WAIT_SECONDS:
        return _Noticed(weight=7.5, tone=Tone.BAD, text=f"{text}.")
    tone = Tone.GOOD if waiting.p90 < SHORT_WAIT_SECONDS else Tone.PLAIN
    return _Noticed(weight=4, tone=tone, text=f"{text}.")


def _largest_users(data: ReportData) -> _Noticed | None:
    total, users = data.totals.hours.gpu_hours, _named(data.top_users)
    if not total or len(users) < 2:
        return None
    first = users[0].hours.gpu_hours / total
    text = f"{users[0].name} held {texts.percent(first)} of all used GPU-hours"
    if len(users) > 3:
        three = sum(share.hours.gpu_hours for share in users[:3]) / total
        text += f", the three largest of {counted(data.totals.users, 'user')} together {texts.percent(three)}"
    return _Noticed(weight=6 if first >= MUCH_FOR_ONE else 3.5, tone=Tone.PLAIN, text=f"{text}.")


def _health(data: ReportData) -> _Noticed | None:
    health = data.health
    failed = sorted({mishap.subject for mishap in health.gpus if mishap.what == "failed"})
    parts = []
    if failed:
        parts.append(f"{texts.count(len(failed), 'GPU')} failed ({texts.listed(failed[:3])}{' …' * (len(failed) > 3)})")
    if health.nodes:
        outages = sum(mishap.times for mishap in health.nodes)
        parts.append(f"{texts.count(outages, 'node outage')} on {texts.count(len(health.nodes), 'node')}")
    if health.alerts_fired:
        most = health.alerts[0]
        parts.append(
            f"{texts.count(health.alerts_fired, 'alert')} fired, most of them {most.rule} ({texts.whole(most.fired)})"
            if len(health.alerts) > 1
            else f"{texts.count(health.alerts_fired, 'alert')} of {most.rule} fired"
        )
    if not parts:
        return _Noticed(weight=2, tone=Tone.GOOD, text="No alert fired, no GPU failed and no node was lost.")
    text = "; ".join(parts)
    return _Noticed(weight=8 if failed or health.nodes else 5, tone=Tone.BAD, text=f"{text[0].upper()}{text[1:]}.")


def _busiest_step(data: ReportData) -> _Noticed | None:
    # A border step that is cut would look quiet for no reason.
    whole = [step for step in data.steps if step.span.seconds == data.step_seconds and step.allocation is not None]
    if len(whole) < 5:
        return None
    busiest, quietest = max(whole, key=_allocated), min(whole, key=_allocated)
    name = texts.step_name(data.step_seconds)
    if _allocated(busiest) - _allocated(quietest) < 0.1:
        return None
    text = (
        f"The busiest {name} began on {texts.day(busiest.span.since)} ({texts.percent(busiest.allocation)} held), "
        f"the quietest on {texts.day(quietest.span.since)} ({texts.percent(quietest.allocation)})."
        if name == "week"
        else f"The busiest {name} was {_when(busiest, name)} ({texts.percent(busiest.allocation)} held), "
        f"the quietest {_when(quietest, name)} ({texts.percent(quietest.allocation)})."
    )
    return _Noticed(weight=3, tone=Tone.PLAIN, text=text)


LOOKS: tuple[Callable[[ReportData], _Noticed | None], ...] = (
    _allocation,
    _utilization,
    _idle,
    _failures,
    _waits,
    _largest_users,
    _busiest_step,
    _health,
)


def _when(step: Step, name: str) -> str:
    return texts.moment(step.span.since) if name == "hour" else texts.day(step.span.since)


def _allocated(step: Step) -> float:
    return step.allocation or 0.0


def _named(shares: tuple[Share, ...]) -> list[Share]:
    return [share for share in shares if share.stands_for == 1]


def _differs(now: float, before: float) -> bool:
    return abs(now - before) > PARTS * max(now, before)


def _points(now: float, before: float | None, *, comma: str = ",") -> str:
    """How a share has changed: "", or ", 9 points more than in the period before"."""
    if before is None:
        return ""
    if abs(now - before) < POINTS:
        return f"{comma} about as in the period before"
    points = abs(round((now - before) * 100))
    return f"{comma} {texts.count(points, 'point')} {'more' if now > before else 'less'} than in the period before"
