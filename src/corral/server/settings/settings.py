"""The settings of a server, and the rules that the use cases and the core get from them.

The sections decide which values are valid, `settings_sources` decides which source wins.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from corral.control.monitoring.gpu_checks import CheckRules
from corral.control.system.policies import CheckpointPolicy, HybridShare, Policies, ScalingPolicy, TaskPolicy
from corral.control.system.retention import DAY, RetentionRules
from corral.core.alerts.defaults import Thresholds
from corral.core.jobs.retries import ANY
from corral.core.model import WHOLE, JobKind
from corral.core.monitoring.health.model import HealthRules
from corral.core.monitoring.idleness import IdleRules
from corral.core.monitoring.step_rates import PaceRules
from corral.core.people.quota import Quota
from corral.core.reports.analysis.model import AnalysisRules
from corral.core.scheduling.ordering.cost import OrderingRules, Weights
from corral.core.snapshot.installation import (
    AllocationRules,
    BackfillRules,
    Limits,
    PreemptionRules,
    ScalingRules,
    Strategy,
)
from corral.core.storage.volumes import VolumeType
from corral.server.settings.sections.backup_section import BackupSettings
from corral.server.settings.sections.cluster_sections import ClusterSettings
from corral.server.settings.sections.disk_sections import DiskSettings, ReadingSettings, RetentionSettings
from corral.server.settings.sections.high_availability import HighAvailabilitySettings
from corral.server.settings.sections.monitoring_sections import MonitoringSettings, NotificationSettings
from corral.server.settings.sections.policy_sections import (
    FaultToleranceSettings,
    PolicySettings,
    ProgramTemplateSettings,
)
from corral.server.settings.sections.scheduling_sections import AllocationSettings, ScalingSettings, SchedulingSettings
from corral.server.settings.sections.server_sections import (
    GitSettings,
    ImageSettings,
    LocalSettings,
    ServerSettings,
    StorageSettings,
    WorkbenchSettings,
)

#: The operator that the first start creates; its password is printed.
FIRST_USER = "operator"


class SettingsFile(BaseModel):
    """All sections of `corral.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    cluster: Annotated[tuple[ClusterSettings, ...], Field(strict=False, min_length=1)] = (ClusterSettings(),)
    allocation: AllocationSettings = AllocationSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    policies: PolicySettings = PolicySettings()
    fault_tolerance: FaultToleranceSettings = FaultToleranceSettings()
    scaling: ScalingSettings = ScalingSettings()
    program_template: ProgramTemplateSettings = ProgramTemplateSettings()
    notification: NotificationSettings = NotificationSettings()
    storage: StorageSettings = StorageSettings()
    server: ServerSettings = ServerSettings()
    high_availability: HighAvailabilitySettings = HighAvailabilitySettings()
    images: ImageSettings = ImageSettings()
    git: GitSettings = GitSettings()
    workbench: WorkbenchSettings = WorkbenchSettings()
    local: LocalSettings = LocalSettings()
    disk: DiskSettings = DiskSettings()
    retention: RetentionSettings = RetentionSettings()
    reading: ReadingSettings = ReadingSettings()
    backup: BackupSettings = BackupSettings()


class Settings(SettingsFile):
    """The effective settings of one server."""

    #: directory of the state: store, logs of jobs, lock
    home: Annotated[Path, Field(strict=False)]
    config_file: Annotated[Path | None, Field(strict=False)] = None
    #: the first password of user `operator`, for unattended set-up
    bootstrap_password: SecretStr | None = None
    #: source of each value by dotted key; keys that are missing have their default
    sources: Mapping[str, str] = Field(default_factory=dict)
    #: what the operator should know about the file, although it is valid
    notes: tuple[str, ...] = ()
    #: started with --demo: some users are invented, and their jobs are the demo's own
    is_demo: bool = False

    @property
    def database_url(self) -> str:
        if self.storage.database == "sqlite":
            return f"sqlite:///{self.home / 'corral.db'}"
        return self.storage.database

    @property
    def log_path(self) -> Path | None:
        """The file of the server's own log; None if it is written to standard error only."""
        return None if self.server.log_file is None else self.home / self.server.log_file

    @property
    def datasets_path(self) -> Path:
        """The directory of the built-in dataset target."""
        return Path(self.storage.datasets) if self.storage.datasets else self.home / "datasets"

    @property
    def dataset_cache_path(self) -> Path:
        """The cache of dataset versions that jobs have mounted."""
        return Path(self.storage.dataset_cache) if self.storage.dataset_cache else self.home / "dataset-cache"

    @property
    def helper_path(self) -> Path:
        """The directory of the checkpoint helper, for PYTHONPATH."""
        return self.home / "helper"

    @property
    def health_rules(self) -> HealthRules:
        health, grace = self.monitoring.health, self.monitoring.health.idle_grace_minutes
        return HealthRules(
            hot_celsius=self.monitoring.alert_thresholds.temperature,
            confirm_readings=health.confirm_readings,
            idle_grace_seconds=None if grace is None else grace * 60,
            idle_fail_seconds=max(health.idle_fail_minutes, grace or 0.0) * 60,
            recover_seconds=health.recover_minutes * 60,
            gap_seconds=max(60.0, 4 * self.monitoring.interval_seconds),
        )

    @property
    def idle_rules(self) -> IdleRules:
        idle = self.monitoring.idle_reclaim
        return IdleRules(
            enabled=idle.enabled,
            window_seconds=idle.window_minutes * 60,
            utilization=idle.utilization,
            warning_seconds=idle.warning_minutes * 60,
            extension_seconds=idle.extension_minutes * 60,
            include_workbenches=idle.include_workbenches,
            interval_seconds=self.monitoring.interval_seconds,
        )

    @property
    def check_rules(self) -> CheckRules:
        checks = self.monitoring.checks
        return CheckRules(
            python=checks.python,
            library=str(self.helper_path),
            limits=checks.limits,
            every_seconds=None if checks.every_hours is None else checks.every_hours * 3600,
            at_once=checks.at_once,
            checks=checks.checks,
        )

    @property
    def pace_rules(self) -> PaceRules:
        pace = self.monitoring.pace
        return PaceRules(
            enabled=pace.enabled,
            hung_seconds=pace.hung_minutes * 60,
            hung_steps=pace.hung_steps,
            slow_factor=pace.slow_factor,
            window_seconds=pace.window_minutes * 60,
        )

    @property
    def retention_rules(self) -> RetentionRules:
        kept = self.retention
        return RetentionRules(
            job_seconds=None if kept.jobs_days is None else kept.jobs_days * DAY,
            job_count=kept.jobs_count,
            job_bytes=kept.jobs_size,
            event_seconds=None if kept.events_days is None else kept.events_days * DAY,
        )

    @property
    def scaling_rules(self) -> ScalingRules:
        scaling = self.scaling
        return ScalingRules(
            enabled=scaling.enabled,
            up=scaling.scale_up_threshold,
            down=scaling.scale_down_threshold,
            interval_seconds=scaling.interval_minutes * 60,
        )

    @property
    def ordering_rules(self) -> OrderingRules:
        scheduling = self.scheduling
        return OrderingRules(
            weights=Weights(**scheduling.weights.model_dump()),
            ageing=scheduling.ageing,
            size_power=scheduling.size_power,
            unknown_margin=scheduling.unknown_margin,
            unknown_seconds=scheduling.unknown_run_hours * 3600,
        )

    @property
    def preemption_rules(self) -> PreemptionRules:
        policies = self.policies
        return PreemptionRules(
            enabled=policies.enable_preemption,
            min_run_seconds=policies.preemption_min_run_minutes * 60,
            margin=policies.preemption_margin,
            patience_seconds=policies.preemption_patience_minutes * 60,
            moves=policies.preemption_moves,
            gang_patience_seconds=None if policies.gang_patience_hours is None else policies.gang_patience_hours * 3600,
        )

    @property
    def control_policies(self) -> Policies:
        """The same settings in the form of the use cases."""
        template = self.program_template
        return Policies(
            limits=self.limits,
            score_time_constant=self.scheduling.score_settling_hours * 3600,
            default_priority=self.scheduling.default_priority,
            max_queue_length=self.scheduling.max_queue_size,
            smallest_share_milli=round(self.scheduling.smallest_share * WHOLE),
            max_retries=self.fault_tolerance.max_retries if self.fault_tolerance.auto_retry_failed_jobs else 0,
            retry_on=self.retry_on,
            ordering=self.scheduling.algorithm,
            blocking=self.scheduling.blocking,
            placement=self.allocation.placement,
            allocation=AllocationRules(
                strategy=Strategy(self.allocation.strategy),
                reserved_ratio=self.allocation.reserved_ratio,
                rack_label=self.allocation.rack_label,
            ),
            hybrid_share=self.hybrid_share,
            ordering_rules=self.ordering_rules,
            preemption=self.preemption_rules,
            backfill=BackfillRules(
                protected=self.scheduling.protected_starts,
                hold_after_seconds=self.scheduling.hold_after_hours * 3600,
                slack=self.scheduling.backfill_slack,
            ),
            tasks=TaskPolicy(
                prefix=template.task_prefix,
                max_auto_gpus=self.policies.max_auto_gpus,
                max_manual_gpus=self.policies.max_manual_gpus,
                command=(*shlex.split(template.command), *template.args),
                env=template.env_vars,
                notify=template.notify,
                restart_unsaved=template.restart_unsaved,
            ),
            scaling=ScalingPolicy(
                min_gpus=self.scaling.min_gpus, max_gpus=self.scaling.max_gpus, rules=self.scaling_rules
            ),
            checkpoints=CheckpointPolicy(
                enabled=self.fault_tolerance.enable_checkpointing,
                interval_seconds=self.fault_tolerance.checkpoint_interval_minutes * 60,
                library=str(self.helper_path),
            ),
            default_quota=self.default_quota,
            default_volume_bytes={
                kind: size
                for kind in VolumeType
                if (size := getattr(self.policies.default_quota.volumes, kind.value)) is not None
            },
            alert_thresholds=self.alert_thresholds,
        )

    @property
    def analysis_rules(self) -> AnalysisRules:
        return AnalysisRules(
            idle_utilization=self.idle_rules.utilization,
            hot_celsius=self.monitoring.alert_thresholds.temperature,
            checkpoint_seconds=self.fault_tolerance.checkpoint_interval_minutes * 60,
        )

    @property
    def retry_on(self) -> tuple[str, ...]:
        """The retried failures of programs: by default none, because a wrong program fails each time."""
        given = self.fault_tolerance
        is_set = "fault_tolerance.auto_retry_failed_jobs" in self.sources
        return (ANY,) if is_set and given.auto_retry_failed_jobs else ()

    @property
    def hybrid_share(self) -> HybridShare | None:
        """The reserved share; None unless the strategy reserves one."""
        given = self.allocation
        wanted = given.reserve_share
        if wanted is None:
            wanted = "allocation.strategy" in self.sources
        if given.strategy != "hybrid" or not wanted:
            return None
        mark = "group:"
        return HybridShare(
            users=tuple(name for name in given.reserved_for if not name.startswith(mark)),
            groups=tuple(name.removeprefix(mark) for name in given.reserved_for if name.startswith(mark)),
        )

    @property
    def alert_thresholds(self) -> Thresholds:
        """The thresholds of the built-in rules. Most of them only count if the configuration sets them."""
        given = self.monitoring.alert_thresholds

        def is_set(key: str) -> bool:
            return key in self.sources

        prefix = "monitoring.alert_thresholds"
        usual = Thresholds()
        return Thresholds(
            temperature_celsius=given.temperature,
            temperature_seconds=given.duration_seconds
            if is_set(f"{prefix}.duration_seconds")
            else usual.temperature_seconds,
            utilization_percent=given.utilization if is_set(f"{prefix}.utilization") else None,
            memory_percent=given.memory if is_set(f"{prefix}.memory") else None,
            power_watts=given.power_watts,
            duration_seconds=given.duration_seconds,
            free_gpus=self.notification.gpu_available_threshold
            if is_set("notification.gpu_available_threshold")
            else None,
        )

    @property
    def default_quota(self) -> dict[JobKind, Quota]:
        """Quotas of new users, by kind with a limit."""
        given = {kind: getattr(self.policies.default_quota, kind.value) for kind in JobKind}
        quotas = {
            kind: Quota(
                gpu_milli=None if limits.gpus is None else round(limits.gpus * WHOLE),
                cpu_milli=None if limits.cpus is None else round(limits.cpus * WHOLE),
                memory_bytes=limits.memory,
            )
            for kind, limits in given.items()
        }
        return {kind: quota for kind, quota in quotas.items() if quota != Quota()}

    @property
    def limits(self) -> Limits:
        hours = self.policies.max_job_duration_hours
        return Limits(
            max_gpus_per_user=self.policies.max_gpus_per_user,
            max_gpus_per_job=self.policies.max_gpus_per_task,
            max_total_gpus=self.policies.max_total_gpus,
            max_seconds=None if hours is None else hours * 3600,
        )
