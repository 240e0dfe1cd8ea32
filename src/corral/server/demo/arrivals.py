"""Jobs that arrive all day.

They are submitted through the same use case as anybody's, and they are real processes that print and sleep.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator

from corral.control.errors import Refusal
from corral.control.jobs.jobs import JobDraft, submit
from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import Caller
from corral.control.live.worker import Worker
from corral.control.records import JobSpec
from corral.control.storage.mount_text import MountWord, parse_mount
from corral.core.model import JobKind, JobState, Request
from corral.server.demo.sample_data import deliveries, head
from corral.server.demo.sample_setup import DATASET, OPERATOR, PEOPLE, TEAM_MEMBERS, set_up

log = logging.getLogger("corral.demo")

USERS = tuple(name for name, _ in PEOPLE)
SHARES = (5, 3, 2, 1, 2)
#: name, kind, GPUs of each node, nodes, seconds at least and at most, how often
WORK = (
    ("resnet-sweep", JobKind.TRAINING, 1, 1, 20, 90, 6),
    ("bert-finetune", JobKind.TRAINING, 2, 1, 40, 180, 4),
    ("llama-sft", JobKind.TRAINING, 4, 1, 60, 240, 3),
    ("moe-pretrain", JobKind.DISTRIBUTED, 4, 3, 60, 200, 2),
    ("eval-suite", JobKind.TRAINING, 0, 1, 10, 30, 2),
    ("notebook", JobKind.WORKBENCH, 1, 1, 120, 400, 1),
)
MODELS = ("A10", "A100-80G")
#: what some of them read
MOUNTS = {"resnet-sweep": "ann/imagenet:/data:ro", "bert-finetune": "chen/corpus:/corpus:ro"}
#: what reads the dataset once it has a version
DATASET_READERS = ("llama-sft", "eval-suite")
#: jobs that may wait before the demo holds back
LONGEST_QUEUE = 14
ARRIVAL_SECONDS = 3.0


class Demo:
    """Submits jobs on a thread of its own until it is stopped."""

    def __init__(self, controller: Controller, wake: Callable[[], None], seed: int = 44) -> None:
        """`wake` has waiting commits of datasets begun."""
        self._controller = controller
        self._wake = wake
        self._rng = random.Random(seed)
        self._stored: Iterator[None] | None = None
        self._worker = Worker("demo", self._round, every_seconds=ARRIVAL_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def _round(self) -> float:
        if self._stored is None:
            self._controller.execute(set_up).result()
            for _ in range(24):
                self._arrive()
            self._stored = deliveries(self._controller, self._wake)
        else:
            next(self._stored, None)
            waiting = self._controller.inspect(lambda state: state.snapshot.count(JobState.QUEUED)).result()
            if waiting < LONGEST_QUEUE:
                self._arrive()
        return self._rng.expovariate(1 / ARRIVAL_SECONDS)

    def _arrive(self) -> None:
        user = self._rng.choices(USERS, weights=SHARES)[0]
        try:
            has_versions = self._controller.execute(head).result() is not None
            self._controller.execute(submit, Caller(name=user), [draft(self._rng, user, has_versions)]).result()
        except Refusal as refusal:
            log.info("a demo job was refused: %s", refusal)


def draft(rng: random.Random, user: str, has_versions: bool = False) -> JobDraft:
    has_one_node = user in TEAM_MEMBERS
    work = [item for item in WORK if item[3] == 1] if has_one_node else WORK
    name, kind, gpus, nodes, shortest, longest, _ = rng.choices(work, weights=[item[-1] for item in work])[0]
    seconds = rng.randint(shortest, longest)
    ends_badly = rng.random() < 0.08
    script = (
        f'for i in $(seq {seconds}); do echo "step $i/{seconds} loss $((999 / i)) on GPUs $CUDA_VISIBLE_DEVICES"; '
        f"sleep 1; done; {'echo out of data >&2; exit 1' if ends_badly else 'echo done'}"
    )
    models = (MODELS[0] if has_one_node else rng.choice(MODELS),) if gpus else ()
    return JobDraft(
        name=f"{name}-{rng.randrange(16**6):06x}",
        kind=kind,
        request=Request(gpus=gpus, nodes=nodes, models=models, cpu_milli=1000),
        priority=rng.choice((3, 5, 5, 5, 7)),
        time_limit_seconds=None if kind is JobKind.WORKBENCH else float(longest + 60),
        spec=JobSpec(command=("sh", "-c", script)),
        # The team with a node of its own is in no group that these are shared with.
        mounts=() if has_one_node else _mounts(name, has_versions),
    )


def _mounts(name: str, has_versions: bool) -> tuple[MountWord, ...]:
    if name in DATASET_READERS and has_versions:
        return (parse_mount(f"dataset:{OPERATOR.name}/{DATASET}:/data"),)
    return (parse_mount(MOUNTS[name]),) if name in MOUNTS else ()
