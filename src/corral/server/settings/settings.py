"""Settings: the only reader of the configuration file and of the environment.

Decides which source wins (command line, environment, file, default) and records the source of every value for errors
and `corral config show`. The sections decide which values are valid.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

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
from corral.server.http.validation import Location, dotted, findings
from corral.server.settings.backup_section import BackupSettings
from corral.server.settings.cluster_sections import ClusterSettings
from corral.server.settings.config_file import ConfigError, ConfigProblem, ConfigTree, parse_config, read_text, scalar
from corral.server.settings.disk_sections import DiskSettings, ReadingSettings, RetentionSettings
from corral.server.settings.gpu_manager_keys import gpu_manager_tree, is_gpu_manager_config
from corral.server.settings.high_availability import HighAvailabilitySettings
from corral.server.settings.sections import (
    AllocationSettings,
    FaultToleranceSettings,
    ImageSettings,
    LocalSettings,
    MonitoringSettings,
    NotificationSettings,
    PolicySettings,
    ProgramTemplateSettings,
    ScalingSettings,
    SchedulingSettings,
    ServerSettings,
    StorageSettings,
    WorkbenchSettings,
)

#: Environment variables that set one key each.
ENVIRONMENT_KEYS: Mapping[str, tuple[str, str]] = {
    "CORRAL_HOST": ("server", "host"),
    "CORRAL_PORT": ("server", "port"),
    "CORRAL_LOG_FORMAT": ("server", "log_format"),
    "CORRAL_LOG_LEVEL": ("server", "log_level"),
    "CORRAL_DATABASE": ("storage", "database"),
    "CORRAL_HIGH_AVAILABILITY": ("high_availability", "enabled"),
    "CORRAL_ALLOW_ROOT": ("local", "allow_root"),
    "CORRAL_VIRTUAL_GPUS": ("local", "virtual_gpus"),
    "CORRAL_VIRTUAL_NODES": ("local", "virtual_nodes"),
}
_MIN_PASSWORD_LENGTH = 8
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
        """Failures of programs are retried only if the configuration says so: a wrong program fails each time."""
        given = self.fault_tolerance
        is_set = "fault_tolerance.auto_retry_failed_jobs" in self.sources
        return (ANY,) if is_set and given.auto_retry_failed_jobs else ()

    @property
    def hybrid_share(self) -> HybridShare | None:
        """None unless the strategy reserves a share by itself."""
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
        """Of most rules, the threshold counts only if the configuration sets it."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingLine:
    """One line of `corral config show`."""

    key: str
    value: Any
    source: str


def load_settings(
    *,
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The effective settings. `overrides` are dotted keys from the command line, including `home`.

    Raises ConfigError with all errors at once.
    """
    env = os.environ if environ is None else environ
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    home, home_source = _home(given.pop("home", None), env)
    path = config or (Path(env["CORRAL_CONFIG"]) if env.get("CORRAL_CONFIG") else None)
    if path is None and (home / "corral.yaml").is_file():
        path = home / "corral.yaml"
    merged = _Merged(read_settings(path) if path is not None else ConfigTree(name="defaults"))
    for variable, key in ENVIRONMENT_KEYS.items():
        if env.get(variable):
            merged.put(key, scalar(env[variable]), f"environment {variable}")
    for dotted_key, value in given.items():
        merged.put(tuple(dotted_key.split(".")), value, "command line")
    sections = merged.checked()
    return Settings(
        **{name: getattr(sections, name) for name in SettingsFile.model_fields},
        home=home,
        config_file=path,
        bootstrap_password=_bootstrap_password(env),
        sources={"home": home_source, **merged.sources()},
        notes=merged.notes,
    )


def read_settings(path: Path) -> ConfigTree:
    """The values of a `corral.yaml`, or of a GPU manager's JSON file under their new keys."""
    text, name = read_text(path), str(path)
    if path.suffix == ".json" and is_gpu_manager_config(text, name, SettingsFile.model_fields):
        return gpu_manager_tree(text, name)
    return parse_config(text, name)


def check_config(path: Path) -> list[ConfigProblem]:
    """The errors in a file; an empty list means that a server would start with it."""
    try:
        _Merged(read_settings(path)).checked()
    except ConfigError as error:
        return list(error.problems)
    return []


def show_settings(settings: Settings) -> list[SettingLine]:
    """Every effective value with its source. Secrets are not shown."""
    lines = [SettingLine(key="home", value=str(settings.home), source=settings.sources.get("home", "default"))]
    for key, value in _leaves(settings.model_dump(mode="json", include=set(SettingsFile.model_fields)), ()):
        shown = without_password(value) if key[-1] in ("database", "metrics") else value
        if "channels" in key:
            # Any part of such an address may be the secret: only its kind is shown.
            shown = _kind_of_address(value)
        lines.append(SettingLine(key=dotted(key), value=shown, source=_source(settings.sources, key)))
    return lines


def _kind_of_address(value: Any) -> Any:
    if isinstance(value, list):
        return [_kind_of_address(item) for item in value]
    return f"{value.partition('://')[0]}://***" if isinstance(value, str) and "://" in value else value


def without_password(url: Any) -> Any:
    """A URL as it may be shown or logged."""
    if isinstance(url, str) and "://" in url:
        scheme, _, rest = url.partition("://")
        login, at, place = rest.rpartition("@")
        if at:
            return f"{scheme}://{login.partition(':')[0]}:***@{place}" if ":" in login else f"{scheme}://***@{place}"
    return url


def default_home(environ: Mapping[str, str]) -> Path:
    """The user's data directory."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "corral"
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "corral"


def _home(given: Any, env: Mapping[str, str]) -> tuple[Path, str]:
    if given is not None:
        return Path(given).absolute(), "command line"
    if env.get("CORRAL_HOME"):
        return Path(env["CORRAL_HOME"]).absolute(), "environment CORRAL_HOME"
    return default_home(env), "default"


def _bootstrap_password(env: Mapping[str, str]) -> SecretStr | None:
    password = env.get("CORRAL_BOOTSTRAP_PASSWORD")
    if not password:
        return None
    if len(password) < _MIN_PASSWORD_LENGTH:
        message = f"must have at least {_MIN_PASSWORD_LENGTH} characters"
        raise ConfigError([ConfigProblem(origin="environment CORRAL_BOOTSTRAP_PASSWORD", key="", message=message)])
    return SecretStr(password)


class _Merged:
    """The file's values with those of the environment and the command line on top."""

    def __init__(self, tree: ConfigTree) -> None:
        self._tree = tree
        self._values: dict[str, Any] = dict(tree.values)
        self._origins: dict[Location, str] = {}
        self.notes = tree.notes
        # A file with one cluster needs no list; the settings always have a list.
        self._single_cluster = isinstance(self._values.get("cluster"), dict)
        if self._single_cluster:
            self._values["cluster"] = [self._values["cluster"]]

    def put(self, key: tuple[str, ...], value: Any, origin: str) -> None:
        *parents, last = key
        place = self._values
        for parent in parents:
            inner = place.get(parent)
            place[parent] = place = dict(inner) if isinstance(inner, dict) else {}
        place[last] = value
        self._origins[key] = origin
        if key[0] == "local" and last.startswith("virtual_"):
            # A source with precedence also replaces the alternative key.
            other = "virtual_nodes" if last == "virtual_gpus" else "virtual_gpus"
            if ("local", other) not in self._origins:
                place.pop(other, None)

    def checked(self) -> SettingsFile:
        try:
            settings = SettingsFile.model_validate(self._values)
        except ValidationError as error:
            problems = [
                ConfigProblem(origin=self._origin(found.location), key=self._key(found.location), message=found.message)
                for found in findings(error.errors(), SettingsFile)
            ]
            # in the order of the file; errors of other sources first
            raise ConfigError(sorted(problems, key=lambda problem: problem.line)) from None
        self._check_clusters(settings)
        return settings

    def sources(self) -> dict[str, str]:
        named = {dotted(place): f"{self._tree.name}:{line}" for place, line in self._tree.lines.items() if place}
        named.update({dotted(place): origin for place, origin in self._origins.items()})
        return named

    def _check_clusters(self, settings: SettingsFile) -> None:
        local = [cluster for cluster in settings.cluster if cluster.engine == "local"]
        if len(local) > 1:
            message = f"only one cluster can be local to this machine, got {len(local)}"
            raise ConfigError([ConfigProblem(origin=self._origin(("cluster",)), key="cluster", message=message)])

    def _file_place(self, location: Location) -> Location:
        """The key as in the file, where a single cluster is no list."""
        if self._single_cluster and location[:2] == ("cluster", 0):
            return ("cluster", *location[2:])
        return location

    def _origin(self, location: Location) -> str:
        for length in range(len(location), 0, -1):
            if location[:length] in self._origins:
                return self._origins[location[:length]]
        nested = next((origin for place, origin in self._origins.items() if place[: len(location)] == location), None)
        file_place = self._file_place(location)
        return nested if nested and file_place not in self._tree.lines else self._tree.origin(file_place)

    def _key(self, location: Location) -> str:
        return dotted(self._file_place(location))


def _leaves(value: Any, key: Location) -> list[tuple[Location, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for name, inner in value.items() for leaf in _leaves(inner, (*key, name))]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        inner_key = key if len(value) == 1 else None
        return [leaf for index, inner in enumerate(value) for leaf in _leaves(inner, inner_key or (*key, index))]
    return [(key, value)]


def _source(sources: Mapping[str, str], key: Location) -> str:
    """The source of a value; the source of a list or mapping applies to its items."""
    return sources.get(dotted(key), "default")
