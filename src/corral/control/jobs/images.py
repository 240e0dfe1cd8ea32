"""Images that jobs run in, by name, and the logins to pull them with.

A name is one's own image, one of the platform's public ones, or a shared one; any other text is
taken as an address. Names are looked up when a job is submitted, so that a mistake is reported at once, and again when
it is launched, so that it runs what the name means then. Secrets arrive here encrypted and leave so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, OverLimit, Taken
from corral.control.live.unit_of_work import PLATFORM, SYSTEM, Caller, Work
from corral.control.ports import Transaction
from corral.control.records import ImageRecord, RegistryCredentialRecord, Visibility
from corral.core.counts import counted
from corral.core.names import IMAGE_NAME

#: The owner of the platform's own images and logins.
PUBLIC_OWNER = ""
MAX_IMAGES = 500
MAX_LOGINS = 50
MAX_SHARED = 200
MAX_ADDRESS = 512
DOCKER_HUB = "docker.io"

_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?"
_ADDRESS = re.compile(
    rf"(?:{_HOST}/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?", re.ASCII
)
#: A file of Apptainer on a file system of the nodes.
_FILE = re.compile(r"(?:/[\w.@+-]+)+\.sif", re.ASCII)
_DOCKER = "docker://"
_REGISTRY = re.compile(_HOST, re.ASCII)
#: Words before a colon that Podman does not take as a name, but as a place on the node.
_TRANSPORTS = frozenset(
    {"containers-storage", "dir", "docker", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree", "sif"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSource:
    """The address of an image, and the login for its registry."""

    address: str
    login: RegistryCredentialRecord | None = None


# ------------------------------------------------------------------------------------------------ looking


def visible(tx: Transaction, caller: Caller) -> list[ImageRecord]:
    """The caller's own, the public and the shared images; for operators all."""
    images = tx.images.images()
    return images if caller.is_operator else [image for image in images if _sees(tx, caller.name, image)]


def found(tx: Transaction, caller: Caller, name: str, owner: str | None = None) -> ImageRecord:
    """Finds an image that the caller can see. Without an owner the caller's own comes first, then a public one."""
    image = _named(visible(tx, caller), caller.name, name, owner)
    if image is None:
        raise NotFound(f"there is no image {name!r}", field="image")
    return image


def check_source(tx: Transaction, user: str, image: str) -> None:
    """Refused if it is neither an image that the user sees nor an address."""
    if _image_of(tx, user, image) is None:
        check_address(image, "image")


def source_of(tx: Transaction, user: str, image: str) -> ImageSource:
    """The address and login of an image that a user's job names, as of now."""
    record = _image_of(tx, user, image)
    address = record.address if record is not None else image
    check_address(address, "image")
    if is_file(address):
        return ImageSource(address=address)
    address = address.removeprefix(_DOCKER)
    logins = tx.images.all_credentials()
    if record is not None and record.credential is not None:
        named = [login for login in logins if (login.owner, login.name) == (record.owner, record.credential)]
        return ImageSource(address=address, login=named[0] if named else None)
    owners = (PUBLIC_OWNER,) if record is not None and record.owner == PUBLIC_OWNER else (user,)
    registry = registry_of(address)
    fitting = [login for login in logins if login.owner in owners and login.registry == registry]
    return ImageSource(address=address, login=fitting[0] if fitting else None)


def registry_of(address: str) -> str:
    """The host that an address names; without one it is Docker's."""
    first, slash, _ = address.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first if is_host else DOCKER_HUB


def is_file(address: str) -> bool:
    """Whether it is a file of Apptainer instead of an address of a registry."""
    return _FILE.fullmatch(address) is not None and ".." not in address.split("/")


def check_address(address: str, field: str = "address") -> None:
    """Refused if it is neither a file nor an address of a registry, which may begin with `docker://`."""
    if len(address) <= MAX_ADDRESS and is_file(address):
        return
    address = address.removeprefix(_DOCKER)
    if len(address) > MAX_ADDRESS or _ADDRESS.fullmatch(address) is None or address.partition(":")[0] in _TRANSPORTS:
        raise Invalid(
            f"{address[:80]!r} is not an image: give the name of one of `corral image ls`, or an address such as "
            "registry.example.org/team/train:1.4, or for Slurm clusters the path of a .sif file on the nodes",
            field=field,
        )


def _image_of(tx: Transaction, user: str, image: str) -> ImageRecord | None:
    owner, slash, name = image.partition("/")
    seen = [record for record in tx.images.images() if _sees(tx, user, record)]
    return _named(seen, user, name, owner) if slash else _named(seen, user, image, None)


def _named(images: Sequence[ImageRecord], user: str, name: str, owner: str | None) -> ImageRecord | None:
    named = [image for image in images if image.name == name and owner in (None, image.owner)]
    # Of several the nearest: one's own, the platform's, another's.
    return min(named, key=lambda image: (image.owner != user, image.owner), default=None)


def _sees(tx: Transaction, user: str, image: ImageRecord) -> bool:
    if image.owner == user or image.visibility is Visibility.PUBLIC:
        return True
    if image.visibility is not Visibility.SHARED:
        return False
    record = tx.people.user(user) if image.shared_groups else None
    return user in image.shared_users or (record is not None and record.group in image.shared_groups)


# ------------------------------------------------------------------------------------------------ images


def create(work: Work, caller: Caller, image: ImageRecord) -> ImageRecord:
    """Creates an image of the caller, or, for an operator, a public image of the platform."""
    if not IMAGE_NAME.fullmatch(image.name):
        raise Invalid(
            f"the image name {image.name!r} is not allowed: up to 63 small letters, digits, '.', '_' and '-'",
            field="name",
        )
    owner = _owner_for(caller, image.visibility)
    held = [other for other in work.tx.images.images() if other.owner == owner]
    if any(other.name == image.name for other in held):
        whose = "you have" if owner else "there is"
        raise Taken(f"{whose} an image {image.name!r} already", field="name", name=image.name)
    if len(held) >= MAX_IMAGES:
        raise OverLimit(
            f"there are {counted(len(held), 'image')} already: delete one first", held=len(held), limit=MAX_IMAGES
        )
    made = replace(image, owner=owner, created_at=work.now)
    _check(work.tx, made)
    work.tx.images.save_image(made)
    work.record(caller, "image.created", made.name, owner=owner, detail=_detail(made))
    return made


def edit(work: Work, caller: Caller, name: str, owner: str | None, changes: Mapping[str, Any]) -> ImageRecord:
    before = _own(work.tx, caller, name, owner)
    after = replace(before, **changes)
    if (after.visibility is Visibility.PUBLIC) != (before.visibility is Visibility.PUBLIC):
        raise Invalid(
            "a public image belongs to the platform, others to their owners: delete it and create it anew",
            field="visibility",
        )
    _check(work.tx, after)
    if after != before:
        work.tx.images.save_image(after)
        work.record(caller, "image.edited", name, owner=after.owner, detail=_detail(after))
    return after


def delete(work: Work, caller: Caller, name: str, owner: str | None) -> ImageRecord:
    """Jobs that name it and are not launched yet will then fail, or find a public one of the same name."""
    image = _own(work.tx, caller, name, owner)
    work.tx.images.delete_image(image.owner, name)
    work.record(caller, "image.deleted", name, owner=image.owner, detail={"address": image.address})
    return image


def forget_user(work: Work, user: str) -> None:
    """Images and logins of a user who is deleted."""
    for image in work.tx.images.images():
        if image.owner == user:
            work.tx.images.delete_image(user, image.name)
    for login in work.tx.images.credentials(user):
        work.tx.images.delete_credential(user, login.name)


def _own(tx: Transaction, caller: Caller, name: str, owner: str | None) -> ImageRecord:
    image = found(tx, caller, name, owner)
    if image.owner != caller.name and not caller.is_operator:
        raise Forbidden(f"image {name} is not yours: only its owner changes it")
    return image


def _owner_for(caller: Caller, visibility: Visibility) -> str:
    if visibility is not Visibility.PUBLIC:
        return caller.name
    if not caller.is_operator:
        raise Forbidden("only operators offer public images: share yours with users or groups instead")
    return PUBLIC_OWNER


def _check(tx: Transaction, image: ImageRecord) -> None:
    check_address(image.address)
    if (image.shared_users or image.shared_groups) and image.visibility is not Visibility.SHARED:
        raise Invalid("users and groups are for images with the visibility shared", field="visibility")
    for field, names in (("shared_users", image.shared_users), ("shared_groups", image.shared_groups)):
        if len(names) > MAX_SHARED:
            raise Invalid(f"at most {MAX_SHARED} of them", field=field, asked=len(names), limit=MAX_SHARED)
    known_groups = {group.name for group in tx.people.groups()}
    missing = [name for name in image.shared_users if tx.people.user(name) is None]
    if missing:
        raise Invalid(f"there is no user {missing[0]!r}", field="shared_users")
    unknown = sorted(set(image.shared_groups) - known_groups)
    if unknown:
        raise Invalid(f"there is no group {unknown[0]!r}", field="shared_groups")
    if image.credential is not None and image.credential not in _login_names(tx, image.owner):
        raise Invalid(
            f"there is no login {image.credential!r}: `corral registry ls` shows those there are", field="credential"
        )


def _login_names(tx: Transaction, owner: str) -> set[str]:
    return {login.name for login in tx.images.credentials(owner)}


def _detail(image: ImageRecord) -> dict[str, Any]:
    return {"address": image.address, "visibility": image.visibility.value}


# ------------------------------------------------------------------------------------------------ logins


def logins(tx: Transaction, caller: Caller) -> list[RegistryCredentialRecord]:
    """The caller's registry logins; for operators also the platform's."""
    own = tx.images.credentials(caller.name)
    return [*own, *tx.images.credentials(PUBLIC_OWNER)] if caller.is_operator else own


def own_login(tx: Transaction, caller: Caller, name: str, *, is_platform: bool = False) -> RegistryCredentialRecord:
    """One that the caller may use: one's own, or for operators one of the platform."""
    for login in logins(tx, caller):
        if (login.name, login.owner == PUBLIC_OWNER) == (name, is_platform):
            return login
    raise NotFound(f"there is no login {name!r}", field="login")


def put_login(
    work: Work, caller: Caller, login: RegistryCredentialRecord, *, is_platform: bool = False
) -> RegistryCredentialRecord:
    """Create one, or replace the one of the same name. Its secret is encrypted already."""
    if not IMAGE_NAME.fullmatch(login.name):
        raise Invalid(
            f"the name {login.name!r} is not allowed: up to 63 small letters, digits, '.', '_' and '-'", field="name"
        )
    if _REGISTRY.fullmatch(login.registry) is None:
        raise Invalid(
            f"{login.registry!r} is not a registry's host, such as registry.example.org:5000", field="registry"
        )
    if is_platform and not caller.is_operator:
        raise Forbidden("only operators keep logins of the platform")
    owner = PUBLIC_OWNER if is_platform else caller.name
    held = _login_names(work.tx, owner)
    if login.name not in held and len(held) >= MAX_LOGINS:
        raise OverLimit(f"there are {len(held)} logins already: remove one first", held=len(held), limit=MAX_LOGINS)
    kept = replace(login, owner=owner, created_at=work.now)
    work.tx.images.save_credential(kept)
    detail = {"name": kept.name, "registry": kept.registry, "username": kept.username}
    work.record(caller, "registry.login-kept", kept.name, owner=owner, detail=detail)
    return kept


def delete_login(work: Work, caller: Caller, name: str, *, is_platform: bool = False) -> None:
    if is_platform and not caller.is_operator:
        raise Forbidden("only operators remove logins of the platform")
    owner = PUBLIC_OWNER if is_platform else caller.name
    if name not in _login_names(work.tx, owner):
        raise NotFound(f"there is no login {name!r}", field="login")
    users = [image.name for image in work.tx.images.images() if (image.owner, image.credential) == (owner, name)]
    if users:
        raise InUse(f"images are pulled with login {name}: {', '.join(users[:5])}", field="name", images=users[:20])
    work.tx.images.delete_credential(owner, name)
    work.record(caller, "registry.login-removed", name, owner=owner)


def renew_secrets(work: Work, renewed: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    """The same secrets under a newer key: by owner and name, as they were and as they are now."""
    for login in work.tx.images.all_credentials():
        before, after = renewed.get((login.owner, login.name), ("", ""))
        # Its owner may have replaced the secret meanwhile.
        if after and login.secret == before:
            work.tx.images.save_credential(replace(login, secret=after))
    work.record(SYSTEM, "registry.secrets-renewed", PLATFORM, detail={"secrets": len(renewed)})
