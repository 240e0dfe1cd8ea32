"""Makes the message for a supervisor from a launch order: account, directories, limits, environment, container.

Refuses orders that this machine can never run. This module writes nothing, and starts nothing but the program that
limits shares of a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from corral.control.ports import NO_LEADERSHIP, Instance, LaunchOrder, LaunchRefused, Leadership
from corral.engines.attempts.accounts import Account, own_account
from corral.engines.attempts.environment import (
    INSTALLATION_VARIABLE,
    MIG_PREFIX,
    RUN_DIR_VARIABLE,
    account_environment,
    can_limit_share,
    is_share,
    job_directories,
    job_environment,
    share_environment,
)
from corral.engines.attempts.instance_messages import ContainerSpec, InstanceSpec, Owner, StorageSpec
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.cgroups import CgroupSupport
from corral.engines.local.containers import image_rights
from corral.engines.local.containers.container_orders import (
    CONTAINER_TMP,
    ContainerMount,
    ContainerOrder,
    ContainerRuntime,
    container_spec,
    is_real,
)
from corral.engines.local.containers.container_runtime import group_below_mount
from corral.engines.local.rundir import TMP, WORK, Layout, is_safe_id
from corral.engines.order_checks import check_registry_image
from corral.engines.storage.storage_specs import StoragePlaces, preparer_spec, storage_specs

#: More than the kernel accepts for a program.
MAX_ORDER_CHARS = 4 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecWriter:
    layout: Layout
    engine: str
    boot_id: str
    base_env: Mapping[str, str]
    cgroups: CgroupSupport
    log_limit_bytes: int
    isolation: Isolation = field(default_factory=Isolation)
    runtime: ContainerRuntime | None = None
    places: StoragePlaces
    #: the server's environment, of which the process that prepares storage gets a part
    environ: Mapping[str, str] = field(default_factory=dict)
    #: installation and term of the server that launches
    leadership: Leadership = NO_LEADERSHIP

    def check(self, order: LaunchOrder) -> Account | None:
        """The account of the job; None means the server's own. Raises LaunchRefused for an order that can never run
        here, before any file is written."""
        check_order(order)
        account = self._account(order)
        if order.image or order.storage:
            for instance in order.instances:
                self.spec(order, instance, account, None)
        return account

    def share_pipe(self, order: LaunchOrder, account: Account | None) -> str:
        """The directory of the program that limits the account's shares of a GPU; "" if they are not enforced. It may
        take seconds: the program runs as the account."""
        limits = self.isolation.share_limits
        # MPS needs the machine's own shared memory, which a container does not see.
        if limits is None or order.image or not any(map(can_limit_share, order.instances)):
            return ""
        return limits.pipe_of(account)

    def spec(
        self, order: LaunchOrder, instance: Instance, account: Account | None, master_port: int | None, pipe: str = ""
    ) -> InstanceSpec:
        """`account` is what `check` returned, `pipe` what `share_pipe` did. Raises LaunchRefused."""
        rank_dir = self.layout.rank_dir(order.attempt_id, instance.rank)
        env = self._env(order, instance, account, master_port, pipe)
        env[RUN_DIR_VARIABLE] = rank_dir
        if self.leadership.installation:
            env[INSTALLATION_VARIABLE] = self.leadership.installation
        scratch = self.places.scratch_of(self.engine, order.attempt_id, instance.rank)
        storage = self._storage(order, instance, scratch)
        has_group = self._has_group(order)
        return InstanceSpec(
            attempt_id=order.attempt_id,
            rank=instance.rank,
            attempt_dir=self.layout.attempt_dir(order.attempt_id),
            rank_dir=rank_dir,
            events_path=self.layout.events_path,
            boot_id=self.boot_id,
            term=self.leadership.term,
            term_path=self.layout.term_path,
            command=list(order.command),
            env=env,
            workdir=order.workdir or "",
            time_limit_seconds=order.time_limit_seconds,
            grace_seconds=order.grace_seconds,
            log_limit_bytes=self.log_limit_bytes,
            memory_bytes=order.memory_bytes,
            cpu_milli=order.cpu_milli,
            max_processes=self.isolation.max_processes,
            cgroup_version=self.cgroups.version if has_group else 0,
            cgroup_memory=self.cgroups.memory if has_group else "",
            cgroup_cpu=self.cgroups.cpu if has_group else "",
            cgroup_pids=self.cgroups.pids if has_group else "",
            cgroup_name=self.group_name(order.attempt_id, instance.rank),
            owner=_owner(account),
            # Root has all privileges already, and the server's own account keeps those that it has.
            no_new_privileges=self.isolation.no_new_privileges and account is not None and account.uid != 0,
            owned=job_directories(order),
            top=self.isolation.top or self.layout.root,
            closed=[self.isolation.top or self.layout.root, self.layout.root, *self.places.roots()],
            venv=order.venv or "",
            container=self._container(order, instance, env, account, storage) if order.image else None,
            storage=storage,
            scratch=scratch,
            volumes=self.places.volumes,
            preparer=preparer_spec(storage, self.places, self.environ),
        )

    def group_name(self, attempt_id: str, rank: int) -> str:
        return f"{self.engine}-{attempt_id}-{rank}"

    def _account(self, order: LaunchOrder) -> Account | None:
        rules = self.isolation.accounts
        return rules.account_of(order.os_user or order.user) if rules is not None else None

    def _has_group(self, order: LaunchOrder) -> bool:
        """Whether the container runs below a control group. If the runtime cannot do that, it limits the container
        itself.
        """
        return not order.image or (self.runtime is not None and self.runtime.takes_group)

    def _env(
        self, order: LaunchOrder, instance: Instance, account: Account | None, master_port: int | None, pipe: str
    ) -> dict[str, str]:
        rank_dir = self.layout.rank_dir(order.attempt_id, instance.rank)
        if order.image:
            # The image has an environment of its own. Most images lack only a home directory that can be written to.
            home = order.env.get("CORRAL_JOB_DIR", CONTAINER_TMP)
            base = {"HOME": home, "TMPDIR": CONTAINER_TMP}
        else:
            base = {**self.base_env, "TMPDIR": os.path.join(rank_dir, TMP)}
            if account is not None:
                base |= account_environment(account)
        env = job_environment(order, instance, base=base, master_port=master_port)
        if order.image and any(map(is_real, instance.gpu_ids)) and MIG_PREFIX not in env["CUDA_VISIBLE_DEVICES"]:
            # Only these GPUs are visible in the container, so CUDA counts them from 0.
            env["CUDA_VISIBLE_DEVICES"] = ",".join(str(place) for place in range(len(instance.gpu_ids)))
        if is_share(instance):
            env |= share_environment(instance, pipe_directory=pipe)
        return env

    def _storage(self, order: LaunchOrder, instance: Instance, scratch: str) -> list[StorageSpec]:
        # Each instance of a gang has its own directory on the node's disk, and so a link of its own.
        suffix = f"-{instance.rank}" if instance.rank else ""
        return storage_specs(order.storage, self.places, scratch=scratch, suffix=suffix)

    def _container(
        self,
        order: LaunchOrder,
        instance: Instance,
        env: Mapping[str, str],
        account: Account | None,
        storage: list[StorageSpec],
    ) -> ContainerSpec:
        rank_dir = self.layout.rank_dir(order.attempt_id, instance.rank)
        if self.runtime is None:
            raise LaunchRefused("jobs with an image need Podman or Docker on this node: an operator installs one")
        assert order.image is not None
        workdir = order.workdir or os.path.join(rank_dir, WORK)
        places = [workdir, *job_directories(order)]
        limited = bool(order.memory_bytes or order.cpu_milli or self.isolation.max_processes)
        group = group_below_mount(self.cgroups, self.group_name(order.attempt_id, instance.rank)) if limited else ""
        return container_spec(
            self.runtime,
            ContainerOrder(
                engine=self.engine,
                attempt_id=order.attempt_id,
                instance=instance,
                image=order.image,
                command=order.command,
                env=env,
                login=order.login,
                workdir=workdir,
                tmp=os.path.join(rank_dir, TMP),
                rank_dir=rank_dir,
                rights=os.path.join(self.layout.root, image_rights.DIRECTORY),
                mounts=(
                    *(ContainerMount(source=path, target=path) for path in places),
                    *(
                        ContainerMount(source=path, target=path, read_only=True, is_servers=True)
                        for path in self._shared()
                    ),
                    *(
                        ContainerMount(source=mount.source, target=mount.target, read_only=mount.read_only)
                        for mount in order.mounts
                    ),
                    *(
                        ContainerMount(source="", target=spec["path"], read_only=spec["read_only"], storage=index)
                        for index, spec in enumerate(storage)
                    ),
                ),
                account=account or own_account(),
                memory_bytes=order.memory_bytes,
                cpu_milli=order.cpu_milli,
                max_processes=self.isolation.max_processes,
                group=group if self.runtime.takes_group else "",
            ),
        )

    def _shared(self) -> list[str]:
        return [path for path in self.isolation.shared if os.path.isdir(path)]


def check_order(order: LaunchOrder) -> None:
    """Raises LaunchRefused for an order that no machine could run."""
    if not is_safe_id(order.attempt_id) or not order.attempt_id.rpartition(".")[2].isdigit():
        raise LaunchRefused(f"attempt id {order.attempt_id!r} is not of the form <job>.<number>")
    if not order.command or not order.command[0]:
        raise LaunchRefused("the command is empty")
    check_registry_image(order)
    if (
        sum(map(len, order.command)) + sum(len(name) + len(value) for name, value in order.env.items())
        > MAX_ORDER_CHARS
    ):
        raise LaunchRefused(f"command and environment are longer than {MAX_ORDER_CHARS} characters together")
    if [instance.rank for instance in order.instances] != list(range(len(order.instances))) or not order.instances:
        raise LaunchRefused("the ranks of the instances must be 0, 1, 2, … without a gap")
    for purpose, path in (("working directory", order.workdir), ("virtual environment", order.venv)):
        if path is not None and not os.path.isabs(path):
            raise LaunchRefused(f"{purpose} {path!r} is not an absolute path")
    if order.image and order.image.startswith("-"):
        raise LaunchRefused(f"image {order.image!r} is not an address")


def _owner(account: Account | None) -> Owner | None:
    if account is None:
        return None
    return Owner(name=account.name, uid=account.uid, gid=account.gid, groups=list(account.groups))
