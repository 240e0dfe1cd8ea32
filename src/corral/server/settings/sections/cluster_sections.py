"""The sections of `corral.yaml` about clusters: one for each engine that reaches another system."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from corral.engines.kubernetes.attempts.pod_rules import parse_claim
from corral.engines.kubernetes.cluster.nodes import GPU_RESOURCES, parse_toleration
from corral.engines.kubernetes.devices.resource_slices import DEVICE_CLASSES
from corral.engines.registry import ENGINES
from corral.engines.slurm.slurm_api.rest_format import VERSIONS, options_of, parse_place
from corral.server.settings.sections.section_base import Duration, GpuCount, Section, Texts
from corral.server.settings.sections.section_rules import absolute_path, each_readable_by, matching, one_of, readable_by

_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")

Engine = Annotated[str, one_of(ENGINES, "engine")]


class SlurmRestSettings(Section):
    """slurmrestd, and the token for its requests."""

    #: http://login1:6820, or unix:/run/slurmrestd.socket
    url: Annotated[str, readable_by(parse_place)]
    #: a file with the token, which the operator keeps up to date
    token_file: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: a command that prints a token: [scontrol, token, lifespan=3600]
    token_command: Texts = ()
    #: user of the token; null: the user named in the token
    user: Annotated[str, Field(max_length=64), matching(_ACCOUNT_NAME, "corral")] | None = None
    #: null: the newest version that slurmrestd and corral both support
    api_version: Annotated[str, one_of(VERSIONS, "api_version")] | None = None

    @model_validator(mode="after")
    def _one_token(self) -> SlurmRestSettings:
        if self.token_file and self.token_command:
            raise ValueError("give token_file or token_command, not both")
        if not (self.token_file or self.token_command or self.url.startswith("unix:")):
            raise ValueError("give token_file or token_command: slurmrestd is asked without a token at a socket only")
        return self


class SlurmSettings(Section):
    """An existing Slurm cluster, and how corral submits its jobs."""

    #: requests go through slurmrestd; null: through Slurm's programs
    rest: SlurmRestSettings | None = None
    #: Slurm's configuration file; null: the default of its programs
    conf: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: directory of Slurm's programs; null: on the PATH
    programs: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: a directory that this server and all nodes share; null: below CORRAL_HOME, which must then be shared
    root: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: partitions that corral uses, in order of preference; empty: all, the default partition first
    partitions: Texts = ()
    #: longest run time that Slurm allows, if accounts or QOS allow less than the partition: 2d
    max_time: Duration | None = None
    #: `--account` of every `sbatch`
    account: Annotated[str, Field(max_length=64)] = ""
    #: `--qos` of every `sbatch`
    qos: Annotated[str, Field(max_length=64)] = ""
    #: Slurm accounts by user, for users who have another one than the default
    accounts: dict[str, str] = Field(default_factory=dict)
    #: CPUs of jobs that request none
    cpus_per_gpu: Annotated[int, Field(ge=1, le=1024)] = 1
    #: GPU models by Slurm's GPU types: {a100: A100-80G}
    models: dict[str, str] = Field(default_factory=dict)
    #: more options for every sbatch, such as --reservation=corral
    options: Texts = ()
    #: the PATH of jobs
    path: str = "/usr/local/bin:/usr/bin:/bin"
    #: the program that runs images on the nodes: apptainer, or its path; empty: jobs with images are refused
    apptainer: Annotated[str, Field(max_length=256)] = ""
    #: a job that waits in Slurm for other jobs for so long is requeued in corral
    pending_seconds: Annotated[float, Field(ge=1, le=3600)] = 20.0

    @model_validator(mode="after")
    def _options_for_rest(self) -> SlurmSettings:
        if self.rest is not None:
            options_of(self.options)
        return self


class KubernetesSettings(Section):
    """An existing Kubernetes cluster, and how corral makes its pods."""

    #: null: KUBECONFIG, then the service account of the server's own pod, then ~/.kube/config
    kubeconfig: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: null: the current context
    context: Annotated[str, Field(min_length=1)] | None = None
    #: the namespace of pods; null: that of the context
    namespace: Annotated[str, matching(_OBJECT_NAME, "corral")] | None = None
    #: groups whose jobs run in a namespace of their own, as {GROUP: NAMESPACE}; all others run in `namespace`
    group_namespaces: dict[str, Annotated[str, matching(_OBJECT_NAME, "team-vision")]] = Field(default_factory=dict)
    #: the image of jobs that name none; empty: such jobs are refused
    default_image: Annotated[str, Field(max_length=1024)] = ""
    #: secrets of the namespace with logins for registries
    pull_credentials: Texts = ()
    #: resources that are GPUs; a name may end with *
    gpu_resources: Texts = GPU_RESOURCES
    #: drivers of Dynamic Resource Allocation whose devices are GPUs, as {DRIVER: DEVICECLASS}, or
    #: {DRIVER/TYPE: DEVICECLASS} for devices of one type
    device_classes: dict[str, Annotated[str, matching(_OBJECT_NAME, "gpu.nvidia.com")]] = Field(
        default_factory=lambda: dict(DEVICE_CLASSES)
    )
    #: labels of the nodes that corral uses; empty: all nodes
    node_selector: dict[str, str] = Field(default_factory=dict)
    #: taints of nodes that corral's pods tolerate: KEY, KEY=VALUE, or either with :EFFECT
    tolerations: Annotated[Texts, each_readable_by(parse_toleration)] = ("nvidia.com/gpu", "amd.com/gpu")
    #: GPU models by the product label of nodes: {NVIDIA-A100-SXM4-80GB: A100-80G}
    models: dict[str, str] = Field(default_factory=dict)
    #: a PriorityClass; empty: the cluster's default
    priority_class: Annotated[str, Field(max_length=253)] = ""
    #: a RuntimeClass, such as nvidia; empty: the cluster's default
    runtime_class: Annotated[str, Field(max_length=253)] = ""
    #: the account of jobs that have no other: not root
    run_as_user: Annotated[int, Field(ge=1, le=2**31)] = 1000
    #: the group of the processes in the pods
    run_as_group: Annotated[int, Field(ge=1, le=2**31)] = 1000
    #: the PersistentVolumeClaim with the directories of jobs and volumes, and where this server has it mounted:
    #: CLAIM:PATH, or CLAIM/DIRECTORY:PATH; null: directories of jobs, with checkpoints and outputs, end with their pods
    home: Annotated[str, readable_by(parse_claim)] | None = None
    #: claims that every job mounts, such as code and data: CLAIM[/DIRECTORY]:PATH[:ro]
    mounts: Annotated[Texts, each_readable_by(parse_claim)] = ()
    #: CPUs of jobs that request none, for each GPU
    cpus_per_gpu: Annotated[float, Field(ge=0, le=1024)] = 0.0
    #: the namespace in which exporters of GPU readings are found by the labels of their pods; null: none is looked for
    exporter_namespace: Annotated[str, matching(_OBJECT_NAME, "gpu-operator")] | None = None
    #: a pod that Kubernetes does not place for so long is requeued in corral
    pending_seconds: Annotated[float, Field(ge=1, le=3600)] = 20.0
    #: an image whose pull fails for so long ends its job
    pull_seconds: Annotated[float, Field(ge=1, le=86_400)] = 300.0
    #: a pod that its node does not start for so long, as it pulls a large image or waits for a volume, is requeued
    starting_seconds: Annotated[float, Field(ge=60, le=604_800)] = 3600.0


class ClusterSettings(Section):
    #: the cluster's name; a list of clusters is allowed
    name: Annotated[str, Field(min_length=1, max_length=63), matching(re.compile(r"[\w.-]+"), "GPU-Cluster-01")] = (
        "local"
    )
    #: the engine that runs the jobs
    engine: Engine = "local"
    #: settings of a Slurm cluster
    slurm: SlurmSettings = SlurmSettings()
    #: settings of a Kubernetes cluster
    kubernetes: KubernetesSettings = KubernetesSettings()
    #: expected number of GPUs; the server warns at its start if it finds another number
    total_gpus: GpuCount | None = None
