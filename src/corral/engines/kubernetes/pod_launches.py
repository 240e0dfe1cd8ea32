"""Creates pods for an accepted order: records the attempt, and creates its pods and secrets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from corral.control.ports import AttemptTaken, EngineUnavailable, LaunchOrder
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.pod_refs import namespace_of, ref, ref_of
from corral.engines.kubernetes.attempts import pod_attempt
from corral.engines.kubernetes.attempts.job_accounts import JobAccounts
from corral.engines.kubernetes.attempts.pod_attempt import Attempt, clock
from corral.engines.kubernetes.attempts.pod_commands import EarlierPod, PodCommands
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pods import PodOwner, make_pod, make_secrets, pod_name
from corral.engines.kubernetes.attempts.records import Records
from corral.engines.kubernetes.cluster.cache import NodeCache
from corral.engines.kubernetes.cluster.nodes import gpus_asked
from corral.engines.kubernetes.devices.node_devices import GpuDevices
from corral.engines.kubernetes.devices.resource_claims import make_resource_claim
from corral.engines.kubernetes.devices.resource_slices import Device
from corral.engines.storage.storage_specs import StoragePlaces


class PodLaunches:
    """Safe for several threads, as long as an attempt is launched by one at a time."""

    def __init__(
        self,
        *,
        records: Records,
        commands: PodCommands,
        rules: PodRules,
        accounts: JobAccounts,
        storage: StoragePlaces | None,
        nodes: NodeCache,
        devices: GpuDevices,
        remove_pod: Callable[[str], None],
    ) -> None:
        """`remove_pod` is called for a pod that must be gone before the launch can be tried again."""
        self._records = records
        self._commands = commands
        self._rules = rules
        self._accounts = accounts
        self._storage = storage
        self._nodes = nodes
        self._devices = devices
        self._remove_pod = remove_pod

    def record(self, order: LaunchOrder) -> Attempt:
        """Stored before anything is created. Raises AttemptTaken."""
        if self._records.was_ordered(order.attempt_id):
            raise AttemptTaken(order.attempt_id)
        installation = self._records.installation
        namespace = self._rules.namespace_of(order.group)
        names = tuple(
            ref(namespace, pod_name(installation, order.attempt_id, instance.rank), self._rules.namespace)
            for instance in order.instances
        )
        return pod_attempt.create(self._records, order, names, clock())

    def create(self, order: LaunchOrder, attempt: Attempt, term: int) -> None:
        """Create all pods, until the attempt is over. Raises NameTaken, DeviceGone, LaunchRefused and
        EngineUnavailable."""
        account = self._accounts.account_of(order)
        self._accounts.give(order, account)
        owner = PodOwner(
            installation=self._records.installation,
            term=term,
            key=attempt.key,
            uid=account.uid,
            gid=account.gid,
        )
        # As recorded: the group may have another namespace by now.
        rules = replace(self._rules, namespace=namespace_of(attempt.pods[0], self._rules.namespace))
        devices = [self._devices.of_plan(instance.node, instance.gpu_ids) for instance in order.instances]
        pods = self._pods(order, rules, owner, devices)
        for secret in make_secrets(order, rules, owner):
            self._records.note_secret(ref_of(secret, self._rules.namespace))
            self._commands.create_secret(secret)
        for pod, claimed in zip(pods, devices, strict=True):
            if attempt.is_over:
                break
            try:
                created = self._commands.create(pod)
            except EarlierPod as earlier:
                self._remove_pod(ref_of(pod, self._rules.namespace))
                raise EngineUnavailable(f"Kubernetes: {earlier}: it is removed") from earlier
            if claimed:
                # After the pod, which it belongs to: a claim without a pod would be left behind by a crash. Until it is
                # there, Kubernetes places the pod nowhere.
                self._commands.create_claim(make_resource_claim(created, claimed), created)

    def _pods(
        self, order: LaunchOrder, rules: PodRules, owner: PodOwner, devices: Sequence[Sequence[Device]]
    ) -> list[Json]:
        return [
            make_pod(
                order,
                instance,
                rules,
                owner,
                gpus={} if claimed else gpus_asked(self._nodes.get(instance.node), instance.gpu_ids, rules.fleet),
                places=self._storage,
                devices=claimed,
            )
            for instance, claimed in zip(order.instances, devices, strict=True)
        ]
