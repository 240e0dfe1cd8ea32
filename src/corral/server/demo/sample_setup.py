"""The demo's setup: users, groups, a team's pool, flavors, packages, images, volumes.

Created through the use cases, and only once: existing objects are not changed.
"""

from __future__ import annotations

from corral.control.datasets import datasets
from corral.control.fleet import catalog, pools
from corral.control.jobs import images
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import groups, quotas, user_accounts
from corral.control.records import (
    DEFAULT_TARGET,
    FlavorRecord,
    ImageRecord,
    PackageRecord,
    Share,
    ShareKind,
    Visibility,
)
from corral.control.scheduling import queues
from corral.control.storage import volumes
from corral.core.model import WHOLE, JobKind, Queue
from corral.core.people.quota import Quota
from corral.core.storage.volumes import VolumeType

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
#: owner, name, type, GiB
VOLUMES = (
    ("ann", "imagenet", VolumeType.FILESYSTEM, 200),
    ("ben", "results", VolumeType.BLOCK, 50),
    ("chen", "corpus", VolumeType.FILESYSTEM, 500),
)
#: GiB of each user
STORAGE_QUOTAS = {VolumeType.BLOCK: 100, VolumeType.FILESYSTEM: 600}
#: the operator's dataset, which all users may read
DATASET, DATASET_DESCRIPTION = "road-scenes", "street images with labels, for detection"


def set_up(work: Work) -> None:
    _people(work)
    _team(work)
    _sizes(work)
    _interactive_queue(work)
    _images(work)
    _volumes(work)
    _dataset(work)


def _people(work: Work) -> None:
    known = {user.name for user in work.tx.people.users()}
    for name, display_name in PEOPLE:
        if name not in known:
            email = f"{name}@example.org"
            user_accounts.create_user(work, OPERATOR, name, display_name=display_name, email=email)
            stored = {kind: gib * GIB for kind, gib in STORAGE_QUOTAS.items()}
            quotas.set_quota(work, OPERATOR, name, {WORKBENCH: Quota(gpu_milli=4 * WHOLE)}, stored)


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


def _volumes(work: Work) -> None:
    """All users may read them; only their owners write. With several clusters, they are on the demo's own."""
    node = work.state.snapshot.nodes.get(TEAM_NODE)
    cluster = None if node is None else node.cluster
    for owner, name, volume_type, size in VOLUMES:
        if not any(volume.name == name for volume in work.tx.volumes.of_owner(owner)):
            caller = Caller(name=owner)
            made = volumes.VolumeDraft(name=name, type=volume_type, size_bytes=size * GIB, cluster=cluster)
            volumes.create(work, caller, made)
            volumes.share(work, caller, name, [Share(kind=ShareKind.GROUP, name="default")])


def _dataset(work: Work) -> None:
    """Creates the dataset without versions: jobs create those, see `sample_data`."""
    if work.tx.datasets.find(OPERATOR.name, DATASET) is None:
        datasets.create(work, OPERATOR, name=DATASET, target=DEFAULT_TARGET, description=DATASET_DESCRIPTION)
        datasets.share(work, OPERATOR, DATASET, [Share(kind=ShareKind.GROUP, name="default")])
