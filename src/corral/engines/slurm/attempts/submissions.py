"""Makes a Slurm job from a launch order: writes the files that the nodes of the attempt read, and the submission.

When a job is submitted, and what follows from Slurm's answer, is decided by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.control.ports import AttemptTaken, LaunchOrder
from corral.engines.attempts.accounts import own_account
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.slurm.attempts import scripts, slurm_attempt
from corral.engines.slurm.attempts.attempt_files import give, lay_out
from corral.engines.slurm.attempts.installation import job_secret
from corral.engines.slurm.attempts.job_orders import SlurmRules, instance_environment, place_of, run_as, submission
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.storage import slurm_specs
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.attempts.tracking import asked
from corral.engines.slurm.cluster.partitions import Partition
from corral.engines.slurm.slurm_api.commands import Slurm, Submission
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmNode
from corral.engines.storage.storage_specs import StoragePlaces


@dataclass(kw_only=True, slots=True)
class Submissions:
    slurm: Slurm
    layout: Layout
    rules: SlurmRules
    #: the submitter of an attempt's Slurm job; None means the server's own account
    account_of: Callable[[LaunchOrder], Submitter | None]
    storage: StoragePlaces | None
    #: below this directory, the path to a job's directories may be opened for its account
    top: str
    #: corral's script on the nodes
    program: str
    #: the beginning of the names of this engine's Slurm jobs
    mark: str
    #: makes the secrets in these names
    key: bytes
    #: the nodes of the last observation, by name
    known_nodes: Mapping[str, SlurmNode] = field(default_factory=dict)

    def nodes_with(self, names: Iterable[str]) -> Mapping[str, SlurmNode]:
        """All known nodes. Slurm is queried again if one of `names` is not among them."""
        if any(name not in self.known_nodes for name in names):
            self.known_nodes = {node.name: node for node in asked(self.slurm.nodes)}
        return self.known_nodes

    def address_of(self, node: str) -> str:
        known = self.nodes_with([node])
        return known[node].address if node in known else node

    def specs(self, order: LaunchOrder) -> dict[int, list[StorageSpec]]:
        """The storage of each instance, by rank. Raises LaunchRefused."""
        return {
            instance.rank: slurm_specs(order.storage, self.storage, instance.rank, order.user)
            for instance in order.instances
        }

    def check_new(self, order: LaunchOrder) -> None:
        """Raises AttemptTaken."""
        if self.layout.was_ordered(order.attempt_id):
            raise AttemptTaken(order.attempt_id)

    def prepare(
        self, order: LaunchOrder, specs: Mapping[int, list[StorageSpec]], log_lines: Sequence[str] = ()
    ) -> Attempt:
        """Write all files that the nodes need; `log_lines` become the first lines of the log. Raises AttemptTaken."""
        self.check_new(order)
        submitter, first = self.account_of(order), order.instances[0].node
        owner = self._owner(submitter)
        lay_out(
            self.layout,
            order,
            self.program,
            specs,
            lambda instance: instance_environment(
                order, instance, self.rules, submitter, master_addr=self.address_of(first)
            ),
            log_lines,
            images=self.rules.images,
            home=(submitter.account if submitter is not None else own_account()).home,
        )
        if submitter is not None:
            top = self.top or self.layout.root
            give(self.layout, order, specs[0], submitter, top, self.storage.volumes if self.storage else "")
        return self.create(order, owner)

    def create(self, order: LaunchOrder, owner: JobOwner) -> Attempt:
        """Records the attempt."""
        secret = job_secret(self.key, order.attempt_id)
        return slurm_attempt.create(self.layout, order, slurm_attempt.clock(), owner, secret)

    def submission(self, order: LaunchOrder, attempt: Attempt, partitions: Sequence[Partition]) -> Submission:
        """Raises LaunchRefused and PartitionClosed."""
        place = place_of(order, self.rules, partitions)
        script = scripts.batch_script(order, self.layout, self.program)
        name = attempt.job_name(self.mark)
        nodes = self.nodes_with([instance.node for instance in order.instances])
        return submission(order, self.rules, self.account_of(order), place, nodes, name=name, script=script)

    def _owner(self, submitter: Submitter | None) -> JobOwner:
        """The account that Slurm will show as the owner of the job."""
        if submitter is None or run_as(submitter) is None:
            return asked(self.slurm.submitter)
        return JobOwner(uid=submitter.account.uid, name=submitter.account.name)
