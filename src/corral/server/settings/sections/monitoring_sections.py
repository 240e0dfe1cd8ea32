"""The sections about readings, health and notices: `monitoring`, `notification`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.core.monitoring.checks import USUAL, Check
from corral.server.settings.sections.section_base import Fraction, Section, Texts
from corral.server.settings.sections.section_rules import (
    each_readable_by,
    readable_by,
)
from corral.telemetry.scraper import readable_target


class AlertThresholds(Section):
    """Readings that raise alerts. Utilisation, memory and power do so if the configuration sets them."""

    #: °C above which a GPU is suspect and an alert fires
    temperature: Annotated[float, Field(ge=0, le=150)] = 85
    #: percent of use above which an alert fires, if the configuration sets it
    utilization: Annotated[float, Field(ge=0, le=100)] = 95
    #: percent of memory above which an alert fires, if the configuration sets it
    memory: Annotated[float, Field(ge=0, le=100)] = 90
    #: watts above which an alert fires
    power_watts: Annotated[float, Field(gt=0, le=100_000)] | None = None
    #: how long a threshold of the configuration must be crossed
    duration_seconds: Annotated[float, Field(ge=0, le=2_592_000)] = 60


class HealthSettings(Section):
    """When a GPU becomes suspect or failed. It is too hot above `alert_thresholds.temperature`."""

    #: bad readings in a row after which a suspect GPU counts as failed
    confirm_readings: Annotated[int, Field(ge=1, le=1000)] = 3
    #: idle time of a GPU under a running job after which it is suspect; null: idleness does not affect health
    idle_grace_minutes: Annotated[float, Field(gt=0, le=10_080)] | None = 5
    #: idle time after which the GPU has failed, and its job is moved; never before it is suspect
    idle_fail_minutes: Annotated[float, Field(gt=0, le=10_080)] = 30
    #: time without faults after which a suspect GPU is healthy again; doubled with each relapse within a day
    recover_minutes: Annotated[float, Field(gt=0, le=10_080)] = 5


class IdleReclaimSettings(Section):
    """Handling of jobs that hold GPUs and do not use them. Off by default."""

    #: warn jobs that hold GPUs without using them, and stop them then
    enabled: bool = False
    #: length of the observed period
    window_minutes: Annotated[float, Field(gt=0, le=10_080)] = 30
    #: a GPU is idle below this utilisation, in the overview, in the analysis and in reports, too; a job is idle if the
    #: mean utilisation of its GPUs is below it
    utilization: Fraction = 0.02
    #: from the warning to the stop
    warning_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10
    #: extra time that the owner can request once per warning
    extension_minutes: Annotated[float, Field(gt=0, le=10_080)] = 60
    #: workbenches are often idle while their user thinks
    include_workbenches: bool = False


class CheckSettings(Section):
    """Active checks of GPUs, which run as jobs."""

    #: hours between two scheduled checks of a GPU, made while it is idle and no job waits; null: none
    every_hours: Annotated[float, Field(gt=0, le=8760)] | None = None
    #: scheduled checks at the same time
    at_once: Annotated[int, Field(ge=1, le=1000)] = 1
    #: what is checked unless a request names it: compute, memory, pcie, disk, network, dcgm
    checks: Annotated[tuple[Annotated[Check, Field(strict=False)], ...], Field(strict=False, min_length=1)] = USUAL
    #: the Python on the nodes that runs the checks; one with PyTorch
    python: Annotated[str, Field(min_length=1, max_length=4096)] = "python3"
    #: whether `reset-health` of a suspect or failed GPU starts a check, which returns the GPU if it passes
    before_return: bool = False
    #: the least values by GPU model and metric, such as {H200: {compute_tflops: 500}}
    limits: dict[str, dict[str, Annotated[float, Field(gt=0)]]] = Field(default_factory=dict)


class PaceSettings(Section):
    """Trainings that hang or slow down, judged by the steps that `corral.checkpoint` reports."""

    #: follow the steps of running jobs, and notify the owners of jobs that hang or slow down
    enabled: bool = True
    #: the least time without a step that counts as a hang
    hung_minutes: Annotated[float, Field(gt=0, le=10_080)] = 20
    #: a hang is also at least so many times as long as a step usually takes
    hung_steps: Annotated[float, Field(ge=1, le=1_000_000)] = 20
    #: a training is slow below this part of its usual steps per minute
    slow_factor: Fraction = 0.5
    #: over how long steps per minute are measured
    window_minutes: Annotated[float, Field(gt=0, le=1440)] = 10


class MonitoringSettings(Section):
    #: between two readings of the GPUs
    interval_seconds: Annotated[float, Field(ge=0.5, le=3600)] = 5
    #: retention of raw readings
    raw_retention_hours: Annotated[float, Field(gt=0, le=8760)] = 24
    #: retention of means per minute
    metrics_retention_days: Annotated[float, Field(gt=0, le=3650)] = 30
    #: retention of means per hour
    hourly_retention_days: Annotated[float, Field(gt=0, le=36_500)] = 365
    #: addresses of exporters on other nodes, or NODE=ADDRESS: corral's own or NVIDIA's DCGM exporter
    scrape: Annotated[Texts, each_readable_by(readable_target)] = ()
    alert_thresholds: AlertThresholds = AlertThresholds()
    health: HealthSettings = HealthSettings()
    idle_reclaim: IdleReclaimSettings = IdleReclaimSettings()
    pace: PaceSettings = PaceSettings()
    checks: CheckSettings = CheckSettings()


def mail_server(url: str) -> str:
    """Raises ValueError unless it is an Apprise URL of a mail server."""
    if not url.startswith(("mailto://", "mailtos://")):
        raise ValueError("must be an Apprise URL of a mail server: mailtos://user:password@mail.example.org")
    return url


class NotificationSettings(Section):
    #: Apprise URLs of channels that get all notices: config-1, config-2, …
    channels: Texts = ()
    #: Apprise URL of the mail server that sends users the items of their inbox, such as
    #: mailtos://user:password@mail.example.org?from=corral@example.org; null: users get no mail
    personal_mail: Annotated[str, readable_by(mail_server)] | None = None
    #: users may have their inbox sent to chats and URLs outside of this network
    personal_hooks: bool = True
    #: hosts and networks inside that those URLs may reach, too: chat.example.org, *.example.org, 10.1.0.0/16
    personal_hook_hosts: Texts = ()
    #: number of free GPUs of a pool that causes a notice; only when it is set
    gpu_available_threshold: Annotated[int, Field(ge=0, le=1_000_000)] = 1
