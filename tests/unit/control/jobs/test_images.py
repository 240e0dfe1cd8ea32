"""Images by name: who sees which, what a name means to a job, and which login it is pulled with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Taken
from corral.control.jobs import images
from corral.control.live.unit_of_work import Caller
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import Store
from corral.control.records import ImageRecord, RegistryCredentialRecord, Visibility
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, SPEC, Desk, draft

HOST = "registry.example.org"
OWN = ImageRecord(name="train", address=f"{HOST}/ann/train:1")
PUBLIC = ImageRecord(name="pytorch", address="docker.io/pytorch/pytorch:2.4", visibility=Visibility.PUBLIC)
EVE = Caller(name="eve")


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob", "eve"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    desk.do(images.create, ANN, OWN)
    desk.do(images.create, ROOT, PUBLIC)
    return desk


def login(name: str, registry: str = HOST) -> RegistryCredentialRecord:
    return RegistryCredentialRecord(name=name, owner="", registry=registry, username=name, secret=f"locked-{name}")


def names(desk: Desk, caller: Caller) -> list[str]:
    with desk.store.read() as tx:
        return [image.name for image in images.visible(tx, caller)]


def source(desk: Desk, user: str, image: str) -> tuple[str, str | None]:
    """The address that is pulled, and the name of the login."""
    with desk.store.read() as tx:
        found = images.source_of(tx, user, image)
    return found.address, found.login.name if found.login else None


def test_own_ones_are_private_public_ones_everybodys_and_shared_ones_of_those_named(staffed: Desk) -> None:
    assert (names(staffed, ANN), names(staffed, BOB)) == (["pytorch", "train"], ["pytorch"])
    assert names(staffed, ROOT) == ["pytorch", "train"]
    shared = {"visibility": Visibility.SHARED, "shared_users": ("bob",)}
    staffed.do(images.edit, ANN, "train", None, shared)
    assert (names(staffed, BOB), names(staffed, EVE)) == (["pytorch", "train"], ["pytorch"])
    staffed.do(images.edit, ANN, "train", None, {"shared_users": (), "shared_groups": ("default",)})
    assert names(staffed, EVE) == ["pytorch", "train"]
    staffed.do(images.edit, ANN, "train", None, {"visibility": Visibility.PRIVATE, "shared_groups": ()})
    assert names(staffed, EVE) == ["pytorch"]
    assert staffed.actions("train") == ["image.created", "image.edited", "image.edited", "image.edited"]


def test_only_their_owners_and_operators_change_images(staffed: Desk) -> None:
    with pytest.raises(NotFound):
        staffed.do(images.edit, BOB, "train", None, {"description": "mine now"})
    with pytest.raises(Forbidden):
        staffed.do(images.edit, BOB, "pytorch", None, {"description": "mine now"})
    with pytest.raises(Forbidden):
        staffed.do(images.create, BOB, replace(PUBLIC, name="better"))
    with pytest.raises(Forbidden):
        staffed.do(images.delete, BOB, "pytorch", None)
    with pytest.raises(Invalid):
        staffed.do(images.edit, ANN, "train", None, {"visibility": Visibility.PUBLIC})
    staffed.do(images.edit, ROOT, "train", "ann", {"description": "by an operator"})
    staffed.do(images.delete, ROOT, "train", "ann")
    assert names(staffed, ANN) == ["pytorch"]


def test_a_name_means_ones_own_then_the_platforms_then_anothers(staffed: Desk) -> None:
    assert source(staffed, "ann", "train") == (OWN.address, None)
    shared = {"visibility": Visibility.SHARED, "shared_users": ("bob",)}
    staffed.do(images.edit, ANN, "train", None, shared)
    assert source(staffed, "bob", "train")[0] == OWN.address
    staffed.do(images.create, ROOT, replace(PUBLIC, name="train"))
    assert source(staffed, "bob", "train")[0] == PUBLIC.address
    assert source(staffed, "bob", "ann/train")[0] == OWN.address
    staffed.do(images.create, BOB, replace(OWN, address=f"{HOST}/bob/train:9"))
    assert source(staffed, "bob", "train")[0] == f"{HOST}/bob/train:9"
    # who sees none of them means an address
    assert source(staffed, "eve", "ann/train")[0] == "ann/train"


def test_the_login_is_the_named_one_or_the_users_own_for_that_registry(staffed: Desk) -> None:
    staffed.do(images.put_login, ANN, login("work"))
    staffed.do(images.put_login, BOB, login("bobs"))
    staffed.do(images.put_login, ROOT, login("hub", "docker.io"), is_platform=True)
    assert source(staffed, "ann", "train") == (OWN.address, "work")
    assert source(staffed, "ann", f"{HOST}/other:2") == (f"{HOST}/other:2", "work")
    assert source(staffed, "eve", f"{HOST}/other:2")[1] is None
    # the platform's login is for the platform's images only
    assert source(staffed, "eve", "pytorch")[1] == "hub"
    assert source(staffed, "eve", "docker.io/another/private:1")[1] is None
    # shared with a login, it is pulled on the owner's behalf; without, with one's own
    shared = {"visibility": Visibility.SHARED, "shared_users": ("bob",)}
    staffed.do(images.edit, ANN, "train", None, shared)
    assert source(staffed, "bob", "train")[1] == "bobs"
    staffed.do(images.edit, ANN, "train", None, {"credential": "work"})
    assert source(staffed, "bob", "train")[1] == "work"
    with pytest.raises(InUse):
        staffed.do(images.delete_login, ANN, "work")
    with staffed.store.read() as tx:
        assert [item.name for item in images.logins(tx, ANN)] == ["work"]
        assert [item.name for item in images.logins(tx, ROOT)] == ["hub"]
    assert not [event for event in staffed.events() if "locked" in str(event.detail)]


def test_logins_belong_to_their_owner(staffed: Desk) -> None:
    staffed.do(images.put_login, ANN, login("work"))
    with pytest.raises(NotFound):
        staffed.do(images.delete_login, BOB, "work")
    with pytest.raises(Forbidden):
        staffed.do(images.put_login, ANN, login("hub"), is_platform=True)
    with pytest.raises(Invalid):
        staffed.do(images.edit, ANN, "train", None, {"credential": "nothing"})
    staffed.do(images.put_login, ANN, replace(login("work"), secret="locked-anew"))
    with staffed.store.read() as tx:
        (kept,) = tx.images.credentials("ann")
    assert kept.secret == "locked-anew"
    staffed.do(images.renew_secrets, {("ann", "work"): ("locked-anew", "newest"), ("bob", "x"): ("a", "b")})
    with staffed.store.read() as tx:
        assert [item.secret for item in tx.images.all_credentials()] == ["newest"]
    staffed.do(images.delete_login, ANN, "work")
    staffed.do(images.put_login, ANN, login("again"))
    staffed.do(delete_user, ROOT, "ann")
    with staffed.store.read() as tx:
        assert tx.images.all_credentials() == []
    assert names(staffed, ROOT) == ["pytorch"]


@pytest.mark.parametrize(
    ("address", "registry"),
    [
        ("ubuntu", "docker.io"),
        ("pytorch/pytorch:2.4.0-cuda12.4", "docker.io"),
        ("localhost/mine:1", "localhost"),
        ("127.0.0.1:5000/team/train:1", "127.0.0.1:5000"),
        (f"{HOST}/a/b/c_d@sha256:" + "0" * 64, HOST),
        ("h:5000/x", "h:5000"),
    ],
)
def test_addresses_and_their_registries(address: str, registry: str) -> None:
    images.check_address(address)
    assert images.registry_of(address) == registry


@pytest.mark.parametrize(
    "address",
    ["", " ", "-v", "--privileged", "a b", "x;rm -rf /", "dir:/etc", "oci:/root/x", "docker-archive:x.tar", "dir:tmp",
     "docker://X", "docker://docker://x", "http://h/x", "/a/../x.sif", "/a b/x.sif", "x.sif/", "/x:y.sif", "/x,y.sif",
     "file:///x.sif", "UPPER", "x:", "x@sha256:12", "a" * 600, "../x", "/abs/path", "x\n", "é"],
)  # fmt: skip
def test_invalid_image_addresses_are_refused(address: str) -> None:
    with pytest.raises(Invalid):
        images.check_address(address)


def test_a_file_has_no_login_and_a_transport_is_no_part_of_an_address(staffed: Desk) -> None:
    staffed.do(images.put_login, ANN, login("hub", "docker.io"))
    assert source(staffed, "ann", "/shared/images/train.sif") == ("/shared/images/train.sif", None)
    assert source(staffed, "ann", "docker://ubuntu:24.04") == ("ubuntu:24.04", "hub")
    staffed.do(images.create, ANN, replace(OWN, name="by-file", address="/shared/images/train.sif"))
    assert source(staffed, "ann", "by-file") == ("/shared/images/train.sif", None)


def test_a_job_names_an_image_that_its_user_sees_or_an_address(staffed: Desk) -> None:
    (job,) = staffed.submit(draft("with-image", spec=replace(SPEC, image="train")))
    assert staffed.record(job.id).spec.image == "train"
    staffed.submit(draft("by-address", spec=replace(SPEC, image=f"{HOST}/x:1")))
    with pytest.raises(Invalid) as refusal:
        staffed.submit(draft("wrong-one", spec=replace(SPEC, image="dir:/etc")))
    assert refusal.value.field == "image"
    with pytest.raises(Invalid) as refusal:
        staffed.submit(draft("both-ways", spec=replace(SPEC, image="train", venv="/opt/venv")))
    assert refusal.value.field == "venv"


def test_names_are_unique_per_owner(staffed: Desk) -> None:
    with pytest.raises(Taken):
        staffed.do(images.create, ANN, OWN)
    for name in ("Upper", "", "a b", "x" * 64, "-x", "a/b"):
        with pytest.raises(Invalid):
            staffed.do(images.create, ANN, replace(OWN, name=name))
    for wrong in (
        replace(OWN, name="x", address="not an address"),
        replace(OWN, name="x", shared_users=("bob",)),
        replace(OWN, name="x", visibility=Visibility.SHARED, shared_users=("stranger",)),
        replace(OWN, name="x", visibility=Visibility.SHARED, shared_groups=("nowhere",)),
    ):
        with pytest.raises(Invalid):
            staffed.do(images.create, ANN, wrong)
