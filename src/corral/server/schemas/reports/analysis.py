"""API schemas: findings, usage and plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from corral.control.monitoring.usage_summary import GpuHours
from corral.control.reports.analysis import Analysis
from corral.control.scheduling.moves.defragmentation import DefragmentationRun, MoveState
from corral.core.alerts.model import Severity
from corral.core.reports.analysis.model import DefragmentationPlan, Finding, FindingKind, FreedNode, Move
from corral.server.schemas.base import Body, Label, View, rfc3339, rfc3339_or_none
from corral.server.schemas.jobs.jobs import AllocationView, allocation_view


class FindingView(View):
    kind: FindingKind
    severity: Severity
    subject: str = Field(description="The job, GPU, queue or pool that the finding is about.")
    title: str
    evidence: dict[str, int | float | str] = Field(description="The numbers that the finding is based on.")
    text: str
    proposal: str


class GpuHoursView(View):
    key: str = Field(description="The user, group, queue or GPU model; empty if there is none.")
    gpu_hours: float
    measured_gpu_hours: float
    busy_gpu_hours: float = Field(description="Measured utilisation times time.")
    idle_gpu_hours: float
    energy_kwh: float = Field(description="Energy in the period; a job that began or ended outside it counts by time.")
    utilization: float | None
    jobs: int


class UsageBreakdownView(View):
    total: GpuHoursView
    by_user: list[GpuHoursView]
    by_group: list[GpuHoursView]
    by_queue: list[GpuHoursView]
    by_model: list[GpuHoursView]


class AnalysisView(View):
    since: str
    until: str
    findings: list[FindingView]
    usage: UsageBreakdownView
    notes: list[str] = Field(description="Data that was not available.")


class MoveView(View):
    job: str
    name: str
    user: str
    from_node: str
    to_node: str
    before: AllocationView
    after: AllocationView
    lost_gpu_hours: float = Field(
        description="Upper bound of the work that is repeated: the time since the last checkpoint."
    )


class FreedNodeView(View):
    node: str
    pool: str
    model: str
    gpus: list[str]
    free_before: int


class DefragmentationView(View):
    """A proposed plan. It is carried out on request."""

    moves: list[MoveView] = Field(description="In the order in which they can be carried out.")
    frees: list[FreedNodeView]
    helps: list[str] = Field(description="Waiting jobs that would fit.")
    lost_gpu_hours: float


class DefragmentationStart(Body):
    """The moves of the present plan that are approved."""

    jobs: Annotated[list[Label], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="Only the moves of these jobs; null: of all that have saved a checkpoint."
    )
    include_unsaved: bool = Field(
        default=False, description="Also move jobs that never saved, or that are not preemptible: they lose their work."
    )


class RunMoveView(View):
    job: str
    name: str
    user: str
    from_node: str
    to_node: str
    state: MoveState = Field(description="left-out: the job or its place had changed.")
    receipt: int | None = Field(description="Receipt of the move; null before it has begun.")
    detail: str


class DefragmentationRunView(View):
    started_at: str
    started_by: str
    ended_at: str | None
    moves: list[RunMoveView]


def defragmentation_run_view(run: DefragmentationRun) -> DefragmentationRunView:
    return DefragmentationRunView(
        started_at=rfc3339(run.started_at),
        started_by=run.started_by,
        ended_at=rfc3339_or_none(run.ended_at),
        moves=[
            RunMoveView(
                job=move.job_id,
                name=move.job_name,
                user=move.user,
                from_node=move.from_node,
                to_node=move.to_node,
                state=move.state,
                receipt=move.receipt,
                detail=move.detail,
            )
            for move in run.moves
        ],
    )


def analysis_view(analysis: Analysis) -> AnalysisView:
    usage = analysis.usage
    return AnalysisView(
        since=rfc3339(analysis.since),
        until=rfc3339(analysis.until),
        findings=[finding_view(finding) for finding in analysis.findings],
        usage=UsageBreakdownView(
            total=gpu_hours_view(usage.total),
            by_user=_rows(usage.by_user),
            by_group=_rows(usage.by_group),
            by_queue=_rows(usage.by_queue),
            by_model=_rows(usage.by_model),
        ),
        notes=list(analysis.notes),
    )


def finding_view(finding: Finding) -> FindingView:
    return FindingView(
        kind=finding.kind,
        severity=finding.severity,
        subject=finding.subject,
        title=finding.title,
        evidence=dict(finding.evidence),
        text=finding.text,
        proposal=finding.proposal,
    )


def gpu_hours_view(row: GpuHours) -> GpuHoursView:
    return GpuHoursView(
        key=row.key,
        gpu_hours=row.gpu_hours,
        measured_gpu_hours=row.measured_gpu_hours,
        busy_gpu_hours=row.busy_gpu_hours,
        idle_gpu_hours=row.idle_gpu_hours,
        energy_kwh=row.energy_kwh,
        utilization=row.utilization,
        jobs=row.jobs,
    )


def defragmentation_view(plan: DefragmentationPlan) -> DefragmentationView:
    return DefragmentationView(
        moves=[_move_view(move) for move in plan.moves],
        frees=[_freed_view(node) for node in plan.frees],
        helps=list(plan.helps),
        lost_gpu_hours=plan.lost_gpu_hours,
    )


def _rows(rows: Iterable[GpuHours]) -> list[GpuHoursView]:
    return [gpu_hours_view(row) for row in rows]


def _move_view(move: Move) -> MoveView:
    return MoveView(
        job=move.job_id,
        name=move.job_name,
        user=move.user,
        from_node=move.from_node,
        to_node=move.to_node,
        before=allocation_view(move.before),
        after=allocation_view(move.after),
        lost_gpu_hours=move.lost_gpu_hours,
    )


def _freed_view(freed: FreedNode) -> FreedNodeView:
    return FreedNodeView(
        node=freed.node, pool=freed.pool, model=freed.model, gpus=list(freed.gpus), free_before=freed.free_before
    )
