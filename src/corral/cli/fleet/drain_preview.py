"""`corral nodes drain --preview`: the jobs that a drain would displace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal

if TYPE_CHECKING:
    from corral.client.views import DisplacedJobView, DrainPreviewView, SpanView

TITLES = ("JOB", "NAME~", "USER", "GPUS>", "STILL THERE!", "ENDS", "LIMIT?", "LOSES>", "GOES TO~", "BACK")


def show_preview(terminal: Terminal, nodes: Sequence[str], moment: str | None) -> None:
    now = terminal.now()
    with terminal.client() as client:
        found = client.fleet.preview_drains(nodes, moment)
    if terminal.as_json:
        terminal.json(found)
        return
    _show(terminal, found, now)


def _show(terminal: Terminal, preview: DrainPreviewView, now: float) -> None:
    there = sum(job["displaced"] != "no" for job in preview["jobs"])
    terminal.say(
        f"Draining {formats.listed(preview['nodes'])} at {formats.local_time(preview['at'])} displaces"
        f" {formats.count(there, 'job') if there else 'nothing'}."
    )
    if preview["jobs"]:
        terminal.say(f"Empty by itself: {_span(preview['empty_at'], now) or 'unknown'}")
        terminal.table(TITLES, preview["jobs"], lambda job: _row(job, now), empty="")
    for job in preview["stranded"]:
        terminal.say(f"Stranded: {job['id']} ({job['name']}) of {job['user']}: {job['detail']}")
    for pool, left in preview["capacity_after"].items():
        terminal.say(f"Pool {pool} is left with {formats.count(left['gpus'], 'GPU')}, {left['free']} of them free.")


def _row(job: DisplacedJobView, now: float) -> Sequence[str]:
    displaced = job["displaced"] != "no"
    return (
        job["id"],
        job["name"],
        job["user"],
        str(job["gpu_count"]),
        job["displaced"],
        _span(job["ends_at"], now) or formats.NOTHING,
        formats.ago(job["limit_at"], now),
        f"{job['lost_gpu_seconds'] / 3600:.1f} GPU-h" if displaced else formats.NOTHING,
        formats.listed(job["goes_to"] or []) if displaced else formats.NOTHING,
        formats.ago(job["back_at"], now) if displaced else formats.NOTHING,
    )


def _span(span: SpanView | None, now: float) -> str:
    if span is None:
        return ""
    return f"{formats.ago(span['p50'], now)} (p90 {formats.ago(span['p90'], now)})"
