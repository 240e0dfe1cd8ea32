"""The sections about what users and their jobs may do: `policies`, `fault_tolerance`, `program_template`."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

from pydantic import AfterValidator, Field

from corral.core.quantities import MAX_COUNT
from corral.server.schemas.base import environment
from corral.server.settings.sections.section_base import GpuCount, Section, Size, Texts
from corral.server.settings.sections.section_rules import (
    matching,
    readable_by,
    warning_way,
)

_JOB_NAME_PART = re.compile(r"[A-Za-z0-9_-]*")


class KindQuotaSettings(Section):
    #: GPUs of a new user's jobs of this kind
    gpus: Annotated[float, Field(ge=0, le=MAX_COUNT)] | None = None
    #: CPUs of a new user's jobs of this kind
    cpus: Annotated[float, Field(ge=0, le=MAX_COUNT)] | None = None
    #: memory of a new user's jobs of this kind
    memory: Size | None = None


class VolumeQuotaSettings(Section):
    #: sizes of a new user's block volumes, together
    block: Size | None = None
    #: sizes of a new user's filesystem volumes, together
    filesystem: Size | None = None
    #: sizes of a new user's local volumes, together
    local: Size | None = None
    #: sizes of a new user's object volumes, together
    object: Size | None = None


class DefaultQuotaSettings(Section):
    """Quota of new users; limits that are left out are none. Existing users keep their quotas."""

    workbench: KindQuotaSettings = KindQuotaSettings()
    training: KindQuotaSettings = KindQuotaSettings()
    distributed: KindQuotaSettings = KindQuotaSettings()
    preset: KindQuotaSettings = KindQuotaSettings()
    volumes: VolumeQuotaSettings = VolumeQuotaSettings()


class PolicySettings(Section):
    #: GPUs that one user may hold
    max_gpus_per_user: GpuCount | None = None
    #: GPUs that one job may request
    max_gpus_per_task: GpuCount | None = None
    #: GPUs that all jobs may hold together
    max_total_gpus: GpuCount | None = None
    #: longest run time; a job beyond it ends as `timed_out`
    max_job_duration_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    #: whether a running job may be sent back to its queue for one that is before it
    enable_preemption: bool = True
    #: minimum run time of an attempt before it may be preempted
    preemption_min_run_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10
    #: in queues whose order preempts: the margin, as a share of the victim's cost, by which a job must be ahead
    preemption_margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: in queues whose order preempts and looks at run times: how long a job waits before it preempts
    preemption_patience_minutes: Annotated[float, Field(ge=0, le=10_080)] = 5
    #: in queues whose order preempts: whether jobs with checkpoints may be moved to defragment free GPUs
    preemption_moves: bool = False
    #: the time of day at which jobs that have saved are moved so that whole nodes are free; null: only on request
    defragment_at: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    #: waiting time after which a gang takes back nodes from younger jobs that passed it and write checkpoints;
    #: null: never
    gang_patience_hours: Annotated[float, Field(gt=0, le=8760)] | None = 4.0
    #: GPUs that `corral allocate TASK` takes without --gpus, and the maximum of --gpus
    max_auto_gpus: GpuCount = 2
    #: GPUs of a user's tasks with `--gpus N`, together
    max_manual_gpus: GpuCount = 6
    default_quota: DefaultQuotaSettings = DefaultQuotaSettings()


class FaultToleranceSettings(Section):
    #: jobs get the interval for saving, the checkpoint to resume from and the helper; off: only a checkpoint
    #: directory
    enable_checkpointing: bool = True
    #: the interval for saving of jobs without `--checkpoint-interval`
    checkpoint_interval_minutes: Annotated[float, Field(gt=0, le=10_080)] = 10
    #: retry failures that are not the program's own; if the configuration sets it, failures of programs, too
    auto_retry_failed_jobs: bool = True
    #: retries of jobs that set none
    max_retries: Annotated[int, Field(ge=0, le=100)] = 3


class ProgramTemplateSettings(Section):
    #: the program of `corral start-program`
    command: Annotated[str, Field(min_length=1), readable_by(shlex.split)] = "python train.py"
    #: the arguments; `{gpu_list}` becomes the GPU indexes, `{gpu_count}` their number
    args: Texts = ("--gpus", "{gpu_list}")
    #: the environment variables, with the same placeholders
    env_vars: Annotated[dict[str, str], AfterValidator(environment)] = Field(
        default_factory=lambda: {"CUDA_VISIBLE_DEVICES": "{gpu_list}"}
    )
    #: how a program is warned before it is started again with other GPUs, or stopped: restart: SIGTERM; file: a file
    #: named by CORRAL_NOTICE_FILE; SIGUSR1 and the like: this signal
    notify: Annotated[str, readable_by(warning_way)] = "restart"
    #: programs that never wrote a checkpoint may be restarted for a resize
    restart_unsaved: bool = False
    #: prefix of the names of tasks' jobs
    task_prefix: Annotated[str, Field(max_length=32), matching(_JOB_NAME_PART, "task_")] = "task_"
