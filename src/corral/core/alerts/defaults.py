"""The built-in alert rules, as data. Their thresholds follow the settings of the installation.

Rules that an operator must act on are enabled; rules that are merely interesting are disabled: a busy GPU is wanted,
and most frameworks fill the GPU's memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.core.alerts.model import AlertRule, Comparison, Severity


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """The settings of the installation for alerts. Thresholds that are None have a default and no alert."""

    temperature_celsius: float = 85.0
    #: how long a GPU may be too hot
    temperature_seconds: float = 15.0
    utilization_percent: float | None = None
    memory_percent: float | None = None
    power_watts: float | None = None
    #: how long these three may be crossed
    duration_seconds: float = 60.0
    #: alert when so many GPUs of a pool are free; None: no alert
    free_gpus: int | None = None


def builtin_rules(thresholds: Thresholds) -> tuple[AlertRule, ...]:
    """The built-in rules; installations can change them and switch them off."""
    rules = (
        *_rules_of_readings(thresholds),
        *_rules_of_trouble(),
        *_rules_of_work(thresholds),
        *_rules_of_storage(),
    )
    return tuple(replace(rule, builtin=True) for rule in rules)


def _rules_of_readings(thresholds: Thresholds) -> tuple[AlertRule, ...]:
    """Rules on single readings."""
    return (
        AlertRule(
            name="gpu-temperature",
            signal="gpu-temperature",
            threshold=thresholds.temperature_celsius,
            for_seconds=thresholds.temperature_seconds,
            clear_seconds=60,
            severity=Severity.CRITICAL,
            description="A GPU is too hot: look at its fans and the air around it before it throttles or fails.",
        ),
        AlertRule(
            name="gpu-power",
            signal="gpu-power",
            threshold=105,
            for_seconds=120,
            clear_seconds=300,
            description="A GPU draws clearly more than its power limit allows.",
        ),
        _set_by_the_file(
            AlertRule(
                name="gpu-power-watts",
                signal="gpu-power-watts",
                threshold=700,
                for_seconds=120,
                description="A GPU draws more power than its node or rack is meant for.",
            ),
            thresholds.power_watts,
            thresholds,
        ),
        _set_by_the_file(
            AlertRule(
                name="gpu-utilization",
                signal="gpu-utilization",
                threshold=95,
                for_seconds=3600,
                clear_seconds=600,
                description="A GPU is as busy as it can be.",
            ),
            thresholds.utilization_percent,
            thresholds,
        ),
        _set_by_the_file(
            AlertRule(
                name="gpu-memory",
                signal="gpu-memory",
                threshold=90,
                for_seconds=600,
                clear_seconds=600,
                description="A GPU's memory is nearly full: its job may soon run out of it.",
            ),
            thresholds.memory_percent,
            thresholds,
        ),
    )


def _set_by_the_file(rule: AlertRule, threshold: float | None, thresholds: Thresholds) -> AlertRule:
    """A rule that is on, as a warning, if the configuration sets its threshold; otherwise it is off."""
    if threshold is None:
        return replace(rule, severity=Severity.INFO, enabled=False)
    return replace(
        rule, threshold=threshold, for_seconds=thresholds.duration_seconds, clear_seconds=thresholds.duration_seconds
    )


def _rules_of_trouble() -> tuple[AlertRule, ...]:
    """Rules on failures and idle GPUs."""
    return (
        AlertRule(
            name="gpu-errors",
            signal="gpu-errors",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            clear_seconds=60,
            description="A GPU reported XID or uncorrectable memory errors.",
        ),
        AlertRule(
            name="gpu-suspect",
            signal="gpu-health",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            for_seconds=60,
            clear_seconds=60,
            description="A GPU is suspected: it takes no new work until it has been without fault for a while.",
        ),
        AlertRule(
            name="gpu-failed",
            signal="gpu-health",
            comparison=Comparison.AT_LEAST,
            threshold=2,
            clear_seconds=30,
            severity=Severity.CRITICAL,
            description="A GPU has failed or is lost. Its jobs were moved away; it waits for a self-test or a reset.",
        ),
        AlertRule(
            name="node-lost",
            signal="node-lost",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            clear_seconds=30,
            severity=Severity.CRITICAL,
            description="A node does not answer any more.",
        ),
        AlertRule(
            name="gpu-idle",
            signal="gpu-idle",
            comparison=Comparison.AT_LEAST,
            threshold=30,
            clear_seconds=60,
            description="A job holds a GPU and has not used it for a long time: it hangs, or its owner forgot it.",
        ),
    )


def _rules_of_work(thresholds: Thresholds) -> tuple[AlertRule, ...]:
    """Rules on queues and jobs."""
    return (
        AlertRule(
            name="plan-failed",
            signal="plan-failed",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            severity=Severity.CRITICAL,
            description="A queue cannot be planned because of an error in corral: its jobs wait, others go on.",
        ),
        AlertRule(
            name="queue-length",
            signal="queue-length",
            threshold=100,
            for_seconds=300,
            clear_seconds=300,
            description="Many jobs wait in one queue.",
        ),
        AlertRule(
            name="queue-wait",
            signal="queue-wait",
            threshold=24 * 60,
            for_seconds=300,
            clear_seconds=300,
            description="A job waits for more than a day.",
        ),
        AlertRule(
            name="job-failed",
            signal="job-failed",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            clear_seconds=0,
            severity=Severity.INFO,
            notify_resolved=False,
            description="A job failed for good; its owner sees this alert too.",
        ),
        AlertRule(
            name="gpus-free",
            signal="gpus-free",
            comparison=Comparison.AT_LEAST,
            threshold=thresholds.free_gpus if thresholds.free_gpus is not None else 1,
            for_seconds=60,
            clear_seconds=60,
            severity=Severity.INFO,
            enabled=thresholds.free_gpus is not None,
            notify_resolved=False,
            description="GPUs of a pool are free.",
        ),
    )


def _rules_of_storage() -> tuple[AlertRule, ...]:
    """Rules on volumes and the store."""
    return (
        AlertRule(
            name="row-unreadable",
            signal="row-unreadable",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            severity=Severity.CRITICAL,
            description="A row of the store is damaged and left out: restore it from a backup, or delete it.",
        ),
        AlertRule(
            name="no-standby",
            signal="no-standby",
            comparison=Comparison.AT_LEAST,
            threshold=1,
            for_seconds=30,
            description="Several servers share the store, but only the leader is alive: start another one.",
        ),
        AlertRule(
            name="volume-nearly-full",
            signal="volume-full",
            comparison=Comparison.AT_LEAST,
            threshold=90,
            severity=Severity.INFO,
            notify_resolved=False,
            description="A volume is nearly full; its owner sees this alert too.",
        ),
        AlertRule(
            name="volume-full",
            signal="volume-full",
            comparison=Comparison.AT_LEAST,
            threshold=100,
            description="A volume is full: jobs that would write to it wait for room; its owner sees this alert too.",
        ),
    )
