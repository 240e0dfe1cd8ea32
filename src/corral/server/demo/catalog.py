"""What an operator would have set up before the demo begins: people, groups, a pool of their own, sizes to pick from.

Made through the same use cases as anybody's changes, and only once: what is there already stays as it is.
"""

from __future__ import annotations

from corral.control import catalog, datasets, groups, images, people, pools, queues, quotas, volumes
from corral.control.records import (
    DEFAULT_TARGET,
    FlavorRecord,
    ImageRecord,
    PackageRecord,
    Share,
    ShareKind,
    ShareMode,
    Visibility,
)
from corral.control.work import Caller, Work
from corral.core.model import WHOLE, JobKind, Queue, Quota
from corral.core.volumes import VolumeType

OPERATOR = Caller(name="operator", is_operator=True)
GIB = 1024**3

#: name, display name
PEOPLE = (
    ("ann", "Ann Okafor"),
    ("ben", "Ben Sørensen"),
    ("chen", "陈立"),
    ("dana", "Dana Petrova"),
    ("emil", "Emil Haddad"),
)
#: the team with GPUs of its own
TEAM, TEAM_NODE = "speech", "a10-006"
TEAM_MEMBERS = ("emil",)

FLAVORS = (
    FlavorRecord(name="a10", models=("A10",), description="24 GB, for notebooks, evaluation and small models"),
    FlavorRecord(name="a100", models=("A100-80G",), description="80 GB, for large models"),
)
WORKBENCH, TRAINING, DISTRIBUTED = JobKind.WORKBENCH, JobKind.TRAINING, JobKind.DISTRIBUTED
#: name, GPUs, flavor, CPUs, GiB, kinds, description
PACKAGES: tuple[tuple[str, int, str | None, int, int, tuple[JobKind, ...], str], ...] = (
    ("notebook", 1, "a10", 4, 16, (WORKBENCH,), "one A10 to try things out"),
    ("cpu", 0, None, 4, 16, (WORKBENCH, TRAINING), "no GPU: preparation and evaluation"),
    ("small", 1, "a10", 4, 24, (TRAINING,), "one A10"),
    ("medium", 2, "a10", 8, 48, (TRAINING,), "two A10 on one node"),
    ("large", 1, "a100", 8, 64, (WORKBENCH, TRAINING), "one A100"),
    ("node", 4, "a100", 32, 256, (TRAINING, DISTRIBUTED), "a whole node of A100"),
)
IMAGES = (
    ("pytorch", "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", "PyTorch with CUDA 12.8"),
    ("tensorflow", "tensorflow/tensorflow:2.20.0-gpu", "TensorFlow with GPU support"),
)
#: name, type, GiB: the operator's, which everybody may read
VOLUMES = (("checkpoints", VolumeType.BLOCK, 500), ("shared-code", VolumeType.FILESYSTEM, 50))
DATASET = ("road-scenes", "street pictures with labels, for detection")


def set_up(work: Work) -> None:
    _people(work)
    _team(work)
    _sizes(work)
    _interactive_queue(work)
    _images(work)
    _storage(work)


def _people(work: Work) -> None:
    known = {user.name for user in work.tx.people.users()}
    for name, display_name in PEOPLE:
        if name not in known:
            email = f"{name}@example.org"
            people.create_user(work, OPERATOR, name, display_name=display_name, email=email)
            quotas.set_quota(work, OPERATOR, name, {WORKBENCH: Quota(gpu_milli=4 * WHOLE)})


def _team(work: Work) -> None:
    if any(group.name == TEAM for group in work.tx.people.groups()):
        return
    node = work.state.snapshot.nodes.get(TEAM_NODE)
    if node is None or any(pool.name == TEAM for pool in work.tx.fleet.pools()):
        return
    pools.create(work, OPERATOR, TEAM, description="the speech team's own node", gpus=[gpu.id for gpu in node.gpus])
    leaving = groups.GroupChange(remove_users=TEAM_MEMBERS)
    groups.edit(work, OPERATOR, "default", leaving)
    groups.create(work, OPERATOR, TEAM, description="speech recognition", users=TEAM_MEMBERS, pool=TEAM)


def _sizes(work: Work) -> None:
    flavors = {flavor.name for flavor in work.tx.catalog.flavors()}
    packages = {package.name for package in work.tx.catalog.packages()}
    for flavor in FLAVORS:
        if flavor.name not in flavors:
            catalog.create_flavor(work, OPERATOR, flavor)
    for name, gpus, flavor_name, cpus, memory, kinds, description in PACKAGES:
        if name not in packages:
            package = PackageRecord(
                name=name,
                gpus=gpus,
                flavor=flavor_name,
                cpu_milli=cpus * WHOLE,
                memory_bytes=memory * GIB,
                kinds=kinds,
                description=description,
            )
            catalog.create_package(work, OPERATOR, package)


def _interactive_queue(work: Work) -> None:
    if "interactive" not in work.state.snapshot.queues:
        queue = Queue(name="interactive", pool="default", policy="fcfs", kinds=(WORKBENCH,), max_seconds=8 * 3600.0)
        queues.create(work, OPERATOR, queue)


def _images(work: Work) -> None:
    known = {image.name for image in work.tx.images.images()}
    for name, address, description in IMAGES:
        if name not in known:
            image = ImageRecord(name=name, address=address, visibility=Visibility.PUBLIC, description=description)
            images.create(work, OPERATOR, image)


def _storage(work: Work) -> None:
    known = {volume.name for volume in work.tx.volumes.all() if volume.owner == OPERATOR.name}
    for name, kind, size in VOLUMES:
        if name not in known:
            draft = volumes.VolumeDraft(name=name, type=kind, size_bytes=size * GIB)
            made = volumes.create(work, OPERATOR, draft)
            volumes.share(work, OPERATOR, made.id, [Share(kind=ShareKind.GROUP, name="default", mode=ShareMode.READ)])
    name, description = DATASET
    if not any(dataset.name == name for dataset in work.tx.datasets.all()):
        datasets.create(work, OPERATOR, name=name, target=DEFAULT_TARGET, description=description)
